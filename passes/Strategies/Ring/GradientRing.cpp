//===- GradientRing.cpp - the backward pass as a ring ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/BackwardProgram.h"
#include "passes/Strategies/Ring/Builders.h"

using namespace mlir;
using namespace burst;

namespace {
/// The partial results of shards are the gradients by them.
class GradientRing final : public BackwardProgram {
public:
  using BackwardProgram::BackwardProgram;

  void build(RingKind kind) {
    beginBackward();
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

/// k, v, dk and dv travel; dq and the gradients of tables are carried.
Tensors GradientRing::rotateKeys() {
  Shards queries = ownQueries(), keys = ownKeys();
  Tensors carried{zero(queries.tensors[0])};
  llvm::append_range(carried, zeroTables());
  size_t numTables = carried.size() - 1;
  Tensors made = rotate(
      {keys.tensors,
       {1, 1},
       keyExtent(),
       carried,
       ring::Join::Add,
       {gradientType(keys.tensors[0].getType()),
        gradientType(keys.tensors[1].getType())},
       {1, 1}},
      [&](Value owner, ValueRange shards, ValueRange stays, ValueRange fresh) {
        Tensors grads{stays[0], fresh[0], fresh[1]};
        llvm::append_range(grads, stays.drop_front());
        grads = attend(queries, {Tensors(shards), owner, layout}, grads);
        std::rotate(grads.begin() + 1, grads.begin() + 3, grads.end());
        return grads;
      });
  // Partial results stand behind what is carried.
  std::rotate(made.begin() + 1, made.begin() + 1 + numTables, made.end());
  return made;
}

/// q, dout, lse, delta and dq travel; the others are carried.
Tensors GradientRing::rotateQueries() {
  Shards queries = ownQueries(), keys = ownKeys();
  Tensors carried{zero(keys.tensors[0]), zero(keys.tensors[1])};
  llvm::append_range(carried, zeroTables());
  Tensors made = rotate(
      {queries.tensors,
       {1, 1, 2, 2},
       queryExtent(),
       carried,
       ring::Join::Add,
       {gradientType(queries.tensors[0].getType())},
       {1}},
      [&](Value owner, ValueRange shards, ValueRange stays, ValueRange fresh) {
        Tensors grads{fresh[0]};
        llvm::append_range(grads, stays);
        grads = attend({Tensors(shards), owner, layout}, keys, grads);
        std::rotate(grads.begin(), grads.begin() + 1, grads.end());
        return grads;
      });
  std::rotate(made.begin(), made.end() - 1, made.end());
  return made;
}

void burst::buildGradientRing(AttentionBackwardOp op, const Layout &layout,
                              RingKind kind) {
  GradientRing(op, layout).build(kind);
}
