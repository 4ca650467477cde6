//===- ProveTest.cpp - schedules of sizes that are bound late -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Problem.h"

using namespace burst;
using namespace burst::test;

static burst_attention openAttention() {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask = "[causal, documents]";
  return attention;
}

/// Compiled once for all tests.
static const api::Program &openProgram() {
  static api::Program program = compiled(openAttention());
  return program;
}

TEST(Prove, sizesAndTables) {
  const api::Program &program = openProgram();
  for (int64_t length : {1, 8, 30}) {
    Problem problem(openAttention(), length, length);
    expectSuccess(program.prove(problem.arguments(program)));
    // Remembered, and other ids are another schedule.
    expectSuccess(program.prove(problem.arguments(program)));
    std::fill(problem.keyIds.begin(), problem.keyIds.end(), 1);
    expectSuccess(program.prove(problem.arguments(program)));
  }
}

TEST(Prove, forEveryNumberOfRanks) {
  // Sizes and tables are open; a look at the tables is left.
  EXPECT_EQ(openProgram().proof(), BURST_PROOF_ALL_RANKS);
  burst_attention attention = smallAttention();
  attention.axes = axis(4, "zigzag");
  EXPECT_EQ(compiled(attention).proof(), BURST_PROOF_ALL_RANKS);
  attention.axes = axis(7, "zigzag");
  attention.strategy = "bi_ring_kv";
  EXPECT_EQ(compiled(attention).proof(), BURST_PROOF_ALL_ODD_RANKS);
  attention.axes = axis(6, "zigzag");
  EXPECT_EQ(compiled(attention).proof(), BURST_PROOF_ALL_EVEN_RANKS);
  attention.strategy = nullptr;
  // Of two ranks the text does not tell P - 1 from 1.
  attention.axes = axis(2, "zigzag");
  EXPECT_EQ(compiled(attention).proof(), BURST_PROOF_THESE_RANKS);
  attention.batch = -1;
  EXPECT_EQ(compiled(attention).proof(), BURST_PROOF_NONE);
  EXPECT_EQ(burst_program_proof(nullptr), BURST_PROOF_NONE);
}

TEST(Prove, needsOnlySizesOfWhatIsSharded) {
  const api::Program &program = openProgram();
  Problem problem(openAttention(), 9, 9);
  std::vector<burst_tensor> globals = problem.arguments(program);
  for (int i = 0; i < 3; ++i)
    globals[i].data = nullptr;
  expectSuccess(program.prove(globals));
}

TEST(Prove, refusesWhatDoesNotFit) {
  const api::Program &program = openProgram();
  Problem problem(openAttention(), 9, 9);
  auto error = [&](auto change) {
    std::vector<burst_tensor> globals = problem.arguments(program);
    change(globals);
    api::Status status = program.prove(globals);
    EXPECT_FALSE(status);
    return status ? "" : std::string(status.message());
  };
  using Tensors = std::vector<burst_tensor>;
  EXPECT_EQ(error([](Tensors &g) { g.pop_back(); }),
            "attention: 6 arguments, wanted 7");
  EXPECT_EQ(error([](Tensors &g) { g[1].rank = 3; }),
            "argument 1: rank 3, wanted 4");
  EXPECT_EQ(error([](Tensors &g) { g[3].data = nullptr; }),
            "argument 3: no data, which the schedule depends on");
  EXPECT_EQ(error([](Tensors &g) { g[3].type = BURST_I8; }),
            "argument 3: type 8, wanted 6");
  EXPECT_EQ(error([](Tensors &g) { g.push_back(g[0]); }),
            "attention: 8 arguments, wanted 7");
  EXPECT_EQ(error([](Tensors &g) { g[0].rank = 1 << 20; }),
            "argument 0: rank 1048576, wanted 4");
  EXPECT_EQ(error([](Tensors &g) { g[0].sizes[3] = 5; }),
            "argument 0: size 5 in dimension 3, wanted 8");
  EXPECT_EQ(error([](Tensors &g) { g[1].sizes[1] = -9; }),
            "argument 1: size -9 in dimension 1, wanted 0 or more");
  EXPECT_NE(error([](Tensors &g) {
              g[3].strides[0] = -1;
            }).find("stride -1 in dimension 0, wanted 0 or more"),
            std::string::npos);
  // Of an element at most is read where it lies.
  EXPECT_NE(error([](Tensors &g) {
              g[3].data = static_cast<char *>(g[3].data) + 1;
            }).find("wanted a multiple of 4"),
            std::string::npos);
  EXPECT_NE(error([](Tensors &g) {
              g[2].sizes[1] = 8;
            }).find("must have one sequence length, got: 9 and 8"),
            std::string::npos);
  EXPECT_NE(error([](Tensors &g) { g[1].sizes[0] = 1; }).find("batch"),
            std::string::npos);
}

TEST(Prove, staticProgramsWereProvedWhenCompiled) {
  const api::Program &program = smallProgram();
  Problem problem(smallAttention());
  expectSuccess(program.prove(problem.arguments(program)));
  // What contradicts it is an error all the same.
  std::vector<burst_tensor> globals = problem.arguments(program);
  int64_t length = globals[1].sizes[1]++;
  EXPECT_EQ(program.prove(globals).message(),
            "argument 1: size " + std::to_string(length + 1) +
                " in dimension 1, wanted " + std::to_string(length));
}

/// A table whose size the type says is read as far as that.
TEST(Prove, refusesTablesOfAnotherSizeBeforeItReadsThem) {
  api::Program program = compiled(R"(shard.grid @g(shape = 2)
!q = tensor<1x4x1x4xf32>
!l = tensor<1x1x4xf32>
func.func @f(%q: !q, %a: tensor<4xi32>, %b: tensor<4xi32>) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask documents(%a, %b : tensor<4xi32>, tensor<4xi32>)
      sequence <@g, contiguous> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
)");
  int32_t ids[4] = {};
  const int64_t shape[] = {1, 4, 1, 4}, length[] = {4};
  std::vector<burst_tensor> globals = {api::dense(nullptr, BURST_F32, shape),
                                       api::dense(ids, BURST_I32, length),
                                       api::dense(ids, BURST_I32, length)};
  expectSuccess(program.prove(globals));
  globals[1].sizes[0] = int64_t{1} << 30;
  EXPECT_EQ(program.prove(globals).message(),
            "argument 1: size 1073741824 in dimension 0, wanted 4");
}
