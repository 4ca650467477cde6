//===- ForwardRing.cpp - the forward pass as a ring ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Builders.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;

namespace {

/// Keys and values travel past queries, which carry their softmax state; or
/// queries travel, whose state is their partial result.
class ForwardRing final : public ProgramBuilder {
public:
  ForwardRing(AttentionOp op, const Deal &deal, bool movesKeys)
      : ProgramBuilder(op, deal), op(op), movesKeys(movesKeys),
        query(unshardOf(op.getQuery())), key(unshardOf(op.getKey())),
        value(unshardOf(op.getValue())),
        out(shardType(cast<RankedTensorType>(op.getOut().getType()), 1, deal)) {
  }

  void build();

private:
  SmallVector<Type> stateTypes();
  Tensors attend(Value query, Value queryOwner, Value key, Value value,
                 Value keyOwner, ValueRange state);
  Tensors rotateKeys();
  Tensors rotateQueries();

  AttentionOp op;
  bool movesKeys;
  UnshardOp query, key, value; ///< what brings them
  RankedTensorType out;        ///< a shard of the result
};

} // namespace

/// Of (o, m, l).
SmallVector<Type> ForwardRing::stateTypes() {
  auto rows = RankedTensorType::get(
      {out.getDimSize(0), out.getDimSize(2), out.getDimSize(1)},
      op.getStateType());
  return {out.clone(op.getStateType()), rows, rows};
}

Tensors ForwardRing::attend(Value query, Value queryOwner, Value key,
                            Value value, Value keyOwner, ValueRange state) {
  auto attend = ring::AttendOp::create(
      builder, loc, TypeRange(state), query, queryOwner,
      this->query.getExtent(), key, value, keyOwner, this->key.getExtent(),
      state[0], state[1], state[2], /*pairs=*/Value(), op.getMaskCaptures(),
      op.getScoreCaptures(), /*into=*/ValueRange(), layout, layout,
      builder.getF64FloatAttr(op.getScaleOrDefault()), /*last=*/UnitAttr());
  IRMapping mapping;
  op.getMask().cloneInto(&attend.getMask(), mapping);
  op.getScore().cloneInto(&attend.getScore(), mapping);
  op.getBounds().cloneInto(&attend.getBounds(), mapping);
  return Tensors(attend.getResults());
}

Tensors ForwardRing::rotateKeys() {
  auto state = ring::InitOp::create(builder, loc, stateTypes(),
                                    query.getShard(), /*into=*/ValueRange());
  return rotate(
      {{key.getShard(), value.getShard()},
       {1, 1},
       key.getExtent(),
       Tensors(state.getResults())},
      [&](Value owner, ValueRange shards, ValueRange carried, ValueRange) {
        return attend(query.getShard(), rank, shards[0], shards[1], owner,
                      carried);
      });
}

Tensors ForwardRing::rotateQueries() {
  return rotate(
      {{query.getShard()},
       {1},
       query.getExtent(),
       /*carried=*/{},
       ring::Join::Merge,
       stateTypes(),
       {1, 2, 2}},
      [&](Value owner, ValueRange shards, ValueRange, ValueRange partials) {
        return attend(shards[0], owner, key.getShard(), value.getShard(), rank,
                      partials);
      });
}

void ForwardRing::build() {
  beginProgram();
  Tensors state = movesKeys ? rotateKeys() : rotateQueries();
  auto finalize = ring::FinalizeOp::create(
      builder, loc, TypeRange{out, state[1].getType()}, state[0], state[1],
      state[2], /*into=*/ValueRange());
  replace(op.getOut(), finalize.getOut());
  replace(op.getLse(), finalize.getLse());
  erase();
}

void burst::buildForwardRing(AttentionOp op, const Deal &deal, bool movesKeys) {
  ForwardRing(op, deal, movesKeys).build();
}
