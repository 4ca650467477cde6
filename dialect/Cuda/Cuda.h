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

/// Integer attribute of a kernel: how many warps do a task (the consumer warps
/// of a warp-specialized kernel, else all of a CTA).
inline constexpr llvm::StringLiteral warpsAttr = "cuda.warps";

/// Of a kernel of a backward pass: "queries" or "keys", whose gradients it adds
/// up. Kernels that say the same read the same lists of tiles.
inline constexpr llvm::StringLiteral gradientAttr = "cuda.gradient";

/// Of an argument of a program: a tensor in the host's memory, because the
/// schedule depends on it.
inline constexpr llvm::StringLiteral hostAttr = "cuda.host";

/// Of a program: the shapes of tiles that were chosen for its kernels, and what
/// speaks against each of those that were tried before.
inline constexpr llvm::StringLiteral shapeAttr = "cuda.shape";
inline constexpr llvm::StringLiteral refusedAttr = "cuda.refused";

/// Global sizes of sequences, and all others, are at most this in programs for
/// GPUs: as much as leaves room for what masks add to positions in 32 bits.
inline constexpr int64_t largestExtent = int64_t(1) << 30;

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
