// A plug-in whose goroutines run code of the plug-in to the last.
#include <gofer/gofer.h>

#include <atomic>
#include <stdexcept>

namespace {

std::atomic<int> ran{0};

// Its destructor is code of the plug-in, and so are those of the closure and of the local.
struct Counted {
  Counted() = default;
  Counted(const Counted&) = default;
  Counted& operator=(const Counted&) = default;
  ~Counted() { ran.fetch_add(0); }
};

gofer::local<Counted> mine;

}  // namespace

extern "C" [[gnu::visibility("default")]] int plugin_run() {
  ran = 0;
  gofer::wait_group all;
  for (int i = 0; i < 8; ++i) {
    all.go([i, counted = Counted()] {
      static_cast<void>(*mine);
      if (i % 2 == 0) gofer::yield();
      ran.fetch_add(1);
      if (i % 4 == 0) gofer::goexit();
    });
  }
  all.wait();
  return ran;
}
