# gofer_preemptible(<target>): lets the scheduler pause a thread at the beginning of every function of the target.
# For C and C++ with GCC; docs/PREEMPTION.md has the costs and the limits.
#
# This file is installed beside gofer-config.cmake, and used from the source tree by add_subdirectory. The spec file
# lies in the same folder either way.
include_guard(GLOBAL)

define_property(GLOBAL PROPERTY GOFER_PREEMPTIBLE_SPECS
  BRIEF_DOCS "The spec file that gofer_preemptible() compiles with")
set_property(GLOBAL PROPERTY GOFER_PREEMPTIBLE_SPECS "${CMAKE_CURRENT_LIST_DIR}/gofer-preemptible.specs")

function(gofer_preemptible target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "gofer_preemptible: ${target} is not a target")
  endif()
  get_target_property(type ${target} TYPE)
  if(NOT type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
    message(FATAL_ERROR "gofer_preemptible: ${target} has nothing to compile (${type})")
  endif()
  if(NOT TARGET gofer::preemptible OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    message(FATAL_ERROR "gofer_preemptible: not for ${CMAKE_SYSTEM_PROCESSOR} with pointers of "
                        "${CMAKE_SIZEOF_VOID_P} bytes")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  foreach(language IN ITEMS C CXX)
    if(language IN_LIST languages AND NOT CMAKE_${language}_COMPILER_ID STREQUAL "GNU")
      message(FATAL_ERROR "gofer_preemptible: only GCC can compile ${target} so; the ${language} compiler is "
                          "${CMAKE_${language}_COMPILER_ID} (${CMAKE_${language}_COMPILER})")
    endif()
  endforeach()

  # The link command needs the spec file too, because it compiles with -flto.
  get_property(specs GLOBAL PROPERTY GOFER_PREEMPTIBLE_SPECS)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-specs=${specs}>)
  # Not target_link_libraries: a target must use it either with keywords or without, and the user has chosen.
  set_property(TARGET ${target} APPEND PROPERTY LINK_LIBRARIES gofer::preemptible)
  set_property(TARGET ${target} APPEND PROPERTY LINK_OPTIONS -specs=${specs})
  if(type MATCHES "^(STATIC|OBJECT)_LIBRARY$")  # other targets link it
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES $<LINK_ONLY:gofer::preemptible>)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_OPTIONS -specs=${specs})
  endif()
endfunction()
