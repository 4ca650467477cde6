//===- TransferOps.cpp - operations that communicate ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

void ring::addTransferEffects(TransferOpInterface op, Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), ChannelResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), ChannelResource::get());
  addEffects(effects, op->getOpOperands(), op.getInto());
}

void StartOp::getEffects(Effects &effects) {
  addTransferEffects(*this, effects);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

LogicalResult ring::verifyTransfer(Operation *operation) {
  auto op = cast<TransferOpInterface>(operation);
  // start_c1
  if (failed(verifyDims(op)))
    return failure();
  // start_c2
  SmallVector<Value> shaped(op.getTensors());
  llvm::append_range(shaped, op.getInto());
  if (failed(verifyForm(op, shaped, 1, /*keepsResults=*/true)))
    return failure();
  bool buffers = isa<MemRefType>(op.getTensors().front().getType());
  SmallVector<Type> received(op.getToken().getType().getTypes());
  if (buffers && !received.empty())
    return op.emitOpError("on buffers has a token without types, got: ")
           << op.getToken().getType();
  if (buffers)
    llvm::append_range(received, op.getInto().getTypes());
  bool isResized = op.isGather() || op.getLayout().getAll();
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
  bool fits = received.size() == op.getTensors().size();
  for (size_t i = 0; fits && i < received.size(); ++i)
    fits = fitsTensor(op.getTensors()[i], received[i], op.getDims()[i]);
  if (!fits)
    return op.emitOpError("receives tensors of the kind it sends, got: ")
           << received << " for " << op.getTensors().getTypes();
  // start_c5
  if (op.isGather() && failed(verifyPart(op, op.getLayout())))
    return failure();
  for (Value peer : {op.getTo(), op.getReceivedOwner(), op.getFrom()})
    if (!peer != op.isGather())
      return op.emitOpError("has peers in a shift, and in an all_gather none");
  // start_c3
  return verifySegments(op, buffers, /*isTurnImplied=*/op.isGather());
}

LogicalResult ring::verifyChannel(Operation *op, ChannelAttr channel,
                                  int64_t parts) {
  FailureOr<RankGroup> group =
      resolveAxes(op, channel.getGrid(), channel.getAxes());
  if (failed(group))
    return failure();
  if (group->size != parts)
    return op->emitOpError("needs a channel of ")
           << parts << " ranks, as its layout says, got: " << channel << " of "
           << group->size;
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
