//===- ProveTest.cpp - schedules of sizes that are bound late -------------===//
#include "Problem.h"

using namespace burst;
using namespace burst::test;

static burst_attention openAttention() {
  burst_attention attention = smallAttention();
  attention.batch = attention.query_length = attention.key_length = -1;
  attention.mask |= BURST_MASK_DOCUMENTS;
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
}
