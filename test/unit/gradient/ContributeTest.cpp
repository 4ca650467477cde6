//===- ContributeTest.cpp - how burst.contribute is evaluated -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/gradient/Score.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {
/// Adds %v to a table at [%i] and to a captured number.
class ContributeTest : public ::testing::Test {
protected:
  ContributeTest() {
    auto f32 = Float32Type::get(context.get());
    table = std::make_shared<Tensor>(ArrayRef<int64_t>{3}, f32);
    table->floats = {7, 8, 9};
    evaluator = RegionEvaluator::create(
        (*module->getOps<func::FuncOp>().begin()).getBody(),
        {{Scalar{0}, table}, {Scalar{0}, nullptr}, {Scalar{0}, table}});
    sum = std::make_shared<Tensor>(ArrayRef<int64_t>{3}, f32);
    sum->floats.resize(3);
    number = std::make_shared<Tensor>(ArrayRef<int64_t>{}, f32);
    number->floats.resize(1);
  }
  bool run(double v, int64_t i) {
    Scalar value;
    value.f = v;
    return evaluator->evaluate({value, Scalar{i}});
  }

  std::unique_ptr<MLIRContext> context = makeContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    func.func @f(%v: f32, %i: index, %t: tensor<3xf32>, %x: f32,
                 %u: tensor<3xf32>) -> f32 {
      burst.contribute %v to %t[%i] : f32, tensor<3xf32>
      burst.contribute %v to %x : f32, f32
      burst.contribute %v to %t[%i] : f32, tensor<3xf32>
      return %v : f32
    })",
                                                             context.get());
  std::optional<RegionEvaluator> evaluator;
  TensorRef table, sum, number;
};
} // namespace

TEST_F(ContributeTest, Adds) {
  evaluator->setGradient(0, sum);
  evaluator->setGradient(1, number);
  evaluator->setGradient(2, sum); // Nothing is contributed there.
  ASSERT_TRUE(run(0.5, 2));
  ASSERT_TRUE(run(0.25, 0));
  EXPECT_EQ(sum->floats, (std::vector<double>{0.5, 0, 1}));
  EXPECT_EQ(number->floats[0], 0.75);
  EXPECT_EQ(table->floats, (std::vector<double>{7, 8, 9}));
}

TEST_F(ContributeTest, WithoutATableNothingHappens) {
  evaluator->setGradient(1, number);
  ASSERT_TRUE(run(0.5, 2));
  EXPECT_EQ(number->floats[0], 0.5);
}

TEST_F(ContributeTest, IndicesAreClamped) {
  evaluator->setGradient(0, sum);
  ASSERT_TRUE(run(0.5, 3));
  ASSERT_TRUE(run(0.25, -1));
  EXPECT_EQ(sum->floats, (std::vector<double>{0.5, 0, 1}));
}
