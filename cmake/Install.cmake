# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `cmake --install` puts where. Components: burst-runtime (what runs
# programs), burst-compiler (what makes them in process), burst-tools, and a
# library for each Python package.

include(CMakePackageConfigHelpers)

# The runtime as a library of its own, shared and as an archive.
add_library(burst_runtime SHARED $<TARGET_OBJECTS:BurstRuntime>)
target_link_libraries(burst_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(burst_runtime PROPERTIES LINKER_LANGUAGE C)
burst_export_api(burst_runtime ${PROJECT_SOURCE_DIR}/runtime/include/burst/burst.h
  UNTIL "/* Compiling ")
add_library(burst_runtime_static STATIC $<TARGET_OBJECTS:BurstRuntime>)
target_link_libraries(burst_runtime_static PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(burst_runtime_static PROPERTIES LINKER_LANGUAGE C
  OUTPUT_NAME burst_runtime ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

set(libraries burst_runtime burst_runtime_static)
set(parts runtime)
if(BURST_COMPILER)
  list(APPEND libraries burst)
  list(APPEND parts compiler)
endif()
foreach(library IN LISTS libraries)
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(burst_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(burst_runtime_static PROPERTIES EXPORT_NAME runtime_static)

# One list of targets for each component, so that a machine may have the runtime
# alone.
install(TARGETS burst_runtime burst_runtime_static EXPORT burst-runtime-targets
  COMPONENT burst-runtime)
if(BURST_COMPILER)
  install(TARGETS burst EXPORT burst-compiler-targets COMPONENT burst-compiler)
endif()
foreach(part IN LISTS parts)
  install(EXPORT burst-${part}-targets NAMESPACE burst::
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/burst COMPONENT burst-${part})
endforeach()
install(FILES runtime/include/burst/burst.h runtime/include/burst/program.h
  runtime/include/burst/transport.h
  runtime/include/burst/version.h
  jit/include/burst/burst.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/burst COMPONENT burst-runtime)

# Linked to MPI, and to nothing of the others.
if(TARGET burst_mpi)
  install(TARGETS burst_mpi COMPONENT burst-mpi)
  install(FILES runtime/include/burst/mpi.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/burst COMPONENT burst-mpi)
endif()

# Beside the modules of the Python package, which looks for it there.
install(FILES $<TARGET_FILE:burst_runtime> DESTINATION lib RENAME libburst_runtime.so
  COMPONENT burst-python-runtime EXCLUDE_FROM_ALL)

set(generated ${PROJECT_BINARY_DIR}/install)
configure_package_config_file(cmake/burstConfig.cmake.in ${generated}/burstConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/burst
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${generated}/burstConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/burstConfig.cmake ${generated}/burstConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/burst COMPONENT burst-runtime)

file(RELATIVE_PATH BURST_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
foreach(package burst burst-runtime)
  configure_file(cmake/${package}.pc.in ${generated}/${package}.pc @ONLY)
endforeach()
install(FILES ${generated}/burst-runtime.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT burst-runtime)

if(NOT BURST_COMPILER)
  return()
endif()

install(FILES ${generated}/burst.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT burst-compiler)
install(FILES $<TARGET_FILE:burst> DESTINATION lib RENAME libburst.so
  COMPONENT burst-python EXCLUDE_FROM_ALL)

# The tools are a door to the library, which comes with them.
install(TARGETS burst-commands COMPONENT burst-tools)
install(TARGETS burst LIBRARY COMPONENT burst-tools NAMELINK_SKIP)
get_property(commands GLOBAL PROPERTY BURST_COMMANDS)
foreach(command IN LISTS commands)
  install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" -E create_symlink burst
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/${command}\"
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT burst-tools)
endforeach()

# Tests install them.
add_dependencies(burst-test-depends burst burst_runtime burst_runtime_static)
