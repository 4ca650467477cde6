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
