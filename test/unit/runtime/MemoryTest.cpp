//===- MemoryTest.cpp - Tests of allocations and their counts -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

using namespace burst::test;

namespace {

TEST(Memory, CountsPeaksExactly) {
  Ranks ranks;
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    void *state = table->allocate(rank, 100, BURST_MEMORY_STATE);
    void *slice = table->allocate(rank, 1000, BURST_MEMORY_SLICE);
    table->release(rank, state);
    table->allocate(rank, 30, BURST_MEMORY_STATE);
    table->release(rank, slice);
    table->allocate(rank, 0, BURST_MEMORY_PACKING);
    slice = table->allocate(rank, 1060, BURST_MEMORY_SLICE);
    table->release(rank, slice);
    table->allocate(rank, 8, BURST_MEMORY_SCHEDULE);
  });
  ranks.expectSuccess();
  const burst_counters &counters = ranks.counters[0];
  EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_STATE], 100);
  EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_SLICE], 1060);
  EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_PACKING], 0);
  EXPECT_EQ(counters.peak_bytes[BURST_MEMORY_SCHEDULE], 8);
  EXPECT_EQ(counters.peak_sum, 1100);
  EXPECT_EQ(counters.tensor_bytes, 0);
  EXPECT_EQ(counters.peak_total, 1100);
}

TEST(Memory, IsAligned) {
  bool aligned = true;
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    for (int64_t bytes = 0; bytes < 200; ++bytes) {
      void *memory = table->allocate(rank, bytes, BURST_MEMORY_STATE);
      aligned &= memory && reinterpret_cast<uintptr_t>(memory) % 64 == 0;
    }
  });
  ranks.expectSuccess();
  EXPECT_TRUE(aligned);
}

std::string allocate(int64_t bytes, int64_t kind) {
  Ranks ranks;
  ranks.run(1, [=](burst_rank *rank, const burst_table *table, void *const *) {
    table->allocate(rank, 1 << 20, BURST_MEMORY_STATE); // freed all the same
    table->allocate(rank, bytes, kind);
  });
  return ranks.errors[0];
}

TEST(Memory, RefusesWhatCannotBe) {
  EXPECT_EQ(allocate(-1, 0), "PROGRAM_FAULT rank 0: allocate: -1 bytes, wanted "
                             "0 or more");
  EXPECT_EQ(allocate(8, 4),
            "PROGRAM_FAULT rank 0: allocate: kind 4, wanted 0 to 3");
  EXPECT_EQ(allocate(8, -1),
            "PROGRAM_FAULT rank 0: allocate: kind -1, wanted 0 to 3");
}

TEST(Memory, ReportsWhatIsNotThere) {
  EXPECT_EQ(allocate(int64_t(1) << 60, 0),
            "OUT_OF_MEMORY rank 0: allocate: out of memory: wanted "
            "1152921504606846976 bytes");
  expectContains(allocate(INT64_MAX, 0),
                 {"OUT_OF_MEMORY", "9223372036854775807"});
}

TEST(Memory, ReleasesOnlyWhatIsAllocated) {
  Ranks ranks;
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    void *memory = table->allocate(rank, 8, BURST_MEMORY_STATE);
    table->release(rank, memory);
    table->release(rank, memory);
  });
  expectContains(ranks.errors[0],
                 {"PROGRAM_FAULT rank 0: release: nothing is allocated at 0x"});
}

} // namespace
