//===- BurstOps.cpp - operations of the burst dialect ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace burst;

#define GET_OP_CLASSES
#include "dialect/Burst/BurstOps.cpp.inc"

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

AttentionSizes burst::sizesOf(AttentionInterface op) {
  auto merge = [](int64_t a, int64_t b) {
    return ShapedType::isDynamic(a) ? b : a;
  };
  RankedTensorType q = op.getQuery().getType(), k = op.getKey().getType(),
                   v = op.getValue().getType();
  return {merge(merge(q.getDimSize(0), k.getDimSize(0)), v.getDimSize(0)),
          q.getDimSize(1),
          merge(k.getDimSize(1), v.getDimSize(1)),
          q.getDimSize(2),
          k.getDimSize(2),
          q.getDimSize(3),
          v.getDimSize(3)};
}

double burst::scaleOf(AttentionInterface op) {
  if (FloatAttr scale = op.getScaleAttr())
    return scale.getValueAsDouble();
  return 1.0 / std::sqrt(static_cast<double>(sizesOf(op).queryDim));
}

double burst::largestScore(Type stateType) {
  double largest = stateType.isF64() ? std::numeric_limits<double>::max()
                                     : std::numeric_limits<float>::max();
  return largest / std::numbers::log2e;
}

double burst::toScore(double s, Type stateType) {
  return std::abs(s) > largestScore(stateType) ? std::copysign(HUGE_VAL, s) : s;
}

FloatType burst::stateTypeOf(AttentionInterface op) {
  Type element = op.getQuery().getType().getElementType();
  Builder builder(op.getContext());
  return element.isF64() ? builder.getF64Type() : builder.getF32Type();
}

static constexpr bool ofQueries = false, ofKeys = true;

SmallVector<Sharded> AttentionOp::getSharded() {
  SmallVector<Sharded> sharded{{getQuery(), 1, ofQueries},
                               {getKey(), 1, ofKeys},
                               {getValue(), 1, ofKeys},
                               {getOut(), 1, ofQueries},
                               {getLse(), 2, ofQueries}};
  if (getMaxScores())
    sharded.push_back({getMaxScores(), 2, ofQueries});
  return sharded;
}

SmallVector<Sharded> AttentionBackwardOp::getSharded() {
  SmallVector<Sharded> sharded{
      {getQuery(), 1, ofQueries},     {getKey(), 1, ofKeys},
      {getValue(), 1, ofKeys},        {getOut(), 1, ofQueries},
      {getLse(), 2, ofQueries},       {getOutGrad(), 1, ofQueries},
      {getQueryGrad(), 1, ofQueries}, {getKeyGrad(), 1, ofKeys},
      {getValueGrad(), 1, ofKeys}};
  if (getLseGrad())
    sharded.push_back({getLseGrad(), 2, ofQueries});
  return sharded;
}

//===----------------------------------------------------------------------===//
// table_range, contribute
//===----------------------------------------------------------------------===//

LogicalResult TableRangeOp::verify() {
  auto table = cast<ShapedType>(getTable().getType());
  if (!table.hasRank() || !table.getElementType().isSignlessIntOrIndex() ||
      !isRegionScalar(table.getElementType()))
    return emitOpError("needs a table of index or of integers of 1 to 64 bits, "
                       "got: ")
           << table;
  for (size_t indices : {getFrom().size(), getTo().size()})
    if (table.getRank() != static_cast<int64_t>(indices))
      return emitOpError("needs an index range per dimension of ")
             << table << ", got: " << indices;
  return success();
}

LogicalResult ContributeOp::verify() {
  auto target = dyn_cast<BlockArgument>(getTable());
  // contribute_c1
  if (!target || target.getOwner() != (*this)->getBlock())
    return emitOpError("must add to an argument of its region");
  // contribute_c2
  Type type = target.getType();
  auto table = dyn_cast<RankedTensorType>(type);
  if (!isCapture(type) || isa<MemRefType>(type) ||
      !isa<FloatType>(getElementTypeOrSelf(type)))
    return emitOpError("needs a captured float or table of floats, got: ")
           << type;
  size_t rank = table ? table.getRank() : 0;
  if (getIndices().size() != rank)
    return emitOpError("needs an index per dimension of ")
           << type << ", got: " << getIndices().size();
  return success();
}

//===----------------------------------------------------------------------===//
// shard, unshard
//===----------------------------------------------------------------------===//

// unshard_c1, unshard_c2
static LogicalResult verifySharding(Operation *op, RankedTensorType global,
                                    RankedTensorType shard, int64_t dim,
                                    SequenceAttr sequence) {
  if (dim < 0 || dim >= global.getRank())
    return op->emitOpError("dim must be in [0, ")
           << global.getRank() << "), got: " << dim;
  FailureOr<Layout> layout = resolveLayout(op, sequence);
  if (failed(layout))
    return failure();
  RankedTensorType wanted = shardType(global, dim, *layout);
  if (shard != wanted)
    return op->emitOpError("the shard of ")
           << global << " must be " << wanted << ", got: " << shard;
  return success();
}

LogicalResult UnshardOp::verifySymbolUses(SymbolTableCollection &) {
  RankedTensorType global = getGlobal().getType();
  int64_t dim = getDim();
  std::optional<int64_t> extent = getConstantIntValue(getExtent());
  if (extent && (*extent < 0 || *extent >= maxPositions))
    return emitOpError("extent must be in [0, 2^40), got: ") << *extent;
  if (dim >= 0 && dim < global.getRank() && extent &&
      !agree(*extent, global.getDimSize(dim)))
    return emitOpError("the extent of ")
           << global << " along dimension " << dim << " is not " << *extent;
  return verifySharding(*this, global, getShard().getType(), dim,
                        getSequence());
}

LogicalResult ShardOp::verifySymbolUses(SymbolTableCollection &) {
  return verifySharding(*this, getGlobal().getType(), getShard().getType(),
                        getDim(), getSequence());
}
