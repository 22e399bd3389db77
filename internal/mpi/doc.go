// Package mpi defines the model of an MPI job, independent of its API: launcher, workers, slots and lifecycle, the
// names of its objects, its annotations, and its validation.
//
// It is pure: it uses no client and no clock, and of the packages of this project only small pure ones.
package mpi
