// Signals of the process as values of a channel.
//
//   gofer::chan<int> signals(1);
//   gofer::signal_notify(signals, {SIGHUP});
//   for (int s : signals) reload();
//
//   const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
//   gofer::net::serve(ctx, listener, handle);   // ends well at the first of them
//
// All of it may be called at any time, from goroutines and from other threads.
//
// As in Go's os/signal, the runtime does not wait for a receiver: a channel without room loses the
// signal. Give the channel a buffer; room for 1 is enough for one signal number. Signals of one
// number that arrive before the runtime has looked count as one. Any number of channels may be
// registered for the same signal.
//
// The first channel that is registered for a signal replaces the signal's former effect: the
// default, to ignore it, or a handler of the program, which is then not called. When the last
// channel is stopped, the former effect is put back, unless the program has replaced it in between.
//
// The kernel delivers a signal of the process to a thread that does not block it, so at least one
// thread must not block it. The runtime's threads have the signal mask of the thread that started
// the runtime.
//
// In the child of a fork() every signal again has the effect that it had before the first channel
// was registered for it. So signals can end the child, and exec passes on which ones are ignored.
//
// If the program closes the runtime's descriptors (closefrom(3), for example), the runtime opens
// new ones; a signal at that very moment may be lost.
//
// As long as a channel is registered, a goroutine of the runtime waits for signals: it is counted
// by num_goroutine(), and since a signal may come at any time, no deadlock is reported.
#pragma once

#include <gofer/chan.h>
#include <gofer/context.h>
#include <gofer/detail/config.h>
#include <gofer/detail/function.h>

#include <initializer_list>
#include <span>
#include <stdexcept>

namespace gofer {

/// From now on `to` also gets the numbers of these signals. Throws std::system_error with
/// std::errc::invalid_argument, and changes nothing, if there is no signal at all, for an invalid
/// number, for SIGKILL and SIGSTOP, which no process can catch, for SIGURG, which the runtime needs
/// for preemption, and for faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP), after which a program
/// cannot continue.
GOFER_API void signal_notify(const send_chan<int>& to, std::span<const int> signals);
inline void signal_notify(const send_chan<int>& to, std::initializer_list<int> signals) {
  signal_notify(to, std::span<const int>(signals.begin(), signals.size()));
}

/// `to` gets no more signals once this returns. Signals that a thread of the process had begun to
/// handle are in the channel, if it has room. Does nothing for other channels. A closed channel is
/// stopped by its next signal.
GOFER_API void signal_stop(const send_chan<int>& to);

/// No channel gets these signals any more.
GOFER_API void signal_reset(std::span<const int> signals);
inline void signal_reset(std::initializer_list<int> signals) {
  signal_reset(std::span<const int>(signals.begin(), signals.size()));
}

/// The cause of a context that a signal has cancelled.
class GOFER_API signal_error : public std::runtime_error {
 public:
  explicit signal_error(int number);
  int number() const noexcept { return number_; }

 private:
  int number_;
};

struct notified_context {
  context ctx;
  /// Cancels ctx and releases the signals. Until then the signals have no other effect, even if ctx
  /// is done. after_func(ctx, stop) lets a second Ctrl-C end the process.
  detail::shared_function<void()> stop;
};

/// Returns a context that is cancelled by the first of these signals, whose cause() is then a
/// signal_error, or when the parent is done. Throws what signal_notify throws.
[[nodiscard]] GOFER_API notified_context notify_context(const context& parent,
                                                        std::span<const int> signals);
[[nodiscard]] inline notified_context notify_context(const context& parent,
                                                     std::initializer_list<int> signals) {
  return notify_context(parent, std::span<const int>(signals.begin(), signals.size()));
}

}  // namespace gofer
