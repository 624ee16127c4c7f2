// The part of poller.h that is inlined, for epoll. Included there.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace gofer::internal::os {

inline constexpr char poller_open_fails[] = "epoll_create1, eventfd2 or epoll_ctl fails";
inline constexpr char poller_wait_fails[] = "epoll_pwait fails";

class PollEvent {
 public:
  static constexpr uint64_t ring_data = ~uint64_t{0};

  uint64_t data() const { return native_.data.u64; }
  bool is_ring() const { return data() == ring_data; }
  bool is_in() const { return (native_.events & (EPOLLIN | ends)) != 0; }
  bool is_out() const { return (native_.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0; }
  bool is_end() const { return (native_.events & ends) != 0; }

 private:
  static constexpr uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;

  epoll_event native_;
};
static_assert(sizeof(PollEvent) == sizeof(epoll_event));

}  // namespace gofer::internal::os
