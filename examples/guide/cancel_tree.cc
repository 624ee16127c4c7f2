// Cancelling a tree of work: every part has a context of its own, below that of its parent.
#include <gofer/gofer.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <stdexcept>

// A node has two children, and its leaves work until they are told to stop.
void work(const gofer::context& ctx, int depth, std::atomic<int>& stopped) {
  if (depth == 0) {
    ctx.done().recv();
    ++stopped;
    return;
  }
  gofer::task_group children(ctx);
  for (int i = 0; i < 2; ++i) {
    children.go([&, depth] { work(children.ctx(), depth - 1, stopped); });
  }
  children.wait();
}

int main() {
  gofer::run([] {
    auto [all, cancel_all] = gofer::with_cancel(gofer::background());
    auto [left, cancel_left] = gofer::with_cancel(all);
    auto [right, cancel_right] = gofer::with_cancel(all);
    std::atomic<int> left_stopped{0};
    std::atomic<int> right_stopped{0};
    auto left_work = gofer::async(work, left, 2, std::ref(left_stopped));
    auto right_work = gofer::async(work, right, 3, std::ref(right_stopped));

    cancel_left();  // one branch
    left_work.get();
    std::printf("left: %d leaves stopped, right: %s\n", left_stopped.load(),
                right.err() ? "cancelled" : "goes on");

    cancel_all(std::make_exception_ptr(std::runtime_error("the user has left")));  // all the rest
    right_work.get();
    std::printf("right: %d leaves stopped\n", right_stopped.load());
    try {
      right.throw_if_done();
    } catch (const std::exception& why) {
      std::printf("because %s\n", why.what());
    }
  });
}
