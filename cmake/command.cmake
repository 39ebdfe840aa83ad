# SPDX-License-Identifier: Apache-2.0
# embla_command(VARIABLE TARGET): how a script runs the program TARGET. In a cross build with an
# emulator that is a script, in a folder `run` that has the program's place in the build folder.
# (Programs that ctest itself runs need none: CMake calls the emulator.)
function(embla_command variable target)
  if(NOT CMAKE_CROSSCOMPILING OR NOT CMAKE_CROSSCOMPILING_EMULATOR)
    set(${variable} $<TARGET_FILE:${target}> PARENT_SCOPE)
    return()
  endif()
  get_target_property(folder ${target} RUNTIME_OUTPUT_DIRECTORY)
  if(NOT folder)
    get_target_property(folder ${target} BINARY_DIR)
  endif()
  file(RELATIVE_PATH place ${PROJECT_BINARY_DIR} ${folder})
  cmake_path(APPEND PROJECT_BINARY_DIR run ${place} OUTPUT_VARIABLE folder)
  set(script ${folder}/$<TARGET_FILE_BASE_NAME:${target}>)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  file(GENERATE OUTPUT ${script}
    CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:${target}> \"$@\"\n"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  set(${variable} ${script} PARENT_SCOPE)
endfunction()
