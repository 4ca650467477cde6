//===- FewQueries.h - attends of few queries against many keys --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_FEWQUERIES_H
#define BURST_PASSES_TILE_FEWQUERIES_H

#include "passes/Tile/Builder.h"

#include <optional>

namespace burst::tiling {

/// An attend of so few queries, a rank's or those that it has gathered, that a
/// tile has room for all of them, of all heads that share a key head. Each key
/// is then used once: it is read where it lies. Where keys are many, tasks have
/// a part of them each.
struct FewQueries {
  int64_t positions; ///< of a tile, at most
  int64_t heads;     ///< of a key head: a position has as many rows
  bool isSplit;      ///< tasks may have parts of the keys

  /// Whether the queries of an attend are few: tiles have so many rows and
  /// columns at most, and what is read in whole vectors, heads, is a multiple
  /// of a panel.
  static std::optional<FewQueries> find(ring::AttendOp op, int64_t rows,
                                        int64_t columns, int64_t panel);

  /// Into how many parts keys fall that have so many tiles, where there would
  /// be so many tasks: a function of shapes alone, because sums of other parts
  /// have other bits.
  static int64_t numParts(int64_t tasks, int64_t keyTiles);
  static Value numParts(TileBuilder &builder, Value tasks, Value keyTiles);
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_FEWQUERIES_H
