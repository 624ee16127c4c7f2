// An exception of a goroutine that no caller takes: one line says what was lost. The future or the
// task_group that held the exception is gone, so there is no caller to throw it to. Rejected: to
// end the process, as an exception does that leaves a goroutine. That would punish a caller that
// has failed elsewhere and drops its other futures on the way out.
#include <cxxabi.h>
#include <gofer/future.h>

#include <exception>
#include <new>
#include <typeinfo>

#include "debug/fd_writer.h"
#include "debug/symbol_name.h"

namespace gofer::detail {

using namespace internal;

namespace {

void write_type(FdWriter& out, const std::type_info& type) {
  try {
    out.write(short_symbol(type.name()));
  } catch (const std::bad_alloc&) {
    out.write(type.name());
  }
}

void write_text(FdWriter& out, const std::exception& e) {
  const char* text = e.what();
  if (text == nullptr) return;
  out.write(": ");
  out.write(text);
}

}  // namespace

void report_untaken(const std::exception_ptr& error, const char* holder) noexcept {
  FdWriter out(STDERR_FILENO);
  out.print("gofer: an exception was lost with its %s: ", holder);
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    write_type(out, typeid(e));
    out.flush();  // what() is user code, which may wait, or end the process
    write_text(out, e);
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    if (type != nullptr) {
      write_type(out, *type);
    } else {
      out.write("?");
    }
  }
  out.write("\n");
}

}  // namespace gofer::detail
