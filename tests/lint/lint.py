#!/usr/bin/env python3
"""Checks of the source tree that no compiler makes. Prints one line per finding; status 1 if there is any.

  - every public header compiles alone, without warnings;
  - every header is included by some file (sources are found by the build, so they cannot be forgotten);
  - no file of the library is longer than MAX_LINES;
  - no tabs and no line over MAX_COLUMNS in C++ sources, and clang-format (if installed) has nothing to change;
  - a layer of src/ includes nothing of a layer above it;
  - a source file of a room of the runtime has a header beside it;
  - the state of a goroutine, a P or an M changes in the files transitions.h only;
  - only wait/ parks goroutines, and only procs/ has the idle Ps and the count of spinning Ms;
  - only src/arch knows the processor, and only src/os, src/arch and src/debug call the kernel;
  - relative links in Markdown files lead to something, and source files that texts and comments name exist;
  - what documents say about functions agrees with the source (documents.py);
  - no text names a path that exists on one machine only.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from documents import check_documents

MAX_LINES = 600
MAX_COLUMNS = 100
SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__"}
CXX_SUFFIXES = {".h", ".cc"}

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
FENCED_CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
FILE_NAME = re.compile(r"[\w./-]+\.(?:cc|h|pml)\b")
COMMENT = re.compile(r"//.*")
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
PLACEHOLDERS = {"x.h", "x.cc", "x_test.cc", "y.cc", "z.cc", "app.cc", "file.cc"}
# Folders of src/, the lowest layer first.
LAYERS = [{"arch"}, {"os"}, {"debug"}, {"runtime"}, {"sync"}, {"io"}, {"net"}]
# An asm statement with nothing in it is the compiler's business, not the processor's.
MACHINE_CODE = re.compile(
    r"""\basm\s*(?:volatile\s*|goto\s*|inline\s*)*\((?!\s*"")|\b__asm__\b"""
    r"""|\b__(?:x86_64|i386|amd64|aarch64|arm|riscv|powerpc64|s390x)(?:__)?\b|\bREG_[A-Z]|\bgregs\b|\buc_mcontext\b"""
    r"""|\bucontext_t\b|<ucontext\.h>|\b_mm\d*_\w|\b__builtin_(?:ia32|arm|aarch64)_|<\w*intrin\.h>|<arm_neon\.h>""")
MACHINE_CODE_ALLOWED = {"src/runtime/process/one_copy.cc"}  # directives of the assembler, no instructions
PUBLIC_CALLS_ONLY = {"api.cc", "goexit.cc", "blocking.cc", "marks.cc",
                     "flight_recorder.cc", "collect.cc", "prometheus.cc", "json.cc"}  # declared in include/gofer
# What changes the state of a goroutine, a P or an M.
TRANSITION = re.compile(r"\b(?:set_status|try_status|check_transition)\(|->status\.(?:store|exchange|compare_exchange)"
                        r"|->(?:on_idle_list|spinning|p_word) = |->(?:blocking_at|waits_for_p|next_p)\.store\("
                        r"|\b(?:\w*_)?m(?:\(\))?->p = |->word\.(?:store|exchange|compare_exchange)")
# What only the files of a room name, and the exceptions.
OWN_OF_ROOM = [
    (re.compile(r"\bpark_goroutine\("), "wait", {"src/runtime/sched/switch.h", "src/runtime/sched/switch.cc"}),
    (re.compile(r"\bidle_ps\b"), "procs", {"src/runtime/sched/verify.cc"}),
    (re.compile(r"\b(?:need_spinning|spinning_ms|idle_p_count)\.(?:store|exchange|compare_exchange|fetch_)"), "procs", {}),
]
# What reports do must work in a broken process, so src/debug calls the kernel itself. src/check is no part of the library.
KERNEL_FOLDERS = {"arch", "os", "debug", "check"}
KERNEL_CALL = re.compile(
    r"<(?:sys/(?:socket|mman|stat|epoll|eventfd|timerfd|signalfd|inotify|syscall|ioctl|resource|prctl|wait|sendfile)"
    r"|unistd|fcntl|poll|pthread|netdb|net/if|sched|time|dirent|threads|linux/\w+)\.h>"
    # Names that nothing of ours has...
    r"|(?<![\w.>:])(?:::)?(?:socket|socketpair|connect|accept4|recvfrom|recvm?msg|sendto|sendm?msg|[gs]etsockopt"
    r"|getsockname|getpeername|getaddrinfo|if_indextoname|preadv?2?|pwritev?2?|openat|fcntl|ioctl|fstat|unlink|dup[23]"
    r"|pipe2?|ppoll|epoll_\w+|eventfd|timerfd_\w+|signalfd|clock_\w+|gettimeofday|nanosleep|usleep|alarm|sigaction"
    r"|signal(?=\s*\(\s*SIG)|sigaltstack|sigprocmask|sigpending|sigtimedwait|sigwait\w*|raise|t?g?kill|pthread_\w+"
    r"|sched_(?:yield|getcpu|[gs]et\w+)|prctl|sysconf|getpid|gettid|fork|_exit|mmap|munmap|mprotect|madvise"
    r"|process_madvise|syscall)\s*\(|\braw_syscall\b"
    # ...and names that members and functions of ours have, too.
    r"|(?<![\w>:])::(?:readv?|writev?|close|open|bind|listen|accept|send|recv|shutdown|poll|select|stat|dup|pipe)\s*\(")
KERNEL_CALLS_ALLOWED = {
    "src/runtime/base/sanitizer.h",  # TSan needs a call of libc there
    "src/runtime/threads/thread_calls.cc",  # defines what it stands in front of
}
MACHINE_PATH = re.compile(r"(?<![\w.~/})-])/(?:work|root|home/\w+)(?![\w-])")


def tree_files(source):
    """All files that git would track; without git, all but build output."""
    git = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, text=True) if shutil.which("git") else None
    if git and git.returncode == 0 and git.stdout:
        names = [n for n in git.stdout.split("\0") if n]
    else:
        names = []
        for folder, subfolders, files in os.walk(source):
            subfolders[:] = [d for d in subfolders if d not in SKIPPED_FOLDERS]
            names += [os.path.relpath(os.path.join(folder, f), source) for f in files]
    return sorted(Path(n) for n in names if (source / n).is_file())


def read_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None  # not text


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_headers_alone(source, files, cxx):
    """Compiles a file with nothing in it but the header, twice, so that a missing include guard shows."""
    def compile_one(path):
        name = path.relative_to("include")
        result = subprocess.run(
            [cxx, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{source}/include", "-x", "c++", "-"],
            input=f"#include <{name}>\n#include <{name}>\n", capture_output=True, text=True)
        return [] if result.returncode == 0 else [f"{path}: does not compile alone:\n{result.stderr}"]

    headers = [p for p in files if p.parts[0] == "include" and p.suffix == ".h"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [f for found in pool.map(compile_one, headers) for f in found]


def check_headers_used(texts):
    """A header counts as used if another file includes a path that ends in its name, folder by folder."""
    included = {}
    for path, text in texts.items():
        for name in INCLUDE.findall(text):
            included.setdefault(Path(name).name, []).append((path, Path(name).parts))
    for path in texts:
        if path.suffix != ".h" or path.parts[0] not in ("include", "src", "tests", "tools"):
            continue
        if not any(user != path and path.parts[-len(parts):] == parts
                   for user, parts in included.get(path.name, [])):
            yield f"{path}: no file includes it"


def check_text(texts):
    for path, text in texts.items():
        if path.parts[0] in ("src", "include") and text.count("\n") > MAX_LINES:
            yield f"{path}: {text.count(chr(10))} lines; the limit is {MAX_LINES}"
        if path.suffix in CXX_SUFFIXES and "\t" in text:
            yield f"{path}:{line_of(text, text.index(chr(9)))}: tab character"
        if path.suffix in CXX_SUFFIXES:
            for number, line in enumerate(text.split("\n"), 1):
                if len(line) > MAX_COLUMNS and "://" not in line:
                    yield f"{path}:{number}: {len(line)} columns; the limit is {MAX_COLUMNS}"
        for match in MACHINE_PATH.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: path of one machine: {match.group()}"


def check_links(source, texts):
    for path, text in texts.items():
        if path.suffix != ".md":
            continue
        blank = lambda match: re.sub(r"[^\n]", " ", match.group())  # keeps the line numbers
        prose = INLINE_CODE.sub(blank, FENCED_CODE.sub(blank, text))
        for match in MARKDOWN_LINK.finditer(prose):
            target = (match.group(1) or match.group(2)).split("#")[0]
            if not target or re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
                continue
            if not (source / path.parent / target).exists():
                yield f"{path}:{line_of(text, match.start())}: link to nowhere: {target}"


def layer_of(folder):
    return next((i for i, layer in enumerate(LAYERS) if folder in layer), None)


def check_layers(texts):
    for path, text in texts.items():
        if path.parts[0] != "src" or len(path.parts) < 3 or path.name.endswith("_test.cc"):
            continue
        own = layer_of(path.parts[1])
        for match in INCLUDE.finditer(text):
            folder = Path(match.group(1)).parts[0]
            above = layer_of(folder)
            if own is None or above is None or above <= own or Path("src", match.group(1)) not in texts:
                continue
            yield f"{path}:{line_of(text, match.start())}: src/{path.parts[1]} is below src/{folder}"


def check_rooms(texts):
    """What a source file offers is declared beside it, so that the file names lead to it."""
    for path in texts:
        if path.parts[:2] != ("src", "runtime") or path.suffix != ".cc" or path.name.endswith("_test.cc"):
            continue
        if path.with_suffix(".h") not in texts and path.name not in PUBLIC_CALLS_ONLY:
            yield f"{path}: no header of the same name beside it"


def check_transitions(texts):
    for path, text in texts.items():
        if path.parts[:2] != ("src", "runtime") or path.suffix not in CXX_SUFFIXES:
            continue
        if path.name == "transitions.h" or path.name.startswith("status.") or path.name.endswith("_test.cc"):
            continue
        for match in TRANSITION.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: a change of state outside of transitions.h: {match.group()}"


def check_own_of_rooms(texts):
    for path, text in texts.items():
        if path.parts[:1] != ("src",) or not is_library_code(path):
            continue
        for pattern, room, exceptions in OWN_OF_ROOM:
            if path.parts[1:3] == ("runtime", room) or path.as_posix() in exceptions:
                continue
            for match in pattern.finditer(code := without_comments(text)):
                yield f"{path}:{line_of(code, match.start())}: for src/runtime/{room} alone: {match.group()}"


def is_library_code(path):  # but for unit tests
    return path.parts[0] == "src" and path.suffix in CXX_SUFFIXES and not path.name.endswith("_test.cc")


def without_comments(text):
    return COMMENT.sub("", text)


def check_machine_code(texts):
    for path, text in texts.items():
        if not is_library_code(path) or path.parts[1] == "arch" or path.as_posix() in MACHINE_CODE_ALLOWED:
            continue
        for match in MACHINE_CODE.finditer(code := without_comments(text)):
            yield f"{path}:{line_of(code, match.start())}: belongs behind src/arch/arch.h: {match.group().strip()}"


def check_kernel_calls(texts):
    for path, text in texts.items():
        if not is_library_code(path) or path.parts[1] in KERNEL_FOLDERS or path.as_posix() in KERNEL_CALLS_ALLOWED:
            continue
        for match in KERNEL_CALL.finditer(code := STRING.sub('""', without_comments(text))):
            yield f"{path}:{line_of(code, match.start())}: belongs behind src/os: {match.group().strip()}"


def check_file_names(texts):
    """A name with a folder must be the end of some file's path, one without it the name of some file."""
    paths = ["/" + p.as_posix() for p in texts]
    names = {p.name for p in texts}
    for path, text in texts.items():
        if path.suffix == ".md":
            places = INLINE_CODE.finditer(FENCED_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text))
        elif path.suffix in CXX_SUFFIXES:
            places = COMMENT.finditer(text)
        else:
            continue
        for place in places:
            for name in FILE_NAME.findall(place.group()):
                last = name.rsplit("/", 1)[-1]
                known = last in names if last == name else any(p.endswith("/" + name.lstrip("./")) for p in paths)
                if last not in PLACEHOLDERS and not known:
                    yield f"{path}:{line_of(text, place.start())}: names a file that does not exist: {name}"


def check_format(source, files):
    sources = [str(p) for p in files if p.suffix in CXX_SUFFIXES]
    if not sources or not shutil.which("clang-format"):
        return []
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", *sources],
                            cwd=source, capture_output=True, text=True)
    return [line for line in result.stderr.splitlines() if " error: " in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--cxx", default="c++")
    args = parser.parse_args()
    source = args.source.resolve()

    files = tree_files(source)
    texts = {p: t for p in files if (t := read_text(source / p)) is not None}
    findings = [*check_text(texts), *check_headers_used(texts), *check_links(source, texts),
                *check_layers(texts), *check_rooms(texts), *check_machine_code(texts), *check_kernel_calls(texts),
                *check_transitions(texts), *check_own_of_rooms(texts), *check_file_names(texts), *check_documents(texts),
                *check_format(source, files), *check_headers_alone(source, files, args.cxx)]
    for finding in findings:
        print(finding)
    if not shutil.which("clang-format"):
        print("lint: clang-format not found: formatting was not checked")
    print(f"lint: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
