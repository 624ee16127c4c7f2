# gofer_add_run(<name> <executable target> <labels> [<variable=value>…]): one ctest test.
#
# Label "quick" marks one run of each test, which is what CI uses under the sanitizers; "full" marks the rest.
#
# gofer_add_stress(<name> <executable target> [<variable=value>…]): a test that only `ctest -C stress` runs, for as
# long as GOFER_STRESS_SECONDS says.

if(GOFER_SANITIZE)
  set(gofer_test_timeout 600)
else()
  set(gofer_test_timeout 300)
endif()

# TSan's address-space layout does not work with strongly randomised mappings: run without randomisation if possible.
set(gofer_test_launcher)
if(GOFER_SANITIZE STREQUAL "thread")
  find_program(GOFER_SETARCH setarch)
  mark_as_advanced(GOFER_SETARCH)
  if(GOFER_SETARCH)
    execute_process(COMMAND "${GOFER_SETARCH}" -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    if(result EQUAL 0)
      set(gofer_test_launcher "${GOFER_SETARCH}" -R)
    endif()
  endif()
endif()

function(gofer_add_run name target labels)
  add_test(NAME ${name} COMMAND ${gofer_test_launcher} $<TARGET_FILE:${target}>)
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${gofer_test_timeout}
    LABELS "${labels}"
    PROCESSORS 2  # tests of a scheduler disturb each other; model checks may run side by side
    ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1;${ARGN}")
endfunction()

function(gofer_add_stress name target)
  add_test(NAME ${name} COMMAND ${gofer_test_launcher} $<TARGET_FILE:${target}> CONFIGURATIONS stress)
  set_tests_properties(${name} PROPERTIES TIMEOUT 7200 LABELS stress PROCESSORS 2 ENVIRONMENT "${ARGN}")
endfunction()
