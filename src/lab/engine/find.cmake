# SPDX-License-Identifier: Apache-2.0
# Finds the headers of the libraries for matrix products and eigenvalues, and sets
# EMBLA_ENGINE_USED. libembla_lab loads the libraries themselves at run time.

set(EMBLA_ENGINE "" CACHE STRING "Matrix products: onednn, cblas or none; empty means onednn if its header is found, else cblas")
set_property(CACHE EMBLA_ENGINE PROPERTY STRINGS "" onednn cblas none)
find_path(DNNL_INCLUDE dnnl.h)
find_path(LAPACKE_INCLUDE lapacke.h PATH_SUFFIXES openblas lapacke)
set(EMBLA_ENGINE_USED "${EMBLA_ENGINE}")
if(EMBLA_ENGINE_USED STREQUAL "")
  if(DNNL_INCLUDE)
    set(EMBLA_ENGINE_USED onednn)
  elseif(CMAKE_SYSTEM_NAME STREQUAL WASI) # which loads no libraries
    set(EMBLA_ENGINE_USED none)
  else()
    set(EMBLA_ENGINE_USED cblas)
  endif()
endif()
if(NOT EMBLA_ENGINE_USED MATCHES "^(onednn|cblas|none)$")
  message(FATAL_ERROR "EMBLA_ENGINE is '${EMBLA_ENGINE}'; it must be onednn, cblas, none or empty")
elseif(EMBLA_ENGINE_USED STREQUAL onednn AND NOT DNNL_INCLUDE)
  message(FATAL_ERROR "EMBLA_ENGINE=onednn needs dnnl.h (Debian: libdnnl-dev)")
endif()

# What follows "libdnnl.so." in the name that programs load. It is the major version, and in Debian 13 the
# minor too. If the library is not here, as in a cross build, onednn.c takes the major version of the header.
set(EMBLA_ONEDNN_VERSION "")
find_library(DNNL_LIBRARY dnnl)
if(EMBLA_ENGINE_USED STREQUAL onednn AND DNNL_LIBRARY AND CMAKE_READELF)
  execute_process(COMMAND ${CMAKE_READELF} -d ${DNNL_LIBRARY} OUTPUT_VARIABLE found ERROR_QUIET)
  if(found MATCHES "SONAME[^\n]*libdnnl[.]so[.]([0-9.]+)")
    set(EMBLA_ONEDNN_VERSION ${CMAKE_MATCH_1})
  endif()
endif()
