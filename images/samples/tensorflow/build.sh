#!/bin/sh
# Runs as root inside the new root file system: does what the sample openmpi does, installs TensorFlow and compiles Horovod for it.
set -eu

/build/mpi/build.sh

install() { pip install --no-index --no-deps --no-build-isolation --no-compile --break-system-packages --root-user-action=ignore "$@"; }
install /build/*.whl
# Horovod finds TensorFlow, MPI and CMake itself; Gloo, which elastic jobs need, is in its archive.
export HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1
export MAKEFLAGS="-j$(nproc)"
install /build/horovod-*.tar.gz
packages=$(echo /usr/local/lib/python3*/dist-packages)
strip --strip-unneeded "$packages"/horovod/tensorflow/*.so
# What no rank uses: what Horovod was compiled with, and its parts for other frameworks.
rm -rf "$packages"/tensorflow/include "$packages"/horovod/spark "$packages"/horovod/ray
horovodrun --check-build
