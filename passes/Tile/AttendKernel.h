//===- AttendKernel.h - one tile of queries against its list ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_ATTENDKERNEL_H
#define BURST_PASSES_TILE_ATTENDKERNEL_H

#include "passes/Tile/Schedule.h"
#include "passes/Tile/Strips.h"

namespace burst::tiling {

/// What a kernel of an attend does: all of it, with a tile of scores at a time;
/// or one of three parts, between which the scores of the whole slice are kept
/// in memory.
enum class AttendPart : uint8_t { All, Scores, Softmax, Sums };

/// The packed keys and values of the slice of an attend, and of the values of
/// each tile, whether all are finite.
struct PackedSlice {
  Value keys, values, finite;
};

/// States of parts of the keys, which tasks of their own have: o, m and l, each
/// of the rows of the first part, then those of the second...
struct KeyParts {
  Value count;
  SmallVector<Value> states;
};

/// What stands for the operands of a kernel of an attend in it.
struct AttendArguments {
  /// Adds the operands to those of a launch: the `packed` slice, or, where it
  /// is null, the slice itself. `stored` has the scores of the whole slice in
  /// memory, or is null. With `parts` these are what is written.
  void bindTo(Operands &operands, ring::AttendOp op, const Schedule &schedule,
              const PackedSlice *packed, Value stored,
              const KeyParts *parts = nullptr);

  Value query, packedKeys, packedValues, finite, queries, keys, list, counts;
  Value keySlice, valueSlice; ///< that is not packed
  Value o, m, l;           ///< memory of the state, none of one that is first
  SmallVector<Value> made; ///< what is written
  Value scores;            ///< of the whole slice, in parts
  Value numParts;          ///< of the keys; null: a task has all
  Value sq, sk;
  SmallVector<Value> maskCaptures, scoreCaptures;
};

/// The body of a kernel of an attend: one tile of queries against its list.
class AttendKernel : AttendArguments {
public:
  AttendKernel(TileBuilder &builder, ring::AttendOp op, const Shape &shape,
               const Schedule &schedule, const AttendArguments &arguments,
               AttendPart part = AttendPart::All);

  void build(Value task);

private:
  using Step = void (AttendKernel::*)(Value key, bool isPartial);
  /// Tiles of a list, from one on and up to one.
  struct Range {
    Value begin, end;
  };
  Range rangeOf(Value count);
  void each(Step step);
  void step(Value key, bool isPartial);
  void stripSteps(Value key, bool isPartial);
  void strip(Value key, Value row, Value columns, bool isPartial);
  void map(Value s, Value key, bool isPartial, bool hasScore);
  void score(Value key, bool isPartial);
  void reference(Value key, bool isPartial);
  void weigh(Value key, bool isPartial);
  void sum(Value key, bool isPartial);
  void softmax();
  Value hides(Value key);
  void begin();
  void end();
  void eachHead(llvm::function_ref<void(Value index, Value head)> body);
  Value rowsOfHead(Value block, Value index);
  Value right(bool isValue, Value key);
  Value rightOf(bool isValue, Value key, const Span &span);
  void multiply(Value key, Value v, bool isPartial,
                llvm::function_ref<Value()> seen);

  TileBuilder &b;
  ring::AttendOp op;
  Shape shape;
  const Schedule &schedule;
  AttendPart does;

  RowTask at;                  ///< of the first of its heads
  Value rows;                  ///< of all heads
  Value tile;                  ///< of queries
  Value classBatch, classHead; ///< whose list it has
  Range full, partial;         ///< what is done of it
  Value part;                  ///< of the keys, with `numParts`
  Value keyHead;
  Value masked; ///< whether a tile of the one loop is partial
  Value hidden; ///< whether values that are not packed are not all finite
  struct Blocks {
    Value q, s, o, m, l, factor, i, j;
    Value heads; ///< of rows, where these are of several
    Value k, v;  ///< tiles of a GPU's kernel, or where those of a slice lie
    Value p;     ///< weights in pairs; null: they take the place of scores
    Value seen;  ///< scores of partial tiles under a mask
    Value whole; ///< panels of a strip that the mask leaves as they are
  } blocks;
  double scale; ///< of products to scores
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_ATTENDKERNEL_H
