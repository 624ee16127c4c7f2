#!/usr/bin/env bash
# run.sh <name>: one test of the installed package; CMakeLists.txt beside this file lists them and sets the
# environment. "prefix" installs into an empty folder and moves it, so that whatever remembers the first place breaks.
set -euo pipefail

here=$GOFER_SOURCE/tests/consumer
prefix=$GOFER_WORK/prefix
folder=$GOFER_WORK/$1

build_with_cmake() {  # build_with_cmake <project> <options…>
  local project=$1; shift
  "$GOFER_CMAKE" -G Ninja -S "$here/$project" -B "$folder" "$@"
  "$GOFER_CMAKE" --build "$folder" --target consumer
  "$folder/consumer"
}

# Its own hook in front of libgcc's, and the comparison in a function of the program.
is_preemptible() {
  nm "$1" | grep ' t __morestack$' && objdump -d --disassemble=main "$1" | grep '%fs:0x70,%rsp'
}
is_shared() { readelf -d "$1" | grep 'NEEDED.*libgofer\.so\.0'; }
is_static() { if is_shared "$1"; then return 1; fi; }

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
export PKG_CONFIG_PATH=$prefix/$GOFER_LIBDIR/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

case $1 in
  prefix)
    rm -rf "$GOFER_WORK/staged"
    "$GOFER_CMAKE" --install "$GOFER_BUILD" --prefix "$GOFER_WORK/staged"
    rm -rf "$prefix"
    mv "$GOFER_WORK/staged" "$prefix"
    if grep -rIl "$GOFER_SOURCE" "$prefix"; then
      echo "the files above name the source tree" >&2
      exit 1
    fi ;;
  find_package.static)
    build_with_cmake find_package -DCMAKE_PREFIX_PATH="$prefix"
    is_static "$folder/consumer" ;;
  find_package.shared)
    build_with_cmake find_package -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=ON
    is_shared "$folder/consumer" ;;
  pkg_config.static)
    libs=$(pkg-config --static --libs gofer)
    # shellcheck disable=SC2046,SC2086
    "$CXX" -std=c++20 $(pkg-config --cflags gofer) "$here/consumer.cc" -o consumer \
      ${libs/-lgofer/-l:libgofer.a}
    is_static consumer
    ./consumer ;;
  pkg_config.shared)
    # shellcheck disable=SC2046
    "$CXX" -std=c++20 $(pkg-config --cflags gofer) "$here/consumer.cc" -o consumer \
      $(pkg-config --libs gofer)
    is_shared consumer
    LD_LIBRARY_PATH=$prefix/$GOFER_LIBDIR ./consumer ;;
  readme)
    python3 "$here/readme.py" extract "$GOFER_SOURCE/README.md" .
    libs=$(pkg-config --static --libs gofer)
    for number in 1 2 3 4; do
      # shellcheck disable=SC2046,SC2086
      "$CXX" -std=c++20 -O2 -Wall -Wextra -Werror $(pkg-config --cflags gofer) "example$number.cc" \
        -o "example$number" ${libs/-lgofer/-l:libgofer.a}
    done
    ./example1 | diff - <(echo "fib(25) = 75025")
    python3 "$here/readme.py" squares ./example2
    python3 "$here/readme.py" serve ./example3
    rm -f app.trace
    ./example4
    grep -q "^go 1.23 trace" app.trace ;;
  hardening)
    # The stack protector and _FORTIFY_SOURCE, which call libc; full RELRO; stays loaded, because threads run in it; no
    # symbols but Gofer's and those that it stands in front of; no claim to support shadow stacks.
    library=$prefix/$GOFER_LIBDIR/libgofer.so
    nm -D --undefined-only "$library" | grep -w __stack_chk_fail
    nm -D --undefined-only "$library" | grep -E '__[a-z]+_chk(@|$)'
    readelf -lW "$library" | grep GNU_RELRO
    readelf -d "$library" | grep BIND_NOW
    readelf -d "$library" | grep NODELETE
    if nm -D --defined-only "$library" | awk '{print $3}' |
        grep -vE '^(_ZNK?5gofer|_ZT[ISV]N5gofer|gofer_|pthread_sigmask$|sigprocmask$|sigaltstack$)'; then
      echo "the symbols above are exported" >&2
      exit 1
    fi
    if readelf -n "$library" | grep -E 'SHSTK|IBT'; then exit 1; fi ;;
  sanitizer_mismatch)
    # The program has a sanitizer, the installed library has none.
    libs=$(pkg-config --static --libs gofer)
    # shellcheck disable=SC2046,SC2086
    "$CXX" -std=c++20 -fsanitize=address $(pkg-config --cflags gofer) "$here/mismatch.cc" -o consumer \
      ${libs/-lgofer/-l:libgofer.a}
    ./consumer 2>&1 | tee output
    grep 'DGOFER_SANITIZE=address' output ;;
  add_subdirectory)
    build_with_cmake add_subdirectory -DGOFER_SOURCE="$GOFER_SOURCE" -DCMAKE_ASM_COMPILER="$ASM"
    is_static "$folder/consumer"
    build_with_cmake add_subdirectory -DBUILD_SHARED_LIBS=ON
    is_shared "$folder/consumer" ;;
  libcxx)
    # std::stop_token came with libc++ 18, as an experiment, and was complete with 20.
    libcxx="-stdlib=libc++ -fexperimental-library"
    for clang in clang++ clang++-2{2,1,0} clang++-1{9,8} ""; do
      # shellcheck disable=SC2086
      if command -v "$clang" && echo '#include <stop_token>
          std::stop_token token;' | "$clang" -std=c++20 $libcxx -fsyntax-only -x c++ -; then
        break
      fi
    done
    if [ -z "$clang" ]; then
      echo "skipped: no clang++ with a libc++ that has std::stop_token"
      exit 0
    fi
    CXX=$clang build_with_cmake libcxx -DGOFER_SOURCE="$GOFER_SOURCE" -DCMAKE_ASM_COMPILER="$ASM" \
      -DCMAKE_CXX_FLAGS="$libcxx" ;;
  preemptible.static)
    build_with_cmake preemptible -DCMAKE_PREFIX_PATH="$prefix"
    is_preemptible "$folder/consumer"
    "$folder/consumer" | grep 'in the runtime' ;;
  preemptible.shared)
    build_with_cmake preemptible -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=ON
    is_preemptible "$folder/consumer"
    "$folder/consumer" | grep 'in the runtime' ;;
  preemptible.lto)
    build_with_cmake preemptible -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
    is_preemptible "$folder/consumer" ;;
  preemptible.add_subdirectory)
    build_with_cmake preemptible -DGOFER_SOURCE="$GOFER_SOURCE" -DCMAKE_ASM_COMPILER="$ASM"
    is_preemptible "$folder/consumer" ;;
  preemptible.pkg_config)
    # shellcheck disable=SC2046
    "$CXX" -std=c++20 "$here/preemptible.cc" $(pkg-config --cflags --libs gofer-preemptible) -o consumer
    is_preemptible consumer
    LD_LIBRARY_PATH=$prefix/$GOFER_LIBDIR ./consumer | grep 'in the runtime' ;;
  preemptible.clang)
    if ! command -v clang++; then
      echo "skipped: no clang++"
      exit 0
    fi
    if CXX=clang++ build_with_cmake preemptible -DCMAKE_PREFIX_PATH="$prefix" 2>&1 | tee output; then
      echo "clang++ was accepted" >&2
      exit 1
    fi
    tr -s ' \n' ' ' <output | grep 'only GCC can compile consumer so' ;;
  *)
    echo "run.sh: unknown test '$1'" >&2
    exit 2 ;;
esac
