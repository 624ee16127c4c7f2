// A part of this program hangs: two goroutines wait for each other's lock, beside one that works.
#include <gofer/gofer.h>

#include <chrono>

using namespace std::chrono_literals;

gofer::mutex accounts;
gofer::mutex journal;

void transfer() {
  accounts.lock();
  gofer::sleep_for(10ms);
  journal.lock();  // report() has it
  journal.unlock();
  accounts.unlock();
}

void report() {
  journal.lock();
  gofer::sleep_for(10ms);
  accounts.lock();  // transfer() has it
  accounts.unlock();
  journal.unlock();
}

void serve() {
  for (;;) gofer::sleep_for(1s);
}

int main() {
  gofer::run([] {
    gofer::go({.name = "server"}, serve);
    gofer::wait_group all;
    all.go({.name = "transfer"}, transfer);
    all.go({.name = "report"}, report);
    all.wait();
  });
}
