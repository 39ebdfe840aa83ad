# SPDX-License-Identifier: Apache-2.0
# Finds Open MPI and MPICH by their compiler wrappers. For each one that is there, sets
# EMBLA_OPENMPI_COMPILE and EMBLA_OPENMPI_LINK, or EMBLA_MPICH_COMPILE and EMBLA_MPICH_LINK.

set(here ON)
if(CMAKE_CROSSCOMPILING) # the wrappers answer for the machine that builds
  set(here OFF)
endif()
option(EMBLA_MPI "Build libembla_mpi for Open MPI and MPICH, where they are found" ${here})
find_program(EMBLA_OPENMPI_CC NAMES mpicc.openmpi mpicc)
find_program(EMBLA_MPICH_CC NAMES mpicc.mpich mpicc)

# Runs a wrapper and sets the variable to those words of its answer that match.
function(embla_ask_mpi variable wrapper question words_like)
  set(${variable} "" PARENT_SCOPE)
  if(NOT EMBLA_MPI OR NOT wrapper)
    return()
  endif()
  execute_process(COMMAND ${wrapper} ${question} OUTPUT_VARIABLE answer RESULT_VARIABLE code
    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(code EQUAL 0)
    separate_arguments(words UNIX_COMMAND "${answer}")
    list(FILTER words INCLUDE REGEX "${words_like}")
    set(${variable} ${words} PARENT_SCOPE)
  endif()
endfunction()

embla_ask_mpi(EMBLA_OPENMPI_COMPILE "${EMBLA_OPENMPI_CC}" -showme:compile "^-I")
embla_ask_mpi(EMBLA_OPENMPI_LINK "${EMBLA_OPENMPI_CC}" -showme:link "^-(L|l|Wl,)")
embla_ask_mpi(EMBLA_MPICH_COMPILE "${EMBLA_MPICH_CC}" -compile_info "^-I")
embla_ask_mpi(EMBLA_MPICH_LINK "${EMBLA_MPICH_CC}" -link_info "^-(L|l|Wl,)")
