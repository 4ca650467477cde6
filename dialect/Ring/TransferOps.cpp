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

/// Whether ranks of an all-to-all may share the heads of what it sends, or of
/// what it brings.
static LogicalResult verifyAllToAll(TransferOpInterface op) {
  auto members = static_cast<int64_t>(op.getMembers());
  int64_t parts = op.getLayout().getParts();
  if (members < 1 || parts % members != 0)
    return op.emitOpError("is over ranks that divide the ")
           << parts << " parts of its layout, got: " << members;
  auto groups = static_cast<int64_t>(op.getGroups());
  if (groups < 1 || groups > members)
    return op.emitOpError("has 1 to ")
           << members << " groups of heads, one of its ranks at least in each, "
           << "got: " << groups;
  for (auto [tensor, dim] : llvm::zip_equal(op.getTensors(), op.getDims())) {
    ShapedType type = shapedType(tensor);
    if (type.getRank() != 3 && type.getRank() != 4)
      return op.emitOpError("shards heads of tensors of 3 or 4 dimensions, "
                            "got: ")
             << type;
    int64_t heads = type.getDimSize(headsDimOf(type));
    if (op.getRoute() == Route::ToHeads && !ShapedType::isDynamic(heads) &&
        heads % groups != 0)
      return op.emitOpError("has heads in groups that divide them, got: ")
             << heads << " heads in " << groups << " groups";
    if (dim == headsDimOf(type))
      return op.emitOpError("shards heads in place of another dimension, got: ")
             << dim << " of " << type << ", that of the heads";
    if (heads == 0)
      return op.emitOpError("exchanges tensors with heads, got: ") << type;
  }
  return success();
}

/// Whether all heads of `whole`, and no others, are among those of the members
/// of an all-to-all, of which each has a tensor `part`.
static bool haveAllHeads(TransferOpInterface op, ShapedType whole,
                         ShapedType part) {
  int64_t all = whole.getDimSize(headsDimOf(whole)),
          most = part.getDimSize(headsDimOf(part));
  auto members = static_cast<int64_t>(op.getMembers()),
       groups = static_cast<int64_t>(op.getGroups());
  if (ShapedType::isDynamic(all) || ShapedType::isDynamic(most))
    return true;
  if (all % groups != 0)
    return false;
  if (all == groups && members > groups)
    return op.getRoute() == Route::ToHeads && most == 1;
  return (members == 1 ? most == all : most < all) &&
         all / groups <= most * (members / groups);
}

LogicalResult ring::verifyTransfer(Operation *operation) {
  auto op = cast<TransferOpInterface>(operation);
  // start_c1
  if (failed(verifyDims(op)))
    return failure();
  // start_c6
  if (op.isAllToAll() && failed(verifyAllToAll(op)))
    return failure();
  if (!op.isAllToAll() && op.getMembers() != 1)
    return op.emitOpError("is over several members in an all_to_all only, "
                          "got: ")
           << op.getMembers();
  if (!op.isAllToAll() && op.getGroups() != 1)
    return op.emitOpError("has groups of heads in an all_to_all only, got: ")
           << op.getGroups();
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
  bool isResized = op.isGather() || op.isAllToAll() || op.getLayout().getAll();
  auto fitsTensor = [&](Value tensor, Type given, int64_t dim) {
    ShapedType sent = shapedType(tensor);
    auto type = dyn_cast<ShapedType>(given);
    if (!type || type.getElementType() != sent.getElementType() ||
        !type.hasRank() || type.getRank() != sent.getRank())
      return false;
    SmallVector<int64_t> shape(sent.getShape());
    if (isResized)
      shape[dim] = ShapedType::kDynamic;
    if (op.isAllToAll()) {
      bool toHeads = op.getRoute() == Route::ToHeads;
      shape[headsDimOf(sent)] = ShapedType::kDynamic;
      if (!haveAllHeads(op, toHeads ? sent : type, toHeads ? type : sent))
        return false;
    }
    return agree(type.getShape(), shape);
  };
  bool fits = received.size() == op.getTensors().size();
  for (size_t i = 0; fits && i < received.size(); ++i)
    fits = fitsTensor(op.getTensors()[i], received[i], op.getDims()[i]);
  if (!fits)
    return op.emitOpError("receives tensors of the kind it sends, got: ")
           << received << " for " << op.getTensors().getTypes();
  // start_c5
  bool isShift = op.getRoute() == Route::Shift;
  if (!isShift && failed(verifyPart(op, op.getLayout())))
    return failure();
  for (Value peer : {op.getTo(), op.getReceivedOwner(), op.getFrom()})
    if (!peer == isShift)
      return op.emitOpError("has peers in a shift, and in an ")
             << (op.isAllToAll() ? "all_to_all" : "all_gather") << " none";
  // start_c3
  if (op.isAllToAll() && op.getSegments())
    return op.emitOpError("sends all segments in an all_to_all, got a table of "
                          "them");
  return verifySegments(op, buffers, /*isTurnImplied=*/op.isGather());
}

LogicalResult ring::verifyChannel(Operation *op, ChannelAttr channel,
                                  int64_t parts, bool mayBePart) {
  FailureOr<RankGroup> group =
      resolveAxes(op, channel.getGrid(), channel.getAxes());
  if (failed(group))
    return failure();
  int64_t inGrid =
      burst::groupOf(burst::lookupGrid(op, channel.getGrid()), {}).size;
  bool isPart = parts % group->size == 0 && inGrid % parts == 0;
  if (group->size != parts && !(mayBePart && isPart))
    return op->emitOpError("needs a channel of ")
           << parts << " ranks, as its layout says, got: " << channel << " of "
           << group->size;
  return success();
}

// start_c4, start_c6
LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &) {
  bool isAllToAll = cast<TransferOpInterface>(getOperation()).isAllToAll();
  if (getRoute() == Route::Shift)
    return verifyChannel(*this, getChannel(), getLayout().getParts(),
                         /*mayBePart=*/true);
  if (failed(verifyChannel(*this, getChannel(),
                           isAllToAll ? static_cast<int64_t>(getMembers())
                                      : getLayout().getParts())))
    return failure();
  auto program = getOperation()->getParentOfType<FunctionOpInterface>();
  if (!isAllToAll || !program ||
      program->getAttr(gridAttr) != getChannel().getGrid())
    return success();
  return verifyExchanges(program);
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
