# The script for gdb: tools/gdb/*.py, joined in this order, so that it can be loaded as one piece.
#   GOFER_GDB_SCRIPT      the joined file, named so that gdb finds it beside libgofer.so; the target is gofer_gdb_script
#   GOFER_GDB_SCRIPT_DIR  where it is installed. For packages: share/gdb/auto-load/<the path of the library>, from where gdb
#                         loads scripts without being told to trust them
set(GOFER_GDB_SCRIPT_DIR "" CACHE STRING "Where the script for gdb is installed; empty: beside libgofer.so")
set(GOFER_GDB_SCRIPT "${PROJECT_BINARY_DIR}/lib/libgofer.so.${PROJECT_VERSION}-gdb.py")

set(gofer_gdb_pieces)
foreach(piece IN ITEMS tables goroutines stacks commands printers save_core)
  list(APPEND gofer_gdb_pieces "${PROJECT_SOURCE_DIR}/tools/gdb/${piece}.py")
endforeach()
add_custom_command(OUTPUT "${GOFER_GDB_SCRIPT}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/lib"
  COMMAND "${CMAKE_COMMAND}" -E cat ${gofer_gdb_pieces} > "${GOFER_GDB_SCRIPT}"
  DEPENDS ${gofer_gdb_pieces} COMMENT "Joining the script for gdb" VERBATIM)
add_custom_target(gofer_gdb_script DEPENDS "${GOFER_GDB_SCRIPT}")
