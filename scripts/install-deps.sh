#!/usr/bin/env bash
# Installs the packages that a make target needs and that are missing: install-deps.sh [build|test|clang|bench|tidy|format|web]…
#
# The script probes for each need (a command, a header) and does not ask a package database, so tools from elsewhere
# count. It installs packages only as root on a system with apt-get, and not if GOFER_NO_INSTALL is set. Otherwise it
# names them. For a missing optional package it prints a warning; for a missing required one it ends with status 1.
set -u

missing=()           # required and not found
missing_optional=()  # the build works without them, with fewer features

need() {  # need <package> <probe…>
  local package=$1; shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
want() {
  local package=$1; shift
  "$@" >/dev/null 2>&1 || missing_optional+=("$package")
}
has_command() { command -v "$1"; }
has_header() { echo "#include <$1>" | g++ -E -x c++ -; }
has_library() { env LD_PRELOAD="$1" true 2>&1 | { ! grep -q "$1"; }; }  # ld.so names what it does not find
has_chromium() { [ -x "${CHROMIUM:-}" ] || has_command chromium || has_command chromium-browser || has_command google-chrome; }
has_runtime() { ls "$(clang++ -print-resource-dir)"/lib/*/libclang_rt.tsan*; }

# The sanitizer runtime has the version of the clang that is, or would be, installed.
runtime_package() {
  local major
  major=$(clang++ -dumpversion 2>/dev/null | cut -d. -f1)
  [ -n "$major" ] || major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
  echo "libclang-rt-${major:-14}-dev"
}

probe() {
  missing=() missing_optional=()
  local group
  for group in "$@"; do
    case $group in
      build)
        need g++ has_command g++
        need cmake has_command cmake
        need ninja-build has_command ninja
        want pkg-config has_command pkg-config
        want libcli11-dev has_header CLI/CLI.hpp
        want zlib1g-dev has_header zlib.h
        want libdw-dev has_header elfutils/libdwfl.h
        want ccache has_command ccache ;;
      test)
        need libgtest-dev has_header gtest/gtest.h
        need python3 has_command python3
        need pkg-config has_command pkg-config
        want relacy-dev has_header relacy/relacy.hpp
        want spin has_command spin
        want lld has_command ld.lld
        want valgrind has_command valgrind
        want gdb has_command gdb
        want libjemalloc2 has_library libjemalloc.so.2
        want libasio-dev has_header asio.hpp
        want libpq-dev has_header postgresql/libpq-fe.h
        want libtcmalloc-minimal4 has_library libtcmalloc_minimal.so.4
        want clang-format has_command clang-format ;;
      clang)
        need clang has_command clang++
        need "$(runtime_package)" has_runtime ;;
      bench)
        need python3 has_command python3
        need golang-go has_command go ;;
      tidy) need clang-tidy has_command run-clang-tidy ;;
      format) need clang-format has_command clang-format ;;
      web)
        need libcli11-dev has_header CLI/CLI.hpp
        need zlib1g-dev has_header zlib.h
        need nodejs has_command node
        need npm has_command npm
        need chromium has_chromium ;;
      *) echo "install-deps: unknown group '$group'" >&2; exit 2 ;;
    esac
  done
}

install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q </dev/null || { sleep 5; apt-get update -q </dev/null; } \
    || echo "install-deps: apt-get update failed; trying with the package lists at hand" >&2
  probe "$@"  # perhaps only the new lists know a package's name
  if ! apt-get install -q -y --no-install-recommends \
      "${missing[@]}" "${missing_optional[@]}" </dev/null && [ ${#missing[@]} -gt 0 ]; then
    apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
  fi
}

[ $# -gt 0 ] || set -- build test
probe "$@"
if [ $((${#missing[@]} + ${#missing_optional[@]})) -gt 0 ] && [ "$(id -u)" = 0 ] \
    && [ -z "${GOFER_NO_INSTALL:-}" ] && command -v apt-get >/dev/null; then
  echo "install-deps: installing ${missing[*]} ${missing_optional[*]}"
  install "$@"
  hash -r
  probe "$@"
fi
if [ ${#missing_optional[@]} -gt 0 ]; then
  echo "install-deps: optional packages are missing (Debian names): ${missing_optional[*]}" >&2
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "install-deps: please install these packages (Debian names) first: ${missing[*]}" >&2
  exit 1
fi

# The packages of tools/view come from npm, in the versions of its package-lock.json.
install_npm_packages() {
  local folder
  folder=$(dirname "$0")/../tools/view
  cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed" && return
  if [ -n "${GOFER_NO_INSTALL:-}" ] || ! npm ci --prefix "$folder" --ignore-scripts </dev/null; then
    echo "install-deps: the packages of tools/view are missing: npm ci in that folder must succeed first" >&2
    exit 1
  fi
  cp "$folder/package-lock.json" "$folder/node_modules/.installed"
}
case " $* " in *" web "*) install_npm_packages ;; esac
