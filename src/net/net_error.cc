#include <gofer/net_error.h>

#include <new>
#include <string>

#include "os/socket.h"

namespace gofer::net {
namespace {

class AddressCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "gofer.address"; }
  std::string message(int value) const override {
    switch (static_cast<address_errc>(value)) {
      case address_errc::missing_port:
        return "missing port in address";
      case address_errc::too_many_colons:
        return "too many colons in address";
      case address_errc::bad_brackets:
        return "misplaced brackets in address";
      case address_errc::bad_port:
        return "invalid port in address";
      case address_errc::zero_byte:
        return "zero byte in address";
      case address_errc::missing_path:
        return "missing path in address";
      case address_errc::path_too_long:
        return "path too long for a unix-domain socket";
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(int value) const noexcept override {
    return static_cast<address_errc>(value) == address_errc::path_too_long
               ? std::errc::filename_too_long
               : std::errc::invalid_argument;
  }
};

class ResolveCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "gofer.resolve"; }
  std::string message(int value) const override { return internal::os::look_up_error(value); }
};

// Never destroyed: goroutines may need it until the process is gone.
template <class Category>
const std::error_category& the_only() {
  alignas(Category) static char place[sizeof(Category)];
  static const Category* const category = ::new (place) Category;
  return *category;
}

}  // namespace

const std::error_category& address_category() noexcept { return the_only<AddressCategory>(); }
const std::error_category& resolve_category() noexcept { return the_only<ResolveCategory>(); }

}  // namespace gofer::net
