#!/usr/bin/env bash
# valgrind_leaks.sh <valgrind> <program>: fails on an error, a lost block, or a leak check that reads more than 256 MB:
# the stacks of threads, of which there may be ten or so, count; those reserved for goroutines would be 500 MB more.
set -euo pipefail
most=256000000

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$1" -v --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 --log-file="$log" "$2" ||
  { cat "$log"; exit 1; }
checked=$(sed -n 's/.*Checked \([0-9,]*\) bytes.*/\1/p' "$log" | tr -d ,)
echo "the leak check read $checked bytes"
[ -n "$checked" ] && [ "$checked" -le "$most" ]
