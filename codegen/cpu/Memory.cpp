//===- Memory.cpp - what kernels need beside a program's tensors ----------===//
#include "codegen/cpu/Memory.h"
#include "dialect/Ring/Ring.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;

int64_t burst::cpu::packingBytes(func::FuncOp program, const Target &target,
                                 int64_t batch,
                                 llvm::function_ref<int64_t(Value)> extentOf) {
  int64_t most = 0;
  program.walk([&](ring::AttendOp op) {
    auto key = cast<ShapedType>(op.getKeys().front().getType());
    auto value = cast<ShapedType>(op.getValues().front().getType());
    int64_t bytes = op.getStateType().getWidth() / 8;
    auto panel = static_cast<uint64_t>(target.panelBytes / bytes);
    auto columns = static_cast<int64_t>(llvm::alignTo(target.columns, panel));
    auto valueDim =
        static_cast<int64_t>(llvm::alignTo(value.getDimSize(3), panel));
    int64_t keyDim = key.getDimSize(3);
    if (target.pairs && key.getElementType().isBF16()) {
      keyDim = static_cast<int64_t>(llvm::alignTo(keyDim, 2));
      bytes = 2;
    }
    Deal deal = op.getKeyLayout().getDeal();
    int64_t extent = extentOf(op.getKeyExtent()), tiles = 0;
    for (int64_t owner = 0; owner < deal.parts; ++owner) {
      int64_t own = 0;
      for (const Segment &segment : deal.segments(owner, extent))
        own += llvm::divideCeil(segment.count, columns);
      tiles = std::max(tiles, own);
    }
    tiles *= static_cast<int64_t>(op.getKeys().size());
    most = std::max(most, batch * key.getDimSize(2) * tiles * columns *
                              (keyDim + valueDim) * bytes);
  });
  return most;
}
