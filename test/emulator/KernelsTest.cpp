//===- KernelsTest.cpp - What NVRTC makes of Inputs/kernels.cu ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Kernels.h"
#include "test/emulator/Float.h"

using namespace burst::emulator;

namespace {

TEST(Kernels, Transpose) {
  Transposition problem;
  Outcome outcome = problem.launch(parsed(readInput("kernels.ptx")));
  ASSERT_TRUE(outcome.ok()) << str(outcome);
  auto got = problem.memory.get<float>(problem.out, problem.input.size());
  for (size_t i = 0; i < 64; ++i)
    for (size_t j = 0; j < 96; ++j)
      EXPECT_EQ(got[j * 64 + i], problem.input[i * 96 + j]);
  EXPECT_EQ(outcome.counters.bankConflicts, 0U); // rows of 33 floats
  EXPECT_EQ(outcome.counters.count("bar"), 6U * 8);
}

TEST(Kernels, ProductAtEachLateness) {
  Module module = parsed(readInput("kernels.ptx"));
  for (Lateness lateness :
       {Lateness::Late, Lateness::Early, Lateness::Random}) {
    for (uint64_t seed : {0, 1, 2}) {
      Product problem;
      Options options;
      options.lateness = lateness;
      options.seed = seed;
      Outcome outcome = problem.launch(module, options);
      ASSERT_TRUE(outcome.ok()) << str(outcome);
      problem.check();
      EXPECT_EQ(outcome.counters.bankConflicts, 0U);
      EXPECT_EQ(outcome.counters.count("mma"), 4U * 4 * 4 * 16);
    }
  }
}

TEST(Kernels, TheSameSeedGivesTheSameRun) {
  Module module = parsed(readInput("kernels.ptx"));
  auto total = [&](uint64_t seed, unsigned quantum) {
    Reduction problem;
    Options options;
    options.seed = seed;
    options.quantum = quantum;
    Outcome outcome = problem.launch(module, options);
    EXPECT_TRUE(outcome.ok()) << str(outcome);
    return std::pair(problem.memory.get<float>(problem.out, 1)[0],
                     outcome.counters.instructions);
  };
  for (uint64_t seed : {0, 1, 2, 3}) {
    auto first = total(seed, 16), again = total(seed, 16);
    EXPECT_EQ(first, again);
    EXPECT_EQ(first.first, 1000.0F);
  }
}

} // namespace
