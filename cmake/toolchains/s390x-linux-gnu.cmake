# SPDX-License-Identifier: Apache-2.0
# s390x, a big-endian machine, with Debian's gcc-s390x-linux-gnu and qemu-user. -O2, because gcc 12
# fails in its vectorizer at -O3.
#   cmake -B build/s390x --toolchain cmake/toolchains/s390x-linux-gnu.cmake \
#     -DEMBLA_ENGINE=none -DEMBLA_PROGRAM=OFF -DXXHASH_INCLUDE=FOLDER \
#     -DCMOCKA_LIBRARY=.. -DCMOCKA_INCLUDE=.. -DJANSSON_LIBRARY=.. -DJANSSON_INCLUDE=..
#   cmake --build build/s390x --target bits && ctest --test-dir build/s390x -R '^bits$'
# FOLDER has xxhash.h alone: /usr/include has headers of this machine.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_COMPILER s390x-linux-gnu-gcc)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "Flags of release builds")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-s390x;-L;/usr/s390x-linux-gnu)
set(CMAKE_FIND_ROOT_PATH /usr/s390x-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
