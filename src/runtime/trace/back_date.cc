#include "runtime/trace/back_date.h"

#include <algorithm>

#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {
namespace {

uint64_t get_varint(const uint8_t*& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const uint8_t byte = *at++;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

// Numbers that were seen: open addressing, 8 to 16 bytes for each.
class IdSet {
 public:
  /// Returns false if it was there.
  bool insert(uint64_t id) {
    if (2 * (size_ + 1) > places_.size()) grow();
    const bool is_new = put(id + 1);
    size_ += is_new ? 1 : 0;
    return is_new;
  }

 private:
  bool put(uint64_t key) {
    const size_t mask = places_.size() - 1;
    for (size_t i = (key * 0x9e3779b97f4a7c15u) >> 20 & mask;; i = (i + 1) & mask) {
      if (places_[i] == key) return false;
      if (places_[i] != 0) continue;
      places_[i] = key;
      return true;
    }
  }
  void grow() {
    std::vector<uint64_t> old(std::max<size_t>(1024, 2 * places_.size()));
    old.swap(places_);
    for (uint64_t key : old) {
      if (key != 0) put(key);
    }
  }

  std::vector<uint64_t> places_;
  size_t size_ = 0;
};

}  // namespace

// One walk over everything that is kept.
class Scan {
 public:
  explicit Scan(BackDated& result) : result_(result) {}

  void read(const Kept& kept, bool is_first) {
    is_first_ = is_first;
    generation_ = kept.generation;
    const uint8_t* end = kept.batches() + kept.size;
    for (const uint8_t* at = kept.batches(); at < end;) at = read_batch(at);
  }

 private:
  const uint8_t* read_batch(const uint8_t* at) {
    BackDated::Cut here;
    here.batch = at;
    const bool experimental = *at++ == experimental_batch;
    if (experimental) ++at;
    get_varint(at);  // generation
    here.m = get_varint(at);
    here.begin_ns = here.event_ns = get_varint(at);
    const uint64_t size = get_varint(at);
    here.data = at;
    here.end = at + size;
    if (!experimental && size != 0 && !is_table(*at)) read_events(here);
    return here.end;
  }

  static bool is_table(uint8_t first) { return first < static_cast<uint8_t>(Event::procs_change); }

  void read_events(BackDated::Cut here) {
    for (const uint8_t* at = here.data; at < here.end;) {
      here.event = at;
      const auto kind = static_cast<Event>(*at++);
      here.event_ns += get_varint(at);
      uint64_t args[longest_arguments] = {};
      for (int i = 0; i < argument_count(kind); ++i) args[i] = get_varint(at);
      here.after = at;
      read_event(here, kind, args);
    }
  }

  void read_event(const BackDated::Cut& here, Event kind, const uint64_t* args) {
    switch (kind) {
      case Event::go_create:
      case Event::go_create_syscall:
        goroutines_.insert(args[0]);
        break;
      case Event::go_status:
      case Event::go_status_stack: {  // without the stack, whose number is of that generation
        const auto status = static_cast<GoStatus>(args[2]);
        const bool on_m = status == GoStatus::running || status == GoStatus::in_call;
        if (goroutines_.insert(args[0])) mention(on_m ? args[1] : no_m, Event::go_status, args);
        break;
      }
      case Event::proc_status: {
        const bool on_m = static_cast<ProcStatus>(args[1]) != ProcStatus::idle;
        if (procs_.insert(args[0])) mention(on_m ? here.m : no_m, kind, args);
        break;
      }
      case Event::stw_begin:
        stoppers_.insert(here.m);
        break;
      case Event::stw_end:
        if (!stoppers_.insert(here.m)) break;
        result_.cut_ = here;
        result_.cut_generation_ = generation_;
        break;
      default:
        break;
    }
  }

  void mention(uint64_t m, Event kind, const uint64_t* args) {
    if (!is_first_) result_.mentions_.push_back({m, kind, {args[0], args[1], args[2]}});
  }

  BackDated& result_;
  bool is_first_ = false;
  uint64_t generation_ = 0;
  IdSet goroutines_;
  IdSet procs_;
  IdSet stoppers_;
};

BackDated::BackDated(const Kept* first)
    : generation_(first->generation), begin_ns_(first->begin_ns) {
  Scan scan(*this);
  for (const Kept* kept = first; kept != nullptr; kept = kept->next) {
    scan.read(*kept, kept == first);
  }
  // Those of one M together, the P before its goroutine, as they were written.
  std::stable_sort(mentions_.begin(), mentions_.end(),
                   [](const Mention& a, const Mention& b) { return a.m < b.m; });
}

int BackDated::write(Output& output) const {
  constexpr size_t longest_event = 1 + (1 + longest_arguments) * longest_varint;
  uint8_t data[8192];
  uint8_t* at = data;
  for (size_t i = 0; i < mentions_.size(); ++i) {
    const Mention& mention = mentions_[i];
    *at++ = static_cast<uint8_t>(mention.kind);
    at = put_varint(at, 0);
    for (int k = 0; k < argument_count(mention.kind); ++k) at = put_varint(at, mention.args[k]);
    const bool is_last = i + 1 == mentions_.size() || mentions_[i + 1].m != mention.m;
    if (!is_last && at + longest_event <= data + sizeof data) continue;
    if (const int error = write_batch(output, generation_, mention.m, begin_ns_, data, at);
        error != 0) {
      return error;
    }
    at = data;
  }
  return 0;
}

int BackDated::write_batches(Output& output, const Kept& kept) const {
  const uint8_t* end = kept.batches() + kept.size;
  if (cut_generation_ != kept.generation) return output.write(kept.batches(), kept.size);
  const auto before = static_cast<size_t>(cut_.batch - kept.batches());
  if (const int error = output.write(kept.batches(), before); error != 0) return error;
  if (const int error = write_cut(output); error != 0) return error;
  return output.write(cut_.end, static_cast<size_t>(end - cut_.end));
}

// The second part begins at the time of the event, since the time of the next one counts from it.
int BackDated::write_cut(Output& output) const {
  const int error =
      write_batch(output, cut_generation_, cut_.m, cut_.begin_ns, cut_.data, cut_.event);
  return error != 0
             ? error
             : write_batch(output, cut_generation_, cut_.m, cut_.event_ns, cut_.after, cut_.end);
}

int BackDated::write_batch(Output& output, uint64_t generation, uint64_t m, uint64_t time,
                           const uint8_t* data, const uint8_t* end) {
  if (data == end) return 0;
  uint8_t head[1 + 4 * longest_varint];
  uint8_t* at = head;
  *at++ = event_batch;
  at = put_varint(at, generation);
  at = put_varint(at, m);
  at = put_varint(at, time);
  at = put_varint(at, static_cast<uint64_t>(end - data));
  if (const int error = output.write(head, static_cast<size_t>(at - head)); error != 0) {
    return error;
  }
  return output.write(data, static_cast<size_t>(end - data));
}

}  // namespace gofer::internal::tracer
