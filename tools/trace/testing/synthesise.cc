// trace_synthesise OUT EVENTS [SEED]: a trace with Gofer's records, by a small simulation of the
// scheduler.
//
// The browser tests and the measurements of the viewer use it: it needs neither Go nor Gofer, and
// is the same in every run. Eight Ps run goroutines of a few kinds, from rings with runnext, and
// steal from each other. Of the goroutines, some send values around, some make system calls in
// which their P is handed off, some compute until they are paused, and some live for one slice.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trace/gofer_records.h"
#include "trace/reader/varint.h"
#include "trace/testing/trace_writer.h"

namespace gofer::tool::testing {
namespace {

using T = EventType;

constexpr uint64_t procs = 8;
constexpr uint64_t generation = 1;
constexpr size_t max_batch = 60'000;

// Strings and stacks by number.
enum : uint64_t {
  s_main = 1,
  s_parse,
  s_worker,
  s_file,
  s_log,
  s_tiny,
  s_send,
  s_read,
  s_path,
  s_receive,
  s_sleep,
  s_preempted,
  s_stop,
  s_label,
};
enum Kind : uint64_t { k_worker = 1, k_parse, k_file, k_log, k_tiny };
enum : uint64_t { stack_send = 6, stack_read = 7 };

struct Goroutine {
  uint64_t id = 0;
  Kind kind = k_worker;
  uint64_t sequence = 0;
  uint64_t since = 0;  // its last change of state: nothing happens to it before that
};

/// What one M writes, in batches of a limited size.
class MWriter {
 public:
  MWriter(TraceWriter& trace, uint64_t m, uint8_t experiment)
      : trace_(trace), m_(m), experiment_(experiment) {}

  template <class... Args>
  void event(uint64_t now, T type, Args... args) {
    room(now).ev(type, step(now), args...);
  }
  template <class... Args>
  void record(uint64_t now, RecordKind kind, Args... args) {
    Events& events = room(now);
    events.raw({record_byte(kind, sizeof...(args))}).number(step(now));
    (events.number(static_cast<uint64_t>(args)), ...);
  }

 private:
  Events& room(uint64_t now) {
    if (events_ == nullptr || events_->data().size() > max_batch) {
      events_ = &trace_.batch(generation, m_, now, experiment_);
      if (experiment_ != 0) events_->raw({gofer_records_version});
      last_ = now;
    }
    return *events_;
  }
  uint64_t step(uint64_t now) {
    const uint64_t dt = now - last_;
    last_ = now;
    return dt;
  }

  TraceWriter& trace_;
  uint64_t m_;
  uint8_t experiment_;
  Events* events_ = nullptr;
  uint64_t last_ = 0;
};

struct Thread {
  Thread(TraceWriter& trace, uint64_t m)
      : id(m), events(trace, m, 0), records(trace, m, gofer_experiment) {}
  uint64_t id;
  MWriter events;
  MWriter records;
  uint64_t free_at = 0;  // it sits in a system call until then
};

struct Proc {
  uint64_t id = 0;
  uint64_t clock = 0;
  uint64_t sequence = 0;
  Thread* m = nullptr;
  bool idle = false;
  bool hog = false;              // the goroutine computes until it is paused
  Goroutine* current = nullptr;  // runs until clock
  Goroutine* runnext = nullptr;
  std::deque<Goroutine*> ring;
};

class Simulation {
 public:
  Simulation(uint64_t events, uint64_t seed) : limit_(events), random_(seed) {}

  Bytes run();

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  template <class... Args>
  void event(Proc& p, T type, Args... args) {
    p.m->events.event(p.clock, type, args...);
    ++count_;
  }
  template <class... Args>
  void record(Proc& p, RecordKind kind, Args... args) {
    p.m->records.record(p.clock, kind, args...);
    ++count_;
  }
  void begin();
  Goroutine* create(Proc& p, Kind kind);
  void ready(Proc& p, Goroutine* g);
  Goroutine* next(Proc& p);
  Goroutine* steal(Proc& p);
  void wait(Proc& p, Goroutine* g);
  Goroutine* waiting_one(Proc& p);
  uint64_t latest() const;
  void slice(Proc& p);
  void end_slice(Proc& p);
  void call(Proc& p, Goroutine* g);
  void hand_off(Proc& p, Goroutine* g);
  void wake_one(Proc& p);
  void stop_the_world(Proc& p);
  Thread* thread();
  void put_tables();

  uint64_t limit_;
  std::mt19937_64 random_;
  TraceWriter trace_;
  uint64_t count_ = 0;
  uint64_t last_g_ = 0;
  std::deque<Goroutine> goroutines_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Proc> procs_{procs};
  std::deque<Goroutine*> waiting_;
  std::deque<Goroutine*> global_;
  std::deque<std::pair<uint64_t, Goroutine*>> waiting_later_;  // in calls until then
  uint64_t stopped_ = 0;
};

Thread* Simulation::thread() {
  threads_.push_back(std::make_unique<Thread>(trace_, 101 + threads_.size()));
  return threads_.back().get();
}

void Simulation::begin() {
  for (uint64_t i = 0; i < procs; ++i) {
    Proc& p = procs_[i];
    p.id = i;
    p.clock = 1'000'000 + i;
    p.m = thread();
    event(p, T::proc_status, i, 1);
  }
  Proc& p = procs_[0];
  Goroutine& main = goroutines_.emplace_back(Goroutine{.id = ++last_g_});
  event(p, T::go_status_stack, main.id, p.m->id, 2, k_worker);
  event(p, T::go_label, s_label);
  for (int i = 0; i < 90; ++i) {
    create(p, i % 10 < 5 ? k_worker : i % 10 < 7 ? k_parse : i % 10 < 9 ? k_file : k_log);
  }
  p.clock += 5000;
  event(p, T::go_block, s_receive, k_worker);
}

Goroutine* Simulation::create(Proc& p, Kind kind) {
  Goroutine& g = goroutines_.emplace_back(Goroutine{.id = ++last_g_, .kind = kind});
  p.clock += 50;
  event(p, T::go_create, g.id, uint64_t{kind}, uint64_t{k_worker});
  ready(p, &g);
  return &g;
}

void Simulation::ready(Proc& p, Goroutine* g) {
  if (p.runnext != nullptr) p.ring.push_back(p.runnext);
  record(p, RecordKind::runnext, p.id, g->id, p.runnext == nullptr ? 0 : p.runnext->id);
  p.runnext = g;
  g->since = p.clock;
  if (below(4) == 0) record(p, RecordKind::queue, p.id, p.ring.size(), g->id);
  wake_one(p);
}

/// An idle P of which some thread takes hold.
void Simulation::wake_one(Proc& p) {
  if (p.ring.empty()) return;
  for (Proc& other : procs_) {
    if (!other.idle) continue;
    other.idle = false;
    other.clock = std::max(other.clock, p.clock + 2000 + below(8000));
    event(other, T::proc_start, other.id, ++other.sequence);
    return;
  }
}

Goroutine* Simulation::steal(Proc& p) {
  for (uint64_t i = 0, start = below(procs); i < procs; ++i) {
    Proc& victim = procs_[(start + i) % procs];
    if (&victim == &p || victim.ring.empty()) continue;
    const size_t taken = (victim.ring.size() + 1) / 2;
    for (size_t k = 0; k < taken; ++k) {
      p.ring.push_back(victim.ring.front());
      victim.ring.pop_front();
    }
    p.clock = std::max(p.clock, victim.clock) + 300;
    record(p, RecordKind::steal, p.id, victim.id, taken, victim.ring.size());
    Goroutine* const g = p.ring.front();
    p.ring.pop_front();
    record(p, RecordKind::queue, p.id, p.ring.size(), 0);
    record(p, RecordKind::queue, victim.id, victim.ring.size(), 0);
    return g;
  }
  return nullptr;
}

Goroutine* Simulation::next(Proc& p) {
  Goroutine* g = p.runnext;
  p.runnext = nullptr;
  if (g != nullptr) return g;
  if (!global_.empty()) {
    g = global_.front();
    global_.pop_front();
    record(p, RecordKind::global_queue, global_.size());
    return g;
  }
  if (!p.ring.empty()) {
    g = p.ring.front();
    p.ring.pop_front();
    if (below(3) == 0 || p.ring.empty()) record(p, RecordKind::queue, p.id, p.ring.size(), 0);
    return g;
  }
  return steal(p);
}

uint64_t Simulation::latest() const {
  uint64_t time = 0;
  for (const Proc& p : procs_) time = std::max(time, p.clock);
  return time;
}

void Simulation::stop_the_world(Proc& p) {
  p.clock = latest() + 1000;
  event(p, T::stw_begin, s_stop, stack_send);
  p.clock += 400'000;
  event(p, T::stw_end);
  for (Proc& other : procs_) {
    other.clock = std::max(other.clock, p.clock);
  }
}

void Simulation::wait(Proc& p, Goroutine* g) {
  g->since = p.clock;
  waiting_.push_back(g);
}

/// A goroutine that waits at the time of p, and no longer.
Goroutine* Simulation::waiting_one(Proc& p) {
  for (size_t i = 0; i < std::min<size_t>(waiting_.size(), 20); ++i) {
    Goroutine* const g = waiting_[i];
    if (g->since >= p.clock) continue;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    return g;
  }
  return nullptr;
}

void Simulation::slice(Proc& p) {
  Goroutine* const g = next(p);
  if (g == nullptr) {
    p.clock += 5000;
    event(p, T::proc_stop);
    p.idle = true;
    return;
  }
  p.clock = std::max(p.clock, g->since) + 150 + below(400);
  event(p, T::go_start, g->id, ++g->sequence);
  if (count_ > (stopped_ + 1) * limit_ / 5) {
    ++stopped_;
    stop_the_world(p);
  }
  p.clock += 300 + below(g->kind == k_parse ? 60'000 : 4000);
  p.current = g;
}

/// What the goroutine does at the end of its slice. Until then other Ps go on.
void Simulation::end_slice(Proc& p) {
  Goroutine* const g = p.current;
  if (g->kind == k_parse && !p.hog && below(50) == 0) {
    p.hog = true;
    p.clock += 10'000'000;
    return;
  }
  p.current = nullptr;
  for (int i = 0; i < 2; ++i) {
    Goroutine* const partner = below(100) < 68 ? waiting_one(p) : nullptr;
    if (partner == nullptr) continue;
    event(p, T::go_unblock, partner->id, ++partner->sequence, stack_send);
    ready(p, partner);
    p.clock += 100 + below(600);
  }
  switch (g->kind) {
    case k_tiny:
      return event(p, T::go_destroy);
    case k_file:
      return call(p, g);
    case k_parse:
      if (p.hog) {
        p.hog = false;
        record(p, RecordKind::pause, g->id, p.m->id, p.id, below(3));
        event(p, T::go_stop, s_preempted, k_parse);
        g->since = p.clock;
        global_.push_back(g);
        record(p, RecordKind::global_queue, global_.size());
        return;
      }
      break;
    case k_log:
      if (below(3) == 0) create(p, k_tiny);
      break;
    default:
      break;
  }
  event(p, T::go_block, g->kind == k_log ? uint64_t{s_sleep} : uint64_t{s_receive},
        g->kind == k_worker ? uint64_t{stack_send} : uint64_t{g->kind});
  wait(p, g);
}

void Simulation::call(Proc& p, Goroutine* g) {
  event(p, T::go_syscall_begin, ++p.sequence, stack_read);
  if (below(40) == 0) return hand_off(p, g);
  p.clock += 500 + below(20'000);
  event(p, T::go_syscall_end);
  p.clock += 200;
  event(p, T::go_block, s_receive, k_file);
  wait(p, g);
}

/// The call lasts: another M takes the P, and this M has none when it returns.
void Simulation::hand_off(Proc& p, Goroutine* g) {
  Thread* const caller = p.m;
  const uint64_t begin = p.clock;
  Thread* taker = nullptr;
  p.clock += 20'000 + below(20'000);
  for (const auto& t : threads_) {
    bool held = false;
    for (const Proc& other : procs_) held = held || other.m == t.get();
    if (!held && t->free_at < p.clock) taker = t.get();
  }
  if (taker == nullptr) taker = thread();
  p.m = taker;
  event(p, T::proc_steal, p.id, ++p.sequence, caller->id);
  record(p, RecordKind::retake, p.id, caller->id, below(2));
  record(p, RecordKind::hand_off, p.id, caller->id, taker->id);
  event(p, T::proc_start, p.id, ++p.sequence);
  const uint64_t end = begin + 100'000 + below(2'000'000);
  g->since = end;
  caller->events.event(end, T::go_syscall_end_blocked);
  ++count_;
  caller->free_at = end + 1000;
  // It is found in the global queue by whichever P looks there after the call.
  const auto place =
      std::upper_bound(waiting_later_.begin(), waiting_later_.end(), end,
                       [](uint64_t t, const auto& entry) { return t < entry.first; });
  waiting_later_.insert(place, {end, g});
}

void Simulation::put_tables() {
  trace_.strings(generation, {{s_main, "main.main"},
                              {s_parse, "main.parse"},
                              {s_worker, "main.worker"},
                              {s_file, "main.readFile"},
                              {s_log, "main.logger"},
                              {s_tiny, "main.once"},
                              {s_send, "chan.send"},
                              {s_read, "os.Read"},
                              {s_path, "/src/app/main.cc"},
                              {s_receive, "chan receive"},
                              {s_sleep, "sleep"},
                              {s_preempted, "preempted"},
                              {s_stop, "GC mark termination"},
                              {s_label, "the first one"}});
  const auto frame = [](uint64_t function, uint64_t line) {
    return TestFrame{.pc = 4096 + line, .function = function, .file = s_path, .line = line};
  };
  trace_.stack(generation, k_worker, {frame(s_worker, 31)});
  trace_.stack(generation, k_parse, {frame(s_parse, 57)});
  trace_.stack(generation, k_file, {frame(s_file, 70)});
  trace_.stack(generation, k_log, {frame(s_log, 90)});
  trace_.stack(generation, k_tiny, {frame(s_tiny, 104)});
  trace_.stack(generation, stack_send, {frame(s_send, 12), frame(s_worker, 33)});
  trace_.stack(generation, stack_read, {frame(s_read, 8), frame(s_file, 74)});
  trace_.end_generation(generation);
}

Bytes Simulation::run() {
  begin();
  while (count_ < limit_) {
    Proc* first = nullptr;
    for (Proc& p : procs_) {
      if (!p.idle && (first == nullptr || p.clock < first->clock)) first = &p;
    }
    while (!waiting_later_.empty() &&
           (first == nullptr || waiting_later_.front().first < first->clock)) {
      global_.push_back(waiting_later_.front().second);
      waiting_later_.pop_front();
      if (first == nullptr) break;
    }
    if (first == nullptr) {
      // Nothing runs: a timer readies a goroutine.
      Proc& p = procs_[below(procs)];
      p.idle = false;
      p.clock = latest() + 50'000;
      event(p, T::proc_start, p.id, ++p.sequence);
      Goroutine* const g = waiting_one(p);
      if (g == nullptr) continue;
      event(p, T::go_unblock, g->id, ++g->sequence, 0);
      ready(p, g);
      continue;
    }
    first->current == nullptr ? slice(*first) : end_slice(*first);
  }
  put_tables();
  return trace_.bytes();
}

}  // namespace
}  // namespace gofer::tool::testing

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: trace_synthesise OUT EVENTS [SEED]\n");
    return 2;
  }
  const uint64_t seed = argc > 3 ? strtoull(argv[3], nullptr, 10) : 1;
  gofer::tool::testing::Simulation simulation(strtoull(argv[2], nullptr, 10), seed);
  const auto bytes = simulation.run();
  FILE* const file = fopen(argv[1], "we");
  if (file == nullptr || fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() ||
      fclose(file) != 0) {
    perror(argv[1]);
    return 1;
  }
  return 0;
}
