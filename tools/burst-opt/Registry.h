//===- Registry.h - what the tools know -------------------------*- C++ -*-===//
#ifndef BURST_TOOLS_BURST_OPT_REGISTRY_H
#define BURST_TOOLS_BURST_OPT_REGISTRY_H

#include "codegen/cpu/Passes.h"
#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Transforms/Passes.h"

namespace burst {

/// The dialects of burst's programs.
inline void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<BurstDialect, ring::RingDialect, tile::TileDialect,
                  mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, mlir::LLVM::LLVMDialect,
                  mlir::memref::MemRefDialect, mlir::vector::VectorDialect,
                  mlir::scf::SCFDialect, mlir::shard::ShardDialect,
                  mlir::tensor::TensorDialect>();
  cpu::registerInterfaces(registry);
}

/// Dialects, passes and pipelines.
inline void registerAll(mlir::DialectRegistry &registry) {
  registerDialects(registry);
  mlir::registerTransformsPasses();
  registerPasses();
  registerPipelines();
  cpu::registerPasses();
}

} // namespace burst

#endif // BURST_TOOLS_BURST_OPT_REGISTRY_H
