//===- ForwardRing.cpp - the forward pass as a ring ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/ForwardProgram.h"
#include "passes/Strategies/Ring/Builders.h"

using namespace mlir;
using namespace burst;

namespace {
class ForwardRing final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build(RingKind kind) {
    beginProgram();
    if (kind.isDouble)
      nestRings();
    if (kind.isDirect)
      goDirectly();
    if (kind.isBidirectional)
      goBidirectionally();
    finish(kind.movesKeys ? rotateKeys() : rotateQueries());
  }

private:
  Tensors rotateKeys();
  Tensors rotateQueries();
};
} // namespace

/// Keys and values travel past queries, which carry their softmax state.
Tensors ForwardRing::rotateKeys() {
  Shards keys = ownKeys();
  return rotate(
      {keys.tensors, {1, 1}, key.getExtent(), init()},
      [&](Value owner, ValueRange shards, ValueRange carried, ValueRange) {
        return attend(ownQueries(), {Tensors(shards), owner, layout}, carried);
      });
}

/// Queries travel, whose state is their partial result.
Tensors ForwardRing::rotateQueries() {
  Shards queries = ownQueries();
  return rotate(
      {queries.tensors,
       {1},
       query.getExtent(),
       /*carried=*/{},
       ring::Join::Merge,
       stateTypes(),
       stateDims()},
      [&](Value owner, ValueRange shards, ValueRange, ValueRange partials) {
        return attend({Tensors(shards), owner, layout}, ownKeys(), partials);
      });
}

void burst::buildForwardRing(AttentionOp op, const Layout &layout,
                             RingKind kind) {
  ForwardRing(op, layout).build(kind);
}
