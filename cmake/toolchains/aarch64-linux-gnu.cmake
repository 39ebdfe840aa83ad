# SPDX-License-Identifier: Apache-2.0
# 64-bit Arm Linux. EMBLA_AARCH64_ROOT (a CMake or an environment variable) is the folder that
# '.ci/debian_root arm64 FOLDER' makes; debian-cross.cmake says what it has.
if(NOT EMBLA_AARCH64_ROOT)
  set(EMBLA_AARCH64_ROOT "$ENV{EMBLA_AARCH64_ROOT}")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EMBLA_AARCH64_ROOT)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(root ${EMBLA_AARCH64_ROOT})
include(${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake)
