# Exchanges messages between ranks 0 and 1, and prints latency and bandwidth.
import signal, sys, time
signal.alarm(60)  # ends a rank that waits for a message in vain
from mpi4py import MPI

comm = MPI.COMM_WORLD
me, size = comm.Get_rank(), comm.Get_size()
if size < 2:
    print("mpi-runtime-test: not measured: other-mpi", flush=True)
    sys.exit()
ping, pong, done = 0, 1, 1


def round_trip(length, warm_up, seconds):
    """Returns the median round trip in seconds; the first byte of a message marks the last one."""
    buffer, trips, began = bytearray(length), [], MPI.Wtime()
    message = [buffer, MPI.BYTE]
    while not buffer[0]:
        start = MPI.Wtime()
        if me == ping:
            buffer[0] = len(trips) >= warm_up and (start - began > seconds or len(trips) == 10000)
            comm.Send(message, dest=pong)
            comm.Recv(message, source=pong)
        else:
            comm.Recv(message, source=ping)
            comm.Send(message, dest=ping)
        trips.append(MPI.Wtime() - start)
    trips = sorted(trips[warm_up:])
    return trips[len(trips) // 2]


if me <= pong:
    small, length = round_trip(8, 100, 1), 4 << 20
    large = round_trip(length, 3, 2)
    if me == ping:
        print("mpi-runtime-test: latency %d ns, bandwidth %d B/s, by mpi4py" % (small / 2 * 1e9, 2 * length / large), flush=True)
        for rank in range(2, size):
            comm.Send([bytearray(1), MPI.BYTE], dest=rank, tag=done)
else:
    while not comm.Iprobe(source=ping, tag=done):
        time.sleep(0.02)  # a rank that waits in MPI would use a CPU
    comm.Recv([bytearray(1), MPI.BYTE], source=ping, tag=done)
