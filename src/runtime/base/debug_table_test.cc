// gofer-test: once
// The tables for debuggers, compared with what they describe.
#include "runtime/base/debug_table.h"

#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>

#include "arch/arch.h"
#include "runtime/procs/current.h"
#include "support/wait_until.h"

extern "C" {
extern const gofer::internal::DebugEntry gofer_debug_goroutines[];
extern const gofer::internal::DebugEntry gofer_debug_states[];
extern const gofer::internal::DebugEntry gofer_debug_registers[];
extern const gofer::internal::DebugEntry gofer_debug_threads[];
}

namespace gofer::internal {
namespace {

const DebugEntry* find(const DebugEntry* table, std::string_view name) {
  while (table->name[0] != '\0' && table->name != name) ++table;
  return table->name[0] != '\0' ? table : nullptr;
}

uint64_t value(const DebugEntry* table, std::string_view name) {
  const DebugEntry* entry = find(table, name);
  EXPECT_NE(entry, nullptr) << name;
  return entry == nullptr ? 0 : entry->value;
}

TEST(DebugTable, SaysWhereTheFieldsOfAGoroutineAre) {
  run([] {
    const Inside inside;
    const G* g = inside.m()->curg;
    const auto* bytes = reinterpret_cast<const char*>(g);
    uint64_t id;
    std::memcpy(&id, bytes + value(gofer_debug_goroutines, "G.id"), sizeof id);
    EXPECT_EQ(id, g->id);
    const StackHead* head;
    std::memcpy(&head, bytes + value(gofer_debug_goroutines, "G.head"), sizeof head);
    EXPECT_EQ(head, g->head);
    EXPECT_EQ(static_cast<GStatus>(bytes[value(gofer_debug_goroutines, "G.status")]),
              GStatus::running);
  });
}

// A bit-field, of which the compiler does not tell the place.
TEST(DebugTable, SaysWhereTheClassOfAStackIs) {
  constexpr size_t large = 4 << 20;
  wait_group done;
  done.go({.stack_size = large}, [] {
    const Inside inside;
    const G* g = inside.m()->curg;
    const auto* bytes = reinterpret_cast<const unsigned char*>(g);
    EXPECT_NE(g->stack_class, default_stack_class());
    EXPECT_EQ(static_cast<StackClass>(bytes[value(gofer_debug_goroutines, "G.stack_class")] &
                                      value(gofer_debug_goroutines, "G.stack_class.mask")),
              g->stack_class);
  });
  done.wait();
}

TEST(DebugTable, HasAllStatesAndReasonsWithTheTextsOfReports) {
  for (int i = 0; status_name(static_cast<GStatus>(i))[0] != '?' || i < 9; ++i) {
    const char* name = status_name(static_cast<GStatus>(i));
    if (name[0] == '?') continue;
    EXPECT_EQ(value(gofer_debug_states, std::string("status:") + name), static_cast<uint64_t>(i));
  }
  int reasons = 0;
  for (; wait_reason_text(static_cast<WaitReason>(reasons))[0] != '?'; ++reasons) {
    const char* text = wait_reason_text(static_cast<WaitReason>(reasons));
    EXPECT_EQ(value(gofer_debug_states, std::string("wait:") + text),
              static_cast<uint64_t>(reasons));
  }
  EXPECT_GT(reasons, static_cast<int>(WaitReason::wait_group_wait));
}

TEST(DebugTable, SaysWhereTheRegistersOfAParkedGoroutineAre) {
  chan<int> never(0);
  std::atomic<G*> parked{nullptr};
  go([&parked, never] {
    {
      const Inside inside;
      parked = inside.m()->curg;
    }
    never.recv();
  });
  ASSERT_TRUE(test::wait_until([&] {
    const G* g = parked.load();
    return g != nullptr && g->status.load(acquire) == GStatus::waiting;
  }));
  char* sp = static_cast<char*>(parked.load()->head->sp);
  arch::Registers registers = arch::saved_registers(sp);
  EXPECT_EQ(arch::sp_of(registers),
            reinterpret_cast<uintptr_t>(sp) +
                value(gofer_debug_registers, std::string("sp:") + arch::saved_sp.name));
  bool has_pc = false;
  for (const arch::SavedRegister& r : arch::saved_register_places) {
    uintptr_t saved;
    std::memcpy(&saved, sp + value(gofer_debug_registers, std::string("register:") + r.name),
                sizeof saved);
    has_pc = has_pc || saved == arch::pc_of(registers);
  }
  EXPECT_TRUE(has_pc);
  never.close();
}

TEST(DebugTable, NamesTheTablesOfRecords) {
  const DebugEntry* slabs = find(gofer_debug_goroutines, "records.slabs");
  ASSERT_NE(slabs, nullptr);
  EXPECT_NE(slabs->object, nullptr);
  const DebugEntry* ms = find(gofer_debug_threads, "m_table");
  ASSERT_NE(ms, nullptr);
  EXPECT_NE(ms->object, nullptr);
}

}  // namespace
}  // namespace gofer::internal
