// An exception of a goroutine that no caller takes: one line says what was lost. The future or the
// task_group that held the exception is gone, so there is no caller to throw it to. Rejected: to
// end the process, as an exception does that leaves a goroutine. That would punish a caller that
// has failed elsewhere and drops its other futures on the way out.
#include <cxxabi.h>
#include <gofer/future.h>

#include <exception>
#include <typeinfo>

#include "debug/symbol_name.h"
#include "runtime/report/panic.h"

namespace gofer::detail {

using namespace internal;

void report_untaken(const std::exception_ptr& error, const char* holder) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    warn("an exception was lost with its %s: %s: %s", holder,
         short_symbol(typeid(e).name()).c_str(), e.what());
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    warn("an exception was lost with its %s: %s", holder,
         type == nullptr ? "?" : short_symbol(type->name()).c_str());
  }
}

}  // namespace gofer::detail
