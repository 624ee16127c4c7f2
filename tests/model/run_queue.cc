// Model check of the real run queue, src/runtime/sched/run_queue.h, under Relacy: one owner, one or
// two thieves, tiny rings.
//
// Relacy runs the threads of a scenario as fibers and tries interleavings, and for each load the
// values that the C++ memory model allows, so it also finds what x86 would hide. Scenarios that are
// small enough are searched completely ("full"); the others up to a number of preemptions
// ("bound"), and at random.
//
// Checked in every execution
//  - Each goroutine is handed out exactly once, or is still in a queue at the end: none lost, none
//    twice.
//  - What was written to a goroutine before it was put is visible to the thread that gets it
//    (Relacy reports a data race on Task::payload otherwise).
//  - A full ring and the overflow to the global queue keep to this while thieves make room.
//  - empty() is false while a goroutine stays in the queue, also while it moves from runnext to the
//    ring.
//  - A submitter that goes through runnext and an M that goes to sleep cannot miss each other
//    (idle.pml has the rest of it): one sees that no M spins, or the other sees the queue.
//
// Abstracted away: rings have 2 or 4 slots instead of 256; positions start at 0, so the wrap of the
// 32-bit positions is not reached; the global queue is a private list, its lock is not the point.
// Relacy never lets a load see a store that is later in the order of execution, so it cannot show
// that put() must load head_ with acquire: that rests on the argument in the header.
//
// Teeth: with the name of a wrongness (relacy_atomics.h) as argument it must find an error.
#include "runtime/sched/run_queue.h"

namespace {

constexpr unsigned max_tasks = 6;

struct Task {
  rl::var<int> payload;
  unsigned handed_out = 0;  // not shared as far as Relacy knows: only one party may come here
};

template <uint32_t N>
using Queue = gofer::internal::RunQueue<Task, N>;

// Tasks and what happens to them.
class Ledger {
 public:
  Task* make(unsigned i) {
    tasks_[i].payload($) = static_cast<int>(i) + 1;
    ++made_;
    return &tasks_[i];
  }
  void run(Task* task) {
    if (task == nullptr) return;
    RL_ASSERT(task >= tasks_ && task < tasks_ + max_tasks);
    RL_ASSERT(task->payload($) == static_cast<int>(task - tasks_) + 1);
    ++task->handed_out;
    RL_ASSERT(task->handed_out == 1);
  }
  void check_all_done() {
    for (unsigned i = 0; i < max_tasks; ++i) RL_ASSERT(tasks_[i].handed_out == (i < made_ ? 1 : 0));
  }

 private:
  Task tasks_[max_tasks];
  unsigned made_ = 0;
};

// Go's runqput, as in queues.cc: through runnext, or to the tail; a full ring gives half away.
template <uint32_t N>
void put_local(Queue<N>& queue, Task* task, bool next, Ledger& ledger) {
  if (next) {
    task = queue.exchange_next(task);
    if (task == nullptr) return;
  }
  while (!queue.put(task)) {
    Task* half[N / 2 + 1];
    const uint32_t n = queue.take_half_of_full(half);
    if (n == 0) continue;
    for (uint32_t i = 0; i < n; ++i) ledger.run(half[i]);
    ledger.run(task);
    return;
  }
}

template <uint32_t N>
Task* take_local(Queue<N>& queue) {
  Task* task = queue.take_next();
  return task != nullptr ? task : queue.get();
}

template <uint32_t N>
void steal_and_run(Queue<N>& mine, Queue<N>& victim, bool take_next, Ledger& ledger) {
  uint32_t moved = 0;
  Task* task = mine.steal_from(victim, take_next, moved);
  RL_ASSERT((task == nullptr) == (moved == 0));
  RL_ASSERT(moved <= (N / 2 > 1 ? N / 2 : 1));
  ledger.run(task);
}

template <uint32_t N>
void drain(Queue<N>& queue, Ledger& ledger) {
  while (Task* task = take_local(queue)) ledger.run(task);
  RL_ASSERT(queue.size() == 0 && !queue.has_next() && queue.empty());
}

// The owner puts Puts goroutines to the tail, gets one in between and at the end; the others steal.
template <class Self, uint32_t N, unsigned Puts, unsigned Thieves>
struct Ring : rl::test_suite<Self, 1 + Thieves> {
  Queue<N> queue[1 + Thieves];
  Ledger ledger;

  void thread(unsigned i) {
    if (i != 0) {
      steal_and_run(queue[i], queue[0], false, ledger);
      ledger.run(queue[i].get());
      return;
    }
    for (unsigned k = 0; k < Puts; ++k) {
      put_local(queue[0], ledger.make(k), false, ledger);
      if (k == 1) ledger.run(queue[0].get());
    }
    ledger.run(queue[0].get());
  }
  void after() {
    for (Queue<N>& q : queue) drain(q, ledger);
    ledger.check_all_done();
  }
};
struct OneThief : Ring<OneThief, 2, 3, 1> {};
struct OneThiefOverflow : Ring<OneThiefOverflow, 2, 4, 1> {};
struct OneThiefWide : Ring<OneThiefWide, 4, 5, 1> {};
struct TwoThieves : Ring<TwoThieves, 2, 2, 2> {};
struct TwoThievesOverflow : Ring<TwoThievesOverflow, 2, 4, 2> {};
struct TwoThievesWide : Ring<TwoThievesWide, 4, 6, 2> {};

// The owner readies through runnext; the thieves are in their last round, which takes it.
template <class Self, unsigned Puts, unsigned Thieves>
struct Next : rl::test_suite<Self, 1 + Thieves> {
  Queue<2> queue[1 + Thieves];
  Ledger ledger;

  void thread(unsigned i) {
    if (i != 0) {
      steal_and_run(queue[i], queue[0], true, ledger);
      return;
    }
    for (unsigned k = 0; k < Puts; ++k) put_local(queue[0], ledger.make(k), true, ledger);
    ledger.run(take_local(queue[0]));
  }
  void after() {
    for (Queue<2>& q : queue) drain(q, ledger);
    ledger.check_all_done();
  }
};
struct NextOneThief : Next<NextOneThief, 3, 1> {};
struct NextTwoThieves : Next<NextTwoThieves, 2, 2> {};

// A chain: 1 steals from 0, 2 steals from 1 while 1 writes its slots.
struct Chain : rl::test_suite<Chain, 3> {
  Queue<4> queue[3];
  Ledger ledger;

  void thread(unsigned i) {
    if (i == 0) {
      for (unsigned k = 0; k < 4; ++k) put_local(queue[0], ledger.make(k), false, ledger);
      return;
    }
    steal_and_run(queue[i], queue[i - 1], false, ledger);
    if (i == 1) ledger.run(take_local(queue[1]));
  }
  void after() {
    for (Queue<4>& q : queue) drain(q, ledger);
    ledger.check_all_done();
  }
};

// One goroutine stays in the queue, in runnext or in the ring, while an M that goes to sleep looks.
struct LookAgain : rl::test_suite<LookAgain, 2> {
  Queue<2> queue;
  gofer::internal::atomic<uint32_t> submitted{0};
  Ledger ledger;

  void thread(unsigned i) {
    if (i == 1) {
      const bool before = submitted.load(gofer::internal::seq_cst) != 0;
      if (queue.empty()) RL_ASSERT(!before);
      return;
    }
    put_local(queue, ledger.make(0), true, ledger);
    submitted.store(1, gofer::internal::seq_cst);
    put_local(queue, ledger.make(1), true, ledger);
    ledger.run(queue.take_next());
  }
  void after() {
    drain(queue, ledger);
    ledger.check_all_done();
  }
};

// The submitter puts, then looks whether an M spins; the spinner stops spinning, then looks.
template <class Self, bool ThroughNext>
struct Sleep : rl::test_suite<Self, 2> {
  Queue<2> queue;
  gofer::internal::atomic<uint32_t> spinning{1};
  Ledger ledger;
  bool wakes = false;
  bool sees = false;

  void thread(unsigned i) {
    if (i == 0) {
      put_local(queue, ledger.make(0), ThroughNext, ledger);
      wakes = spinning.load(gofer::internal::seq_cst) == 0;
    } else {
      spinning.exchange(0, gofer::internal::seq_cst);
      sees = !queue.empty();
    }
  }
  void after() {
    RL_ASSERT(wakes || sees);
    drain(queue, ledger);
    ledger.check_all_done();
  }
};
struct SleepNext : Sleep<SleepNext, true> {};
struct SleepTail : Sleep<SleepTail, false> {};

// Relacy writes its report while its own operator new is in force, so the stream must not allocate.
class Report : public std::streambuf {
 public:
  Report() { setp(text_, text_ + sizeof text_ - 1); }
  const char* text() {
    *pptr() = '\0';
    return text_;
  }

 private:
  int overflow(int c) override { return c == EOF ? 0 : c; }  // what does not fit is dropped
  char text_[8000];
};

// The first error ends the program. limit 0: as long as there is something new.
template <class Scenario>
void check(const char* name, rl::scheduler_type_e search, unsigned preemptions, unsigned limit) {
  static Report report;
  static std::ostream stream(&report);
  rl::test_params params;
  params.search_type = search;
  params.context_bound = preemptions;
  params.iteration_count = limit;
  params.execution_depth_limit = 4000;
  params.output_stream = &stream;
  params.progress_stream = &stream;
  const bool good = rl::simulate<Scenario>(params);
  std::printf("%s  %-32s %10lu executions, ", good ? "ok   " : "ERROR", name,
              static_cast<unsigned long>(params.stop_iteration));
  if (search == rl::sched_full) std::printf("all there are\n");
  if (search == rl::sched_bound) std::printf("all with up to %u preemptions\n", preemptions);
  if (search == rl::sched_random) std::printf("at random\n");
  if (!good) std::printf("%s\n", report.text());
  std::fflush(stdout);
  if (!good) std::exit(1);
}

}  // namespace

// What the one argument says: nothing or "quick", "long", a wrongness, or "tail".
int main(int argc, char** argv) {
  using gofer::internal::Wrong;
  const std::string_view mode = argc > 1 ? argv[1] : "quick";
  auto& wrongness = gofer::internal::wrongness;
  if (mode == "acquire") wrongness = Wrong::acquire;
  if (mode == "release") wrongness = Wrong::release;
  if (mode == "exchange") wrongness = Wrong::exchange;
  if (mode == "compare_exchange") wrongness = Wrong::compare_exchange;
  const auto full = rl::sched_full;
  const auto bound = rl::sched_bound;
  const unsigned more = mode == "long" ? 1 : 0;
  if (mode == "tail") check<SleepTail>("sleep, put at the tail", full, 0, 0);
  check<LookAgain>("look again", full, 0, 0);
  check<SleepNext>("sleep, put into runnext", full, 0, 0);
  check<NextOneThief>("runnext, one thief", full, 0, 0);
  check<NextTwoThieves>("runnext, two thieves", bound, 3 + more, 0);
  check<OneThief>("ring, one thief", bound, 4 + 2 * more, 0);
  check<OneThiefOverflow>("overflow, one thief", bound, 4 + 2 * more, 0);
  check<OneThiefWide>("4 slots, one thief", bound, 4 + more, 0);
  check<TwoThieves>("ring, two thieves", bound, 3 + more, 0);
  check<TwoThievesOverflow>("overflow, two thieves", bound, 2 + more, 0);
  check<TwoThievesWide>("4 slots, two thieves", bound, 2 + more, 0);
  check<TwoThievesWide>("4 slots, two thieves", rl::sched_random, 0, more ? 50'000'000 : 500'000);
  check<Chain>("thief of a thief", bound, 3 + more, 0);
  return 0;
}
