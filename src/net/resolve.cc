#include "net/resolve.h"

#include <gofer/blocking.h>
#include <gofer/chan.h>
#include <gofer/go.h>

#include <netdb.h>
#include <sys/un.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "io/fd_state.h"

namespace gofer::net {
namespace {

class ResolveCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "gofer.resolve"; }
  std::string message(int value) const override { return gai_strerror(value); }
};

struct Found {
  std::vector<address> addresses;
  std::error_code error;
};

Found fail(std::errc e) { return {{}, std::make_error_code(e)}; }

Found unix_address(std::string_view path) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  const bool abstract = path.starts_with('@');
  const bool has_zero = path.find('\0') != std::string_view::npos;
  if (path.empty() || (has_zero && !abstract)) return fail(std::errc::invalid_argument);
  if (path.size() + (abstract ? 0 : 1) > sizeof un.sun_path) {
    return fail(std::errc::filename_too_long);
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
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &list);
  if (error == EAI_SYSTEM && errno != 0) return {{}, internal::system_error_code(errno)};
  if (error != 0) return {{}, {error, resolve_category()}};
  Found found;
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next) {
    found.addresses.emplace_back(i->ai_addr, i->ai_addrlen);
  }
  freeaddrinfo(list);
  return found;
}

// A number that fits, or the name of a service. getaddrinfo() takes the lower bits of others.
bool is_port(const std::string& text) {
  if (std::isalpha(static_cast<unsigned char>(text[0])) != 0) return true;
  constexpr size_t most_digits = 5;
  return text.size() <= most_digits && text.find_first_not_of("0123456789") == std::string::npos &&
         std::stoi(text) <= 65535;
}

// "host:port" in its two parts; the brackets of an IPv6 address are taken off.
bool split(std::string_view text, std::string& host, std::string& port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return false;
  port = text.substr(colon + 1);
  std::string_view name = text.substr(0, colon);
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  } else if (name.find_first_of(":[]") != std::string_view::npos) {
    return false;
  }
  host = name;
  if (!is_port(port)) return false;
  return host.find('\0') == std::string::npos && port.find('\0') == std::string::npos;
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
  if (text.starts_with(unix_prefix)) return unix_address(text.substr(unix_prefix.size()));
  std::string host;
  std::string port;
  if (!split(text, host, port)) return fail(std::errc::invalid_argument);
  // Numbers are looked up nowhere.
  Found found = look_up(host, port, passive, AI_NUMERICHOST | AI_NUMERICSERV);
  if (!found.error) return found;
  return look_up_aside(ctx, std::move(host), std::move(port), passive);
}

}  // namespace

const std::error_category& resolve_category() noexcept {
  // Never destroyed: goroutines may need it until the process is gone.
  alignas(ResolveCategory) static char place[sizeof(ResolveCategory)];
  static const ResolveCategory* const category = ::new (place) ResolveCategory;
  return *category;
}

std::vector<address> resolve(const context* ctx, std::string_view text, bool passive,
                             std::error_code& ec) {
  Found found = find(ctx, text, passive);
  ec = found.error;
  return std::move(found.addresses);
}

}  // namespace gofer::net
