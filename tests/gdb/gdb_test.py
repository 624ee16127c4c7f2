#!/usr/bin/env python3
"""gdb with the script of tools/gdb: on live processes, on core files, with the library linked in every way.

  gdb_test.py --programs DIR --library libgofer.so --source DIR [names of tests...]

Ends with status 77 if there is no gdb, or if processes may not be traced here.
"""

import argparse
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKIPPED = 77
GDB_LIMIT_S = 200
args = None


class Child:
    """One of tests/programs, until the end of the block. It has printed "ready"."""

    def __init__(self, *arguments, program="gdb_child", environment=None, dense=False, libraries=None):
        self.path = program if os.sep in str(program) else args.programs / program
        env = {**os.environ, "GOMAXPROCS": "2", **(environment or {})}
        if libraries:
            env["LD_LIBRARY_PATH"] = str(libraries)

        def limit_address_space():  # then no address space is spent on distance between stacks: all are side by side
            resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

        self.process = subprocess.Popen([self.path, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env=env, text=True, preexec_fn=limit_address_space if dense else None)
        if self.process.stdout.readline() != "ready\n":
            self.process.kill()
            raise RuntimeError("the child has not become ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def gdb(self, *commands, **options):
        return gdb(["-p", str(self.process.pid)], *commands, **options)


def gdb(target, *commands, libraries=None):
    """What gdb prints for these commands. The script is loaded as gdb finds it by itself."""
    argv = ["gdb", "-nx", "-batch", "-iex", "set auto-load safe-path /", "-iex", "set debuginfod enabled off",
            "-iex", "set width 0", *map(str, target)]
    for command in commands:
        argv += ["-ex", command]
    env = {**os.environ, "LC_ALL": "C"}
    if libraries:
        env["LD_LIBRARY_PATH"] = str(libraries)
    result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            timeout=GDB_LIMIT_S, env=env, errors="replace")
    return result.stdout


def lines_of(output, pattern):
    return [line for line in output.splitlines() if re.search(pattern, line)]


def numbers_of(output, pattern):
    return [int(re.search(r"goroutine (\d+)", line)[1]) for line in lines_of(output, pattern)]


@contextlib.contextmanager
def stripped_copies():
    """A program and the shared library as a release has them: no debug information, and only what the linker needs."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        library = folder / "libgofer.so.0"
        shutil.copy(args.library, library)
        subprocess.run(["strip", "--strip-all", library], check=True)
        shutil.copy(str(args.library.resolve()) + "-gdb.py", str(library) + "-gdb.py")
        program = folder / "child"
        shutil.copy(args.programs / "gdb_shared_child", program)
        subprocess.run(["strip", "--strip-debug", program], check=True)
        yield program, folder


class Listing(unittest.TestCase):
    def expect_all_states(self, out, has_lines=True):
        at = r" at gdb_child\.cc:\d+" if has_lines else ""
        space = r"\(anonymous namespace\)::"
        for pattern, count in (
                (r"goroutine 1 \[sleep\]", 1),
                (r'goroutine \d+ "reader" \[chan receive\] ' + space + "wait_for_value" + at, 3),
                (r'goroutine \d+ "locker" \[sync\.Mutex\.Lock\] ' + space + "locker" + at, 1),
                (r"goroutine \d+ \[sync\.WaitGroup\.Wait\] gofer::wait_group", 1),
                (r"goroutine \d+ \[sleep, locked to thread\]", 1),
                (r'goroutine \d+ "acceptor" \[IO wait\]', 1),
                (r'goroutine \d+ "blocked" \[syscall, M\d+, thread \d+\] ' + space + "blocks" + at, 1),
                (r'goroutine \d+ "computes" \[(?:running|preempted|runnable|syscall), M\d+, thread \d+\] ' + space
                 + "computes" + at, 3),
                (r"^13 goroutines$", 1)):
            self.assertEqual(len(lines_of(out, pattern)), count, "%s\n%s" % (pattern, out))
        if has_lines:
            self.assertEqual(len(lines_of(out, r"created by " + space + r"states" + at + " in goroutine 1")), 12, out)

    def test_shows_goroutines_in_every_state_of_a_static_program(self):
        with Child("states") as child:
            self.expect_all_states(child.gdb("info goroutines"))

    def test_shows_them_with_the_shared_library(self):
        with Child("states", program="gdb_shared_child") as child:
            self.expect_all_states(child.gdb("info goroutines"))

    def test_shows_them_in_a_release_without_debug_information(self):
        with stripped_copies() as (program, folder):
            with Child("states", program=program, libraries=folder) as child:
                self.expect_all_states(child.gdb("info goroutines", libraries=folder), has_lines=False)

    def test_prints_only_lines_with_a_text(self):
        with Child("states") as child:
            out = child.gdb("info goroutines chan receive")
        self.assertEqual(len(lines_of(out, r"^\*? +goroutine")), 3, out)
        self.assertIn("\n3 goroutines\n", out)

    def test_groups_equal_stacks(self):
        with Child("states") as child:
            out = child.gdb("info goroutines -g")
        self.assertRegex(out, r"3 goroutines \[chan receive\]: \d+, \d+, \d+\n"
                              r" +\(anonymous namespace\)::wait_for_value at gdb_child\.cc:\d+\n"
                              r" +\(anonymous namespace\)::reader at gdb_child\.cc:\d+\n")

    def test_lists_twenty_thousand_goroutines_in_seconds(self):
        n = 20_000
        with Child("crowd", str(n)) as child:
            out = child.gdb("python import time; begin = time.monotonic()", "info goroutines",
                            "python print('took', time.monotonic() - begin, 'by gdb', GoferState.stacks.by_gdb)")
        self.assertRegex(out, r"(?m)^%d goroutines \[chan receive\]: " % n)
        self.assertIn("\n%d goroutines\n" % (n + 2), out)
        took, by_gdb = re.search(r"took ([\d.]+) by gdb (\d+)", out).groups()
        self.assertLess(float(took), 30)
        self.assertLess(int(by_gdb), 20, "gdb itself unwinds some hundred stacks a second")

    def test_says_that_there_is_no_runtime(self):
        out = gdb(["-ex", "source %s" % (str(args.library.resolve()) + "-gdb.py"), "/bin/true"], "info goroutines")
        self.assertIn("no Gofer runtime is loaded", out)


class Goroutine(unittest.TestCase):
    def test_prints_the_stack_of_a_parked_goroutine(self):
        with Child("states") as child:
            listed = child.gdb("info goroutines locker")
            out = child.gdb("goroutine %d bt" % numbers_of(listed, '"locker"')[0])
        self.assertRegex(out, r'goroutine \d+ "locker" \[sync\.Mutex\.Lock\]:')
        self.assertRegex(out, r"#\d+ .*\(anonymous namespace\)::locker.*\n(#.*\n)*#\d+ .*gofer_entry")

    def test_prints_the_stacks_of_all_goroutines_to_their_first_frame(self):
        with Child("states") as child:
            out = child.gdb("goroutine all bt")
        self.assertEqual(len(lines_of(out, r"^#\d+ .*gofer_entry")), 13, out)
        for function in ("wait_for_value", "locker", "computes", "blocks"):
            self.assertTrue(lines_of(out, r"^#\d+ .*" + function), out)

    def test_selects_a_goroutine_until_another_is_selected_or_none(self):
        with Child("states") as child:
            number = numbers_of(child.gdb("info goroutines"), '"reader"')[0]
            out = child.gdb("goroutine %d" % number, "print $_goroutine()", "frame function reader", "info args",
                            "goroutine", "goroutine none", "print $_goroutine()")
        self.assertIn("$1 = %d\n" % number, out)
        self.assertRegex(out, r"tag = \d")
        self.assertEqual(len(lines_of(out, r'goroutine %d "reader" \[chan receive\]' % number)), 2, out)
        self.assertIn("$2 = 0\n", out)

    def test_leaves_registers_and_threads_as_they_are(self):
        look = ["info registers", "thread", "bt 1"]
        with Child("states") as child:
            out = child.gdb("echo <1>\\n", *look, "echo <2>\\n", "goroutine 1", "goroutine all bt 3", "info goroutines",
                            "goroutine none", "echo <3>\\n", *look, "echo <4>\\n")
        before = out.split("<1>")[1].split("<2>")[0]
        after = out.split("<3>")[1].split("<4>")[0]
        self.assertEqual(before, after)

    def test_thread_command_leaves_the_goroutine(self):
        with Child("states") as child:
            out = child.gdb("goroutine 1", "thread 1", "bt")
        self.assertFalse(lines_of(out.split("Switching to thread 1")[1], "gofer_entry"), out)

    def test_knows_the_goroutine_of_each_thread(self):
        with Child("states") as child:
            out = child.gdb("info goroutines computes", "thread apply all -q print $_goroutine()")
        printed = {int(n) for n in re.findall(r"\$\d+ = (\d+)", out)}
        running = numbers_of(out, r"\[(?:running|syscall), ")
        self.assertTrue(running and printed.issuperset(running), out)

    def test_ends_with_what_is_wrong(self):
        with Child("states") as child:
            out = child.gdb("goroutine 4711 bt")
        self.assertIn("there is no goroutine 4711", out)

    def test_passes_the_signal_of_preemption_silently(self):
        with Child("states") as child:
            out = child.gdb("info signals SIGURG")
        self.assertRegex(out, r"SIGURG\s+No\s+No\s+Yes")


class Printers(unittest.TestCase):
    EXPECTED = {
        "unbuffered": r"chan: unbuffered, 3 receivers: goroutines \d+, \d+, \d+",
        "buffered": r"chan: 3 of 8 values = \{10, 20, 30\}",
        "nil": "chan: nil",
        "held": r"mutex: locked, 1 waiter: goroutine \d+",
        "read_by_two": "rw_mutex: 2 readers",
        "permits": "semaphore: 1 permit free",
        "changed": "cond: no goroutine waits",
        "group": r"wait_group: counter 2, 1 waiter: goroutine \d+",
        "pending": "future: no result yet",
        "ready": r"future: ready = \{value = std::optional(?:<int>)? = \{\[contained value\] = 42\}\}",
        "cancelled.ctx": "context: done, canceled",
        "limited.ctx": r"context: not done, deadline in 9\d\d\.\d+ s",
        "root": "context: background, never done",
        "timer": r"timer: fires into a channel in 9\d\d\.\d+ s",
        "ticker": r"ticker: fires into a channel in 4\d\d\.\d+ s, then every 500 s",
    }

    def expect_all(self, program):
        with Child("states", program=program) as child:
            out = child.gdb(*("print objects->" + name for name in self.EXPECTED))
        printed = re.findall(r"(?m)^\$\d+ = (.*)$", out)
        self.assertEqual(len(printed), len(self.EXPECTED), out)
        for text, (name, pattern) in zip(printed, self.EXPECTED.items()):
            self.assertRegex(text, "^" + pattern + "$", name)

    def test_say_what_the_objects_are_and_who_waits(self):
        self.expect_all("gdb_child")

    def test_work_with_the_shared_library(self):
        self.expect_all("gdb_shared_child")


class CoreFiles(unittest.TestCase):
    def expect_stacks(self, out):
        self.assertEqual(len(lines_of(out, r'"reader" \[chan receive\] .*wait_for_value')), 3, out)
        self.assertEqual(len(lines_of(out, r'"locker" \[sync\.Mutex\.Lock\] .*locker')), 1, out)
        self.assertEqual(len(lines_of(out, r'"computes" \[.*computes')), 3, out)
        self.assertRegex(out, r"mutex: locked, 1 waiter: goroutine \d+")

    def test_of_the_kernel_have_all_goroutines(self):
        pattern = Path("/proc/sys/kernel/core_pattern").read_text()
        if pattern.startswith("|") or "/" in pattern:
            self.skipTest("the kernel does not write core files into the current folder: " + pattern.strip())
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "GOMAXPROCS": "2"}
            subprocess.run([args.programs / "gdb_child", "abort"], cwd=folder, env=env, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=60, check=False,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (1 << 33, 1 << 33)))
            cores = list(Path(folder).iterdir())
            if not cores:
                self.skipTest("the kernel has not written a core file")
            out = gdb([args.programs / "gdb_child", cores[0]], "info goroutines", "print objects->held")
        self.expect_stacks(out)
        self.assertRegex(out, r"\* goroutine 1 \[running, M\d+, thread \d+\] .*states")

    def save_and_read(self, dense):
        with tempfile.TemporaryDirectory() as folder:
            core = Path(folder) / "core"
            with Child("states", dense=dense) as child:
                saved = child.gdb("goroutine save-core %s" % core)
            self.assertIn("with the stacks of 13 goroutines", saved)
            self.assertLess(core.stat().st_blocks * 512, 100e6, "memory that is not in use became blocks of the file")
            out = gdb([args.programs / "gdb_child", core], "info goroutines", "print objects->held", "info threads",
                      "goroutine all bt")
        self.expect_stacks(out)
        self.assertEqual(len(lines_of(out, r"^#\d+ .*gofer_entry")), 13, out)

    def test_that_are_saved_have_the_stacks_that_lie_far_apart(self):
        self.save_and_read(dense=False)

    def test_that_are_saved_have_the_stacks_that_lie_side_by_side(self):
        self.save_and_read(dense=True)

    def test_of_gdb_itself_come_with_a_warning(self):
        with Child("states") as child:
            for command in ("generate-core-file", "gcore"):
                out = child.gdb(command + " /nowhere/core")
                self.assertIn("Use this instead: goroutine save-core FILE", out)


class Probes(unittest.TestCase):
    def source_probes(self):
        names = set()
        for path in (args.source / "src/runtime").glob("*/transitions.h"):
            names |= set(re.findall(r"GOFER_PROBE\d\((\w+),", path.read_text()))
        return names

    def noted_probes(self, path):
        out = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        return set(re.findall(r"Provider: gofer\s+Name: (\w+)", out))

    def test_are_noted_in_the_library_and_in_static_programs(self):
        self.assertTrue(self.source_probes())
        for path in (args.library, args.programs / "gdb_child"):
            self.assertEqual(self.source_probes(), self.noted_probes(path), path)

    def test_are_all_in_the_documentation(self):
        text = (args.source / "docs/DEBUGGING.md").read_text()
        self.assertEqual(self.source_probes(), set(re.findall(r"`((?:goroutine|p|m)_[a-z_]+)\(", text)))

    def test_give_the_goroutine_and_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            out = gdb([args.programs / "gdb_child"], "set args crowd 1", "set disable-randomization off",
                      "set environment GOMAXPROCS 1",
                      "tbreak -probe-stap gofer:goroutine_created", "run >%s/out" % folder,
                      "print $_probe_arg0", "print $_probe_arg1",
                      "tbreak -probe-stap gofer:goroutine_parks", "continue", "print $_probe_arg0",
                      "print (gofer::internal::WaitReason)$_probe_arg1", "kill")
        self.assertIn("$1 = 1\n", out)
        self.assertIn("$2 = 0\n", out)
        self.assertIn("$3 = 1\n", out)
        self.assertIn("$4 = gofer::internal::WaitReason::sleep\n", out)


class Transcripts(unittest.TestCase):
    """docs/DEBUGGING.md: what follows "(gdb) command" is what gdb prints, but for numbers and addresses; "..." is any text."""

    def transcripts(self):
        text = (args.source / "docs/DEBUGGING.md").read_text()
        for block in re.findall(r"(?s)```\n(\(gdb\) .*?)```", text):
            commands = re.split(r"(?m)^\(gdb\) ", block)[1:]
            yield [(c.split("\n", 1)[0], c.split("\n", 1)[1].rstrip("\n")) for c in commands]

    def pattern(self, expected):
        pattern = ""
        for part in re.split(r"(\.\.\.|0x[0-9a-f]+|\d+)", expected):
            pattern += ".*" if part == "..." else "0x[0-9a-f]+" if part.startswith("0x") else r"\d+" if part.isdigit() \
                else re.escape(part)
        return re.compile("^" + pattern + r"\s*$", re.DOTALL)

    def test_are_true(self):
        transcripts = list(self.transcripts())
        self.assertGreaterEqual(len(transcripts), 2)
        for commands in transcripts:
            with Child("states") as child:
                numbers = self.fresh_numbers(child)
                script = []
                for command, _ in commands:
                    script += ["echo <begin>\\n", self.renumbered(command, numbers), "echo <end>\\n"]
                out = child.gdb(*script)
            printed = re.findall(r"(?s)<begin>\n(.*?)<end>\n", out)
            self.assertEqual(len(printed), len(commands), out)
            for (command, expected), text in zip(commands, printed):
                self.assertRegex(text, self.pattern(expected), command)

    def fresh_numbers(self, child):
        """The documentation's goroutines, which may have other numbers in another run."""
        out = child.gdb("info goroutines -l")
        return {2: numbers_of(out, '"reader"')[0], 5: numbers_of(out, '"locker"')[0]}

    def renumbered(self, command, numbers):
        return re.sub(r"^goroutine (\d+)", lambda m: "goroutine %d" % numbers.get(int(m[1]), int(m[1])), command)


def can_trace():
    with Child("crowd", "1") as child:
        out = child.gdb("info goroutines")
    if "2 goroutines" in out or "3 goroutines" in out:
        return True
    if "ptrace" in out or "not permitted" in out or "not support Python" in out or 'Undefined info command: "goroutines"' \
            in out and "Python" in out:
        print("skipped: gdb cannot be used here:\n" + out)
        return False
    return True  # the tests say what is wrong


def main():
    global args
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("tests", nargs="*")
    args = parser.parse_args()
    args.programs, args.library = args.programs.resolve(), args.library.absolute()
    if not shutil.which("gdb") or not shutil.which("readelf"):
        print("skipped: gdb is not installed")
        sys.exit(SKIPPED)
    if not can_trace():
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *args.tests], verbosity=2)


if __name__ == "__main__":
    main()
