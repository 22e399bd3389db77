#!/bin/sh
# Compiles a library that the agent's image contains: build.sh FOLDER/libmpi-profile.so, libmpi-exchange.so or libmpi-gpus.so. CC is the
# compiler, gcc or clang, by default gcc. It needs no C library and no headers of one: the library is linked with none, so that it can be loaded together
# with any of them.
set -eu
CC=${CC:-gcc}
name=$(basename "$1" .so)
atomics=
# Atomic operations of arm64 are functions of the compiler's library otherwise.
case $("$CC" -dumpmachine) in aarch64*) atomics=-mno-outline-atomics ;; esac
exec "$CC" $atomics -std=gnu11 -O2 -Wall -Wextra -fPIC -ffreestanding -fno-stack-protector -fexceptions -fasynchronous-unwind-tables \
  -fvisibility=hidden -ftls-model=initial-exec -shared -nostdlib -s -Wl,-soname,"$name.so" -Wl,-z,relro,-z,noexecstack -Wl,--build-id=none \
  -o "$1" "$(dirname "$0")/${name#libmpi-}.c"
