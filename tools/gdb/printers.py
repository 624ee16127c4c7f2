# --- printers.py: what the program's channels, locks and so on are, and who waits for them.
#
# A printer begins with the debug information of the program, which knows the public headers. What the headers do not
# show is in the library's tables.


def gofer_scalar(value):
    """The number or the pointer in a word, a std::unique_ptr or a std::shared_ptr: the first one inside."""
    kind = value.type.strip_typedefs()
    while kind.code == gdb.TYPE_CODE_STRUCT:
        field = next(f for f in kind.fields() if hasattr(f, "bitpos") and f.type.sizeof > 1 or f.type.sizeof == kind.sizeof)
        value = value[field]
        kind = value.type.strip_typedefs()
    return int(value)


def gofer_pointer_at(value):
    """The pointer with which an object begins: of a std::shared_ptr or std::unique_ptr that is the whole object."""
    word = gdb.lookup_type("unsigned long")
    return int(value.address.cast(word.pointer()).dereference()) if value.address is not None else gofer_scalar(value)


class GoferWaiters:
    """Waiters in a list that is linked by `next`."""
    LIMIT = 1000

    def __init__(self, first):
        table = gofer_table("waiters")
        self.goroutines, self.threads = [], 0
        id_at = gofer_table("goroutines")["G.id"]
        while first != 0 and len(self.goroutines) + self.threads < self.LIMIT:
            g = gofer_word(first + table["Waiter.g"])
            if g:
                self.goroutines.append(gofer_word(g + id_at))
            else:
                self.threads += 1
            first = gofer_word(first + table["Waiter.next"])

    def __bool__(self):
        return bool(self.goroutines or self.threads)

    def text(self, what="waiter", more=""):
        """", 2 receivers: goroutines 4, 5"; nothing if there are none."""
        n = len(self.goroutines) + self.threads
        if n == 0:
            return ""
        ids = [str(i) for i in self.goroutines[:8]] + (["..."] if len(self.goroutines) > 8 else [])
        who = []
        if ids:
            who.append("goroutine%s %s" % ("" if len(self.goroutines) == 1 else "s", ", ".join(ids)))
        if self.threads:
            who.append("%d thread%s" % (self.threads, "" if self.threads == 1 else "s"))
        count = "%d%s %s%s%s" % (n, "+" if n == self.LIMIT else "", what, "" if n == 1 else "s", more)
        return ", %s: %s" % (count, " and ".join(who))


def gofer_queue(queue):
    return GoferWaiters(gofer_scalar(queue["head_"]))


class GoferChannel:
    """A channel by the address of its core."""

    def __init__(self, core):
        self.table = gofer_table("channels")
        self.core = core
        self.count, self.capacity, self.first, self.element_size = (
            int.from_bytes(self.field(f, 4), "little") for f in ("count", "capacity", "first", "element_size"))
        self.closed = self.field("closed", 1) != b"\0"

    def field(self, name, size):
        return gofer_read(self.core + self.table["chan_core." + name], size)

    def waiters(self, name):
        return GoferWaiters(int.from_bytes(self.field(name, 8), "little"))  # a queue begins with its head

    def text(self):
        state = "%d of %d values" % (self.count, self.capacity) if self.capacity else "unbuffered"
        return "%s%s%s%s" % (state, ", closed" if self.closed else "", self.waiters("receivers").text("receiver"),
                             self.waiters("senders").text("sender"))

    def slots(self):
        begin = self.core + self.table["sizeof(chan_core)"]
        for i in range(min(self.count, self.capacity)):
            yield begin + (self.first + i) % self.capacity * self.element_size


class GoferPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return self.name + ": " + self.text()
        except gdb.GdbError as error:  # no library
            return "%s (%s)" % (self.name, error)


class GoferChanPrinter(GoferPrinter):
    name = "chan"

    def channel(self):
        core = gofer_scalar(self.value["core_"])
        return GoferChannel(core) if core else None

    def text(self):
        channel = self.channel()
        return channel.text() if channel else "nil"

    def children(self):
        """The values that are buffered. Large ones are in nodes on the heap, which the channel knows by their address."""
        try:
            channel = self.channel()
            element = self.value.type.strip_typedefs().template_argument(0)
        except (gdb.error, RuntimeError):
            return
        if channel is None:
            return
        try:
            element, in_node = gdb.lookup_type("gofer::detail::chan_node<%s>" % element), True
        except gdb.error:
            in_node = False
        for i, slot in enumerate(channel.slots()):
            at = gofer_word(slot) if in_node else slot
            value = gdb.Value(at).cast(element.pointer()).dereference()
            yield "[%d]" % i, value["value"] if in_node else value

    def display_hint(self):
        return "array"


class GoferMutexPrinter(GoferPrinter):
    name = "mutex"

    def text(self):
        state = gofer_scalar(self.value["state_"])
        text = "locked" if state & 1 else "unlocked"
        return text + (", starving" if state & 16 else "") + gofer_queue(self.value["queue_"]).text()


class GoferRwMutexPrinter(GoferPrinter):
    name = "rw_mutex"

    def text(self):
        state = gofer_scalar(self.value["state_"])
        readers = state // 256
        text = "locked by a writer" if state & 1 else "%d reader%s" % (readers, "" if readers == 1 else "s") if readers \
            else "unlocked"
        text += ", more readers in the table of all threads" if state & 16 else ""
        return text + gofer_queue(self.value["waiting_readers_"]).text("reader") \
            + gofer_queue(self.value["waiting_writers_"]).text("writer")


class GoferWaitGroupPrinter(GoferPrinter):
    name = "wait_group"

    def text(self):
        state = gofer_scalar(self.value["state_"])
        waiters = GoferWaiters(gofer_scalar(self.value["waiters_"])) if state & 1 else GoferWaiters(0)
        return "counter %d" % (state >> 32) + waiters.text()


class GoferSemaphorePrinter(GoferPrinter):
    name = "semaphore"

    def text(self):
        free = gofer_scalar(self.value["permits_"])
        return "%d permit%s free" % (free, "" if free == 1 else "s") + gofer_queue(self.value["queue_"]).text() \
            + gofer_queue(self.value["beyond_"]).text("waiter", " for more than there are")


class GoferCondPrinter(GoferPrinter):
    name = "cond"

    def text(self):
        return gofer_queue(self.value["queue_"]).text()[2:] or "no goroutine waits"


def gofer_when(ns):
    """A point in time of the steady clock: from now, in a live process on this machine."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is not None and connection.type == "native":
        return "in %.3f s" % (ns / 1e9 - time.clock_gettime(time.CLOCK_MONOTONIC))
    return "at %.3f s of the steady clock" % (ns / 1e9)


class GoferContextPrinter(GoferPrinter):
    name = "context"

    def text(self):
        table = gofer_table("contexts")
        state = gofer_pointer_at(self.value["state_"])
        if state == 0:
            return "background, never done"
        node = gofer_word(state + table["context_state.node"])
        if node == 0:
            return "never done"
        error = int.from_bytes(gofer_read(node + table["cancel_node.err"], 4), "little")
        if error:
            return "done, canceled" if error == table["canceled"] else "done, deadline exceeded" \
                if error == table["deadline_exceeded"] else "done, error %d" % error
        deadline = gofer_word(state + table["context_state.deadline_ns"])
        text = "not done" + (", deadline " + gofer_when(deadline) if deadline != (1 << 63) - 1 else "")
        return text + GoferChannel(gofer_word(node + table["cancel_node.done"])).waiters("receivers").text()


class GoferFuturePrinter(GoferPrinter):
    name = "future"

    def state(self):
        return gofer_pointer_at(self.value["state_"])

    def text(self):
        if self.state() == 0:
            return "not valid"
        channel = GoferChannel(gofer_word(self.state()))  # `ready`, the first member
        return ("ready" if channel.closed else "no result yet") + channel.waiters("receivers").text()

    def children(self):
        try:
            if self.state() and GoferChannel(gofer_word(self.state())).closed:
                kind = gdb.lookup_type("gofer::detail::future_state<%s>" % self.value.type.strip_typedefs()
                                       .template_argument(0))
                yield "value", gdb.Value(self.state()).cast(kind.pointer()).dereference()["value"]
        except (gdb.error, RuntimeError):
            return


class GoferPromisePrinter(GoferFuturePrinter):
    name = "promise"


class GoferTimerPrinter(GoferPrinter):
    name = "timer"

    def text(self):
        table = gofer_table("timers")
        state = gofer_pointer_at(self.value["handle_"])
        if state == 0:
            return "none"
        kind = "calls a function" if gofer_word(state + table["timer_state.func"]) else "fires into a channel"
        if gofer_word(state + table["timer_state.heap"]) == 0:
            return kind + ", stopped or fired"
        period = gofer_word(state + table["timer_state.period_ns"])
        return kind + " " + gofer_when(gofer_word(state + table["timer_state.when_ns"])) \
            + (", then every %g s" % (period / 1e9) if period else "")


class GoferTickerPrinter(GoferTimerPrinter):
    name = "ticker"


def gofer_register_printers():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("gofer")
    for name, pattern, printer in (
            ("chan", r"(?:chan|send_chan|recv_chan)<.*>|detail::time_chan", GoferChanPrinter),
            ("mutex", "mutex", GoferMutexPrinter), ("rw_mutex", "rw_mutex", GoferRwMutexPrinter),
            ("wait_group", "wait_group", GoferWaitGroupPrinter), ("semaphore", "semaphore", GoferSemaphorePrinter),
            ("cond", "cond", GoferCondPrinter), ("context", "context", GoferContextPrinter),
            ("future", "future<.*>", GoferFuturePrinter), ("promise", "promise<.*>", GoferPromisePrinter),
            ("timer", "timer", GoferTimerPrinter), ("ticker", "ticker", GoferTickerPrinter)):
        printers.add_printer(name, "^gofer::(?:%s)$" % pattern, printer)
    gdb.printing.register_pretty_printer(None, printers, replace=True)


gofer_register_printers()
