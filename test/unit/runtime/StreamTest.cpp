//===- StreamTest.cpp - Tests of queues of runs ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace burst::test;

namespace {

class Streams : public testing::Test {
protected:
  Device device = makeDevice(2);
  std::vector<Stream> streams;
  std::vector<Transport> transports;

  void make(int64_t ranks) {
    transports = makeTransports(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      burst_stream *stream;
      ASSERT_EQ(take(burst_stream_create(device.get(), &stream)), "");
      streams.emplace_back(stream);
    }
  }
  burst_run_config configOf(int64_t rank) {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = rank;
    config.stream = streams[rank].get();
    config.transport = transports[rank].get();
    return config;
  }
  std::string synchronize(int64_t rank) {
    return takeCoded(burst_stream_synchronize(streams[rank].get()));
  }
};

TEST_F(Streams, RunInOrderAndTogether) {
  // Both ranks are queued by one thread: neither call may wait for the other.
  std::vector<float> seen[2];
  Program program(
      2, [&](burst_rank *rank, const burst_table *table, void *const *values) {
        int64_t r = table->index(rank);
        burst_piece send = pieceOf(static_cast<float *>(values[0]), 1);
        float received;
        burst_piece receive = pieceOf(&received, 1);
        table->wait(rank,
                    shift(table, rank, 0, 1 - r, 1, &send, 1 - r, 1, &receive));
        seen[r].push_back(received);
      });
  program.tensor("x", {}).kind = BURST_SCALAR;
  make(2);
  float cells[2][10];
  burst_counters counters[10];
  for (int i = 0; i < 10; ++i) {
    for (int64_t r = 0; r < 2; ++r) {
      cells[r][i] = float(10 * r + i);
      burst_run_config config = configOf(r);
      burst_tensor value = tensorOf(&cells[r][i], {});
      counters[i].size = sizeof(burst_counters);
      EXPECT_EQ(take(burst_run(program.get(), &config, &value, 1,
                               r ? nullptr : &counters[i])),
                "");
    }
  }
  EXPECT_EQ(synchronize(0), "");
  EXPECT_EQ(synchronize(1), "");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(seen[0][i], float(10 + i));
    EXPECT_EQ(seen[1][i], float(i));
    EXPECT_EQ(counters[i].bytes_sent, 4);
  }
}

TEST_F(Streams, KeepTheFirstErrorAndSkipTheRest) {
  std::atomic<int> runs = 0;
  Program program(
      1, [&](burst_rank *rank, const burst_table *table, void *const *) {
        table->allocate(rank, runs++ == 1 ? -5 : 5, BURST_MEMORY_STATE);
      });
  make(1);
  burst_run_config config = configOf(0);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  EXPECT_EQ(synchronize(0),
            "PROGRAM_FAULT rank 0: allocate: -5 bytes, wanted 0 or more");
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(synchronize(0), "");
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  EXPECT_EQ(synchronize(0), "");
  EXPECT_EQ(runs, 3);
}

TEST_F(Streams, TellPeersOfRunsThatWereSkipped) {
  // Rank 0 fails before a transport knows of it; its next run is skipped.
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        float cell;
        burst_piece piece = pieceOf(&cell, 1);
        if (table->index(rank) == 0)
          table->wait(rank, 77);
        else
          table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, 0, 1, &piece));
      });
  make(2);
  std::vector<Transport> others = makeTransports(2);
  burst_run_config config = configOf(0);
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  config.transport = others[0].get();
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  config = configOf(1);
  config.transport = others[1].get();
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  EXPECT_EQ(synchronize(1), "PEER_STOPPED rank 1, hop 1: receive from rank 0: "
                            "rank 0 stopped: rank 0: wait: token 77 of 0");
  EXPECT_EQ(synchronize(0), "PROGRAM_FAULT rank 0: wait: token 77 of 0");
}

TEST_F(Streams, ReturnWherePeersNeverCome) {
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        float cell;
        burst_piece piece = pieceOf(&cell, 1);
        table->wait(rank, shift(table, rank, 0, 0, 0, nullptr, 1, 1, &piece));
      });
  make(2);
  burst_run_config config = configOf(0);
  config.deadline_seconds = 0.05;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  expectContains(synchronize(0), {"DEADLINE_EXCEEDED rank 0, hop 1: waited"});
}

TEST_F(Streams, FinishBeforeTheyAreDestroyed) {
  std::atomic<int> runs = 0;
  Program program(1, [&](burst_rank *, const burst_table *, void *const *) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++runs;
  });
  make(1);
  burst_run_config config = configOf(0);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  streams.clear();
  EXPECT_EQ(runs, 10);
}

TEST_F(Streams, BelongToADevice) {
  make(1);
  Program program(1, [](burst_rank *, const burst_table *, void *const *) {});
  burst_run_config config = configOf(0);
  config.device = device.get();
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)), "");
  EXPECT_EQ(synchronize(0), "");
  Device other = makeDevice(1);
  config.device = other.get();
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)),
            "burst_run: the stream is of another device");
  burst_stream *stream;
  EXPECT_EQ(take(burst_stream_create(nullptr, &stream)),
            "burst_stream_create: device: null");
}

} // namespace
