//===- PairSetTest.cpp - sets of pairs, beside a dense model --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Prove/PairSet.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace burst;

namespace {

/// The same by rank, without runs.
struct Dense {
  std::vector<PairMask> pairs;

  PairMask unite(const Dense &other, PairMask mask) {
    PairMask common = 0;
    for (size_t owner = 0; owner < pairs.size(); ++owner) {
      common |= pairs[owner] & other.pairs[owner] & mask;
      pairs[owner] |= other.pairs[owner] & mask;
    }
    return common;
  }
};

struct Both {
  PairSet set;
  Dense dense;
};

/// Equal, and as runs that are sorted, apart, and as long as can be.
void expectEqual(const Both &both) {
  for (size_t owner = 0; owner < both.dense.pairs.size(); ++owner)
    ASSERT_EQ(both.set.at(owner), both.dense.pairs[owner]) << owner;
  const PairSet::Run *last = nullptr;
  for (const PairSet::Run &run : both.set.getRuns()) {
    EXPECT_LT(run.begin, run.end);
    EXPECT_NE(run.pairs, 0u);
    EXPECT_TRUE(!last || last->end < run.begin ||
                (last->end == run.begin && last->pairs != run.pairs));
    last = &run;
  }
}

class PairSetTest : public testing::TestWithParam<int> {
protected:
  /// A stretch of ranks round a ring, as a slice comes by them.
  void addStretch(Both &both) {
    int64_t owner = random() % ranks;
    PairMask pairs = random() % 16;
    for (int64_t hop = random() % ranks; hop > 0; --hop) {
      EXPECT_EQ(both.set.add(owner, pairs), both.dense.pairs[owner] & pairs);
      both.dense.pairs[owner] |= pairs;
      owner = (owner + 1) % ranks;
    }
  }

  std::mt19937 random{static_cast<uint32_t>(GetParam())};
  int64_t ranks = 1 + static_cast<int64_t>(random() % 24);
};

} // namespace

TEST_P(PairSetTest, AgreesWithADenseModel) {
  std::vector<Both> sets(4, Both{{}, {std::vector<PairMask>(ranks)}});
  for (int step = 0; step < 60; ++step) {
    Both &one = sets[random() % sets.size()];
    const Both other = sets[random() % sets.size()];
    PairMask mask = random() % 16;
    switch (random() % 5) {
    case 0:
    case 1:
      addStretch(one);
      break;
    case 2:
      EXPECT_EQ(one.set.unite(other.set, mask),
                one.dense.unite(other.dense, mask));
      break;
    case 3:
      one.set = one.set.restricted(mask);
      for (PairMask &pairs : one.dense.pairs)
        pairs &= mask;
      break;
    default:
      one = other;
      break;
    }
    expectEqual(one);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, PairSetTest, testing::Range(0, 300));

TEST(PairMaskTest, SelectsSegments) {
  EXPECT_EQ(pairBit(1, 0, 2), 4u);
  EXPECT_EQ(pairsOfQueries(2, 2, 2), 12u);
  EXPECT_EQ(pairsOfKeys(2, 2, 2), 10u);
  EXPECT_EQ(pairsOfKeys(~uint64_t{0}, 2, 1), 3u);
  EXPECT_EQ(pairsOfQueries(0, 2, 2), 0u);
}

/// What a ring has brought is one run, whatever the number of ranks.
TEST(PairMaskTest, IsAsSmallAsARing) {
  PairSet set;
  for (int64_t hop = 0; hop < 100000; ++hop) {
    EXPECT_EQ(set.add((hop + 70000) % 100000, 15), 0u);
    EXPECT_LE(set.getRuns().size(), 2u);
  }
  EXPECT_EQ(set.getRuns().size(), 1u);
}
