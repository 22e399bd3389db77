/* Calls functions of MPI as a program in Fortran does, with an argument as one that uses the module mpi_f08. */
void mpi_init_(int *), mpi_init_f08_(int *), mpi_finalize_(int *), mpi_finalize_f08_(int *);
void mpi_send_(void *, int *, int *, int *, int *, int *, int *), mpi_barrier_(int *, int *), mpi_barrier_f08_(int *, int *);

int main(int count, char **arguments) {
	(void)arguments;
	int module = count > 1, world = 1, wide = 8, many = 1000, to = -1, tag = 7, error = 0, failed = 0;
	(module ? mpi_init_f08_ : mpi_init_)(&error), failed |= error;
	for (int i = 0; i < 2; i++) mpi_send_("", &many, &wide, &to, &tag, &world, &error), failed |= error;
	if (module) mpi_barrier_f08_(&world, 0);
	else mpi_barrier_(&world, &error);
	failed |= error;
	(module ? mpi_finalize_f08_ : mpi_finalize_)(&error);
	return failed | error;
}
