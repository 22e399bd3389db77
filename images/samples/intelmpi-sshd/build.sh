#!/bin/sh
# Runs as root inside the new root file system: sets up Intel MPI as its sample
# without SSH does, and then the user and SSH as the sample of Open MPI with SSH
# does, which first runs the script of its MPI.
set -eu

mkdir -p /build/mpi
cp /build/intelmpi/build.sh /build/mpi/build.sh
/build/openmpi-sshd/build.sh
