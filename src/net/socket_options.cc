#include "net/socket_options.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "os/socket.h"

namespace gofer::net {

namespace {

// What an int cannot hold becomes what the kernel refuses.
int to_int(std::chrono::seconds s) {
  return static_cast<int>(std::clamp<std::int64_t>(s.count(), -1, INT_MAX));
}

}  // namespace

int set_option(int native, int level, int name, int value) noexcept {
  return -internal::os::set_option(native, level, name, value);
}

int apply_keep_alive(int native, const keep_alive& how) noexcept {
  if (!how.enabled) return set_option(native, SOL_SOCKET, SO_KEEPALIVE, 0);
  if (const int error = set_option(native, SOL_SOCKET, SO_KEEPALIVE, 1)) return error;
  const int idle = to_int(how.idle);
  const int interval = to_int(how.interval);
  if (const int error = set_option(native, IPPROTO_TCP, TCP_KEEPIDLE, idle)) return error;
  if (const int error = set_option(native, IPPROTO_TCP, TCP_KEEPINTVL, interval)) return error;
  return set_option(native, IPPROTO_TCP, TCP_KEEPCNT, how.probes);
}

int prepare_tcp(int native, const keep_alive& how) noexcept {
  set_option(native, IPPROTO_TCP, TCP_NODELAY, 1);
  return apply_keep_alive(native, how) == EINVAL ? EINVAL : 0;
}

}  // namespace gofer::net
