//===- Cuda.h - the cuda dialect --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_CUDA_CUDA_H
#define BURST_DIALECT_CUDA_CUDA_H

#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

// clang-format off
#include "dialect/Cuda/CudaDialect.h.inc"
// clang-format on

namespace burst::cuda {

/// Of a program: the shapes of tiles that were chosen for its kernels, and what
/// speaks against each of those that were tried before.
inline constexpr llvm::StringLiteral shapeAttr = "cuda.shape";
inline constexpr llvm::StringLiteral refusedAttr = "cuda.refused";

/// Whether a block lies in shared memory, or in registers.
bool isShared(mlir::Type type);
bool isPrivate(mlir::Type type);

} // namespace burst::cuda

// clang-format off
#define GET_TYPEDEF_CLASSES
#include "dialect/Cuda/CudaTypes.h.inc"
#define GET_OP_CLASSES
#include "dialect/Cuda/CudaOps.h.inc"
// clang-format on

namespace burst::cuda {

/// Where in shared memory a pipeline's stages begin, and its barriers.
struct Place {
  int64_t stages, barriers;
};
/// The shared memory of a kernel with these pipelines, and where each lies:
/// stages of one behind those of another, and behind them all barriers.
int64_t placePipelines(llvm::ArrayRef<PipelineType> pipelines,
                       llvm::SmallVectorImpl<Place> *places = nullptr);

} // namespace burst::cuda

#endif // BURST_DIALECT_CUDA_CUDA_H
