//===- RunAllTest.cpp - Tests of runs on global tensors -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <cstring>
#include <numeric>

using namespace burst::test;

namespace {

struct MemRef2 {
  float *base, *data;
  int64_t offset, sizes[2], strides[2];
};

/// Writes to o[x][c] the sum over all ranks of q's column c, plus q[x][c]: a
/// ring of partial sums. `sums` has two rows.
void addSums(burst_rank *rank, const burst_table *table, void *const *values) {
  const auto *q = static_cast<MemRef2 *>(values[0]);
  auto *o = static_cast<MemRef2 *>(values[2]);
  int64_t r = table->index(rank), columns = q->sizes[1];
  int64_t ranks = *static_cast<int64_t *>(values[3]);
  auto *memory = static_cast<float *>(
      table->allocate(rank, 3 * columns * 4, BURST_MEMORY_SLICE));
  float *travels = memory, *arrives = memory + columns,
        *sum = memory + 2 * columns;
  for (int64_t c = 0; c < columns; ++c) {
    sum[c] = 0;
    for (int64_t x = 0; x < q->sizes[0]; ++x)
      sum[c] += q->data[x * q->strides[0] + c];
    travels[c] = sum[c];
  }
  for (int64_t hop = 1; hop < ranks; ++hop) {
    burst_piece send = pieceOf(travels, columns);
    burst_piece receive = pieceOf(arrives, columns);
    table->wait(rank, shift(table, rank, 0, (r + 1) % ranks, 1, &send,
                            (r + ranks - 1) % ranks, 1, &receive));
    std::swap(travels, arrives);
    for (int64_t c = 0; c < columns; ++c)
      sum[c] += travels[c];
  }
  for (int64_t x = 0; x < o->sizes[0]; ++x)
    for (int64_t c = 0; c < columns; ++c)
      o->data[x * o->strides[0] + c] = sum[c] + q->data[x * q->strides[0] + c];
  // The result that is not sharded: the same on every rank.
  auto *total = static_cast<MemRef2 *>(values[4]);
  for (int64_t c = 0; c < columns; ++c)
    total->data[c] = sum[c];
}

/// q and o [s][c], the extent s, the number of ranks, and total [1][c].
void describe(Program &program, Program::Segments segments) {
  program.parameters.reserve(5);
  program.tensor("q", {-1, -1});
  program.shard(0, segments, -1, 1);
  program.extent("s");
  // In front of results there are arguments only.
  program.tensor("o", {-1, -1}, BURST_F32, true);
  program.shard(0, segments, -1, 1);
}

class RunAll : public testing::Test {
protected:
  Device device = makeDevice(2);
  burst_run_all_config config = {};
  bool overTransport = false; // each rank makes the call
  void SetUp() override {
    config.size = sizeof(config);
    config.device = device.get();
    config.deadline_seconds = 60;
  }

  void run(int64_t ranks, Program::Segments segments, int64_t extent) {
    // The arguments of addSums in another order than the parameters.
    Program program(ranks, [=](burst_rank *rank, const burst_table *table,
                               void *const *values) {
      int64_t size = ranks;
      void *const reordered[] = {values[0], values[1], values[2], &size,
                                 values[3]};
      addSums(rank, table, reordered);
    });
    describe(program, segments);
    program.tensor("total", {1, -1}, BURST_F32, true);
    constexpr int64_t columns = 3;
    burst_program *shared = program.get();
    auto check = [&](burst_transport *transport, int64_t rank) {
      burst_run_all_config how = config;
      how.transport = transport;
      runAndCompare<columns>(shared, how, ranks, extent, rank == 0);
    };
    if (!overTransport)
      return check(nullptr, 0);
    std::vector<Transport> transports = makeTransports(ranks);
    inParallel(ranks,
               [&](int64_t rank) { check(transports[rank].get(), rank); });
  }

  /// Of ranks that are not all here, results and counters are those of rank 0.
  template <int64_t columns>
  static void runAndCompare(burst_program *program,
                            const burst_run_all_config &config, int64_t ranks,
                            int64_t extent, bool hasResults) {
    // q's columns lie together; o has rows with gaps.
    std::vector<float> q(extent * columns + 1), o(extent * 5 + 1, -1.f),
        total(columns, -1.f);
    std::iota(q.begin(), q.end(), 1.f);
    burst_tensor values[] = {tensorOf(q.data(), {extent, columns}),
                             tensorOf(&extent, {}, BURST_I64),
                             tensorOf(o.data(), {extent, columns}),
                             tensorOf(total.data(), {1, columns})};
    values[0].strides[0] = 1;
    values[0].strides[1] = extent;
    values[2].strides[0] = 5;
    std::vector<burst_counters> counters(ranks);
    for (burst_counters &counter : counters)
      counter.size = sizeof(counter);
    ASSERT_EQ(take(burst_run_all(program, &config, values, 4, counters.data())),
              "");
    if (!hasResults) {
      EXPECT_EQ(total[0], -1.f);
      EXPECT_EQ(o[0], -1.f);
      EXPECT_EQ(counters[0].bytes_sent, 0);
      return;
    }
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t x = 0; x < extent; ++x)
        sum += q[x + c * extent];
      EXPECT_EQ(total[c], sum);
      for (int64_t x = 0; x < extent; ++x)
        EXPECT_EQ(o[x * 5 + c], sum + q[x + c * extent]);
    }
    for (int64_t x = 0; x < extent; ++x)
      EXPECT_EQ(o[x * 5 + 3], -1.f);
    for (const burst_counters &counter : counters) {
      EXPECT_EQ(counter.bytes_sent, (ranks - 1) * columns * 4);
      EXPECT_EQ(counter.peak_sum, 3 * columns * 4);
    }
  }
};

TEST_F(RunAll, ShardsRunsAndGathers) {
  for (int64_t checked : {0, 1})
    for (Program::Segments segments : {contiguous, zigzag, striped, blocked})
      for (int64_t ranks : {1, 2, 3, 5, 8})
        for (int64_t extent : {0, 1, 13, 40}) {
          config.checked = checked;
          run(ranks, segments, extent);
        }
}

TEST_F(RunAll, RunsOneRankOfThoseOnATransport) {
  overTransport = true;
  for (int64_t ranks : {1, 2, 5})
    for (int64_t extent : {0, 1, 13, 40})
      run(ranks, zigzag, extent);
}

TEST_F(RunAll, ChecksItsTransport) {
  Program program(3, [](burst_rank *, const burst_table *, void *const *) {});
  std::vector<Transport> transports = makeTransports(2);
  config.transport = transports[0].get();
  EXPECT_EQ(
      takeCoded(burst_run_all(program.get(), &config, nullptr, 0, nullptr)),
      "INVALID_ARGUMENT test: a transport of 2 ranks, wanted 3");
  transports = makeTransports(3);
  config.transport = transports[0].get();
  config.latency_seconds = 1;
  EXPECT_EQ(
      takeCoded(burst_run_all(program.get(), &config, nullptr, 0, nullptr)),
      "INVALID_ARGUMENT burst_run_all: latency_seconds and bytes_per_second "
      "are for ranks that are threads, and there is a transport");
}

/// One rank that fails ends all, also where they collect results.
TEST_F(RunAll, FailsOnAllRanksOfATransport) {
  Program program(
      3, [](burst_rank *rank, const burst_table *table, void *const *) {
        if (table->index(rank) == 2)
          table->require(rank, 0, 1, "luck");
      });
  std::vector<Transport> transports = makeTransports(3);
  std::vector<std::string> errors(3);
  burst_program *shared = program.get();
  inParallel(3, [&](int64_t rank) {
    burst_run_all_config how = config;
    how.transport = transports[rank].get();
    errors[rank] = takeCoded(burst_run_all(shared, &how, nullptr, 0, nullptr));
  });
  expectContains(errors[0], {"PEER_STOPPED", "rank 2: luck"});
  // Which may have done its part before.
  if (!errors[1].empty())
    expectContains(errors[1], {"PEER_STOPPED", "rank 2: luck"});
  expectContains(errors[2], {"INVALID_ARGUMENT rank 2: luck"});
}

/// Floats of which the order of the sum shows: 1 is lost beside 2^24.
TEST_F(RunAll, AddsUpSharesInTheOrderOfTheRanks) {
  const float shares[] = {0x1p24f, 1.f, 1.f, -0x1p24f};
  Program program(
      4, [&](burst_rank *rank, const burst_table *table, void *const *values) {
        auto *single = static_cast<MemRef2 *>(values[0]);
        struct {
          double *base, *data;
        } twice;
        std::memcpy(&twice, values[1], sizeof(twice));
        for (int64_t i = 0; i < 6; ++i) {
          float share = shares[table->index(rank)];
          single->data[i / 3 * single->strides[0] + i % 3] =
              share + (share == 1 ? 0.f : 16.f * static_cast<float>(i));
          twice.data[i] = share;
        }
      });
  program.parameters.reserve(2);
  program.tensor("single", {2, 3}, BURST_F32, true).is_partial = 1;
  program.tensor("twice", {6}, BURST_F64, true).is_partial = 1;
  float single[10];
  double twice[6];
  std::fill(std::begin(single), std::end(single), 7.f);
  std::fill(std::begin(twice), std::end(twice), 7.);
  burst_tensor values[] = {tensorOf(single, {2, 3}),
                           tensorOf(twice, {6}, BURST_F64)};
  values[0].strides[0] = 1;
  values[0].strides[1] = 3;
  ASSERT_EQ(take(burst_run_all(program.get(), &config, values, 2, nullptr)),
            "");
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(single[i / 3 + i % 3 * 3], 32.f * static_cast<float>(i));
    EXPECT_EQ(twice[i], 2.);
  }
  EXPECT_EQ(single[2], 7.f);
}

TEST_F(RunAll, TellsTheCause) {
  // Rank 2 fails; ranks 0 and 1 fail for it, and come first.
  Program program(3, [](burst_rank *rank, const burst_table *table,
                        void *const *) {
    int64_t r = table->index(rank);
    if (r == 2)
      table->release(rank, nullptr);
    float cell;
    burst_piece piece = pieceOf(&cell, 1);
    table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, r + 1, 1, &piece));
  });
  EXPECT_EQ(
      takeCoded(burst_run_all(program.get(), &config, nullptr, 0, nullptr)),
      "PROGRAM_FAULT rank 2: release: nothing is allocated at (nil)");
}

TEST_F(RunAll, ChecksGlobalTensors) {
  Program program(2, [](burst_rank *, const burst_table *, void *const *) {});
  describe(program, contiguous);
  int64_t extent = 4;
  float q[12] = {}, o[12] = {};
  burst_tensor values[] = {tensorOf(q, {4, 3}),
                           tensorOf(&extent, {}, BURST_I64),
                           tensorOf(o, {4, 3})};
  auto run = [&] {
    return takeCoded(burst_run_all(program.get(), &config, values, 3, nullptr));
  };
  EXPECT_EQ(run(), "");
  values[0].sizes[0] = 3;
  EXPECT_EQ(run(),
            "INVALID_ARGUMENT global: argument q: size 3 in dimension 0, "
            "wanted 4");
  values[0].sizes[0] = 4;
  values[2].data = q + 3;
  EXPECT_EQ(run(), "INVALID_ARGUMENT global: result o overlaps q");
  values[2].data = o;
  extent = -4;
  expectContains(run(), {"INVALID_ARGUMENT", "wanted -4"});
  extent = 4;
  EXPECT_EQ(
      takeCoded(burst_run_all(program.get(), &config, values, 2, nullptr)),
      "INVALID_ARGUMENT test: 2 values, wanted 3");
  burst_counters counters[2] = {};
  expectContains(
      takeCoded(burst_run_all(program.get(), &config, values, 3, counters)),
      {"burst_counters: size 0"});
  config.latency_seconds = -1;
  expectContains(run(), {"latency_seconds: -1"});
  config.latency_seconds = 0;
  config.size = 8;
  expectContains(run(), {"burst_run_all_config: size 8, wanted"});
  config.size = sizeof(config);
  config.device = nullptr;
  expectContains(run(), {"no device"});
}

} // namespace
