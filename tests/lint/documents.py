"""What documents say about functions, compared with the source.

  - docs/ARCHITECTURE.md has a table and a picture of the states of goroutines, Ps and Ms. Their functions are those of
    the files transitions.h, one for one; those that change no state are listed below the table.
  - A function that ARCHITECTURE names together with its file, as `f` (`x.cc`) or `f` in `x.cc`, is there; so are the
    functions of the tables that map the models to the source.
"""

import re
from collections import Counter
from pathlib import Path

ARCHITECTURE = Path("docs/ARCHITECTURE.md")
MODELS = Path("tests/model/README.md")
# The heading of each table, and the file that has its functions. The picture is the fenced block before the table.
TABLES = {
    "| from | to | when | function |": Path("src/runtime/goroutines/transitions.h"),
    "| a P is | and then | when | function |": Path("src/runtime/procs/transitions.h"),
    "| an M is | and then | when | function |": Path("src/runtime/threads/transitions.h"),
}
NO_CHANGE = "No change of state:"

TRANSITION = re.compile(r"^(?:\[\[nodiscard\]\] )?inline (?:void|bool|M\*) (\w+)\(", re.MULTILINE)
NAME = re.compile(r"`([\w:]+)`")
FILE = r"`([\w/.]+\.(?:cc|h|S))`"
PAIR = re.compile(r"((?:`[\w:]+`(?:,\s+|\s+and\s+))*`[\w:]+`)\s+(?:\(" + FILE + r"|in\s+" + FILE + ")")
MODEL_ROW = re.compile(r"^\|[^|]*\| (`[^|]*`[^|]*) \| ([^|]*\.(?:cc|h)[^|]*) \|$", re.MULTILINE)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def functions_of_table(rows):
    return Counter(name for row in rows for name in NAME.findall(row.rstrip(" |").rsplit("|", 1)[1]))


def check_tables(texts):
    page = texts[ARCHITECTURE]
    for heading, header in TABLES.items():
        at = page.find(heading)
        if at < 0:
            yield f"{ARCHITECTURE}: no table {heading}"
            continue
        table, _, rest = page[at:].partition("\n\n")
        listed = functions_of_table(table.split("\n")[2:])
        code = texts[header]
        code = code[max(code.find("namespace transition {"), 0):]
        real = set(TRANSITION.findall(code))
        below = rest.split("\n\n", 1)[0]
        unchanged = set(NAME.findall(below)) if below.startswith(NO_CHANGE) else set()
        for name in sorted(set(listed) - real):
            yield f"{ARCHITECTURE}:{line_of(page, at)}: {header} has no {name}"
        for name in sorted(real - set(listed) - unchanged):
            yield f"{header}: {name} is not in the table of {ARCHITECTURE}"
        for name in sorted(unchanged & set(listed) | unchanged - real):
            yield f"{ARCHITECTURE}: \"{NO_CHANGE}\" is wrong about {name}"
        picture = page[:at].rsplit("```", 2)[1]
        drawn = Counter(word for word in re.findall(r"\w+", picture) if word in real)
        for name in sorted(set(listed) | set(drawn)):
            if listed[name] != drawn[name]:
                yield (f"{ARCHITECTURE}:{line_of(page, at)}: {name} is {drawn[name]} times in the picture "
                       f"and {listed[name]} times in the table")


def declares(path, text, name):
    name = re.escape(name.rsplit("::", 1)[-1])
    if path.suffix == ".S":
        return re.search(rf"\b{name}\b", text)
    if re.search(rf"^ *(?:\w+ )?{name}::", text, re.MULTILINE):  # a class, where its functions are
        return True
    return re.search(rf"^ *(?!return |if |while |else )(?:[^\s()=;]+ )+[*&]?(?:\w+::)*{name}\(", text, re.MULTILINE)


def missing(texts, names, files):
    """The names that none of the files declares. A file may be given without its folders."""
    places = [p for p in texts if p.parts[0] in ("src", "include")
              and any(f"/{p.as_posix()}".endswith(f"/{f}") for f in files)]
    return [n for n in names if not any(declares(p, texts[p], n) for p in places)]


def check_places(texts):
    page = texts[ARCHITECTURE]
    for match in PAIR.finditer(page):
        file = match.group(2) or match.group(3)
        for name in missing(texts, NAME.findall(match.group(1)), [file]):
            yield f"{ARCHITECTURE}:{line_of(page, match.start())}: {file} has no function {name}"
    page = texts[MODELS]
    for match in MODEL_ROW.finditer(page):
        files = re.findall(r"`([\w/.]+\.(?:cc|h))`", match.group(2))
        for name in missing(texts, NAME.findall(match.group(1)), files):
            yield f"{MODELS}:{line_of(page, match.start())}: none of {', '.join(files)} has a function {name}"


def check_documents(texts):
    yield from check_tables(texts)
    yield from check_places(texts)
