// Package logs turns the output of containers into lines that may be stored and shown: complete, printable, short and free
// of secrets. It also reads the progress of trainings from them.
//
// The package is pure: bytes in, values out. Reading streams is the task of package logstream.
package logs
