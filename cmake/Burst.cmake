# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the compiler is built with, and the functions that its directories are made
# of.

find_package(GTest REQUIRED)
find_package(nlohmann_json REQUIRED)
# Link fmt::fmt-header-only: Debian has no archive of fmt, and a release tool must
# not ask for libfmt.so where it runs.
find_package(fmt REQUIRED)

add_library(burst_warnings INTERFACE)
target_compile_options(burst_warnings INTERFACE
  -Wall -Wextra -Wno-unused-parameter -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual
  $<$<BOOL:${BURST_WERROR}>:-Werror>)

if(BURST_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "BURST_FUZZERS needs clang, got: ${CMAKE_CXX_COMPILER_ID}")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link) # records coverage; no main
endif()

# Whatever includes MLIR links its core: some inline functions of the headers are
# kept even where nothing calls them.
target_link_libraries(burst_llvm INTERFACE $<IF:$<BOOL:${BURST_SHARED_LLVM}>,MLIR,MLIRIR>)

# One precompiled header for all sources that include LLVM. It fits only sources
# with the same definitions: those of its packages are made for all.
if(BURST_PCH)
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:GTEST_HAS_PTHREAD=1>
    $<$<COMPILE_LANGUAGE:CXX>:FMT_HEADER_ONLY=1>)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/pch.cpp CONTENT "")
  add_library(burst_pch OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
  target_link_libraries(burst_pch PRIVATE burst_warnings burst_llvm)
  target_precompile_headers(burst_pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)
  add_dependencies(burst_pch BurstDialectIncGen BurstRingDialectIncGen BurstTileDialectIncGen)
  # ccache compares the bytes of the header: no time may be in them. With g++ it
  # needs to see that a precompiled header was read.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>"
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()

# Options and libraries of a target that includes LLVM. With shared LLVM, its two
# libraries stand for all archives of LLVM and MLIR.
function(burst_use_llvm target scope)
  set(libs ${ARGN})
  if(BURST_SHARED_LLVM)
    list(FILTER libs EXCLUDE REGEX "^(MLIR|LLVM)")
    list(APPEND libs MLIR LLVM)
  endif()
  target_link_libraries(${target} PRIVATE burst_warnings burst_llvm ${scope} ${libs})
  if(BURST_PCH)
    target_precompile_headers(${target} REUSE_FROM burst_pch)
  endif()
endfunction()

# burst_add_library(name source... [DEPENDS target...] [LINK library...])
# A library that includes LLVM. DEPENDS names targets that generate headers; what
# LINK names, users of the library link as well.
function(burst_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "DEPENDS;LINK")
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  burst_use_llvm(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# burst_add_plain_library(name source... [LINK library...])
# A library in plain C++, usable where there is no LLVM: it cannot include it.
function(burst_add_plain_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "LINK")
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE burst_warnings PUBLIC ${ARG_LINK})
  set_target_properties(${name} PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR})
endfunction()

# burst_add_tool(name source... [LINK library...])
# A program of its own in bin/ that measures this machine: built before the tests
# run, not installed.
function(burst_add_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "LINK")
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  burst_use_llvm(${name} PRIVATE ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY BURST_TOOLS ${name})
endfunction()

# burst_add_command(name source... [LINK library...])
# A program of the one binary `burst`, see tools/Tools.h. bin/<name> is a link to
# it.
function(burst_add_command name)
  burst_add_library(${name}-command ${ARGN})
  set_property(GLOBAL APPEND PROPERTY BURST_COMMANDS ${name})
endfunction()

# burst_add_commands(commands main)
# The binary itself: `main` calls `commands`, which is linked into the library
# `burst` with all programs.
function(burst_add_commands commands main)
  get_property(names GLOBAL PROPERTY BURST_COMMANDS)
  target_sources(burst PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${commands})
  add_executable(burst-commands ${main})
  set(paths $ORIGIN/../lib $ORIGIN/../${CMAKE_INSTALL_LIBDIR} $ORIGIN)
  list(REMOVE_DUPLICATES paths)
  # The library is found where it was built and installed to, or beside the binary,
  # also by copies on other machines.
  set_target_properties(burst-commands PROPERTIES OUTPUT_NAME burst
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${paths}")
  target_link_libraries(burst-commands PRIVATE burst)
  foreach(name IN LISTS names)
    target_link_libraries(burst PRIVATE ${name}-command)
    add_custom_command(TARGET burst-commands POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink burst ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
    add_custom_target(${name} DEPENDS burst-commands)
    set_property(GLOBAL APPEND PROPERTY BURST_TOOLS ${name})
  endforeach()
endfunction()

# burst_add_test_tool(name source... [LINK library...])
# A program in bin/ that tests run and no one installs.
function(burst_add_test_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "LINK")
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  burst_use_llvm(${name} PRIVATE ${ARG_LINK})
  set_property(GLOBAL APPEND PROPERTY BURST_TEST_TOOLS ${name})
endfunction()

# burst_add_unittest(name source... [LONG] [LINK library...])
# A program of gtest cases, with gtest's main, that the test driver runs. One that
# is LONG is neither built nor run with BURST_TEST_SHORT.
function(burst_add_unittest name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "LONG" "" "LINK")
  if(ARG_LONG)
    set_property(GLOBAL APPEND PROPERTY BURST_LONG_UNITTESTS ${name})
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  burst_use_llvm(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/unit)
  set_property(GLOBAL APPEND PROPERTY BURST_UNITTESTS ${name})
endfunction()

# burst_add_plain_unittest(name source... [LONG] [LINK library...])
# The same in plain C++. Links nothing of LLVM, which the thread sanitizer could
# not see into.
function(burst_add_plain_unittest name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "LONG" "" "LINK")
  if(ARG_LONG)
    set_property(GLOBAL APPEND PROPERTY BURST_LONG_UNITTESTS ${name})
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE burst_warnings
    ${ARG_LINK} GTest::gtest GTest::gtest_main Threads::Threads)
  set_target_properties(${name} PROPERTIES
    INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/unit)
  set_property(GLOBAL APPEND PROPERTY BURST_UNITTESTS ${name})
endfunction()

# burst_add_fuzzer(name source... [LINK library...])
# A program that hands random bytes to LLVMFuzzerTestOneInput; seeds lie in
# test/fuzz/corpus/<name>. Exists with BURST_FUZZERS only.
add_custom_target(burst-fuzzers)
function(burst_add_fuzzer name)
  if(NOT BURST_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "LINK")
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  burst_use_llvm(${name} PRIVATE ${ARG_LINK})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/test/fuzz)
  add_dependencies(burst-fuzzers ${name})
endfunction()

# burst_add_doc(name source.td output.md tblgen-option...)
# Reference documentation, generated by the target burst-doc. Always made: a test
# compares it with docs/reference, to which scripts/docs copies it.
add_custom_target(burst-doc ALL)
function(burst_add_doc name td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  tablegen(MLIR ${output} ${ARGN})
  add_custom_target(burst-doc-${name} DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${output})
  add_dependencies(burst-doc burst-doc-${name})
endfunction()
