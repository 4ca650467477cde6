//===- FailureTest.cpp - Tests of runs that end early ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace burst::test;

namespace {

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// One hop of a ring of single floats in memory that the program allocates.
int64_t startHop(burst_rank *rank, const burst_table *table, int64_t size,
                 int64_t bytes = 4) {
  int64_t r = table->index(rank);
  auto *cells = static_cast<float *>(
      table->allocate(rank, 2 * bytes, BURST_MEMORY_SLICE));
  burst_piece send = pieceOf(cells, bytes / 4);
  burst_piece receive = pieceOf(cells + bytes / 4, bytes / 4);
  return shift(table, rank, 0, (r + 1) % size, 1, &send, (r + size - 1) % size,
               1, &receive);
}

TEST(Failure, OfOneRankEndsAllAtOnce) {
  Ranks ranks;
  auto begin = std::chrono::steady_clock::now();
  ranks.run(4, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->wait(rank, startHop(rank, table, 4));
    if (table->index(rank) == 3)
      table->allocate(rank, -8, BURST_MEMORY_STATE);
    table->wait(rank, startHop(rank, table, 4));
    table->wait(rank, startHop(rank, table, 4));
  });
  EXPECT_LT(secondsSince(begin), 30); // of a deadline of 60
  std::string cause = "rank 3: allocate: -8 bytes, wanted 0 or more";
  EXPECT_EQ(ranks.errors[3], "PROGRAM_FAULT " + cause);
  // Who does not wait for rank 3 itself waits for one that does, or for a
  // message that was still under way.
  for (int rank : {0, 1, 2})
    expectContains(ranks.errors[rank],
                   {"PEER_STOPPED rank " + std::to_string(rank) + ", hop ",
                    "rank 3 stopped: " + cause});
}

TEST(Failure, LeavesNoCopyBehind) {
  // Large messages, so that copies are under way when rank 0 gives up; the
  // address sanitizer sees a copy that outlives its memory.
  for (int round = 0; round < 20; ++round) {
    Ranks ranks;
    ranks.run(
        3, [&](burst_rank *rank, const burst_table *table, void *const *) {
          int64_t tokens[4];
          for (int64_t &token : tokens)
            token = startHop(rank, table, 3, 1 << 20);
          if (table->index(rank) == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
            table->wait(rank, 99);
          }
          for (int64_t token : tokens)
            table->wait(rank, token);
        });
    EXPECT_EQ(ranks.errors[0], "PROGRAM_FAULT rank 0: wait: token 99 of 4");
  }
}

TEST(Failure, DeadlineOfASenderThatNeverComes) {
  Ranks ranks;
  ranks.config.deadline_seconds = 0.3;
  auto begin = std::chrono::steady_clock::now();
  ranks.run(2, [](burst_rank *rank, const burst_table *table, void *const *) {
    if (table->index(rank) == 1) {
      float cell;
      burst_piece piece = pieceOf(&cell, 1);
      table->wait(rank, shift(table, rank, 4, 0, 0, nullptr, 0, 1, &piece));
    }
  });
  EXPECT_GE(secondsSince(begin), 0.3);
  EXPECT_EQ(ranks.errors[0], "");
  EXPECT_EQ(ranks.errors[1],
            "DEADLINE_EXCEEDED rank 1, hop 1: waited 0.3 s for "
            "rank 0 on channel 4: it has not sent");
}

TEST(Failure, DeadlineOfAReceiverThatNeverComes) {
  Ranks ranks;
  ranks.config.deadline_seconds = 0.1;
  ranks.run(2, [](burst_rank *rank, const burst_table *table, void *const *) {
    if (table->index(rank) == 1) {
      float cell = 0;
      burst_piece piece = pieceOf(&cell, 1);
      table->wait(rank, shift(table, rank, 0, 0, 1, &piece, 0, 0, nullptr));
    }
  });
  EXPECT_EQ(ranks.errors[1],
            "DEADLINE_EXCEEDED rank 1, hop 1: waited 0.1 s for "
            "rank 0 on channel 0: it has not received");
}

TEST(Failure, DeadlineOfATransferThatTakesLong) {
  Ranks ranks;
  ranks.config.deadline_seconds = 0.1;
  ranks.local.latency_seconds = 1000;
  ranks.run(2, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->wait(rank, startHop(rank, table, 2));
  });
  std::string texts = ranks.errors[0] + ranks.errors[1];
  expectContains(texts, {"DEADLINE_EXCEEDED rank ",
                         "on channel 0: the transfer is not complete"});
}

TEST(Failure, RankThatWasDestroyedNeedsNoDeadline) {
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        table->wait(rank, startHop(rank, table, 2));
      });
  Device device = makeDevice(1);
  std::vector<Transport> transports = makeTransports(2);
  burst_run_config config = {};
  config.size = sizeof(config);
  config.device = device.get();
  config.transport = transports[0].get();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    transports[1].reset();
  });
  EXPECT_EQ(takeCoded(burst_run(program.get(), &config, nullptr, 0, nullptr)),
            "PEER_STOPPED rank 0, hop 1: receive from rank 1: rank 1 stopped: "
            "its transport is destroyed");
  other.join();
}

TEST(Failure, CallerMayStopTheOthers) {
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        table->wait(rank, startHop(rank, table, 2));
      });
  Device device = makeDevice(1);
  std::vector<Transport> transports = makeTransports(2);
  burst_transport_stop(transports[1].get(), "no such file");
  burst_transport_stop(transports[1].get(), "a later reason");
  burst_run_config config = {};
  config.size = sizeof(config);
  config.device = device.get();
  config.transport = transports[0].get();
  burst_error *error = burst_run(program.get(), &config, nullptr, 0, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_STREQ(burst_error_location(error), "rank 0, hop 1");
  EXPECT_EQ(takeCoded(error),
            "PEER_STOPPED rank 0, hop 1: receive from rank 1: "
            "rank 1 stopped: no such file");
}

TEST(Failure, CallerMayStopARun) {
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        table->wait(rank, startHop(rank, table, 2));
      });
  Device device = makeDevice(1);
  std::vector<Transport> transports = makeTransports(2);
  burst_run_config config = {};
  config.size = sizeof(config);
  config.device = device.get();
  config.transport = transports[0].get();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    burst_transport_stop(transports[0].get(), "interrupted");
  });
  EXPECT_EQ(takeCoded(burst_run(program.get(), &config, nullptr, 0, nullptr)),
            "PEER_STOPPED rank 0, hop 1: receive from rank 1: rank 0 stopped: "
            "interrupted");
  other.join();
}

//===----------------------------------------------------------------------===//
// Ranks that disagree
//===----------------------------------------------------------------------===//

/// Rank 0 sends `sends` to rank 1, which receives `receives`.
std::vector<std::string> disagree(std::vector<burst_piece> sends,
                                  std::vector<burst_piece> receives) {
  Ranks ranks;
  ranks.run(2, [&](burst_rank *rank, const burst_table *table, void *const *) {
    bool sender = table->index(rank) == 0;
    table->wait(rank,
                shift(table, rank, 3, 1, sender ? int64_t(sends.size()) : 0,
                      sends.data(), 0, sender ? 0 : int64_t(receives.size()),
                      receives.data()));
  });
  return ranks.errors;
}

TEST(Mismatch, OfNumbersOfPieces) {
  float memory[16];
  auto errors = disagree({pieceOf(memory, 2), pieceOf(memory + 2, 2)},
                         {pieceOf(memory + 8, 4)});
  EXPECT_EQ(
      errors[0],
      "MISMATCH rank 0, hop 1: send to rank 1 on channel 3: 1 pieces of 16 "
      "bytes there, wanted 2 pieces of 16 bytes");
  EXPECT_EQ(
      errors[1],
      "MISMATCH rank 1, hop 1: receive from rank 0 on channel 3: 2 pieces "
      "of 16 bytes there, wanted 1 pieces of 16 bytes");
}

TEST(Mismatch, OfSizes) {
  float memory[32];
  burst_piece wide = {memory, 4, {1, 1, 2, 4}, {0, 0, 4, 1}};
  burst_piece tall = {memory + 16, 4, {1, 1, 3, 4}, {0, 0, 4, 1}};
  auto errors = disagree({wide}, {tall});
  EXPECT_EQ(
      errors[0],
      "MISMATCH rank 0, hop 1: send to rank 1 on channel 3: piece 0 has 48 "
      "bytes there (1x1x3x4 of 4), wanted 32 (1x1x2x4 of 4)");
  EXPECT_EQ(errors[1],
            "MISMATCH rank 1, hop 1: receive from rank 0 on channel 3: piece 0 "
            "has 32 bytes there (1x1x2x4 of 4), wanted 48 (1x1x3x4 of 4)");
}

TEST(Mismatch, OfElements) {
  float memory[32];
  burst_piece halves = {memory, 2, {1, 1, 1, 8}, {0, 0, 0, 1}};
  auto errors = disagree({halves}, {pieceOf(memory + 16, 8)});
  expectContains(errors[0], {"has 32 bytes there (1x1x1x8 of 4), wanted 16"});
  expectContains(errors[1], {"has 16 bytes there (1x1x1x8 of 2), wanted 32"});
}

TEST(Mismatch, OfPrograms) {
  Program program(
      2, [](burst_rank *rank, const burst_table *table, void *const *) {
        table->wait(rank, startHop(rank, table, 2));
      });
  burst_image other = program.image;
  other.hash = 0xabc;
  burst_program *programs[2] = {program.get(), nullptr};
  ASSERT_EQ(
      take(burst_program_from_image(&other, nullptr, nullptr, &programs[1])),
      "");
  Device device = makeDevice(1);
  std::vector<Transport> transports = makeTransports(2);
  std::string errors[2];
  auto run = [&](int64_t rank) {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = rank;
    config.device = device.get();
    config.transport = transports[rank].get();
    errors[rank] =
        takeCoded(burst_run(programs[rank], &config, nullptr, 0, nullptr));
  };
  std::thread second(run, 1);
  run(0);
  second.join();
  EXPECT_EQ(errors[0], "MISMATCH rank 0, hop 1: receive from rank 1: it runs "
                       "program 0000000000000abc, wanted 000000000000002a");
  EXPECT_EQ(errors[1], "MISMATCH rank 1, hop 1: receive from rank 0: it runs "
                       "program 000000000000002a, wanted 0000000000000abc");
  burst_program_release(programs[1]);
}

//===----------------------------------------------------------------------===//
// Calls that make no sense
//===----------------------------------------------------------------------===//

/// What one rank hears that starts to send `piece` to rank `to`.
std::string sending(burst_piece piece, int64_t to = 0, int64_t count = 1) {
  Ranks ranks;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    shift(table, rank, 0, to, count, &piece, 0, 0, nullptr);
  });
  return ranks.errors[0];
}

TEST(Start, ChecksItsArguments) {
  float cell = 0;
  burst_piece piece = pieceOf(&cell, 1), wrong = piece;
  expectContains(sending(piece, 1),
                 {"rank 0, hop 1: send to rank 1, wanted 0"});
  expectContains(sending(piece, -1), {"send to rank -1"});
  expectContains(sending(piece, 0, -2), {"-2 pieces to send to rank 0"});
  expectContains(sending(piece, 0, INT64_MAX), {"9223372036854775807 pieces"});
  wrong.sizes[2] = 0;
  expectContains(sending(wrong), {"piece 0 to send: size 0", "dimension 2"});
  wrong = piece;
  wrong.strides[0] = -1;
  expectContains(sending(wrong), {"stride -1 in dimension 0"});
  wrong = piece;
  wrong.element_bytes = 0;
  expectContains(sending(wrong), {"elements of 0 bytes, wanted at least 1"});
  wrong = piece;
  wrong.sizes[1] = INT64_MAX;
  expectContains(sending(wrong), {"piece 0 to send: more than"});
  wrong = piece;
  wrong.data = nullptr;
  expectContains(sending(wrong), {"piece 0 to send: no data"});
}

TEST(Start, NeedsATransport) {
  Program program(1, [](burst_rank *rank, const burst_table *table,
                        void *const *) { startHop(rank, table, 1); });
  Device device = makeDevice(1);
  burst_run_config config = {};
  config.size = sizeof(config);
  config.device = device.get();
  EXPECT_EQ(take(burst_run(program.get(), &config, nullptr, 0, nullptr)),
            "rank 0, hop 1: send to rank 0: the run has no transport");
}

TEST(Token, IsWaitedForOnce) {
  Ranks ranks;
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    int64_t token = startHop(rank, table, 1);
    table->wait(rank, token);
    table->wait(rank, token);
  });
  EXPECT_EQ(ranks.errors[0],
            "PROGRAM_FAULT rank 0: wait: token 0 for the second time");
  ranks.run(1, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->wait(rank, startHop(rank, table, 1));
    startHop(rank, table, 1);
  });
  EXPECT_EQ(ranks.errors[0],
            "PROGRAM_FAULT rank 0, hop 2: token 1 on channel 0 "
            "is never waited for");
}

std::string createLocal(int64_t ranks, double latency, double bandwidth) {
  burst_local_config config = {sizeof(config), ranks, latency, bandwidth, 0};
  burst_transport *handles[1];
  return take(burst_transport_create_local(&config, handles));
}

TEST(Transport, ChecksItsConfig) {
  expectContains(createLocal(0, 0, 0), {"local transport: 0 ranks, wanted 1"});
  expectContains(createLocal(1 << 30, 0, 0), {"1073741824 ranks"});
  expectContains(createLocal(1, -1, 0), {"latency_seconds: -1, wanted"});
  expectContains(createLocal(1, 0, NAN), {"bytes_per_second: nan, wanted"});
  burst_local_config none = {8, 1, 0, 0, 0};
  burst_transport *handles[1];
  expectContains(take(burst_transport_create_local(&none, handles)),
                 {"burst_local_config: size 8, wanted", "from 16 to 40"});
  expectContains(take(burst_transport_create_local(nullptr, handles)),
                 {"burst_local_config: null"});
}

} // namespace
