//===- PoisonBlocks.cpp - blocks that begin as no numbers -----------------===//
#include "codegen/cpu/Passes.h"
#include "dialect/Tile/Build.h"
#include "dialect/Tile/Tile.h"

namespace burst::cpu {
#define GEN_PASS_DEF_POISONBLOCKSPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;

/// All bits set: of floats a NaN, of integers -1.
static TypedAttr poisonOf(Builder &builder, Type element) {
  if (auto type = dyn_cast<FloatType>(element)) {
    const llvm::fltSemantics &semantics = type.getFloatSemantics();
    return builder.getFloatAttr(type, APFloat::getAllOnesValue(semantics));
  }
  return builder.getIntegerAttr(element, -1);
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
      tile::LoopBuilder b(block.getLoc(), block->getContext());
      b.setInsertionPointAfter(block);
      Type element = block.getType().getElementType();
      Value poison = b.make<arith::ConstantOp>(poisonOf(b, element));
      fill(b, block, poison, {});
    });
  }
};
} // namespace
