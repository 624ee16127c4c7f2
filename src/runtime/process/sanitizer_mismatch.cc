// A program with a sanitizer and a runtime without it.
//
// A sanitizer that is not told of switches takes every goroutine's stack for that of the thread,
// and TSan does not see the runtime's atomics either: the program gets reports of errors that are
// none. The sanitizer's own start function shows that it is in the process.
//
// Rejected: telling sanitizers of switches in every build, through weak symbols. TSan would still
// have to see each atomic operation of channels and locks, which only a build for it contains, and
// every switch would pay for the question.
#include "runtime/process/sanitizer_mismatch.h"

#include "runtime/base/sanitizer.h"
#include "runtime/report/panic.h"

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
[[gnu::weak]] void __msan_init();
}

namespace gofer::internal {

void warn_of_sanitizer() {
  if (!asan_enabled && __asan_init != nullptr) {
    warn(
        "the program is built with -fsanitize=address and Gofer is not: its reports may be false. "
        "Build Gofer with -DGOFER_SANITIZE=address");
  }
  if (!tsan_enabled && __tsan_init != nullptr) {
    warn(
        "the program is built with -fsanitize=thread and Gofer is not: its reports will be false. "
        "Build Gofer with -DGOFER_SANITIZE=thread");
  }
  if (__msan_init != nullptr) {
    warn("the program is built with -fsanitize=memory, which does not know goroutines");
  }
}

}  // namespace gofer::internal
