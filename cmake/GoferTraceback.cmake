# libdw gives goroutine traces function names and lines. It is optional: without it, traces have addresses and
# what the dynamic linker knows. Unwinding itself is libgcc's, which every C++ program has. Sets
#   GOFER_TRACEBACK_MODULES      the pkg-config names of what was found
#   GOFER_TRACEBACK_LIBRARIES    what to link
#   GOFER_TRACEBACK_DEFINITIONS  GOFER_HAVE_LIBDW=1
#
# gofer-config.cmake looks for the same module under the same name (PkgConfig::GOFER_LIBDW), because a static
# library passes it on to its users.
#
# Rejected: libunwind. Its shared library has its own _Unwind_RaiseException and related functions, and takes over every
# exception of the program (measured: 14 to 25 µs a throw instead of 1.4 to 3.5).

set(GOFER_TRACEBACK_MODULES)
set(GOFER_TRACEBACK_LIBRARIES)
set(GOFER_TRACEBACK_DEFINITIONS)
if(GOFER_TRACEBACK)
  find_package(PkgConfig QUIET)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(GOFER_LIBDW QUIET IMPORTED_TARGET GLOBAL libdw)
  endif()
  if(GOFER_LIBDW_FOUND)
    message(STATUS "gofer: traces use libdw ${GOFER_LIBDW_VERSION}")
    set(GOFER_TRACEBACK_MODULES libdw)
    set(GOFER_TRACEBACK_LIBRARIES PkgConfig::GOFER_LIBDW)
    set(GOFER_TRACEBACK_DEFINITIONS GOFER_HAVE_LIBDW=1)
  else()
    message(STATUS "gofer: libdw not found (Debian: libdw-dev and pkg-config): traces are built without it")
  endif()
endif()
