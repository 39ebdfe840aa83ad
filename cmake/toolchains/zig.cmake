# SPDX-License-Identifier: Apache-2.0
# Any target by zig, which is clang with the C libraries of all targets. EMBLA_ZIG_TARGET names it:
#
#   x86_64-linux-gnu.2.28  aarch64-linux-gnu.2.28   glibc 2.28 or newer
#   x86_64-linux-musl      aarch64-linux-musl       static programs
#   x86_64-macos.11.0      aarch64-macos.11.0       macOS 11 or newer
#   x86_64-windows-gnu     wasm32-wasi
#
# EMBLA_ZIG is the command of zig; by default that of the Python package ziglang. If qemu, wine or
# node is installed, it runs the tests. Both names may be CMake or environment variables.
# EMBLA_ZIG_ROOT may be a folder with the headers and libraries of the target that tests need.

foreach(name EMBLA_ZIG_TARGET EMBLA_ZIG)
  if(NOT ${name})
    set(${name} "$ENV{${name}}")
  endif()
  list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ${name})
endforeach()
if(NOT EMBLA_ZIG)
  set(EMBLA_ZIG "python3 -m ziglang")
endif()
if(NOT EMBLA_ZIG_TARGET MATCHES "^([a-z0-9_]+)-(linux|macos|windows|wasi)")
  message(FATAL_ERROR "EMBLA_ZIG_TARGET is '${EMBLA_ZIG_TARGET}'; it must be a target such as "
    "aarch64-linux-musl. ${CMAKE_CURRENT_LIST_FILE} lists them.")
endif()

set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(systems linux Linux macos Darwin windows Windows wasi WASI)
list(FIND systems ${CMAKE_MATCH_2} at)
math(EXPR at "${at} + 1")
list(GET systems ${at} CMAKE_SYSTEM_NAME)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR}) # Platform/WASI.cmake

set(CMAKE_OSX_SYSROOT "") # zig has its own
set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined") # which zig adds to debug builds
set(CMAKE_C_FLAGS_RELEASE_INIT "-Xclang -O3") # zig compiles C with -O2 where -O3 is asked for

# CMake wants one file for each tool: small scripts that call zig.
set(tools ${CMAKE_BINARY_DIR}/zig-${EMBLA_ZIG_TARGET})
if(NOT EXISTS ${tools}/done)
  foreach(tool cc ar ranlib rc)
    set(target "")
    if(tool STREQUAL "cc")
      set(target " -target ${EMBLA_ZIG_TARGET}")
    endif()
    file(WRITE ${tools}/${tool} "#!/bin/sh\nexec ${EMBLA_ZIG} ${tool}${target} \"$@\"\n")
    file(CHMOD ${tools}/${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endforeach()
  file(WRITE ${tools}/done "")
endif()
set(CMAKE_C_COMPILER ${tools}/cc)
set(CMAKE_AR ${tools}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${tools}/ranlib CACHE FILEPATH "")
set(CMAKE_RC_COMPILER ${tools}/rc)

# Headers and libraries of the machine that builds must not be found. xxHash is one header that needs
# nothing of the system, so a copy of it serves all targets.
set(CMAKE_FIND_ROOT_PATH ${tools} ${EMBLA_ZIG_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${tools})
foreach(folder /usr/include /usr/local/include $ENV{EMBLA_XXHASH})
  if(EXISTS ${folder}/xxhash.h AND NOT EXISTS ${tools}/include/xxhash.h)
    file(COPY ${folder}/xxhash.h DESTINATION ${tools}/include)
  endif()
endforeach()

# What runs the programs of the target here.
set(runner "")
if(CMAKE_SYSTEM_NAME STREQUAL "WASI")
  set(runner node)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Windows")
  set(runner wine)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(runner qemu-${CMAKE_SYSTEM_PROCESSOR})
endif()
if(runner)
  find_program(EMBLA_RUNNER ${runner})
  if(EMBLA_RUNNER)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${EMBLA_RUNNER})
    if(runner STREQUAL "node")
      cmake_path(SET script NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../tests/wasm/run.mjs)
      list(APPEND CMAKE_CROSSCOMPILING_EMULATOR --no-warnings ${script})
    endif()
  endif()
endif()
