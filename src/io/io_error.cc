#include <gofer/io_error.h>

#include <new>
#include <string>

namespace gofer {
namespace {

class IoCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "gofer.io"; }
  std::string message(int value) const override {
    switch (static_cast<io_errc>(value)) {
      case io_errc::closed:
        return "use of closed descriptor";
      case io_errc::unexpected_end:
        return "unexpected end of input";
      case io_errc::deadline_exceeded:
        return "descriptor's deadline exceeded";
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<io_errc>(value)) {
      case io_errc::closed:
        return std::errc::bad_file_descriptor;
      case io_errc::deadline_exceeded:
        return std::errc::timed_out;
      default:
        return {value, *this};
    }
  }
};

}  // namespace

const std::error_category& io_category() noexcept {
  // Never destroyed: goroutines may need it until the process is gone.
  alignas(IoCategory) static char place[sizeof(IoCategory)];
  static const IoCategory* const category = ::new (place) IoCategory;
  return *category;
}

}  // namespace gofer
