// goexit: a forced unwind of the goroutine's stack.
//
// The unwinder calls stop() for every frame and then the frame's cleanups; at the end of the stack
// (gofer_entry's CFI says so) the goroutine ends from within stop(), deep in the unwinder's frames,
// which are not needed any more. A catch (...) that does not rethrow makes the C++ runtime delete
// the exception: that is the moment to say that goexit cannot be stopped.
//
// The exception looks like one of C++'s own. With a foreign one, a catch (...) that rethrows inside
// of another catch block would end the process: libstdc++ does not nest foreign exceptions.
#include <cxxabi.h>
#include <gofer/go.h>
#include <unwind.h>

#include <exception>
#include <typeinfo>

#include "runtime/goroutines/spawn.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/sched/switch.h"

namespace gofer {
namespace internal {
namespace {

void swallowed(_Unwind_Reason_Code, _Unwind_Exception*) {
  fatal_error("goexit() was swallowed by a catch (...) that does not rethrow");
}

_Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class,
                         _Unwind_Exception* exception, _Unwind_Context*, void*) {
  if ((actions & _UA_END_OF_STACK) == 0) return _URC_NO_REASON;
  abi::__cxa_free_exception(exception + 1);
  finish_goroutine();
}

[[noreturn]] void unwind_all() {
  struct GoexitUnwind {};
  void* object = abi::__cxa_allocate_exception(sizeof(GoexitUnwind));
  auto* header = abi::__cxa_init_primary_exception(
      object, const_cast<std::type_info*>(&typeid(GoexitUnwind)), nullptr);
  *reinterpret_cast<int*>(header) = 1;  // the reference count is its first field
  auto* exception = static_cast<_Unwind_Exception*>(object) - 1;  // and the header ends with this
  exception->exception_cleanup = swallowed;
  ++current_m()->exceptions->uncaught;  // catch and rethrow count it down and up
  _Unwind_ForcedUnwind(exception, stop, nullptr);
  fatal_error("goexit(): the stack cannot be unwound");
}

}  // namespace
}  // namespace internal

bool detail::goroutine_exits() noexcept {
  const internal::M* m = internal::current_m();
  return m != nullptr && m->curg != nullptr && m->curg->head->exits;
}

void goexit() {
  using namespace internal;
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr) {
    fatal_error("goexit() was called outside of a goroutine");
  }
  if (m->curg->is_main) goroutines.main_called_goexit.store(true, seq_cst);
  m->curg->head->exits = true;
  unwind_all();
}

}  // namespace gofer
