//===- GuardTest.cpp - Tests of what checked runs find --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace burst::test;

namespace {

void nothing(const void *, int64_t) {}
const burst_kernel attend = {"attend", nothing};

/// Memory of one rank, and what it does with it.
struct Memory {
  float sent[8], received[8], other[8];
};

/// Runs a ring of one rank that sends and receives half of its memory, then
/// does `misdeed` while that is under way.
std::string runMisdeed(void (*misdeed)(burst_rank *, const burst_table *,
                                       Memory *),
                       bool checked = true) {
  Ranks ranks;
  ranks.config.checked = checked;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    auto *memory = static_cast<Memory *>(
        table->allocate(rank, sizeof(Memory), BURST_MEMORY_SLICE));
    // Every other element.
    burst_piece send = {memory->sent, 4, {1, 1, 1, 4}, {0, 0, 0, 2}};
    burst_piece receive = {memory->received, 4, {1, 1, 1, 4}, {0, 0, 0, 2}};
    int64_t first = shift(table, rank, 9, 0, 1, &send, 0, 1, &receive);
    misdeed(rank, table, memory);
    table->wait(rank, first);
  });
  return ranks.errors[0];
}

void use(burst_rank *rank, const burst_table *table, const void *begin,
         int64_t bytes, int64_t mode) {
  burst_use use = {begin, bytes, mode};
  table->launch(rank, &attend, nullptr, 1, nullptr, 1, &use);
}

TEST(Guard, FindsReadsOfWhatIsBeingReceived) {
  EXPECT_EQ(runMisdeed([](auto *rank, auto *table, Memory *memory) {
              use(rank, table, memory->received, 4, BURST_READS);
            }),
            "PROGRAM_FAULT rank 0, hop 1: kernel attend reads memory that is "
            "being received from rank 0 on channel 9");
}

TEST(Guard, FindsWritesOfWhatIsBeingReceived) {
  EXPECT_EQ(runMisdeed([](auto *rank, auto *table, Memory *memory) {
              use(rank, table, memory, sizeof(Memory), BURST_WRITES);
            }),
            "PROGRAM_FAULT rank 0, hop 1: kernel attend writes memory that is "
            "being received from rank 0 on channel 9");
}

TEST(Guard, FindsWritesOfWhatIsBeingSent) {
  EXPECT_EQ(runMisdeed([](auto *rank, auto *table, Memory *memory) {
              use(rank, table, memory->sent + 2, 1, BURST_READS | BURST_WRITES);
            }),
            "PROGRAM_FAULT rank 0, hop 1: kernel attend writes memory that is "
            "being sent to rank 0 on channel 9");
}

TEST(Guard, AllowsWhatIsLegal) {
  EXPECT_EQ(runMisdeed([](auto *rank, auto *table, Memory *memory) {
              use(rank, table, memory->sent, 32, BURST_READS);
              // Between the elements under way.
              use(rank, table, memory->sent + 1, 4, BURST_WRITES);
              use(rank, table, memory->received + 7, 4, BURST_READS);
              use(rank, table, memory->received, 0, BURST_READS);
              use(rank, table, memory->other, 32, BURST_READS | BURST_WRITES);
              // Sent twice.
              burst_piece send = {memory->sent, 4, {1, 1, 1, 8}, {0, 0, 0, 1}};
              burst_piece receive = pieceOf(memory->other, 8);
              int64_t token =
                  shift(table, rank, 0, 0, 1, &send, 0, 1, &receive);
              table->wait(rank, token);
            }),
            "");
}

TEST(Guard, IsOffByDefault) {
  EXPECT_EQ(runMisdeed(
                [](auto *rank, auto *table, Memory *memory) {
                  use(rank, table, memory->received, 4, BURST_READS);
                },
                false),
            "");
}

TEST(Guard, FindsReceivesIntoWhatIsUnderWay) {
  EXPECT_EQ(
      runMisdeed([](auto *rank, auto *table, Memory *memory) {
        burst_piece piece = pieceOf(memory->sent + 6, 2);
        shift(table, rank, 2, 0, 0, nullptr, 0, 1, &piece);
      }),
      "PROGRAM_FAULT rank 0, hop 1: receive from rank 0 on channel 2: the "
      "memory is being sent to rank 0 on channel 9, hop 1");
  EXPECT_EQ(
      runMisdeed([](auto *rank, auto *table, Memory *memory) {
        burst_piece piece = pieceOf(memory->received, 1);
        shift(table, rank, 9, 0, 0, nullptr, 0, 1, &piece);
      }),
      "PROGRAM_FAULT rank 0, hop 2: receive from rank 0 on channel 9: the "
      "memory is being received from rank 0 on channel 9, hop 1");
}

TEST(Guard, FindsSendsOfWhatIsBeingReceived) {
  expectContains(runMisdeed([](auto *rank, auto *table, Memory *memory) {
                   burst_piece piece = pieceOf(memory->received, 8);
                   shift(table, rank, 2, 0, 1, &piece, 0, 0, nullptr);
                 }),
                 {"send to rank 0 on channel 2: the memory is being received"});
}

TEST(Guard, FindsReceivesOfWhatTheSameStartSends) {
  expectContains(runMisdeed([](auto *rank, auto *table, Memory *memory) {
                   burst_piece piece = pieceOf(memory->other, 8);
                   shift(table, rank, 2, 0, 1, &piece, 0, 1, &piece);
                 }),
                 {"receive from rank 0 on channel 2: the memory is being sent "
                  "to rank 0 on channel 2, hop 1"});
}

TEST(Guard, FindsReleases) {
  EXPECT_EQ(runMisdeed([](auto *rank, auto *table, Memory *memory) {
              table->release(rank, memory);
            }),
            "PROGRAM_FAULT rank 0, hop 1: release of memory that is being sent "
            "to rank 0 on channel 9");
}

std::string launchInOrder(std::vector<int32_t> order) {
  Ranks ranks;
  ranks.config.checked = 1;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    table->launch(rank, &attend, nullptr, int64_t(order.size()), order.data(),
                  0, nullptr);
  });
  return ranks.errors[0];
}

TEST(Guard, ChecksOrders) {
  EXPECT_EQ(launchInOrder({2, 1, 0}), "");
  expectContains(launchInOrder({0, 0, 1}),
                 {"rank 0: kernel attend: task 0 at place 1", "0 to 2 once"});
  expectContains(launchInOrder({0, 3, 1}), {"task 3 at place 1"});
  expectContains(launchInOrder({-1}), {"task -1 at place 0"});
}

TEST(Guard, ChecksSizesOfUses) {
  expectContains(
      runMisdeed([](auto *rank, auto *table, Memory *memory) {
        use(rank, table, memory, -4, BURST_READS);
      }),
      {"rank 0: kernel attend: use 0 of -4 bytes, wanted 0 or more"});
}

TEST(Guard, PoisonsMemory) {
  float allocated = 0, before = 0, gap = 0, after = 0;
  Ranks ranks;
  ranks.config.checked = ranks.local.checked = 1;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    auto *cells =
        static_cast<float *>(table->allocate(rank, 16, BURST_MEMORY_STATE));
    allocated = cells[0];
    cells[0] = 1;
    cells[1] = cells[2] = cells[3] = 2;
    burst_piece send = pieceOf(&cells[0], 1);
    burst_piece receive = {&cells[1], 4, {1, 1, 1, 1}, {0, 0, 0, 1}};
    int64_t token = shift(table, rank, 0, 0, 1, &send, 0, 1, &receive);
    // The copy waits until someone does.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    before = cells[1];
    gap = cells[2];
    table->wait(rank, token);
    after = cells[1];
  });
  ranks.expectSuccess();
  EXPECT_TRUE(std::isnan(allocated));
  EXPECT_TRUE(std::isnan(before));
  EXPECT_EQ(gap, 2.f);
  EXPECT_EQ(after, 1.f);
}

} // namespace
