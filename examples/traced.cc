// Records a trace of itself, with marks: three workers serve requests, and each request is a task
// that spans two goroutines.
#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

struct request {
  explicit request(int n) : number(n) {}
  int number;
  gofer::trace::task task{"request"};
  gofer::wait_group done;
};

void serve(gofer::chan<request*> requests) {
  for (request* r : requests) {
    {
      const gofer::trace::region region(r->task, "serve");
      gofer::trace::log(r->task, "number", std::to_string(r->number));
      gofer::blocking([] { std::this_thread::sleep_for(1ms); });  // a call of some library
    }
    r->done.done();
  }
}

}  // namespace

int main() {
  const char* path = "traced.trace";
  std::remove(path);
  gofer::trace::start(path);
  gofer::run([] {
    gofer::chan<request*> requests(0);
    gofer::wait_group workers;
    for (int i = 0; i < 3; ++i) workers.go(serve, requests);
    gofer::wait_group clients;
    for (int i = 0; i < 20; ++i) {
      clients.go([=] {
        request r(i);
        const gofer::trace::region region(r.task, "wait for an answer");
        r.done.add(1);
        requests.send(&r);
        r.done.wait();
      });
    }
    clients.wait();
    requests.close();
    workers.wait();
  });
  gofer::trace::stop();
  std::printf("gofer trace summary %s\ngo tool trace %s\n", path, path);
}
