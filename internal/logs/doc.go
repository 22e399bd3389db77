// Package logs makes of what containers write what may be kept and shown: lines that are whole, clean, short and free
// of secrets, and the figures of a training's progress among them.
//
// What is here is pure: bytes in, values out. Whoever reads the stream does that elsewhere.
package logs
