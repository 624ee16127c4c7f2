#!/usr/bin/env bash
# Checks src/runtime/sched/run_queue.h itself under Relacy.  See README.md and run_queue.cc.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cxx=${CXX:-g++}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gofer-model.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

command -v "$cxx" >/dev/null || { echo "SKIP: no C++ compiler ($cxx)"; exit 77; }
echo '#include <relacy/relacy.hpp>' >"$scratch/probe.cc"
"$cxx" -std=c++20 -w -fsyntax-only "$scratch/probe.cc" 2>/dev/null ||
  { echo "SKIP: Relacy is not installed (Debian package: relacy-dev), or $cxx cannot compile it"; exit 77; }

# Relacy takes the compiler long; -O1 is the best sum of compiling and running.
"$cxx" -std=c++20 -O1 -Wall -Wextra -Werror -DGOFER_RELACY -I"$here/../../src" -I"$here" "$here/run_queue.cc" \
  -o "$scratch/run_queue" || { echo "FAIL: run_queue.cc does not build"; exit 1; }

bad=0
mode=quick
[ "${GOFER_MODEL_LONG:-0}" = 1 ] && mode=long
"$scratch/run_queue" $mode || bad=1

expect_error() {  # expect_error <argument> <what>
  if "$scratch/run_queue" "$1" >"$scratch/out" 2>&1; then
    echo "WRONG, must be an error: $2"
    bad=1
  else
    echo "ok     error: $2: $(grep -m1 -oE 'DATA RACE|USER ASSERT FAILED|LIVELOCK|DEADLOCK' "$scratch/out")"
  fi
}
# Not a fault of the queue: a plain put has no store-load fence.  Callers must know; see README.md.
expect_error tail "sleep, put at the tail"
expect_error acquire "acquire is relaxed"
expect_error release "release is relaxed"
expect_error exchange "exchange is a load and a store"
expect_error compare_exchange "compare_exchange is a load, a comparison and a store"
exit $bad
