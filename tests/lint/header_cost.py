#!/usr/bin/env python3
"""What the public headers cost their users: the lines that the compiler sees for one #include.

A line counts if it is neither blank nor a line marker (# 1 "file") in the output of g++ -std=c++20 -E. The limits are
those of g++ 12's standard library, about 5 % above the count when they were set. A header that exceeds its limit has
got a new #include: find a lighter one, or move what needs it into the library. With --list, prints all counts.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
from pathlib import Path

LIMITS = {
    "gofer/mutex.h": 2_900,
    "gofer/rw_mutex.h": 2_900,
    "gofer/cond.h": 3_200,
    "gofer/rate_limiter.h": 2_900,
    "gofer/once.h": 7_000,
    "gofer/latch.h": 16_000,
    "gofer/wait_group.h": 15_700,
    "gofer/go.h": 17_100,
    "gofer/metrics.h": 20_300,
    "gofer/chan.h": 25_300,
    "gofer/semaphore.h": 26_700,
    "gofer/select.h": 27_900,
    "gofer/timer.h": 45_300,
    "gofer/context.h": 50_800,
    "gofer/gofer.h": 55_000,
}


def count(cxx, include, header):
    result = subprocess.run([cxx, "-std=c++20", "-E", f"-I{include}", "-x", "c++", "-"],
                            input=f"#include <{header}>\n", capture_output=True, text=True, check=True)
    return sum(1 for line in result.stdout.splitlines() if line.strip() and not line.startswith("#"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    include = args.source / "include"

    headers = sorted(f"gofer/{p.name}" for p in include.glob("gofer/*.h")) if args.list else list(LIMITS)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(headers, pool.map(lambda h: count(args.cxx, include, h), headers)))
    heavy = [h for h in headers if counts[h] > LIMITS.get(h, counts[h])]
    for header in headers if args.list else heavy:
        limit = f"; the limit is {LIMITS[header]}" if header in LIMITS else ""
        print(f"{header}: {counts[header]} lines{limit}")
    print(f"header_cost: {len(headers)} headers, {len(heavy)} above their limit")
    return 1 if heavy else 0


if __name__ == "__main__":
    sys.exit(main())
