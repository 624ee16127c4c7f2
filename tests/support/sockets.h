// What tests of sockets share: where they are, and connections.
#pragma once

#include <arpa/inet.h>
#include <dirent.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace gofer::test {

/// A folder for socket files, removed at the end with all that is in it.
class SocketFolder {
 public:
  SocketFolder() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~SocketFolder() {
    if (DIR* dir = opendir(folder_.c_str()); dir != nullptr) {
      while (const dirent* entry = readdir(dir)) unlink(path(entry->d_name).c_str());
      closedir(dir);
    }
    rmdir(folder_.c_str());
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string address(const std::string& name) const { return "unix:" + path(name); }

 private:
  std::string folder_ = testing::TempDir() + "gofer-net-XXXXXX";
};

/// Any port of a loopback address that no other process has: what was the port of a listener may be
/// that of another test's the next moment.
inline std::string own_loopback() {
  const auto id = static_cast<unsigned>(getpid());
  const auto part = [id](unsigned shift) { return std::to_string(id >> shift & 0xff); };
  return "127." + std::to_string(64 + (id >> 16 & 0x7f)) + "." + part(8) + "." + part(0) + ":0";
}

inline bool has_ipv6() {
  const int native = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (native < 0) return false;
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_addr = in6addr_loopback;
  const bool has = bind(native, reinterpret_cast<sockaddr*>(&in), sizeof in) == 0;
  close(native);
  return has;
}

/// Both ends of a TCP connection.
struct Connection {
  net::conn client;
  net::conn server;
};

inline Connection connect_to(const net::listener& l) {
  net::conn client = net::dial(l.local_address().to_string());
  return {client, l.accept()};
}

inline Connection make_connection() { return connect_to(net::listen("127.0.0.1:0")); }

}  // namespace gofer::test
