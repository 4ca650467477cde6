//===- Condition.cpp - how well scores are conditioned --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/Condition.h"

#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace burst;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// How many unit roundoffs an op may be wrong by.
static constexpr double opFactor = 8;

namespace {
/// The numbers of a type of floats.
struct Format {
  double unit, least, largest;
};
} // namespace

static Format formatOf(Type type) {
  if (type.isF64())
    return {0x1p-53, 0x1p-1022, std::numeric_limits<double>::max()};
  if (type.isF32())
    return {0x1p-24, 0x1p-126, std::numeric_limits<float>::max()};
  if (type.isF16())
    return {0x1p-11, 0x1p-14, 65504};
  return {0x1p-8, 0x1p-126, 0x1.fep127};
}

/// A product of which what is exactly 0 stays 0: it does not depend on the
/// other one.
static double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

//===----------------------------------------------------------------------===//
// From regions to steps
//===----------------------------------------------------------------------===//

namespace burst {

class ConditionedScoreBuilder {
public:
  ConditionedScoreBuilder(Region &region,
                          ArrayRef<RegionEvaluator::Capture> captures,
                          ArrayRef<std::optional<int64_t>> numbers)
      : region(region), block(region.front()), captures(captures),
        numbers(numbers),
        arguments(RegionArguments::of(RegionRole::Score, block)) {}

  std::optional<ConditionedScore> run(Region &copy);

private:
  using Kind = ConditionedScore::Kind;
  using Step = ConditionedScore::Step;

  int stepOf(Value value);
  int leafOf(Value value);
  void addOp(Operation &op, Step &step);
  void addRead(tensor::ExtractOp op, Step &step);
  bool varies(Value value) const;

  Region &region;
  Block &block;
  ArrayRef<RegionEvaluator::Capture> captures;
  ArrayRef<std::optional<int64_t>> numbers;
  RegionArguments arguments;
  ConditionedScore result;
  llvm::DenseMap<Value, int> steps, leafNumbers;
  SmallVector<Value> leaves;
};

} // namespace burst

int ConditionedScoreBuilder::leafOf(Value value) {
  auto [entry, isNew] = leafNumbers.try_emplace(value, leaves.size());
  if (isNew)
    leaves.push_back(value);
  return entry->second;
}

int ConditionedScoreBuilder::stepOf(Value value) {
  auto found = steps.find(value);
  if (found != steps.end())
    return found->second;
  Step step;
  step.type = value.getType();
  Operation *op = value.getDefiningOp();
  if (value == arguments.score)
    step.kind = Kind::Argument;
  else if (op)
    addOp(*op, step);
  if (step.kind == Kind::Leaf)
    step.leaf = leafOf(value);
  int number = static_cast<int>(result.steps.size());
  result.steps.push_back(std::move(step));
  return steps[value] = number;
}

/// Leaves a step as it is where the op is none from floats to a float.
void ConditionedScoreBuilder::addOp(Operation &op, Step &step) {
  if (auto read = dyn_cast<tensor::ExtractOp>(op))
    return addRead(read, step);
  ValueRange floats = op.getOperands();
  step.op = findFloatOp(op.getName().getStringRef());
  if (isa<arith::SelectOp>(op)) {
    step.kind = Kind::Select;
    step.leaf = leafOf(op.getOperand(0));
    floats = floats.drop_front();
  } else if (isa<math::FPowIOp>(op)) {
    step.kind = Kind::Power;
    step.leaf = leafOf(op.getOperand(1));
    floats = floats.drop_back();
  } else if (isa<arith::TruncFOp>(op)) {
    step.kind = Kind::Round;
  } else if (step.op) {
    step.kind = Kind::Op;
    step.divides = isa<arith::DivFOp>(op);
  } else {
    return;
  }
  for (Value operand : floats)
    step.operands.push_back(stepOf(operand));
}

void ConditionedScoreBuilder::addRead(tensor::ExtractOp op, Step &step) {
  auto table = dyn_cast<BlockArgument>(op.getTensor());
  if (!table)
    return;
  size_t capture = table.getArgNumber() -
                   (block.getNumArguments() - arguments.captures.size());
  step.table = numbers[capture];
  step.read = captures[capture].table;
  if (step.table)
    for (Value index : op.getIndices())
      step.indices.push_back(leafOf(index));
}

/// Whether a value depends on the score.
bool ConditionedScoreBuilder::varies(Value value) const {
  if (value == arguments.score)
    return true;
  Operation *op = value.getDefiningOp();
  return op && llvm::any_of(op->getOperands(),
                            [&](Value operand) { return varies(operand); });
}

std::optional<ConditionedScore> ConditionedScoreBuilder::run(Region &copy) {
  result.scoreStep = stepOf(arguments.score);
  result.resultStep = stepOf(block.getTerminator()->getOperand(0));
  // The region again, which yields what the machine is asked for.
  IRMapping mapping;
  region.cloneInto(&copy, mapping);
  copy.front().getTerminator()->setOperands(
      llvm::map_to_vector(leaves, [&](Value v) { return mapping.lookup(v); }));
  result.machine = RegionEvaluator::create(copy, captures);
  result.numLeaves = leaves.size();
  result.leavesVary =
      llvm::any_of(leaves, [&](Value leaf) { return varies(leaf); });
  result.numbers.resize(result.steps.size());
  if (!result.machine)
    return std::nullopt;
  return std::move(result);
}

std::optional<ConditionedScore> ConditionedScore::create(
    Region &score, ArrayRef<RegionEvaluator::Capture> captures,
    ArrayRef<std::optional<int64_t>> numbers, Region &copy) {
  return ConditionedScoreBuilder(score, captures, numbers).run(copy);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Asks the machine for the leaves; false where the region has no value.
bool ConditionedScore::prepare(ArrayRef<Scalar> arguments, double error) {
  score = {arguments[0].f - error, arguments[0].f, arguments[0].f + error};
  leaves.resize(numLeaves);
  SmallVector<Scalar, 8> moved(arguments);
  for (int side = 0; side < sides; ++side) {
    bool isSame = side != 0 && !leavesVary;
    moved[0].f = score[side];
    if (!isSame && !machine->evaluate(moved))
      return false;
    for (size_t leaf = 0; leaf < numLeaves; ++leaf)
      leaves[leaf][side] =
          isSame ? leaves[leaf][0] : machine->result(unsigned(leaf));
  }
  return true;
}

const ConditionedScore::Number &ConditionedScore::run(int direction) {
  for (auto [index, step] : llvm::enumerate(steps))
    numbers[index] = evaluate(step, int(index) == direction);
  return numbers[resultStep];
}

ConditionedScore::Number ConditionedScore::evaluate(const Step &step,
                                                    bool isDirection) const {
  Number number;
  switch (step.kind) {
  case Kind::Argument:
    number.value = score;
    number.lo = number.hi = score[middle];
    break;
  case Kind::Leaf:
    number = leafOf(step);
    break;
  case Kind::Select:
    number = select(step);
    break;
  default:
    number = apply(step);
  }
  if (isDirection)
    number.slope.fill(1);
  return number;
}

ConditionedScore::Number ConditionedScore::leafOf(const Step &step) const {
  Number number;
  for (int side = 0; side < sides; ++side)
    number.value[side] = leaves[step.leaf][side].f;
  number.lo = number.hi = number.value[middle];
  return number;
}

ConditionedScore::Number ConditionedScore::select(const Step &step) const {
  auto chosen = [&](int side) -> const Number & {
    return numbers[step.operands[leaves[step.leaf][side].i != 0 ? 0 : 1]];
  };
  Number number = chosen(middle);
  for (int side = 0; side < sides; ++side) {
    number.value[side] = chosen(side).value[side];
    number.slope[side] = chosen(side).slope[side];
  }
  return number;
}

/// A function of the operands of a step, and its partial derivatives.
class ConditionedScore::Function {
public:
  Function(const FloatOp *op, std::optional<double> exponent, Type rounds)
      : op(op), exponent(exponent), rounds(rounds) {}

  double value(const double *x) const {
    if (rounds)
      return roundTo(x[0], rounds);
    return exponent ? std::pow(x[0], *exponent) : op->value(x);
  }

  void partials(const double *x, double *p) const {
    if (rounds)
      p[0] = 1;
    else if (exponent)
      p[0] = times(*exponent, std::pow(x[0], *exponent - 1));
    else
      op->partials(x, op->value(x), p);
  }

private:
  const FloatOp *op;
  std::optional<double> exponent;
  Type rounds;
};

/// How far a derivative may be from where it is.
static double distance(double a, double b) {
  double apart = std::abs(a - b);
  return a == b ? 0 : std::isnan(apart) ? infinity : apart;
}

/// Takes in what the op itself rounds.
static void addRounding(const Format &format, double &lo, double &hi) {
  auto room = [&](double x) {
    return opFactor * format.unit * std::abs(x) +
           (std::abs(x) < format.least ? format.least : 0);
  };
  lo -= room(lo);
  hi += room(hi);
  if (lo < -format.largest)
    lo = -infinity;
  if (hi > format.largest)
    hi = infinity;
}

/// A function at the middle, on the sides, and at the corners of what its
/// operands may be.
ConditionedScore::Number ConditionedScore::apply(const Step &step) const {
  Format format = formatOf(step.type);
  std::optional<double> exponent;
  if (step.kind == Kind::Power)
    exponent = static_cast<double>(leaves[step.leaf][middle].i);
  Function function(step.op, exponent,
                    step.kind == Kind::Round ? step.type : Type());
  Number result;
  Partials partials;
  for (int side = 0; side < sides; ++side) {
    Partials x = {}, p = {};
    for (size_t k = 0; k < step.operands.size(); ++k)
      x.at[k] = numbers[step.operands[k]].value[side];
    result.value[side] = function.value(x.at);
    function.partials(x.at, p.at);
    for (size_t k = 0; k < step.operands.size(); ++k)
      result.slope[side] +=
          times(p.at[k], numbers[step.operands[k]].slope[side]);
    if (side == middle)
      partials = p;
  }
  takeCorners(step, function, result, partials);
  bool isExact = step.kind == Kind::Round || (step.op && step.op->isExact);
  if (!isExact && !std::isnan(result.value[middle]))
    addRounding(format, result.lo, result.hi);
  else if (result.hi > format.largest)
    result.hi = infinity;
  result.slopeError =
      slopeErrorOf(step, partials, isExact ? 0 : opFactor * format.unit);
  return result;
}

/// What the result and the partial derivatives are at all ends of the operands.
void ConditionedScore::takeCorners(const Step &step, const Function &function,
                                   Number &result, Partials &partials) const {
  double centre = result.value[middle];
  result.lo = result.hi = centre;
  for (unsigned corner = 0; corner < 1U << step.operands.size(); ++corner) {
    Partials x = {}, p = {};
    for (auto [k, operand] : llvm::enumerate(step.operands))
      x.at[k] = corner >> k & 1 ? numbers[operand].hi : numbers[operand].lo;
    double y = function.value(x.at);
    if (std::isnan(y) != std::isnan(centre)) {
      result.lo = -infinity;
      result.hi = infinity;
    }
    result.lo = std::fmin(result.lo, y);
    result.hi = std::fmax(result.hi, y);
    function.partials(x.at, p.at);
    for (size_t k = 0; k < step.operands.size(); ++k)
      partials.spread[k] =
          std::max(partials.spread[k], distance(p.at[k], partials.at[k]));
  }
  // Corners do not show the pole between them.
  if (!step.divides)
    return;
  const Number &divisor = numbers[step.operands[1]];
  if (divisor.lo <= 0 && divisor.hi >= 0 && divisor.lo != divisor.hi) {
    result.lo = -infinity;
    result.hi = infinity;
  }
}

double ConditionedScore::slopeErrorOf(const Step &step,
                                      const Partials &partials,
                                      double rounding) const {
  double sum = 0;
  for (auto [k, number] : llvm::enumerate(step.operands)) {
    const Number &operand = numbers[number];
    double slope = std::abs(operand.slope[middle]);
    double by = std::abs(partials.at[k]);
    // A function's own derivative is computed of terms of about 1.
    double own = step.operands.size() == 1 ? 1 + by : by;
    sum +=
        times(by, operand.slopeError) +
        times(partials.spread[k] + rounding * own, slope + operand.slopeError);
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// What is asked for
//===----------------------------------------------------------------------===//

oracle::Range ConditionedScore::range(ArrayRef<Scalar> arguments,
                                      double error) {
  if (!prepare(arguments, error))
    return {-infinity, infinity};
  const Number &number = run(scoreStep);
  double centre = number.value[middle];
  oracle::Range range{number.lo, number.hi};
  for (double side : number.value) {
    if (std::isnan(side) != std::isnan(centre))
      return {-infinity, infinity};
    if (side == centre)
      continue;
    // Both ends move by as much; from an infinity, to where the side is.
    double by = std::isfinite(centre) ? side - centre : 0;
    range.lo = std::min({range.lo, range.lo + by, side});
    range.hi = std::max({range.hi, range.hi + by, side});
  }
  return range;
}

/// The slope of the result in a direction.
oracle::Slope ConditionedScore::slopeIn(int direction) {
  const Number &number = run(direction);
  oracle::Slope slope;
  slope.slope = number.slope[middle];
  slope.error = number.slopeError;
  double apart = 0;
  for (double side : number.slope)
    apart = std::max(apart, distance(side, slope.slope));
  slope.error += apart;
  return slope;
}

oracle::Slope ConditionedScore::slope(ArrayRef<Scalar> arguments, double error,
                                      bool wantsElements) {
  oracle::Slope slope;
  if (!prepare(arguments, error)) {
    slope.slope = std::nan("");
    return slope;
  }
  slope = slopeIn(scoreStep);
  for (size_t number = 0; wantsElements && number < steps.size(); ++number) {
    const Step &step = steps[number];
    if (!step.table)
      continue;
    SmallVector<int64_t, 4> indices;
    for (int leaf : step.indices)
      indices.push_back(leaves[leaf][middle].i);
    oracle::Slope by = slopeIn(int(number));
    slope.elements.push_back(
        {*step.table, step.read->offset(indices), by.slope, by.error});
  }
  return slope;
}
