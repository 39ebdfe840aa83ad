# SPDX-License-Identifier: Apache-2.0
# Writes the linker's version script of the shared libraries.
#
# Public functions are in the node EMBLA_<major>.<minor>, like the name of the library. What
# libembla exports for libembla_lab alone (marked EMBLA_PRIVATE in src/) is in a node of the whole
# version: such functions share structs that change without notice. So a libembla_lab of another
# version does not start with this libembla; the loader says which version it misses.
#   usage: cmake -DSOURCE=src -DVERSION=1.2.3 -DOUT=embla.map -P symbol_versions.cmake

string(REGEX MATCH "^[0-9]+\\.[0-9]+" series "${VERSION}")
file(GLOB_RECURSE headers ${SOURCE}/*.h)
set(names "")
foreach(header ${headers})
  file(READ ${header} text)
  string(REGEX REPLACE "[;[]" " " text "${text}") # they mean something else in a list
  string(REGEX MATCHALL "\nEMBLA_PRIVATE [^(]*\\(" declarations "${text}")
  foreach(declaration ${declarations})
    string(REGEX REPLACE ".*[ *\n](embla_[a-z0-9_]+)\\($" "\\1" name "${declaration}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)
list(TRANSFORM names PREPEND "    ")
list(JOIN names ";\n" private)
set(script "EMBLA_${series} {\n  global:\n    embla_*;\n  local:\n    *;\n};\n")
string(APPEND script "EMBLA_PRIVATE_${VERSION} {\n  global:\n${private};\n};\n")
file(WRITE ${OUT} "${script}")
