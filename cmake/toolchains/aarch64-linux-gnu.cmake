# SPDX-License-Identifier: Apache-2.0
# 64-bit Arm Linux with Debian's cross compiler; tests run under qemu.
#
# EMBLA_AARCH64_ROOT (a CMake or an environment variable) is a folder with libraries of the target:
# its C library, cmocka and jansson, and, if wanted, OpenBLAS and LAPACKE. .ci/aarch64_root makes it.
# Without it only the libraries and the program can be built (-DEMBLA_TESTS=OFF), and they run with
# the cross compiler's C library.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

if(NOT EMBLA_AARCH64_ROOT)
  set(EMBLA_AARCH64_ROOT "$ENV{EMBLA_AARCH64_ROOT}")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EMBLA_AARCH64_ROOT)

# Headers and libraries of the machine that builds must not be found.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(run_root /usr/aarch64-linux-gnu)
if(EMBLA_AARCH64_ROOT)
  list(PREPEND CMAKE_FIND_ROOT_PATH ${EMBLA_AARCH64_ROOT})
  set(run_root ${EMBLA_AARCH64_ROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${run_root}/usr/lib/aarch64-linux-gnu/pkgconfig)

find_program(EMBLA_QEMU_AARCH64 qemu-aarch64)
if(EMBLA_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${EMBLA_QEMU_AARCH64} -L ${run_root})
endif()
