# --- goroutines.py: the records of goroutines and of Ms, read in bulk.


class GoferM:
    FIELDS = {"id": "I", "tid": "i", "p": "Q", "p_word": "Q", "curg": "Q", "blocking_at": "Q", "base": "Q",
              "signal_stack": "Q", "signal_stack_size": "Q"}

    def __init__(self, address, values):
        self.address = address
        for name, value in values:
            setattr(self, name, value)

    def thread(self):
        """gdb's thread, or None: it has ended, or the core file does not have it."""
        for thread in gdb.selected_inferior().threads():
            if self.tid in thread.ptid[1:]:
                return thread
        return None

    def in_call(self):
        """As true_status in src/runtime/goroutines/status.cc: it has no P, or has announced that it blocks."""
        table = gofer_table("threads")
        if self.p == 0:
            return False
        word = gofer_word(self.p + table["P.word"])
        if word & ~table["PWord.state_mask"] | table["PWord.running"] != self.p_word:
            return True
        return self.blocking_at == gofer_word(self.p + table["P.switches"]) + 1


class GoferG:
    """One goroutine. What is in its stack's head is there only if it has a stack."""
    FIELDS = {"head": "Q", "status": "B", "wait_reason": "B", "stack_class": "B", "entry": "Q", "id": "Q",
              "parent_id": "Q", "create_pc": "Q", "name": "Q"}
    HEAD_FIELDS = {"sp": "Q", "m": "Q", "own_m": "Q", "locks": "i", "tied": "?"}
    __slots__ = ("address", "head", "status", "wait_reason", "stack_class", "entry", "id", "parent_id", "create_pc",
                 "name", "sp", "m", "own_m", "locks", "tied", "all")

    def holder(self):
        """The M on whose thread its frames are: it runs it, or it is paused or has lost its P there."""
        return self.all.ms.get(self.m or (self.own_m if self.tied else 0))

    def stack_low(self):
        return self.head & -(self.all.smallest_stack << self.stack_class)

    def is_on(self, sp):
        return self.head != 0 and self.stack_low() <= sp < self.head

    def state(self):
        status = self.all.statuses.get(self.status, "?")
        if status in ("waiting", "copystack"):
            text = self.all.reasons.get(self.wait_reason, "waiting")
        elif status == "running" and (m := self.holder()) and m.in_call():
            text = "syscall"
        else:
            text = status
        return text + (", locked to thread" if self.locks > 0 else "")

    def title(self):
        name = ' "%s"' % gofer_text(self.name) if self.name else ""
        m = self.holder()
        where = ", M%d, thread %d" % (m.id, m.tid) if m else ""
        return "goroutine %d%s [%s%s]" % (self.id, name, self.state(), where)


class GoferSnapshot:
    """All goroutines that there are: the program must be stopped, and the snapshot thrown away when it goes on."""

    def __init__(self):
        self.table = gofer_table("goroutines")
        self.statuses = gofer_numbered("status:")
        self.reasons = gofer_numbered("wait:")
        self.smallest_stack = self.table["smallest_stack"]
        self.mask = self.table["G.stack_class.mask"]
        self.ms = self.read_ms()
        self.goroutines = {g.id: g for g in self.read_all()}
        self.order = sorted(self.goroutines)

    def __iter__(self):
        return (self.goroutines[i] for i in self.order)

    def read_ms(self):
        table = gofer_table("threads")
        reader, order = table.reader("M", GoferM.FIELDS, table["sizeof(M)"])
        ms, at = {}, gofer_word(table["m_table"])
        if at == 0:
            return ms  # not started yet
        while True:
            at += 8
            address = gofer_word(at)
            if address == 0:
                return ms
            m = GoferM(address, zip(order, reader.unpack(gofer_read(address, reader.size))))
            ms[address] = m

    def read_all(self):
        used_at, next_at = self.table["Slab.used"], self.table["Slab.next"]
        size = self.table["sizeof(G)"]
        reader, order = self.table.reader("G", GoferG.FIELDS, size)
        head_reader, head_order = self.table.reader("StackHead", GoferG.HEAD_FIELDS)
        gone = {number for number, text in self.statuses.items() if text in ("idle", "dead")}
        memory = gdb.selected_inferior()
        slab = gofer_word(self.table["records.slabs"])
        while slab != 0:
            used = gofer_word(slab + used_at)
            first = slab + self.table["sizeof(Slab)"]
            for i, values in enumerate(reader.iter_unpack(gofer_read(first, used * size))):
                g = GoferG()
                for name, value in zip(order, values):
                    setattr(g, name, value)
                if g.status in gone or g.id == 0:
                    continue
                g.all, g.address = self, first + i * size
                g.stack_class &= self.mask
                g.sp = g.m = g.own_m = g.locks = 0
                g.tied = False
                if g.head != 0:
                    try:
                        data = memory.read_memory(g.head, head_reader.size)
                        for name, value in zip(head_order, head_reader.unpack(data)):
                            setattr(g, name, value)
                    except gdb.MemoryError:
                        g.sp = None
                    if not g.sp and not g.m and not g.own_m:
                        g.sp = None  # a core file without its stack
                yield g
            slab = gofer_word(slab + next_at)

    def find(self, text):
        try:
            return self.goroutines[int(text)]
        except (ValueError, KeyError):
            raise gdb.GdbError("there is no goroutine %s" % text) from None

    def on_thread(self, thread):
        """The goroutine that a thread runs, or None."""
        for m in self.ms.values():
            if m.tid in thread.ptid[1:] and m.tid != 0:
                for g in self:
                    if g.address == m.curg:
                        return g
        return None
