//===- AttentionVerify.cpp - the constraints of attentions ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace burst;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
/// A tensor of an attention, by the name that messages give it, and its shape.
struct Shaped {
  StringRef name;
  Value tensor;
  StringRef form;
  SmallVector<int64_t> shape;
  bool mayBeOfState = false; ///< of the type in which sums are made
};
} // namespace

/// (C1): a tensor has the shape that is wanted: a result exactly, an operand
/// where both are static.
static LogicalResult verifyShape(Operation *op, const Shaped &shaped) {
  RankedTensorType type = tensorType(shaped.tensor);
  bool isResult = shaped.tensor.getDefiningOp() == op;
  for (auto [found, size] : llvm::zip_equal(type.getShape(), shaped.shape))
    if (isResult ? found != size : !agree(found, size)) {
      auto diagnostic = op->emitOpError()
                        << shaped.name << " must have the shape " << shaped.form
                        << " = (";
      llvm::interleaveComma(shaped.shape, diagnostic, [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          diagnostic << '?';
        else
          diagnostic << size;
      });
      return diagnostic << "), got: " << type;
    }
  return success();
}

/// Whose shapes are known to those of the sizes, and whose elements agree:
/// those of rank 4 among each other, those of rank 3 with the state type.
static LogicalResult verifyTensors(AttentionInterface op,
                                   ArrayRef<Shaped> tensors) {
  for (const Shaped &shaped : tensors)
    if (failed(verifyShape(op, shaped)))
      return failure();
  AttentionSizes s = sizesOf(op);
  for (int64_t size : {s.batch, s.queries, s.keys, s.queryHeads})
    if (size >= maxPositions)
      return op->emitOpError("sizes must be below 2^40, got: ") << size;
  Type element = op.getQuery().getType().getElementType();
  FloatType state = stateTypeOf(op);
  for (const Shaped &shaped : tensors) {
    Type found = tensorType(shaped.tensor).getElementType();
    bool isRow = shaped.shape.size() == 3;
    if (isRow && found != state)
      return op->emitOpError()
             << shaped.name << " of " << element << " attention must be of "
             << state << ", got: " << found;
    if (!isRow && found != element && !(shaped.mayBeOfState && found == state))
      return op->emitOpError()
             << shaped.name << " must have the element type of query, "
             << element << ", got: " << found;
  }
  return success();
}

/// The shapes of what a query, key, value, result and row look like.
static Shaped likeQuery(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sq, Hq, Dqk)",
          {s.batch, s.queries, s.queryHeads, s.queryDim}};
}
static Shaped likeKey(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sk, Hkv, Dqk)",
          {s.batch, s.keys, s.keyHeads, s.queryDim}};
}
static Shaped likeValue(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sk, Hkv, Dv)",
          {s.batch, s.keys, s.keyHeads, s.valueDim}};
}
static Shaped likeOut(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sq, Hq, Dv)",
          {s.batch, s.queries, s.queryHeads, s.valueDim}};
}
static Shaped likeLse(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name, tensor, "(B, Hq, Sq)", {s.batch, s.queryHeads, s.queries}};
}

// attention_c2
static LogicalResult verifyHeads(AttentionInterface op) {
  for (Value value :
       {Value(op.getQuery()), Value(op.getKey()), Value(op.getValue())}) {
    RankedTensorType type = tensorType(value);
    if (type.isDynamicDim(2) || type.isDynamicDim(3))
      return op->emitOpError("heads and head dims must be static, got: ")
             << type;
  }
  AttentionSizes s = sizesOf(op);
  if (s.keyHeads < 1 || s.queryHeads < 1 || s.queryHeads % s.keyHeads != 0)
    return op->emitOpError("query heads must be a multiple of key heads, got: ")
           << s.queryHeads << " and " << s.keyHeads;
  for (int64_t size : {s.queryDim, s.valueDim})
    if (size < 1 || size > 256)
      return op->emitOpError("head dims must be in [1, 256], got: ") << size;
  return success();
}

// attention_c4
static LogicalResult verifyNames(AttentionInterface op, RegionRole kind,
                                 ArrayAttr names, Region &region,
                                 TypeRange captures) {
  if (!names) {
    if (region.empty() && !captures.empty())
      return op->emitOpError()
             << stringify(kind) << " captures values but has no region";
    return success();
  }
  if (!region.empty())
    return op->emitOpError()
           << stringify(kind) << " must be names or a region, got both";
  if (names.empty())
    return op->emitOpError() << stringify(kind) << " names must not be empty";
  auto emitError = [&] { return op->emitOpError(); };
  AttentionSizes sizes = sizesOf(op);
  for (auto [index, attribute] : llvm::enumerate(names)) {
    auto named = dyn_cast<NamedRegionInterface>(attribute);
    if (!named || named.isScore() != (kind == RegionRole::Score))
      return op->emitOpError() << "expects the name of a " << stringify(kind)
                               << ", got: " << attribute;
    auto [least, most] = named.numTables();
    // Only the last name may be open-ended about how many it takes.
    unsigned taken = index + 1 == names.size()
                         ? static_cast<unsigned>(captures.size())
                         : std::min<unsigned>(least, captures.size());
    if (taken < least || taken > most)
      return op->emitOpError()
             << stringify(kind) << " " << attribute << " takes " << least
             << (most > least ? " or " + std::to_string(most) : "")
             << " tables, got: " << taken;
    TypeRange tables = captures.take_front(taken);
    if (taken != 0 && failed(named.verifyTables(emitError, tables, sizes)))
      return failure();
    captures = captures.drop_front(taken);
  }
  return success();
}

/// What does not depend on what is computed.
static LogicalResult verifyClauses(AttentionInterface op) {
  // attention_c6
  for (Type type : llvm::concat<const Type>(op.getMaskCaptures().getTypes(),
                                            op.getScoreCaptures().getTypes()))
    if (!isCapture(type) || isa<MemRefType>(type))
      return op->emitOpError(
                 "captures must be scalars, or tables of scalars of "
                 "rank 1 to 4, got: ")
             << type;
  if (failed(verifyNames(op, RegionRole::Mask, op.getMaskNamesAttr(),
                         op.getMask(), op.getMaskCaptures().getTypes())) ||
      failed(verifyNames(op, RegionRole::Score, op.getScoreNamesAttr(),
                         op.getScore(), op.getScoreCaptures().getTypes())))
    return failure();
  // attention_c8
  if (!std::isfinite(scaleOf(op)))
    return op->emitOpError("scale must be finite, got: ") << op.getScaleAttr();
  FloatType state = stateTypeOf(op);
  if (std::abs(scaleOf(op)) > largestScore(state))
    return op->emitOpError("scale must be at most ")
           << llvm::formatv("{0:e2}", largestScore(state)).str()
           << " in magnitude, as scores in " << state
           << " are, got: " << op.getScaleAttr();
  return success();
}

LogicalResult AttentionOp::verify() {
  // attention_c1, attention_c3
  SmallVector<Shaped> tensors{
      likeQuery(*this, "query", getQuery()), likeKey(*this, "key", getKey()),
      likeValue(*this, "value", getValue()), likeOut(*this, "out", getOut()),
      likeLse(*this, "lse", getLse())};
  if (getMaxScores())
    tensors.push_back(likeLse(*this, "max_scores", getMaxScores()));
  if (failed(verifyHeads(*this)) || failed(verifyTensors(*this, tensors)))
    return failure();
  return verifyClauses(*this);
}

// attention_backward_c2
static LogicalResult verifyGradients(AttentionBackwardOp op) {
  ArrayRef<int64_t> wanted = op.getGradients().value_or(ArrayRef<int64_t>());
  if (wanted.size() != op.getCaptureGrads().size())
    return op.emitOpError("gives a gradient per captured table in `gradients`, "
                          "got: ")
           << op.getCaptureGrads().size() << " for " << wanted.size();
  auto captures = op.getScoreCaptures();
  for (auto [index, n] : llvm::enumerate(wanted)) {
    if (n < 0 || n >= static_cast<int64_t>(captures.size()))
      return op.emitOpError("`gradients` counts the captures of the score, of "
                            "which there are ")
             << captures.size() << ", got: " << n;
    if (llvm::is_contained(wanted.take_front(index), n))
      return op.emitOpError("`gradients` names capture ") << n << " twice";
    auto table = dyn_cast<RankedTensorType>(captures[n].getType());
    if (!table || !isa<FloatType>(table.getElementType()))
      return op.emitOpError("only a table of floats has a gradient, capture ")
             << n << " is " << captures[n].getType();
    auto type = table.clone(stateTypeOf(op));
    if (Value grad = op.getCaptureGrads()[index]; grad.getType() != type)
      return op.emitOpError("the gradient of capture ")
             << n << " must be " << type << ", got: " << grad.getType();
  }
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  // attention_backward_c1
  SmallVector<Shaped> tensors{likeQuery(*this, "query", getQuery()),
                              likeKey(*this, "key", getKey()),
                              likeValue(*this, "value", getValue()),
                              likeOut(*this, "out", getOut()),
                              likeLse(*this, "lse", getLse()),
                              likeOut(*this, "out_grad", getOutGrad()),
                              likeQuery(*this, "query_grad", getQueryGrad()),
                              likeKey(*this, "key_grad", getKeyGrad()),
                              likeValue(*this, "value_grad", getValueGrad())};
  for (Shaped &gradient : MutableArrayRef(tensors).take_back(2))
    gradient.mayBeOfState = true;
  if (getLseGrad())
    tensors.push_back(likeLse(*this, "lse_grad", getLseGrad()));
  if (failed(verifyHeads(*this)) || failed(verifyTensors(*this, tensors)) ||
      failed(verifyClauses(*this)))
    return failure();
  return verifyGradients(*this);
}

// attention_c5
static LogicalResult verifyAllRegions(AttentionInterface op) {
  FloatType state = stateTypeOf(op);
  TypeRange mask = op.getMaskCaptures().getTypes();
  if (failed(verifyRegion(op, RegionRole::Mask, op.getMask(), state, mask)) ||
      failed(verifyRegion(op, RegionRole::Score, op.getScore(), state,
                          op.getScoreCaptures().getTypes())))
    return failure();
  if (!op.getBounds().empty() && op.getMask().empty())
    return op->emitOpError("bounds are bounds of a mask region, got none");
  return verifyRegion(op, RegionRole::Bounds, op.getBounds(), state, mask);
}

LogicalResult AttentionOp::verifyRegions() { return verifyAllRegions(*this); }

LogicalResult AttentionBackwardOp::verifyRegions() {
  if (failed(verifyAllRegions(*this)))
    return failure();
  if (!getGradient().empty() && getScore().empty())
    return emitOpError("a gradient region is that of a score region, got none");
  return verifyRegion(*this, RegionRole::Gradient, getGradient(),
                      stateTypeOf(*this), getScoreCaptures().getTypes());
}

// attention_c7
static LogicalResult verifyGrid(AttentionInterface op) {
  const std::pair<StringRef, AxesAttr> others[] = {
      {"heads", op.getHeadsAttr()}, {"batch", op.getBatchAttr()}};
  if (!op.getSequence()) {
    for (auto [name, axes] : others)
      if (axes)
        return op->emitOpError("shards ")
               << name << " over " << axes
               << " and has no sequence; give it one, of no axes where it "
                  "stays whole, as in `sequence <"
               << axes.getGrid() << "[], contiguous>`";
    return success();
  }
  SequenceAttr sequence = *op.getSequence();
  if (failed(resolveLayout(op, sequence)))
    return failure();
  shard::GridOp grid = lookupGrid(op, sequence.getGrid());
  SmallVector<StringRef> users(grid.getRank());
  auto take = [&](StringRef name, ArrayRef<int64_t> axes) -> LogicalResult {
    for (int64_t axis : llvm::seq(grid.getRank())) {
      if (!axes.empty() && !llvm::is_contained(axes, axis))
        continue;
      if (!users[axis].empty())
        return op->emitOpError("shards ")
               << users[axis] << " and " << name << " over axis " << axis
               << " of " << sequence.getGrid() << "; name axes for each, as in "
               << "`sequence <" << sequence.getGrid() << "[0], zigzag> heads <"
               << sequence.getGrid() << "[1]>`";
      users[axis] = name;
    }
    return success();
  };
  if (failed(take("sequence", sequence.getAxes())))
    return failure();
  for (auto [name, axes] : others) {
    if (!axes)
      continue;
    if (axes.getGrid() != sequence.getGrid())
      return op->emitOpError("shards ")
             << name << " over " << axes.getGrid() << ", and its sequence over "
             << sequence.getGrid() << ", got two grids";
    if (failed(resolveAxes(op, axes.getGrid(), axes.getAxes())) ||
        failed(take(name, axes.getAxes())))
      return failure();
  }
  for (auto [axis, user] : llvm::enumerate(users))
    if (user.empty() && grid.getShape()[axis] != 1)
      return op->emitOpError("shards nothing over axis ")
             << axis << " of " << sequence.getGrid() << ", of "
             << grid.getShape()[axis]
             << " ranks, which would all do the same; shard the sequence, "
                "heads or batch over it";
  return success();
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGrid(*this);
}

LogicalResult AttentionBackwardOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGrid(*this);
}
