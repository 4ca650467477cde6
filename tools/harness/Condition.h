//===- Condition.h - how well scores are conditioned ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a score region makes of the error of its score, and what its own
// rounding adds, for the score and its slopes. Nothing here is shared with what
// compiles and differentiates regions: floats are computed at the score and on
// both sides of it, with derivatives carried forward, and an interval at the
// score takes in what each op may round.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_TOOLS_HARNESS_CONDITION_H
#define BURST_TOOLS_HARNESS_CONDITION_H

#include "passes/Simulation/Scalars/Program.h"
#include "tools/harness/FloatOps.h"
#include "tools/oracle/Gradients.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace burst {

/// A score region with the values that it captures. Not for several threads at
/// once; copies are independent.
class ConditionedScore {
public:
  /// `numbers` has an entry per capture: the number of its gradient, or none.
  /// `copy` gets the region once more: what is evaluated is of it, and it has
  /// to live as long. Emits an error at an op that cannot be evaluated.
  static std::optional<ConditionedScore>
  create(mlir::Region &score, llvm::ArrayRef<RegionEvaluator::Capture> captures,
         llvm::ArrayRef<std::optional<int64_t>> numbers, mlir::Region &copy);

  /// All that the region may give in the arithmetic of its types where its
  /// score is wrong by `error`. `arguments`: the score, b, h, i, j, Sq, Sk.
  oracle::Range range(llvm::ArrayRef<Scalar> arguments, double error);

  /// The slopes by the score and by elements of tables, with their errors.
  oracle::Slope slope(llvm::ArrayRef<Scalar> arguments, double error,
                      bool wantsElements);

private:
  friend class ConditionedScoreBuilder;

  /// Values below the score, at it and above it.
  static constexpr int sides = 3, middle = 1;
  using Sides = std::array<double, sides>;

  struct Number {
    Sides value = {};
    double lo = 0, hi = 0; ///< what rounding may make of the middle
    /// The derivative in the direction that is asked for, and what rounding may
    /// change in the middle.
    Sides slope = {};
    double slopeError = 0;
  };

  enum class Kind : uint8_t { Argument, Leaf, Select, Power, Round, Op };

  /// A float of the region: what it is made of.
  struct Step {
    Kind kind = Kind::Leaf;
    mlir::Type type;
    const FloatOp *op = nullptr;
    llvm::SmallVector<int, 3> operands; ///< numbers of steps
    bool divides = false; ///< has a pole where the second operand is 0
    int leaf = -1; ///< a value; the condition of Select, the exponent of Power
    /// Of a read of a table with a gradient: its number and shape, and the
    /// leaves that are its indices.
    std::optional<int64_t> table;
    TensorRef read;
    llvm::SmallVector<int, 4> indices;
  };

  class Function;

  /// Partial derivatives, and how far they may be from that; or operands.
  struct Partials {
    double at[3] = {}, spread[3] = {};
  };

  bool prepare(llvm::ArrayRef<Scalar> arguments, double error);
  const Number &run(int direction);
  Number leafOf(const Step &step) const;
  Number select(const Step &step) const;
  Number apply(const Step &step) const;
  void takeCorners(const Step &step, const Function &function, Number &result,
                   Partials &partials) const;
  double slopeErrorOf(const Step &step, const Partials &partials,
                      double rounding) const;
  Number evaluate(const Step &step, bool isDirection) const;
  oracle::Slope slopeIn(int direction);

  std::vector<Step> steps;
  int scoreStep = 0, resultStep = 0;
  /// Gives what is no op from floats to a float: integers, conditions, tables.
  std::optional<RegionEvaluator> machine;
  size_t numLeaves = 0;
  bool leavesVary = false; ///< with the score

  Sides score = {}; ///< of what is evaluated
  std::vector<std::array<Scalar, sides>> leaves;
  std::vector<Number> numbers; ///< of the steps
};

} // namespace burst

#endif // BURST_TOOLS_HARNESS_CONDITION_H
