// Signals into channels.
//
// The handler sets the signal's bit in `pending` and writes to an eventfd. A goroutine, the reader,
// waits for the eventfd in the netpoller, takes the bits and sends to the channels. It exists while
// a channel is registered; each reader has an eventfd of its own.
//
// Nothing whose handler has begun before a stop is lost: the one that stops first puts back the old
// disposition, waits until no handler runs any more (`in_handler`), and sends what is pending, all
// under the registry's lock. A handler may begin later: the kernel chose it before the disposition
// changed and the thread had not reached its first instruction, or the program calls it as its own
// handler's predecessor. It finds no eventfd (`wake_fd`) if all is stopped. The handler first
// announces itself in one word and then looks at the other; the one that stops does the same in the
// other order, all sequentially consistent. So the number of a closed eventfd is never written to.
//
// The program may close the eventfd, with all descriptors that it does not know. The reader notices
// when the netpoller does, and makes a new eventfd and a new reader. The handler looks whether the
// netpoller still has its descriptors: the M that sleeps there would not notice.
//
// The child of a fork has the handlers and no reader, so it gets the old dispositions back.
#include <gofer/fd.h>
#include <gofer/go.h>
#include <gofer/mutex.h>
#include <gofer/signal.h>

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "io/fd_state.h"
#include "os/file.h"
#include "os/process.h"
#include "os/signal.h"
#include "runtime/poll/netpoll.h"
#include "runtime/report/panic.h"

namespace gofer {
namespace {

constexpr int last_signal = 64;
using Signals = std::uint64_t;  // a bit each
static_assert(std::atomic<Signals>::is_always_lock_free);

constexpr Signals bit_of(int number) { return Signals{1} << (number - 1); }

std::atomic<Signals> pending{0};
std::atomic<int> wake_fd{-1};
std::atomic<int> in_handler{0};

// SIGURG is blocked meanwhile, like all others: a thread is not paused in here.
void on_signal(int number) {
  in_handler.fetch_add(1);
  if (const int to = wake_fd.load(); to >= 0) {
    pending.fetch_or(bit_of(number));
    internal::os::add_to_event(to);
    internal::netpoll_look_soon();  // no M may be polling
  }
  in_handler.fetch_sub(1);
}

template <class F>
void for_each(Signals set, F f) {
  for (; set != 0; set &= set - 1) f(std::countr_zero(set) + 1);
}

class Events : public fd {
 public:
  using fd::fd;
  void forget() const noexcept { internal::forget_fd(state()); }
};

class Registry {
 public:
  Registry() { internal::os::at_fork_in_child(on_fork_child); }

  void add(const send_chan<int>& to, Signals wanted) {
    const std::scoped_lock hold(lock_);
    std::vector<Entry> with = entries_;
    const auto at = std::find(with.begin(), with.end(), to);
    if (at == with.end()) {
      with.push_back({to, wanted});
    } else {
      at->wanted |= wanted;
    }
    if (!events_) start_reader();
    try {
      catch_also(wanted & ~caught_);
    } catch (...) {
      give_up_unwanted();
      throw;
    }
    entries_ = std::move(with);
  }

  void remove(const send_chan<int>& to) {
    const std::scoped_lock hold(lock_);
    change([&](Entry& e) {
      if (e == to) e.wanted = 0;
    });
  }

  void reset(Signals signals) {
    const std::scoped_lock hold(lock_);
    change([&](Entry& e) { e.wanted &= ~signals; });
  }

 private:
  struct Entry {
    send_chan<int> to;
    Signals wanted;
    bool operator==(const send_chan<int>& other) const { return to == other; }
  };

  static void on_fork_child();

  // All with the lock.

  template <class F>
  void change(F f) {
    std::vector<Entry> before = entries_;
    for (Entry& e : entries_) f(e);
    std::erase_if(entries_, [](const Entry& e) { return e.wanted == 0; });
    restore(caught_ & ~wanted());
    before.swap(entries_);  // they get what came before
    send_pending();
    before.swap(entries_);
    give_up_unwanted();
  }

  Signals wanted() const {
    Signals all = 0;
    for (const Entry& e : entries_) all |= e.wanted;
    return all;
  }

  void catch_also(Signals set) {
    for_each(set, [this](int number) {
      struct sigaction action {};
      action.sa_handler = on_signal;
      action.sa_flags = SA_ONSTACK | SA_RESTART;
      sigfillset(&action.sa_mask);
      if (const int n = internal::os::set_signal_action(number, &action, &before_[number]); n < 0) {
        throw std::system_error(-n, std::system_category(), "gofer::signal_notify");
      }
      caught_ |= bit_of(number);
    });
  }

  // No handler runs when it returns.
  void restore(Signals set) {
    for_each(set, [this](int number) {
      struct sigaction now {};
      internal::os::set_signal_action(number, nullptr, &now);
      if (now.sa_handler == on_signal) {
        internal::os::set_signal_action(number, &before_[number], nullptr);
      }
    });
    caught_ &= ~set;
    if (caught_ == 0) wake_fd.store(-1);
    while (in_handler.load() != 0) yield();
  }

  void give_up_unwanted() {
    restore(caught_ & ~wanted());
    if (caught_ != 0 || !events_) return;
    events_.close();  // the reader ends
    events_ = Events();
  }

  void start_reader() {
    const int native = internal::os::open_event();
    if (native < 0) {
      throw std::system_error(-native, std::system_category(), "gofer::signal_notify");
    }
    const Events events(native);
    go({.name = "gofer signals"}, [this, events] { read_all(events); });
    events_ = events;
    wake_fd.store(native);
  }

  void send_pending() {
    for_each(pending.exchange(0), [this](int number) {
      std::erase_if(entries_, [number](const Entry& e) {
        if ((e.wanted & bit_of(number)) == 0) return false;
        try {
          (void)e.to.try_send(number);
          return false;
        } catch (const channel_error&) {  // it is closed
          return true;
        }
      });
    });
  }

  // The reader.
  void read_all(const Events& events) {
    std::uint64_t count = 0;
    std::error_code ec;
    while (events.read({&count, sizeof count}, ec) != 0) {
      const std::scoped_lock hold(lock_);
      send_pending();
      give_up_unwanted();
    }
    if (ec == io_errc::closed) return;
    const std::scoped_lock hold(lock_);
    if (events == events_) replace_reader(ec);
  }

  // The eventfd cannot be read. Handlers may still write to its number: at first they get another.
  void replace_reader(const std::error_code& ec) {
    const Events lost = std::exchange(events_, Events());
    bool replaced = false;
    try {
      if (internal::poll_failure() != 0) throw std::system_error(ec);  // `lost` is closed
      lost.forget();
      start_reader();
      replaced = true;
    } catch (const std::exception& e) {
      internal::warn("cannot wait for signals any more, which have their old effect again: %s",
                     e.what());
    }
    while (in_handler.load() != 0) yield();
    send_pending();
    if (!replaced) entries_.clear();
    give_up_unwanted();
  }

  mutex lock_;
  std::vector<Entry> entries_;
  Signals caught_ = 0;
  struct sigaction before_[last_signal + 1]{};
  Events events_;  // of the reader; empty: there is none
};

// Never destroyed: the reader may need it until the process is gone.
Registry& registry() {
  static Registry* const r = new Registry;
  return *r;
}

// Another thread may hold the lock, so it is not asked for. A signal that is just being caught has
// no `before_` yet, which means the default.
void Registry::on_fork_child() {
  wake_fd.store(-1);
  const Registry& r = registry();
  for (int number = 1; number <= last_signal; ++number) {
    struct sigaction now {};
    if (internal::os::set_signal_action(number, nullptr, &now) == 0 &&
        now.sa_handler == on_signal) {
      internal::os::set_signal_action(number, &r.before_[number], nullptr);
    }
  }
}

std::string name_of(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(number);
}

// nullptr: it can be caught.
const char* why_not(int number) {
  switch (number) {
    case SIGKILL:
    case SIGSTOP:
      return "cannot be caught";
    case SIGURG:
      return "belongs to the runtime, for preemption";
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
      return "is a fault, after which the program cannot go on";
    default:
      return number > 0 && (number < SIGSYS + 1 || (number >= SIGRTMIN && number <= SIGRTMAX))
                 ? nullptr
                 : "is none that a program may use";
  }
}

[[noreturn]] void refuse(const char* call, const std::string& why) {
  throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                          std::string("gofer::") + call + ": " + why);
}

Signals checked(const char* call, std::span<const int> signals) {
  if (signals.empty()) refuse(call, "no signals");
  Signals set = 0;
  for (const int number : signals) {
    if (const char* why = why_not(number)) refuse(call, name_of(number) + " " + why);
    set |= bit_of(number);
  }
  return set;
}

}  // namespace

void signal_notify(const send_chan<int>& to, std::span<const int> signals) {
  if (!to) refuse("signal_notify", "the channel is nil");
  registry().add(to, checked("signal_notify", signals));
}

void signal_stop(const send_chan<int>& to) { registry().remove(to); }

void signal_reset(std::span<const int> signals) {
  registry().reset(checked("signal_reset", signals));
}

signal_error::signal_error(int number)
    : std::runtime_error(name_of(number) + " received"), number_(number) {}

notified_context notify_context(const context& parent, std::span<const int> signals) {
  const auto [ctx, cancel] = with_cancel(parent);
  const chan<int> first(1);
  signal_notify(first, signals);
  try {
    go({.name = "gofer notify_context"}, [ctx = ctx, cancel = cancel, first] {
      if (const auto number = first.recv(ctx)) {
        cancel(std::make_exception_ptr(signal_error(*number)));
      }
    });
  } catch (...) {
    signal_stop(first);
    throw;
  }
  return {ctx, [cancel = cancel, first] {
            signal_stop(first);
            cancel();
          }};
}

}  // namespace gofer
