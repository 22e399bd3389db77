#!/bin/sh
# Runs as root inside the new root file system, with no network: puts Intel
# MPI's runtime from its wheel in place, unmodified but for what nothing here
# uses, compiles the programs in /build, and removes what only that needed.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
root=/opt/intel/mpi

mkdir -p "$root" /build/wheel
unzip -q /build/impi_rt-*.whl -d /build/wheel
cd /build/wheel/impi_rt-*.data/data
rm -rf bin/IMB-* bin/mpitune_fast opt/mpi/tune_fast lib/*_abi* lib/*ilp64* lib/*java* lib/*fort* lib/libmpcp*
cp -r . "$root"
chmod -R a+rX "$root"
chmod a+x "$root"/bin/*
# A wheel holds no links: the same library lies there under each of its names.
for name in libmpi.so libmpi.so.12.0 libmpi.so.12.0.0 libmpicxx.so libmpicxx.so.12.0 libmpicxx.so.12.0.0; do
	ln -sf "${name%%.so*}.so.12" "$root/lib/$name"
done

# The headers are MPICH's: both keep to one binary interface (MPICH ABI
# Compatibility Initiative).
for program in pi ranks; do
	gcc -std=c11 -O2 -Wall -Wextra -Werror -s -I/usr/include/x86_64-linux-gnu/mpich \
		-o "/usr/local/bin/$program" "/build/$program.c" -L"$root/lib" -l:libmpi.so.12 -lm -Wl,--allow-shlib-undefined
done

apt-get purge --yes --autoremove \
	-o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false \
	gcc libc6-dev libmpich-dev unzip

if command -v ssh || command -v sshd; then
	echo "the image has SSH of its own" >&2
	exit 1
fi
rm -rf /var/log/* /var/cache/ldconfig /var/cache/debconf/*-old /var/lib/dpkg/*-old
