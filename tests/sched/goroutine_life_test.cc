// A goroutine's life: its record, its states, and the floating-point control that it begins with
// and keeps.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <new>
#include <vector>

#include "runtime/procs/current.h"
#include "support/event.h"
#include "support/procs.h"
#include "support/scheduler_state.h"
#include "support/unpaused.h"

namespace gofer {
namespace {

using internal::G;
using internal::GStatus;
using internal::Inside;
using internal::M;
using internal::P;
using test::Event;
using test::my_p;
using test::Procs;
using test::unpaused;

TEST(Records, MoveBetweenProcessorAndGlobalListInThirtyTwos) {
  Procs one(1);
  int local = 0;
  int global = 0;
  int expected_local = 0;
  int expected_global = 0;
  bool always_below = true;
  run(unpaused([&] {
    P* p = my_p();
    const auto count = [p] {
      Inside inside;
      return p->free_gs.count();
    };
    for (const int n : {1, 10, 31, 32, 33, 100, 200, 5}) {
      expected_local = count();
      expected_global = internal::count_free_gs();
      wait_group done;
      for (int i = 0; i < n; ++i) {
        if (expected_local == 0) {
          expected_local = internal::g_free_batch;
          expected_global -= std::min(expected_global, internal::g_free_batch);
        }
        --expected_local;
        done.go(unpaused([&] { always_below = always_below && count() < internal::g_free_high; }));
      }
      done.wait();
      while (num_goroutine() != 1) yield();
      for (int i = 0; i < n; ++i) {
        if (++expected_local < internal::g_free_high) continue;
        expected_local -= internal::g_free_batch;
        expected_global += internal::g_free_batch;
      }
      local = count();
      global = internal::count_free_gs();
      if (local != expected_local || global != expected_global) return;
    }
  }));
  EXPECT_EQ(local, expected_local);
  EXPECT_EQ(global, expected_global);
  EXPECT_TRUE(always_below);
}

TEST(Life, OfAGoroutineGoesThroughTheStates) {
  Procs one(1);
  struct Closure {
    G* g;
    Event event;
    GStatus while_running = GStatus::idle;
    M* m_while_running = nullptr;
    M* its_m = nullptr;
  } closure;
  std::vector<GStatus> states;
  bool had_stack_while_runnable = true;
  bool has_stack_when_dead = true;
  run(unpaused([&] {
    void* place = detail::new_goroutine(nullptr);
    G* g = internal::g_of_closure(place);
    closure.g = g;
    states.push_back(g->status);
    ::new (place)(Closure*)(&closure);
    detail::start_goroutine(place, [](void* p) {
      Closure* self = *static_cast<Closure**>(p);
      self->while_running = self->g->status;
      self->m_while_running = self->g->m();
      self->its_m = internal::current_m();
      self->event.wait();
    });
    states.push_back(g->status);
    had_stack_while_runnable = g->head != nullptr;
    while (!closure.event.has_waiter()) yield();
    states.push_back(g->status);
    closure.event.set();
    states.push_back(g->status);
    while (num_goroutine() != 1) yield();
    states.push_back(g->status);
    has_stack_when_dead = g->head != nullptr;
  }));
  EXPECT_EQ(states, (std::vector<GStatus>{GStatus::idle, GStatus::runnable, GStatus::waiting,
                                          GStatus::runnable, GStatus::dead}));
  EXPECT_EQ(closure.while_running, GStatus::running);
  EXPECT_NE(closure.its_m, nullptr);
  EXPECT_EQ(closure.m_while_running, closure.its_m);
  EXPECT_FALSE(had_stack_while_runnable);
  EXPECT_FALSE(has_stack_when_dead);
}

TEST(Life, OfADiscardedGoroutineEndsBeforeItBegins) {
  void* place = detail::new_goroutine(nullptr);
  G* g = internal::g_of_closure(place);
  EXPECT_EQ(g->status, GStatus::idle);
  detail::discard_goroutine(place);
  EXPECT_EQ(g->status, GStatus::dead);
  EXPECT_EQ(num_goroutine(), 0u);
}

TEST(Life, BeginsWithTheDefaultFloatingPointControl) {
  Procs one(1);
  std::vector<int> modes;
  run(unpaused([&] {
    wait_group done;
    for (int i = 0; i < 6; ++i) {
      done.go(unpaused([&modes] {
        modes.push_back(std::fegetround());
        std::fesetround(FE_UPWARD);  // and ends: the next one may start on its very stack
      }));
    }
    done.wait();
    modes.push_back(std::fegetround());
  }));
  EXPECT_EQ(modes, std::vector<int>(7, FE_TONEAREST));
}

TEST(Life, KeepsItsOwnFloatingPointControlAcrossSwitches) {
  Procs one(1);
  int wrong = 0;
  run(unpaused([&] {
    wait_group done;
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
      done.go(unpaused([&wrong, mode] {
        std::fesetround(mode);
        for (int i = 0; i < 100; ++i) {
          yield();
          wrong += std::fegetround() != mode;
        }
      }));
    }
    done.wait();
    wrong += std::fegetround() != FE_TONEAREST;
  }));
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gofer
