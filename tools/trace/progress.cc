#include "trace/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace gofer::tool {
namespace {

constexpr int64_t first_after_ns = 500'000'000;
constexpr int64_t interval_ns = 100'000'000;
constexpr uint64_t width = 40;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Progress::Progress()
    : on_(isatty(STDERR_FILENO) != 0), begin_ns_(now_ns()), next_ns_(begin_ns_ + first_after_ns) {}

Progress::~Progress() {
  if (drawn_) fputs("\r\033[K", stderr);
}

void Progress::draw(uint64_t done, uint64_t total) {
  const int64_t now = now_ns();
  if (now < next_ns_ || total == 0) return;
  next_ns_ = now + interval_ns;
  drawn_ = true;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto full = static_cast<size_t>(part * static_cast<double>(width));
  const double seconds = static_cast<double>(now - begin_ns_) / 1e9;
  fprintf(stderr, "\r[%s%s] %3.0f %%, %.0f s left \033[K", std::string(full, '#').c_str(),
          std::string(width - full, ' ').c_str(), part * 100,
          part > 0 ? seconds / part - seconds : 0.0);
}

}  // namespace gofer::tool
