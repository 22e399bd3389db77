# What each rank of a test runs: first as $1 the library that exchanges messages, then the name of MPI's launcher. Only with built-ins.
read host </proc/sys/kernel/hostname
echo "mpi-runtime-test: rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-?}} on $host"
if [ $# -lt 2 ]; then
	echo "mpi-runtime-test: not measured: images"
elif [ ! -e "$1" ]; then
	echo "mpi-runtime-test: not measured: agent"
else
	# The library runs instead of the shell that loads it. Until glibc 2.33, dlopen is in libdl.
	export LD_PRELOAD="$1:libdl.so.2${LD_PRELOAD:+:$LD_PRELOAD}" MPI_RUNTIME_TEST="$(command -v "$2")"
	exec sh -c 'echo "mpi-runtime-test: not measured: load"'
fi
