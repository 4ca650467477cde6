//===- ExampleStrategyTest.cpp - the strategy of the how-to ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "examples/strategy/KeysOnly.h"
#include "test/unit/simulation/Programs.h"

#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// There as soon as any test of it runs, and once.
class ExampleStrategy : public testing::Test {
protected:
  static void SetUpTestSuite() {
    static bool isAdded = false;
    if (!std::exchange(isAdded, true))
      addStrategy(getKeysOnly());
  }
};

TEST_F(ExampleStrategy, ComputesAndSendsWhatItSays) {
  auto context = makeContext();
  for (const char *order : {"contiguous", "zigzag", "striped"})
    for (const char *mask : {"", "causal"})
      for (int64_t parts : {1, 2, 3, 4}) {
        Problem problem;
        problem.order = order;
        problem.mask = mask;
        problem.parts = parts;
        problem.queries = problem.keys = 24;
        SCOPED_TRACE(problem.describe());
        OwningOpRef<ModuleOp> known = lower(*context, problem);
        problem.forward = "keys_only";
        OwningOpRef<ModuleOp> made = lower(*context, problem);
        Proof wanted, proof;
        ASSERT_FALSE(proveModule(*known, {}, &wanted));
        auto refused = proveModule(*made, {}, &proof);
        ASSERT_FALSE(refused) << refused->message;
        for (auto [found, expected] :
             llvm::zip_equal(proof.traffic, wanted.traffic)) {
          EXPECT_EQ(found.sentBytes, expected.sentBytes);
          EXPECT_EQ(found.peakBytes, expected.peakBytes);
        }
        std::vector<Argument> globals = randomGlobals(getProgram(*made), 1);
        for (auto [a, b] : llvm::zip_equal(interpret(*known, globals),
                                           interpret(*made, globals)))
          EXPECT_TRUE(isClose(*a, *b, 0));
      }
}

TEST_F(ExampleStrategy, IsKnownByName) {
  ASSERT_EQ(lookupStrategy("keys_only"), getKeysOnly());
  AttentionSizes sizes{1, 64, 64, 2, 1, 4, 4};
  Workload workload(sizes, 2, 4, false, {Order::Zigzag, 1, 4},
                    [](const Segment &, const Segment &) { return Kept(); });
  Estimate known = lookupStrategy("ring_kv")->estimate(workload, {});
  Estimate cost = getKeysOnly()->estimate(workload, {});
  EXPECT_EQ(cost.bytes, known.bytes);
  EXPECT_EQ(cost.seconds(), known.seconds());
  EXPECT_EQ(cost.buffers, known.buffers);
}

/// The how-to shows the file, whole but for its head.
TEST_F(ExampleStrategy, IsWhatTheHowToShows) {
  auto read = [](const char *path) {
    auto file =
        llvm::MemoryBuffer::getFile(std::string(BURST_SOURCE_DIR) + path);
    return file ? (*file)->getBuffer().str() : std::string();
  };
  std::string source = read("/examples/strategy/KeysOnly.cpp");
  size_t head = source.find("#include");
  ASSERT_NE(head, std::string::npos);
  EXPECT_NE(
      read("/docs/how-to.md").find("```cpp\n" + source.substr(head) + "```"),
      std::string::npos);
}

} // namespace
