# GOFER_ARCH: the folder of src/arch/ for the processor that is compiled for. src/arch/arch.h lists what such a
# folder provides.
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" GOFER_ARCH)
if(GOFER_ARCH STREQUAL "amd64")
  set(GOFER_ARCH "x86_64")
elseif(GOFER_ARCH STREQUAL "arm64")
  set(GOFER_ARCH "aarch64")
endif()
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8
   OR NOT EXISTS "${PROJECT_SOURCE_DIR}/src/arch/${GOFER_ARCH}/arch_inline.h")
  file(GLOB ports RELATIVE "${PROJECT_SOURCE_DIR}/src/arch" "${PROJECT_SOURCE_DIR}/src/arch/*/arch_inline.h")
  list(TRANSFORM ports REPLACE "/.*" "")
  list(JOIN ports ", " ports)
  math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
  message(FATAL_ERROR "gofer: supported is 64-bit Linux on ${ports}, not ${bits}-bit ${CMAKE_SYSTEM_NAME} on "
                      "${CMAKE_SYSTEM_PROCESSOR}. src/arch/arch.h lists what another processor needs.")
endif()
