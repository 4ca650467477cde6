//===- Verify.h - what the ops of the ring dialect share --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_VERIFY_H
#define BURST_DIALECT_RING_VERIFY_H

#include "dialect/Ring/Ring.h"

namespace burst::ring {

inline mlir::ShapedType shapedType(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType());
}

/// f64 for f64 shards, else f32.
mlir::FloatType stateTypeOf(mlir::ShapedType shard);

/// All values are tensors, or all are buffers. On buffers there are no results
/// but those that are no tensors.
llvm::LogicalResult verifyForm(mlir::Operation *op, mlir::ValueRange values,
                               size_t results, bool keepsResults = false);

/// Tensors or buffers are (batch, sequence, heads, dim) first, then (batch,
/// heads, sequence).
llvm::LogicalResult verifyRanks(mlir::Operation *op, mlir::ValueRange made);

/// The state (o, m) has the batch, sequence and heads of `shard`, a query or
/// the attention's result.
llvm::LogicalResult verifyState(mlir::Operation *op, mlir::ShapedType shard,
                                mlir::ShapedType o, mlir::ShapedType m);

using Effects = llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance>;

/// What an op reads and writes of its operands, where they are buffers.
void addEffects(Effects &effects,
                llvm::MutableArrayRef<mlir::OpOperand> operands,
                mlir::ValueRange written);

/// The same of a step, which writes what it makes or updates.
void addStepEffects(StepOpInterface step, Effects &effects);
void addStepEffects(AttendOp op, Effects &effects);

/// The same of a transfer, which is one with its channel.
void addTransferEffects(TransferOpInterface op, Effects &effects);

/// What travels is at least one tensor, with a dimension of each.
template <typename OpT>
llvm::LogicalResult verifyDims(OpT op) {
  size_t count = op.getTensors().size();
  if (count == 0 || op.getDims().size() != count)
    return op.emitOpError("needs at least one tensor and a dimension of each, "
                          "got: ")
           << count << " and " << op.getDims().size();
  for (auto [tensor, dim] : llvm::zip_equal(op.getTensors(), op.getDims()))
    if (dim < 0 || dim >= shapedType(tensor).getRank())
      return op.emitOpError("names dimension ")
             << dim << " of " << tensor.getType();
  return mlir::success();
}

/// A channel connects `parts` ranks; with `mayBePart` it may connect those of a
/// ring of a nest, which are some of them.
llvm::LogicalResult verifyChannel(mlir::Operation *op, ChannelAttr channel,
                                  int64_t parts, bool mayBePart = false);

/// A table of flags is a tensor where the op works on tensors, a buffer where
/// it works on buffers, and has `shape`, of which dynamic sizes are free. With
/// `mayRepeat`, sizes may be 1 where all are alike.
llvm::LogicalResult verifyTable(mlir::Operation *op, mlir::Value table,
                                bool isBuffer, llvm::ArrayRef<int64_t> shape,
                                bool mayRepeat = false);

/// Of shards, not of a gathered tensor.
inline llvm::LogicalResult verifyPart(mlir::Operation *op, LayoutAttr layout) {
  if (!layout.getAll())
    return mlir::success();
  return op->emitOpError("works on shards of one owner, got the layout of a "
                         "gathered tensor: ")
         << layout;
}

/// What `rotate` and `gather` share: merged are the states of one softmax,
/// added gradients by tensors.
template <typename OpT>
llvm::LogicalResult verifyPartials(OpT op, size_t partials) {
  if (op.getJoin() == Join::Merge && partials != 3)
    return op.emitOpError("merges one softmax state, (o, m, l), got: ")
           << partials << " partial results";
  if (op.getJoin() == Join::Add &&
      (partials == 0 || partials > op.getTensors().size()))
    return op.emitOpError("adds gradients by its tensors, of which there are ")
           << op.getTensors().size() << ", got: " << partials;
  return mlir::success();
}

/// The region of either ends in a yield of these types.
template <typename OpT>
llvm::LogicalResult verifyYield(OpT op, mlir::TypeRange given) {
  mlir::Operation *end = op.getBody().front().getTerminator();
  if (llvm::isa<YieldOp>(end) && end->getOperandTypes() == given)
    return mlir::success();
  return op.emitOpError("region ends in a ring.yield of ")
         << given << ", got: " << end->getOperandTypes();
}

/// What transfers, `merge` and `add` share: no flags of segments, or a turn and
/// a table by owner, turn and segment of the layout's parts. Where the turn is
/// implied, there is none.
template <typename OpT>
llvm::LogicalResult verifySegments(OpT op, bool isBuffer,
                                   bool isTurnImplied = false) {
  if (isTurnImplied && op.getTurn())
    return op.emitOpError("takes the distance between ranks for the turn, got "
                          "one");
  if (!isTurnImplied && !op.getSegments() != !op.getTurn())
    return op.emitOpError("needs a table of segments and a turn, or neither");
  ring::LayoutAttr layout = op.getLayout().ofPart();
  return verifyTable(
      op, op.getSegments(), isBuffer,
      {layout.getParts(), mlir::ShapedType::kDynamic, layout.getNumSegments()},
      /*mayRepeat=*/true);
}

/// What all attends share: as many parts in both layouts, all offsets or none,
/// no flags of pairs or a table of them, a finite scale, and captures that
/// regions can read.
template <typename OpT>
llvm::LogicalResult verifyAttendLike(OpT op) {
  if (op.getQueryLayout().getParts() != op.getKeyLayout().getParts())
    return op.emitOpError("layouts must have as many parts, got: ")
           << op.getQueryLayout() << " and " << op.getKeyLayout();
  if (size_t count = op.getOffsets().size(); count != 0 && count != 4)
    return op.emitOpError(
               "needs offsets of batch and heads, each with how many "
               "there are in all, or none, got: ")
           << count;
  bool buffers = llvm::isa<mlir::MemRefType>(op.getQuery().getType());
  if (failed(verifyTable(op, op.getPairs(), buffers,
                         {op.getQueryLayout().getNumOwners(),
                          op.getKeyLayout().getNumOwners(),
                          op.getQueryLayout().getNumSegments(),
                          op.getKeyLayout().getNumSegments()})))
    return mlir::failure();
  if (!op.getScale().isFinite())
    return op.emitOpError("scale must be finite, got: ") << op.getScaleAttr();
  for (mlir::Type type : llvm::concat<const mlir::Type>(
           op.getMaskCaptures().getTypes(), op.getScoreCaptures().getTypes()))
    if (!isCapture(type) || (llvm::isa<mlir::MemRefType>(type) && !buffers))
      return op.emitOpError("captures must be scalars, or tables of scalars of "
                            "rank 1 to 4, got: ")
             << type;
  return mlir::success();
}

/// The mask, score and bounds regions of both.
template <typename OpT>
llvm::LogicalResult verifyAttendRegions(OpT op) {
  mlir::FloatType state = op.getStateType();
  auto mask = asRegionArguments(op.getMaskCaptures().getTypes());
  auto score = asRegionArguments(op.getScoreCaptures().getTypes());
  if (op.getMask().empty() &&
      !(op.getMaskCaptures().empty() && op.getBounds().empty()))
    return op.emitOpError("captures and bounds are those of a mask region, got "
                          "none");
  if (op.getScore().empty() && !op.getScoreCaptures().empty())
    return op.emitOpError("score captures values but has no region");
  if (failed(verifyRegion(op, RegionRole::Mask, op.getMask(), state, mask)) ||
      failed(verifyRegion(op, RegionRole::Score, op.getScore(), state, score)))
    return mlir::failure();
  return verifyRegion(op, RegionRole::Bounds, op.getBounds(), state, mask);
}

using Operands = llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand>;

/// `kind(...) { ... }`, where it stands there.
mlir::ParseResult parseOptionalRegion(mlir::OpAsmParser &parser,
                                      RegionRole kind, mlir::Region &region,
                                      Operands &captures,
                                      llvm::SmallVector<mlir::Type> &types);

/// `offsets (%b of %batches, %h of %heads)`, where it stands there.
mlir::ParseResult parseOptionalOffsets(mlir::OpAsmParser &parser,
                                       Operands &offsets);

/// `pairs(%table : type)`, where it stands there.
mlir::ParseResult parseOptionalPairs(mlir::OpAsmParser &parser, Operands &pairs,
                                     llvm::SmallVector<mlir::Type> &types);

/// Offsets, the flags of pairs, the scale and the regions of queries that meet
/// keys.
void printClauses(mlir::OpAsmPrinter &printer, AttendLikeOpInterface op,
                  mlir::FloatAttr scale);

/// `<order over parts>` as attribute `name`.
mlir::ParseResult parseLayout(mlir::OpAsmParser &parser, llvm::StringRef name,
                              mlir::NamedAttrList &attributes);

} // namespace burst::ring

#endif // BURST_DIALECT_RING_VERIFY_H
