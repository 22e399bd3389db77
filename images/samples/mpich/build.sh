#!/bin/sh
# Runs as root inside the new root file system: does what the other samples do,
# and compiles the reference training for images without Python.
set -eu

/build/mpi/build.sh
mpicc -std=c11 -O2 -Wall -Wextra -Werror -s -o /usr/local/bin/train /build/train.c -lm
