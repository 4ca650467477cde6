//===- Score.h - score regions and their gradients --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_GRADIENT_SCORE_H
#define BURST_TEST_UNIT_GRADIENT_SCORE_H

#include "passes/Simulation/Scalars/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace burst::test {

std::unique_ptr<mlir::MLIRContext> makeContext();

/// What is captured: "f64" or "tensor<2x3xf32>", and its elements.
struct Captured {
  std::string type;
  std::vector<double> values;
  bool isWanted = true;
};

/// A pair of positions.
struct Point {
  int64_t b = 0, h = 0, i = 0, j = 0;
};

/// A score region, its gradient region and both evaluated. Sizes are those of
/// B = 2, Hq = 2, Sq = Sk = 8.
class Score {
public:
  /// Of ops that compute %r, of the type `state`, from %s, ..., %sk and the
  /// captures %c0, %c1, ...
  static Score ofOps(mlir::MLIRContext &context, llvm::StringRef ops,
                     std::vector<Captured> captures = {},
                     llvm::StringRef state = "f64");
  /// Of a clause of burst.attention such as "score alibi(%t0 : tensor<2xf32>)",
  /// where %t0 is the first capture.
  Score(mlir::MLIRContext &context, llvm::StringRef clause,
        std::vector<Captured> captures, llvm::StringRef state = "f64");

  bool isDifferentiable() const { return gradient.has_value(); }
  /// What was said where it is not differentiable.
  const std::string &error() const { return message; }
  /// The gradient region as text, without its arguments.
  std::string text() const;
  std::vector<bool> contributes() const;
  /// What several contribute to: "b", "h", "bh" or "".
  std::string shared(size_t capture) const;

  /// The score at a pair; the test fails where it cannot be evaluated.
  double operator()(double s, Point at = {}) const;
  /// The derivative by s times `g`; contributions are added to sums.
  double derivative(double s, double g, Point at = {});
  double sum(unsigned capture, size_t index = 0) const {
    return sums[capture]->floats[index];
  }

  /// Compares the derivatives by s and by every element that is wanted with
  /// finite differences. False where the score has a kink nearby: nothing is
  /// compared there.
  bool check(double s, Point at = {});

private:
  std::vector<RegionEvaluator::Capture> captures() const;
  size_t numCaptures() const { return captured.size(); }
  double &element(unsigned capture, size_t index) const {
    return tables[capture] ? tables[capture]->floats[index]
                           : scalars[capture]->f;
  }

  std::vector<Captured> captured;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Region *score = nullptr;
  std::unique_ptr<mlir::Region> region;
  std::vector<TensorRef> tables;                ///< null for scalars
  std::vector<std::shared_ptr<Scalar>> scalars; ///< null for tables
  std::vector<TensorRef> sums;
  mutable std::optional<RegionEvaluator> value;
  std::optional<RegionEvaluator> gradient;
  std::string message;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_GRADIENT_SCORE_H
