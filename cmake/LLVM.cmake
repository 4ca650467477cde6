# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds LLVM and MLIR 22 as Debian packages them, and makes the targets of the
# packages usable both ways: as the two shared libraries or as archives.

if(NOT BURST_SHARED_LLVM)
  set(ZLIB_USE_STATIC_LIBS ON)
endif()
# LLVMSupport names a target of this package; LLVM's own configuration finds it
# too late to be of help when it is missing.
find_package(zstd REQUIRED CONFIG)

# /usr/lib/llvm-22 is on no default path, and the package takes a request for
# its own major.minor only: 22 alone would be refused.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22)
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION}: ${MLIR_DIR}")

list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# AddLLVM looks for llvm-lit, the package calls it lit.
set(LLVM_EXTERNAL_LIT ${LLVM_TOOLS_BINARY_DIR}/lit CACHE FILEPATH "the test driver of LLVM")

# What a source that includes LLVM is compiled with. The directory property is
# for mlir-tblgen, which takes its include path from there.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
add_library(burst_llvm INTERFACE)
# LLVM_DEFINITIONS are whole options (-DNAME), hence no compile definitions.
separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(burst_llvm INTERFACE ${definitions}
  $<$<NOT:$<BOOL:${LLVM_ENABLE_RTTI}>>:-fno-rtti>)

# Takes libraries out of the link interface of a target of the package.
function(burst_drop_from_interface target regex)
  get_target_property(libs ${target} INTERFACE_LINK_LIBRARIES)
  if(libs)
    list(FILTER libs EXCLUDE REGEX "${regex}")
    set_property(TARGET ${target} PROPERTY INTERFACE_LINK_LIBRARIES "${libs}")
  endif()
endfunction()

# Adds components of LLVM to the link interface of a target of the package.
function(burst_add_to_interface target)
  llvm_map_components_to_libnames(libs ${ARGN})
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${libs})
endfunction()

# The package is built with libLLVM.so, so that each MLIR archive asks for it
# (MLIRExecutionEngine for libMLIR.so as well). A static tool that obeyed would
# hold LLVM twice and abort when it starts: "Option registered more than once".
# What stood there before the package was built is unknown; named here is what
# the archives in use leave undefined.
if(NOT BURST_SHARED_LLVM)
  foreach(target IN LISTS MLIR_EXPORTED_TARGETS)
    if(TARGET ${target})
      burst_drop_from_interface(${target} "^(LLVM|MLIR)$")
    endif()
  endforeach()
  burst_add_to_interface(MLIRSupport core support)
  burst_add_to_interface(MLIRRemarkStreamer remarks)
  burst_add_to_interface(MLIRLspServerLib supportlsp)

  # Only the analyzer of clang wants Z3. Compression comes as archives, so that
  # a tool does not depend on what is installed where it runs.
  burst_drop_from_interface(LLVMSupport "z3|zstd")
  set_property(TARGET LLVMSupport APPEND PROPERTY INTERFACE_LINK_LIBRARIES zstd::libzstd_static)
endif()
