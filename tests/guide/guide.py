#!/usr/bin/env python3
"""docs/GUIDE.md and the programs in examples/guide, which it shows with what they print.
guide.py check PAGE FOLDER: fails unless the page shows every program of FOLDER, as it stands, and no other.
guide.py update PAGE FOLDER: puts the programs as they are now into the page.
guide.py run PAGE NAME COMMAND…: runs the program NAME and compares its output with the page."""

import re
import subprocess
import sys
from pathlib import Path

PATIENCE = 240  # seconds

# A link to the program, its text, and its output.
RECIPE = re.compile(r"^\[examples/guide/(\w+)\.cc\]\(\.\./examples/guide/\1\.cc\):\n\n```cpp\n(.*?)^```\n"
                    r"\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(path):
    return Path(path).read_text(encoding="utf-8")


def recipes(page):
    found = RECIPE.findall(read(page))
    text = read(page)
    assert len(found) == len(re.findall(r"^```cpp$", text, re.MULTILINE)), "a C++ block that is no recipe's"
    shown = {name: (code, output) for name, code, output in found}
    assert len(shown) == len(found), "a program is shown twice"
    return shown


def check(page, folder):
    shown = recipes(page)
    programs = {path.stem: read(path) for path in Path(folder).glob("*.cc")}
    assert programs, f"no programs in {folder}"
    assert shown.keys() == programs.keys(), f"only in one of page and folder: {shown.keys() ^ programs.keys()}"
    other = [name for name, code in programs.items() if shown[name][0] != code]
    assert not other, f"the page shows another text of {other}; `guide.py update` puts the programs into the page"
    print(f"{len(programs)} programs, as they stand")


def update(page, folder):
    def with_program(match):
        begin, end = match.start(2) - match.start(), match.end(2) - match.start()
        return match[0][:begin] + read(Path(folder, match[1] + ".cc")) + match[0][end:]

    Path(page).write_text(RECIPE.sub(with_program, read(page)), encoding="utf-8")


def run(page, name, *command):
    expected = recipes(page)[name][1]
    program = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert program.returncode == 0, f"status {program.returncode} after: {program.stdout!r}"
    assert program.stdout == expected, f"printed {program.stdout!r}; the page has {expected!r}"


if __name__ == "__main__":
    {"check": check, "update": update, "run": run}[sys.argv[1]](*sys.argv[2:])
