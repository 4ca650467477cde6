//===- Memory.cpp - memory for what a program makes -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Bufferize/Bufferizer.h"

using namespace mlir;
using namespace burst;
using namespace burst::bufferizing;

Value Bufferizer::allocate(MemRefType type, ValueRange sizes,
                           StringRef memory) {
  return tile::AllocateOp::create(builder, loc, type, memory, sizes);
}

/// The result of the program that `tensor`, part of a state or a gradient,
/// turns into; null where it does not.
Value Bufferizer::resultBuffer(Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  auto isReturn = [](OpOperand &use) {
    return isa<func::ReturnOp>(use.getOwner()) && isReturnedInPlace(use);
  };
  while (tensor) {
    auto uses = tensor.getUses();
    auto returned = llvm::find_if(uses, isReturn);
    OpOperand *use = returned != uses.end() ? &*returned : updatingUse(tensor);
    if (!use)
      return {};
    if (!isa<func::ReturnOp>(use->getOwner())) {
      tensor = updated(*use);
      continue;
    }
    Value buffer = results[use->getOperandNumber()];
    bool fits = cast<MemRefType>(buffer.getType()).getElementType() == element;
    return fits ? buffer : Value();
  }
  return {};
}

/// How many positions an owner holds.
static Value countOf(OpBuilder &builder, Location loc, ring::LayoutAttr layout,
                     Value owner, Value extent) {
  if (layout.getAll())
    return extent;
  Value count;
  for (int64_t i = 0; i < layout.getNumSegments(); ++i) {
    auto segment =
        ring::SegmentOp::create(builder, loc, i, layout, owner, extent);
    count = count
                ? arith::AddIOp::create(builder, loc, count, segment.getCount())
                : Value(segment.getCount());
  }
  return count;
}

/// How many positions the largest shard of what a transfer brings has.
Value Bufferizer::capacity(ring::LayoutAttr layout, Value extent) {
  if (layout.getAll())
    return extent;
  Value zero = constant(0);
  auto most = scf::ForOp::create(
      builder, loc, zero, constant(layout.getParts()), constant(1), zero,
      [&](OpBuilder &at, Location loc, Value owner, ValueRange args) {
        Value count = countOf(at, loc, layout, owner, extent);
        Value max = arith::MaxSIOp::create(at, loc, args.front(), count);
        scf::YieldOp::create(at, loc, max);
      });
  return most.getResult(0);
}

/// Buffers for `count` slices of `type` and the sizes of `tensor`, but with
/// `capacity` positions along `dim`.
Value Bufferizer::allocateSlices(RankedTensorType type, Value tensor,
                                 int64_t dim, Value capacity, int64_t count,
                                 StringRef memory) {
  SmallVector<int64_t> shape{count};
  SmallVector<Value> sizes;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    shape.push_back(type.getDimSize(d));
    if (!type.isDynamicDim(d))
      continue;
    sizes.push_back(
        d == dim ? capacity
                 : memref::DimOp::create(builder, loc, map(tensor), constant(d))
                       .getResult());
  }
  return allocate(MemRefType::get(shape, type.getElementType()), sizes, memory);
}

/// Which of so many slots is that of this turn, or of the turn before: the last
/// one in front of all turns.
OpFoldResult Bufferizer::slotOf(int64_t count, bool ofTurnBefore) {
  if (count == 1 || !turn)
    return builder.getIndexAttr(count - 1);
  Value number = turn;
  if (ofTurnBefore)
    number = arith::AddIOp::create(builder, loc, number, constant(count - 1));
  return arith::RemUIOp::create(builder, loc, number, constant(count))
      .getResult();
}

/// A slot, as large as the owner's shard.
Value Bufferizer::viewSlot(RankedTensorType type, const Extent &sharded,
                           Value slot, OpFoldResult number) {
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank + 1, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes{builder.getIndexAttr(1)};
  SmallVector<OpFoldResult> strides(rank + 1, builder.getIndexAttr(1));
  offsets[0] = number;
  for (int64_t d = 0; d < rank; ++d) {
    if (!type.isDynamicDim(d)) {
      sizes.push_back(builder.getIndexAttr(type.getDimSize(d)));
    } else if (d != sharded.dim) {
      sizes.push_back(
          memref::DimOp::create(builder, loc, slot, d + 1).getResult());
    } else {
      Value owner = sharded.owner ? map(sharded.owner) : Value();
      sizes.push_back(
          countOf(builder, loc, sharded.layout, owner, map(sharded.extent)));
    }
  }
  auto slots = cast<MemRefType>(slot.getType());
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(
      type.getShape(), slots, offsets, sizes, strides);
  Value slice = memref::SubViewOp::create(builder, loc, view, slot, offsets,
                                          sizes, strides);
  return memref::CastOp::create(builder, loc, bufferType(type), slice);
}

/// What tensor `index` of a transfer is received into.
Value Bufferizer::received(ring::TransferOpInterface op, unsigned index,
                           Value slot, int64_t turns) {
  auto token = cast<ring::TokenType>(op.getToken().getType());
  return viewSlot(cast<RankedTensorType>(token.getTypes()[index]),
                  {op.getDims()[index], op.getReceivedLayout(),
                   receivedOwner(op), op.getExtent()},
                  slot, slotOf(turns));
}

/// Whose shards a transfer brings; null where those of all.
Value Bufferizer::receivedOwner(ring::TransferOpInterface op) {
  switch (op.getRoute()) {
  case ring::Route::Shift:
    return op.getReceivedOwner();
  case ring::Route::AllGather:
    return {};
  case ring::Route::ToSequence:
    return op.getOwner();
  case ring::Route::ToHeads:
    break;
  }
  auto members = static_cast<int64_t>(op.getMembers());
  Value group = arith::DivUIOp::create(builder, loc, map(op.getOwner()),
                                       constant(members));
  mapping.map(group, group); // no value of the old program
  return group;
}

/// The memory of the result of the program that a tensor is; null where it is
/// none.
Value Bufferizer::returnedMemory(Value tensor) {
  for (OpOperand &use : tensor.getUses())
    if (isa<func::ReturnOp>(use.getOwner()) && isReturnedInPlace(use))
      return results[use.getOperandNumber()];
  return {};
}

/// A chunk of the heads of a buffer; see ring.take_heads.
Value Bufferizer::viewChunk(Value whole, RankedTensorType type, int64_t chunk,
                            int64_t count) {
  int64_t rank = type.getRank(), heads = ring::headsDimOf(type);
  SmallVector<OpFoldResult> offsets(rank, builder.getIndexAttr(0)), sizes;
  SmallVector<OpFoldResult> strides(rank, builder.getIndexAttr(1));
  offsets[heads] = builder.getIndexAttr(chunk);
  strides[heads] = builder.getIndexAttr(count);
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(
        type.isDynamicDim(d)
            ? OpFoldResult(
                  memref::DimOp::create(builder, loc, whole, d).getResult())
            : OpFoldResult(builder.getIndexAttr(type.getDimSize(d))));
  Value view =
      memref::SubViewOp::create(builder, loc, whole, offsets, sizes, strides);
  return memref::CastOp::create(builder, loc, bufferType(type), view);
}

/// The memory of the result of the program, or of its chunk, that an all-to-all
/// brings; null where it is none.
Value Bufferizer::receivedResult(ring::TransferOpInterface op, unsigned index) {
  if (op.getRoute() != ring::Route::ToSequence || !op.getToken().hasOneUse())
    return {};
  auto wait = dyn_cast<ring::WaitOp>(*op.getToken().getUsers().begin());
  if (!wait)
    return {};
  Value tensor = wait.getTensors()[index];
  if (Value whole = returnedMemory(tensor))
    return whole;
  if (!tensor.hasOneUse())
    return {};
  OpOperand &use = *tensor.use_begin();
  auto join = dyn_cast<ring::JoinHeadsOp>(use.getOwner());
  Value whole = join ? returnedMemory(join.getJoined()) : Value();
  return whole ? viewChunk(whole, cast<RankedTensorType>(tensor.getType()),
                           use.getOperandNumber(),
                           static_cast<int64_t>(join.getChunks().size()))
               : Value();
}

/// Memory for a result of a step, but for `others`: that of the result of the
/// program that it becomes, that of the operand it is tied to, or new memory.
Value Bufferizer::made(ring::StepOpInterface op, OpResult tensor,
                       ArrayRef<Value> others) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto sourceOf = [&](int64_t dim) { return op.getSizeSource(tensor, dim); };
  Value like = sourceOf(0).value;
  Value buffer = resultBuffer(tensor);
  if (llvm::is_contained(others, buffer))
    buffer = {};
  auto *result = llvm::find(results, buffer);
  if (buffer && result != results.end())
    requireSizes(std::distance(results.begin(), result), map(like));
  if (OpOperand *tied = op.getTiedOperand(tensor); tied && !buffer) {
    Value memory = map(tied->get());
    if (cast<MemRefType>(memory.getType()).getElementType() ==
        type.getElementType())
      buffer = memory;
  }
  if (Operation *before = reused.lookup(op); before && !buffer)
    buffer = map(before->getResult(tensor.getResultNumber()));
  if (!buffer) {
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      if (!type.isDynamicDim(d))
        continue;
      ring::SizeSource source = sourceOf(d);
      Value from = map(source.value);
      sizes.push_back(
          isTensor(source.value)
              ? memref::DimOp::create(builder, loc, from, source.dim)
                    .getResult()
              : from);
    }
    buffer = allocate(MemRefType::get(type.getShape(), type.getElementType()),
                      sizes, "state");
  }
  auto argument = dyn_cast<BlockArgument>(like);
  queries[buffer] = argument ? argument : queries.lookup(map(like));
  return buffer;
}
