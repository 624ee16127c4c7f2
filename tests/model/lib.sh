# Driver for the Promela models; sourced by the scripts beside it.
#
#   holds "what" flags...    the model, built with these -D flags, must be searched completely without an error
#   fails "what" flags...    the model, made wrong by these flags, must show an error: the model has teeth
#   holds_ltl / fails_ltl    the same for the LTL formula of a model, under weak fairness
#
# A search that ends early (depth or memory limit) counts as a failure of the run: only exhaustive results are results.
# Generated files go to a scratch directory.  Exit code 77 means skipped (ctest's SKIP_RETURN_CODE).
# GOFER_MODEL_LONG=1 adds the searches marked `long`; they need minutes to hours and up to 16 GB.

set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gofer-model.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
bad=0
depth=3000000
hash=24
memory_mb=3500

need() {
  command -v "$1" >/dev/null || { echo "SKIP: $1 is not installed (Debian package: $2)"; exit 77; }
}

long() { [ "${GOFER_MODEL_LONG:-0}" = 1 ]; }

# build <compile flags> -- <spin flags>
build() {
  local cflags=()
  while [ "$1" != -- ]; do cflags+=("$1"); shift; done
  shift
  rm -rf "$scratch/pan" && mkdir "$scratch/pan"
  (cd "$scratch/pan" && spin -a "$@" "$here/$model" >spin.out 2>&1 &&
    gcc -w "-DMEMLIM=$memory_mb" -DVECTORSZ=512 "${cflags[@]}" -o pan pan.c) && return
  cat "$scratch/pan/spin.out"
  echo "FAIL: $model does not build with $*"
  exit 1
}

# verdict <holds|fails> <what>, reads pan's report
verdict() {
  local out=$scratch/pan/out states errors
  states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$out")
  errors=$(sed -nE 's/.*errors: ([0-9]+)$/\1/p' "$out")
  local complete=yes
  grep -qE 'max search depth too small|Search not completed|out of memory' "$out" && complete=no
  if [ "$1" = holds ] && [ "${errors:-x}" = 0 ] && [ $complete = yes ]; then
    printf 'ok    holds  %-62s %10s states\n' "$2" "$states"
  elif [ "$1" = fails ] && [ "${errors:-0}" -gt 0 ]; then
    printf 'ok    fails  %-62s %s\n' "$2" "$(sed -nE 's/^pan:1: ([a-z ]*[a-z]).*/\1/p' "$out" | head -1)"
  else
    printf 'WRONG, must be "%s": %s (errors: %s, complete: %s)\n' "$1" "$2" "${errors:-?}" $complete
    tail -n 5 "$out" "$scratch/pan/err"
    bad=1
  fi
}

search() { (cd "$scratch/pan" && ./pan "-m$depth" "-w$hash" "$@" >out 2>err); }

# Expected failures are found in a moment: no optimisation, the compiler would take longer than the search.
# The collapse compression halves the memory and costs a third of the speed: only for the long searches.
squeeze() { long && echo -DCOLLAPSE; }
holds() { local what=$1; shift; build -O1 -DSAFETY $(squeeze) -- "$@"; search; verdict holds "$what"; }
fails() { local what=$1; shift; build -O0 -DSAFETY -- "$@"; search; verdict fails "$what"; }
holds_ltl() { local what=$1; shift; build -O1 -DNFAIR=3 $(squeeze) -- "$@"; search -a -f; verdict holds "$what"; }
fails_ltl() { local what=$1; shift; build -O0 -DNFAIR=3 -- "$@"; search -a -f; verdict fails "$what"; }

need spin spin
need gcc gcc
