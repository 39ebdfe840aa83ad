# SPDX-License-Identifier: Apache-2.0
# Linux on another CPU with Debian's cross compiler; tests run under qemu. The toolchain file of a CPU
# sets CMAKE_SYSTEM_PROCESSOR, which Debian's compiler and qemu are named after, and `root`, a folder
# with libraries of the target: its C library, cmocka and jansson, and, if wanted, OpenBLAS and LAPACKE.
# .ci/debian_root makes it. Without it (root = "") only the libraries and the program can be built
# (-DEMBLA_TESTS=OFF), and they run with the cross compiler's C library.
set(CMAKE_SYSTEM_NAME Linux)
set(triplet ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(CMAKE_C_COMPILER ${triplet}-gcc)

# Headers and libraries of the machine that builds must not be found.
set(CMAKE_FIND_ROOT_PATH /usr/${triplet})
set(run_root /usr/${triplet})
if(root)
  list(PREPEND CMAKE_FIND_ROOT_PATH ${root})
  set(run_root ${root})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${run_root}/usr/lib/${triplet}/pkgconfig)

find_program(EMBLA_QEMU qemu-${CMAKE_SYSTEM_PROCESSOR})
if(EMBLA_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${EMBLA_QEMU} -L ${run_root})
endif()
