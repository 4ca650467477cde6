//===- SlicesTest.cpp - what programs state that ranks hold ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Slices.h"
#include "passes/Strategies/Strategy.h"
#include "test/unit/simulation/Programs.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

class SlicesTest : public ::testing::Test {
protected:
  /// Of a program of such parts.
  std::vector<int64_t> state(ArrayRef<ArrayRef<int64_t>> parts) {
    auto module = parseModule(*context, R"(
shard.grid @cp(shape = 2)
func.func private @f() attributes {ring.grid = @cp}
)");
    func::FuncOp program = getProgram(*module);
    ring::stateMaxSlices(program, parts);
    DenseI64ArrayAttr bounds = ring::getMaxSlices(program);
    return bounds ? bounds.asArrayRef().vec() : std::vector<int64_t>();
  }

  std::unique_ptr<MLIRContext> context = makeContext();
};

using Bounds = std::vector<int64_t>;

TEST_F(SlicesTest, NothingIsSaidOfTheDefault) {
  EXPECT_EQ(state({}), Bounds());
  EXPECT_EQ(state({{}, {}}), Bounds());
}

TEST_F(SlicesTest, ABoundIsStatedAsItIs) {
  int64_t one[] = {1}, three[] = {3, 1};
  EXPECT_EQ(state({one}), Bounds({1}));
  EXPECT_EQ(state({three}), Bounds({3, 1}));
}

TEST_F(SlicesTest, PartsMayHoldWhatEachOfThemDoes) {
  int64_t one[] = {1}, three[] = {3, 1}, last[] = {1, 1, 4};
  EXPECT_EQ(state({one, three}), Bounds({3, 2})); // the default on channel 1
  EXPECT_EQ(state({three, {}}), Bounds({3, 2}));
  EXPECT_EQ(state({{}, one}), Bounds({2}));
  EXPECT_EQ(state({last, three}), Bounds({3, 1, 4}));
}

TEST_F(SlicesTest, ChannelsThatAreLeftOutHaveTheDefault) {
  auto bounds = DenseI64ArrayAttr::get(context.get(), {3, 1});
  EXPECT_EQ(ring::maxSlicesOf(bounds, 0), 3);
  EXPECT_EQ(ring::maxSlicesOf(bounds, 1), 1);
  EXPECT_EQ(ring::maxSlicesOf(bounds, 2), ring::defaultMaxSlices);
  EXPECT_EQ(ring::maxSlicesOf({}, 0), ring::defaultMaxSlices);
}

// A program holds what its strategy states, and needs that.
TEST_F(SlicesTest, ProgramsAreHeldToTheirBounds) {
  for (const Strategy *strategy : getStrategies())
    EXPECT_EQ(strategy->maxSlices().empty(),
              !(strategy->getName().starts_with("double_ring") ||
                strategy->getName().starts_with("bi_ring")))
        << strategy->getName().str();
  for (const char *forward : {"ring_kv", "ring_q"}) {
    Problem problem;
    problem.forward = forward;
    auto module = lower(*context, problem);
    func::FuncOp program = getProgram(*module);
    EXPECT_FALSE(ring::getMaxSlices(program));
    Builder builder(context.get());
    program->setAttr(ring::maxSlicesAttr, builder.getDenseI64ArrayAttr({2, 2}));
    EXPECT_FALSE(proveModule(*module));
    program->setAttr(ring::maxSlicesAttr, builder.getDenseI64ArrayAttr({1}));
    auto refused = proveModule(*module);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->message,
              "receives a slice while 1 of channel 0 are still needed, and "
              "'ring.max_slices' states buffers for 1");
  }
}

} // namespace
