#include "net/resolve.h"

#include <gofer/blocking.h>
#include <gofer/chan.h>
#include <gofer/go.h>

#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "io/fd_state.h"
#include "os/socket.h"

namespace gofer::net {
namespace {

struct Found {
  std::vector<address> addresses;
  std::error_code error;
};

Found fail(address_errc e) { return {{}, e}; }

// Without a path: the kernel chooses an abstract name.
Found unix_address(std::string_view path, bool passive) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  const bool abstract = path.starts_with('@');
  const bool has_zero = path.find('\0') != std::string_view::npos;
  if (path.empty()) {
    if (!passive) return fail(address_errc::missing_path);
    return {{address(reinterpret_cast<sockaddr*>(&un), offsetof(sockaddr_un, sun_path))}, {}};
  }
  if (has_zero && !abstract) return fail(address_errc::zero_byte);
  if (path.size() + (abstract ? 0 : 1) > sizeof un.sun_path) {
    return fail(address_errc::path_too_long);
  }
  std::memcpy(un.sun_path, path.data(), path.size());
  if (abstract) un.sun_path[0] = '\0';
  const size_t size = offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1);
  return {{address(reinterpret_cast<sockaddr*>(&un), static_cast<socklen_t>(size))}, {}};
}

Found look_up(const std::string& host, const std::string& port, bool passive, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const char* name = host.empty() ? nullptr : host.c_str();
  const int error = internal::os::look_up(name, port.c_str(), &hints, &list);
  if (error == EAI_SYSTEM && errno != 0) return {{}, internal::system_error_code(errno)};
  if (error != 0) return {{}, {error, resolve_category()}};
  Found found;
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next) {
    found.addresses.emplace_back(i->ai_addr, i->ai_addrlen);
  }
  internal::os::free_found(list);
  return found;
}

// A number that fits, or the name of a service. getaddrinfo() takes the lower bits of others.
bool is_port(const std::string& text) {
  if (std::isalpha(static_cast<unsigned char>(text[0])) != 0) return true;
  constexpr size_t most_digits = 5;
  return text.size() <= most_digits && text.find_first_not_of("0123456789") == std::string::npos &&
         std::stoi(text) <= 65535;
}

// "host:port" in its two parts; the brackets of an IPv6 address are taken off. A listener gets any
// free port if none is named after the colon.
std::error_code split(std::string_view text, bool passive, std::string& host, std::string& port) {
  constexpr auto none = std::string_view::npos;
  if (text.find('\0') != none) return address_errc::zero_byte;
  std::string_view rest;  // from the colon before the port
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == none) return address_errc::bad_brackets;
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    if (host.empty() || (!rest.empty() && rest[0] != ':')) return address_errc::bad_brackets;
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    host = text.substr(0, colon);
    rest = text.substr(colon);
    if (rest.find(':', 1) != none) return address_errc::too_many_colons;
  }
  if (rest.empty() || (rest.size() == 1 && !passive)) return address_errc::missing_port;
  port = rest.size() == 1 ? "0" : rest.substr(1);
  if ((host + port).find_first_of("[]") != none) return address_errc::bad_brackets;
  return is_port(port) ? std::error_code() : address_errc::bad_port;
}

// To dial all addresses of this machine is to dial this machine, which may listen with IPv4 alone.
void add_ipv4_of_any(Found& found) {
  if (found.addresses.size() != 1 || found.addresses[0].family() != AF_INET6) return;
  sockaddr_in6 any6{};
  std::memcpy(&any6, found.addresses[0].data(), sizeof any6);
  if (!IN6_IS_ADDR_UNSPECIFIED(&any6.sin6_addr)) return;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = any6.sin6_port;
  found.addresses.emplace_back(reinterpret_cast<sockaddr*>(&any), sizeof any);
}

Found look_up_aside(const context* ctx, std::string host, std::string port, bool passive) {
  const auto look = [host = std::move(host), port = std::move(port), passive] {
    return blocking(handoff, [&] { return look_up(host, port, passive, 0); });
  };
  if (ctx == nullptr) return look();
  chan<Found> result(1);
  go([look, result] { result.send(look()); });
  if (auto found = result.recv(*ctx)) return std::move(*found);
  return {{}, ctx->err()};
}

Found find(const context* ctx, std::string_view text, bool passive) {
  constexpr std::string_view unix_prefix = "unix:";
  if (text.starts_with(unix_prefix)) {
    return unix_address(text.substr(unix_prefix.size()), passive);
  }
  std::string host;
  std::string port;
  if (const std::error_code bad = split(text, passive, host, port)) return {{}, bad};
  // Numbers are looked up nowhere.
  Found found = look_up(host, port, passive, AI_NUMERICHOST | AI_NUMERICSERV);
  if (!found.error) {
    if (!passive) add_ipv4_of_any(found);
    return found;
  }
  return look_up_aside(ctx, std::move(host), std::move(port), passive);
}

}  // namespace

std::vector<address> resolve(const context* ctx, std::string_view text, bool passive,
                             std::error_code& ec) {
  Found found = find(ctx, text, passive);
  ec = found.error;
  return std::move(found.addresses);
}

}  // namespace gofer::net
