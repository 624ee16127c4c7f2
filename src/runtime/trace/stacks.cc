#include "runtime/trace/stacks.h"

#include <unwind.h>

#include <cstdlib>
#include <new>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "arch/arch.h"
#include "os/memory.h"
#include "runtime/base/lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal::tracer {

namespace {

constexpr size_t shape_buckets = 1u << 14;
constexpr int most_shapes = 32;  // that Shape::may_be does not tell apart
constexpr size_t chunk_size = 256 * 1024;
constexpr size_t most_bytes = 32u << 20;
constexpr uint64_t multiplier = 0x9e3779b97f4a7c15u;

// A stack that is being looked up. It does not change meanwhile, because it is the caller's.
struct Wanted {
  uintptr_t top;
  uintptr_t here;  // the frame of stack_here
  uintptr_t first_return;
  uintptr_t entry;

  uint32_t depth() const { return static_cast<uint32_t>(top - here); }
  size_t shape_bucket() const {
    return ((first_return ^ entry << 16 ^ static_cast<uint64_t>(depth()) << 32) * multiplier) >> 50;
  }
};

}  // namespace

/// Where the return addresses of a stack lie.
struct Shape {
  Shape* next;  // in the table
  uintptr_t first_return;
  uintptr_t entry;
  uint32_t depth;  // of stack_here's frame
  uint32_t calls;
  atomic<Stack*> stacks[4];  // the first ones that were learned with it, to be tried first

  bool may_be(const Wanted& w) const {
    return first_return == w.first_return && depth == w.depth() && entry == w.entry;
  }
  /// Behind the record: bytes below the stack's top.
  uint32_t* places() { return reinterpret_cast<uint32_t*>(this + 1); }
  const uint32_t* places() const { return reinterpret_cast<const uint32_t*>(this + 1); }
};

constinit atomic<Stack*> stack_table[stack_buckets];

namespace {

constinit atomic<Shape*> shape_table[shape_buckets];

struct Room {
  Lock lock{LockRank::trace_texts};
  char* at GOFER_GUARDED_BY(lock) = nullptr;
  size_t left GOFER_GUARDED_BY(lock) = 0;
  size_t bytes GOFER_GUARDED_BY(lock) = 0;  // in all
  uint32_t most GOFER_GUARDED_BY(lock) = most_stacks;
  atomic<uint32_t> stacks{0};  // written under the lock
  atomic<bool> full{false};    // written under the lock
};
constinit Room room;

void* take_room(size_t size) GOFER_REQUIRES(room.lock) {
  size = (size + alignof(Shape) - 1) & ~(alignof(Shape) - 1);
  if (room.left < size) {
    if (room.bytes + chunk_size > most_bytes) return nullptr;
    room.at = static_cast<char*>(os::reserve(chunk_size));
    room.left = room.at != nullptr ? chunk_size : 0;
    if (room.at == nullptr) return nullptr;
    room.bytes += chunk_size;
  }
  void* taken = room.at;
  room.at += size;
  room.left -= size;
  return taken;
}

// The sanitizers' view of a stack is variables, and these are return addresses.
__attribute__((no_sanitize("address", "thread"))) inline uintptr_t value_at(uintptr_t place) {
  return *reinterpret_cast<const uintptr_t*>(place);
}

__attribute__((no_sanitize("address", "thread"))) inline bool is_same(const Wanted& w,
                                                                      const Shape& shape,
                                                                      Stack& stack) {
  const uint32_t* places = shape.places();
  const uintptr_t* returns = stack.returns();
  for (uint32_t i = 0; i < shape.calls; ++i) {
    if (value_at(w.top - places[i]) != returns[i]) return false;
  }
  return true;
}

inline uint64_t mix(uint64_t hash, uintptr_t value) { return (hash << 7 | hash >> 57) ^ value; }
inline uint64_t finish(uint64_t hash) { return hash * multiplier; }
inline atomic<Stack*>& stack_bucket(uint64_t hash) { return stack_table[hash >> 50]; }
static_assert(stack_buckets == 1u << (64 - 50) && shape_buckets == stack_buckets);

__attribute__((no_sanitize("address", "thread"))) Stack* find_by_hash(const Wanted& w,
                                                                      const Shape& shape) {
  const uint32_t* places = shape.places();
  uint64_t hash = w.entry;
  for (uint32_t i = 0; i < shape.calls; ++i) hash = mix(hash, value_at(w.top - places[i]));
  hash = finish(hash);
  for (Stack* s = stack_bucket(hash).load(acquire); s != nullptr; s = s->next) {
    if (s->hash == hash && s->shape == &shape && is_same(w, shape, *s)) return s;
  }
  return nullptr;
}

inline Stack* find_in(const Wanted& w, const Shape& shape) {
  for (const atomic<Stack*>& candidate : shape.stacks) {
    Stack* s = candidate.load(acquire);
    if (s == nullptr) return nullptr;
    if (is_same(w, shape, *s)) return s;
  }
  return find_by_hash(w, shape);
}

// --- Learning a stack.

struct Walk {
  const Wanted& wanted;
  uint32_t calls = 0;
  uint32_t places[most_calls]{};
  uintptr_t returns[most_calls]{};
};

// The context of a frame has the stack pointer at which the frame goes on after its call.
_Unwind_Reason_Code take_call(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const uintptr_t pc = _Unwind_GetIP(context);
  const uintptr_t place = _Unwind_GetCFA(context) + arch::return_place;
  if (place < walk.wanted.here) return _URC_NO_REASON;  // this file's own
  // The code that a signal has interrupted has made no call, and other architectures may keep a
  // return address elsewhere. Such a stack ends there.
  if (place >= walk.wanted.top || walk.calls == most_calls || value_at(place) != pc) {
    return _URC_END_OF_STACK;
  }
  walk.places[walk.calls] = static_cast<uint32_t>(walk.wanted.top - place);
  walk.returns[walk.calls] = pc;
  ++walk.calls;
  return _URC_NO_REASON;
}

// Older unwinders take the loader's lock, which a paused goroutine may hold.
bool unwinds_without_lock() {
#ifdef __GLIBC__
  char* end;
  const long major = std::strtol(gnu_get_libc_version(), &end, 10);
  return major > 2 || (major == 2 && *end == '.' && std::strtol(end + 1, nullptr, 10) >= 35);
#else
  return false;
#endif
}

bool has_shape(const Shape& s, const Walk& walk) {
  if (!s.may_be(walk.wanted) || s.calls != walk.calls) return false;
  for (uint32_t i = 0; i < walk.calls; ++i) {
    if (s.places()[i] != walk.places[i]) return false;
  }
  return true;
}

Shape* shape_of(const Walk& walk) {
  Shape* s = shape_table[walk.wanted.shape_bucket()].load(acquire);
  while (s != nullptr && !has_shape(*s, walk)) s = s->next;
  return s;
}

Shape* new_shape(const Walk& walk) GOFER_REQUIRES(room.lock) {
  void* place = take_room(sizeof(Shape) + walk.calls * sizeof(uint32_t));
  if (place == nullptr) return nullptr;
  auto* s = ::new (place) Shape{};
  s->first_return = walk.wanted.first_return;
  s->entry = walk.wanted.entry;
  s->depth = walk.wanted.depth();
  s->calls = walk.calls;
  for (uint32_t i = 0; i < walk.calls; ++i) s->places()[i] = walk.places[i];
  return s;
}

Stack* new_stack(const Walk& walk, const Shape* shape) GOFER_REQUIRES(room.lock) {
  if (room.stacks.load(relaxed) >= room.most) return nullptr;
  void* place = take_room(sizeof(Stack) + walk.calls * sizeof(uintptr_t));
  if (place == nullptr) return nullptr;
  auto* s = ::new (place) Stack{};
  uint64_t hash = s->entry = walk.wanted.entry;
  s->shape = shape;
  s->id = room.stacks.load(relaxed) + 1;
  s->calls = walk.calls;
  for (uint32_t i = 0; i < walk.calls; ++i) {
    s->returns()[i] = walk.returns[i];
    hash = mix(hash, walk.returns[i]);
  }
  s->hash = finish(hash);
  room.stacks.store(s->id, relaxed);
  return s;
}

template <class T>
void publish(T* item, atomic<T*>& bucket) {
  item->next = bucket.load(relaxed);
  bucket.store(item, release);
}

[[gnu::noinline, gnu::cold]] Stack* learn(const Wanted& w) {
  static const bool can = unwinds_without_lock();
  if (!can || room.full.load(relaxed)) return nullptr;
  Walk walk{w};
  _Unwind_Backtrace(take_call, &walk);
  if (walk.calls == 0 || walk.returns[0] != w.first_return) return nullptr;
  LockGuard guard(room.lock);
  Shape* known = shape_of(walk);
  if (known != nullptr) {  // perhaps the stack is known, too, since another thread has learned it
    if (Stack* s = find_in(w, *known); s != nullptr) return s;
  }
  Shape* shape = known != nullptr ? known : new_shape(walk);
  Stack* s = shape != nullptr ? new_stack(walk, shape) : nullptr;
  if (s == nullptr) {
    room.full.store(true, relaxed);
    return nullptr;
  }
  publish(s, stack_bucket(s->hash));
  for (atomic<Stack*>& candidate : shape->stacks) {
    if (candidate.load(relaxed) != nullptr) continue;
    candidate.store(s, release);
    break;
  }
  if (known == nullptr) publish(shape, shape_table[w.shape_bucket()]);
  return s;
}

}  // namespace

Stack* stack_here(const M* m) {
  const G* g = m->curg;
  if (g == nullptr) return nullptr;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const Wanted w{reinterpret_cast<uintptr_t>(g->head), here,
                 reinterpret_cast<uintptr_t>(__builtin_return_address(0)), entry_of(g)};
  if (w.top - w.here >= stack_size(g->stack_class)) return nullptr;
  int looks = 0;
  for (Shape* s = shape_table[w.shape_bucket()].load(acquire); s != nullptr; s = s->next) {
    if (!s->may_be(w)) continue;
    if (Stack* found = find_in(w, *s); found != nullptr) return found;
    if (++looks == most_shapes) return nullptr;
  }
  return learn(w);
}

uint32_t count_stacks() { return room.stacks.load(relaxed); }

void limit_stacks(uint32_t most) {
  LockGuard guard(room.lock);
  room.most = most;
  room.full.store(false, relaxed);
}

}  // namespace gofer::internal::tracer
