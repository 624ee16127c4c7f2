#!/usr/bin/env python3
"""docs/DEBUGGING.md and the programs in examples/debugging.
debugging.py PAGE hang COMMAND…: runs the program until it hangs, sends it SIGUSR2 and SIGQUIT, and compares what it
prints with the page.
debugging.py PAGE leak COMMAND…: compares what the program prints with the page.
Addresses, offsets, the folders of the sources, and the lines in the library's may differ."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 120  # seconds


def transcript(page, program, number):
    """The text blocks that follow the link to the program."""
    text = Path(page).read_text(encoding="utf-8")
    section = text.split(f"](../examples/debugging/{program}.cc)", 1)[1]
    return re.findall(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[number]


def plain(text):
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r" m=\d+", " m=…", text)
    text = re.sub(r"^\t\S*?((include/gofer|src|examples)/)", r"\t\1", text, flags=re.MULTILINE)
    text = re.sub(r"^(\t(?:include|src)/.*):\d+", r"\1:…", text, flags=re.MULTILINE)
    return "\n".join(line for line in text.splitlines() if not line.startswith("$")).strip().removeprefix("^\\")


def read_until(stream, end):
    text = b""
    while not end(text):
        part = os.read(stream.fileno(), 65536)
        assert part, f"the program ended; it printed {text.decode()!r}"
        text += part
    return text.decode()


def catches(pid, number):
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"^SigCgt:\t(\w+)$", status, re.MULTILINE)[1], 16) >> (number - 1) & 1


def hang(page, *command):
    environment = os.environ | {"GOFER_DEBUG": "dumpsignal=USR2"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as program:
        try:
            end = time.monotonic() + PATIENCE
            while not (catches(program.pid, signal.SIGUSR2) and catches(program.pid, signal.SIGQUIT)):
                assert time.monotonic() < end, "the runtime does not start"
                time.sleep(0.01)
            while True:
                assert time.monotonic() < end, "it does not hang"
                program.send_signal(signal.SIGUSR2)
                dump = read_until(program.stderr, lambda text: text.count(b"created by") == 3 and text.endswith(b"\n"))
                if dump.count("[sync.Mutex.Lock]") == 2:
                    break
            program.send_signal(signal.SIGQUIT)
            report = program.stderr.read().decode()
            assert program.wait(PATIENCE) == 2, program.returncode
        finally:
            program.kill()
    expected = plain(transcript(page, "hang", 0))
    assert plain(report) == expected, f"printed\n{plain(report)}\nThe page has\n{expected}"


def leak(page, *command):
    printed = plain(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE, check=True).stdout)
    expected = plain(transcript(page, "leak", 0))
    assert printed == expected, f"printed\n{printed}\nThe page has\n{expected}"


if __name__ == "__main__":
    {"hang": hang, "leak": leak}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
