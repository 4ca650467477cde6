//===- PipelineTest.cpp - regions mean the same behind the pipeline -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates regions as they were written and as the passes up to the first
// canonicalization leave them, at points that include both ends of every width
// and powers of two, and asks their bounds about boxes.
//
// BURST_SEED and BURST_REGIONS set the seed and the number of problems: problem
// n alone is BURST_SEED=seed+n BURST_REGIONS=1.
//
//===----------------------------------------------------------------------===//
#include "test/unit/Sanitizers.h"
#include "test/unit/property/Dice.h"
#include "test/unit/property/RandomRegion.h"
#include "test/unit/property/Trial.h"

#include "passes/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

constexpr uint64_t defaultCount = isSanitized ? 200 : 2000;

/// A position: small, or near a power of two.
int64_t drawPosition(Dice &dice) {
  if (dice.chance(40))
    return dice.within(0, 40);
  if (dice.chance(20))
    return dice.within(0, maxPositions - 1);
  int64_t power = int64_t{1} << dice.within(0, 40);
  return std::clamp<int64_t>(power + dice.within(-1, 1), 0, maxPositions - 1);
}

/// A region as it was written, and as the passes leave it.
class Pair {
public:
  Pair(Region &before, Region &after,
       ArrayRef<RegionEvaluator::Capture> captures)
      : before(RegionEvaluator::create(before, captures)),
        after(RegionEvaluator::create(after, captures, /*isTotal=*/false)) {}

  bool isValid() const { return before && after; }
  /// Whether both can be evaluated, and give the same.
  bool agree(ArrayRef<Scalar> arguments, bool isFloat);

  std::optional<RegionEvaluator> before, after;
};

bool Pair::agree(ArrayRef<Scalar> arguments, bool isFloat) {
  EXPECT_TRUE(before->evaluate(arguments)) << before->getFault()->message;
  EXPECT_TRUE(after->evaluate(arguments)) << after->getFault()->message;
  Scalar x = before->result(0), y = after->result(0);
  if (!isFloat)
    return x.i == y.i;
  return x.f == y.f || (std::isnan(x.f) && std::isnan(y.f)) ||
         // Constants fold in f32, and may be subnormal.
         std::abs(x.f - y.f) <= 1e-6 * std::abs(x.f) + 1e-43;
}

class PipelineTest : public ::testing::Test {
protected:
  /// Draws and checks the problem with this number.
  void check(uint64_t seed);
  void checkMask(Pair &mask, AttentionOp op,
                 ArrayRef<RegionEvaluator::Capture> captures, Dice &dice);
  void checkScore(Pair &score, Dice &dice);
  void checkBox(Pair &mask, RegionEvaluator &bounds, Dice &dice);

  std::string draw(Dice &dice, Captures &captures);
  bool run(ModuleOp module);

  std::unique_ptr<MLIRContext> context = makeContext();
  oracle::Sizes sizes;
  const std::string element = "f64"; // of tensors and scores
  int64_t masks = 0, refused = 0, decided = 0;
};

/// An attention with a mask and a score; only its text has these sizes.
std::string PipelineTest::draw(Dice &dice, Captures &captures) {
  sizes = {
      dice.within(1, 3), dice.within(1, 300), dice.within(1, 300), 2, 1, 4, 4};
  std::string mask = drawMaskRegion(dice, sizes, captures);
  std::string score = drawWildScoreRegion(dice, sizes, captures);
  std::string arguments;
  for (const std::string &argument : captures.arguments())
    arguments += ", " + argument;
  return fmt::format("!q = tensor<{0}x{1}x2x4x{3}>\n!k = "
                     "tensor<{0}x{2}x1x4x{3}>\n!l = tensor<{0}x2x{1}x{4}>\n"
                     "func.func @f(%q: !q {{burst.name = \"q\"}}, %k: !k "
                     "{{burst.name = \"k\"}}{5}) -> (!q, !l) {{\n{6}"
                     "  %o, %l = burst.attention %q, %k, %k\n    {7}\n    {8}\n"
                     "    : (!q, !k, !k) -> (!q, !l)\n"
                     "  return %o, %l : !q, !l\n}}\n",
                     sizes.batch, sizes.queries, sizes.keys, element, element,
                     arguments, captures.constants(), mask, score);
}

bool PipelineTest::run(ModuleOp module) {
  PassManager pm(context.get());
  pm.addNestedPass<func::FuncOp>(createExpandNamesPass());
  pm.addNestedPass<func::FuncOp>(createGuardRegionsPass());
  pm.addNestedPass<func::FuncOp>(createDeriveBoundsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  return succeeded(pm.run(module));
}

void PipelineTest::checkBox(Pair &mask, RegionEvaluator &bounds, Dice &dice) {
  const int64_t extents[] = {sizes.batch, sizes.queryHeads, sizes.queries,
                             sizes.keys};
  int64_t begin[4], end[4];
  std::vector<Scalar> box;
  for (size_t dim = 0; dim < 4; ++dim) {
    begin[dim] = dice.within(0, extents[dim] - 1);
    end[dim] =
        std::min(begin[dim] + dice.within(1, dim < 2 ? 1 : 6), extents[dim]);
    box.push_back({begin[dim]});
    box.push_back({end[dim]});
  }
  box.push_back({sizes.queries});
  box.push_back({sizes.keys});
  ASSERT_TRUE(bounds.evaluate(box)) << bounds.getFault()->message;
  bool may = bounds.result(0).i != 0, must = bounds.result(1).i != 0;
  decided += !may || must;
  for (int64_t i = begin[2]; i < end[2]; ++i)
    for (int64_t j = begin[3]; j < end[3]; ++j) {
      Scalar point[] = {{begin[0]}, {begin[1]},      {i},
                        {j},        {sizes.queries}, {sizes.keys}};
      ASSERT_TRUE(mask.before->evaluate(point));
      bool isKept = mask.before->result(0).i != 0;
      ASSERT_TRUE(isKept ? may : !must)
          << "the bounds say may=" << may << " must=" << must << " of i "
          << begin[2] << ".." << end[2] << ", j " << begin[3] << ".." << end[3]
          << ", and i=" << i << " j=" << j << " is " << isKept;
    }
}

void PipelineTest::checkMask(Pair &mask, AttentionOp op,
                             ArrayRef<RegionEvaluator::Capture> captures,
                             Dice &dice) {
  for (int n = 0; n < 100; ++n) {
    Scalar point[6];
    for (Scalar &position : point)
      position.i = drawPosition(dice);
    ASSERT_TRUE(mask.agree(point, /*isFloat=*/false)) << fmt::format(
        "b={} h={} i={} j={} sq={} sk={}: {} as written, {} behind", point[0].i,
        point[1].i, point[2].i, point[3].i, point[4].i, point[5].i,
        mask.before->result(0).i, mask.after->result(0).i);
  }
  auto bounds = RegionEvaluator::create(op.getBounds(), captures);
  ASSERT_TRUE(bounds);
  for (int n = 0; n < 20 && !HasFatalFailure(); ++n)
    checkBox(mask, *bounds, dice);
}

void PipelineTest::checkScore(Pair &score, Dice &dice) {
  for (int n = 0; n < 100; ++n) {
    Scalar point[7];
    point[0].f = dice.pick({0.0, 1.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""),
                            1e30, -3.5, 1e-30, 0.25});
    for (int dim = 1; dim < 7; ++dim)
      point[dim].i = drawPosition(dice);
    ASSERT_TRUE(score.agree(point, /*isFloat=*/true)) << fmt::format(
        "s={} b={} h={} i={} j={} sq={} sk={}: {} as written, {} behind",
        point[0].f, point[1].i, point[2].i, point[3].i, point[4].i, point[5].i,
        point[6].i, score.before->result(0).f, score.after->result(0).f);
  }
}

void PipelineTest::check(uint64_t seed) {
  Dice dice(seed);
  Captures captures(dice);
  RandomProblem problem{seed, {}, "", "", 1, true, true, false, "", {}};
  problem.body = draw(dice, captures);
  problem.tensors = captures.tensors();
  for (auto [name, extent, heads] :
       {std::tuple("q", sizes.queries, 2), std::tuple("k", sizes.keys, 1)})
    problem.tensors.emplace(
        name, data::Tensor::zeros(dtypeOfElement(element),
                                  {sizes.batch, extent, heads, 4}));
  Trial trial(*context, problem, 1);
  ASSERT_TRUE(trial.parse() && trial.bindSource()) << trial.error;
  OwningOpRef<ModuleOp> module(cast<ModuleOp>(trial.source.get()->clone()));
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  if (!run(*module)) {
    ASSERT_NE(message.find("for every pair"), std::string::npos) << message;
    ++refused;
    return;
  }
  AttentionOp before = trial.attentions.front().op, after;
  module->walk([&](AttentionOp op) { after = op; });
  ASSERT_TRUE(after);
  auto maskCaptures = trial.captures(before, before.getMaskCaptures());
  auto scoreCaptures = trial.captures(before, before.getScoreCaptures());
  ASSERT_TRUE(maskCaptures && scoreCaptures);
  Pair mask(before.getMask(), after.getMask(), *maskCaptures);
  Pair score(before.getScore(), after.getScore(), *scoreCaptures);
  ASSERT_TRUE(mask.isValid() && score.isValid()) << message;
  checkMask(mask, after, *maskCaptures, dice);
  if (!HasFatalFailure())
    checkScore(score, dice);
  ++masks;
}

TEST_F(PipelineTest, KeepsTheMeaningOfRegions) {
  uint64_t first = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = countFromEnvironment("BURST_REGIONS", defaultCount, 100000);
  std::printf("BURST_SEED=%ju BURST_REGIONS=%ju\n", uintmax_t(first),
              uintmax_t(count));
  RecordProperty("seed", std::to_string(first));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    check(seed);
    if (!HasFailure())
      continue;
    Dice dice(seed);
    Captures captures(dice);
    FAIL() << "BURST_SEED=" << seed << " BURST_REGIONS=1\n"
           << draw(dice, captures);
  }
  std::printf("%jd attentions, %jd refused, %jd boxes decided\n",
              intmax_t(masks), intmax_t(refused), intmax_t(decided));
  if (count < 100)
    return; // too few to say how often
  EXPECT_GT(masks, 9 * refused);
  EXPECT_GT(decided, masks);
}

} // namespace
