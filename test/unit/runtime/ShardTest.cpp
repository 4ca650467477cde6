//===- ShardTest.cpp - Tests of layouts, sharding and gathering -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Harness.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace burst::test;

namespace {

struct Layout {
  const char *name;
  Program::Segments segments;
};

class Shards : public testing::TestWithParam<Layout> {
protected:
  /// x[2][s][3] with s sharded; never run.
  static void make(Program &program, int64_t extent = -1) {
    program.parameters.reserve(2);
    program.extent("s");
    program.tensor("x", {-1, -1, -1}, BURST_I16);
    program.shard(1, GetParam().segments, extent, extent < 0 ? 0 : -1);
  }
};

void never(burst_rank *, const burst_table *, void *const *) {}

TEST_P(Shards, HoldEachPositionOnce) {
  for (int64_t ranks = 1; ranks <= 8; ++ranks) {
    Program program(ranks, never);
    make(program);
    for (int64_t extent : {0, 1, 2, 7, 16, 61}) {
      std::vector<int64_t> all;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        int64_t size = -1;
        ASSERT_EQ(take(burst_program_local_size(program.get(), 1, rank, extent,
                                                &size)),
                  "");
        std::vector<int64_t> positions(size);
        ASSERT_EQ(take(burst_program_positions(program.get(), 1, rank, extent,
                                               size, positions.data())),
                  "");
        all.insert(all.end(), positions.begin(), positions.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<int64_t> expected(extent);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected);
    }
  }
}

TEST_P(Shards, AreShardedAndGathered) {
  constexpr int64_t extent = 23, ranks = 3;
  Program program(ranks, never);
  make(program);
  // The global tensor is [3][s][2] in memory with rows of 2 spare elements; the
  // local ones are turned round another way.
  std::vector<int16_t> memory(3 * (extent * 2 + 2)), back(memory.size(), -1);
  std::iota(memory.begin(), memory.end(), 0);
  burst_tensor global = tensorOf(memory.data(), {2, extent, 3}, BURST_I16);
  global.strides[0] = 1;
  global.strides[1] = 2;
  global.strides[2] = extent * 2 + 2;
  burst_tensor gathered = global;
  gathered.data = back.data();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t size = 0;
    ASSERT_EQ(
        take(burst_program_local_size(program.get(), 1, rank, extent, &size)),
        "");
    std::vector<int64_t> positions(size);
    ASSERT_EQ(take(burst_program_positions(program.get(), 1, rank, extent, size,
                                           positions.data())),
              "");
    std::vector<int16_t> shard(2 * size * 3, -1);
    burst_tensor local = tensorOf(shard.data(), {2, size, 3}, BURST_I16);
    local.strides[0] = size;
    local.strides[1] = 1;
    local.strides[2] = 2 * size;
    ASSERT_EQ(take(burst_shard(program.get(), 1, rank, &global, &local)), "");
    for (int64_t a = 0; a < 2; ++a)
      for (int64_t x = 0; x < size; ++x)
        for (int64_t b = 0; b < 3; ++b)
          EXPECT_EQ(shard[a * size + x + b * 2 * size],
                    memory[a + positions[x] * 2 + b * (extent * 2 + 2)]);
    ASSERT_EQ(take(burst_gather(program.get(), 1, rank, &local, &gathered)),
              "");
  }
  for (size_t i = 0; i < memory.size(); ++i)
    EXPECT_EQ(back[i],
              i % (extent * 2 + 2) < extent * 2 ? memory[i] : int16_t(-1));
}

INSTANTIATE_TEST_SUITE_P(All, Shards,
                         testing::Values(Layout{"Contiguous", contiguous},
                                         Layout{"Zigzag", zigzag},
                                         Layout{"Striped", striped},
                                         Layout{"Blocked", blocked}),
                         [](const auto &info) { return info.param.name; });

TEST(Segments, AreTold) {
  Program program(4, never);
  program.tensor("x", {-1});
  program.shard(0, zigzag, 16);
  burst_segment segments[2];
  ASSERT_EQ(take(burst_program_segments(program.get(), 0, 1, 16, 2, segments)),
            "");
  EXPECT_EQ(segments[0].begin, 2);
  EXPECT_EQ(segments[0].count, 2);
  EXPECT_EQ(segments[1].begin, 12);
  EXPECT_EQ(segments[1].count, 2);
}

TEST(Segments, CheckTheirArguments) {
  Program program(4, never);
  program.parameters.reserve(2);
  program.tensor("x", {-1});
  program.shard(0, zigzag, 16);
  program.tensor("table", {-1});
  burst_segment segments[2];
  int64_t positions[4], size;
  auto tell = [&](int64_t parameter, int64_t rank, int64_t extent,
                  int64_t count) {
    return take(burst_program_segments(program.get(), parameter, rank, extent,
                                       count, segments));
  };
  EXPECT_EQ(tell(2, 0, 16, 2), "test: parameter 2, wanted 0 to 1");
  EXPECT_EQ(tell(-1, 0, 16, 2), "test: parameter -1, wanted 0 to 1");
  EXPECT_EQ(tell(0, 4, 16, 2), "test: rank 4, wanted 0 to 3");
  EXPECT_EQ(tell(0, -1, 16, 2), "test: rank -1, wanted 0 to 3");
  EXPECT_EQ(tell(0, 0, 17, 2), "x: extent 17, wanted 16");
  EXPECT_EQ(tell(0, 0, 16, 3), "room for 3 segments, wanted 2");
  EXPECT_EQ(tell(1, 0, 16, 0), "table is not sharded");
  EXPECT_EQ(
      take(burst_program_positions(program.get(), 0, 0, 16, 3, positions)),
      "room for 3 positions, wanted 4");
  EXPECT_EQ(take(burst_program_local_size(program.get(), 1, 0, 16, &size)),
            "table is not sharded");
}

std::vector<burst_segment> wrongSegments;
std::string hold(burst_segment segment) {
  wrongSegments = {segment};
  Program program(1, never);
  program.tensor("x", {-1});
  program.shard(0, [](int64_t, int64_t, int64_t) { return wrongSegments; }, 10);
  int64_t size;
  return takeCoded(burst_program_local_size(program.get(), 0, 0, 10, &size));
}

TEST(Segments, AreNotTrusted) {
  EXPECT_EQ(hold({0, 10, 1, 1}), "");
  EXPECT_EQ(hold({4, 6, 0, 6}), "");
  EXPECT_EQ(hold({1, 3, 4, 1}), "");
  EXPECT_EQ(
      hold({0, 11, 1, 1}),
      "INVALID_PROGRAM x: segment 0 of rank 0 (begin 0, count 11, step 1, "
      "block 1) leaves the extent 10");
  for (burst_segment wrong :
       std::initializer_list<burst_segment>{{-1, 2, 1, 1},
                                            {10, 1, 1, 1},
                                            {0, -1, 1, 1},
                                            {0, 2, 1, 0},
                                            {0, 4, 4, 1},
                                            {0, 4, 1, 2},
                                            {0, 3, INT64_MAX, 1},
                                            {0, 2, -1, 1},
                                            {5, INT64_MAX, 1, INT64_MAX}})
    expectContains(hold(wrong), {"INVALID_PROGRAM", "leaves the extent 10"});
}

TEST(Shard, ChecksTensors) {
  Program program(2, never);
  program.parameters.reserve(2);
  program.tensor("x", {-1, -1});
  program.shard(0, contiguous, 8);
  program.tensor("table", {-1});
  float whole[16] = {}, part[8] = {};
  burst_tensor global = tensorOf(whole, {8, 2}), local = tensorOf(part, {4, 2});
  auto layout = [&] {
    return take(burst_shard(program.get(), 0, 1, &global, &local));
  };
  EXPECT_EQ(layout(), "");
  local.sizes[1] = 1;
  EXPECT_EQ(layout(), "local: argument x: size 1 in dimension 1, wanted 2");
  local = tensorOf(part, {3, 2});
  EXPECT_EQ(layout(), "local: argument x: size 3 in dimension 0, wanted 4");
  local = tensorOf(part, {4, 2});
  local.strides[0] = 1;
  expectContains(layout(), {"local: argument x: stride 1", "elements overlap"});
  local = tensorOf(part, {4, 2});
  global.type = BURST_F64;
  EXPECT_EQ(layout(), "global: argument x: type f64 (1), wanted f32");
  global = tensorOf(whole, {7, 2});
  EXPECT_EQ(layout(), "x: extent 7, wanted 8");
}

/// On a grid of 2 x 2 ranks, the first has heads, the second the sequence.
TEST(Shard, CutsWhatIsSplit) {
  Program program(4, [](burst_rank *, const burst_table *, void *const *) {});
  program.tensor("x", {-1, 2}, BURST_F32);
  program.shard(
      0,
      [](int64_t rank, int64_t, int64_t extent) {
        return contiguous(rank % 2, 2, extent);
      },
      4);
  const burst_split split = {1, 2, 2};
  burst_parameter &x = program.parameters.back();
  x.num_splits = 1;
  x.splits = &split;
  float whole[4][4], found[4][4] = {};
  for (int i = 0; i < 16; ++i)
    whole[i / 4][i % 4] = float(i);
  burst_tensor global = tensorOf(whole[0], {4, 4});
  burst_tensor again = tensorOf(found[0], {4, 4});
  for (int64_t rank = 0; rank < 4; ++rank) {
    float part[2][2];
    burst_tensor local = tensorOf(part[0], {2, 2});
    ASSERT_EQ(take(burst_shard(program.get(), 0, rank, &global, &local)), "");
    EXPECT_EQ(part[1][0], whole[rank % 2 * 2 + 1][rank / 2 * 2]);
    ASSERT_EQ(take(burst_gather(program.get(), 0, rank, &local, &again)), "");
  }
  EXPECT_EQ(std::memcmp(whole, found, sizeof(whole)), 0);
  // Three columns have no halves.
  float odd[4][3];
  global = tensorOf(odd[0], {4, 3});
  EXPECT_EQ(take(burst_shard(program.get(), 0, 0, &global, &again)),
            "global: x: size 3 in dimension 1, wanted a multiple of 2");
}

TEST(Shard, CopiesWholeWhatIsNotSharded) {
  Program program(2, never);
  program.tensor("table", {-1});
  float whole[] = {1, 2, 3}, part[3] = {};
  burst_tensor global = tensorOf(whole, {3}), local = tensorOf(part, {3});
  EXPECT_EQ(take(burst_shard(program.get(), 0, 1, &global, &local)), "");
  EXPECT_EQ(part[2], 3.f);
  part[0] = 9;
  EXPECT_EQ(take(burst_gather(program.get(), 0, 1, &local, &global)), "");
  EXPECT_EQ(whole[0], 9.f);
}

} // namespace
