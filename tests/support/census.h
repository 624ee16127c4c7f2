// What the kernel says of the process's descriptors: how many of a kind there are, and how many the
// netpoller watches. Unlike the number of all descriptors these are exact: the runtime opens files
// for a moment at any time, but has no socket and no pipe of its own.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace gofer::test {

/// Calls visit(number, what it is), both texts, for each descriptor.
template <class Visit>
void for_each_descriptor(Visit visit) {
  std::error_code ec;
  for (auto i = std::filesystem::directory_iterator("/proc/self/fd", ec);
       !ec && i != std::filesystem::directory_iterator(); i.increment(ec)) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(i->path(), gone);
    if (!gone) visit(i->path().filename().string(), what);
  }
}

inline int open_sockets_and_pipes() {
  int n = 0;
  for_each_descriptor([&](const std::string&, const std::string& what) {
    n += what.starts_with("socket:") || what.starts_with("pipe:");
  });
  return n;
}

/// How many descriptors the process's epoll instances watch, one of the runtime's own among them; 0
/// if that cannot be known.
inline int watched_descriptors() {
  int n = 0;
  for_each_descriptor([&](const std::string& number, const std::string& what) {
    if (what != "anon_inode:[eventpoll]") return;
    std::ifstream info("/proc/self/fdinfo/" + number);
    for (std::string line; std::getline(info, line);) n += line.starts_with("tfd:");
  });
  return n;
}

}  // namespace gofer::test
