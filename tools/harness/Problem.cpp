//===- Problem.cpp - the oracle's view of an attention --------------------===//
#include "tools/harness/Problem.h"

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
valueOf(AttentionOp op, Value operand, const Values &values) {
  auto found = values.find(operand);
  if (found != values.end())
    return found->second;
  Attribute attribute;
  RegionEvaluator::Capture capture;
  if (!matchPattern(operand, m_Constant(&attribute)))
    return op.emitOpError("captures what is neither argument nor constant");
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
    return op.emitOpError("captures a constant that cannot be evaluated: ")
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

static FailureOr<std::vector<RegionEvaluator::Capture>>
valuesOf(AttentionOp op, OperandRange operands, const Values &values) {
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
/// A region that many threads evaluate, each with a copy of its own.
class SharedRegion {
public:
  explicit SharedRegion(RegionEvaluator evaluator)
      : master(std::make_shared<RegionEvaluator>(std::move(evaluator))) {
    static std::atomic<uint64_t> next{0};
    id = next++;
  }

  /// A region that divides by zero or leaves a table has no value: NaN, which
  /// no comparison accepts.
  std::optional<Scalar> evaluate(ArrayRef<Scalar> arguments) const {
    thread_local std::unordered_map<uint64_t, RegionEvaluator> copies;
    auto [entry, isNew] = copies.try_emplace(id, *master);
    if (!entry->second.evaluate(arguments))
      return std::nullopt;
    return entry->second.result(0);
  }

private:
  std::shared_ptr<RegionEvaluator> master;
  uint64_t id;
};

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
} // namespace

static FailureOr<SharedRegion>
shareRegion(AttentionOp op, Region &region,
            ArrayRef<RegionEvaluator::Capture> captures) {
  auto evaluator = RegionEvaluator::create(region, captures);
  if (!evaluator)
    return failure();
  return SharedRegion(std::move(*evaluator));
}

static LogicalResult addMaskRegion(AttentionOp op, const Values &values,
                                   oracle::Problem &problem) {
  auto captures = valuesOf(op, op.getMaskCaptures(), values);
  if (failed(captures))
    return failure();
  auto region = shareRegion(op, op.getMask(), *captures);
  if (failed(region))
    return failure();
  problem.masks.push_back(
      [region = *region, sizes = problem.sizes](const oracle::Point &point) {
        auto keep = region.evaluate(indices(point, sizes));
        return keep && keep->i != 0;
      });
  return success();
}

static LogicalResult addScoreRegion(AttentionOp op, const Values &values,
                                    oracle::Problem &problem) {
  auto captures = valuesOf(op, op.getScoreCaptures(), values);
  if (failed(captures))
    return failure();
  auto region = shareRegion(op, op.getScore(), *captures);
  if (failed(region))
    return failure();
  problem.scores.push_back([region = *region, sizes = problem.sizes](
                               double s, const oracle::Point &point) {
    std::array<Scalar, 7> arguments;
    arguments[0].f = s;
    llvm::copy(indices(point, sizes), arguments.begin() + 1);
    auto score = region.evaluate(arguments);
    return score ? score->f : std::nan("");
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static void addName(Attribute name, ArrayRef<RegionEvaluator::Capture> tables,
                    oracle::Problem &problem) {
  const oracle::Sizes &sizes = problem.sizes;
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
        problem.scores.push_back(
            oracle::alibi(sizes, tables.front().table->floats));
      })
      .Case<SoftcapAttr>([&](SoftcapAttr softcap) {
        problem.scores.push_back(
            oracle::softcap(softcap.getCap().convertToDouble()));
      })
      .Case<BiasAttr>([&](auto) {
        const Tensor &table = *tables.front().table;
        problem.scores.push_back(oracle::bias(
            sizes, {table.shape.begin(), table.shape.end()}, table.floats));
      });
}

/// The oracle ends the program when a table has not the size it needs: said
/// here first, for sizes that are known at run time only.
static LogicalResult checkTables(AttentionOp op, NamedRegionInterface name,
                                 ArrayRef<RegionEvaluator::Capture> tables,
                                 const oracle::Sizes &s) {
  SmallVector<Type> types;
  for (const auto &table : tables)
    types.push_back(
        RankedTensorType::get(table.table->shape, table.table->element));
  auto emitError = [&] { return op.emitOpError(); };
  return name.verifyTables(emitError, types,
                           {s.batch, s.queries, s.keys, s.queryHeads,
                            s.keyHeads, s.queryDim, s.valueDim});
}

static LogicalResult addNames(AttentionOp op, ArrayAttr names,
                              OperandRange operands, const Values &values,
                              oracle::Problem &problem) {
  auto captures = valuesOf(op, operands, values);
  if (failed(captures))
    return failure();
  ArrayRef<RegionEvaluator::Capture> tables(*captures);
  for (auto [index, attribute] : llvm::enumerate(names)) {
    auto name = cast<NamedRegionInterface>(attribute);
    bool isLast = index + 1 == names.size();
    size_t taken = isLast ? tables.size() : name.numTables().first;
    if (taken != 0 &&
        failed(checkTables(op, name, tables.take_front(taken), problem.sizes)))
      return failure();
    addName(attribute, tables.take_front(taken), problem);
    tables = tables.drop_front(taken);
  }
  return success();
}

FailureOr<oracle::Problem> burst::makeProblem(AttentionOp op,
                                              const Values &values) {
  auto tensor = [&](Value value) -> const Tensor * {
    auto found = values.find(value);
    return found == values.end() ? nullptr : found->second.table.get();
  };
  const Tensor *q = tensor(op.getQuery()), *k = tensor(op.getKey()),
               *v = tensor(op.getValue());
  if (!q || !k || !v)
    return op.emitOpError("takes a tensor that is no argument of its function");
  oracle::Problem problem;
  problem.sizes = {q->shape[0], q->shape[1], k->shape[1], q->shape[2],
                   k->shape[2], q->shape[3], v->shape[3]};
  problem.scale = op.getScaleOrDefault();
  problem.query = q->floats;
  problem.key = k->floats;
  problem.value = v->floats;
  if (ArrayAttr names = op.getMaskNamesAttr()) {
    if (failed(addNames(op, names, op.getMaskCaptures(), values, problem)))
      return failure();
  } else if (!op.getMask().empty() &&
             failed(addMaskRegion(op, values, problem))) {
    return failure();
  }
  if (ArrayAttr names = op.getScoreNamesAttr()) {
    if (failed(addNames(op, names, op.getScoreCaptures(), values, problem)))
      return failure();
  } else if (!op.getScore().empty() &&
             failed(addScoreRegion(op, values, problem))) {
    return failure();
  }
  return problem;
}
