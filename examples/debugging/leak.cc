// This program leaks goroutines: half of the answers are never received.
#include <gofer/gofer.h>
#include <unistd.h>

#include <chrono>

using namespace std::chrono_literals;

int ask(int key) {
  gofer::chan<int> answer(0);
  gofer::go({.name = "lookup"}, [=] { answer.send(key); });
  if (key % 2 == 0) return key;  // known already, and the goroutine waits for ever
  return *answer.recv();
}

int main() {
  gofer::run([] {
    for (int key = 0; key < 300; ++key) ask(key);
    gofer::sleep_for(10ms);
    gofer::debug::dump(STDOUT_FILENO);
  });
}
