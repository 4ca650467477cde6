//===- TransferOps.cpp - operations that communicate ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

void StartOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), ChannelResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), ChannelResource::get());
  addEffects(effects, (*this)->getOpOperands(), getInto());
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

LogicalResult StartOp::verify() {
  // start_c1
  if (failed(verifyDims(*this)))
    return failure();
  // start_c2
  SmallVector<Value> shaped(getTensors());
  llvm::append_range(shaped, getInto());
  if (failed(verifyForm(*this, shaped, 1, /*keepsResults=*/true)))
    return failure();
  bool buffers = isa<MemRefType>(getTensors().front().getType());
  SmallVector<Type> received(getToken().getType().getTypes());
  if (buffers && !received.empty())
    return emitOpError("on buffers has a token without types, got: ")
           << getToken().getType();
  if (buffers)
    llvm::append_range(received, getInto().getTypes());
  bool isResized = isGather() || getLayout().getAll();
  auto fitsTensor = [&](Value tensor, Type given, int64_t dim) {
    ShapedType sent = shapedType(tensor);
    auto type = dyn_cast<ShapedType>(given);
    if (!type || type.getElementType() != sent.getElementType() ||
        !type.hasRank() || type.getRank() != sent.getRank())
      return false;
    SmallVector<int64_t> shape(sent.getShape());
    if (isResized)
      shape[dim] = ShapedType::kDynamic;
    return agree(type.getShape(), shape);
  };
  bool fits = received.size() == getTensors().size();
  for (size_t i = 0; fits && i < received.size(); ++i)
    fits = fitsTensor(getTensors()[i], received[i], getDims()[i]);
  if (!fits)
    return emitOpError("receives tensors of the kind it sends, got: ")
           << received << " for " << getTensors().getTypes();
  // start_c5
  if (isGather() && failed(verifyPart(*this, getLayout())))
    return failure();
  for (Value peer : {getTo(), getReceivedOwner(), getFrom()})
    if (!peer != isGather())
      return emitOpError("has peers in a shift, and in an all_gather none");
  // start_c3
  return verifySegments(*this, buffers, /*isTurnImplied=*/isGather());
}

LogicalResult ring::verifyChannel(Operation *op, ChannelAttr channel,
                                  int64_t parts) {
  shard::GridOp grid = lookupGrid(op, channel.getGrid());
  if (!grid)
    return failure();
  if (grid.getRank() != 1 || grid.getShape().front() != parts)
    return op->emitOpError("needs a grid of one axis of ")
           << parts << " ranks, as its layout says, got: " << channel.getGrid();
  return success();
}

// start_c4
LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyChannel(*this, getChannel(), getLayout().getParts());
}

LogicalResult WaitOp::verify() {
  if (TypeRange(getTensors().getTypes()) ==
      TypeRange(getToken().getType().getTypes()))
    return success();
  return emitOpError("must give what its token names, ")
         << getToken().getType() << ", got: " << getTensors().getTypes();
}

ParseResult WaitOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand token;
  TokenType type;
  if (parser.parseOperand(token) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperand(token, type, result.operands))
    return failure();
  result.addTypes(type.getTypes());
  return success();
}

void WaitOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getToken();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getToken().getType();
}

/// The shape of the tensor of which `type` is a shard.
static SmallVector<int64_t> globalShape(RankedTensorType type,
                                        ShardAttr shard) {
  SmallVector<int64_t> shape(type.getShape());
  shape[shard.getDim()] = shard.getExtent();
  return shape;
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &) {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto output = cast<RankedTensorType>(getOutput().getType());
  // exchange_c1
  if (input.getElementType() != output.getElementType() ||
      input.getRank() != output.getRank())
    return emitOpError("input and output must have one rank and element type, "
                       "got: ")
           << input << " and " << output;
  // exchange_c2
  for (ShardAttr shard : {getSource(), getTarget()}) {
    if (shard.getDim() >= input.getRank())
      return emitOpError("names dimension ")
             << shard.getDim() << " of " << input;
    if (ShapedType::isDynamic(shard.getExtent()))
      return emitOpError("needs known extents, got: ") << shard;
    if (failed(
            verifyChannel(*this, getChannel(), shard.getLayout().getParts())))
      return failure();
  }
  // exchange_c1
  if (!isShard(input, getSource()) || !isShard(output, getTarget()) ||
      !agree(globalShape(input, getSource()), globalShape(output, getTarget())))
    return emitOpError("input and output must be shards of one shape, got: ")
           << input << " and " << output;
  return success();
}
