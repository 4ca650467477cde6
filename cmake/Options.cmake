# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Options of all of burst, also of the runtime where it is built alone.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# The path in the repository is the include path. Generated headers lie at the
# same path in the build directory; what is generated is not ours to fix.
include_directories(${PROJECT_SOURCE_DIR})
include_directories(SYSTEM ${PROJECT_BINARY_DIR})

# -fPIC for tools too, where CMake would choose -fPIE: a precompiled header fits
# only sources that are compiled alike.
add_compile_options(-fPIC -fno-exceptions -ffunction-sections -fdata-sections)

if(BURST_SANITIZE)
  add_compile_options(-fsanitize=${BURST_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BURST_SANITIZE})
endif()

if(BURST_COMPILER)
  # g++ looks for a program ld.lld and would take that of another LLVM, or none.
  add_link_options(-fuse-ld=lld $<$<CXX_COMPILER_ID:GNU>:-B${LLVM_TOOLS_BINARY_DIR}>)
endif()
if(NOT BURST_SHARED_LLVM)
  add_link_options(-Wl,--gc-sections)
  # Not -static-libgcc: the archive of gcc 12 asks glibc 2.35 for _dl_find_object,
  # and every system has the library.
  add_link_options($<$<CONFIG:Release>:-s> $<$<CONFIG:Release>:-static-libstdc++>)
endif()

find_program(BURST_CCACHE ccache)
if(BURST_CCACHE)
  # Without these ccache takes no source that reads a precompiled header.
  set(launcher env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${BURST_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
