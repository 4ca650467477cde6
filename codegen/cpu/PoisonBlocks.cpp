//===- PoisonBlocks.cpp - blocks that begin as NaN ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"
#include "dialect/Tile/Build.h"
#include "dialect/Tile/Tile.h"

namespace burst::cpu {
#define GEN_PASS_DEF_POISONBLOCKSPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;

/// All bits set: of floats a NaN, where they have one, of integers -1. Null
/// where no constant is of the type.
static TypedAttr poisonOf(Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type,
                          APFloat::getAllOnesValue(type.getFloatSemantics()));
  if (element.isIndex())
    return IntegerAttr::get(element, -1);
  if (element.isSignlessInteger())
    return IntegerAttr::get(element,
                            APInt::getAllOnes(element.getIntOrFloatBitWidth()));
  if (auto type = dyn_cast<VectorType>(element))
    if (TypedAttr poison = poisonOf(type.getElementType()))
      return DenseElementsAttr::get(type, Attribute(poison));
  return {};
}

/// Stores `poison` to all elements at `indices`, and those behind it.
static void fill(tile::LoopBuilder &b, Value block, Value poison,
                 SmallVector<Value> indices) {
  auto type = cast<MemRefType>(block.getType());
  auto rank = static_cast<int64_t>(indices.size());
  if (rank == type.getRank())
    return b.store(poison, block, indices);
  b.loop(b.dim(block, rank), [&](Value i) {
    SmallVector<Value> more(indices);
    more.push_back(i);
    fill(b, block, poison, more);
  });
}

namespace {
struct PoisonBlocks : burst::cpu::impl::PoisonBlocksPassBase<PoisonBlocks> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(tile::kernelAttr))
      return;
    getOperation().walk([](memref::AllocaOp block) {
      TypedAttr poison = poisonOf(block.getType().getElementType());
      if (!poison)
        return;
      tile::LoopBuilder b(block.getLoc(), block->getContext());
      b.setInsertionPointAfter(block);
      fill(b, block, b.make<arith::ConstantOp>(poison), {});
    });
  }
};
} // namespace
