//===- Registry.h - what the tools know -------------------------*- C++ -*-===//
#ifndef BURST_TOOLS_BURST_OPT_REGISTRY_H
#define BURST_TOOLS_BURST_OPT_REGISTRY_H

#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Transforms/Passes.h"

namespace burst {

/// The dialects of burst's programs.
inline void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<BurstDialect, ring::RingDialect, tile::TileDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect,
                  mlir::scf::SCFDialect, mlir::shard::ShardDialect,
                  mlir::tensor::TensorDialect>();
}

/// Dialects, passes and pipelines.
inline void registerAll(mlir::DialectRegistry &registry) {
  registerDialects(registry);
  mlir::func::registerInlinerExtension(registry);
  mlir::registerTransformsPasses();
  registerPasses();
  registerPipelines();
}

} // namespace burst

#endif // BURST_TOOLS_BURST_OPT_REGISTRY_H
