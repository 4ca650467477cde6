//===- TransferTest.cpp - Tests of messages between ranks -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"
#include "burst/internal/route.h"

#include <chrono>
#include <numeric>
#include <thread>

using namespace burst::test;

namespace {

constexpr int64_t capacity = 64;

/// How many elements the shard of a rank has: uneven.
int64_t countOf(int64_t owner) { return 1 + (owner * 7) % 13; }

struct Shape {
  int64_t ranks;
  bool checked, tcp;
};

class Ring : public testing::TestWithParam<Shape> {
protected:
  Ranks ranks;
  void SetUp() override {
    ranks.config.checked = ranks.local.checked = GetParam().checked;
    ranks.tcp = GetParam().tcp;
  }
};

TEST_P(Ring, PassesUnevenShardsOn) {
  int64_t size = GetParam().ranks;
  // What each rank has seen, in the order of hops.
  std::vector<std::vector<float>> seen(size);
  ranks.run(size,
            [&](burst_rank *rank, const burst_table *table, void *const *) {
              int64_t r = table->index(rank), owner = r;
              // Every other rank comes late: both orders of posting.
              if (r % 2)
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
              float buffers[2][capacity];
              std::fill_n(buffers[0], countOf(r), float(r));
              for (int64_t hop = 0; hop < size; ++hop) {
                float *now = buffers[hop % 2], *next = buffers[(hop + 1) % 2];
                int64_t before = (owner + size - 1) % size;
                burst_piece send = pieceOf(now, countOf(owner));
                burst_piece receive = pieceOf(next, countOf(before));
                int64_t token = shift(table, rank, 0, (r + 1) % size, 1, &send,
                                      (r + size - 1) % size, 1, &receive);
                seen[r].insert(seen[r].end(), now, now + countOf(owner));
                table->wait(rank, token);
                owner = before;
              }
              // All the way round, the own shard is back.
              float *last = buffers[size % 2];
              seen[r].insert(seen[r].end(), last, last + countOf(r));
            });
  ranks.expectSuccess();
  int64_t elements = 0;
  for (int64_t owner = 0; owner < size; ++owner)
    elements += countOf(owner);
  for (int64_t r = 0; r < size; ++r) {
    std::vector<float> expected;
    for (int64_t hop = 0; hop <= size; ++hop) {
      int64_t owner = (r + size - hop % size) % size;
      expected.insert(expected.end(), countOf(owner), float(owner));
    }
    EXPECT_EQ(seen[r], expected);
    // What a rank sends to itself is copied.
    int64_t messages = size == 1 ? 0 : size;
    int64_t bytes = size == 1 ? 0 : 4 * elements;
    EXPECT_EQ(ranks.counters[r].messages_sent, messages);
    EXPECT_EQ(ranks.counters[r].messages_received, messages);
    EXPECT_EQ(ranks.counters[r].bytes_sent, bytes);
    EXPECT_EQ(ranks.counters[r].bytes_received, bytes);
  }
}

TEST_P(Ring, KeepsThreeInFlightOnTwoChannels) {
  int64_t size = GetParam().ranks;
  constexpr int messages = 3, channels = 2;
  std::vector<float> received(size * channels * messages);
  ranks.run(size, [&](burst_rank *rank, const burst_table *table,
                      void *const *) {
    int64_t r = table->index(rank), to = (r + 1) % size;
    float sent[channels][messages];
    int64_t tokens[2][channels][messages];
    // Sends and receives are starts of their own. Even ranks begin with the
    // sends and channel 0, odd ones with the receives and channel 1.
    for (int64_t step = 0; step < 2 * channels; ++step) {
      bool sends = (step / 2 + r) % 2 == 0;
      int64_t channel = (step + r) % 2;
      for (int m = 0; m < messages; ++m) {
        float *cell = sends
                          ? &sent[channel][m]
                          : &received[(r * channels + channel) * messages + m];
        burst_piece piece = pieceOf(cell, 1);
        if (sends)
          *cell = float(r * 100 + channel * 10 + m);
        tokens[sends][channel][m] =
            sends ? shift(table, rank, channel, to, 1, &piece, -1, 0, nullptr)
                  : shift(table, rank, channel, -1, 0, nullptr,
                          (r + size - 1) % size, 1, &piece);
      }
    }
    // Waited for in another order than started.
    for (int m = messages - 1; m >= 0; --m)
      for (int64_t channel = 0; channel < channels; ++channel) {
        table->wait(rank, tokens[0][channel][m]);
        table->wait(rank, tokens[1][channel][m]);
      }
  });
  ranks.expectSuccess();
  for (int64_t r = 0; r < size; ++r)
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int m = 0; m < messages; ++m)
        EXPECT_EQ(received[(r * channels + channel) * messages + m],
                  float((r + size - 1) % size * 100 + channel * 10 + m));
}

TEST_P(Ring, ExchangesAllWithAll) {
  int64_t size = GetParam().ranks;
  std::vector<float> sent(size * size), received(size * size);
  std::iota(sent.begin(), sent.end(), 0.f);
  ranks.run(
      size, [&](burst_rank *rank, const burst_table *table, void *const *) {
        int64_t r = table->index(rank);
        int64_t tokens[8];
        for (int64_t i = 0; i < size; ++i) {
          int64_t to = (r + i) % size, from = (r + size - i) % size;
          burst_piece send = pieceOf(&sent[r * size + to], 1);
          burst_piece receive = pieceOf(&received[r * size + from], 1);
          tokens[i] = shift(table, rank, 5, to, 1, &send, from, 1, &receive);
        }
        for (int64_t i = 0; i < size; ++i)
          table->wait(rank, tokens[i]);
      });
  ranks.expectSuccess();
  for (int64_t r = 0; r < size; ++r)
    for (int64_t from = 0; from < size; ++from)
      EXPECT_EQ(received[r * size + from], sent[from * size + r]);
}

TEST_P(Ring, GathersWithOneStart) {
  int64_t size = GetParam().ranks;
  std::vector<float> sent(size), received(size * size, -1);
  std::iota(sent.begin(), sent.end(), 7.f);
  std::vector<std::vector<burst_piece>> pieces(size);
  std::vector<std::vector<burst_message>> messages(size);
  for (int64_t r = 0; r < size; ++r) {
    for (int64_t peer = 0; peer < size; ++peer) {
      pieces[r].push_back(pieceOf(&sent[r], 1));
      pieces[r].push_back(pieceOf(&received[r * size + peer], 1));
    }
    for (int64_t peer = 0; peer < size; ++peer) {
      messages[r].push_back({peer, 0, 1, &pieces[r][2 * peer]});
      messages[r].push_back({peer, 1, 1, &pieces[r][2 * peer + 1]});
    }
  }
  ranks.run(size,
            [&](burst_rank *rank, const burst_table *table, void *const *) {
              const auto &own = messages[table->index(rank)];
              const burst_messages list = {
                  int64_t(own.size()), BURST_POINT_TO_POINT, own.data(), {}};
              table->wait(rank, table->start(rank, 0, &list));
            });
  ranks.expectSuccess();
  for (int64_t r = 0; r < size; ++r) {
    for (int64_t peer = 0; peer < size; ++peer)
      EXPECT_EQ(received[r * size + peer], sent[peer]);
    EXPECT_EQ(ranks.counters[r].messages_sent, size - 1);
    EXPECT_EQ(ranks.counters[r].bytes_received, 4 * (size - 1));
  }
}

TEST(Transfer, ToItselfInTwoStartsIsAMessage) {
  Ranks ranks;
  float sent = 3, received = 0;
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    burst_piece send = pieceOf(&sent, 1), receive = pieceOf(&received, 1);
    int64_t first = shift(table, rank, 0, 0, 1, &send, -1, 0, nullptr);
    table->wait(rank, shift(table, rank, 0, -1, 0, nullptr, 0, 1, &receive));
    table->wait(rank, first);
  });
  ranks.expectSuccess();
  EXPECT_EQ(received, 3.f);
  EXPECT_EQ(ranks.counters[0].messages_sent, 1);
}

TEST(Transfer, ToItselfMustMatch) {
  Ranks ranks;
  float sent[2] = {}, received[3] = {};
  ranks.run(1, [&](burst_rank *rank, const burst_table *table, void *const *) {
    burst_piece send = pieceOf(sent, 2), receive = pieceOf(received, 3);
    table->wait(rank, shift(table, rank, 0, 0, 1, &send, 0, 1, &receive));
  });
  expectContains(ranks.errors[0], {"MISMATCH rank 0, hop 1",
                                   "piece 0 has 8 "
                                   "bytes there",
                                   "wanted 12"});
}

std::vector<Shape> shapes() {
  std::vector<Shape> shapes;
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (bool checked : {false, true})
      for (bool tcp : {false, true})
        if (!checked || !tcp || ranks == 3)
          shapes.push_back({ranks, checked, tcp});
  return shapes;
}

INSTANTIATE_TEST_SUITE_P(All, Ring, testing::ValuesIn(shapes()),
                         [](const auto &info) {
                           return std::to_string(info.param.ranks) +
                                  (info.param.checked ? "Checked" : "") +
                                  (info.param.tcp ? "Tcp" : "");
                         });

class Strides : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(All, Strides, testing::Bool());

TEST_P(Strides, AreFollowed) {
  // The sender's piece is [2][3][4][5] in memory of [5][4][3][2]; the
  // receiver's has gaps; a second piece has rows that lie together.
  float from[2 * 3 * 4 * 5], to[2 * 3 * 4 * 8], rows[12], copied[3 * 6];
  std::iota(std::begin(from), std::end(from), 0.f);
  std::iota(std::begin(rows), std::end(rows), 500.f);
  std::fill(std::begin(to), std::end(to), -1.f);
  std::fill(std::begin(copied), std::end(copied), -1.f);
  const burst_piece sends[] = {
      {from, 4, {2, 3, 4, 5}, {1, 2, 6, 24}},
      {rows, 4, {1, 1, 3, 4}, {0, 0, 4, 1}},
  };
  const burst_piece receives[] = {
      {to, 4, {2, 3, 4, 5}, {96, 32, 8, 1}},
      {copied, 4, {1, 1, 3, 4}, {99, 99, 6, 1}},
  };
  Ranks ranks;
  ranks.tcp = GetParam();
  ranks.run(2, [&](burst_rank *rank, const burst_table *table, void *const *) {
    bool sender = table->index(rank) == 0;
    int64_t token = shift(table, rank, -7, 1, sender ? 2 : 0, sends, 0,
                          sender ? 0 : 2, receives);
    table->wait(rank, token);
  });
  ranks.expectSuccess();
  EXPECT_EQ(ranks.counters[0].bytes_sent, 4 * (120 + 12));
  EXPECT_EQ(ranks.counters[0].messages_sent, 1);
  EXPECT_EQ(ranks.counters[0].messages_received, 0);
  EXPECT_EQ(ranks.counters[1].bytes_received, 4 * (120 + 12));
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 4; ++c)
        for (int d = 0; d < 8; ++d)
          EXPECT_EQ(to[a * 96 + b * 32 + c * 8 + d],
                    d < 5 ? from[a + b * 2 + c * 6 + d * 24] : -1.f);
  for (int row = 0; row < 3; ++row)
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(copied[row * 6 + i], i < 4 ? rows[row * 4 + i] : -1.f);
}

TEST(Transfer, OfNothingIsNone) {
  Ranks ranks;
  ranks.run(2, [](burst_rank *rank, const burst_table *table, void *const *) {
    table->wait(rank, shift(table, rank, 0, 77, 0, nullptr, -5, 0, nullptr));
  });
  ranks.expectSuccess();
  EXPECT_EQ(ranks.counters[0].messages_sent, 0);
}

TEST(Transfer, RunsFollowEachOtherOnOneTransport) {
  // Ranks need not be in the same run: messages are matched in order.
  Program program(2, [](burst_rank *rank, const burst_table *table,
                        void *const *) {
    float sent = 1, received = 0;
    burst_piece send = pieceOf(&sent, 1), receive = pieceOf(&received, 1);
    int64_t peer = 1 - table->index(rank);
    table->wait(rank, shift(table, rank, 0, peer, 1, &send, peer, 1, &receive));
    EXPECT_EQ(received, 1.f);
  });
  burst_program *shared = program.get();
  Device device = makeDevice(2);
  std::vector<Transport> transports = makeTransports(2);
  auto repeat = [&](int64_t rank) {
    burst_run_config config = {};
    config.size = sizeof(config);
    config.rank = rank;
    config.device = device.get();
    config.transport = transports[rank].get();
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(take(burst_run(shared, &config, nullptr, 0, nullptr)), "");
  };
  std::thread other(repeat, 1);
  repeat(0);
  other.join();
}

TEST(Transfer, ManyRunsShareADevice) {
  Program program(3, [](burst_rank *rank, const burst_table *table,
                        void *const *) {
    static const burst_kernel kernel = {"add", [](const void *cell, int64_t) {
                                          ++**static_cast<float *const *>(cell);
                                        }};
    int64_t r = table->index(rank);
    float sent = float(r), received = -1;
    for (int hop = 0; hop < 5; ++hop) {
      burst_piece send = pieceOf(&sent, 1), receive = pieceOf(&received, 1);
      int64_t token = shift(table, rank, 0, (r + 1) % 3, 1, &send, (r + 2) % 3,
                            1, &receive);
      table->wait(rank, token);
      float *cell = &received;
      table->launch(rank, &kernel, &cell, 1, nullptr, 0, nullptr);
      sent = received;
    }
    EXPECT_EQ(sent, float((r + 1) % 3 + 5)); // 5 hops back is 1 forth
  });
  burst_program *shared = program.get();
  Device device = makeDevice(2);
  std::vector<std::thread> runs;
  for (int i = 0; i < 6; ++i)
    runs.emplace_back([&] {
      burst_run_all_config config = {};
      config.size = sizeof(config);
      config.device = device.get();
      config.checked = 1;
      for (int j = 0; j < 5; ++j)
        EXPECT_EQ(take(burst_run_all(shared, &config, nullptr, 0, nullptr)),
                  "");
    });
  for (std::thread &run : runs)
    run.join();
}

/// Each rank has heads that there are, one behind the other, and each head is
/// of one rank, or of as many.
TEST(Transfer, HeadsOfEachRank) {
  struct Case {
    int64_t all, most, ranks, groups;
    std::vector<std::pair<int64_t, int64_t>> wanted;
  };
  const Case cases[] = {{8, 2, 4, 1, {{0, 2}, {2, 2}, {4, 2}, {6, 2}}},
                        {6, 2, 4, 1, {{0, 2}, {2, 2}, {4, 2}, {6, 0}}},
                        {7, 3, 3, 1, {{0, 3}, {3, 3}, {6, 1}}},
                        {3, 1, 5, 1, {{0, 1}, {1, 1}, {2, 1}, {3, 0}, {3, 0}}},
                        // Room for more than one of as many as ranks.
                        {4, 2, 4, 1, {{0, 2}, {2, 2}, {4, 0}, {4, 0}}},
                        {4, 1, 4, 1, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}},
                        // Shared.
                        {2, 1, 4, 2, {{0, 1}, {0, 1}, {1, 1}, {1, 1}}},
                        {1, 1, 2, 1, {{0, 1}, {0, 1}}},
                        // With a rank that is left.
                        {2, 1, 5, 2, {{0, 1}, {0, 1}, {1, 1}, {1, 1}, {2, 0}}},
                        // Query heads of shared key heads.
                        {6, 2, 4, 2, {{0, 2}, {2, 1}, {3, 2}, {5, 1}}},
                        {6, 2, 5, 2, {{0, 2}, {2, 1}, {3, 2}, {5, 1}, {6, 0}}},
                        // As many groups as ranks.
                        {6, 3, 2, 2, {{0, 3}, {3, 3}}}};
  for (const Case &one : cases)
    for (int64_t place = 0; place < one.ranks; ++place) {
      burst_heads found =
          burst_heads_of(place, one.ranks, one.all, one.most, one.groups);
      EXPECT_EQ(std::pair(found.first, found.count), one.wanted[place])
          << one.all << " heads, rank " << place << " of " << one.ranks;
    }
}

} // namespace
