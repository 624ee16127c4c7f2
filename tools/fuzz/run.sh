#!/usr/bin/env bash
# Fuzzes the reader of traces: run.sh <seconds> [folder for the corpus]. Needs clang++ and its fuzzer runtime; without
# them it says so and ends with 77. Otherwise its status is that of the fuzzer: 0 if nothing was found.
set -u
seconds=${1:-30}
here=$(cd "$(dirname "$0")" && pwd)
WORK=$(mktemp -d)
work=$WORK
export WORK
trap 'rm -rf "$work"' EXIT
corpus=${2:-$work/corpus}
mkdir -p "$corpus"

flags=(-std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"$here/..")
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ "${flags[@]}" -x c++ - -o "$work/probe" 2>/dev/null; then
  echo "trace_fuzz: skipped: no clang++ with a fuzzer runtime (Debian: clang, libclang-rt-14-dev)"
  exit 77
fi

# Two compilers at a time. What runs a command (CLI11, a terminal) is not linked.
find "$here/../trace" -name '*.cc' ! -name '*_test.cc' ! -name 'command.cc' ! -name 'check.cc' ! -name 'progress.cc' \
  -print0 | xargs -0 -P 2 -I{} sh -c '
    clang++ "$@" -c "{}" -o "$(mktemp "$WORK/XXXXXXXX.o")" || exit 255' sh "${flags[@]}" || exit 1
clang++ "${flags[@]}" "$here/reader_fuzz.cc" "$work"/*.o -o "$work/reader_fuzz" || exit 1

cp -n "$here"/../../tests/trace/data/*.trace "$corpus"
cd "$corpus" || exit 1
# With one seed, a run on another machine tries the same inputs, as many of them as it gets to.
"$work/reader_fuzz" -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="${TMPDIR:-/tmp}/trace_fuzz-" -verbosity=1 "$corpus"
