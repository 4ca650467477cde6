//===- Memory.h - what kernels need beside a program's tensors --*- C++ -*-===//
#ifndef BURST_CODEGEN_CPU_MEMORY_H
#define BURST_CODEGEN_CPU_MEMORY_H

#include "codegen/cpu/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace burst::cpu {

/// What an extent of a program stands for, and how large a captured table is.
struct SizesOfRun {
  llvm::function_ref<int64_t(mlir::Value)> extentOf;
  llvm::function_ref<int64_t(mlir::Value, int64_t)> tableSizeOf; ///< in a dim
};

/// Bytes of packed operands that `rank` of a ring program holds at most: of one
/// attend at a time, for all heads, in the type of the state, or of bf16 where
/// the target takes that in pairs. With C keys and R queries in a tile, n tiles
/// of keys and m of queries in what is at hand, and | | rounding up to a panel,
///
///     forward:  batch * key heads * n * C * (query dim + |value dim|) * bytes
///     backward: batch * (key heads * n * C * (query dim + |query dim| + value
///     dim)
///                 + query heads * m * R * (|query dim| + |value dim|)) * bytes
///
/// where n is the sum over segments of ceil(keys / C), and m alike: of the
/// largest of all owners for what travels. Pairs round the query dim up to an
/// even number. A gradient of a captured table adds, where batches or heads may
/// contribute to the same elements of it,
///
///     (batches * key heads - 1) * elements * bytes
///
/// with 1 in place of what the score tells apart.
///
/// Without local tiling, pairs are not used, and what is stored of pairs of
/// tiles, scores forward, weights and their gradients backward, adds
///
///     batch * query heads * m * R * n * C * (1, or backward 2) * bytes
///
/// where backward R is rounded up to whole register tiles, and C is wider by
/// one, in whole panels.
///
/// Where scores are stored (ring.score), keys and values are packed one after
/// the other, each as above.
int64_t packingBytes(mlir::func::FuncOp program, const Target &given,
                     int64_t batch, int64_t rank, const SizesOfRun &sizes);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_MEMORY_H
