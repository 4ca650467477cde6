//===- LowerStaged.cpp - steps whose kernels are of GPUs ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Tile/AttendKernel.h"
#include "passes/Tile/CtaGradient.h"
#include "passes/Tile/Lowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

/// Launches the kernel of a GPU, which copies its tiles to shared memory
/// itself.
void Lowering::attendStaged(TileBuilder &b, ring::AttendOp op, Shape shape,
                            const Schedule &schedule) {
  shape.operand = cast<FloatType>(
      cast<MemRefType>(op.getQuery().getType()).getElementType());
  AttendArguments arguments;
  Operands operands;
  arguments.bindTo(operands, op, schedule, /*packed=*/nullptr,
                   /*stored=*/Value());
  launch(b, "attend", schedule.tasks, schedule.order, operands,
         [&](TileBuilder &inside, Value task) {
           AttendKernel(inside, op, shape, schedule, arguments).build(task);
         });
}

/// Launches the kernels of a GPU that list the same tiles.
void Lowering::attendGradStaged(TileBuilder &b, ring::AttendGradOp op,
                                const CtaShape &cta, ArrayRef<Sums> kernels) {
  Shape shape = shapeOf(op.getGrads()[0]);
  shape.rows = cta.rows;
  shape.columns = cta.columns;
  shape.warps = cta.warps;
  shape.operand = cast<FloatType>(
      cast<MemRefType>(op.getQuery().getType()).getElementType());
  // Schedules have queries by rows.
  bool ofKeys = kernels.front() != Sums::OfQueries;
  Shape tiles = shape;
  if (ofKeys)
    std::swap(tiles.rows, tiles.columns);
  Schedule schedule(b, op, tiles,
                    ofKeys ? Schedule::Lists::OfKeys
                           : Schedule::Lists::OfQueries);
  schedule.build([&](StringRef name, Value tasks, Value order,
                     const Operands &operands, Body body) {
    launch(b, name, tasks, order, operands, body, /*warps=*/0);
  });
  auto headsOf = [](Value shard) {
    return cast<MemRefType>(shard.getType()).getDimSize(2);
  };
  schedule.sort(ofKeys ? headsOf(op.getQuery()) / headsOf(op.getKey()) : 1);
  for (Sums sums : kernels) {
    StringRef name = sums == Sums::OfQueries  ? "attend_grad_queries"
                     : sums == Sums::OfValues ? "attend_grad_values"
                                              : "attend_grad_keys";
    CtaGradientArguments arguments;
    Operands operands;
    arguments.bindTo(operands, op, schedule, sums);
    launch(
        b, name, schedule.tasks, schedule.order, operands,
        [&](TileBuilder &inside, Value task) {
          CtaGradient(inside, op, shape, schedule, arguments, sums).build(task);
        },
        cta.warps)
        ->setAttr(tile::gradientAttr,
                  b.getStringAttr(ofKeys ? "keys" : "queries"));
  }
  schedule.release();
}

void Lowering::attendGrad(TileBuilder &b, ring::AttendGradOp op) {
  if (!options.warps)
    return attendGradTiled(b, op);
  int64_t dim = dimOf(op.getQuery()), valueDim = dimOf(op.getValue());
  auto given = [&](ArrayRef<int64_t> sizes, CtaShape known) {
    if (!sizes.empty())
      return CtaShape{sizes[0], sizes[1], sizes[2]};
    known.columns = std::min<int64_t>(known.columns, options.columns);
    return known;
  };
  attendGradStaged(b, op,
                   given(options.queryGradients, queryCtaOf(dim, valueDim)),
                   Sums::OfQueries);
  attendGradStaged(b, op, given(options.keyGradients, keyCtaOf(dim, valueDim)),
                   keySumsOf(dim, valueDim));
}

/// Whether a GPU's kernel can do an op.
LogicalResult Lowering::verifyStaged(Operation *op) {
  if (isa<ring::ScoresOp, ring::ScoreOp, ring::SoftmaxOp, ring::WeighOp,
          ring::ProbabilitiesOp, ring::WeighGradOp, ring::ScoreGradOp>(op))
    return op->emitOpError("keeps scores in memory, for which there is no "
                           "kernel for GPUs");
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (type && type.getElementType().isF64())
      return op->emitOpError(
                 "has a kernel for GPUs in f32, bf16 and f16, got: ")
             << type;
  }
  if (auto zero = dyn_cast<ring::ZeroOp>(op);
      zero && !hasHeads(zero.getInto()) &&
      llvm::none_of(zero.getInto().getUsers(),
                    llvm::IsaPred<ring::AttendGradOp>))
    return op->emitOpError("has no kernel for GPUs for gradients of captured "
                           "tables, got: ")
           << zero.getInto().getType();
  Value query, value;
  SmallVector<Value, 2> extents;
  if (auto attend = dyn_cast<ring::AttendOp>(op)) {
    query = attend.getQuery();
    value = attend.getValue();
    extents = {attend.getQueryExtent(), attend.getKeyExtent()};
  } else if (auto gradient = dyn_cast<ring::AttendGradOp>(op)) {
    query = gradient.getQuery();
    value = gradient.getValue();
    extents = {gradient.getQueryExtent(), gradient.getKeyExtent()};
    if (!gradient.getCaptures().empty())
      return op->emitOpError(
          "has no kernel for GPUs that adds to gradients of captured tables: "
          "their order would not be one; leave `gradients` out, or run it on "
          "processors");
  } else {
    return success();
  }
  for (Value extent : extents)
    if (std::optional<int64_t> size = getConstantIntValue(extent);
        size && *size > tile::largestExtent)
      return op->emitOpError("has a kernel for GPUs of sequences of at most ")
             << tile::largestExtent << " positions, got: " << *size;
  auto type = cast<MemRefType>(query.getType());
  if (type.getElementTypeBitWidth() != 16)
    return op->emitOpError("has a kernel for GPUs of queries, keys and values "
                           "in bf16 or f16, got: ")
           << type;
  for (int64_t dim : {dimOf(query), dimOf(value)})
    if (dim % 8 != 0 || dim > 256)
      return op->emitOpError(
                 "has a kernel for GPUs of head dimensions that are "
                 "multiples of 8, at most 256, got: ")
             << dim;
  return success();
}
