// Execution traces: a file that says of every moment which goroutine ran where, and which ones
// waited for what.
//
//   gofer::trace::start("app.trace");
//   serve();
//   gofer::trace::stop();
//
// The file is in Go's trace format: `go tool trace app.trace` shows it in the browser, and Gofer's
// command `gofer trace` checks it, sums it up, and converts it for ui.perfetto.dev. An unchanged
// program is recorded from its start to its end with the environment variable
// GOFER_TRACE=app-%p.trace, where %p stands for the number of the process. docs/TRACING.md has
// more.
//
// A flight recorder keeps the last seconds of the same in memory, and writes them when something
// has gone wrong:
//
//   gofer::trace::flight_recorder recorder;
//   recorder.start();
//   ...
//   if (took > limit) recorder.write("slow.trace");
//
// GOFER_TRACE_FLIGHT=10s,16M,app-%p.trace does so for an unchanged program that ends with a report.
//
// Marks of the program's own appear in the trace: tasks, which may span goroutines, regions, which
// lie within one, messages and counters. While no trace is recorded a mark costs a few
// instructions. Marks of threads that are not goroutines are not recorded.
#pragma once

#include <gofer/detail/config.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace gofer::trace {

/// Begins to record. The first form makes a new file that only its owner may read; it fails if
/// there is a file of that name. The second form writes to a descriptor, which stays the caller's
/// and must stay open until the trace has ended. One trace can be recorded at a time: a second
/// start fails with std::errc::device_or_resource_busy. Each form throws std::system_error or sets
/// an error code.
///
/// If the file cannot be written later, or the program makes events much faster than the disk takes
/// them, the trace ends with a message on stderr. What is in the file then is valid. A pipe or a
/// socket may be slow, blocking or not, and without a reader: it holds up nothing but the trace.
GOFER_API void start(const char* path);
GOFER_API void start(const char* path, std::error_code& ec) noexcept;
GOFER_API void start(int descriptor);
GOFER_API void start(int descriptor, std::error_code& ec) noexcept;

/// Ends the recording and returns when the file is complete. The error is that which ended the
/// trace, std::errc::timed_out if the descriptor has taken nothing for five seconds, or
/// std::errc::invalid_argument if none is being recorded. A trace that is still being recorded when
/// the process ends, by exit() or by a fatal error, is completed then.
GOFER_API void stop();
GOFER_API void stop(std::error_code& ec) noexcept;

/// True while a trace is being recorded, other than by a flight recorder.
GOFER_API bool is_recording() noexcept;

struct flight_recorder_options {
  /// What is recorded is kept for at least so long...
  std::chrono::nanoseconds keep = std::chrono::seconds(10);
  /// ...unless it takes more memory than this.
  std::size_t bytes = std::size_t{16} << 20;
  /// A file that is written if the process ends with a fatal error while the recorder is on. %p
  /// stands for the number of the process. nullptr: none. start() makes a copy.
  const char* report_path = nullptr;
};

/// Keeps the last part of an execution trace in memory, and writes it as a trace file on demand, as
/// often as it is asked to. Recording costs what a trace costs, without the writing. A goroutine to
/// which nothing has happened in what is kept does not appear in the file.
///
/// One trace is recorded at a time, by a recorder or by trace::start. The calls throw
/// std::system_error or set an error code. write() and is_recording() may be called by several
/// goroutines and threads at once.
class GOFER_API flight_recorder {
 public:
  explicit flight_recorder(const flight_recorder_options& options = {}) noexcept
      : options_(options) {}
  /// Ends the recording.
  ~flight_recorder();
  flight_recorder(const flight_recorder&) = delete;
  flight_recorder& operator=(const flight_recorder&) = delete;

  /// Begins to record. Fails like trace::start: std::errc::device_or_resource_busy if a trace is
  /// being recorded.
  void start();
  void start(std::error_code& ec) noexcept;
  /// Ends the recording and forgets what it has kept. The error is that which has ended it before,
  /// or std::errc::invalid_argument if the recorder is not on.
  void stop();
  void stop(std::error_code& ec) noexcept;

  /// Writes what has been kept, up to this moment, and returns when the file is complete. The first
  /// form makes a new file that only its owner may read, and removes it if it cannot be completed;
  /// it fails if there is a file of that name. The second form writes to a descriptor. An error
  /// ends the write only: std::errc::invalid_argument if the recorder is not on,
  /// std::errc::timed_out if the descriptor has taken nothing for five seconds.
  void write(const char* path) const;
  void write(const char* path, std::error_code& ec) const noexcept;
  void write(int descriptor) const;
  void write(int descriptor, std::error_code& ec) const noexcept;

  /// True while the recorder is on.
  bool is_recording() const noexcept;

 private:
  flight_recorder_options options_;
  std::atomic<std::uint64_t> number_{0};  // of the recording
};

namespace detail {

GOFER_API std::uint64_t begin_task(std::uint64_t parent, std::string_view name) noexcept;
GOFER_API void end_task(std::uint64_t id) noexcept;
/// Returns the trace to which the region belongs; 0 if none is being recorded.
GOFER_API std::uint64_t begin_region(std::uint64_t task, std::string_view name) noexcept;
GOFER_API void end_region(std::uint64_t trace, std::uint64_t task, std::string_view name) noexcept;
GOFER_API void log(std::uint64_t task, std::string_view category,
                   std::string_view message) noexcept;

}  // namespace detail

/// A piece of work, such as a request: begins with the object and ends with it. Goroutines refer to
/// it by its regions and messages, so the object has to live as long as they do.
class [[nodiscard]] task {
 public:
  explicit task(std::string_view name) noexcept : id_(detail::begin_task(0, name)) {}
  /// A part of another task.
  task(const task& parent, std::string_view name) noexcept
      : id_(detail::begin_task(parent.id_, name)) {}
  ~task() { detail::end_task(id_); }
  task(const task&) = delete;
  task& operator=(const task&) = delete;

  /// 0 if no trace was being recorded when it began.
  std::uint64_t id() const noexcept { return id_; }

 private:
  std::uint64_t id_;
};

/// What a goroutine does while the object lives. Begins and ends in the same goroutine; regions of
/// a goroutine nest. `name` has to stay valid, as a literal does.
class [[nodiscard]] region {
 public:
  explicit region(std::string_view name) noexcept : region(0, name) {}
  region(const task& of, std::string_view name) noexcept : region(of.id(), name) {}
  ~region() {
    if (trace_ != 0) [[unlikely]]
      detail::end_region(trace_, task_, name_);
  }
  region(const region&) = delete;
  region& operator=(const region&) = delete;

 private:
  region(std::uint64_t task, std::string_view name) noexcept
      : trace_(detail::begin_region(task, name)), task_(task), name_(name) {}
  std::uint64_t trace_;
  std::uint64_t task_;
  std::string_view name_;
};

/// A message with a category, of the calling goroutine and perhaps of a task.
inline void log(std::string_view category, std::string_view message) noexcept {
  detail::log(0, category, message);
}
inline void log(const task& of, std::string_view category, std::string_view message) noexcept {
  detail::log(of.id(), category, message);
}

/// The value that a quantity of the program has from now on. Go's tools do not show it.
GOFER_API void counter(std::string_view name, std::int64_t value) noexcept;

}  // namespace gofer::trace
