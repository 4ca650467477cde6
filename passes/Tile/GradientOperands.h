//===- GradientOperands.h - what a backward pass packs ----------*- C++ -*-===//
#ifndef BURST_PASSES_TILE_GRADIENTOPERANDS_H
#define BURST_PASSES_TILE_GRADIENTOPERANDS_H

#include "passes/Tile/Schedule.h"

namespace burst::tiling {

/// Tiles laid out as the right operands of the five products of the backward
/// pass, for all batches and heads.
class GradientOperands {
public:
  /// Makes room for them: what stays through a loop, in front of it.
  GradientOperands(TileBuilder &builder, ring::AttendGradOp op,
                   const Shape &shape, const Schedule &schedule);

  /// Packs what stays once, for all turns of its loop, and of the rest the
  /// tiles that some list has.
  void pack(Launcher launch);
  void release();

  SmallVector<Value> ofKeys() const {
    return {keysTransposed, valuesTransposed, keys, finiteKeys};
  }
  SmallVector<Value> ofQueries() const {
    return {queries, outGrads, finiteQueries};
  }

private:
  /// Tiles at the same positions of two shards.
  struct Side {
    mlir::StringRef name;  ///< of the kernel that packs them
    mlir::Operation *loop; ///< through which they stay; null: they do not
    Value shards[2];
    Value table; ///< of tiles
    /// For a launch's operand `asked`, whether a list has a tile.
    Value asked;
    llvm::function_ref<Value(TileBuilder &, Value asked, const HeadTask &)>
        isNeeded;
    /// Which shard becomes panels, and whether transposed, in the order of the
    /// buffers. Behind them is one of flags.
    struct Panels {
      int64_t shard;
      bool isTransposed;
    };
    SmallVector<Panels> panels;
    SmallVector<Value> buffers;
    size_t numWeighted; ///< at the end: that weights multiply, and are flagged
  };

  void pack(const Side &side, Launcher launch);

  TileBuilder &b;
  ring::AttendGradOp op;
  const Schedule &schedule;
  Value keysTransposed, valuesTransposed, keys, queries, outGrads;
  /// Whether all numbers are finite, of each tile.
  Value finiteKeys, finiteQueries;
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_GRADIENTOPERANDS_H
