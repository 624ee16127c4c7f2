#include <gofer/net.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

#include "os/socket.h"

namespace gofer::net {
namespace {

template <class T>
T as(const address& a) {
  T value{};
  std::memcpy(&value, a.data(), sizeof value);
  return value;
}

// A path ends with a zero or with the address; an abstract name begins with a zero and has its
// length from the address alone.
std::string unix_name(const address& a) {
  const char* name = reinterpret_cast<const char*>(a.data()) + offsetof(sockaddr_un, sun_path);
  if (a.size() <= offsetof(sockaddr_un, sun_path)) return {};
  const size_t size = a.size() - offsetof(sockaddr_un, sun_path);
  if (name[0] != '\0') return {name, strnlen(name, size)};
  return "@" + std::string(name + 1, size - 1);
}

// The interface that a link-local address belongs to.
std::string scope_name(unsigned index) {
  char name[IF_NAMESIZE];
  return "%" + (internal::os::interface_name(index, name) != nullptr ? std::string(name)
                                                                     : std::to_string(index));
}

}  // namespace

address::address(const sockaddr* data, socklen_t size) noexcept {
  size_ = size < sizeof storage_ ? size : sizeof storage_;
  if (size_ != 0) std::memcpy(&storage_, data, size_);
}

std::string address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  switch (family()) {
    case AF_INET: {
      const auto in = as<sockaddr_in>(*this);
      inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
      return text;
    }
    case AF_INET6: {
      const auto in = as<sockaddr_in6>(*this);
      inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
      return in.sin6_scope_id == 0 ? text : text + scope_name(in.sin6_scope_id);
    }
    case AF_UNIX:
      return unix_name(*this);
    default:
      return {};
  }
}

std::uint16_t address::port() const noexcept {
  switch (family()) {
    case AF_INET:
      return ntohs(as<sockaddr_in>(*this).sin_port);
    case AF_INET6:
      return ntohs(as<sockaddr_in6>(*this).sin6_port);
    default:
      return 0;
  }
}

std::string address::to_string() const {
  switch (family()) {
    case AF_INET:
      return host() + ":" + std::to_string(port());
    case AF_INET6:
      return "[" + host() + "]:" + std::to_string(port());
    case AF_UNIX:
      return "unix:" + host();
    default:
      return {};
  }
}

bool operator==(const address& a, const address& b) noexcept {
  return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
}

}  // namespace gofer::net
