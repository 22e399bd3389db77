package agentapi

// LostPeer reports whether a rank ended as MPI ends ranks that lost a connection. The default error handler exits with the class of
// the error: MPI_ERR_UNKNOWN, MPI_ERR_OTHER or MPI_ERR_INTERN, which are 14, 16 and 17 in Open MPI (ompi/include/mpi.h.in), and 13, 15
// and 16 in MPICH and Intel MPI (src/binding/c/mpi.h.in).
func (e RankEnd) LostPeer() bool { return e.Signal == 0 && e.ExitCode >= 13 && e.ExitCode <= 17 }
