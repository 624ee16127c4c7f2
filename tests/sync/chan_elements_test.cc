// What travels through channels: elements that can only be moved, that throw, that are huge, empty
// or aligned, and that nothing of them is lost, doubled or leaked.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/chan_waiters.h"
#include "support/goroutines_and_threads.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::in_goroutine_and_thread;
using test::wait_until;
using test::waiting_receivers;
using test::waiting_senders;

// Objects that live now, of one kind.
template <class Kind>
struct Live {
  static inline std::atomic<int> count{0};
  Live() { ++count; }
  Live(const Live&) { ++count; }
  ~Live() { --count; }
  Live& operator=(const Live&) = default;
};

struct Small : Live<Small> {
  explicit Small(int v = 0) : value(v) {}
  Small(Small&& other) noexcept : value(std::exchange(other.value, -1)) {}
  Small& operator=(Small&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }
  int value;
};

struct Large : Live<Large> {
  explicit Large(int v = 0) : value(v) { ballast.fill(static_cast<char>(v)); }
  int value;
  std::array<char, 64 << 10> ballast;
  bool intact() const {
    for (const char c : ballast) {
      if (c != static_cast<char>(value)) return false;
    }
    return true;
  }
};

struct Broken : std::runtime_error {
  Broken() : std::runtime_error("broken") {}
};

// The n-th copy or move of an element whose fuse is n throws and changes nothing else; 0: none
// does.
struct Fuse {
  Fuse(int n = 0) : left(n) {}
  Fuse(const Fuse& other) {
    if (other.left > 0 && --other.left == 0) throw Broken();
    left = other.left;
  }
  Fuse& operator=(const Fuse&) = default;
  mutable int left = 0;
};

struct MayThrow : Live<MayThrow> {
  explicit MayThrow(int v = 0, int n = 0) : fuse(n), value(v) {}
  MayThrow(const MayThrow&) = default;
  MayThrow(MayThrow&& other)
      : Live(other), fuse(other.fuse), value(std::exchange(other.value, -1)) {}
  MayThrow& operator=(MayThrow&&) = default;
  Fuse fuse;
  int value;
};

struct MoveMayThrow : Live<MoveMayThrow> {
  explicit MoveMayThrow(int v = 0, int n = 0) : fuse(n), value(v) {}
  MoveMayThrow(MoveMayThrow&& other)
      : Live(other), fuse(other.fuse), value(std::exchange(other.value, -1)) {}
  MoveMayThrow& operator=(MoveMayThrow&& other) noexcept {
    fuse = other.fuse.left;
    value = std::exchange(other.value, -1);
    return *this;
  }
  Fuse fuse;
  int value;
};

// Its move is safe, its copy is not.
struct CopyMayThrow : Live<CopyMayThrow> {
  explicit CopyMayThrow(int v = 0, int n = 0) : fuse(n), value(v) {}
  CopyMayThrow(const CopyMayThrow&) = default;
  CopyMayThrow(CopyMayThrow&& other) noexcept : value(std::exchange(other.value, -1)) {}
  CopyMayThrow& operator=(CopyMayThrow&&) = default;
  Fuse fuse;
  int value;
};

template <class T>
class ChannelOf : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    EXPECT_EQ(Live<T>::count, 0);
  }
};

using Elements = testing::Types<Small, Large, MayThrow, MoveMayThrow, CopyMayThrow>;
TYPED_TEST_SUITE(ChannelOf, Elements);

TYPED_TEST(ChannelOf, PassesEveryElementOnce) {
  using T = TypeParam;
  for (const std::size_t capacity : {0u, 1u, 7u}) {
    in_goroutine_and_thread([capacity] {
      chan<T> c(capacity);
      go([c] {
        for (int i = 0; i < 100; ++i) c.send(T(i));
        c.close();
      });
      int expected = 0;
      for (const T& element : c) EXPECT_EQ(element.value, expected++);
      EXPECT_EQ(expected, 100);
    });
  }
}

TYPED_TEST(ChannelOf, DestroysWhatIsLeftInADroppedChannel) {
  using T = TypeParam;
  in_goroutine_and_thread([] {
    chan<T> c(5);
    for (int i = 0; i < 5; ++i) c.send(T(i));
    EXPECT_EQ(c.recv()->value, 0);
    c.send(T(5));  // the buffer is wrapped
    EXPECT_EQ(Live<T>::count, 5);
    c = chan<T>(3);
    EXPECT_EQ(Live<T>::count, 0);
    c.send(T(6));
    c.close();
  });
}

TYPED_TEST(ChannelOf, ThatCannotBeSentStaysWithTheCaller) {
  using T = TypeParam;
  in_goroutine_and_thread([] {
    chan<T> c(0);
    T element(3);
    EXPECT_FALSE(c.try_send(std::move(element)));
    EXPECT_EQ(element.value, 3);
    EXPECT_FALSE(c.send_for(1ms, std::move(element)));
    EXPECT_EQ(element.value, 3);
    EXPECT_FALSE(chan<T>().try_send(std::move(element)));
    EXPECT_EQ(element.value, 3);
    EXPECT_EQ(select(on_send(c, std::move(element)), on_default()), 1u);
    EXPECT_EQ(element.value, 3);
    EXPECT_EQ(select(on_send(c, std::move(element)), on_timeout(1ms)), 1u);
    EXPECT_EQ(element.value, 3);
    c.close();
    EXPECT_THROW(c.send(std::move(element)), channel_error);
    EXPECT_EQ(element.value, 3);
    EXPECT_THROW(select(on_send(c, std::move(element))), channel_error);
    EXPECT_EQ(element.value, 3);
    EXPECT_EQ(Live<T>::count, 1);
  });
}

TYPED_TEST(ChannelOf, SentInVainByCloseStaysWithTheCaller) {
  using T = TypeParam;
  chan<T> c(0);
  wait_group group;
  for (int i = 0; i < 20; ++i) {
    group.go([c, i] {
      T element(i);
      EXPECT_THROW(
          {
            if (i % 3 == 0) {
              c.send(std::move(element));
            } else if (i % 3 == 1) {
              static_cast<void>(c.send_for(1h, std::move(element)));
            } else {
              select(on_send(c, std::move(element)), on_timeout(1h));
            }
          },
          channel_error);
      EXPECT_EQ(element.value, i);
    });
  }
  ASSERT_TRUE(wait_until([&] { return waiting_senders(c) == 20; }));
  c.close();
  group.wait();
}

TYPED_TEST(ChannelOf, GoesThroughSelectInBothDirections) {
  using T = TypeParam;
  in_goroutine_and_thread([] {
    chan<T> a(0);
    chan<T> b(1);
    wait_group group;
    group.go([&] {
      for (int i = 0; i < 100; ++i) {
        T one(i), two(i);
        select(on_send(a, std::move(one)), on_send(b, std::move(two)));
      }
    });
    int sum = 0;
    for (int i = 0; i < 100; ++i) {
      select(on_recv(a, [&](std::optional<T> v) { sum += v->value; }),
             on_recv(b, [&](T v) { sum += v.value; }), on_timeout(1h));
    }
    group.wait();
    EXPECT_EQ(sum, 4950);
  });
}

// ---- What throws

TEST(ElementThatThrows, WhileItIsCopiedOrMovedIntoTheChannelIsNotSent) {
  in_goroutine_and_thread([] {
    chan<MayThrow> c(4);
    chan<CopyMayThrow> d(4);
    MayThrow element(1);
    const CopyMayThrow copied(2, 1);
    for (const int n : {1, 2}) {
      element.fuse = n;
      EXPECT_THROW(c.send(std::as_const(element)), Broken);
    }
    element.fuse = 1;
    EXPECT_THROW(c.send(std::move(element)), Broken);
    element.fuse = 1;
    EXPECT_THROW(static_cast<void>(c.try_send(std::move(element))), Broken);
    element.fuse = 1;
    EXPECT_THROW(static_cast<void>(c.send_for(1h, std::move(element))), Broken);
    element.fuse = 1;
    EXPECT_THROW(select(on_send(c, std::move(element)), on_default()), Broken);
    EXPECT_THROW(d.send(copied), Broken);
    EXPECT_EQ(element.value, 1);
    EXPECT_EQ(c.len() + d.len(), 0u);
    c.send(std::move(element));
    d.send(copied);
    EXPECT_EQ(c.recv()->value, 1);
    EXPECT_EQ(d.recv()->value, 2);
  });
  EXPECT_EQ(Live<MayThrow>::count + Live<CopyMayThrow>::count, 0);
}

// A second case cannot be prepared: the first gives back what it had taken already.
TEST(ElementThatThrows, InOneCaseLeavesTheOtherCasesTheirValues) {
  in_goroutine_and_thread([] {
    chan<Small> small(1);
    chan<MoveMayThrow> c(1);
    Small first(1);
    MoveMayThrow second(2);
    MoveMayThrow third(3, 1);
    EXPECT_THROW(select(on_send(small, std::move(first)), on_send(c, std::move(second)),
                        on_send(c, std::move(third))),
                 Broken);
    EXPECT_EQ(first.value, 1);
    EXPECT_EQ(second.value, 2);
    EXPECT_EQ(third.value, 3);
    EXPECT_EQ(small.len() + c.len(), 0u);
  });
  EXPECT_EQ(Live<MoveMayThrow>::count + Live<Small>::count, 0);
}

// An element that is sent with a fuse of 2 throws when it is received.
TEST(ElementThatThrows, WhileItIsReceivedGoesBack) {
  for (const std::size_t capacity : {0u, 3u}) {
    in_goroutine_and_thread([capacity] {
      chan<MoveMayThrow> c(capacity);
      wait_group group;
      group.go([c] {
        for (int i = 0; i < 6; ++i) c.send(MoveMayThrow(i, i == 1 ? 0 : 2));
        c.close();
      });
      EXPECT_THROW(c.recv(), Broken);
      EXPECT_EQ(c.recv()->value, 0);
      EXPECT_EQ(c.recv()->value, 1);
      EXPECT_THROW(static_cast<void>(c.recv_for(1h)), Broken);
      EXPECT_EQ(c.recv()->value, 2);
      EXPECT_TRUE(wait_until([&] {
        try {
          return c.try_recv().has_value();
        } catch (const Broken&) {
          return true;
        }
      }));
      EXPECT_EQ(c.try_recv()->value, 3);
      EXPECT_THROW(static_cast<void>(c.recv_until(std::chrono::steady_clock::now() + 1h)), Broken);
      EXPECT_FALSE(c.closed());
      EXPECT_EQ(c.recv()->value, 4);
      EXPECT_THROW(c.recv(), Broken);
      EXPECT_FALSE(c.closed());
      EXPECT_EQ(c.recv()->value, 5);
      group.wait();
      EXPECT_TRUE(c.closed());
      EXPECT_FALSE(c.recv());
    });
  }
  EXPECT_EQ(Live<MoveMayThrow>::count, 0);
}

TEST(ElementThatThrows, GivenBackIsReceivedByEveryForm) {
  in_goroutine_and_thread([] {
    chan<MoveMayThrow> c(1);
    const auto give_back = [&] {
      c.send(MoveMayThrow(5, 2));
      EXPECT_THROW(c.recv(), Broken);
      EXPECT_FALSE(c.closed());
    };
    give_back();
    EXPECT_EQ(c.try_recv()->value, 5);
    give_back();
    EXPECT_EQ(c.recv_for(0s)->value, 5);
    give_back();
    int value = 0;
    EXPECT_EQ(select(on_recv(c, [&](MoveMayThrow v) { value = v.value; }), on_default()), 0u);
    EXPECT_EQ(value, 5);
    give_back();
    c.close();
    EXPECT_FALSE(c.closed());
    for (const MoveMayThrow& v : c) EXPECT_EQ(v.value, 5);
    EXPECT_TRUE(c.closed());
    c = chan<MoveMayThrow>(1);
    give_back();
    EXPECT_EQ(Live<MoveMayThrow>::count, 1);
    c = {};  // dropped with the element
    EXPECT_EQ(Live<MoveMayThrow>::count, 0);
  });
}

// However many moves a form of receiving makes: if one throws, the element is in the channel.
TEST(ElementThatThrows, AtAnyMoveOfAReceiveGoesBack) {
  in_goroutine_and_thread([] {
    for (int n = 2; n < 8; ++n) {
      chan<MoveMayThrow> c(2);
      const auto check = [&](const char* form, auto&& receive) {
        c.send(MoveMayThrow(5, n));
        int value = 0;
        try {
          receive(value);
        } catch (const Broken&) {
          const std::optional<MoveMayThrow> again = c.try_recv();
          value = again ? again->value : -1;
        }
        EXPECT_EQ(value, 5) << form << ", move " << n;
      };
      check("recv", [&](int& value) { value = c.recv()->value; });
      check("range-for", [&](int& value) {
        for (const MoveMayThrow& v : c) {
          value = v.value;
          break;
        }
      });
      check("select", [&](int& value) {
        select(on_recv(c, [&](const MoveMayThrow& v) { value = v.value; }));
      });
    }
  });
  EXPECT_EQ(Live<MoveMayThrow>::count, 0);
}

// Two receivers wait; the first cannot take what it gets, so the second has it.
TEST(ElementThatThrows, GoesToTheNextReceiver) {
  chan<MoveMayThrow> c(0);
  std::atomic<int> broken{0};
  std::atomic<int> received{0};
  wait_group group;
  for (int i = 0; i < 2; ++i) {
    group.go([&] {
      try {
        received += c.recv()->value;
      } catch (const Broken&) {
        ++broken;
      }
    });
  }
  ASSERT_TRUE(wait_until([&] { return waiting_receivers(c) == 2; }));
  EXPECT_TRUE(c.try_send(MoveMayThrow(9, 2)));
  group.wait();
  EXPECT_EQ(broken, 1);
  EXPECT_EQ(received, 9);
}

// ---- Sizes and shapes

TEST(Element, OfSixtyFourKiBArrivesIntact) {
  for (const std::size_t capacity : {0u, 2u}) {
    chan<Large> c(capacity);
    wait_group group;
    for (int s = 0; s < 4; ++s) {
      group.go([c, s] {
        for (int i = 0; i < 25; ++i) c.send(Large(s * 25 + i));
      });
    }
    int sum = 0;
    int wrong = 0;
    for (int i = 0; i < 100; ++i) {
      const std::optional<Large> v = c.recv();
      sum += v->value;
      wrong += !v->intact();
    }
    group.wait();
    EXPECT_EQ(sum, 4950);
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(Live<Large>::count, 0);
}

TEST(Element, MayBeEmpty) {
  struct Nothing {};
  in_goroutine_and_thread([] {
    chan<Nothing> c(1000);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(c.try_send({}));
    EXPECT_FALSE(c.try_send({}));
    EXPECT_EQ(c.len(), 1000u);
    c.close();
    int n = 0;
    for (Nothing nothing : c) {
      static_cast<void>(nothing);
      ++n;
    }
    EXPECT_EQ(n, 1000);
    chan<Nothing> done(0);
    go([done] { done.close(); });
    EXPECT_FALSE(done.recv());
  });
}

template <std::size_t Size, std::size_t Align>
void pass_aligned() {
  struct alignas(Align) Block {
    unsigned char bytes[Size];
  };
  in_goroutine_and_thread([] {
    chan<Block> c(3);
    int wrong = 0;
    for (int round = 0; round < 10; ++round) {
      Block b{};
      b.bytes[0] = static_cast<unsigned char>(round);
      b.bytes[Size - 1] = static_cast<unsigned char>(round);
      c.send(b);
      const std::optional<Block> got = c.recv();
      wrong += reinterpret_cast<std::uintptr_t>(&*got) % Align != 0;
      wrong += got->bytes[0] != round || got->bytes[Size - 1] != round;
    }
    EXPECT_EQ(wrong, 0) << Size << " " << Align;
  });
}

TEST(Element, MayHaveAnySizeAndAlignment) {
  pass_aligned<1, 1>();
  pass_aligned<2, 2>();
  pass_aligned<3, 1>();
  pass_aligned<8, 8>();
  pass_aligned<24, 8>();
  pass_aligned<127, 1>();
  pass_aligned<128, 16>();
  pass_aligned<129, 1>();
  pass_aligned<144, 16>();
  pass_aligned<64, 64>();
  pass_aligned<128, 64>();
  pass_aligned<4096, 256>();
}

TEST(Element, MayOwnMemoryAndBeMovedOnly) {
  in_goroutine_and_thread([] {
    chan<std::unique_ptr<int>> c(2);
    c.send(std::make_unique<int>(1));
    c.send(std::make_unique<int>(2));
    auto kept = std::make_unique<int>(3);
    EXPECT_FALSE(c.try_send(std::move(kept)));
    ASSERT_TRUE(kept);
    go([c, kept = std::move(kept)]() mutable { c.send(std::move(kept)); });
    int sum = 0;
    for (int i = 0; i < 3; ++i) sum = 10 * sum + *c.recv().value();
    EXPECT_EQ(sum, 123);
    chan<std::vector<std::string>> lists(0);
    go([lists] { lists.send({"a", "b"}); });
    EXPECT_EQ(lists.recv().value(), (std::vector<std::string>{"a", "b"}));
  });
}

TEST(Element, NeedsAMoveConstructorAndNothingElse) {
  struct Fixed {
    explicit Fixed(int v) : value(v) {}
    const int value;
  };
  in_goroutine_and_thread([] {
    chan<Fixed> c(4);
    for (int i = 0; i < 4; ++i) c.send(Fixed(i));
    c.close();
    int sum = c.recv()->value;
    select(on_recv(c, [&](std::optional<Fixed> v) { sum += v->value; }));
    for (const Fixed& v : c) sum += v.value;
    EXPECT_EQ(sum, 6);
  });
}

// A destructor of an element is user code: it may use channels, even the last handle of one.
TEST(Element, MayUseChannelsInItsDestructor) {
  struct Teller {
    explicit Teller(chan<int> c) : tell(std::move(c)) {}
    Teller(Teller&& other) noexcept = default;
    ~Teller() {
      if (tell) tell.send(1);
    }
    chan<int> tell;
  };
  in_goroutine_and_thread([] {
    chan<int> told(10);
    {
      chan<Teller> c(5);
      for (int i = 0; i < 5; ++i) c.send(Teller(told));
      EXPECT_EQ(told.len(), 0u);
    }
    EXPECT_EQ(told.len(), 5u);
    chan<int> rendezvous(0);
    go([rendezvous] {
      chan<Teller> c(1);
      c.send(Teller(rendezvous));
    });
    EXPECT_EQ(rendezvous.recv(), 1);
  });
}

TEST(Element, MayBeAChannelOfItsKind) {
  struct Link {
    chan<Link> next;
    std::shared_ptr<int> token;
  };
  const auto token = std::make_shared<int>(0);
  {
    chan<Link> first(1);
    for (int i = 0; i < 100; ++i) {
      chan<Link> before(1);
      before.send(Link{first, token});
      first = before;
    }
    EXPECT_EQ(token.use_count(), 101);
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace gofer
