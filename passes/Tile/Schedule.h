//===- Schedule.h - which tiles an attend has to do -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_SCHEDULE_H
#define BURST_PASSES_TILE_SCHEDULE_H

#include "passes/Tile/Builder.h"

namespace burst::tiling {

/// Builds what stands in front of an attend's launches.
class Schedule {
public:
  /// Whose lists are made: those of tiles of queries, which name tiles of keys,
  /// or the other way round.
  enum class Lists : uint8_t { OfQueries, OfKeys };

  Schedule(TileBuilder &builder, ring::AttendLikeOpInterface op,
           const Shape &shape, Lists lists)
      : b(builder), op(op), shape(shape), lists(lists) {}

  /// Loops through which the queries, or the keys, stay the same: their tables
  /// are made in front of them. Null: with the rest.
  mlir::Operation *queriesStay = nullptr, *keysStay = nullptr;
  /// Tiles of queries have falling numbers: the last is the first.
  bool isFalling = false;

  void build(Launcher launch);
  /// Counts tasks (batch, heads, listing tiles), of which each does the lists
  /// of `group` heads that follow one another. Where tiles have rows of several
  /// heads, these count as one.
  void count(int64_t group = 1);
  /// Counts them, and orders them by their work.
  void sort(int64_t group = 1);
  /// Numbers, for each listed tile and head, the listing tiles that list it, in
  /// the order in which they take turns at it.
  void takeTurns();
  void release();
  /// How many tiles a listing tile lists for `group` heads from `head` on,
  /// which have a list each, or one for all.
  Value lengthOf(TileBuilder &b, Value counts, Value batch, Value head,
                 Value tile, int64_t group = 1) const;
  /// May any pair of the box be kept, must all be: the bounds of the mask at
  /// `arguments`, its box, sizes and captures.
  std::pair<Value, Value> bounds(TileBuilder &b, ValueRange arguments) const;

  Value listing() const { return lists == Lists::OfQueries ? queries : keys; }
  Value listed() const { return lists == Lists::OfQueries ? keys : queries; }

  Value queries, keys; ///< tables of tiles
  Value needed;        ///< of listed tiles: 1 where any list has it
  Value list;          ///< (batch, heads, listing tiles, listed tiles)
  Value counts;        ///< (batch, heads, listing tiles, full and partial)
  Value order;         ///< of tasks (batch, heads, listing tiles)
  Value turns;         ///< beside `list`: whose turn it is at a listed tile
  Value passed;        ///< (batch, heads, listed tiles): turns, at first none
  Value tasks;
  bool byBatch = false, byHead = false; ///< what the list tells apart

private:
  Value numHeads();
  Value numTiles(ring::LayoutAttr layout, Value owner, Value extent,
                 int64_t size);
  void fill(Value table, ring::LayoutAttr layout, Value owner, Value extent,
            int64_t size, int64_t pairStep, bool isFalling = false);
  void classify(Launcher launch);
  struct ClassifyArguments;
  void classifyTile(TileBuilder &b, Value task,
                    const ClassifyArguments &arguments) const;

  TileBuilder &b;
  ring::AttendLikeOpInterface op;
  Shape shape;
  Lists lists;
  Value flags; ///< of pairs of segments; null: all are computed
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_SCHEDULE_H
