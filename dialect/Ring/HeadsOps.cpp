//===- HeadsOps.cpp - chunks of heads -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Ring.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

RankedTensorType burst::ring::withHeads(RankedTensorType type, int64_t heads) {
  SmallVector<int64_t> shape(type.getShape());
  shape[headsDimOf(type)] = heads;
  return type.clone(shape);
}

/// Whether `whole` has the heads of `count` tensors of type `chunk`.
static LogicalResult verifyChunks(Operation *op, Type whole, Type chunk,
                                  int64_t count) {
  if (count < 2 || count > maxHeadChunks)
    return op->emitOpError("has 2 to ")
           << maxHeadChunks << " chunks of heads, got: " << count;
  auto ofAll = cast<RankedTensorType>(whole);
  auto ofOne = cast<RankedTensorType>(chunk);
  int64_t heads = ofAll.getDimSize(headsDimOf(ofAll));
  if (ShapedType::isDynamic(heads) || heads % count != 0)
    return op->emitOpError("needs a static number of heads that ")
           << count << " chunks divide, got: " << ofAll;
  if (ofOne != withHeads(ofAll, heads / count))
    return op->emitOpError("has chunks of ")
           << heads / count << " heads of " << ofAll << ", got: " << ofOne;
  return success();
}

LogicalResult TakeHeadsOp::verify() {
  auto chunk = static_cast<int64_t>(getChunk());
  auto count = static_cast<int64_t>(getNumChunks());
  // take_heads_c1, c2
  if (failed(verifyChunks(*this, getTensor().getType(), getTaken().getType(),
                          count)))
    return failure();
  if (chunk < 0 || chunk >= count)
    return emitOpError("takes one of ")
           << count << " chunks, from 0 on, got: " << chunk;
  return success();
}

LogicalResult JoinHeadsOp::verify() {
  // join_heads_c1
  for (Type type : getChunks().getTypes())
    if (type != getChunks().getTypes().front())
      return emitOpError("joins chunks of one type, got: ")
             << type << " and " << getChunks().getTypes().front();
  if (getChunks().empty())
    return emitOpError("has 2 to ")
           << maxHeadChunks << " chunks of heads, got: 0";
  return verifyChunks(*this, getJoined().getType(),
                      getChunks().getTypes().front(),
                      static_cast<int64_t>(getChunks().size()));
}

LogicalResult SumChunksOp::verify() {
  // sum_chunks_c1
  auto count = static_cast<int64_t>(getChunks().size());
  if (count >= 2 && count <= maxHeadChunks)
    return success();
  return emitOpError("adds 2 to ")
         << maxHeadChunks << " gradients, got: " << count;
}
