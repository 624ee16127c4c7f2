// Channels under load: crowds of goroutines and threads on both sides, in many shapes, with time
// limits and closes that race. Whatever happens, nothing is lost and nothing comes twice.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/chan_waiters.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;
using test::waiting_receivers;

using ChannelStress = test::QuiescentTest;

// Goroutines and foreign threads that are waited for together.
class Crowd {
 public:
  template <class F>
  void add(bool thread, F f) {
    if (thread) {
      threads_.emplace_back(std::move(f));
    } else {
      group_.go(std::move(f));
    }
  }
  void wait() {
    group_.wait();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

 private:
  wait_group group_;
  std::vector<std::thread> threads_;
};

// What was received, each value counted.
class Tally {
 public:
  explicit Tally(int values) : seen_(static_cast<std::size_t>(values)) {}
  void add(int value) { seen_.at(static_cast<std::size_t>(value)).fetch_add(1); }
  int sum() const {
    return std::accumulate(seen_.begin(), seen_.end(), 0,
                           [](int n, const std::atomic<int>& one) { return n + one; });
  }
  int doubled() const {
    int n = 0;
    for (const auto& one : seen_) n += one > 1;
    return n;
  }
  bool has(int value) const { return seen_[static_cast<std::size_t>(value)] != 0; }

 private:
  std::vector<std::atomic<int>> seen_;
};

// ---- Shapes

TEST_F(ChannelStress, TotalsAreExactWithManyOnBothSides) {
  const int each = scaled(4'000);
  for (const std::size_t capacity : {0u, 1u, 10u, 100u}) {
    for (const int threads : {0, 1, 3}) {  // of the four on either side
      chan<int> c(capacity);
      Tally tally(4 * each);
      Crowd senders;
      Crowd receivers;
      for (int s = 0; s < 4; ++s) {
        senders.add(s < threads, [&, s] {
          for (int i = 0; i < each; ++i) c.send(s * each + i);
        });
        receivers.add(s < threads, [&] {
          int last[4] = {-1, -1, -1, -1};
          for (int v : c) {
            tally.add(v);
            if (v <= last[v / each]) ADD_FAILURE() << "overtaken: " << v;
            last[v / each] = v;
          }
        });
      }
      senders.wait();
      c.close();
      receivers.wait();
      EXPECT_EQ(tally.sum(), 4 * each) << capacity << " " << threads;
      EXPECT_EQ(tally.doubled(), 0) << capacity << " " << threads;
    }
  }
}

// 23 workers between two channels, and as many items as fit into Euler's number.
TEST_F(ChannelStress, WorkersShareTheWork) {
  const int items = scaled(271'828);
  const int workers = 23;
  chan<int> in(10);
  chan<int> out(10);
  std::int64_t sum = 0;
  std::int64_t expected = 0;
  run([&] {
    wait_group all;
    for (int w = 0; w < workers; ++w) {
      all.go([&, w] {
        for (int v : in) {
          if (w == 0 && v % 1000 == 0) yield();
          out.send(v);
        }
      });
    }
    all.go([&] {
      for (int i = 0; i < items; ++i) {
        in.send(i % 97);
        expected += i % 97;
      }
      in.close();
    });
    for (int i = 0; i < items; ++i) sum += out.recv().value();
    all.wait();
    EXPECT_FALSE(out.try_recv());
  });
  EXPECT_EQ(sum, expected);
}

TEST_F(ChannelStress, ChainPassesEverythingInOrder) {
  const int links = scaled(2'000);
  const int values = 50;
  int expected = 0;
  run([&] {
    chan<int> first(0);
    chan<int> last = first;
    for (int i = 0; i < links; ++i) {
      chan<int> next(static_cast<std::size_t>(i % 3));
      go([in = last, next] {
        for (int v : in) next.send(v + 1);
        next.close();
      });
      last = next;
    }
    go([first] {
      for (int i = 0; i < values; ++i) first.send(i);
      first.close();
    });
    for (int v : last) EXPECT_EQ(v, links + expected++);
  });
  EXPECT_EQ(expected, values);
}

TEST_F(ChannelStress, RingOfGoroutinesAndThreadsPassesATokenRound) {
  const int rounds = scaled(2'000);
  std::vector<chan<int>> ring;
  for (int i = 0; i < 10; ++i) ring.emplace_back(0);
  Crowd crowd;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    crowd.add(i % 5 == 4, [&, in = ring[i], out = ring[(i + 1) % ring.size()], i] {
      for (int r = 0; r < rounds; ++r) {
        const int v = in.recv().value();
        EXPECT_EQ(v, 10 * r + static_cast<int>(i));
        if (v + 1 < 10 * rounds) out.send(v + 1);
      }
    });
  }
  ring[0].send(0);
  crowd.wait();
}

TEST_F(ChannelStress, PrimeSieveFindsThePrimes) {
  const int wanted = internal::sanitizers_enabled ? 50 : 300;
  std::vector<int> primes;
  run([&] {
    chan<int> stop(0);
    chan<int> numbers(0);
    go([numbers, stop] {
      for (int i = 2;; ++i) {
        if (select(on_send(numbers, i), on_recv(stop)) == 1) break;
      }
      numbers.close();
    });
    for (int i = 0; i < wanted; ++i) {
      const int prime = numbers.recv().value();
      primes.push_back(prime);
      chan<int> rest(0);
      go([in = numbers, rest, prime] {
        for (int v : in) {
          if (v % prime != 0) rest.send(v);
        }
        rest.close();
      });
      numbers = rest;
    }
    stop.close();
    while (numbers.recv()) {
    }
  });
  std::vector<int> expected;
  for (int n = 2; static_cast<int>(expected.size()) < wanted; ++n) {
    bool prime = true;
    for (const int p : expected) prime = prime && n % p != 0;
    if (prime) expected.push_back(n);
  }
  EXPECT_EQ(primes, expected);
}

// Power series as streams of coefficients (modulo a prime), each computed by goroutines.
namespace series {

constexpr std::int64_t modulus = 1'000'000'007;
constexpr int terms = 16;
using Stream = recv_chan<std::int64_t>;

template <class F>
Stream stream(F f) {
  chan<std::int64_t> c(0);
  go([c, f] {
    f(send_chan<std::int64_t>(c));
    c.close();
  });
  return c;
}

std::int64_t inverse(std::int64_t v) {
  std::int64_t result = 1;
  for (std::int64_t e = modulus - 2; e > 0; e /= 2, v = v * v % modulus) {
    if (e % 2 == 1) result = result * v % modulus;
  }
  return result;
}

// e^(kx)
Stream exponential(std::int64_t k) {
  return stream([k](const auto& out) {
    std::int64_t c = 1;
    for (int i = 1; i <= terms; ++i) {
      out.send(c);
      c = c * ((k + modulus) % modulus) % modulus * inverse(i) % modulus;
    }
  });
}

// Two streams with the values of one. The buffers let the readers be at different places.
std::pair<Stream, Stream> split(Stream in) {
  chan<std::int64_t> a(terms);
  chan<std::int64_t> b(terms);
  go([in, a, b] {
    for (std::int64_t v : in) {
      a.send(v);
      b.send(v);
    }
    a.close();
    b.close();
  });
  return {a, b};
}

Stream times(std::int64_t k, Stream in) {
  return stream([=](const auto& out) {
    for (std::int64_t v : in) out.send(k * v % modulus);
  });
}

// Of streams of the same length.
Stream plus(Stream a, Stream b) {
  return stream([=](const auto& out) {
    for (std::int64_t v : a) out.send((v + b.recv().value()) % modulus);
  });
}

// (a + x A)(b + x B) = ab + x (a B + b A) + x^2 A B; as many terms as the factors have.
Stream product(Stream f, Stream g) {
  return stream([=](const auto& out) {
    const std::optional<std::int64_t> a = f.recv();
    const std::optional<std::int64_t> b = g.recv();
    if (!a || !b) return;
    out.send(*a * *b % modulus);
    const auto [f1, f2] = split(f);
    const auto [g1, g2] = split(g);
    const Stream linear = plus(times(*a, g1), times(*b, f1));
    const std::optional<std::int64_t> second = linear.recv();
    const Stream rest = second ? product(f2, g2) : Stream();
    if (!second) return;
    out.send(*second);
    for (std::int64_t v : linear) out.send((v + rest.recv().value()) % modulus);
    while (rest.recv()) {
    }
  });
}

std::vector<std::int64_t> values(const Stream& in) {
  std::vector<std::int64_t> all;
  for (std::int64_t v : in) all.push_back(v);
  return all;
}

}  // namespace series

TEST_F(ChannelStress, PowerSeriesAreMultipliedByGoroutines) {
  using namespace series;
  run([] {
    std::vector<std::int64_t> one(terms);
    one[0] = 1;
    EXPECT_EQ(values(product(exponential(1), exponential(-1))), one);
    EXPECT_EQ(values(product(exponential(2), exponential(5))), values(exponential(7)));
    EXPECT_EQ(values(plus(exponential(3), times(modulus - 1, exponential(3)))),
              std::vector<std::int64_t>(terms));
  });
}

// ---- Races

// The value or the close is there whenever the receiver looks, so it never finds nothing.
TEST_F(ChannelStress, LookWithoutWaitingSeesTheValueOrTheEnd) {
  const int rounds = scaled(100'000);
  std::atomic<int> nothing{0};
  run([&] {
    for (int i = 0; i < rounds; ++i) {
      chan<int> c(1);
      c.send(1);
      wait_group group;
      group.go([&, i] {
        nothing +=
            i % 2 == 0 ? select(on_recv(c), on_default()) == 1 : !c.try_recv() && !c.closed();
      });
      c.close();
      c.recv();
      group.wait();
    }
  });
  EXPECT_EQ(nothing, 0);
}

// Both sides give up after a moment that is about as long as their partner takes.
void race_with_time_limits(std::size_t capacity, int threads, bool large) {
  struct Large {
    int value;
    char ballast[200];
  };
  const int each = scaled(4'000);
  chan<int> c(capacity);
  chan<Large> d(capacity);
  Tally tally(4 * each);
  std::atomic<int> sent{0};
  std::atomic<int> lost{0};
  std::atomic<bool> stop{false};
  Crowd senders;
  Crowd receivers;
  std::vector<std::atomic<bool>> was_sent(static_cast<std::size_t>(4 * each));
  for (int s = 0; s < 4; ++s) {
    senders.add(s < threads, [&, s] {
      for (int i = 0; i < each; ++i) {
        const int v = s * each + i;
        const auto limit = std::chrono::nanoseconds(i * 37 % 5000);
        if (large ? d.send_for(limit, Large{v, {}}) : c.send_for(limit, v)) {
          ++sent;
          was_sent[static_cast<std::size_t>(v)] = true;
        }
      }
    });
    receivers.add(s < threads, [&, s] {
      for (int i = s; !stop; ++i) {
        const auto limit = std::chrono::nanoseconds(i * 53 % 7000);
        if (large) {
          if (const auto v = d.recv_for(limit)) tally.add(v->value);
        } else {
          if (const auto v = c.recv_for(limit)) tally.add(*v);
        }
      }
    });
  }
  senders.wait();
  stop = true;
  receivers.wait();
  while (const auto v = c.try_recv()) tally.add(*v);
  while (const auto v = d.try_recv()) tally.add(v->value);
  for (int v = 0; v < 4 * each; ++v) lost += tally.has(v) != was_sent[static_cast<std::size_t>(v)];
  EXPECT_EQ(lost, 0) << capacity << " " << threads << " " << large;
  EXPECT_EQ(tally.sum(), sent);
  EXPECT_EQ(tally.doubled(), 0);
}

TEST_F(ChannelStress, TimeLimitAndPartnerHaveOneOutcome) {
  for (const int threads : {0, 2}) {
    for (const std::size_t capacity : {0u, 2u}) {
      for (const bool large : {false, true}) race_with_time_limits(capacity, threads, large);
    }
  }
}

// The closing goroutine does not wait for the senders: each send either arrives or throws.
TEST_F(ChannelStress, CloseAndSendHaveOneOutcome) {
  const int rounds = scaled(1'500);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    chan<int> c(static_cast<std::size_t>(round % 3));
    std::atomic<int> sent{0};
    std::atomic<int> received{0};
    std::atomic<int> errors{0};
    wait_group group;
    for (int s = 0; s < 3; ++s) {
      group.go([&] {
        try {
          for (;;) {
            c.send(1);
            ++sent;
          }
        } catch (const channel_error&) {
          ++errors;
        }
      });
    }
    for (int r = 0; r < 2; ++r) {
      group.go([&] {
        for (int v : c) received += v;
      });
    }
    group.go([&, round] {
      for (int i = round % 7; i > 0; --i) yield();
      c.close();
    });
    group.wait();
    wrong += sent != received || errors != 3 || !c.closed();
  }
  EXPECT_EQ(wrong, 0);
}

// Elements that cannot always be taken go back, and in the end each has come to a receiver.
TEST_F(ChannelStress, ElementsThatThrowAreNotLost) {
  struct Moody {
    explicit Moody(int v) : value(v) {}
    Moody(Moody&& other) : value(other.value), moves(other.moves + 1) {
      // The second move brings it to a receiver, and is refused to the first two.
      if (moves == 2 && other.refused < value % 3) {
        ++other.refused;
        throw std::runtime_error("not now");
      }
    }
    int value;
    int moves = 0;
    int refused = 0;
  };
  const int each = scaled(5'000);
  for (const std::size_t capacity : {0u, 5u}) {
    chan<Moody> c(capacity);
    Tally tally(3 * each);
    std::atomic<int> refusals{0};
    wait_group senders;
    wait_group receivers;
    for (int s = 0; s < 3; ++s) {
      senders.go([&, s] {
        for (int i = 0; i < each; ++i) c.send(Moody(s * each + i));
      });
      receivers.go([&, s] {
        for (;;) {
          try {
            const std::optional<Moody> v = s == 0 ? c.recv_for(1h) : c.recv();
            if (!v) break;
            tally.add(v->value);
          } catch (const std::runtime_error&) {
            ++refusals;
          }
        }
      });
    }
    senders.wait();
    // While a receiver waits without a limit, a refused element finds a receiver. The last may be
    // given back after the close, so look once more.
    c.close();
    receivers.wait();
    while (!c.closed()) {
      try {
        tally.add(c.recv()->value);
      } catch (const std::runtime_error&) {
        ++refusals;
      }
    }
    EXPECT_EQ(tally.sum(), 3 * each);
    EXPECT_EQ(tally.doubled(), 0);
    EXPECT_EQ(refusals, 3 * each);
  }
}

TEST_F(ChannelStress, ElementsAreDestroyedOnceHoweverTheyEnd) {
  const int rounds = scaled(8'000);
  const auto token = std::make_shared<int>(0);
  for (int round = 0; round < rounds; ++round) {
    chan<std::shared_ptr<int>> c(static_cast<std::size_t>(round % 4));
    wait_group group;
    group.go([c, token] {
      for (int i = 0; i < 3; ++i) static_cast<void>(c.send_for(i * 10us, token));
    });
    group.go([c] {
      for (int i = 0; i < 2; ++i) static_cast<void>(c.recv_for(i * 10us));
    });
    group.wait();
  }
  EXPECT_EQ(token.use_count(), 1);
}

// The last handle goes while others have just let go of theirs.
TEST_F(ChannelStress, ChannelIsFreedOnceByItsLastUser) {
  const int rounds = scaled(50'000);
  const auto token = std::make_shared<int>(0);
  run([&] {
    for (int round = 0; round < rounds; ++round) {
      chan<std::shared_ptr<int>> c(1);
      go([c] { static_cast<void>(c.try_recv()); });
      go([c, token] { static_cast<void>(c.try_send(token)); });
    }
  });
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
  EXPECT_EQ(token.use_count(), 1);
}

// ---- Cost

// Each of many goroutines waits on two channels and is woken on the second, newest first. To leave
// the queue of the first must not cost more if all stand in one queue.
double leave_queues(int waiters, bool one_queue) {
  std::vector<chan<int>> first;
  std::vector<chan<int>> second;
  for (int i = 0; i < waiters; ++i) {
    first.push_back(one_queue && i > 0 ? first[0] : chan<int>(0));
    second.emplace_back(0);
  }
  std::atomic<int> woken{0};
  for (std::size_t i = 0; i < first.size(); ++i) {
    go([&, i] { woken += select(on_recv(first[i]), on_recv(second[i])) == 1; });
  }
  for (const auto& c : second) {
    EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
  }
  const auto begin = std::chrono::steady_clock::now();
  run([&] {
    for (std::size_t i = second.size() / 2; i-- > 0;) {
      second[i].send(1);
      second[second.size() - 1 - i].send(1);
    }
    EXPECT_TRUE(wait_until([&] { return num_goroutine() == 1; }));
  });
  const auto end = std::chrono::steady_clock::now();
  EXPECT_EQ(woken, waiters);
  EXPECT_EQ(waiting_receivers(first[0]), 0);
  return std::chrono::duration<double>(end - begin).count();
}

TEST_F(ChannelStress, LeavingALongQueueCostsNoMoreThanAShortOne) {
  const int waiters = scaled(20'000);
  double ratio = 1000;
  for (int attempt = 0; attempt < 5 && ratio > 10; ++attempt) {
    const double own = leave_queues(waiters, false);
    ratio = std::min(ratio, leave_queues(waiters, true) / own);
  }
  EXPECT_LT(ratio, 10);
}

// A receiver waits until the close: at every moment a send can be done or throws.
TEST_F(ChannelStress, TrySendBesideACloseIsDoneOrThrows) {
  const int rounds = scaled(20'000);
  std::atomic<int> at{0};
  std::vector<chan<int>> c(static_cast<std::size_t>(rounds));
  for (auto& one : c) one = chan<int>(0);
  std::atomic<int> refused{0};
  std::atomic<int> tried{0};
  std::thread sender([&] {
    for (int i = 0; i < rounds; ++i) {
      for (int spins = 0; at <= i; ++spins) {
        if (spins > 1000) std::this_thread::yield();
      }
      try {
        refused += !c[static_cast<std::size_t>(i)].try_send(i);
      } catch (const channel_error&) {
      }
      tried = i + 1;
    }
  });
  for (int i = 0; i < rounds; ++i) {
    const auto& one = c[static_cast<std::size_t>(i)];
    go([one] { one.recv(); });
    EXPECT_TRUE(wait_until([&] { return waiting_receivers(one) == 1; }));
    at = i + 1;
    for (int k = i % 64; k > 0; --k) internal::cpu_relax();
    one.close();
    EXPECT_TRUE(wait_until([&] { return tried == i + 1; }));
  }
  sender.join();
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace gofer
