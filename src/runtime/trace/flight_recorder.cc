// The public calls of the flight recorder.
#include <gofer/blocking.h>
#include <gofer/trace.h>

#include <cerrno>

#include "os/file.h"
#include "runtime/trace/session.h"

namespace gofer::trace {

using namespace internal;

namespace {

std::error_code error_of(int error) { return {error, std::system_category()}; }

void throw_if(const std::error_code& ec, const char* what) {
  if (ec) throw std::system_error(ec, what);
}

}  // namespace

flight_recorder::~flight_recorder() {
  std::error_code ec;
  if (is_recording()) stop(ec);
}

void flight_recorder::start(std::error_code& ec) noexcept {
  const tracer::Flight flight{{options_.keep.count(), options_.bytes}, options_.report_path};
  if (flight.limits.keep_ns <= 0 || flight.limits.bytes == 0) {
    ec = error_of(EINVAL);
    return;
  }
  uint64_t number = 0;
  ec = error_of(tracer::start_flight(flight, &number));
  if (!ec) number_.store(number, relaxed);
}

void flight_recorder::stop(std::error_code& ec) noexcept {
  ec = error_of(blocking(handoff, [&] { return tracer::stop_flight(number_.load(relaxed)); }));
}

void flight_recorder::write(int descriptor, std::error_code& ec) const noexcept {
  const uint64_t number = number_.load(relaxed);
  ec = error_of(blocking(handoff, [&] { return tracer::write_flight(number, descriptor); }));
}

void flight_recorder::write(const char* path, std::error_code& ec) const noexcept {
  const int fd = os::create(path);
  if (fd < 0) {
    ec = error_of(-fd);
    return;
  }
  write(fd, ec);
  os::close(fd);
  if (ec) os::unlink(path);
}

void flight_recorder::start() {
  std::error_code ec;
  start(ec);
  throw_if(ec, "gofer::trace::flight_recorder::start");
}

void flight_recorder::stop() {
  std::error_code ec;
  stop(ec);
  throw_if(ec, "gofer::trace::flight_recorder::stop");
}

void flight_recorder::write(const char* path) const {
  std::error_code ec;
  write(path, ec);
  throw_if(ec, "gofer::trace::flight_recorder::write");
}

void flight_recorder::write(int descriptor) const {
  std::error_code ec;
  write(descriptor, ec);
  throw_if(ec, "gofer::trace::flight_recorder::write");
}

bool flight_recorder::is_recording() const noexcept {
  return tracer::is_flight_recording(number_.load(relaxed));
}

}  // namespace gofer::trace
