// goexit: a forced unwind of the goroutine's stack.
//
// The unwinder calls stop() for every frame and then the frame's cleanups; at the end of the stack
// (gofer_entry's CFI says so) the goroutine ends from within stop(), deep in the unwinder's frames,
// which nobody needs any more. A catch (...) that does not rethrow makes the C++ runtime delete the
// exception: that is the moment to say that goexit cannot be stopped.
#include <gofer/go.h>
#include <unwind.h>

#include <cstdlib>
#include <cstring>

#include "runtime/panic.h"
#include "runtime/sched.h"

namespace gofer {

using namespace internal;

namespace {

void swallowed(_Unwind_Reason_Code, _Unwind_Exception*) {
  fatal_error("goexit() was swallowed by a catch (...) that does not rethrow");
}

_Unwind_Reason_Code stop(int, _Unwind_Action actions, _Unwind_Exception_Class,
                         _Unwind_Exception* exception, _Unwind_Context*, void*) {
  if ((actions & _UA_END_OF_STACK) == 0) return _URC_NO_REASON;
  std::free(exception);
  finish_goroutine();
}

}  // namespace

void goexit() {
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr) {
    fatal_error("goexit() was called outside of a goroutine");
  }
  if (m->curg->is_main) sched.main_called_goexit.store(true, seq_cst);
  // On the heap: the cleanups run over this frame.
  auto* exception = static_cast<_Unwind_Exception*>(
      std::aligned_alloc(alignof(_Unwind_Exception), sizeof(_Unwind_Exception)));
  if (exception == nullptr) fatal_error("goexit(): out of memory");
  std::memset(exception, 0, sizeof *exception);
  std::memcpy(&exception->exception_class, "GOFRGOEX", 8);
  exception->exception_cleanup = swallowed;
  _Unwind_ForcedUnwind(exception, stop, nullptr);
  fatal_error("goexit(): the stack cannot be unwound");
}

}  // namespace gofer
