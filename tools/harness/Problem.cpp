//===- Problem.cpp - the oracle's view of an attention --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/Problem.h"
#include "tools/harness/Condition.h"
#include "tools/harness/Tensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <atomic>
#include <unordered_map>

using namespace mlir;
using namespace burst;

const oracle::Tolerance &burst::toleranceOf(Type element) {
  if (element.isF64())
    return oracle::toleranceF64;
  if (element.isF16())
    return oracle::toleranceF16;
  if (element.isBF16())
    return oracle::toleranceBF16;
  return oracle::toleranceF32;
}

/// The value of a captured operand: an argument's, or a constant.
static FailureOr<RegionEvaluator::Capture>
valueOf(AttentionInterface op, Value operand, const Values &values) {
  auto found = values.find(operand);
  if (found != values.end())
    return found->second;
  Attribute attribute;
  RegionEvaluator::Capture capture;
  if (!matchPattern(operand, m_Constant(&attribute)))
    return op->emitOpError("captures what is neither argument nor constant");
  if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
    capture.scalar.i = integer.getValue().getSExtValue();
    return capture;
  }
  if (auto real = dyn_cast<FloatAttr>(attribute)) {
    capture.scalar.f = real.getValueAsDouble();
    return capture;
  }
  auto dense = dyn_cast<DenseIntOrFPElementsAttr>(attribute);
  if (!dense)
    return op->emitOpError("captures a constant that cannot be evaluated: ")
           << attribute;
  capture.table = std::make_shared<Tensor>(dense.getType().getShape(),
                                           dense.getElementType());
  if (isa<FloatType>(dense.getElementType()))
    for (const APFloat &value : dense.getValues<APFloat>())
      capture.table->floats.push_back(FloatAttr::getValueAsDouble(value));
  else
    for (const APInt &value : dense.getValues<APInt>())
      capture.table->ints.push_back(value.getSExtValue());
  return capture;
}

FailureOr<std::vector<RegionEvaluator::Capture>>
burst::captureValues(AttentionInterface op, OperandRange operands,
                     const Values &values) {
  std::vector<RegionEvaluator::Capture> result;
  for (Value operand : operands) {
    auto value = valueOf(op, operand, values);
    if (failed(value))
      return failure();
    result.push_back(*value);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

namespace {
/// What many threads evaluate, each with a copy of its own.
template <typename T>
class PerThread {
public:
  explicit PerThread(T evaluator)
      : master(std::make_shared<T>(std::move(evaluator))) {
    static std::atomic<uint64_t> next{0};
    id = next++;
  }

  T &get() const {
    thread_local std::unordered_map<uint64_t, T> copies;
    return copies.try_emplace(id, *master).first->second;
  }

private:
  std::shared_ptr<T> master;
  uint64_t id;
};

/// A region that has no value gives NaN, which no comparison accepts.
std::optional<Scalar> evaluate(RegionEvaluator &evaluator,
                               ArrayRef<Scalar> arguments) {
  if (!evaluator.evaluate(arguments))
    return std::nullopt;
  return evaluator.result(0);
}

/// b, h, i, j, Sq, Sk.
std::array<Scalar, 6> indices(const oracle::Point &point,
                              const oracle::Sizes &sizes) {
  std::array<Scalar, 6> result;
  const int64_t values[] = {point.b, point.h,       point.i,
                            point.j, sizes.queries, sizes.keys};
  for (auto [scalar, value] : llvm::zip_equal(result, values))
    scalar.i = value;
  return result;
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// Makes the problem of an op. What only gradients need is a part of it always:
/// it costs nothing until it is evaluated.
class ProblemMaker {
public:
  ProblemMaker(AttentionInterface op, const Values &values)
      : op(op), values(values), numbers(op.getScoreCaptures().size()) {}

  FailureOr<oracle::BackwardProblem> run();

private:
  using Tables = ArrayRef<RegionEvaluator::Capture>;

  const Tensor *tensor(Value value) const;
  LogicalResult addBackward(AttentionBackwardOp backward);
  LogicalResult addMaskRegion();
  LogicalResult addScoreRegion();
  LogicalResult addNames(ArrayAttr names, OperandRange operands);
  void addName(Attribute name, Tables tables, std::optional<int64_t> number);
  LogicalResult checkTables(NamedRegionInterface name, Tables tables);

  AttentionInterface op;
  const Values &values;
  oracle::BackwardProblem result;
  oracle::Problem &problem = result.forward;
  /// Of each capture of the score the number of its gradient, where wanted.
  SmallVector<std::optional<int64_t>> numbers;
};
} // namespace

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

LogicalResult ProblemMaker::addMaskRegion() {
  auto captures = captureValues(op, op.getMaskCaptures(), values);
  if (failed(captures))
    return failure();
  auto evaluator = RegionEvaluator::create(op.getMask(), *captures);
  if (!evaluator)
    return failure();
  problem.masks.push_back([region = PerThread(std::move(*evaluator)),
                           sizes = problem.sizes](const oracle::Point &point) {
    auto keep = evaluate(region.get(), indices(point, sizes));
    return keep && keep->i != 0;
  });
  return success();
}

/// A score, b, h, i, j, Sq, Sk.
static std::array<Scalar, 7> scoreArguments(double s,
                                            const oracle::Point &point,
                                            const oracle::Sizes &sizes) {
  std::array<Scalar, 7> arguments;
  arguments[0].f = s;
  llvm::copy(indices(point, sizes), arguments.begin() + 1);
  return arguments;
}

LogicalResult ProblemMaker::addScoreRegion() {
  auto captures = captureValues(op, op.getScoreCaptures(), values);
  if (failed(captures))
    return failure();
  auto evaluator = RegionEvaluator::create(op.getScore(), *captures);
  auto copy = std::make_shared<Region>();
  auto conditioned =
      ConditionedScore::create(op.getScore(), *captures, numbers, *copy);
  if (!evaluator || !conditioned)
    return failure();
  problem.scores.push_back(
      [region = PerThread(std::move(*evaluator)), sizes = problem.sizes,
       state = stateTypeOf(op)](double s, const oracle::Point &point) {
        auto score = evaluate(region.get(), scoreArguments(s, point, sizes));
        return score ? toScore(score->f, state) : std::nan("");
      });
  PerThread condition(std::move(*conditioned));
  problem.unit = toleranceOf(op.getQuery().getType().getElementType()).score;
  problem.range = [copy, condition, sizes = problem.sizes,
                   state = stateTypeOf(op)](double s, double error,
                                            const oracle::Point &point) {
    oracle::Range range =
        condition.get().range(scoreArguments(s, point, sizes), error);
    return oracle::Range{toScore(range.lo, state), toScore(range.hi, state)};
  };
  result.slopes.push_back([copy, condition, sizes = problem.sizes](
                              double s, double error,
                              const oracle::Point &point, bool wantsElements) {
    return condition.get().slope(scoreArguments(s, point, sizes), error,
                                 wantsElements);
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// `number` is that of the gradient of the first table.
void ProblemMaker::addName(Attribute name, Tables tables,
                           std::optional<int64_t> number) {
  const oracle::Sizes &sizes = problem.sizes;
  auto addScore = [&](oracle::Score score, oracle::ScoreSlope slope) {
    problem.scores.push_back(
        [score = std::move(score),
         state = stateTypeOf(op)](double s, const oracle::Point &point) {
          return toScore(score(s, point), state);
        });
    result.slopes.push_back(std::move(slope));
  };
  TypeSwitch<Attribute>(name)
      .Case<CausalAttr>(
          [&](auto) { problem.masks.push_back(oracle::causal(sizes)); })
      .Case<WindowAttr>([&](WindowAttr window) {
        problem.masks.push_back(
            oracle::window(sizes, window.getLeft(), window.getRight()));
      })
      .Case<PrefixAttr>([&](PrefixAttr prefix) {
        problem.masks.push_back(oracle::prefix(sizes, prefix.getLength()));
      })
      .Case<DocumentsAttr>([&](auto) {
        problem.masks.push_back(oracle::documents(
            sizes, tables.front().table->ints, tables.back().table->ints));
      })
      .Case<AlibiAttr>([&](auto) {
        const Tensor &table = *tables.front().table;
        addScore(oracle::alibi(sizes, table.floats),
                 oracle::alibiSlope(sizes, table.size(), number));
      })
      .Case<SoftcapAttr>([&](SoftcapAttr softcap) {
        double cap = softcap.getCap().convertToDouble();
        addScore(oracle::softcap(cap), oracle::softcapSlope(cap));
      })
      .Case<BiasAttr>([&](auto) {
        const Tensor &table = *tables.front().table;
        std::vector<int64_t> shape(table.shape.begin(), table.shape.end());
        addScore(oracle::bias(sizes, shape, table.floats),
                 oracle::biasSlope(sizes, shape, number));
      });
}

/// The oracle ends the program when a table has not the size it needs: said
/// here first, for sizes that are known at run time only.
LogicalResult ProblemMaker::checkTables(NamedRegionInterface name,
                                        Tables tables) {
  const oracle::Sizes &s = problem.sizes;
  SmallVector<Type> types;
  for (const auto &table : tables)
    types.push_back(
        RankedTensorType::get(table.table->shape, table.table->element));
  auto emitError = [&] { return op->emitOpError(); };
  return name.verifyTables(emitError, types,
                           {s.batch, s.queries, s.keys, s.queryHeads,
                            s.keyHeads, s.queryDim, s.valueDim});
}

LogicalResult ProblemMaker::addNames(ArrayAttr names, OperandRange operands) {
  auto captures = captureValues(op, operands, values);
  if (failed(captures))
    return failure();
  Tables tables(*captures);
  for (auto [index, attribute] : llvm::enumerate(names)) {
    auto name = cast<NamedRegionInterface>(attribute);
    bool isLast = index + 1 == names.size();
    size_t taken = isLast ? tables.size() : name.numTables().first;
    if (taken != 0 && failed(checkTables(name, tables.take_front(taken))))
      return failure();
    std::optional<int64_t> number;
    if (name.isScore() && taken != 0)
      number = numbers[captures->size() - tables.size()];
    addName(attribute, tables.take_front(taken), number);
    tables = tables.drop_front(taken);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

const Tensor *ProblemMaker::tensor(Value value) const {
  auto found = values.find(value);
  return found == values.end() ? nullptr : found->second.table.get();
}

/// Out and lse of a forward pass of the same function are those that it
/// returned, or are left to the oracle.
LogicalResult ProblemMaker::addBackward(AttentionBackwardOp backward) {
  for (auto [number, capture] :
       llvm::enumerate(backward.getGradients().value_or(ArrayRef<int64_t>()))) {
    numbers[capture] = number;
    auto table = valueOf(op, op.getScoreCaptures()[capture], values);
    if (failed(table))
      return failure();
    result.tables.push_back(table->table->size());
  }
  const Tensor *outGrad = tensor(backward.getOutGrad());
  const Tensor *lseGrad = nullptr;
  if (Value given = backward.getLseGrad()) {
    lseGrad = tensor(given);
    if (!lseGrad)
      return backward.emitOpError("takes an lse_grad that is no argument");
    result.lseGrad = lseGrad->floats;
  }
  if (!outGrad)
    return backward.emitOpError("takes an out_grad that is no argument");
  result.outGrad = outGrad->floats;
  const Tensor *out = tensor(backward.getOut()),
               *lse = tensor(backward.getLse());
  auto forward = backward.getOut().getDefiningOp<AttentionOp>();
  bool isOne = forward && backward.getLse() == forward.getLse();
  if ((!out || !lse) && !isOne)
    return backward.emitOpError("takes an out or an lse that is no argument, "
                                "and not both from one forward pass");
  if (out)
    result.out = out->floats;
  if (lse)
    result.lse = lse->floats;
  return success();
}

FailureOr<oracle::BackwardProblem> ProblemMaker::run() {
  const Tensor *q = tensor(op.getQuery()), *k = tensor(op.getKey()),
               *v = tensor(op.getValue());
  if (!q || !k || !v)
    return op->emitOpError(
        "takes a tensor that is no argument of its function");
  problem.sizes = {q->shape[0], q->shape[1], k->shape[1], q->shape[2],
                   k->shape[2], q->shape[3], v->shape[3]};
  problem.scale = op.getScaleOrDefault();
  problem.query = q->floats;
  problem.key = k->floats;
  problem.value = v->floats;
  if (auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation()))
    if (failed(addBackward(backward)))
      return failure();
  if (ArrayAttr names = op.getMaskNamesAttr()) {
    if (failed(addNames(names, op.getMaskCaptures())))
      return failure();
  } else if (!op.getMask().empty() && failed(addMaskRegion())) {
    return failure();
  }
  if (ArrayAttr names = op.getScoreNamesAttr()) {
    if (failed(addNames(names, op.getScoreCaptures())))
      return failure();
  } else if (!op.getScore().empty() && failed(addScoreRegion())) {
    return failure();
  }
  return std::move(result);
}

FailureOr<oracle::Problem> burst::makeProblem(AttentionInterface op,
                                              const Values &values) {
  auto made = ProblemMaker(op, values).run();
  if (failed(made))
    return failure();
  return std::move(made->forward);
}

FailureOr<oracle::BackwardProblem> burst::makeProblem(AttentionBackwardOp op,
                                                      const Values &values) {
  return ProblemMaker(cast<AttentionInterface>(op.getOperation()), values)
      .run();
}

//===----------------------------------------------------------------------===//
// Arguments that a forward pass would have made
//===----------------------------------------------------------------------===//

Values burst::valuesOf(func::FuncOp function, ArrayRef<Argument> globals,
                       ArrayRef<TensorRef> results) {
  Values values;
  for (auto [argument, value] : llvm::zip(function.getArguments(), globals))
    values[argument] = value;
  Operation *ret = function.getBody().front().getTerminator();
  for (auto [operand, result] : llvm::zip(ret->getOperands(), results))
    values.try_emplace(operand).first->second.table = result;
  return values;
}

LogicalResult burst::giveForward(func::FuncOp function,
                                 ArrayRef<Argument> globals,
                                 const data::Tensors *given) {
  Values values = valuesOf(function, globals);
  auto isGiven = [&](Value value) {
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    return given && given->count(argumentNameOf(function, number)) != 0;
  };
  for (auto op : function.getOps<AttentionBackwardOp>()) {
    if (!isa<BlockArgument>(op.getOut()) || !isa<BlockArgument>(op.getLse()))
      continue;
    bool hasOut = isGiven(op.getOut()), hasLse = isGiven(op.getLse());
    if (hasOut && hasLse)
      continue;
    auto problem =
        makeProblem(cast<AttentionInterface>(op.getOperation()), values);
    if (failed(problem))
      return failure();
    oracle::Result result =
        oracle::evaluate(*problem, oracle::allRows(problem->sizes));
    Tensor &out = *values[op.getOut()].table, &lse = *values[op.getLse()].table;
    int64_t dims = problem->sizes.valueDim;
    for (auto [r, row] : llvm::enumerate(result.rows)) {
      int64_t at = oracle::outOffset(problem->sizes, row);
      for (int64_t d = 0; d < dims && !hasOut; ++d)
        out.floats[at + d] = roundTo(result.out[r * dims + d], out.element);
      if (!hasLse)
        lse.floats[oracle::lseOffset(problem->sizes, row)] =
            roundTo(result.lse[r], lse.element);
    }
  }
  return success();
}
