#!/usr/bin/env bash
# Fuzzes the reader of traces: run.sh [option of libFuzzer]…
#   run.sh                            for 30 s from a random seed
#   run.sh -max_total_time=3600       for an hour
#   CORPUS=folder run.sh …            begins with the inputs in folder, and keeps new ones there
#   run.sh -runs=10000 -seed=1        the same inputs in every run, as the test has it
# Needs clang++ and its fuzzer runtime; without them it says so and ends with 77. Otherwise its status is that of the
# fuzzer: 0 if nothing was found.
set -u
[ $# -gt 0 ] || set -- -max_total_time=30
here=$(cd "$(dirname "$0")" && pwd)
WORK=$(mktemp -d)
work=$WORK
export WORK
trap 'rm -rf "$work"' EXIT
corpus=${CORPUS:-$work/corpus}
mkdir -p "$corpus"

flags=(-std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"$here/..")
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ "${flags[@]}" -x c++ - -o "$work/probe" 2>/dev/null; then
  echo "trace_fuzz: skipped: no clang++ with a fuzzer runtime (Debian: clang, libclang-rt-14-dev)"
  exit 77
fi

# Two compilers at a time. What runs a command (CLI11, a terminal) and what writes the page (zlib) is not linked. The
# objects are linked in the order of their names, for the same program in each run.
find "$here/../trace" -name '*.cc' ! -name '*_test.cc' ! -path '*/testing/*' \
  ! -name command.cc ! -name check.cc ! -name progress.cc ! -name page.cc -print0 | xargs -0 -P 2 -I{} sh -c '
    clang++ "$@" -c "{}" -o "$WORK/$(echo "{}" | sed "s|.*/trace/||; s|/|-|g").o" || exit 255' sh "${flags[@]}" || exit 1
clang++ "${flags[@]}" "$here/reader_fuzz.cc" "$work"/*.o -o "$work/reader_fuzz" || exit 1

cp -n "$here"/../../tests/trace/data/*.trace "$corpus"
cd "$corpus" || exit 1
# libFuzzer compares addresses too: where the system allows it, each run has the same ones, so that a seed stands for
# one sequence of inputs.
same_addresses=()
setarch -R true 2>/dev/null && same_addresses=(setarch -R)
"${same_addresses[@]}" "$work/reader_fuzz" -max_len=65536 -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="${TMPDIR:-/tmp}/trace_fuzz-" "$@" "$corpus"
