// Leaves a call of MPI by an exception. Its exit code is 0 if it is caught.
struct handle;
extern "C" {
int MPI_Init(int *, char ***), MPI_Finalize(), MPI_Barrier(handle *), MPI_Send(const void *, int, handle *, int, int, handle *);
extern void (*handleErrors)();
}

static void fail() { throw 5; }

int main(int count, char **arguments) {
	handle *const world = reinterpret_cast<handle *>(1), *const narrow = reinterpret_cast<handle *>(4);
	int failed = MPI_Init(&count, &arguments), caught = 0;
	handleErrors = fail;
	try {
		failed |= MPI_Send("", 10, narrow, -9, 7, world);
	} catch (int value) {
		caught = value;
	}
	// The stack is deeper here than in the call that failed.
	auto deeper = [&](auto next, int n) -> int { volatile char space[1000] = {}; return n + space[0] ? next(next, n - 1) : MPI_Barrier(world); };
	failed |= deeper(deeper, 5);
	return failed | MPI_Finalize() | (caught != 5);
}
