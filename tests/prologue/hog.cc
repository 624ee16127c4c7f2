// A goroutine that computes for ever, and another one that wants to run, too. The first one calls a
// function that pauses at its prologue, or none.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>
#include <string_view>

namespace {

[[gnu::noinline]] void step() { asm volatile(""); }

}  // namespace

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  const bool calls = argc > 1 && argv[1] == std::string_view("calls");
  gofer::run([calls] {
    gofer::go([calls] {
      for (;;) {
        if (calls) {
          step();
        } else {
          asm volatile("");
        }
      }
    });
    gofer::sleep_for(10ms);
    std::puts("i got scheduled");
  });
  return 0;
}
