// Fan-in: several channels become one, which is closed when the last of them is.
#include <gofer/gofer.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct event {
  std::string source;
  int number;
};

gofer::recv_chan<event> listen_to(std::string source, int events) {
  gofer::chan<event> out(0);
  gofer::go([=] {
    for (int i = 1; i <= events; ++i) out.send({source, i});
    out.close();
  });
  return out;
}

template <class T>
gofer::recv_chan<T> merge(std::vector<gofer::recv_chan<T>> inputs) {
  gofer::chan<T> out(0);
  gofer::go([=] {
    gofer::wait_group copying;
    for (const gofer::recv_chan<T>& in : inputs) {
      copying.go([in, out] {
        for (T& value : in) out.send(std::move(value));
      });
    }
    copying.wait();
    out.close();
  });
  return out;
}

int main() {
  gofer::run([] {
    std::map<std::string, int> last;
    const std::vector inputs{listen_to("door", 3), listen_to("lamp", 5), listen_to("stove", 2)};
    for (const event& e : merge(inputs)) {
      if (e.number != last[e.source] + 1) std::puts("out of order");  // never within one source
      last[e.source] = e.number;
    }
    for (const auto& [source, events] : last) std::printf("%s: %d\n", source.c_str(), events);
  });
}
