// Package logstream reads the logs of all pods of a job at once, as they come: merged in the order of time, masked, each line
// with its pod and rank. It does not depend on an interface: callers pass a sink for lines.
package logstream
