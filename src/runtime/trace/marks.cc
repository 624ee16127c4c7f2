// The public calls: starting and stopping a trace, and the marks of the program.
#include <gofer/blocking.h>
#include <gofer/trace.h>

#include "os/file.h"
#include "runtime/procs/current.h"
#include "runtime/trace/hooks.h"
#include "runtime/trace/session.h"
#include "runtime/trace/tables.h"
#include "runtime/trace/writer.h"

namespace gofer::trace {

using namespace internal;

namespace {

constinit atomic<uint64_t> last_task{0};

std::error_code error_of(int error) { return {error, std::system_category()}; }

void throw_if(const std::error_code& ec, const char* what) {
  if (ec) throw std::system_error(ec, what);
}

// Calls f with the stream of the calling goroutine, which runs and has a P.
template <class F>
void mark(F f) {
  M* m = enter();
  if (m == nullptr) return;
  tracer::write_as(m, [&](tracer::Writer& w) {
    w.need_running();
    if (w.stream().p != nullptr && w.stream().g != nullptr) f(w);
  });
  leave(m);
}

}  // namespace

void start(const char* path, std::error_code& ec) noexcept {
  const int fd = os::create(path);
  int error = fd < 0 ? -fd : 0;
  if (error == 0) error = tracer::start_recording(fd, true);
  if (error != 0 && fd >= 0) {
    os::close(fd);
    os::unlink(path);
  }
  ec = error_of(error);
}

void start(int descriptor, std::error_code& ec) noexcept {
  ec = error_of(tracer::start_recording(descriptor, false));
}

void stop(std::error_code& ec) noexcept {
  ec = error_of(blocking(handoff, [] { return tracer::stop_recording(); }));
}

void start(const char* path) {
  std::error_code ec;
  start(path, ec);
  throw_if(ec, "gofer::trace::start");
}

void start(int descriptor) {
  std::error_code ec;
  start(descriptor, ec);
  throw_if(ec, "gofer::trace::start");
}

void stop() {
  std::error_code ec;
  stop(ec);
  throw_if(ec, "gofer::trace::stop");
}

bool is_recording() noexcept { return tracer::is_recording(); }

namespace detail {

uint64_t begin_task(uint64_t parent, std::string_view name) noexcept {
  if (!tracer::is_on()) return 0;
  const uint64_t id = last_task.fetch_add(1, relaxed) + 1;
  mark([&](tracer::Writer& w) {
    w.event(tracer::Event::user_task_begin, id, parent, w.name(name), 0);
  });
  return id;
}

void end_task(uint64_t id) noexcept {
  if (id == 0 || !tracer::is_on()) return;
  mark([&](tracer::Writer& w) { w.event(tracer::Event::user_task_end, id, 0); });
}

uint64_t begin_region(uint64_t task, std::string_view name) noexcept {
  if (!tracer::is_on()) return 0;
  uint64_t trace = 0;
  mark([&](tracer::Writer& w) {
    trace = tracer::session.number.load(relaxed);
    w.event(tracer::Event::user_region_begin, task, w.name(name), 0);
  });
  return trace;
}

void end_region(uint64_t trace, uint64_t task, std::string_view name) noexcept {
  if (!tracer::is_on()) return;
  mark([&](tracer::Writer& w) {
    if (tracer::session.number.load(relaxed) != trace) return;
    w.event(tracer::Event::user_region_end, task, w.name(name), 0);
  });
}

void log(uint64_t task, std::string_view category, std::string_view message) noexcept {
  if (!tracer::is_on()) return;
  mark([&](tracer::Writer& w) {
    const uint64_t key = w.name(category);
    w.event(tracer::Event::user_log, task, key, w.text(message), 0);
  });
}

}  // namespace detail

void counter(std::string_view name, int64_t value) noexcept {
  if (!tracer::is_on()) return;
  mark([&](tracer::Writer& w) {
    const auto zigzag = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
    w.record(tracer::Record::counter, w.name(name), zigzag);
  });
}

}  // namespace gofer::trace
