// Printing of traces.
//
// Invariants:
//  - One thread at a time uses libdw.
//  - Symbolising runs on a stack of its own, because one long template name takes 40 KiB in the
//    demangler, and a trace may be needed on a signal stack, or at the end of a goroutine's stack.
//  - If symbolising fails (no memory, libdw busy or faulted), the plain printers print module and
//    offset, so that a report is never without a trace. After a fault, libdw is not used again.
//
// Rejected: a child process that symbolises, because fork waits for the allocator's locks, and the
// allocator may be what is broken.
#include "debug/traceback.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <csignal>
#include <string_view>
#include <utility>

#include "debug/fault_guard.h"
#include "debug/fd_writer.h"
#include "debug/symbol_name.h"
#include "debug/symbolize.h"
#include "os/thread.h"

namespace gofer::internal {
namespace {

// Lets one thread at a time use libdw. It is not a lock of the runtime, because it must work in any
// thread and state. A thread that holds it may come here again, if libdw faults and the handler
// prints a trace. It must not wait for itself, and no thread may wait for ever: such a thread uses
// the plain printers.
class SymbolLock {
 public:
  SymbolLock() {
    constexpr int patience_ms = 10'000;
    const pid_t self = gettid();
    for (int waited_ms = 0; waited_ms < patience_ms; ++waited_ms) {
      pid_t nobody = 0;
      held_ = owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire);
      if (held_ || nobody == self) return;
      usleep(1000);
    }
  }
  ~SymbolLock() {
    if (held_) owner_.store(0, std::memory_order_release);
  }
  SymbolLock(const SymbolLock&) = delete;
  SymbolLock& operator=(const SymbolLock&) = delete;
  bool held() const { return held_; }

 private:
  static inline std::atomic<pid_t> owner_{0};
  bool held_ = false;
};

// Blocks every signal that has a handler, because a second signal on the same signal stack would
// begin at its top and overwrite the frames that called this code. The signals by which this code
// itself could fail stay unblocked if they were: their handler makes a report and does not return.
sigset_t mask_without_handlers(const sigset_t& before) {
  constexpr int highest = 64;
  sigset_t mask = before;
  for (int signal = 1; signal <= highest; ++signal) {
    if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
        signal == SIGABRT) {
      continue;
    }
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) sigaddset(&mask, signal);
  }
  return mask;
}

void run_on_large_stack(void (*run)(void*), void* argument) {
  constexpr size_t guard_size = 4096;
  constexpr size_t size = size_t{1} << 20;
  void* stack = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return run(argument);
  mprotect(stack, guard_size, PROT_NONE);
  sigset_t before;
  os::set_signal_mask(SIG_BLOCK, nullptr, &before);
  const sigset_t meanwhile = mask_without_handlers(before);
  os::set_signal_mask(SIG_SETMASK, &meanwhile, nullptr);
  arch::gofer_call_on_stack(run, argument, static_cast<char*>(stack) + size);
  os::set_signal_mask(SIG_SETMASK, &before, nullptr);
  munmap(stack, size);
}

// The plain printers: they print the dynamic linker's symbols as they are, and need no memory.

void print_plain_name(FdWriter& out, uintptr_t lookup) {
  Dl_info info;
  const bool known =
      dladdr(reinterpret_cast<void*>(lookup), &info) != 0 && info.dli_sname != nullptr;
  out.write(known ? info.dli_sname : "?");
}

void print_plain_location(FdWriter& out, uintptr_t lookup) {
  Dl_info info;
  link_map* map = nullptr;
  const bool known = dladdr1(reinterpret_cast<void*>(lookup), &info, reinterpret_cast<void**>(&map),
                             RTLD_DL_LINKMAP) != 0;
  out.write("\t");
  if (known) out.write(info.dli_fname);
  out.print("%s0x%zx\n", known ? "+" : "", known ? lookup - map->l_addr : lookup);
}

void print_plain(FdWriter& out, uintptr_t lookup) {
  print_plain_name(out, lookup);
  out.write("(...)\n");
  print_plain_location(out, lookup);
}

std::string_view name_or_unknown(const SymbolFrame& frame) {
  return frame.name.empty() ? "?" : std::string_view(frame.name);
}

// The line under a function's name.
void print_location(FdWriter& out, const SymbolFrame& frame, uintptr_t pc) {
  out.write("\t");
  if (!frame.file.empty()) {
    out.write(frame.file);
    out.print(":%d", frame.line);
    if (frame.function != 0) out.print(" +0x%zx", pc - frame.function);
  } else if (!frame.module.empty()) {
    out.write(frame.module);
    out.print("+0x%zx", frame.module_offset);
  } else {
    out.print("0x%zx", pc);
  }
  out.write("\n");
}

struct Request {
  FdWriter& out;
  std::span<const uintptr_t> pcs;
  bool hide_internal;
  size_t next = 0;  // the frames before this one are printed
};

bool is_hidden(const SymbolFrame& frame) {
  if (!frame.name.empty()) return is_internal_name(frame.name);
  // The language's and the system's libraries have no names for their own inner functions.
  const std::string_view path = frame.module;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (std::string_view library : {"libc.so", "libstdc++.so", "libgcc_s.so", "libc++abi.so"}) {
    if (file.starts_with(library)) return true;
  }
  return false;
}

// Returns the number of frames that it has printed.
size_t print_symbolized(FdWriter& out, uintptr_t pc, uintptr_t lookup, bool hide) {
  size_t shown = 0;
  for (const SymbolFrame& frame : symbolize(lookup)) {
    if (hide && is_hidden(frame)) continue;
    out.write(name_or_unknown(frame));
    out.write("(...)\n");
    print_location(out, frame, pc);
    ++shown;
  }
  out.flush();  // libdw may fault at the next address
  return shown;
}

void print_all(void* argument) {
  Request& request = *static_cast<Request*>(argument);
  size_t shown = 0;
  for (bool hide : {request.hide_internal, false}) {
    for (size_t i = 0; i < request.pcs.size(); ++i) {
      request.next = i;
      const uintptr_t pc = request.pcs[i];
      const uintptr_t lookup = i == 0 ? pc : pc - 1;
      try {
        shown += print_symbolized(request.out, pc, lookup, hide);
      } catch (...) {  // no memory
        print_plain(request.out, lookup);
        ++shown;
      }
    }
    if (shown > 0) return;
  }
}

// libdw has faulted.
constinit std::atomic<bool> symbols_are_dead{false};

struct Work {
  void (*run)(void*);
  void* argument;
};

void run_work(void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  if (!run_guarded(work.run, work.argument)) symbols_are_dead = true;
}

// Does work that uses libdw. Returns false if the work could not be done, or not to its end.
bool run_with_symbols(void (*run)(void*), void* argument) {
  const SymbolLock lock;
  if (!lock.held() || symbols_are_dead) return false;
  Work work{run, argument};
  run_on_large_stack(run_work, &work);
  return !symbols_are_dead;
}

struct Creator {
  uintptr_t pc;
  SymbolFrame frame{};
};

// The function in whose source text the call before `pc` stands: the innermost function that is not
// the library's.
void find_creator(void* argument) {
  Creator& creator = *static_cast<Creator*>(argument);
  try {
    for (SymbolFrame& frame : symbolize(creator.pc - 1)) {
      creator.frame = std::move(frame);
      const std::string& name = creator.frame.name;
      if (!name.starts_with("gofer::") && !is_internal_name(name)) return;
    }
  } catch (...) {  // no memory: no name
  }
}

// malloc has other names in libc (__libc_malloc) and in sanitizers (__interceptor_malloc). fork
// holds the locks of the allocator while it makes the child.
bool is_allocator_name(std::string_view name) {
  for (std::string_view function :
       {"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign",
        "malloc_trim", "malloc_info", "malloc_stats", "mallinfo", "mallinfo2", "mallopt", "valloc",
        "pvalloc", "fork", "Fork"}) {
    if (name == function) return true;
    if (!name.ends_with(function)) continue;
    if (name[name.size() - function.size() - 1] == '_') return true;
  }
  return false;
}

}  // namespace

bool is_in_malloc(std::span<const uintptr_t> pcs) {
  for (uintptr_t pc : pcs) {
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(pc), &info) == 0 || info.dli_sname == nullptr) continue;
    if (is_allocator_name(info.dli_sname)) return true;
  }
  return false;
}

void print_frames(FdWriter& out, std::span<const uintptr_t> pcs, const FrameOptions& options) {
  Request request{out, pcs, options.hide_internal};
  if (!options.no_malloc && run_with_symbols(print_all, &request)) return;
  for (size_t i = request.next; i < pcs.size(); ++i) {
    print_plain(out, i == 0 ? pcs[i] : pcs[i] - 1);
  }
}

void print_frames(int fd, std::span<const uintptr_t> pcs, const FrameOptions& options) {
  FdWriter out(fd);
  print_frames(out, pcs, options);
}

void print_creator(FdWriter& out, uintptr_t pc, uint64_t parent_id, const FrameOptions& options) {
  out.write("created by ");
  Creator creator{pc};
  const bool known = !options.no_malloc && run_with_symbols(find_creator, &creator);
  if (known) {
    out.write(name_or_unknown(creator.frame));
  } else {
    print_plain_name(out, pc - 1);
  }
  if (parent_id != 0) out.print(" in goroutine %" PRIu64, parent_id);
  out.write("\n");
  if (known) {
    print_location(out, creator.frame, pc);
  } else {
    print_plain_location(out, pc - 1);
  }
}

void print_creator(int fd, uintptr_t pc, uint64_t parent_id, const FrameOptions& options) {
  FdWriter out(fd);
  print_creator(out, pc, parent_id, options);
}

std::string describe_pc(uintptr_t pc) {
  Creator creator{pc};
  run_with_symbols(find_creator, &creator);
  return std::string(name_or_unknown(creator.frame));
}

namespace {

// What is between the first '<' and the ',' or '>' that belongs to it; empty if there is no '<'.
std::string_view first_template_argument(std::string_view name) {
  const size_t begin = name.find('<');
  if (begin == name.npos) return {};
  int depth = 0;
  for (size_t i = begin + 1; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && (c == ',' || c == '>')) return name.substr(begin + 1, i - begin - 1);
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
  }
  return {};
}

// enter_small<bound<main::{lambda()#1}>>: main::{lambda#1}.
std::string called_by_entry(const std::string& symbol) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (demangled == nullptr) return {};
  std::string_view name = demangled;
  std::string result;
  while (name.starts_with("gofer::") || name.starts_with("void gofer::")) {
    name = first_template_argument(name);
    if (!name.empty()) result = name;
  }
  std::free(demangled);
  return result.empty() ? result : short_name(result);
}

// The library's own code stands for what the program has passed to it.
void name_after_callee(SymbolFrame& frame) {
  std::string called = called_by_entry(frame.symbol);
  if (!called.empty()) frame.name = std::move(called);
}

void find_entry(void* argument) {
  Creator& entry = *static_cast<Creator*>(argument);
  try {
    entry.frame = symbolize(entry.pc).back();
    name_after_callee(entry.frame);
  } catch (...) {  // no memory: no name
  }
}

void find_caller(void* argument) {
  find_creator(argument);
  try {
    name_after_callee(static_cast<Creator*>(argument)->frame);
  } catch (...) {  // no memory: the library's own name
  }
}

}  // namespace

Place describe_call(uintptr_t pc) {
  Creator creator{pc};
  const bool settled = run_with_symbols(find_caller, &creator) || symbols_are_dead;
  return {std::string(name_or_unknown(creator.frame)), creator.frame.file, creator.frame.line,
          settled};
}

Place describe_entry(uintptr_t pc) {
  Creator entry{pc};
  const bool settled = run_with_symbols(find_entry, &entry) || symbols_are_dead;
  return {std::string(name_or_unknown(entry.frame)), {}, 0, settled};
}

uint64_t count_unloaded() {
  uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        *static_cast<uint64_t*>(result) = info->dlpi_subs;
        return 1;  // each entry has the same count
      },
      &count);
  return count;
}

namespace {

struct PlacesRequest {
  uintptr_t pc;
  CallPlaces& call;
  bool done = false;
};

void find_places(void* argument) {
  PlacesRequest& request = *static_cast<PlacesRequest*>(argument);
  try {
    for (const SymbolFrame& frame : symbolize(request.pc - 1)) {
      request.call.function = frame.function;
      if (is_hidden(frame)) continue;
      request.call.places.push_back({std::string(name_or_unknown(frame)), frame.file, frame.line});
    }
    request.done = true;
  } catch (...) {  // no memory
  }
}

}  // namespace

bool describe_places(uintptr_t pc, CallPlaces& call) {
  PlacesRequest request{pc, call};
  if (run_with_symbols(find_places, &request) && request.done) return true;
  call = CallPlaces{};
  return false;
}

void print_entry(FdWriter& out, uintptr_t pc, const FrameOptions& options) {
  Creator entry{pc};
  if (!options.no_malloc && run_with_symbols(find_entry, &entry)) {
    out.write(name_or_unknown(entry.frame));
  } else {
    print_plain_name(out, pc);
  }
  out.write("(...)\n");
}

}  // namespace gofer::internal
