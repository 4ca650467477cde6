//===- GradientOperands.h - what a backward pass packs ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_GRADIENTOPERANDS_H
#define BURST_PASSES_TILE_GRADIENTOPERANDS_H

#include "passes/Tile/Schedule.h"

namespace burst::tiling {

/// The loop through which the queries and gradients of results of an attend
/// stay the same, so that they are packed in front of it; null if there is
/// none. The op may work on tensors or on buffers.
mlir::Operation *loopOfQueries(ring::AttendGradOp op);
/// The same of its keys and values.
mlir::Operation *loopOfKeys(ring::AttendGradOp op);

/// Tiles laid out as the right operands of the five products of the backward
/// pass, for all batches and heads; and of each tile whether all numbers that
/// weights multiply are finite.
class GradientOperands {
public:
  /// Makes room for them: what stays through a loop, in front of it.
  GradientOperands(TileBuilder &builder, ring::AttendGradOp op,
                   const Shape &shape, const Schedule &schedule);

  /// Packs what stays once, for all turns of its loop, and of the rest the
  /// tiles that some list has.
  void pack(Launcher launch);
  void release();

  // Tiles whose positions are columns of products, or rows.
  Value keyColumns() const { return keys.buffers[0]; }
  Value valueColumns() const { return keys.buffers[1]; }
  Value keyRows() const { return keys.buffers[2]; }
  Value finiteKeys() const { return keys.buffers.back(); }
  Value queryRows() const { return queries.buffers[0]; }
  Value outGradRows() const { return queries.buffers[1]; }
  Value finiteQueries() const { return queries.buffers.back(); }

private:
  /// A shard's tiles, with its positions as columns of products, or as their
  /// depth.
  struct Panels {
    int64_t shard;
    bool areColumns;
  };

  /// Tiles at the same positions of two shards.
  struct Side {
    mlir::StringRef kernel; ///< that packs them
    mlir::Operation *loop;  ///< through which they stay; null: they do not
    Value shards[2];
    Value table; ///< of tiles
    SmallVector<Panels> panels;
    SmallVector<Value> buffers; ///< of the panels, and behind them of flags
  };

  void allocate(Side &side, const Shape &shape, int64_t rows);
  void pack(
      const Side &side, Launcher launch, Value asked,
      llvm::function_ref<Value(TileBuilder &, Value asked, HeadTask)> isNeeded);

  TileBuilder &b;
  const Schedule &schedule;
  Side keys, queries;
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_GRADIENTOPERANDS_H
