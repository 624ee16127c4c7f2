// The errors of futures and promises.
#include <gofer/future.h>

#include <future>

namespace gofer::detail {
namespace {

std::future_error error_of(future_fault why) {
  switch (why) {
    case future_fault::already_retrieved:
      return std::future_error(std::future_errc::future_already_retrieved);
    case future_fault::already_satisfied:
      return std::future_error(std::future_errc::promise_already_satisfied);
    case future_fault::broken_promise:
      return std::future_error(std::future_errc::broken_promise);
    case future_fault::no_state:
      break;
  }
  return std::future_error(std::future_errc::no_state);
}

}  // namespace

void throw_future_error(future_fault why) { throw error_of(why); }
std::exception_ptr make_future_error(future_fault why) {
  return std::make_exception_ptr(error_of(why));
}

}  // namespace gofer::detail
