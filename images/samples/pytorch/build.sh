#!/bin/sh
# Runs as root inside the new root file system: does what the sample openmpi does, and compiles Horovod for PyTorch.
set -eu

/build/mpi/build.sh

# Horovod finds PyTorch, MPI and CMake itself; Gloo, which elastic jobs need, is in its archive.
export HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
export MAKEFLAGS="-j$(nproc)"
pip install --no-index --no-deps --no-build-isolation --no-compile --break-system-packages --root-user-action=ignore /build/horovod-*.tar.gz
strip --strip-unneeded /usr/local/lib/python3*/dist-packages/horovod/torch/*.so
# What no rank uses: the examples and the parts for other frameworks than PyTorch.
rm -rf /usr/local/lib/python3*/dist-packages/horovod/spark /usr/local/lib/python3*/dist-packages/horovod/ray
horovodrun --check-build
