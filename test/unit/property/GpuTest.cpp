//===- GpuTest.cpp - random problems on emulated GPUs ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As CompiledTest, with kernels of GPUs, which the emulator executes: it orders
// warps and lets copies land by a seed, and finds races, reads of what nobody
// wrote, and waits that are missing.
//
// BURST_SEED and BURST_GPU_PROBLEMS set the seed and the number of problems of
// each case: problem n of case c is BURST_SEED=seed+1000*c+n
// BURST_GPU_PROBLEMS=1, case 0. The seed is a fixed one else: what compiled the
// kernels remembers them.
//
//===----------------------------------------------------------------------===//
#include "test/standins/Control.h"
#include "test/unit/property/CompiledTrial.h"
#include "test/unit/property/Dice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// A GPU of a compute capability whose emulator orders things by a seed.
void emulate(int capability, uint64_t seed) {
  setenv("BURST_CUDA_DRIVER_LIBRARY", EMULATED_CUDA, /*overwrite=*/1);
  setenv("BURST_EMULATED_CAPABILITY", std::to_string(capability).c_str(), 1);
  setenv("BURST_EMULATED_SEED", std::to_string(seed).c_str(), 1);
  void *library = dlopen(EMULATED_CUDA, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto reset = reinterpret_cast<decltype(&burst_emulated_reset)>(
      dlsym(library, "burst_emulated_reset"));
  ASSERT_NE(reset, nullptr) << dlerror();
  reset();
}

class GpuTest : public ::testing::TestWithParam<int> {
protected:
  /// Compiles problems that are drawn, compares them with the oracle, and
  /// expects the same bits of another order.
  void checkRandom(llvm::function_ref<RandomProblem(uint64_t seed)> draw);

  std::unique_ptr<MLIRContext> context = makeContext();
};

} // namespace

void GpuTest::checkRandom(
    llvm::function_ref<RandomProblem(uint64_t seed)> draw) {
  uint64_t count = fromEnvironment("BURST_GPU_PROBLEMS", 1);
  uint64_t first = fromEnvironment("BURST_SEED", 1) + 1000 * GetParam();
  double worst = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomProblem problem = draw(seed);
    Dice dice(~seed);
    bool isHopper = dice.chance(40);
    std::string error, architecture = isHopper ? "sm_90a" : "sm_80";
    auto gpu = cuda::Target::named(architecture, error);
    ASSERT_TRUE(succeeded(gpu)) << error;
    Trial made(*context, problem, 1);
    ASSERT_TRUE(made.parse() && made.giveForward(problem)) << made.error;
    CompiledTrial trial(*context, problem);
    CompiledRun options;
    options.checked = dice.chance(50);
    options.deadline = 60;
    emulate(isHopper ? 90 : 80, /*seed=*/0);
    if (!trial.compile({cpu::Target::host(), *gpu})) {
      auto says = [&](const char *text) {
        return trial.trial.error.find(text) != std::string::npos;
      };
      if (says("kernels of GPUs need NVRTC"))
        GTEST_SKIP() << trial.trial.error;
      // A table of f64 is told to be none for GPUs.
      if (!says("has a kernel for GPUs in f32, bf16 and f16, got: "))
        ADD_FAILURE() << trial.trial.error;
    } else if (trial.run(options)) {
      trial.check();
      std::vector<std::vector<double>> bits = trial.values();
      emulate(isHopper ? 90 : 80, seed | 1);
      EXPECT_TRUE(trial.run(options)) << trial.trial.error;
      EXPECT_EQ(trial.values(), bits) << "in another order";
    } else {
      ADD_FAILURE() << trial.trial.error;
    }
    if (HasFailure())
      FAIL() << "BURST_SEED=" << seed << " BURST_GPU_PROBLEMS=1, "
             << architecture << "\n"
             << problem.text(problem.ranks);
    worst = std::max(worst, trial.worstRatio);
  }
  std::printf("%ju problems, worst error/bound %.3f\n", uintmax_t(count),
              worst);
}

TEST_P(GpuTest, AgreesWithTheOracle) {
  checkRandom([](uint64_t seed) { return drawProblem(seed, For::Gpus); });
}

TEST_P(GpuTest, DifferentiatesAsTheOracle) {
  checkRandom([](uint64_t seed) {
    return drawBackward(seed, seed % 2 ? Scores::Tables : Scores::None,
                        For::Gpus);
  });
}

INSTANTIATE_TEST_SUITE_P(Problems, GpuTest, ::testing::Range(0, 5));
