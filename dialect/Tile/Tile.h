//===- Tile.h - the tile dialect --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_TILE_TILE_H
#define BURST_DIALECT_TILE_TILE_H

#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

// clang-format off
#include "dialect/Tile/TileDialect.h.inc"
// clang-format on

namespace burst::tile {

/// Unit attribute of a function: a kernel.
inline constexpr llvm::StringLiteral kernelAttr = "tile.kernel";

/// Integer attribute of a kernel that runs on a GPU: how many warps do a task
/// (the consumer warps of a warp-specialized kernel, else all of a CTA).
inline constexpr llvm::StringLiteral warpsAttr = "tile.warps";

/// Of such a kernel of a backward pass: "queries" or "keys", whose gradients it
/// adds up. Kernels that say the same read the same lists of tiles.
inline constexpr llvm::StringLiteral gradientAttr = "tile.gradient";

/// Of an argument of a program that launches such kernels: a tensor in the
/// host's memory, because the schedule depends on it.
inline constexpr llvm::StringLiteral hostAttr = "tile.host";

/// Global sizes of sequences, and all others, are at most this in programs for
/// GPUs: as much as leaves room for what masks add to positions in 32 bits.
inline constexpr int64_t largestExtent = int64_t(1) << 30;

/// Attribute of a program: how many queries and keys its tiles have.
inline constexpr llvm::StringLiteral shapeAttr = "tile.shape";

/// What a program allocates memory for, see `tile.allocate`.
enum class Memory : uint8_t {
  State,   ///< softmax state that no result can hold
  Slice,   ///< received slices
  Packing, ///< operands laid out for a kernel
  Schedule ///< flags, and lists of what is to do
};
llvm::StringRef stringify(Memory memory);
std::optional<Memory> symbolizeMemory(llvm::StringRef name);

} // namespace burst::tile

// clang-format off
#define GET_OP_CLASSES
#include "dialect/Tile/TileOps.h.inc"
// clang-format on

#endif // BURST_DIALECT_TILE_TILE_H
