# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the public libraries export.

# burst_export_api(target header [UNTIL text] [ALSO function...])
# The target exports the functions that a C header declares (before the line with
# the text UNTIL), those of ALSO, and nothing else. It is an error to link if one
# is not there.
function(burst_export_api target header)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "UNTIL" "ALSO")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  file(READ ${header} text)
  if(ARG_UNTIL)
    string(FIND "${text}" "${ARG_UNTIL}" end)
    string(SUBSTRING "${text}" 0 ${end} text)
  endif()
  # A declaration begins its line; a function's name ends at the parenthesis.
  string(REGEX MATCHALL "\n[a-z][a-z0-9_ *]*[ *]burst_[a-z_]+\\(" declarations "${text}")
  list(TRANSFORM declarations REPLACE "^.*(burst_[a-z_]+)\\($" "\\1")
  list(APPEND declarations ${ARG_ALSO})
  string(REPLACE ";" ";\n    " exported "${declarations}")
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
  file(CONFIGURE OUTPUT ${script} CONTENT "{\n  global:\n    ${exported};\n  local: *;\n};\n")
  list(TRANSFORM declarations PREPEND "-Wl,--undefined=")
  target_link_options(${target} PRIVATE -Wl,--version-script=${script} -Wl,--no-undefined-version
    -Wl,-Bsymbolic ${declarations})
  if(NOT BURST_SANITIZE) # whose functions are in the program, not in a library
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  # What fits, see burst/version.h.
  set(compatible ${PROJECT_VERSION_MAJOR})
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(compatible 0.${PROJECT_VERSION_MINOR})
  endif()
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION}
    SOVERSION ${compatible} LINK_DEPENDS ${script}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
endfunction()
