# SPDX-License-Identifier: Apache-2.0
# 64-bit Windows with mingw-w64 (Debian's gcc-mingw-w64-x86-64); tests run under wine.
#
# EMBLA_WINDOWS_ROOT (a CMake or an environment variable) is a folder with xxhash.h and, for tests,
# with cmocka and jansson for Windows. .ci/windows_root makes it.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
find_program(mingw NAMES x86_64-w64-mingw32-gcc-win32 x86_64-w64-mingw32-gcc REQUIRED)
set(CMAKE_C_COMPILER ${mingw})
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)

if(NOT EMBLA_WINDOWS_ROOT)
  set(EMBLA_WINDOWS_ROOT "$ENV{EMBLA_WINDOWS_ROOT}")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EMBLA_WINDOWS_ROOT)

# Headers and libraries of the machine that builds must not be found.
set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
if(EMBLA_WINDOWS_ROOT)
  list(PREPEND CMAKE_FIND_ROOT_PATH ${EMBLA_WINDOWS_ROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${EMBLA_WINDOWS_ROOT}/lib/pkgconfig)

find_program(EMBLA_WINE NAMES wine64 wine)
if(EMBLA_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/wine.sh)
endif()
