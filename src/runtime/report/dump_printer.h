// A snapshot as text: see dump_printer.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "debug/fd_writer.h"
#include "debug/traceback.h"
#include "runtime/report/snapshot.h"

namespace gofer::internal {

struct DumpLayout {
  bool grouped = false;
  size_t limit = 0;                // goroutines or groups; 0: all
  uint64_t first_id = 0;           // this goroutine comes first
  bool empty_line_before = false;  // before the first one, too
  FrameOptions frames;
  void (*before_each)() = nullptr;
};

class DumpPrinter {
 public:
  DumpPrinter(FdWriter& out, Snapshot& snapshot, const DumpLayout& layout)
      : out_(out), snapshot_(snapshot), layout_(layout) {}

  void print();

 private:
  // Goroutines that are shown as one: places in the sorted list.
  struct Group {
    size_t first;
    size_t count;
  };
  // Text that was made before, by what it was made of.
  struct Text {
    uint64_t key;
    std::string_view text;
  };
  using Texts = ArenaVector<Text>;

  void find_callees();
  bool make_groups(ArenaVector<Group>& groups);
  void print_one(const SeenGoroutine& g);
  void print_group(const SeenGoroutine* members, size_t count);
  void print_ids(const SeenGoroutine* members, size_t count);
  void print_state(const SeenGoroutine& g, int64_t least_ns, int64_t most_ns);
  void print_trace(const SeenGoroutine& g);
  void print_creator_of(const SeenGoroutine& g, bool with_parent);
  bool comes_first(const SeenGoroutine& a, const SeenGoroutine& b) const;
  template <class F>
  std::string_view text_of(Texts& texts, uint64_t key, F make);

  FdWriter& out_;
  Snapshot& snapshot_;
  const DumpLayout layout_;
  Texts traces_;
  Texts creators_;
  Texts entries_;
  ArenaVector<char> scratch_;
};

}  // namespace gofer::internal
