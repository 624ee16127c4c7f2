# libunwind and libdw give goroutine traces with function names and lines. Both are optional: without one,
# traces have less in them. Sets
#   GOFER_TRACEBACK_MODULES      the pkg-config names of what was found
#   GOFER_TRACEBACK_LIBRARIES    what to link, in this order
#   GOFER_TRACEBACK_DEFINITIONS  GOFER_HAVE_LIBUNWIND=1, GOFER_HAVE_LIBDW=1
#
# gofer-config.cmake looks for the same modules under the same names (PkgConfig::GOFER_LIBUNWIND, …), because
# a static library passes them on to its users.
#
# libgcc_s comes before libunwind. libunwind.so has its own _Unwind_RaiseException and its kin; were it first in
# the search order, every exception of the program would go through them (measured: 25 µs a throw, not 2 µs).

set(GOFER_TRACEBACK_MODULES)
set(GOFER_TRACEBACK_LIBRARIES)
set(GOFER_TRACEBACK_DEFINITIONS)
if(GOFER_TRACEBACK)
  find_package(PkgConfig QUIET)
  if(NOT PKG_CONFIG_FOUND)
    message(STATUS "gofer: pkg-config not found: traces are built without libunwind and libdw")
  else()
    foreach(module IN ITEMS libunwind libdw)
      string(TOUPPER "${module}" name)
      pkg_check_modules(GOFER_${name} QUIET IMPORTED_TARGET GLOBAL ${module})
      if(GOFER_${name}_FOUND)
        message(STATUS "gofer: traces use ${module} ${GOFER_${name}_VERSION}")
        list(APPEND GOFER_TRACEBACK_MODULES ${module})
        list(APPEND GOFER_TRACEBACK_LIBRARIES PkgConfig::GOFER_${name})
        list(APPEND GOFER_TRACEBACK_DEFINITIONS GOFER_HAVE_${name}=1)
      else()
        message(STATUS "gofer: ${module} not found (Debian: ${module}-dev): traces are built without it")
      endif()
    endforeach()
    if("libunwind" IN_LIST GOFER_TRACEBACK_MODULES)
      list(PREPEND GOFER_TRACEBACK_LIBRARIES gcc_s)
    endif()
  endif()
endif()
