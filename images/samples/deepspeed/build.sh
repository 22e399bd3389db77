#!/bin/sh
# Runs as root inside the new root file system: does what the sample openmpi5 does, and installs DeepSpeed with its operations for CPUs.
set -eu

/build/mpi/build.sh

# Compiled here, these operations need no compiler in the pods. DeepSpeed compiles others when a program first uses them.
export DS_ACCELERATOR=cpu DS_BUILD_CPU_ADAM=1 DS_BUILD_SHM_COMM=1
export MAX_JOBS="$(nproc)"
pip install --no-index --no-deps --no-build-isolation --no-compile --break-system-packages --root-user-action=ignore /build/deepspeed-*.tar.gz
strip --strip-unneeded /usr/local/lib/python3*/dist-packages/deepspeed/ops/*/*.so
ds_report
