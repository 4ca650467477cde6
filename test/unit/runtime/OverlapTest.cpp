//===- OverlapTest.cpp - Tests of delays, and of work during them ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The only tests that look at a clock. Delays are so long, and bounds so wide,
// that a busy machine does not matter.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <chrono>
#include <thread>

using namespace burst::test;

namespace {

using Clock = std::chrono::steady_clock;

double secondsOf(const std::function<void()> &action) {
  Clock::time_point begin = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void computeFor200ms(const void *, int64_t) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
}
const burst_kernel computing = {"computing", computeFor200ms};

/// `hops` hops of a ring of two in which each transfer takes 200 ms, and
/// between start and wait a kernel of 200 ms if `overlap`, else behind the
/// wait.
double ring(int64_t hops, bool overlap, burst_counters *counters) {
  Ranks ranks;
  ranks.local.latency_seconds = 0.2;
  double seconds = secondsOf([&] {
    ranks.run(
        2, [&](burst_rank *rank, const burst_table *table, void *const *) {
          int64_t peer = 1 - table->index(rank);
          float cells[2] = {};
          for (int64_t hop = 0; hop < hops; ++hop) {
            burst_piece send = pieceOf(&cells[0], 1);
            burst_piece receive = pieceOf(&cells[1], 1);
            int64_t token =
                shift(table, rank, 0, peer, 1, &send, peer, 1, &receive);
            if (overlap)
              table->launch(rank, &computing, nullptr, 1, nullptr, 0, nullptr);
            table->wait(rank, token);
            if (!overlap)
              table->launch(rank, &computing, nullptr, 1, nullptr, 0, nullptr);
          }
        });
  });
  ranks.expectSuccess();
  *counters = ranks.counters[0];
  return seconds;
}

TEST(Overlap, HidesTransfersBehindKernels) {
  burst_counters counters;
  double sum = 4 * (0.2 + 0.2);
  double overlapped = ring(4, true, &counters);
  EXPECT_GE(overlapped, 0.8);
  EXPECT_LT(overlapped, 0.8 * sum);
  EXPECT_GE(counters.compute_seconds, 0.8);
  EXPECT_LT(counters.wait_seconds, 0.4);
  EXPECT_GE(ring(4, false, &counters), sum);
  EXPECT_GE(counters.wait_seconds, 0.75);
}

TEST(Overlap, LinksAreIndependent) {
  // 4 ranks send 200 ms of bytes each, at the same time.
  Ranks ranks;
  ranks.local.bytes_per_second = 4e6;
  std::vector<float> sent(4 * 200000), received(4 * 200000);
  double seconds = secondsOf([&] {
    ranks.run(4,
              [&](burst_rank *rank, const burst_table *table, void *const *) {
                int64_t r = table->index(rank);
                burst_piece send = pieceOf(&sent[r * 200000], 200000);
                burst_piece receive = pieceOf(&received[r * 200000], 200000);
                table->wait(rank, shift(table, rank, 0, (r + 1) % 4, 1, &send,
                                        (r + 3) % 4, 1, &receive));
              });
  });
  ranks.expectSuccess();
  EXPECT_GE(seconds, 0.2);
  EXPECT_LT(seconds, 0.6);
}

TEST(Overlap, WhatARankSendsSharesItsLink) {
  // Of 4 ranks each sends 100 ms of bytes to all others, at the same time.
  Ranks ranks;
  ranks.local.bytes_per_second = 4e6;
  constexpr int64_t size = 100000;
  std::vector<float> sent(4 * size), received(4 * 3 * size);
  double seconds = secondsOf([&] {
    ranks.run(
        4, [&](burst_rank *rank, const burst_table *table, void *const *) {
          int64_t r = table->index(rank), tokens[3];
          for (int64_t i = 0; i < 3; ++i) {
            burst_piece send = pieceOf(&sent[r * size], size);
            burst_piece receive = pieceOf(&received[(3 * r + i) * size], size);
            tokens[i] = shift(table, rank, i, (r + 1 + i) % 4, 1, &send,
                              (r + 3 - i) % 4, 1, &receive);
          }
          for (int64_t token : tokens)
            table->wait(rank, token);
        });
  });
  ranks.expectSuccess();
  EXPECT_GE(seconds, 0.3);
  EXPECT_LT(seconds, 0.9);
}

TEST(Overlap, MessagesOnOneLinkShareIt) {
  // 3 messages of 100 ms each from rank 0 to rank 1; latency counts once.
  Ranks ranks;
  ranks.local.bytes_per_second = 4e6;
  ranks.local.latency_seconds = 0.3;
  std::vector<float> sent(300000), received(300000);
  double seconds = secondsOf([&] {
    ranks.run(
        2, [&](burst_rank *rank, const burst_table *table, void *const *) {
          bool sender = table->index(rank) == 0;
          int64_t tokens[3];
          for (int64_t i = 0; i < 3; ++i) {
            burst_piece piece =
                pieceOf((sender ? sent : received).data() + i * 100000, 100000);
            tokens[i] =
                shift(table, rank, i, 1, sender, &piece, 0, !sender, &piece);
          }
          for (int64_t token : tokens)
            table->wait(rank, token);
        });
  });
  ranks.expectSuccess();
  EXPECT_GE(seconds, 0.6);
  EXPECT_LT(seconds, 1.1);
}

} // namespace
