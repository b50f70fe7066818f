# Installation: the library, headers, program, documents, examples, and the files for find_package(Koine) and
# pkg-config.
include(CMakePackageConfigHelpers)

install(TARGETS koine EXPORT KoineTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET koine_mpi) # beside the library, which looks for it there
  install(TARGETS koine_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET koine_program)
  install(TARGETS koine_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/koine ${PROJECT_BINARY_DIR}/include/koine
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# The folder is share/doc/koine by default. Documents and examples have the same layout as in the source tree, so that
# links work; the examples can be built there.
if(CMAKE_INSTALL_DOCDIR STREQUAL "${CMAKE_INSTALL_DATAROOTDIR}/doc/${PROJECT_NAME}")
  set(CMAKE_INSTALL_DOCDIR ${CMAKE_INSTALL_DATAROOTDIR}/doc/koine)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
              ${PROJECT_SOURCE_DIR}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.[ch]" PATTERN "*.cpp" PATTERN "*.py" PATTERN "CMakeLists.txt" PATTERN "elastic.sh"
        PATTERN "__pycache__" EXCLUDE)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Koine)
install(EXPORT KoineTargets NAMESPACE Koine:: DESTINATION ${package_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/KoineConfig.cmake.in ${PROJECT_BINARY_DIR}/KoineConfig.cmake
                              INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/KoineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/KoineConfig.cmake ${PROJECT_BINARY_DIR}/KoineConfigVersion.cmake
        DESTINATION ${package_folder})

# Paths are relative to the file (pcfiledir), so that an installed tree can be moved; absolute if the installation
# folders are absolute.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  set(pc_prefix "\${pcfiledir}/${pc_to_prefix}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/koine.pc.in ${PROJECT_BINARY_DIR}/koine.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/koine.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
