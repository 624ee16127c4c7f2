# Compiler settings: build type, ccache, warnings and sanitizers. Variables of the whole directory are set only
# if Gofer is the top-level project, so a parent's settings stay as they are.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
  endif()
  find_program(GOFER_CCACHE ccache)
  mark_as_advanced(GOFER_CCACHE)
  if(GOFER_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    # Without these two, ccache compiles anew whatever uses a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${GOFER_CCACHE}")
  endif()
endif()

# Options for the library, tests, benches and examples, but not for users of the library.
add_library(gofer_warnings INTERFACE)
target_compile_options(gofer_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall>
  $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
  $<$<AND:$<BOOL:${GOFER_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)

# Sanitizers apply to every object of this tree. A parent project that adds this folder gets them from
# gofer_sanitize, which the library then carries as a public requirement.
add_library(gofer_sanitize INTERFACE)
if(GOFER_SANITIZE STREQUAL "address")
  set(gofer_sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined
                           -fno-omit-frame-pointer)
  # g++ 12 warns of uninitialised variables in code that ASan's instrumentation adds.
  target_compile_options(gofer_warnings INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
elseif(GOFER_SANITIZE STREQUAL "thread")
  set(gofer_sanitize_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT GOFER_SANITIZE STREQUAL "")
  message(FATAL_ERROR "gofer: GOFER_SANITIZE is '${GOFER_SANITIZE}': use '', 'address' or 'thread'")
endif()
if(gofer_sanitize_flags)
  if(PROJECT_IS_TOP_LEVEL)
    add_compile_options(${gofer_sanitize_flags})
    add_link_options(${gofer_sanitize_flags})
  else()
    target_compile_options(gofer_sanitize INTERFACE ${gofer_sanitize_flags})
    target_link_options(gofer_sanitize INTERFACE ${gofer_sanitize_flags})
  endif()
endif()
