#!/bin/sh
# Runs as root inside the new root file system, with no network: compiles the
# programs in /build with the image's MPI, then removes what only that needed.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

for program in pi ranks; do
	mpicc -std=c11 -O2 -Wall -Wextra -Werror -s -o "/usr/local/bin/$program" "/build/$program.c" -lm
done

# Reading another rank's memory needs ptrace rights, which the default seccomp
# profile takes away; through shared memory it works everywhere. And a rank that
# waits gives its core away: a demonstration often has more ranks than the
# machine has cores, and would otherwise crawl.
parameters=/etc/openmpi/openmpi-mca-params.conf
if [ -f "$parameters" ]; then
	# Debian's file does not end its last line.
	printf '\n%s\n' 'btl_vader_single_copy_mechanism = none' 'btl_sm_use_cma = 0' 'mpi_yield_when_idle = 1' >>"$parameters"
fi

apt-get purge --yes --autoremove \
	-o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false \
	gcc libc6-dev 'lib*mpi*-dev' 'libmpich-dev'

# Debian's Open MPI asks for an ssh. Here the agent is it, and that there is no
# other shows that none is needed.
dpkg --purge --force-depends openssh-client 2>/dev/null || true
if command -v ssh || command -v sshd; then
	echo "the image has SSH of its own" >&2
	exit 1
fi
rm -rf /var/log/* /var/cache/ldconfig /var/cache/debconf/*-old /var/lib/dpkg/*-old
