//===- RingBuilder.cpp - what all rings are built of ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Ring/RingBuilder.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace burst;

RingBuilder::RingBuilder(AttentionInterface op, const Deal &deal)
    : op(op), deal(deal), builder(op), loc(op.getLoc()),
      layout(ring::LayoutAttr::get(op.getContext(), deal)) {}

Value RingBuilder::neighbour(Value rank, int64_t offset) {
  Emit e = emit();
  return e.mod(e.add(rank, constant(offset)), deal.parts);
}

Value RingBuilder::turnTable(int64_t turns,
                             function_ref<Value(Emit, Value)> flag) {
  auto type = RankedTensorType::get({1, turns, 1}, builder.getI1Type());
  return tensor::GenerateOp::create(
      builder, loc, type, ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        tensor::YieldOp::create(inner, loc, flag({inner, loc}, indices[1]));
      });
}

void RingBuilder::beginProgram() {
  rank = shard::ProcessMultiIndexOp::create(
             builder, loc, op.getSequence()->getGrid().getValue(),
             ArrayRef<shard::GridAxis>{0})
             .getResult()
             .front();
}

Tensors RingBuilder::transfer(const Transfer &transfer) {
  SmallVector<Type> types(transfer.tensors.getTypes());
  auto start = ring::StartOp::create(
      builder, loc, ring::TokenType::get(op.getContext(), types),
      transfer.tensors, transfer.owner, transfer.extent, transfer.to,
      transfer.receivedOwner, transfer.from, transfer.flags.table,
      transfer.flags.turn, /*into=*/ValueRange(), transfer.dims, layout,
      ring::ChannelAttr::get(op.getContext(), op.getSequence()->getGrid(),
                             transfer.channel));
  auto wait = ring::WaitOp::create(builder, loc, types, start.getToken());
  return Tensors(wait.getTensors());
}

void RingBuilder::replace(Value global, Value tensor) {
  for (Operation *user : llvm::make_early_inc_range(global.getUsers())) {
    cast<ShardOp>(user).getResult().replaceAllUsesWith(tensor);
    user->erase();
  }
}

void RingBuilder::erase() {
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  // One tensor may be several operands.
  llvm::SmallSetVector<Operation *, 8> unshards;
  for (Value operand : operands)
    if (auto unshard = operand.getDefiningOp<UnshardOp>())
      unshards.insert(unshard);
  for (Operation *unshard : unshards)
    if (unshard->use_empty())
      unshard->erase();
}
