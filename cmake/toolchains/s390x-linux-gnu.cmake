# SPDX-License-Identifier: Apache-2.0
# s390x, a big-endian machine. EMBLA_S390X_ROOT (a CMake or an environment variable) is the folder that
# '.ci/debian_root s390x FOLDER' makes; debian-cross.cmake says what it has. -O2, because gcc 12 fails
# in its vectorizer at -O3.
if(NOT EMBLA_S390X_ROOT)
  set(EMBLA_S390X_ROOT "$ENV{EMBLA_S390X_ROOT}")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EMBLA_S390X_ROOT)
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "Flags of release builds")
set(root ${EMBLA_S390X_ROOT})
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
