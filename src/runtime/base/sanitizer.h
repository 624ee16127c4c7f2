// ASan and TSan follow a program by its stacks, so they are told of every switch. In builds without
// a sanitizer all of this is nothing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define GOFER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GOFER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define GOFER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GOFER_TSAN 1
#endif
#endif

#ifdef GOFER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef GOFER_TSAN
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>
#endif

namespace gofer::internal {

#if defined(GOFER_ASAN) || defined(GOFER_TSAN)
inline constexpr bool sanitizers_enabled = true;
#else
inline constexpr bool sanitizers_enabled = false;
#endif

#if defined(GOFER_ASAN)
inline constexpr bool asan_enabled = true;
#else
inline constexpr bool asan_enabled = false;
#endif
#if defined(GOFER_TSAN)
inline constexpr bool tsan_enabled = true;
#else
inline constexpr bool tsan_enabled = false;
#endif

#if defined(GOFER_ASAN)

struct SanitizerFiber {
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  size_t size = 0;
};

inline void sanitizer_start(SanitizerFiber& f, const void* bottom, size_t size) {
  f.bottom = bottom;
  f.size = size;
}
inline void sanitizer_adopt_thread(SanitizerFiber&) {}
inline void sanitizer_end(SanitizerFiber&) {}
inline void sanitizer_before_switch(SanitizerFiber& from, SanitizerFiber& to, bool from_ends) {
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_stack, to.bottom, to.size);
}
// `self` runs again; `left` ran before it on this thread. The bounds of a thread's own
// stack are learned the first time that it is left.
inline void sanitizer_after_switch(SanitizerFiber& self, SanitizerFiber* left) {
  const void* bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &size);
  self.fake_stack = nullptr;
  if (left != nullptr && left->bottom == nullptr) {
    left->bottom = bottom;
    left->size = size;
  }
}
inline void sanitizer_forget_stack(const void* from, size_t size) {
  __asan_unpoison_memory_region(from, size);
}
// Pointers on parked stacks and in records keep what they point to from being a leak.
inline void sanitizer_add_root(const void* p, size_t size) { __lsan_register_root_region(p, size); }
inline void sanitizer_remove_root(const void* p, size_t size) {
  __lsan_unregister_root_region(p, size);
}
// What f allocates is never a leak.
template <class F>
inline void sanitizer_allow_leak(F f) {
  __lsan_disable();
  f();
  __lsan_enable();
}

#elif defined(GOFER_TSAN)

struct SanitizerFiber {
  void* fiber = nullptr;
};

inline void sanitizer_start(SanitizerFiber& f, const void*, size_t) {
  f.fiber = __tsan_create_fiber(0);
}
inline void sanitizer_adopt_thread(SanitizerFiber& f) { f.fiber = __tsan_get_current_fiber(); }
inline void sanitizer_end(SanitizerFiber& f) {
  __tsan_destroy_fiber(f.fiber);
  f.fiber = nullptr;
}
// The switch orders what went before it on this thread: an M's and a P's plain fields are handed
// from stack to stack by it. The price: TSan does not see a race between two goroutines that
// happened to run one after the other on one thread.
inline void sanitizer_before_switch(SanitizerFiber&, SanitizerFiber& to, bool) {
  __tsan_switch_to_fiber(to.fiber, 0);
}
inline void sanitizer_after_switch(SanitizerFiber&, SanitizerFiber*) {}
inline void sanitizer_forget_stack(const void*, size_t) {}
inline void sanitizer_add_root(const void*, size_t) {}
inline void sanitizer_remove_root(const void*, size_t) {}
template <class F>
inline void sanitizer_allow_leak(F f) {
  f();
}
/// TSan delays a signal handler until its thread calls libc. No cancellation point.
inline void sanitizer_let_signals_in() {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  usleep(0);
  pthread_setcancelstate(before, nullptr);
}

#else

struct SanitizerFiber {};

inline void sanitizer_start(SanitizerFiber&, const void*, size_t) {}
inline void sanitizer_adopt_thread(SanitizerFiber&) {}
inline void sanitizer_end(SanitizerFiber&) {}
inline void sanitizer_before_switch(SanitizerFiber&, SanitizerFiber&, bool) {}
inline void sanitizer_after_switch(SanitizerFiber&, SanitizerFiber*) {}
inline void sanitizer_forget_stack(const void*, size_t) {}
inline void sanitizer_add_root(const void*, size_t) {}
inline void sanitizer_remove_root(const void*, size_t) {}
template <class F>
inline void sanitizer_allow_leak(F f) {
  f();
}

#endif

}  // namespace gofer::internal
