# gdb support for Gofer (https://sourceware.org/gdb): goroutines in gdb, in live processes and in core files.
#
#   info goroutines [-g|-l] [TEXT]    lists them; -g groups equal stacks, -l does not; TEXT: only lines that contain it
#   goroutine N [COMMAND]             runs a gdb command in a goroutine, or selects it
#   goroutine all [COMMAND]           the same for all of them; the default is bt
#   goroutine none                    back to the thread
#   goroutine save-core FILE          writes a core file that has the stacks of all goroutines
#   $_goroutine()                     the number of the goroutine that is selected or that the thread runs
#
# and printers for chan, mutex, rw_mutex, wait_group, semaphore, cond, context, future and timer. docs/DEBUGGING.md has
# examples.
#
# The library needs no debug information: it exports tables of the places of its fields (src/runtime/base/debug_table.h).
# Nothing here writes to a register or to the memory of the program.
#
# This file is made from tools/gdb/*.py, joined in the order of cmake/GoferGdb.cmake.
#
# --- tables.py: the library's tables, and its memory.
import re
import struct
import time

import gdb
import gdb.printing
import gdb.unwinder

GOFER_ENTRY = struct.Struct("<32sQQ")  # DebugEntry
gofer_tables = {}                      # by address


def gofer_read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def gofer_word(address):
    return int.from_bytes(gofer_read(address, 8), "little")


def gofer_text(address, limit=256):
    """A string of the program's, which may end at the end of readable memory."""
    text = b""
    while len(text) < limit:
        try:
            part = gofer_read(address + len(text), 16 - (address + len(text)) % 16)
        except gdb.MemoryError:
            break
        text += part
        if 0 in part:
            break
    return text.split(b"\0")[0].decode("utf-8", "replace")


def gofer_table(name):
    """The entries of gofer_debug_<name>: a number, or the address of an object."""
    try:
        at = int(gdb.parse_and_eval("(unsigned long)&gofer_debug_" + name))
    except gdb.error:
        raise gdb.GdbError("no Gofer runtime is loaded: there is no symbol gofer_debug_%s (has the program been "
                           "started? stripped?)" % name) from None
    table = gofer_tables.get(at)
    if table is None:
        table = GoferTable(name)
        place = at
        while True:
            entry, value, obj = GOFER_ENTRY.unpack(gofer_read(place, GOFER_ENTRY.size))
            if entry[0] == 0:
                break
            table[entry.split(b"\0")[0].decode()] = obj or value
            place += GOFER_ENTRY.size
        gofer_tables[at] = table
    return table


class GoferTable(dict):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def __missing__(self, entry):
        raise gdb.GdbError("gofer_debug_%s has no entry %s: this script is for another version of the library"
                           % (self.name, entry))

    def reader(self, type_name, fields, size=None):
        """A struct.Struct of these fields, {name: format}, in the order of their offsets, and the order of the names."""
        at, code, order = 0, "<", []
        for place, field in sorted((self[type_name + "." + f], f) for f in fields):
            code += "%dx%s" % (place - at, fields[field])
            at = place + struct.calcsize("<" + fields[field])
            order.append(field)
        if size is not None:
            code += "%dx" % (size - at)
        return struct.Struct(code), order


def gofer_numbered(prefix):
    """{number: text} of the states or of the reasons to wait."""
    return {number: name[len(prefix):] for name, number in gofer_table("states").items() if name.startswith(prefix)}
