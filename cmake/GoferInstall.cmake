# Installation: headers, libgofer.a, libgofer.so, the CMake package (find_package(gofer)) and gofer.pc; and what
# gofer_preemptible() needs, with gofer-preemptible.pc for builds without CMake.
# No installed file names the prefix, so a tree may be moved, or installed with --prefix.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(gofer_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gofer")

# Two export sets: a program that uses the shared library does not need what the static one is linked with.
foreach(kind IN ITEMS static shared)
  install(TARGETS gofer_${kind} EXPORT gofer-${kind}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT gofer-${kind} NAMESPACE gofer:: FILE gofer-${kind}.cmake
    DESTINATION "${gofer_cmake_dir}")
endforeach()

# As gdb looks for it, and under a name by which users can load it themselves.
set(gofer_gdb_dir "${GOFER_GDB_SCRIPT_DIR}")
if(gofer_gdb_dir STREQUAL "")
  set(gofer_gdb_dir "${CMAKE_INSTALL_LIBDIR}")
endif()
install(FILES "${GOFER_GDB_SCRIPT}" DESTINATION "${gofer_gdb_dir}")
install(FILES "${GOFER_GDB_SCRIPT}" DESTINATION "${CMAKE_INSTALL_DATADIR}/gofer" RENAME gofer-gdb.py)

install(TARGETS gofer_check LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET gofer_preemptible)
  install(TARGETS gofer_preemptible EXPORT gofer-preemptible ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT gofer-preemptible NAMESPACE gofer:: FILE gofer-preemptible.cmake DESTINATION "${gofer_cmake_dir}")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/cmake/GoferPreemptible.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/gofer-preemptible.specs" DESTINATION "${gofer_cmake_dir}")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/gofer" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")

list(JOIN GOFER_TRACEBACK_MODULES " " gofer_pc_requires_private)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/gofer-config.cmake.in"
  "${PROJECT_BINARY_DIR}/gofer-config.cmake" INSTALL_DESTINATION "${gofer_cmake_dir}"
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gofer-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/gofer-config.cmake" "${PROJECT_BINARY_DIR}/gofer-config-version.cmake"
  DESTINATION "${gofer_cmake_dir}")

# gofer.pc derives its prefix from its own place: from <libdir>/pkgconfig, as many steps up as libdir has parts.
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR libdir_is_absolute)
if(libdir_is_absolute)
  set(gofer_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(gofer_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  set(gofer_pc_prefix "\${pcfiledir}/${up}")
  set(gofer_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_INCLUDEDIR includedir_is_absolute)
if(includedir_is_absolute)
  set(gofer_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(gofer_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
foreach(name IN ITEMS gofer gofer-preemptible)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
