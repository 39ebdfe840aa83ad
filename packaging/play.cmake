# SPDX-License-Identifier: Apache-2.0
# Runs at the installation: installs the module of pages, if there is one, and the page of the demo.
# packaging/wasm makes the module; an archive of the source may have it in play/.
#   SOURCE   the project          MODULE   play.wasm.gz, "none", or "" to look for it
#   DATA     share, or its path   PROGRAM  embla, or "" if it does not run on this machine
#   BINARY   a folder of the build     VERSION  of the project
foreach(place build/play play) # of this version alone
  set(found ${SOURCE}/${place}/play.wasm.gz)
  if(MODULE STREQUAL "" AND EXISTS ${found} AND EXISTS ${found}.sha256)
    file(STRINGS ${found}.sha256 line LIMIT_COUNT 1)
    if(line MATCHES "  ${VERSION}$")
      set(MODULE ${found})
    endif()
  endif()
endforeach()
if(MODULE STREQUAL "" OR MODULE STREQUAL "none")
  return()
endif()
if(NOT EXISTS ${MODULE} OR NOT EXISTS ${MODULE}.sha256 OR NOT MODULE MATCHES "/play[.]wasm[.]gz$")
  message(FATAL_ERROR "EMBLA_PLAY_MODULE is '${MODULE}'; it must be the path of play.wasm.gz, with play.wasm.gz.sha256 beside it")
endif()
if(NOT IS_ABSOLUTE "${DATA}")
  set(DATA ${CMAKE_INSTALL_PREFIX}/${DATA})
endif()
file(INSTALL DESTINATION ${DATA}/embla/play TYPE FILE FILES ${MODULE} ${MODULE}.sha256)
if(PROGRAM)
  get_filename_component(folder ${MODULE} DIRECTORY)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env EMBLA_PLAY=${folder} EMBLA_DEMO=${SOURCE}/demo ${PROGRAM} play -o ${BINARY}/play.html --force -q
    RESULT_VARIABLE code)
  if(code)
    message(FATAL_ERROR "the page of the demo was not written")
  endif()
  file(INSTALL DESTINATION ${DATA}/embla TYPE FILE FILES ${BINARY}/play.html)
endif()
