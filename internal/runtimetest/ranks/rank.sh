# What each rank of a test runs, with exchange.py and exchange.c as arguments. Up to the first line only with built-ins.
read host </proc/sys/kernel/hostname
echo "mpi-runtime-test: rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-?}} on $host"
if [ $# -lt 2 ]; then
	echo "mpi-runtime-test: not measured: images"
elif python3 -c 'import mpi4py; mpi4py.rc.initialize = mpi4py.rc.finalize = False; import mpi4py.MPI' 2>/dev/null; then
	exec python3 -c "$1"
elif ! command -v mpicc >/dev/null; then
	echo "mpi-runtime-test: not measured: tools"
elif dir=$(mktemp -d 2>/dev/null) && printf '%s\n' "$2" >"$dir/exchange.c" && mpicc -O2 -o "$dir/exchange" "$dir/exchange.c" 2>/dev/null; then
	exec "$dir/exchange"
else
	echo "mpi-runtime-test: not measured: compiler"
fi
