#include <gofer/context_error.h>

#include <new>
#include <string>

namespace gofer {
namespace {

class ContextCategory : public std::error_category {
 public:
  const char* name() const noexcept override { return "gofer.context"; }
  std::string message(int value) const override {
    switch (static_cast<context_errc>(value)) {
      case context_errc::canceled:
        return "context canceled";
      case context_errc::deadline_exceeded:
        return "context deadline exceeded";
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<context_errc>(value)) {
      case context_errc::canceled:
        return std::errc::operation_canceled;
      case context_errc::deadline_exceeded:
        return std::errc::timed_out;
    }
    return {value, *this};
  }
};

}  // namespace

const std::error_category& context_category() noexcept {
  // Never destroyed: goroutines may need it until the process is gone.
  alignas(ContextCategory) static char place[sizeof(ContextCategory)];
  static const ContextCategory* const category = ::new (place) ContextCategory;
  return *category;
}

}  // namespace gofer
