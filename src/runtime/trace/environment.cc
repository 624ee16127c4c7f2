// GOFER_TRACE=app-%p.trace records the whole program. GOFER_TRACE_FLIGHT=10s,16M,app-%p.trace keeps
// the last part of it, for a report: how long, how much memory, and the file; the first two may be
// left out.
//
// A program that executes itself, or forks and executes another one, gives its environment on:
// create_file takes care of names that are taken.
#include "runtime/trace/environment.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "os/file.h"
#include "runtime/report/panic.h"
#include "runtime/trace/file_name.h"
#include "runtime/trace/session.h"

namespace gofer::internal::tracer {
namespace {

struct Unit {
  std::string_view name;
  uint64_t value;
};
constexpr Unit times[] = {{"ms", 1'000'000}, {"s", 1'000'000'000}};
constexpr Unit sizes[] = {{"K", 1u << 10}, {"M", 1u << 20}, {"G", 1u << 30}};

// A number with one of these units, not too large. 0: it is something else.
template <size_t n>
uint64_t parse(std::string_view text, const Unit (&units)[n]) {
  constexpr uint64_t most = 1'000'000;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > most) return 0;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (text == unit.name) return number * unit.value;
  }
  return 0;
}

void start_flight_from(const char* value) {
  Flight flight{default_limits, value};
  while (const char* comma = std::strchr(flight.report_path, ',')) {
    const std::string_view item(flight.report_path,
                                static_cast<size_t>(comma - flight.report_path));
    if (const uint64_t ns = parse(item, times); ns != 0) {
      flight.limits.keep_ns = static_cast<int64_t>(ns);
    } else if (const uint64_t bytes = parse(item, sizes); bytes != 0) {
      flight.limits.bytes = bytes;
    } else {
      break;  // the name has a comma
    }
    flight.report_path = comma + 1;
  }
  const char* path = flight.report_path;
  if (path[0] == '\0' || parse(path, times) != 0 || parse(path, sizes) != 0) {
    warn("GOFER_TRACE_FLIGHT=%s: no file is named at the end, as in 10s,16M,app-%%p.trace", value);
    return;
  }
  if (const int error = start_first_flight(flight); error != 0) {
    warn("GOFER_TRACE_FLIGHT: %s", std::strerror(error));
  }
}

void start_trace_from(const char* path) {
  char name[longest_file_name];
  const int fd = create_file(path, name);
  int error = fd < 0 ? -fd : 0;
  if (error == 0) error = start_first_recording(fd);
  if (error == 0) return;
  warn("GOFER_TRACE: %s: %s", name, std::strerror(error));
  if (fd < 0) return;
  os::close(fd);
  os::unlink(name);
}

}  // namespace

void start_from_environment(const char* trace, const char* flight) {
  if (trace != nullptr && flight != nullptr) {
    warn("GOFER_TRACE_FLIGHT is ignored: GOFER_TRACE records the whole program");
    flight = nullptr;
  }
  if (trace != nullptr) start_trace_from(trace);
  if (flight != nullptr) start_flight_from(flight);
}

}  // namespace gofer::internal::tracer
