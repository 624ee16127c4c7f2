# gofer_add_run(<name> <executable target> <labels> [<variable=value>…]): one ctest test.
#
# Label "quick" marks one run of each test, which is what CI uses under the sanitizers; "full" marks the rest.
#
# gofer_add_stress(<name> <executable target> [<variable=value>…]): a test that only `ctest -C stress` runs, for as
# long as GOFER_STRESS_SECONDS says.
#
# gofer_set_costs(): the tests of this directory start in the order of how long they take, the slowest first. ctest
# remembers the times of a run, but a fresh build has none.

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

# Seconds in a run on 2 busy cores, of tests that take 5 or more. A name stands for all runs of a test; the first match counts.
set(gofer_test_costs
  thread_bound_test.p1=80 thread_bound_test.jemalloc=5 thread_bound_test.tcmalloc=5 thread_bound_test=50 denied_test=50
  trace_fuzz=45 trace_stress_test.p8=44 install.add_subdirectory=41 stack_use_test.p2=36 model.p_word=34
  trace_test.p1=33 model.run_queue=33 model.idle=28 model.gate=17 lint=17 install=14 preempt_ends_test=12
  fairness_test=11 stack_use_test=9 report_test=8 prologue_calls=8 blocking_test=7 retake_test=7 model=6
  trace_stress_test=6 net_close_test=5 stop_world_test=5 checkpoint_test=5 environment_test=5 net_trouble_test=5)

function(gofer_set_costs)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    foreach(entry IN LISTS gofer_test_costs)
      string(REGEX MATCH "^(.*)=(.*)$" entry "${entry}")
      string(FIND "${test}." "${CMAKE_MATCH_1}." at)
      if(at EQUAL 0)
        set_tests_properties(${test} PROPERTIES COST ${CMAKE_MATCH_2})
        break()
      endif()
    endforeach()
  endforeach()
endfunction()
