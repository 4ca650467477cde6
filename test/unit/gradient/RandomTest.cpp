//===- RandomTest.cpp - gradients of scores drawn by chance ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/gradient/Score.h"
#include "test/unit/property/Dice.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace burst;
using namespace burst::test;

namespace {

/// Ops on f64, each on values that were made before it. Values stay small, and
/// functions are kept away from where they are not defined.
class Writer {
public:
  explicit Writer(Dice &dice) : dice(dice) {}

  std::string draw() {
    pool = {"%s", "%c0"};
    position();
    read();
    for (int64_t more = dice.within(4, 16); more > 0; --more)
      step();
    // All that was made counts, or little would be tested.
    std::string sum = pool.front();
    for (size_t n = 1; n < pool.size(); ++n)
      sum = binary("arith.addf", sum, pool[n]);
    lines += "%r = math.sin " + sum + " : f64\n";
    return lines;
  }

private:
  std::string make(const std::string &text) {
    std::string name = llvm::formatv("%v{0}", count++);
    lines += name + " = " + text + "\n";
    return name;
  }
  std::string unary(const std::string &op, const std::string &x) {
    return make(op + " " + x + " : f64");
  }
  std::string binary(const std::string &op, const std::string &x,
                     const std::string &y) {
    return make(op + " " + x + ", " + y + " : f64");
  }
  std::string real(double value) {
    return make(llvm::formatv("arith.constant {0:f6} : f64", value));
  }
  std::string any() { return dice.pick(pool); }
  /// A value within `center` +- 0.9 `radius`.
  std::string within(double center, double radius) {
    std::string wave = unary("math.sin", any());
    return binary("arith.addf", binary("arith.mulf", wave, real(0.9 * radius)),
                  real(center));
  }
  void position() {
    std::string index = make(llvm::formatv(
        "arith.index_cast {0} : index to i64", dice.pick({"%i", "%j", "%h"})));
    pool.push_back(binary("arith.mulf",
                          make("arith.sitofp " + index + " : i64 to f64"),
                          real(0.2)));
  }
  void read() {
    pool.push_back(make(llvm::formatv("tensor.extract %c1[{0}] : tensor<8xf64>",
                                      dice.pick({"%i", "%j"}))));
  }
  std::string condition() {
    if (dice.chance(50))
      return make(llvm::formatv("arith.cmpi {0}, %i, %j : index",
                                dice.pick({"slt", "eq", "ne"})));
    return make(llvm::formatv("arith.cmpf olt, {0}, {1} : f64", any(), any()));
  }
  std::string function() {
    switch (dice.within(0, 4)) {
    case 0: // everywhere
      return unary(
          dice.pick({"math.sin", "math.cos", "math.tanh", "math.atan",
                     "math.erf", "math.erfc", "math.asinh", "math.absf",
                     "arith.negf", "math.floor", "math.round", "math.trunc"}),
          any());
    case 1: // small numbers
      return unary(dice.pick({"math.exp", "math.exp2", "math.expm1",
                              "math.sinh", "math.cosh", "math.tan", "math.asin",
                              "math.acos", "math.atanh", "math.log1p"}),
                   within(0, 0.9));
    case 2: // large ones
      return unary(
          dice.pick({"math.log", "math.log2", "math.log10", "math.sqrt",
                     "math.rsqrt", "math.cbrt", "math.acosh"}),
          within(3, 1.8));
    case 3:
      return binary("math.powf", within(2, 1), within(0, 2));
    default:
      return binary(dice.pick({"arith.divf", "arith.remf", "math.atan2"}),
                    any(), within(2, 1));
    }
  }
  void step() {
    std::string value;
    switch (dice.within(0, 5)) {
    case 0:
      value = binary(dice.pick({"arith.addf", "arith.subf", "arith.maximumf",
                                "arith.minimumf", "arith.maxnumf",
                                "arith.minnumf", "math.copysign"}),
                     any(), any());
      break;
    case 1:
      value = binary("arith.mulf", any(), any());
      break;
    case 2:
      value = make(
          llvm::formatv("math.fma {0}, {1}, {2} : f64", any(), any(), any()));
      break;
    case 3:
      value = make(llvm::formatv("arith.select {0}, {1}, {2} : f64",
                                 condition(), any(), any()));
      break;
    default:
      value = function();
    }
    pool.push_back(dice.chance(40) ? unary("math.tanh", value) : value);
  }

  Dice &dice;
  std::vector<std::string> pool;
  std::string lines;
  int64_t count = 0;
};

} // namespace

TEST(GradientRandomTest, AgreesWithFiniteDifferences) {
  auto context = makeContext();
  int checked = 0;
  constexpr int trials = 300, points = 4;
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(trial);
    Dice dice(trial);
    std::string ops = Writer(dice).draw();
    auto number = [&] {
      return static_cast<double>(dice.within(-2000, 2000)) * 1e-3;
    };
    std::vector<double> table(8);
    std::generate(table.begin(), table.end(), number);
    Score score = Score::ofOps(*context, ops,
                               {{"f64", {number()}}, {"tensor<8xf64>", table}});
    ASSERT_TRUE(score.isDifferentiable()) << score.error() << "\n" << ops;
    for (int n = 0; n < points; ++n) {
      Point at{dice.within(0, 1), dice.within(0, 1), dice.within(0, 7),
               dice.within(0, 7)};
      checked += score.check(number(), at) ? 1 : 0;
      ASSERT_FALSE(::testing::Test::HasFailure()) << ops;
    }
  }
  // Some have kinks nearby, or are too steep for finite differences.
  EXPECT_GT(checked, trials * points / 2);
}
