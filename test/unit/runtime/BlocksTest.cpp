//===- BlocksTest.cpp - memory that is kept for the next run --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
extern "C" {
#include "runtime/src/device/Blocks.h"
}

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr size_t page = 2 << 20;

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool keeps = false;
#else
constexpr bool keeps = true;
#endif

class Blocks : public testing::Test {
protected:
  Blocks() { burst_blocks_begin(&blocks); }
  ~Blocks() override {
    EXPECT_EQ(blocks.used, 0);
    burst_blocks_end(&blocks);
    EXPECT_EQ(blocks.kept_bytes, 0);
  }

  /// A run that takes all sizes and gives them back.
  std::vector<void *> run(const std::vector<size_t> &sizes) {
    burst_blocks_enter(&blocks);
    std::vector<void *> taken;
    for (size_t bytes : sizes) {
      taken.push_back(burst_blocks_take(&blocks, bytes));
      std::memset(taken.back(), 1, bytes);
    }
    for (size_t i = 0; i < sizes.size(); ++i)
      burst_blocks_give(&blocks, taken[i], sizes[i]);
    burst_blocks_leave(&blocks);
    return taken;
  }

  burst_blocks blocks;
};

TEST_F(Blocks, AreAlignedToHugePages) {
  for (size_t bytes : {page, page + 1, 5 * page})
    for (void *block : run({bytes, bytes}))
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % page, 0);
}

TEST_F(Blocks, StayForTheNextRun) {
  std::vector<void *> first = run({3 * page, page, page - 1, 64});
  EXPECT_EQ(blocks.kept_bytes, keeps ? 4 * page : 0) << "large ones alone";
  std::vector<void *> second = run({page, 3 * page});
  if (keeps) {
    EXPECT_EQ(second, (std::vector<void *>{first[1], first[0]}));
  }
  EXPECT_EQ(blocks.kept_bytes, keeps ? 4 * page : 0);
}

TEST_F(Blocks, StayWithinARun) {
  burst_blocks_enter(&blocks);
  void *first = burst_blocks_take(&blocks, 4 * page);
  burst_blocks_give(&blocks, first, 4 * page);
  EXPECT_EQ(blocks.kept_bytes, keeps ? 4 * page : 0);
  void *again = burst_blocks_take(&blocks, 4 * page);
  if (keeps)
    EXPECT_EQ(again, first);
  EXPECT_EQ(blocks.kept_bytes, 0) << "it is in use";
  burst_blocks_give(&blocks, again, 4 * page);
  // Others in turns are no more than was used at once.
  for (size_t bytes : {2 * page, 3 * page, page}) {
    burst_blocks_give(&blocks, burst_blocks_take(&blocks, bytes), bytes);
    EXPECT_LE(blocks.kept_bytes, 4 * page);
  }
  burst_blocks_leave(&blocks);
}

TEST_F(Blocks, AreNoMoreThanTheLastRunHad) {
  run({8 * page, 8 * page});
  EXPECT_EQ(blocks.kept_bytes, keeps ? 16 * page : 0);
  run({page});
  EXPECT_LE(blocks.kept_bytes, page);
  run({64});
  EXPECT_EQ(blocks.kept_bytes, 0);
}

TEST_F(Blocks, MakeRoomForOtherSizes) {
  run({4 * page, 4 * page});
  burst_blocks_enter(&blocks);
  void *taken = burst_blocks_take(&blocks, 6 * page);
  EXPECT_LE(blocks.used + blocks.kept_bytes, 8 * page);
  burst_blocks_give(&blocks, taken, 6 * page);
  burst_blocks_leave(&blocks);
}

TEST_F(Blocks, AreNoneWhereThereIsNoMemory) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - page, SIZE_MAX / 2})
    EXPECT_EQ(burst_blocks_take(&blocks, bytes), nullptr);
  EXPECT_EQ(blocks.used, 0);
  EXPECT_EQ(blocks.most, 0) << "what was not had counts not";
}

TEST_F(Blocks, GoBackToTheSystem) {
  run({page, 2 * page});
  burst_blocks_trim(&blocks);
  EXPECT_EQ(blocks.kept_bytes, 0);
}

TEST_F(Blocks, ServeManyThreads) {
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 50; ++round) {
      burst_blocks_enter(&blocks);
      std::vector<std::pair<char *, size_t>> taken;
      for (int i = 0; i < 4; ++i) {
        size_t bytes = page * (1 + random() % 3);
        taken.emplace_back(
            static_cast<char *>(burst_blocks_take(&blocks, bytes)), bytes);
        auto [block, size] = taken.back();
        block[64] = block[size - 1] = static_cast<char>(seed);
      }
      for (auto [block, bytes] : taken) {
        EXPECT_EQ(block[64], static_cast<char>(seed));
        EXPECT_EQ(block[bytes - 1], static_cast<char>(seed));
        burst_blocks_give(&blocks, block, bytes);
      }
      burst_blocks_leave(&blocks);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed)
    threads.emplace_back(work, seed);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(blocks.runs, 0);
  EXPECT_LE(blocks.kept_bytes, 4 * 4 * 3 * page);
}

} // namespace
