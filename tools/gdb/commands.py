# --- commands.py: info goroutines, goroutine, $_goroutine().

GOFER_GROUPS_FROM = 100  # goroutines: more are grouped unless -l is given


class GoferState:
    """What may be kept as long as the program does not go on, and as long as its code stays the same."""
    snapshot = None
    stacks = None

    @classmethod
    def goroutines(cls):
        if cls.snapshot is None:
            cls.snapshot = GoferSnapshot()
        return cls.snapshot

    @classmethod
    def walker(cls):
        if cls.stacks is None:
            cls.stacks = GoferStacks()
        return cls.stacks

    @classmethod
    def runs(cls, *_):
        cls.snapshot = None

    @classmethod
    def other_code(cls, *_):
        cls.snapshot = cls.stacks = None
        gofer_tables.clear()


for gofer_event in ("cont", "memory_changed"):
    getattr(gdb.events, gofer_event).connect(GoferState.runs)
for gofer_event in ("exited", "new_objfile", "clear_objfiles"):
    getattr(gdb.events, gofer_event).connect(GoferState.other_code)


class GoferLine:
    """What the list says of one goroutine."""

    def __init__(self, g):
        stacks = GoferState.walker()
        self.g, self.state = g, g.title()
        thread = gofer_thread_of(g) if g.holder() else None
        self.pcs = stacks.on_thread(thread) if thread else stacks.walk(g)
        functions = [f for pc in self.pcs for f in stacks.functions.get(pc, ())]
        if not self.pcs and g.head and g.sp is None:
            self.function = "(its stack is not in the core file)"
        elif not self.pcs:
            self.function = "(has not begun)"
        else:
            self.function = str((gofer_shown(functions) or ["?"])[0])

    def created(self):
        if self.g.create_pc == 0:
            return ""
        functions = GoferState.walker().functions_at(self.g.create_pc)
        by = " in goroutine %d" % self.g.parent_id if self.g.parent_id else ""
        return ", created by %s%s" % ((gofer_shown(functions) or ["0x%x" % self.g.create_pc])[0], by)

    def __str__(self):
        return "%s %s%s" % (self.state, self.function, self.created())


class GoferInfoGoroutines(gdb.Command):
    """List the goroutines of a program that uses Gofer.
Usage: info goroutines [-g | -l] [TEXT]
Each line has the number and the name of a goroutine, what it does or waits for, the innermost function of the
program on its stack, and what has created it.
-g prints groups of goroutines with equal stacks, which is the default if there are more than 100; -l prints a line for
each of them. With TEXT only the lines that contain it count."""

    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        words = argument.split(None, 1)
        option = words.pop(0) if words and words[0] in ("-g", "-l") else None
        text = " ".join(words)
        with gofer_keeping_place():
            snapshot = GoferState.goroutines()
            lines = [line for g in snapshot if text in str(line := GoferLine(g))]
        if option == "-g" or (option is None and len(lines) > GOFER_GROUPS_FROM):
            gofer_print_groups(lines)
        else:
            here = gofer_selected_goroutine()
            for line in lines:
                print(("* " if line.g.id == here else "  ") + str(line))
        print("%d goroutine%s" % (len(lines), "" if len(lines) == 1 else "s"))


def gofer_print_groups(lines):
    groups = {}
    for line in lines:
        groups.setdefault((line.g.state(), line.pcs, line.function), []).append(line)
    stacks = GoferState.walker()
    for (state, pcs, function), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        numbers = ", ".join(str(line.g.id) for line in members[:8]) + (", ..." if len(members) > 8 else "")
        print("%d goroutine%s [%s]: %s" % (len(members), "" if len(members) == 1 else "s", state, numbers))
        functions = [f for pc in pcs for f in stacks.functions.get(pc, ())]
        for f in gofer_shown(functions) or [function]:
            print("    %s" % f)
        print("   %s" % (members[0].created()[1:] or " created by the runtime"))


class gofer_keeping_place:
    """The selected thread and frame, and the goroutine, are afterwards what they were."""

    def __enter__(self):
        gofer_table("goroutines")  # or says that there is no runtime
        self.thread = gdb.selected_thread()
        if self.thread is None:
            raise gdb.GdbError("the program does not run, and there is no core file")
        self.level = gdb.selected_frame().level()
        self.selection = gofer_unwinder.selection()

    def __exit__(self, *_):
        if self.thread.is_valid():
            self.thread.switch()
        gofer_unwinder.restore(self.selection)
        frame = gdb.newest_frame()
        while frame is not None and frame.level() != self.level:
            frame = frame.older()
        if frame is not None:
            frame.select()


def gofer_selected_goroutine():
    """Its number; 0: the thread does not run one."""
    if gdb.selected_thread() is None:
        return 0
    if gofer_unwinder.goroutine:
        return gofer_unwinder.goroutine
    with gofer_keeping_place():
        g = GoferState.goroutines().on_thread(gdb.selected_thread())
    return g.id if g else 0


def gofer_enter(g):
    """Selects the innermost frame of a goroutine."""
    thread = gofer_thread_of(g) if g.holder() else None
    gofer_unwinder.release()
    if thread is not None:
        thread.switch()
        gdb.newest_frame().select()
    elif g.sp is None:
        raise gdb.GdbError("the stack of goroutine %d is not in the core file" % g.id)
    elif g.head == 0 or not GoferState.walker().walk(g):
        raise gdb.GdbError("goroutine %d has not begun to run" % g.id)
    else:
        gofer_unwinder.select(gofer_saved_registers(g), g.id)


class GoferGoroutine(gdb.Command):
    """Run a command in a goroutine, or select it.
Usage: goroutine N|all [COMMAND]
       goroutine none
       goroutine save-core FILE
COMMAND is any command of gdb that looks at frames: bt, frame 3, info locals, up, print x. Without it, `goroutine N'
selects the goroutine until the program goes on, or until `goroutine none'; and `goroutine all' prints all backtraces.
While a goroutine is selected that no thread runs, frame 0 is still the thread's, and bt begins with frame 1.
save-core writes a core file that has the stacks of all goroutines; that of generate-core-file may lack them."""

    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND)

    def invoke(self, argument, from_tty):
        words = argument.split(None, 1)
        if not words:
            number = gofer_selected_goroutine()
            print(GoferState.goroutines().find(number).title() if number else "this thread does not run a goroutine")
        elif words[0] == "none":
            gofer_unwinder.release()
        elif words[0] == "save-core":
            gofer_save_core(words[1] if len(words) > 1 else None)
        elif words[0] == "all":
            self.run_in_all(words[1] if len(words) > 1 else "bt")
        elif len(words) > 1:
            g = GoferState.goroutines().find(words[0])
            with gofer_keeping_place():
                self.run_in(g, words[1])
        else:
            g = GoferState.goroutines().find(words[0])
            gofer_enter(g)
            print(g.title() + ":")
            gdb.execute("frame", from_tty)

    def run_in(self, g, command):
        print(g.title() + ":")
        gofer_enter(g)
        gdb.execute(command)

    def run_in_all(self, command):
        with gofer_keeping_place():
            for g in GoferState.goroutines():
                try:
                    self.run_in(g, command)
                except gdb.error as error:
                    print("  %s" % error)


class GoferGoroutineFunction(gdb.Function):
    """$_goroutine(): the number of the goroutine that is selected, or that the selected thread runs; 0: none.
For conditions: break f if $_goroutine() == 5"""

    def __init__(self):
        super().__init__("_goroutine")

    def invoke(self):
        return gofer_selected_goroutine()


GoferInfoGoroutines()
GoferGoroutine()
GoferGoroutineFunction()
# The runtime preempts goroutines by SIGURG.
gdb.execute("handle SIGURG nostop noprint pass", to_string=True)
