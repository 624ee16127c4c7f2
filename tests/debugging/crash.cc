#include <gofer/gofer.h>

#include <chrono>
#include <cstdio>

struct order {
  int id;
  const double* price;
};

double total(const order& o) { return *o.price * 1.2; }

void worker(gofer::recv_chan<order> orders) {
  for (const order& o : orders) std::printf("%.2f\n", total(o));
}

int main() {
  return gofer::run([] {
    gofer::chan<order> orders(0);
    gofer::go({.name = "worker"}, worker, orders);
    const double price = 10;
    orders.send({1, &price});
    orders.send({2, nullptr});
    gofer::sleep_for(std::chrono::seconds(10));
    return 0;
  });
}
