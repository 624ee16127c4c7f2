#!/usr/bin/env python3
"""Runs Gofer's benches beside their peers and prints the ratios.

  python3 bench/run.py --build build/release [--only REGEX] [--repeats N] [--quick] [--json FILE]

Every figure is the median of fresh processes that take turns: Gofer, Go, Gofer, Go, ...
The exit code says whether everything ran, not whether it was fast. See README.md beside this file.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

# How far from its bar a ratio must be before it counts as one side of it: less than that is noise.
TIE = 0.20
MEMORY_TIE = 0.02  # bytes hardly vary

# More than this part of the machine in other hands, and the run says so.
DISTURBED = 0.05


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure that a workload prints, and the bar for it at each P.

    The bar is the ratio Gofer/Go: at most this where less is better, at least this where more is
    better. None: measured, but without a bar.
    """

    metric: str
    workload: str
    bars: dict[int, float | None]  # by the number of processors
    more_is_better: bool = False
    memory_gib: int = 0  # skipped when less than this is free
    tie: float = TIE
    burners: bool = False  # beside processes that burn every core
    quick_n: int | None = None  # the size with --quick
    at_most: int | None = None  # no more processes a side than that, because each takes long
    guard: str | None = None  # GOFER_DEBUG=guard=..., and the end of the metric's name
    unpaused: bool = False  # Gofer without pauses takes Go's place; the metric's name ends so
    n: int | None = None  # the size, if not the workload's own

    @property
    def printed(self) -> str:
        """The metric by the name that the workload gives it."""
        return self.metric.removesuffix(f"_{self.guard}").removesuffix(UNPAUSED)


# The end of a metric's name: its peer is Gofer with GOFER_DEBUG=asyncpreemptoff=1.
UNPAUSED = "_beside_unpaused"

# A metric of this name is the largest number of threads that the process had, as seen from here.
THREADS = "_threads"
THREADS_EVERY_S = 0.02

CALLS = [f"calls_{form}_{time}_{goroutines}"
         for form in ("announced", "handoff", "unannounced")
         for time in ("10us", "100us", "1ms", "10ms")
         for goroutines in (1, 10, 100)]

GUARDS = ("mprotect", "none")

ROWS = [
    # the scheduler alone
    Row("yield", "yield", {1: 0.14}),
    Row("spawn_join_first", "spawn_join", {1: 0.09, 2: 0.25}),
    Row("spawn_join_second", "spawn_join", {1: 0.07, 2: 0.18}),
    Row("spawn_serial", "spawn_serial", {1: 0.20, 2: 0.20}),
    Row("spawn_nested", "spawn_nested", {1: 0.06, 2: 0.06}),
    # fork and join
    Row("fib", "fib", {1: 0.30, 2: 0.30}),
    Row("quicksort", "quicksort", {1: 0.90, 2: 0.90}),
    # channels and select
    Row("ping_pong", "ping_pong", {1: 0.25, 2: 0.30}),
    Row("chan_128_1_to_1", "chan_128_1_to_1", {1: 0.40, 2: 0.40}),
    Row("chan_128_4_to_4", "chan_128_4_to_4", {1: 0.50, 2: 0.60}),
    Row("chan_0_4_to_4", "chan_0_4_to_4", {1: 0.35, 2: 0.45}),
    Row("select_4_0", "select_4_0", {1: 0.35, 2: 0.35}),
    Row("select_4_128", "select_4_128", {1: 0.35, 2: 0.35}),
    Row("select_default_1", "select_default_1", {1: 1.0}),
    Row("select_default_4", "select_default_4", {1: 0.35}),
    # locks, and a tree of goroutines over channels
    Row("mutex_alone", "mutex_alone", {1: 1.0}),
    Row("mutex_contended", "mutex_contended", {1: 0.65, 2: 0.65}),
    Row("rw_mutex_readers", "rw_mutex_readers", {1: 1.0, 2: 0.50}),
    Row("skynet_first", "skynet", {1: 0.18, 2: 0.18}),
    Row("skynet_second", "skynet", {1: None, 2: None}),
    # timers
    Row("sleepers_100k", "sleepers_100k", {2: 0.45}),
    Row("sleepers_1m", "sleepers_1m", {2: 1.0}, memory_gib=8),
    Row("timer_stop", "timer_stop", {1: 0.30, 2: 0.30}),
    Row("timer_stop_beside_100k", "timer_stop_beside_100k", {1: 0.30, 2: 0.30}),
    Row("timer_reset", "timer_reset", {1: 0.60}),
    # looking inside
    Row("metrics_read", "metrics_read", {1: None, 2: None}),
    # preemption and blocking calls
    Row("late_0_p50", "late_0", {2: 1.0}),
    Row("late_0_p99", "late_0", {2: 1.0}),
    Row("late_2_p50", "late_2", {2: None}),
    Row("late_2_p99", "late_2", {2: 0.08}),
    Row("late_4_p50", "late_4", {2: None}),
    Row("late_4_p99", "late_4", {2: 0.08}),
    Row("late_16_p50", "late_16", {2: None}),
    Row("late_16_p99", "late_16", {2: 0.08}),
    Row("blocking_call", "blocking_call", {1: 0.30, 2: 0.30}),
    Row("blocked_announced", "blocked_announced", {1: 0.85}),
    Row("blocked_handoff", "blocked_handoff", {1: 0.85}),
    Row("blocked_unannounced", "blocked_unannounced", {1: 0.85}),
    Row("wait_beside_blocked", "wait_beside_blocked", {1: None}),
    Row("wait_beside_computing", "wait_beside_computing", {1: None}),
    Row("spinners_16", "spinners_16", {2: None}),
    Row("late_setter", "late_setter", {2: 4.0}),
    Row("late_setter_5000", "late_setter_5000", {2: 4.0}, quick_n=1_000, at_most=3),
    Row("checkpoint", "checkpoint", {1: None}),
    Row("compute_batch", "compute_batch", {2: 1.05}, quick_n=1_500, at_most=3),
    Row("compute_batch" + THREADS, "compute_batch", {2: None}, quick_n=1_500, at_most=3),
    Row("compute_batch" + UNPAUSED, "compute_batch", {2: 1.05}, unpaused=True, n=3_000, quick_n=500),
    *(Row(name, name, {2: 1.0}, more_is_better=True) for name in CALLS),
    # the heap, beside processes that burn every core
    Row("malloc_skynet", "malloc_skynet", {1: 1.0, 2: 1.0}, burners=True),
    Row("malloc_skynet" + THREADS, "malloc_skynet", {1: None, 2: None}, burners=True),
    Row("malloc_skynet" + UNPAUSED, "malloc_skynet", {1: 1.3, 2: 1.3}, burners=True, unpaused=True),
    # an echo server; the client is the same, in a process of its own
    Row("echo_1", "echo_1", {1: 1.1, 2: 1.1}, more_is_better=True),
    Row("echo_100", "echo_100", {1: 1.3, 2: 1.3}, more_is_better=True),
    Row("echo_1000", "echo_1000", {1: 1.3, 2: 1.3}, more_is_better=True),
    Row("echo_beside_4_p99", "echo_beside_4", {2: 0.08}),
    Row("echo_beside_4", "echo_beside_4", {2: None}, more_is_better=True),
    Row("echo_beside_16_p99", "echo_beside_16", {2: None}),
    Row("echo_beside_16", "echo_beside_16", {2: None}, more_is_better=True),
    Row("idle_connections", "idle_connections", {2: None}, tie=MEMORY_TIE),
    # parked goroutines, each
    Row("parked_100k_rss", "parked_100k", {2: None}),
    Row("parked_100k_pte", "parked_100k", {2: None}),
    Row("parked_100k_create", "parked_100k", {2: None}),
    Row("parked_1m_rss", "parked_1m", {2: 1.70}, memory_gib=8, tie=MEMORY_TIE),
    Row("parked_1m_pte", "parked_1m", {2: None}, memory_gib=8),
    Row("parked_1m_create", "parked_1m", {2: 1.60}, memory_gib=8),
    # stacks as older kernels have them, and without guards; Go's side is the ordinary one
    *(Row(f"{metric}_{guard}", metric, {1: None}, guard=guard)
      for guard in GUARDS for metric in ("yield", "ping_pong")),
    *(Row(f"parked_1m_{metric}_{guard}", "parked_1m", {2: None}, memory_gib=8, at_most=3, guard=guard)
      for guard in GUARDS for metric in ("rss", "pte", "create")),
]


@dataclass(frozen=True)
class ModelRow:
    """The same shape under every thread model; threads are dear, so theirs is smaller."""

    name: str
    metric: str
    workload: str
    n: int
    threads_metric: str
    threads_workload: str
    threads_n: int


MODEL_ROWS = [
    ModelRow("models_spawn_join", "spawn_join_first", "spawn_join", 200_000,
             "threads_spawn_join", "threads_spawn_join", 5_000),
    ModelRow("models_fib", "fib_each", "fib", 22, "threads_fib_each", "threads_fib", 15),
]

MODELS = ["1:1", "N:1", "GM", "GMP"]


@dataclass(frozen=True)
class TraceRow:
    """A workload beside itself while a trace of it is recorded."""

    name: str
    workload: str
    procs: int
    n: int | None = None
    event_ns: float | None = None  # the bar for an event: at most this
    cpu: float | None = None  # the bar for the processor time of a request: traced/untraced
    tie: float = TIE


TRACE_ROWS = [
    TraceRow("traced_yield", "yield", 1, n=2_000_000, event_ns=20),
    TraceRow("traced_ping_pong", "ping_pong", 1, n=1_000_000, event_ns=20),
    TraceRow("traced_spawn", "spawn_serial", 1, n=1_000_000, event_ns=20),
    TraceRow("traced_echo_100", "echo_100", 2, n=3_000, cpu=1.03, tie=0.02),
]


class Failure(Exception):
    """A workload, or the build of a peer, that did not run to its end."""


def spell(bar: float | None, more_is_better: bool) -> str:
    if bar is None:
        return "-"
    return f"{'≥' if more_is_better else '≤'} {bar:.2f}"


def verdict(ratio: float | None, bar: float | None, tie: float, more_is_better: bool = False) -> str:
    if not ratio or bar is None:
        return ""
    lead = ratio / bar if more_is_better else bar / ratio
    if lead >= 1 + tie:
        return "pass"
    return "miss" if lead <= 1 / (1 + tie) else "~"


def figure(value: float | None) -> str:
    """Three significant digits, and all digits before the point."""
    if value is None:
        return "-"
    for limit, digits in ((100, 0), (10, 1), (1, 2)):
        if abs(value) >= limit:
            return f"{value:,.{digits}f}"
    return f"{value:.3f}"


def cell(result: dict, side: str) -> str:
    return "failed" if side in result["failed"] else figure(result[side])


def print_table(head: list[str], body: list[list[str]], left: set[int]) -> None:
    """A Markdown table that is also straight to the eye."""
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]

    def render(cells: list[str]) -> str:
        return "| " + " | ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))
        ) + " |"

    print(render(head))
    print("|" + "|".join("-" * (w + 2) if i in left else "-" * (w + 1) + ":"
                         for i, w in enumerate(widths)) + "|")
    for line in body:
        print(render(line))


def progress(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def burning(wanted: bool) -> Iterator[None]:
    """While it lasts, one process for every core does nothing but compute."""
    count = len(os.sched_getaffinity(0)) if wanted else 0
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()  # only then is its time ours, see Neighbours


@contextlib.contextmanager
def counting(pid: int, wanted: bool) -> Iterator[Callable[[], int]]:
    """Samples the number of threads of a process; gives a function that returns the largest."""
    most = 0
    over = threading.Event()

    def sample() -> None:
        nonlocal most
        status = Path(f"/proc/{pid}/status")
        while not over.wait(THREADS_EVERY_S):
            with contextlib.suppress(OSError):
                if found := re.search(r"^Threads:\s+(\d+)", status.read_text(), re.M):
                    most = max(most, int(found[1]))

    sampler = threading.Thread(target=sample)
    if wanted:
        sampler.start()
    try:
        yield lambda: most
    finally:
        over.set()
        if wanted:
            sampler.join()


@contextlib.contextmanager
def recording(wanted: bool) -> Iterator[Path | None]:
    """A path for a trace, in memory if that is possible."""
    if not wanted:
        yield None
        return
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "trace"


def cpu_seconds() -> float:
    """Of all processes that have ended."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


LINE = re.compile(r"^(\S+) procs=(\d+) value=(\S+) unit=(\S+)$")


@dataclass
class Side:
    """One program that knows the workloads by name."""

    name: str
    program: Path
    timeout_s: float

    def run_traced(self, tool: Path, trace: bool, **arguments) -> dict[str, tuple[float, str]]:
        """The same with its processor time and, if a trace is recorded, what that consists of."""
        with recording(trace) as path:
            before = cpu_seconds()
            figures = self.run(trace=path, **arguments)
            figures["cpu"] = (cpu_seconds() - before, "s")
            if path is None:
                return figures
            done = subprocess.run([str(tool), "trace", "check", str(path)], capture_output=True,
                                  text=True, timeout=self.timeout_s, check=False)
            events = re.search(r"(\d+) events", done.stdout)
            if done.returncode != 0 or not events:
                raise Failure(f"{arguments['workload']}: its trace: {done.stderr.strip()}")
            return figures | {"events": (float(events[1]), "events"),
                              "bytes": (float(path.stat().st_size), "bytes")}

    def run(self, workload: str, procs: int, n: int | None = None, debug: str | None = None,
            burners: bool = False, threads: bool = False,
            trace: Path | None = None) -> dict[str, tuple[float, str]]:
        """Runs a workload in a fresh process: its figures and units by name."""
        command = [str(self.program), workload] + (["-n", str(n)] if n else [])
        env = dict(os.environ, GOMAXPROCS=str(procs),
                   ECHO_CLIENT=str(self.program.parent / "echo_client"))
        if debug:
            env["GOFER_DEBUG"] = debug
        if trace:
            env["GOFER_TRACE"] = str(trace)
        what = f"{self.name}: {workload} P={procs}" + (f" GOFER_DEBUG={debug}" if debug else "")
        try:
            with burning(burners), subprocess.Popen(
                    command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    errors="replace") as process, counting(process.pid, threads) as most:
                try:
                    out, err = process.communicate(timeout=self.timeout_s)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise
        except subprocess.TimeoutExpired as e:
            raise Failure(f"{what}: no end after {self.timeout_s:.0f} s") from e
        except OSError as e:
            raise Failure(f"{what}: {e}") from e
        if process.returncode != 0:
            tail = "\n".join(err.strip().splitlines()[:20])
            raise Failure(f"{what}: exit code {process.returncode}\n{tail}".rstrip())
        matches = filter(None, map(LINE.match, out.splitlines()))
        figures = {m[1]: (float(m[3]), m[4]) for m in matches}
        return figures | {workload + THREADS: (float(most()), "threads")} if threads else figures


class Samples:
    """The figures of one metric on each side."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}
        self.failed: list[str] = []
        self.unit = ""

    def add(self, side: str, value: float, unit: str) -> None:
        self.values.setdefault(side, []).append(value)
        self.unit = unit

    def fail(self, sides: set[str]) -> None:
        self.failed = sorted(sides)
        self.values = {k: v for k, v in self.values.items() if k not in sides}

    def median(self, side: str) -> float | None:
        values = self.values.get(side)
        return statistics.median(values) if values else None


@dataclass(frozen=True)
class Turn:
    """One process of a round: what to run, and under which name each figure of it is collected."""

    key: str  # the column that its figures go to
    run: Callable[..., dict[str, tuple[float, str]]]
    arguments: dict
    wanted: dict[str, str]


class Bench:
    """One run of everything that was asked for; failures are collected, not fatal."""

    def __init__(self, gofer: Side | None, go: Side | None, repeats: int, quick: bool) -> None:
        self.gofer, self.go, self.repeats, self.quick = gofer, go, repeats, quick
        self.failures: list[str] = []
        self.left_out: list[str] = []

    def take_turns(self, label: str, turns: list[Turn],
                   at_most: int | None = None) -> dict[str, Samples]:
        """Runs every turn once a round. A turn that fails is not tried again and has no figures."""
        collected = {name: Samples() for t in turns for name in t.wanted.values()}
        broken: set[str] = set()
        progress(f"{label} ")
        for _ in range(min(self.repeats, at_most or self.repeats)):
            for turn in turns:
                if turn.key in broken:
                    continue
                try:
                    figures = turn.run(**turn.arguments)
                    for metric, name in turn.wanted.items():
                        if metric not in figures:
                            raise Failure(f"{label}: {turn.key}: it does not print {metric}")
                        collected[name].add(turn.key, *figures[metric])
                except Failure as e:
                    broken.add(turn.key)
                    self.failures.append(str(e))
                    progress("!")
            progress(".")
        progress("\n")
        for samples in collected.values():
            samples.fail(broken)
        return collected

    def measure(self, workload: str, procs: int, rows: list[Row]) -> list[dict]:
        arguments = {
            "workload": workload, "procs": procs,
            "n": (rows[0].quick_n if self.quick else None) or rows[0].n,
            "burners": rows[0].burners, "threads": any(r.metric.endswith(THREADS) for r in rows),
            "debug": f"guard={rows[0].guard}" if rows[0].guard else None,
        }
        wanted = {r.printed: r.metric for r in rows}
        turns = [Turn(s.name, s.run, arguments, wanted) for s in (self.gofer, self.go) if s]
        if rows[0].unpaused:
            unpaused = arguments | {"debug": "asyncpreemptoff=1"}
            both = (("gofer", arguments), ("go", unpaused))
            turns = [Turn(key, self.gofer.run, a, wanted) for key, a in both if self.gofer]
        collected = self.take_turns(f"{workload} P={procs}", turns, rows[0].at_most)
        return [self.result(row, procs, collected[row.metric]) for row in rows]

    @staticmethod
    def result(row: Row, procs: int, samples: Samples) -> dict:
        ours, theirs = samples.median("gofer"), samples.median("go")
        bar = row.bars[procs]
        ratio = ours / theirs if ours is not None and theirs else None
        return {
            "metric": row.metric, "procs": procs, "unit": samples.unit, "gofer": ours, "go": theirs,
            "ratio": ratio, "bar": bar, "bar_text": spell(bar, row.more_is_better),
            "verdict": verdict(ratio, bar, row.tie, row.more_is_better),
            "failed": samples.failed, "samples": samples.values,
        }

    def measure_models(self, row: ModelRow, cpus: int) -> dict:
        goroutines = {"workload": row.workload, "n": row.n}
        arguments = {
            "1:1": {"workload": row.threads_workload, "n": row.threads_n, "procs": cpus},
            "N:1": goroutines | {"procs": 1},
            "GM": goroutines | {"procs": cpus, "debug": "model=gm"},
            "GMP": goroutines | {"procs": cpus},
        }
        assert self.gofer is not None
        turns = [
            Turn(m, self.gofer.run, arguments[m],
                 {row.threads_metric if m == "1:1" else row.metric: row.name}) for m in MODELS
        ]
        samples = self.take_turns(row.name, turns)[row.name]
        return {
            "name": row.name, "n": row.n, "threads_n": row.threads_n, "unit": samples.unit,
            **{m: samples.median(m) for m in MODELS}, "failed": samples.failed,
            "samples": samples.values,
        }

    def measure_trace(self, row: TraceRow, tool: Path) -> dict:
        """Traced and untraced in turn. Processor time, because it does not depend on who else runs."""
        assert self.gofer is not None
        arguments = {"workload": row.workload, "procs": row.procs, "n": row.n, "tool": tool}
        own = {row.workload: "figure", "cpu": "cpu"}
        turns = [
            Turn("off", self.gofer.run_traced, arguments | {"trace": False}, own),
            Turn("on", self.gofer.run_traced, arguments | {"trace": True},
                 own | {"events": "events", "bytes": "bytes"}),
        ]
        samples = self.take_turns(row.name, turns)
        result = {"name": row.name, "procs": row.procs, "unit": samples["figure"].unit,
                  "off": samples["figure"].median("off"), "on": samples["figure"].median("on"),
                  "cpu": None, "event_ns": None, "event_bytes": None, "verdict": "",
                  "failed": samples["figure"].failed,
                  "samples": {k: s.values for k, s in samples.items()}}
        if result["failed"]:
            return result
        cpu = {side: samples["cpu"].values[side] for side in ("off", "on")}
        events = samples["events"].median("on")
        result["event_bytes"] = samples["bytes"].median("on") / events
        if row.event_ns:
            more = statistics.median(cpu["on"]) - statistics.median(cpu["off"])
            result["cpu"] = statistics.median(cpu["on"]) / statistics.median(cpu["off"])
            result["event_ns"] = more / events * 1e9
            result["verdict"] = verdict(result["event_ns"], row.event_ns, row.tie)
        else:  # so many requests in a fixed time
            off, on = (statistics.median(c / rate for c, rate in zip(cpu[side], samples["figure"].values[side]))
                       for side in ("off", "on"))
            result["cpu"] = on / off
            result["verdict"] = verdict(result["cpu"], row.cpu, row.tie)
        return result


def find_tool(build: Path) -> Path | None:
    for place in ("tools/gofer", "bin/gofer"):
        if (build / place).is_file():
            return build / place
    return None


def run_trace_rows(bench: Bench, build: Path, only: str | None) -> list[dict]:
    rows = [r for r in TRACE_ROWS if bench.gofer and selected(only, r.name)]
    if not rows:
        return []
    tool = find_tool(build)
    if tool is None:
        bench.left_out.append("traced_*: left out, the build has no `gofer` (Debian: libcli11-dev)")
        return []
    return [bench.measure_trace(r, tool) for r in rows]


def selected(only: str | None, *names: str) -> bool:
    return only is None or any(re.search(only, name) for name in names)


def free_gib() -> float:
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) / 2**20 if found else float("inf")


def run_rows(bench: Bench, only: str | None) -> list[dict]:
    """Rows of one workload at one P come from the same processes."""
    groups: dict[tuple[str, str | None, bool, int], list[Row]] = {}
    for row in ROWS:
        if selected(only, row.metric, row.workload):
            for procs in row.bars:
                groups.setdefault((row.workload, row.guard, row.unpaused, procs), []).append(row)
    results = []
    for (workload, _, _, procs), rows in groups.items():
        if (need := max(r.memory_gib for r in rows)) > free_gib():
            bench.left_out.append(f"{workload} P={procs}: left out, it needs {need} GiB of memory")
            continue
        results += bench.measure(workload, procs, rows)
    return results


class Neighbours:
    """How much of the machine other processes used since the start."""

    def __init__(self) -> None:
        self.start = self.ticks()

    @staticmethod
    def ticks() -> tuple[float, float, float]:
        """Of all CPUs since boot: all time, busy time, and how much of that was ours."""
        numbers = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle = numbers[3] + numbers[4]
        seconds = sum(sum(resource.getrusage(who)[:2])
                      for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(numbers), sum(numbers) - idle, seconds * os.sysconf("SC_CLK_TCK")

    def share(self) -> float:
        total, busy, ours = (b - a for a, b in zip(self.start, self.ticks()))
        return max(0.0, (busy - ours) / total) if total else 0.0


def first_line(command: list[str]) -> str:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        if lines := done.stdout.splitlines():
            return lines[0]
    return "not found"


def about(gofer: Side | None) -> dict[str, str]:
    """What compiled gofer_bench, in its own words."""
    if gofer is None:
        return {}
    try:
        done = subprocess.run([str(gofer.program), "--about"], capture_output=True, text=True,
                              timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def describe_machine(gofer: Side | None, build: Path) -> dict[str, str]:
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    built = about(gofer)
    machine = {
        "CPU": model[1] if model else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": f"{platform.system()} {platform.release()}",
        "compiler": built.get("compiler", "unknown"),
        "go": first_line(["go", "env", "GOVERSION"]) if shutil.which("go") else "not found",
    }
    cache = build / "CMakeCache.txt"
    options = cache.read_text() if cache.exists() else ""
    checks = re.search(r"^GOFER_CHECKS:\w+=(ON|1|TRUE|YES)$", options, re.M)
    sanitizer = re.search(r"^GOFER_SANITIZE:\w+=(.+)$", options, re.M)
    slow = [text for text, found in (("not optimised", built.get("optimised") == "no"),
                                     ("with the runtime's checks", checks),
                                     ("with a sanitizer", sanitizer)) if found]
    if slow:
        machine["WARNING"] = "this build is " + ", ".join(slow) + ": its figures say little"
    set_by_user = [f"{k}={v}" for k, v in sorted(os.environ.items())
                   if k in ("GOFER_DEBUG", "GOFER_STACK_SIZE", "GOGC", "GODEBUG", "GOMEMLIMIT")]
    if set_by_user:
        machine["environment"] = " ".join(set_by_user)
    return machine


def find_gofer(build: Path, timeout_s: float) -> Side | None:
    for place in ("bench/gofer_bench", "bin/gofer_bench", "gofer_bench"):
        if (build / place).is_file():
            return Side("gofer", build / place, timeout_s)
    return None


def build_go(build: Path, timeout_s: float) -> Side | None:
    """None when there is no go; a peer that does not compile is a failure."""
    if shutil.which("go") is None:
        return None
    program = build / "bench" / "go_bench"
    program.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["go", "build", "-buildvcs=false", "-o", str(program), "."],
                          cwd=HERE / "peers" / "go", capture_output=True, text=True, check=False,
                          env=dict(os.environ, GOTOOLCHAIN="local", GOWORK="off"))
    if done.returncode != 0:
        raise Failure("go: the build failed\n" + done.stderr.strip())
    return Side("go", program, timeout_s)


def print_rows(results: list[dict]) -> None:
    print_table(
        ["workload", "P", "Go", "Gofer", "unit", "ratio", "bar", "verdict"],
        [[r["metric"], str(r["procs"]), cell(r, "go"), cell(r, "gofer"), r["unit"],
          figure(r["ratio"]), r["bar_text"], r["verdict"]] for r in results],
        left={0, 4, 7})
    counts = {v: sum(r["verdict"] == v for r in results) for v in ("pass", "~", "miss")}
    print(f"\nratio: Gofer/Go. pass {counts['pass']}, tie (~, too near to the bar to tell) "
          f"{counts['~']}, miss {counts['miss']}.")


def print_models(results: list[dict], cpus: int) -> None:
    print("\nThread models on one workload, each goroutine or thread:\n")
    print_table(
        ["workload", "1:1 threads", "N:1 (P=1)", f"GM (P={cpus})", f"GMP (P={cpus})", "unit", "n"],
        [[r["name"].removeprefix("models_"), *(cell(r, m) for m in MODELS), r["unit"],
          f"{r['n']:,} (threads {r['threads_n']:,})"] for r in results],
        left={0, 5, 6})


def print_traces(results: list[dict]) -> None:
    bars = {r.name: f"≤ {r.event_ns:.0f} ns" if r.event_ns else f"CPU ≤ {r.cpu:.2f}" for r in TRACE_ROWS}
    print("\nWhile a trace is recorded, by GOFER_TRACE:\n")
    print_table(
        ["workload", "P", "untraced", "traced", "unit", "CPU", "ns an event", "bytes", "bar", "verdict"],
        [[r["name"].removeprefix("traced_"), str(r["procs"]), cell(r, "off"), cell(r, "on"), r["unit"],
          figure(r["cpu"]), figure(r["event_ns"]), figure(r["event_bytes"]), bars[r["name"]],
          r["verdict"]] for r in results],
        left={0, 4, 8, 9})
    print("\nCPU: processor time of the whole process, traced/untraced; of echo, with the client's, for "
          "each request.\nns an event: how much more processor time it is, for each event.")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build/release"),
                        help="build directory with gofer_bench (default: build/release)")
    parser.add_argument("--only", metavar="REGEX",
                        help="only the rows that match; models_* is the second table, traced_* the third")
    parser.add_argument("--repeats", type=int, help="processes a side (default: 7)")
    parser.add_argument("--quick", action="store_true", help="3 processes a side, and smaller sizes of what takes long")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a process may take")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples to FILE")
    args = parser.parse_args()
    args.repeats = args.repeats or (3 if args.quick else 7)
    args.build = args.build.resolve()
    return args


def main() -> int:
    args = parse_args()
    failures: list[str] = []
    gofer = find_gofer(args.build, args.timeout)
    go = None
    try:
        go = build_go(args.build, args.timeout)
        if go is None:
            print("No go in PATH: Go's side is missing, so there are no ratios.\n")
    except Failure as e:
        failures.append(str(e))
        print("Go's side does not build, so there are no ratios.\n")
    if gofer is None:
        failures.append(f"gofer: no gofer_bench under {args.build.name}/: build it first")
        print("No gofer_bench in the build directory: Gofer's side is missing.\n")

    machine = describe_machine(gofer, args.build)
    for key, value in machine.items():
        print(f"{key}: {value}")
    print(f"median of {args.repeats} processes a side, in turn\n", flush=True)

    neighbours = Neighbours()
    bench = Bench(gofer, go, args.repeats, args.quick)
    cpus = len(os.sched_getaffinity(0))
    models = [r for r in MODEL_ROWS if gofer and selected(args.only, r.name)]
    results = run_rows(bench, args.only) if gofer or go else []
    model_results = [bench.measure_models(r, cpus) for r in models]
    trace_results = run_trace_rows(bench, args.build, args.only)
    if results:
        print_rows(results)
    if model_results:
        print_models(model_results, cpus)
    if trace_results:
        print_traces(trace_results)
    for line in bench.left_out:
        print(line)
    others = neighbours.share()
    if others > DISTURBED:
        print(f"\nWARNING: other processes used {others:.0%} of the machine meanwhile: "
              "these figures are rough, and so are the ratios.")
    if not (results or model_results or trace_results or bench.left_out) and (gofer or go):
        failures.append(f"nothing is named like {args.only}")

    failures += bench.failures
    if args.json:
        args.json.write_text(json.dumps(
            {"machine": machine, "repeats": args.repeats, "others": others, "rows": results,
             "models": model_results, "traces": trace_results, "failures": failures}, indent=1) + "\n")
    for failure in failures:
        print(f"\nFAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
