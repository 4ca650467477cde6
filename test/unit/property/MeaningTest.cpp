//===- MeaningTest.cpp - one mask, said in two ways -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interpreter and the oracle evaluate regions with one evaluator, and a
// named mask becomes a region for the interpreter: here names are compared with
// their regions, and regions with an evaluator of another's making, pair by
// pair.
//
//===----------------------------------------------------------------------===//
#include "test/unit/bounds/Evaluator.h"
#include "test/unit/property/Trial.h"

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <deque>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// The first point at which `differ` holds.
std::optional<oracle::Point>
findPoint(const oracle::Sizes &sizes,
          llvm::function_ref<bool(const oracle::Point &)> differ) {
  for (int64_t b = 0; b < sizes.batch; ++b)
    for (int64_t h = 0; h < sizes.queryHeads; ++h)
      for (int64_t i = 0; i < sizes.queries; ++i)
        for (int64_t j = 0; j < sizes.keys; ++j)
          if (differ({b, h, i, j}))
            return oracle::Point{b, h, i, j};
  return std::nullopt;
}

std::string text(const oracle::Point &p) {
  return "at b=" + std::to_string(p.b) + " h=" + std::to_string(p.h) +
         " i=" + std::to_string(p.i) + " j=" + std::to_string(p.j);
}

bool keeps(const oracle::Problem &problem, const oracle::Point &point) {
  return llvm::all_of(problem.masks,
                      [&](const oracle::Mask &mask) { return mask(point); });
}

double score(const oracle::Problem &problem, double s,
             const oracle::Point &point) {
  for (const oracle::Score &score : problem.scores)
    s = score(s, point);
  return s;
}

class MeaningTest : public ::testing::Test {
protected:
  static constexpr uint64_t count = 400;
  std::unique_ptr<MLIRContext> context = makeContext();
};

TEST_F(MeaningTest, NamesMeanTheirRegions) {
  int64_t masks = 0, scores = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    RandomProblem problem = drawProblem(seed);
    Trial named(*context, problem, 1), expanded(*context, problem, 1);
    ASSERT_TRUE(named.parse() && named.bindSource()) << named.error;
    ASSERT_TRUE(expanded.parse());
    PassManager pm(context.get());
    pm.addNestedPass<func::FuncOp>(createExpandNamesPass());
    ASSERT_TRUE(succeeded(pm.run(*expanded.source)));
    ASSERT_TRUE(expanded.bindSource()) << expanded.error;
    for (auto [a, b] : llvm::zip_equal(named.attentions, expanded.attentions)) {
      ASSERT_FALSE(b.op.getMaskNamesAttr() || b.op.getScoreNamesAttr());
      masks += a.op.getMaskNamesAttr() != nullptr;
      scores += a.op.getScoreNamesAttr() != nullptr;
      const oracle::Problem &x = a.problem, &y = b.problem;
      auto mask = findPoint(problem.sizes, [&](const oracle::Point &point) {
        return keeps(x, point) != keeps(y, point);
      });
      ASSERT_FALSE(mask) << "masks differ " << text(*mask) << "\n"
                         << problem.text(1);
      auto point = findPoint(problem.sizes, [&](const oracle::Point &point) {
        double s = 0.37 * static_cast<double>(point.i - point.j);
        double u = score(x, s, point), v = score(y, s, point);
        return u != v && !(std::abs(u - v) <= 1e-14 * std::abs(u));
      });
      ASSERT_FALSE(point) << "scores differ " << text(*point) << "\n"
                          << problem.text(1);
    }
  }
  EXPECT_GT(masks, 50);
  EXPECT_GT(scores, 50);
}

/// Whether the other evaluator knows all ops of a region: it has no floats.
bool isOfIntegers(Region &region) {
  return llvm::all_of(region.front(), [](Operation &op) {
    return llvm::none_of(
        llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()),
        [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); });
  });
}

TEST_F(MeaningTest, RegionsMeanWhatTheOtherEvaluatorSays) {
  int64_t regions = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    RandomProblem problem = drawProblem(seed);
    Trial run(*context, problem, 1);
    ASSERT_TRUE(run.parse() && run.bindSource()) << run.error;
    for (Trial::Attention &attention : run.attentions) {
      Region &mask = attention.op.getMask();
      auto captures = run.maskCaptures(attention.op);
      if (mask.empty() || !isOfIntegers(mask) || !captures)
        continue;
      ++regions;
      test::Program program(mask.front());
      program.isTotal = true;
      std::deque<test::Table> tables;
      std::vector<Cell> cells(6);
      for (const Argument &capture : *captures) {
        Cell &cell = cells.emplace_back();
        cell.number = capture.scalar.i;
        if (capture.table) {
          tables.push_back(
              {{capture.table->shape.begin(), capture.table->shape.end()},
               capture.table->ints});
          cell.table = &tables.back();
        }
      }
      cells[4].number = problem.sizes.queries;
      cells[5].number = problem.sizes.keys;
      auto point = findPoint(problem.sizes, [&](const oracle::Point &point) {
        const int64_t numbers[] = {point.b, point.h, point.i, point.j};
        for (auto [cell, number] : llvm::zip(cells, numbers))
          cell.number = number;
        SmallVector<Cell> results;
        bool isDefined = program.run(cells, results) && !results[0].poison;
        EXPECT_TRUE(isDefined) << text(point) << "\n" << problem.text(1);
        return (results[0].number != 0) != keeps(attention.problem, point);
      });
      ASSERT_FALSE(point) << "differ " << text(*point) << "\n"
                          << problem.text(1);
      if (HasFailure())
        return;
    }
  }
  EXPECT_GT(regions, 50);
}

} // namespace
