//===- CheckBlocks.cpp - kernels fit on the stacks of threads -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"

#include "burst/internal/limits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace burst::cpu {
#define GEN_PASS_DEF_CHECKBLOCKSPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;

/// Whether the size of a block is known. Others are of no kernel of
/// ring-lower-to-tile, and a data layout would end the program for them.
static bool isCounted(MemRefType type) {
  Type element = type.getElementType();
  if (auto vector = dyn_cast<VectorType>(element)) {
    if (vector.isScalable())
      return false;
    element = vector.getElementType();
  }
  return type.hasStaticShape() && element.isIntOrIndexOrFloat();
}

namespace {
struct CheckBlocks : burst::cpu::impl::CheckBlocksPassBase<CheckBlocks> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(tile::kernelAttr))
      return;
    DataLayout layout = DataLayout::closest(kernel);
    uint64_t total = 0;
    kernel.walk([&](memref::AllocaOp block) {
      MemRefType type = block.getType();
      if (!isCounted(type))
        return;
      uint64_t bytes = layout.getTypeSize(type.getElementType());
      for (int64_t size : type.getShape())
        bytes = llvm::SaturatingMultiply<uint64_t>(bytes, size);
      total = llvm::SaturatingAdd(total, bytes);
    });
    if (total <= BURST_MOST_BLOCKS)
      return;
    kernel.emitError("kernel '")
        << kernel.getSymName() << "': its blocks take " << total
        << " bytes of a stack, wanted at most " << int64_t{BURST_MOST_BLOCKS}
        << ": 'tile.shape' of the program gives smaller tiles";
    signalPassFailure();
  }
};
} // namespace
