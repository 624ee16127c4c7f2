// Programs in which all goroutines wait for ever on channels, each in its own way.
#include <gofer/gofer.h>

#include <chrono>
#include <thread>
#include <vector>

#include "../support/start_detached.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

int receive() {
  gofer::run([] {
    gofer::chan<int> c(0);
    c.recv();
  });
  return 0;
}

int send() {
  gofer::run([] {
    gofer::chan<int> c(2);
    for (int i = 0; i < 3; ++i) c.send(i);
  });
  return 0;
}

int receive_nil() {
  gofer::run([] {
    gofer::chan<int> c;
    c.recv();
  });
  return 0;
}

int send_nil() {
  gofer::run([] {
    gofer::chan<int> c;
    c.send(1);
  });
  return 0;
}

int range_over_nil() {
  gofer::run([] {
    gofer::chan<int> c;
    for (int v : c) static_cast<void>(v);
  });
  return 0;
}

int select_cases() {
  gofer::run([] {
    gofer::chan<int> a(0);
    gofer::chan<int> b(0);
    gofer::select(gofer::on_recv(a), gofer::on_send(b, 1));
  });
  return 0;
}

// A select with both directions of one channel must not meet itself.
int select_itself() {
  gofer::run([] {
    gofer::chan<int> c(0);
    gofer::select(gofer::on_recv(c), gofer::on_send(c, 1), gofer::on_recv(c));
  });
  return 0;
}

int select_nothing() {
  gofer::run([] { gofer::select(); });
  return 0;
}

int select_nil_only() {
  gofer::run([] {
    gofer::chan<int> c;
    gofer::select(gofer::on_recv(c), gofer::on_send(c, 1));
  });
  return 0;
}

int select_empty_vector() {
  gofer::run([] {
    std::vector<gofer::any_case> none;
    gofer::select(none);
  });
  return 0;
}

// A time limit so far away that there is none.
int receive_for_ever() {
  gofer::run([] {
    gofer::chan<int> c(0);
    static_cast<void>(c.recv_for(std::chrono::hours::max()));
  });
  return 0;
}

int each_in_its_way() {
  gofer::chan<int> silent(0);
  start_detached([silent] { silent.recv(); });
  start_detached([silent] { gofer::select(gofer::on_recv(silent)); });
  gofer::run([silent] {
    gofer::go([silent] { silent.recv(); });
    gofer::go([] { gofer::chan<int>(0).send(1); });
    gofer::go([] { gofer::chan<int>().send(1); });
    gofer::go([silent] { gofer::select(gofer::on_recv(silent), gofer::on_recv(silent)); });
    gofer::go([] { gofer::select(); });
    gofer::chan<int>().recv();
  });
  return 0;
}

// Not a deadlock: the time limit ends the wait.
int time_limit() {
  gofer::run([] {
    gofer::chan<int> c(0);
    const bool received = c.recv_for(std::chrono::milliseconds(300)).has_value();
    const std::size_t i =
        gofer::select(gofer::on_recv(c), gofer::on_timeout(std::chrono::milliseconds(300)));
    require(!received && i == 1, "nothing was received");
  });
  say("completed");
  return 0;
}

// Not a deadlock: a thread that waits for a time will go on, and may help.
int thread_with_time_limit() {
  gofer::chan<int> c(0);
  gofer::chan<int> never(0);
  std::thread t([c, never] {
    static_cast<void>(never.recv_for(std::chrono::milliseconds(300)));
    gofer::select(gofer::on_recv(never), gofer::on_timeout(std::chrono::milliseconds(300)));
    c.send(1);
  });
  gofer::run([c] { c.recv(); });
  t.join();
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"receive", receive},
                       {"send", send},
                       {"receive_nil", receive_nil},
                       {"send_nil", send_nil},
                       {"range_over_nil", range_over_nil},
                       {"select_cases", select_cases},
                       {"select_itself", select_itself},
                       {"select_nothing", select_nothing},
                       {"select_nil_only", select_nil_only},
                       {"select_empty_vector", select_empty_vector},
                       {"receive_for_ever", receive_for_ever},
                       {"each_in_its_way", each_in_its_way},
                       {"time_limit", time_limit},
                       {"thread_with_time_limit", thread_with_time_limit}});
}
