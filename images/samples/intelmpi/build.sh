#!/bin/sh
# Runs as root inside the new root file system: unpacks Intel MPI's runtime from
# its wheel in /build, leaving out what nothing here uses, and compiles the
# programs there. Debian and RHEL.
set -eu
root=/opt/intel/mpi

mkdir -p "$root" /build/wheel
unzip -q /build/impi_rt-*.whl -d /build/wheel
cd /build/wheel/impi_rt-*.data/data
# Of the Intel MPI Benchmarks, a test runs IMB-MPI1.
rm -rf bin/IMB-MPI1-GPU bin/IMB-MT bin/IMB-NBC bin/IMB-P2P bin/IMB-RMA* bin/mpitune_fast opt/mpi/tune_fast lib/*_abi* lib/*ilp64* lib/*java* lib/*fort* lib/libmpcp*
cp -r . "$root"
chmod -R a+rX "$root"
chmod a+x "$root"/bin/*
# Wheels cannot contain links, so the wheel has a copy of the library under each of its names.
for name in libmpi.so libmpi.so.12.0 libmpi.so.12.0.0 libmpicxx.so libmpicxx.so.12.0 libmpicxx.so.12.0.0; do
	ln -sf "${name%%.so*}.so.12" "$root/lib/$name"
done

# The headers are MPICH's: both keep to one binary interface (MPICH ABI
# Compatibility Initiative).
headers=$(dirname "$(find -L /usr/include -path '*/mpich*/mpi.h' -print -quit)")
for program in pi ranks; do
	gcc -std=c11 -O2 -Wall -Wextra -Werror -s -I"$headers" \
		-o "/usr/local/bin/$program" "/build/$program.c" -L"$root/lib" -l:libmpi.so.12 -lm -Wl,--allow-shlib-undefined
done
