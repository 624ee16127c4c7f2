#!/usr/bin/env python3
"""Keeps docs/DEBUGGING.md true: the programs that it shows are these files, and print what it shows.
transcript.py PAGE SOURCE SIGNAL PROGRAM: the page has a link to SOURCE, then its text as a C++ block, and then a block of
text, which is what PROGRAM writes to stderr before SIGNAL ends it. Addresses, offsets and folders may differ."""

import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

PATIENCE = 120  # seconds


def normal(text):
    text = re.sub(r"0x[0-9a-f]+", "0x?", text)
    text = re.sub(r"^\t.*/", "\t", text, flags=re.MULTILINE)
    return re.sub(r" \+0x\?$", "", text, flags=re.MULTILINE)


def main(page, source, number, *command):
    source = Path(source)
    shown = re.search(rf"\]\([./\w]*/{re.escape(source.name)}\).*?^```cpp\n(.*?)^```\n.*?^```text\n(.*?)^```$",
                      Path(page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert shown, f"the page does not show {source.name}"
    assert shown[1] == source.read_text(encoding="utf-8"), f"the page shows another text of {source.name}"
    program = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    assert program.returncode == -signal.Signals[number], f"status {program.returncode}: {program.stderr}"
    assert normal(program.stderr) == normal(shown[2]), f"printed\n{program.stderr}\nthe page has\n{shown[2]}"


if __name__ == "__main__":
    main(*sys.argv[1:])
