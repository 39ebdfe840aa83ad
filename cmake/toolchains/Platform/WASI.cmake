# SPDX-License-Identifier: Apache-2.0
# What CMake must know of WASI: programs are modules, and there are no shared libraries.
include(Platform/UnixPaths)
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS FALSE)
