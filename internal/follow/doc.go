// Package follow reads the logs of all pods of a job at once, as they come: merged in the order of time, masked, each line
// with the pod and the rank that it is of. It knows no command line; whoever shows logs brings a sink for lines.
package follow
