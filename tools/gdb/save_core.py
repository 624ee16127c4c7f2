# --- save_core.py: core files that have the stacks of all goroutines.
#
# generate-core-file reads a mapping in pieces of 1 MiB, and drops the rest of the mapping at the first piece that it
# cannot read completely (gdb 13: gcore_copy_callback). The stacks of goroutines lie side by side in one mapping, and
# each has a guard of 64 KiB that cannot be read: so it drops all of them, and writes zeros. Where they have mappings of
# their own, it writes each of them in full, although only some pages of a stack are in use.
#
# The kernel does neither when a program crashes, and neither does this. gdb writes a core file without memory, for the
# threads' registers and the other notes; the pages that the process has are added to it, as the kernel says in
# /proc/PID/pagemap which they are. The file has holes for all others.
import array
import os
import tempfile

GOFER_PAGE = os.sysconf("SC_PAGE_SIZE")
GOFER_ELF = struct.Struct("<16sHHIQQQIHHHHHH")
GOFER_SEGMENT = struct.Struct("<IIQQQQQQ")
GOFER_SECTION = struct.Struct("<IIQQQQIIQQ")
GOFER_PT_LOAD, GOFER_PT_NOTE, GOFER_PN_XNUM = 1, 4, 0xffff


class GoferMapping:
    def __init__(self, line):
        fields = line.split(None, 5)
        self.begin, self.end = (int(word, 16) for word in fields[0].split("-"))
        self.flags = sum(bit for letter, bit in zip(fields[1], (4, 2, 1)) if letter != "-")
        self.is_shared = fields[1][3] == "s"
        self.offset, self.inode = int(fields[2], 16), int(fields[4])
        self.name = fields[5].strip() if len(fields) > 5 else ""
        self.runs = []

    def find_runs(self, pagemap, memory):
        """The pages to be saved, as [begin, end). Those of a file that nobody has changed are in the file."""
        if self.flags & 4 == 0 or self.name in ("[vvar]", "[vvar_vclock]", "[vsyscall]") or self.name.startswith("/dev/"):
            return
        if self.name == "[vdso]":
            self.runs = [(self.begin, self.end)]
            return
        in_memory_only = self.inode == 0 or self.name.endswith("(deleted)") or self.name.startswith("/memfd:")
        wanted = {2, 4, 6, 3, 5, 7} if in_memory_only else {2, 4, 6}  # swapped, present; odd: of a file, or shared
        guard = 1 << 58
        at = self.begin
        while at < self.end:
            count = min((self.end - at) // GOFER_PAGE, 1 << 16)
            words = array.array("Q", os.pread(pagemap, count * 8, at // GOFER_PAGE * 8))
            if not words:
                break
            if any(words):
                for i, word in enumerate(words):
                    if word >> 61 in wanted and not word & guard:
                        page = at + i * GOFER_PAGE
                        if self.runs and self.runs[-1][1] == page:
                            self.runs[-1] = (self.runs[-1][0], page + GOFER_PAGE)
                        else:
                            self.runs.append((page, page + GOFER_PAGE))
            at += len(words) * GOFER_PAGE
        # The header of a program or library tells gdb which one it was.
        if self.offset == 0 and self.inode and not (self.runs and self.runs[0][0] == self.begin):
            try:
                if os.pread(memory, 4, self.begin) == b"\x7fELF":
                    self.runs.insert(0, (self.begin, self.begin + GOFER_PAGE))
            except OSError:
                pass

    def bounds(self):
        return self.runs[0][0], self.runs[-1][1]


def gofer_notes(pid):
    """The notes of a core file, without memory: gdb leaves out what /proc/PID/coredump_filter says."""
    path = "/proc/%d/coredump_filter" % pid
    with open(path) as file:
        before = file.read().strip()
    handle, name = tempfile.mkstemp(prefix="gofer-core-")
    os.close(handle)
    try:
        with open(path, "w") as file:
            file.write("0")
        GoferCoreWarning.is_off = True
        gdb.execute("generate-core-file " + name, to_string=True)
        with open(name, "rb") as file:
            header = GOFER_ELF.unpack(file.read(GOFER_ELF.size))
            file.seek(header[5])
            for _ in range(header[10]):
                kind, _, offset, _, _, size, _, _ = GOFER_SEGMENT.unpack(file.read(GOFER_SEGMENT.size))
                if kind == GOFER_PT_NOTE:
                    file.seek(offset)
                    return header, file.read(size)
        raise gdb.GdbError("gdb has written a core file without notes")
    finally:
        GoferCoreWarning.is_off = False
        with open(path, "w") as file:
            file.write("0x" + before)
        os.unlink(name)


def gofer_copy_run(memory, file, begin, end, offset):
    """False: a part could not be read, such as a guard; it becomes a hole."""
    complete, step = True, 1 << 20
    while begin < end:
        size = min(step, end - begin)
        try:
            data = os.pread(memory, size, begin)
        except OSError:
            data = b""
        if data:
            file.seek(offset)
            file.write(data)
            begin, offset = begin + len(data), offset + len(data)
        elif size > GOFER_PAGE:
            step = GOFER_PAGE  # what of it can be read?
        else:
            complete = False
            begin, offset = begin + GOFER_PAGE, offset + GOFER_PAGE
    return complete


def gofer_write_core(path, header, notes, mappings, memory):
    """The parts of the file, in order: header, segments, a section if there are too many segments, notes, memory."""
    mappings = [m for m in mappings if m.runs]
    count = 1 + len(mappings)
    many = count >= GOFER_PN_XNUM
    sections_at = GOFER_ELF.size + count * GOFER_SEGMENT.size
    notes_at = sections_at + (GOFER_SECTION.size if many else 0)
    at = (notes_at + len(notes) + GOFER_PAGE - 1) // GOFER_PAGE * GOFER_PAGE
    segments = [(GOFER_PT_NOTE, 0, notes_at, 0, 0, len(notes), 0, 4)]
    for m in mappings:
        begin, end = m.bounds()
        segments.append((GOFER_PT_LOAD, m.flags, at, begin, 0, end - begin, end - begin, GOFER_PAGE))
        at += end - begin
    fields = list(header)
    fields[5], fields[6] = GOFER_ELF.size, sections_at if many else 0
    fields[9:14] = [GOFER_SEGMENT.size, GOFER_PN_XNUM if many else count, GOFER_SECTION.size if many else 0, int(many), 0]
    with open(path, "wb") as file:
        file.write(GOFER_ELF.pack(*fields))
        for segment in segments:
            file.write(GOFER_SEGMENT.pack(*segment))
        if many:
            file.write(GOFER_SECTION.pack(0, 0, 0, 0, 0, 1, 0, count, 0, 0))
        file.write(notes)
        for m, segment in zip(mappings, segments[1:]):
            for begin, end in m.runs:
                gofer_copy_run(memory, file, begin, end, segment[2] + begin - segment[3])
        file.truncate(at)


def gofer_save_core(path):
    inferior = gdb.selected_inferior()
    if not path:
        raise gdb.GdbError("goroutine save-core FILE")
    connection = getattr(inferior, "connection", None)  # gdb 12
    if connection is None or connection.type != "native" or inferior.pid == 0:
        raise gdb.GdbError("there is no process on this machine to be saved")
    proc = "/proc/%d/" % inferior.pid
    memory, pagemap = os.open(proc + "mem", os.O_RDONLY), os.open(proc + "pagemap", os.O_RDONLY)
    try:
        with open(proc + "maps") as file:
            mappings = [GoferMapping(line) for line in file]
        for m in mappings:
            m.find_runs(pagemap, memory)
        header, notes = gofer_notes(inferior.pid)
        path = os.path.expanduser(path)
        gofer_write_core(path, header, notes, mappings, memory)
    finally:
        os.close(memory)
        os.close(pagemap)
    saved = sum(end - begin for m in mappings for begin, end in m.runs)
    print("Saved corefile %s: %.1f MB of memory, with the stacks of %d goroutines"
          % (path, saved / 1e6, sum(1 for g in GoferState.goroutines() if g.head)))


class GoferCoreWarning(gdb.Command):
    """What the hook of generate-core-file prints."""
    is_off = False

    def __init__(self):
        super().__init__("gofer-warn-of-core", gdb.COMMAND_OBSCURE)

    def invoke(self, argument, from_tty):
        try:
            table = gofer_table("goroutines")
        except gdb.GdbError:
            return
        if not self.is_off and gofer_word(table["records.slabs"]) != 0:
            print("warning: generate-core-file may leave out the stacks of goroutines, and writes the unused part of "
                  "others.\nUse this instead: goroutine save-core FILE")


GoferCoreWarning()
gdb.execute("define hook-generate-core-file\ngofer-warn-of-core\nend")
gdb.execute("define hookpost-thread\npython gofer_unwinder.release()\nend")
