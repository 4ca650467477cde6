//===- CheckTables.cpp - tables are as large as what reads them -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Bounds/Emitter.h"
#include "passes/Passes.h"
#include "passes/Plan.h"

#include "llvm/ADT/TypeSwitch.h"

namespace burst {
#define GEN_PASS_DEF_CHECKTABLESPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;
using bounds::Bool;
using bounds::Emitter;
using Number = bounds::Scalar; // Not that of the machine.

namespace {

/// Exactly the least and the greatest value of an expression over all pairs of
/// the problem.
struct Extremes {
  Number lo, hi;
  /// Which of b, h, i and j it depends on, a bit each.
  unsigned variables = 0;
};

/// Checks the tables that one region reads.
class TableChecker {
public:
  TableChecker(AttentionInterface op, RegionRole role, Region &region,
               OperandRange captures, Emitter &emitter)
      : op(op), arguments(RegionArguments::of(role, region.front())),
        region(region), captures(captures), e(emitter) {}

  LogicalResult run();

private:
  Number sizeOf(Value tensor, int64_t dim, int64_t size);
  Number extentOf(Value tensor, int64_t size);
  void findVariables();
  std::optional<Extremes> rangeOf(Value value);
  std::optional<Extremes> compute(Operation *expression);
  LogicalResult check(tensor::ExtractOp read);
  void require(Number found, Number wanted, const Twine &what);
  std::string nameOf(Value table);

  AttentionInterface op;
  RegionArguments arguments;
  Region &region;
  OperandRange captures;
  Emitter &e;
  llvm::DenseMap<Value, Extremes> known;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> dims;
  /// Whether the problem has no pair; then nothing is read.
  Bool isEmpty;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// The size of a dimension, a constant where `size` says it.
Number TableChecker::sizeOf(Value tensor, int64_t dim, int64_t size) {
  if (!ShapedType::isDynamic(size))
    return Emitter::constant(size);
  Value &found = dims[{tensor, dim}];
  if (!found)
    found = tensor::DimOp::create(e.getBuilder(), e.getLoc(), tensor, dim);
  return e.scalar(found, 0, maxPositions);
}

/// The number of positions of a sharded tensor.
Number TableChecker::extentOf(Value tensor, int64_t size) {
  if (!ShapedType::isDynamic(size))
    return Emitter::constant(size);
  return e.scalar(tensor.getDefiningOp<UnshardOp>().getExtent(), 0,
                  maxPositions);
}

static int64_t numHeads(Value shard) {
  auto type = cast<RankedTensorType>(shard.getType());
  return type.getDimSize(ring::headsDimOf(type));
}

void TableChecker::findVariables() {
  AttentionSizes sizes = op.getSizes();
  Value inside = op.getQuery().getDefiningOp<UnshardOp>().getShard();
  Value shard = ring::behindAllToAll(inside);
  // Heads of a rank in between may be fewer than it has room for: those of all
  // ranks are counted in front of the all-to-all.
  Number heads = Emitter::constant(
      numHeads(shard) *
      (shard == inside
           ? numParts(op, op.getHeadsAttr())
           : ring::shardingOf(op->getParentOfType<func::FuncOp>()).heads.size));
  auto ofAll = [&](Number ofRank, AxesAttr axes) {
    return axes ? e.mul(ofRank, Emitter::constant(numParts(op, axes))) : ofRank;
  };
  Number queries = extentOf(op.getQuery(), sizes.queries);
  Number keys = extentOf(op.getKey(), sizes.keys);
  const std::pair<Value, Number> variables[] = {
      {arguments.b, ofAll(sizeOf(shard, 0, sizes.batch), op.getBatchAttr())},
      {arguments.h, heads},
      {arguments.i, queries},
      {arguments.j, keys}};
  Number zero = Emitter::constant(0), one = Emitter::constant(1);
  isEmpty = Emitter::known(false);
  for (auto [index, variable] : llvm::enumerate(variables)) {
    auto [value, size] = variable;
    known[value] = {zero, e.sub(size, one), 1U << index};
    isEmpty = e.either(isEmpty, e.compare(Emitter::Predicate::eq, size, zero));
  }
  known[arguments.sq] = {queries, queries};
  known[arguments.sk] = {keys, keys};
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Whether a range lies in a type with room to spare: nothing wrapped.
static bool fits(const Extremes &range, Type type) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  int64_t limit = int64_t{1} << std::min(width - 1, 60U);
  return range.lo.min >= -limit && range.hi.max < limit;
}

std::optional<Extremes> TableChecker::rangeOf(Value value) {
  if (auto entry = known.find(value); entry != known.end())
    return entry->second;
  if (auto constant = getConstantIntValue(value))
    return Extremes{Emitter::constant(*constant), Emitter::constant(*constant)};
  if (!value.getDefiningOp() || !value.getType().isIntOrIndex())
    return std::nullopt;
  std::optional<Extremes> range = compute(value.getDefiningOp());
  if (!range || !fits(*range, value.getType()))
    return std::nullopt;
  known[value] = *range;
  return range;
}

/// What is monotone in each operand takes its extremes where they do, as long
/// as no variable occurs in both.
std::optional<Extremes> TableChecker::compute(Operation *expression) {
  SmallVector<Extremes> operands;
  for (Value operand : expression->getOperands()) {
    std::optional<Extremes> range = rangeOf(operand);
    if (!range)
      return std::nullopt;
    operands.push_back(*range);
  }
  using Step = Number (Emitter::*)(Number, Number);
  auto rising = [&](Step step) -> std::optional<Extremes> {
    auto [x, y] = std::pair(operands[0], operands[1]);
    if ((x.variables & y.variables) != 0)
      return std::nullopt;
    return Extremes{(e.*step)(x.lo, y.lo), (e.*step)(x.hi, y.hi),
                    x.variables | y.variables};
  };
  auto byPositive = [&](Step step) -> std::optional<Extremes> {
    if (!operands[1].lo.isConstant() || operands[1].lo.min <= 0 ||
        operands[1].variables != 0)
      return std::nullopt;
    return rising(step);
  };
  // Below zero unsigned numbers are large, and divisions round to zero.
  bool isNatural =
      llvm::all_of(operands, [](const Extremes &x) { return x.lo.min >= 0; });
  return llvm::TypeSwitch<Operation *, std::optional<Extremes>>(expression)
      .Case<arith::AddIOp>([&](auto) { return rising(&Emitter::add); })
      .Case<arith::SubIOp>([&](auto) {
        std::swap(operands[1].lo, operands[1].hi);
        return rising(&Emitter::sub);
      })
      .Case<arith::MulIOp>([&](auto) { return byPositive(&Emitter::mul); })
      .Case<arith::FloorDivSIOp>(
          [&](auto) { return byPositive(&Emitter::floorDiv); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) {
        return isNatural ? byPositive(&Emitter::floorDiv) : std::nullopt;
      })
      .Case<arith::MinSIOp>([&](auto) { return rising(&Emitter::min); })
      .Case<arith::MaxSIOp>([&](auto) { return rising(&Emitter::max); })
      .Case<arith::MinUIOp>([&](auto) {
        return isNatural ? rising(&Emitter::min) : std::nullopt;
      })
      .Case<arith::MaxUIOp>([&](auto) {
        return isNatural ? rising(&Emitter::max) : std::nullopt;
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(
          [&](auto) { return operands[0]; })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) {
        return isNatural ? std::optional(operands[0]) : std::nullopt;
      })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

std::string TableChecker::nameOf(Value table) {
  auto argument = dyn_cast<BlockArgument>(table);
  if (!argument)
    return "a constant table";
  return argumentName(op->getParentOfType<func::FuncOp>(),
                      argument.getArgNumber());
}

/// Once for all reads that need it.
void TableChecker::require(Number found, Number wanted, const Twine &what) {
  OpBuilder &builder = e.getBuilder();
  Value a = e.materialize(found), b = e.materialize(wanted);
  std::string text = what.str();
  for (Operation *user : a.getUsers())
    if (auto other = dyn_cast<ring::RequireOp>(user))
      if (other.getFound() == a && other.getWanted() == b &&
          other.getWhat() == text)
        return;
  ring::RequireOp::create(builder, e.getLoc(), a, b, text);
}

LogicalResult TableChecker::check(tensor::ExtractOp read) {
  auto argument = dyn_cast<BlockArgument>(read.getTensor());
  if (!argument)
    return success();
  size_t leading = region.getNumArguments() - captures.size();
  Value table = captures[argument.getArgNumber() - leading];
  ArrayRef<int64_t> shape = read.getTensor().getType().getShape();
  for (auto [dim, index] : llvm::enumerate(read.getIndices())) {
    Number zero = Emitter::constant(0), one = Emitter::constant(1);
    std::optional<Extremes> range = rangeOf(index);
    // An index that is clamped to a table still reads some element.
    Number wanted = range ? e.add(range->hi, one) : one;
    Number least = range ? range->lo : zero;
    // An argument itself needs no more than its size, of no pairs too.
    if (!range || !isa<BlockArgument>(index)) {
      wanted = e.select(isEmpty, zero, wanted);
      least = e.select(isEmpty, zero, least);
    }
    auto refuse = [&](const Twine &found) {
      auto error = op->emitOpError("reads ")
                   << nameOf(table) << " outside of its bounds: dimension "
                   << dim << " has " << shape[dim] << " entries, " << found;
      error.attachNote(read.getLoc()) << "it is read here";
      return error;
    };
    if (least.max < 0)
      return refuse("read from " + Twine(least.max));
    bool isKnown = !ShapedType::isDynamic(shape[dim]);
    if (isKnown && wanted.min > shape[dim])
      return refuse("wanted at least " + Twine(wanted.min));
    std::string where =
        ("dimension " + Twine(dim) + " of " + nameOf(table)).str();
    if (least.min < 0)
      require(least, zero, "least index into " + where);
    if (!isKnown || wanted.max > shape[dim])
      require(sizeOf(table, static_cast<int64_t>(dim), shape[dim]), wanted,
              "size of " + where);
  }
  return success();
}

LogicalResult TableChecker::run() {
  findVariables();
  for (auto read : region.getOps<tensor::ExtractOp>())
    if (failed(check(read)))
      return failure();
  return success();
}

namespace {
struct CheckTables : burst::impl::CheckTablesPassBase<CheckTables> {
  /// At the top of the function, in front of all that computes.
  static LogicalResult check(AttentionInterface op) {
    if (!op.getQuery().getDefiningOp<UnshardOp>() ||
        !op.getKey().getDefiningOp<UnshardOp>())
      return op->emitOpError("is not partitioned; run burst-partition first");
    OpBuilder builder(op.getContext());
    Block &top = op->getParentOfType<func::FuncOp>().getBody().front();
    builder.setInsertionPointToStart(&top);
    for (RegionRole role : {RegionRole::Mask, RegionRole::Score}) {
      bool isMask = role == RegionRole::Mask;
      Region &region = isMask ? op.getMask() : op.getScore();
      if (region.empty())
        continue;
      OperandRange captures =
          isMask ? op.getMaskCaptures() : op.getScoreCaptures();
      Emitter emitter(builder, op.getLoc());
      if (failed(TableChecker(op, role, region, captures, emitter).run()))
        return failure();
    }
    // Sizes that nothing needed after all.
    for (auto it = builder.getInsertionPoint(); it != top.begin();)
      if (isOpTriviallyDead(&*--it))
        it = top.getOperations().erase(it);
    return success();
  }

  void runOnOperation() override {
    WalkResult result = getOperation().walk(
        [](AttentionInterface op) -> WalkResult { return check(op); });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
