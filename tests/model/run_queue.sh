#!/usr/bin/env bash
# Checks src/runtime/run_queue.h itself under Relacy.  See README.md and run_queue.cc.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cxx=${CXX:-g++}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gofer-model.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

command -v "$cxx" >/dev/null || { echo "SKIP: no C++ compiler ($cxx)"; exit 77; }
echo '#include <relacy/relacy.hpp>' >"$scratch/probe.cc"
"$cxx" -std=c++20 -w -fsyntax-only "$scratch/probe.cc" 2>/dev/null ||
  { echo "SKIP: Relacy is not installed (Debian package: relacy-dev), or $cxx cannot compile it"; exit 77; }

build() {  # build <name> <flags>
  "$cxx" -std=c++20 -Wall -Wextra -Werror -DGOFER_RELACY -I"$here/../../src" -I"$here" "${@:2}" "$here/run_queue.cc" \
    -o "$scratch/$1" || { echo "FAIL: run_queue.cc does not build"; exit 1; }
}

bad=0
build right -O2
mode=quick
[ "${GOFER_MODEL_LONG:-0}" = 1 ] && mode=long
"$scratch/right" $mode || bad=1

expect_error() {  # expect_error <what> <program> [argument]
  if "${@:2}" >"$scratch/out" 2>&1; then
    echo "WRONG, must be an error: $1"
    bad=1
  else
    echo "ok     error: $1: $(grep -m1 -oE 'DATA RACE|USER ASSERT FAILED|LIVELOCK|DEADLOCK' "$scratch/out")"
  fi
}
# Not a fault of the queue: a plain put has no store-load fence.  Callers must know; see README.md.
expect_error "sleep, put at the tail" "$scratch/right" tail
for weaken in "1:acquire is relaxed" "2:release is relaxed" "4:exchange is not atomic" "8:compare_exchange is not atomic"; do
  build wrong -O1 -DGOFER_RELACY_WEAKEN=${weaken%%:*}
  expect_error "${weaken#*:}" "$scratch/wrong"
done
exit $bad
