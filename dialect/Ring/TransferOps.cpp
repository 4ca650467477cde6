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
  bool fits =
      received.size() == getTensors().size() &&
      llvm::all_of(llvm::zip_equal(getTensors(), received), [](auto pair) {
        ShapedType sent = shapedType(std::get<0>(pair));
        auto type = dyn_cast<ShapedType>(std::get<1>(pair));
        return type && type.hasRank() &&
               type.getElementType() == sent.getElementType() &&
               agree(type.getShape(), sent.getShape());
      });
  if (!fits)
    return emitOpError("receives tensors of the kind it sends, got: ")
           << received << " for " << getTensors().getTypes();
  // start_c3
  return verifySegments(*this, buffers);
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
