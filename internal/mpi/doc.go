// Package mpi says what an MPI job is, whichever API it came by: its launcher, workers, slots and
// lifecycle, the names of its objects, what was observed of it and what that means.
//
// It is pure: values in, values out. It knows no client, no clock and no other package of ours.
package mpi
