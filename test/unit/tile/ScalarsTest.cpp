//===- ScalarsTest.cpp - positions of segments, as IR ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// burst-lower-scalars writes down once more, as arithmetic, what
// Layout::segment computes. Both are asked here; what holds of Layout is tested
// in SequenceTest.
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/Passes.h"
#include "jit/Frontend.h"
#include "passes/Simulation/Scalars/Program.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;

namespace {

class ScalarsTest : public testing::Test {
protected:
  /// Compares segment `index` of all owners, of all these extents.
  void check(const Layout &layout, int64_t index, ArrayRef<int64_t> extents) {
    bool isStriped = layout.order == Order::Striped;
    std::string text = fmt::format(
        "func.func @f(%i: index, %owner: index, %n: index) -> (index, index, "
        "index, index, index) {{\n"
        "  %0:5 = ring.segment %i of <{}{} over {}>[%owner] extent %n\n"
        "  return %0#0, %0#1, %0#2, %0#3, %0#4 : index, index, index, index, "
        "index\n}}\n",
        stringifyOrder(layout.order),
        isStriped ? fmt::format(" {}", layout.block) : "", layout.parts);
    SCOPED_TRACE(text);
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    PassManager pm(&context);
    pm.addPass(cpu::createLowerScalarsPass());
    ASSERT_TRUE(succeeded(pm.run(*module)));
    // The machine knows no ring.segment: nothing of it is left.
    auto function = *module->getOps<func::FuncOp>().begin();
    auto evaluator = RegionEvaluator::create(function.getBody(), {});
    ASSERT_TRUE(evaluator);
    for (int64_t extent : extents)
      for (int64_t owner = 0; owner < layout.parts; ++owner) {
        ASSERT_TRUE(
            evaluator->evaluate({Scalar{index}, Scalar{owner}, Scalar{extent}}))
            << evaluator->getFault()->message;
        auto result = [&](unsigned number) {
          return evaluator->result(number).i;
        };
        Segment expected = layout.segment(owner, index, extent);
        Segment found{result(0), result(2), result(3), result(4)};
        ASSERT_TRUE(found == expected)
            << "owner " << owner << " of " << extent << ": " << found.begin
            << ", " << found.count << ", " << found.step << ", " << found.block
            << ", wanted " << expected.begin << ", " << expected.count << ", "
            << expected.step << ", " << expected.block;
        ASSERT_EQ(result(1), expected.end())
            << "owner " << owner << " of " << extent;
      }
  }

  void checkAll(ArrayRef<int64_t> allParts, ArrayRef<int64_t> extents) {
    for (int64_t parts : allParts)
      for (const Layout &layout : {Layout{Order::Contiguous, 1, parts},
                                   {Order::Zigzag, 1, parts},
                                   {Order::Striped, 1, parts},
                                   {Order::Striped, 2, parts},
                                   {Order::Striped, 3, parts}})
        for (int64_t index = 0; index < layout.numSegments(); ++index)
          check(layout, index, extents);
  }

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    jit::registerDialects(registry);
    return registry;
  }

  MLIRContext context{registry()};
};

} // namespace

TEST_F(ScalarsTest, SegmentsAreThoseOfTheLayout) {
  checkAll({1, 2, 3, 4, 5}, llvm::to_vector(llvm::seq<int64_t>(0, 41)));
}

TEST_F(ScalarsTest, SegmentsOfHugeExtentsDoNotOverflow) {
  checkAll({1, 7, 1 << 10}, {(int64_t{1} << 39) + 12345});
}
