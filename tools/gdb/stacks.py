# --- stacks.py: the frames of a goroutine that no thread runs.
#
# While such a goroutine is selected, an unwinder tells gdb that the innermost frame of the selected thread was called by
# the goroutine's innermost frame, with the registers that gofer_switch has left on its stack. So all commands that
# look at frames work in it, and no register is written. Frame 0 stays the thread's; a frame filter hides it from bt.

GOFER_ALL_ONES = (1 << 64) - 1


def gofer_register(frame, name):
    return int(frame.read_register(name)) & GOFER_ALL_ONES


class GoferFrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class GoferUnwinder(gdb.unwinder.Unwinder):
    def __init__(self):
        super().__init__("gofer")
        self.registers = None  # of the goroutine that is selected
        self.goroutine = 0     # its number, or 0: only a stack is looked at
        self.at = None         # the frame that seems to be called by it
        self.names = None

    def place(self, frame):
        return gdb.selected_thread().ptid, gofer_register(frame, self.names["sp"]), \
            gofer_register(frame, self.names["pc"])

    # gdb calls this while it unwinds. Whatever makes it unwind, such as the evaluation of an expression, must not be
    # called from here.
    def __call__(self, frame):
        if self.registers is None or self.place(frame) != self.at:
            return None
        # gdb stops at a stack whose next frame is further down. So the thread's frame gets a place below the goroutine's.
        caller = frame.create_unwind_info(GoferFrameId(self.registers[self.names["sp"]] - 8,
                                                       frame.read_register(self.names["pc"])))
        for name, value in self.registers.items():
            caller.add_saved_register(name, value.cast(frame.read_register(name).type))
        return caller

    def select(self, registers, goroutine=0):
        """Selects the innermost frame of a stack with these registers, and returns it."""
        self.release()
        if gdb.selected_thread() is None:
            raise gdb.GdbError("the program does not run, and there is no core file")
        self.names = gofer_register_names()
        word = gdb.lookup_type("unsigned long")
        values = {name: gdb.Value(value).cast(word) for name, value in registers.items()}
        self.at = self.place(gdb.newest_frame())
        self.registers, self.goroutine = values, goroutine
        gdb.invalidate_cached_frames()
        frame = gdb.newest_frame()
        while frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
        frame = frame.older()
        if frame is None:
            self.release()
            raise gdb.GdbError("gdb cannot unwind this stack")
        frame.select()
        return frame

    def selection(self):
        return self.registers, self.goroutine, self.at

    def restore(self, selection):
        if self.registers is not selection[0]:
            self.registers, self.goroutine, self.at = selection
            gdb.invalidate_cached_frames()

    def release(self, *_):
        self.restore((None, 0, None))


class GoferFrameFilter:
    def __init__(self):
        self.name, self.priority, self.enabled = "gofer", 100, True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        frames = iter(frames)
        if gofer_unwinder.registers is not None:
            while (first := next(frames, None)) is not None and first.inferior_frame().type() == gdb.INLINE_FRAME:
                pass  # the thread's own frame, with the calls inlined into it
        return frames


def gofer_register_names():
    table = gofer_table("registers")
    if hasattr(table, "names"):
        return table.names
    names = table.names = {"registers": {}}
    for entry, number in table.items():
        kind, name = entry.split(":")
        if kind == "sp":
            names["sp"], names["size"] = name, number
        else:
            names["registers"][name] = number
    names["pc"] = "rip" if "rip" in names["registers"] else "pc"
    return names


def gofer_saved_registers(g):
    """What gofer_switch has left on the stack of g."""
    names = gofer_register_names()
    frame = gofer_read(g.sp, names["size"])
    registers = {name: int.from_bytes(frame[at:at + 8], "little") for name, at in names["registers"].items()}
    registers[names["sp"]] = g.sp + names["size"]
    return registers


def gofer_thread_of(g):
    """The thread on which the frames of g are, or None if its registers are saved. At a switch, a goroutine has a
    thread that is not on its stack any more, or not yet."""
    m = g.holder()
    thread = m.thread() if m else None
    if thread is None:
        return None
    before = gdb.selected_thread()
    thread.switch()
    sp = gofer_register(gdb.newest_frame(), gofer_register_names()["sp"])
    if before is not None:
        before.switch()
    if g.is_on(sp) or m.signal_stack <= sp < m.signal_stack + m.signal_stack_size:
        return thread
    own_stack = 1 << 20
    elsewhere = 0 < m.base - sp < own_stack or any(other.is_on(sp) for other in g.all)
    return None if elsewhere and g.sp else thread


class GoferFunction:
    """A function at a return address; each call that is inlined there is one. `rank`: 0 if it is the program's, 1 if it
    is a call of the library's or of std's that the program makes, 2 if it is inside of the library."""
    INSIDE = ("gofer::internal::", "gofer::detail::", "gofer_")
    OTHERS = ("gofer::", "std::", "__")

    def __init__(self, name, place):
        self.name = gofer_short_name(name or "?")
        self.place = place
        self.rank = 2 if name is None or name.startswith("??") or self.name.startswith(self.INSIDE) else int(self.name.startswith(self.OTHERS))

    def __str__(self):
        return self.name + (" at " + self.place if self.place else "")


def gofer_short_name(name):
    """Without arguments, and without the operator() of lambdas, as in the library's reports."""
    name = re.sub(r"\{lambda\((?:[^()]|\([^()]*\))*\)#?\d*\}", "{lambda}", name)
    name = re.sub(r"::(?:operator\(\)|_FUN)\((?:[^()]|\([^()]*\))*\)( const)?", "", name)
    name = re.sub(r"\((?!anonymous namespace\))(?:[^()]|\([^()]*\))*\)( const)?", "", name)
    return re.sub(r"^(?:void|bool) (?=\w)", "", name)


def gofer_name_of(frame):
    """gdb calls every lambda `operator()': the linker's name says where it is."""
    name, symbol = frame.name(), frame.function()
    if name in ("operator()", "_FUN") and symbol is not None and symbol.linkage_name.startswith("_Z"):
        return gdb.execute("demangle -- " + symbol.linkage_name, to_string=True).strip()
    return name


def gofer_shown(functions):
    """Those that say what a goroutine does: the program's, else what the program has called."""
    for rank in (0, 1):
        if found := [f for f in functions if f.rank == rank]:
            return found
    return functions[-3:-2] or functions[-1:]  # what gofer_main has called


def gofer_functions_of(frames):
    """frames: the frame of a function and, before it, the calls inlined into it, the innermost first."""
    functions = []
    for frame in frames:
        sal = frame.find_sal()
        place = "%s:%d" % (sal.symtab.filename.rsplit("/", 1)[-1], sal.line) if sal.symtab else ""
        name = gofer_name_of(frame)
        if name is None and (library := gdb.solib_name(frame.pc())):
            name = "?? in " + library.rsplit("/", 1)[-1]
        functions.append(GoferFunction(name, place))
    return functions


class GoferStacks:
    """The return addresses on the stacks of parked goroutines, fast.

    gdb unwinds some hundred stacks a second. But at one return address the frame of a function has always the same
    size, unless it uses alloca. So what gdb finds once is kept, by address, and other stacks are walked with that. The
    sizes must add up to the whole stack exactly; if they do not, gdb unwinds that stack, too."""

    def __init__(self):
        self.sizes = {}      # by return address; None: not always the same
        self.functions = {}  # by return address
        self.by_gdb = 0      # how many stacks gdb has unwound
        names = gofer_register_names()
        self.size, self.pc_at = names["size"], names["registers"][names["pc"]]
        self.sp_name, self.pc_name = names["sp"], names["pc"]

    def walk(self, g):
        """The return addresses of a goroutine that no thread runs, the innermost first. Empty: it has not begun."""
        if g.head == 0 or not g.sp:
            return ()
        try:
            found = self.walk_fast(g)
            if found is None:
                with gofer_selection(gofer_saved_registers(g)) as frame:
                    found = self.learn(g, frame)
        except (gdb.MemoryError, gdb.error):
            return ()
        return found if len(found) > 1 else ()

    def walk_fast(self, g):
        """None: gdb has to do it."""
        memory, part = gdb.selected_inferior(), 2048
        begin, head, sizes = g.sp, g.head, self.sizes
        data = memory.read_memory(begin, min(part, head - begin)).tobytes()
        at = begin + self.size
        pc = int.from_bytes(data[self.pc_at:self.pc_at + 8], "little")
        pcs = []
        while True:
            pcs.append(pc)
            if at == head:
                return tuple(pcs)
            size = sizes.get(pc)
            if size is None or at + size > head:
                return None
            at += size
            if at - begin > len(data):
                data += memory.read_memory(begin + len(data), min(at - begin + part, head - begin) - len(data)).tobytes()
            pc = int.from_bytes(data[at - begin - 8:at - begin], "little")

    def learn(self, g, frame):
        """The same by gdb, from the innermost frame on."""
        self.by_gdb += 1
        pcs, inlined = [], []
        while frame is not None:
            inlined.append(frame)
            if frame.type() == gdb.TAILCALL_FRAME:  # gdb's guess of what called and left no frame
                inlined = []
            elif frame.type() != gdb.INLINE_FRAME:
                pc, at = frame.pc(), gofer_register(frame, self.sp_name)
                older = frame.older()
                end = gofer_register(older, self.sp_name) if older else g.head if g else at
                if pc not in self.functions:
                    self.functions[pc] = gofer_functions_of(inlined)
                if end > at and self.sizes.setdefault(pc, end - at) != end - at:
                    self.sizes[pc] = None
                pcs.append(pc)
                inlined = []
            frame = frame.older()
        return tuple(pcs)

    def functions_at(self, pc):
        """What is at a return address, by the same means: gdb is told that a stack has it."""
        if pc not in self.functions:
            found = []
            try:
                with gofer_selection({self.pc_name: pc, self.sp_name: gofer_word_aligned_sp()}) as frame:
                    inlined = [frame]
                    while inlined[-1].type() == gdb.INLINE_FRAME and inlined[-1].older() is not None:
                        inlined.append(inlined[-1].older())
                    found = gofer_functions_of(inlined)
            except (gdb.error, gdb.MemoryError):
                pass
            self.functions[pc] = found
        return self.functions[pc]

    def on_thread(self, thread):
        """The return addresses on a thread's stack."""
        before = gdb.selected_thread()
        thread.switch()
        try:
            return self.learn(None, gdb.newest_frame())
        except gdb.error:
            return ()
        finally:
            if before is not None:
                before.switch()


def gofer_word_aligned_sp():
    return gofer_register(gdb.newest_frame(), gofer_register_names()["sp"])


class gofer_selection:
    """with gofer_selection(registers) as frame: that stack is selected, and what was selected before is so afterwards."""

    def __init__(self, registers):
        self.registers = registers

    def __enter__(self):
        self.before = gofer_unwinder.selection()
        return gofer_unwinder.select(self.registers)

    def __exit__(self, *_):
        gofer_unwinder.restore(self.before)


gofer_unwinder = GoferUnwinder()
gdb.unwinder.register_unwinder(None, gofer_unwinder, True)
GoferFrameFilter()
gdb.events.cont.connect(gofer_unwinder.release)
gdb.events.exited.connect(gofer_unwinder.release)
