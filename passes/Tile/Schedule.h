//===- Schedule.h - which tiles an attend has to do -------------*- C++ -*-===//
#ifndef BURST_PASSES_TILE_SCHEDULE_H
#define BURST_PASSES_TILE_SCHEDULE_H

#include "passes/Tile/Builder.h"

namespace burst::tiling {

/// Builds what stands in front of an attend's launches.
class Schedule {
public:
  Schedule(TileBuilder &builder, ring::AttendOp op, const Shape &shape)
      : b(builder), op(op), shape(shape) {}

  void build(Launcher launch);
  void release();

  Value queries, keys; ///< tables of tiles
  Value needed;        ///< of tiles of keys: 1 where any task needs it
  Value list;          ///< (batch, heads, query tiles, key tiles)
  Value counts;        ///< (batch, heads, query tiles, full and partial)
  Value order;         ///< of tasks (batch, heads, query tiles)
  Value tasks;
  SmallVector<Value> firstKeys;         ///< per slice, and the number of all
  bool byBatch = false, byHead = false; ///< what the list tells apart

private:
  Value numTiles(ring::LayoutAttr layout, Value owner, Value extent,
                 int64_t size);
  Value fill(Value table, Value first, ring::LayoutAttr layout, Value owner,
             Value extent, int64_t size, int64_t pair, int64_t pairStep);
  void classify(Launcher launch);
  void sort();
  std::pair<Value, Value> bounds(TileBuilder &b, ValueRange arguments);

  TileBuilder &b;
  ring::AttendOp op;
  Shape shape;
  Value flags; ///< of pairs of segments; null: all are computed
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_SCHEDULE_H
