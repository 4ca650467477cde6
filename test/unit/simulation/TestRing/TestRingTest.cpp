//===- TestRingTest.cpp - ops that no pass knows by name ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestRing.h"

#include "passes/Passes.h"
#include "test/unit/simulation/Programs.h"

#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// Each ring.attend becomes test_ring.attend_one.
int replaceAttends(func::FuncOp program) {
  SmallVector<ring::AttendOp> attends;
  program.walk([&](ring::AttendOp op) { attends.push_back(op); });
  for (ring::AttendOp op : attends) {
    OpBuilder builder(op);
    auto one = test_ring::AttendOneOp::create(
        builder, op.getLoc(), op.getMade(0).getType(), op.getMade(1).getType(),
        op.getMade(2).getType(), op.getO(), op.getM(), op.getL(), op.getValue(),
        op.getKey(), op.getKeyOwner(), op.getQuery(), op.getQueryOwner(),
        op.getKeyExtent(), op.getQueryExtent(), op.getMaskCaptures(),
        op.getPairs(), op.getScoreCaptures(), op.getQueryLayout(),
        op.getKeyLayout(), op.getScaleAttr());
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), one->getRegions()))
      to.takeBody(from);
    op->replaceAllUsesWith(one);
    op.erase();
  }
  return static_cast<int>(attends.size());
}

/// Each sum of a sum becomes test_ring.add_twice.
int replaceAdds(func::FuncOp program) {
  SmallVector<ring::AddOp> seconds;
  program.walk([&](ring::AddOp op) {
    auto first = op.getA().getDefiningOp<ring::AddOp>();
    if (first && first->hasOneUse() && first.getOwner() == op.getOwner())
      seconds.push_back(op);
  });
  for (ring::AddOp op : seconds) {
    auto first = op.getA().getDefiningOp<ring::AddOp>();
    OpBuilder builder(op);
    auto sum = test_ring::AddTwiceOp::create(
        builder, op.getLoc(), op.getSum().getType(), first.getA(), first.getB(),
        op.getB(), op.getOwner(), op.getExtent(), first.getSegments(),
        first.getTurn(), op.getSegments(), op.getTurn(), op.getLayout());
    op.getSum().replaceAllUsesWith(sum.getSum());
    op.erase();
    first.erase();
  }
  return static_cast<int>(seconds.size());
}

/// Each ring.start becomes test_ring.send.
void replaceTransfers(func::FuncOp program) {
  SmallVector<ring::StartOp> starts;
  program.walk([&](ring::StartOp op) { starts.push_back(op); });
  for (ring::StartOp op : starts) {
    OpBuilder builder(op);
    auto send = test_ring::SendOp::create(
        builder, op.getLoc(), op.getToken().getType(), op.getTurn(),
        op.getSegments(), op.getExtent(), op.getFrom(), op.getReceivedOwner(),
        op.getTo(), op.getInto(), op.getOwner(), op.getTensors(), op.getDims(),
        op.getLayout(), op.getChannel(), op.getRoute());
    op->replaceAllUsesWith(send);
    op.erase();
  }
}

/// Puts ops of the test in place of those of the ring dialect as soon as there
/// are any.
struct ReplaceOps : PassInstrumentation {
  explicit ReplaceOps(const Problem &problem) : problem(problem) {}

  void runAfterPass(Pass *pass, Operation *op) override {
    // An attend of the test has no gathered tensors.
    if (pass->getArgument() == "burst-lower-to-ring" &&
        problem.backward.empty() && problem.forward != "all_gather")
      EXPECT_GT(replaceAttends(cast<func::FuncOp>(op)), 0);
    if (pass->getArgument() == "ring-lower-gather")
      replaceTransfers(cast<func::FuncOp>(op));
  }

  const Problem &problem;
};

class TestRing : public testing::TestWithParam<Problem> {
protected:
  TestRing() : context(makeContext()) {
    DialectRegistry registry;
    registry.insert<test_ring::TestRingDialect, memref::MemRefDialect,
                    tile::TileDialect>();
    registerRingTileLowering(registry);
    func::registerInlinerExtension(registry);
    context->appendDialectRegistry(registry);
    context->loadAllAvailableDialects();
  }

  void run(ModuleOp module, function_ref<void(OpPassManager &)> build) {
    PassManager passes(context.get());
    build(passes);
    ASSERT_TRUE(succeeded(passes.run(module)));
    ASSERT_TRUE(succeeded(verify(module)));
  }

  /// The program with ops of the ring dialect, and with those of the test.
  void lowerBoth(OwningOpRef<ModuleOp> &known, OwningOpRef<ModuleOp> &foreign) {
    const Problem &problem = GetParam();
    known = lower(*context, problem);
    foreign = lower(*context, problem, std::make_unique<ReplaceOps>(problem));
    int adds = replaceAdds(getProgram(*foreign));
    EXPECT_EQ(adds != 0, problem.backward.starts_with("ring"));
    int transfers = 0;
    foreign->walk([&](test_ring::SendOp) { ++transfers; });
    EXPECT_GT(transfers, 0);
    foreign->walk([](ring::StartOp) { ADD_FAILURE(); });
  }

  std::unique_ptr<MLIRContext> context;
};

TEST_P(TestRing, IsProvedAndPlanned) {
  OwningOpRef<ModuleOp> known, foreign;
  lowerBoth(known, foreign);
  Proof before, after;
  EXPECT_EQ(proveModule(*known, {}, &before), std::nullopt);
  auto refused = proveModule(*foreign, {}, &after);
  ASSERT_EQ(refused, std::nullopt) << refused->message;
  EXPECT_TRUE(isProvedForAll(*known));
  EXPECT_TRUE(isProvedForAll(*foreign));
  EXPECT_EQ(before.computed, after.computed);
  EXPECT_EQ(before.dropped, after.dropped);
  EXPECT_EQ(after.wasted, 0);
  for (auto [a, b] : llvm::zip_equal(before.traffic, after.traffic)) {
    EXPECT_EQ(a.sentBytes, b.sentBytes);
    EXPECT_EQ(a.sentByAxis, b.sentByAxis);
    EXPECT_EQ(a.messages, b.messages);
    EXPECT_EQ(a.peakSlices, b.peakSlices);
    EXPECT_EQ(a.peakBytes, b.peakBytes);
  }
  run(*foreign,
      [](OpPassManager &passes) { passes.addPass(createExplainPass()); });
}

TEST_P(TestRing, Computes) {
  OwningOpRef<ModuleOp> known, foreign;
  lowerBoth(known, foreign);
  std::vector<Argument> globals = randomGlobals(getProgram(*known), 1);
  auto wanted = interpret(*known, globals),
       found = interpret(*foreign, globals);
  ASSERT_EQ(wanted.size(), found.size());
  for (auto [a, b] : llvm::zip_equal(wanted, found))
    EXPECT_TRUE(isClose(*a, *b, 0));
}

/// The launches of a program on tiles in their order, and the kernels.
std::pair<std::vector<std::string>, std::set<std::string>>
launchesOf(ModuleOp module) {
  std::vector<std::string> launches;
  std::set<std::string> kernels;
  module.walk([&](tile::LaunchOp launch) {
    launches.push_back(launch.getKernel().str());
  });
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(tile::kernelAttr)) {
      std::string text;
      llvm::raw_string_ostream(text) << function;
      kernels.insert(text);
    }
  return {launches, kernels};
}

TEST_P(TestRing, BecomesTheSameKernels) {
  OwningOpRef<ModuleOp> known, foreign;
  lowerBoth(known, foreign);
  for (ModuleOp module : {*known, *foreign})
    run(module, [](OpPassManager &passes) {
      passes.addPass(createInlinerPass());
      passes.addPass(createSymbolDCEPass());
      passes.addPass(createBufferizePass());
      passes.addPass(createLowerToTilePass());
    });
  auto [launches, kernels] = launchesOf(*known);
  auto [ownLaunches, ownKernels] = launchesOf(*foreign);
  EXPECT_FALSE(launches.empty());
  EXPECT_EQ(launches, ownLaunches);
  EXPECT_EQ(kernels.size(), ownKernels.size());
  EXPECT_TRUE(kernels == ownKernels);
}

Problem problem(std::string order, std::string forward, std::string backward) {
  Problem problem;
  problem.order = std::move(order);
  problem.mask = "causal";
  problem.forward = std::move(forward);
  problem.backward = std::move(backward);
  return problem;
}

INSTANTIATE_TEST_SUITE_P(
    Ops, TestRing,
    testing::Values(problem("zigzag", "ring_kv", ""),
                    problem("zigzag", "all_gather", ""),
                    problem("striped", "all_gather", "all_gather"),
                    problem("contiguous", "ring_q", ""),
                    problem("zigzag", "ring_kv", "ring_kv"),
                    problem("striped", "ring_kv", "ring_q")));

} // namespace
