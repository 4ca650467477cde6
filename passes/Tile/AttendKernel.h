//===- AttendKernel.h - one tile of queries against its list ----*- C++ -*-===//
#ifndef BURST_PASSES_TILE_ATTENDKERNEL_H
#define BURST_PASSES_TILE_ATTENDKERNEL_H

#include "passes/Tile/Schedule.h"

namespace burst::tiling {

/// The body of the kernel of an attend: one tile of queries against its list.
class AttendKernel {
public:
  AttendKernel(TileBuilder &builder, ring::AttendOp op, const Shape &shape,
               const Schedule &schedule, ValueRange args);

  void build(Value task);

private:
  void step(Value key, bool isPartial);
  Value right(bool isValue, Value key);
  void map(Value key, bool isPartial);

  TileBuilder &b;
  ring::AttendOp op;
  Shape shape;
  const Schedule &schedule;
  Value query, packedKeys, packedValues, finite, queries, keys, list, counts;
  /// Of a GPU's kernel: slices, and from the second on their first tiles.
  SmallVector<Value> keySlices, valueSlices, firstTiles;
  Value o, m, l; ///< memory of the state
  Value sq, sk;
  SmallVector<Value> maskCaptures, scoreCaptures;

  RowTask at;
  Value keyHead;
  struct {
    Value q, s, o, m, l, factor, i, j;
    Value k, v; ///< tiles of a GPU's kernel
    Value p;    ///< weights in pairs; null: they take the place of scores
    Value seen; ///< scores of partial tiles under a mask
  } blocks;
  double scale; ///< of products to scores
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_ATTENDKERNEL_H
