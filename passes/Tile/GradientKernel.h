//===- GradientKernel.h - the backward pass of tiles of keys ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_GRADIENTKERNEL_H
#define BURST_PASSES_TILE_GRADIENTKERNEL_H

#include "passes/Gradient/Gradient.h"
#include "passes/Tile/GradientOperands.h"
#include "passes/Tile/Strips.h"

namespace burst::tiling {

/// What a kernel of an attend_grad does: all of it, with a tile of weights and
/// of their gradients at a time; or one of two parts, between which those of
/// the whole slice are kept in memory.
enum class GradientPart : uint8_t { All, Weights, Sums };

/// What stands for the operands of a kernel of an attend_grad in it.
struct GradientArguments {
  /// Adds the operands to those of a launch. `copies` has an entry for each
  /// gradient of a captured table; null where tasks add to other elements each.
  /// `together` and `stored` may be missing, see below.
  void bindTo(Operands &operands, ring::AttendGradOp op,
              const Schedule &schedule, const GradientOperands &packed,
              ArrayRef<Value> copies, Value together, ArrayRef<Value> stored);

  /// The gradient of a captured table.
  struct Table {
    Value gradient;
    Value copies;   ///< (copy, dimensions of the table); may be null
    Value own = {}; ///< what this task adds to
  };

  Value query, outGrad, lse, delta;
  Value packedKeysT, packedValuesT, packedKeys, packedQueries, packedOutGrads;
  Value finiteKeys, finiteQueries, queries, keys, list, counts;
  Value turns, passed; ///< null where nobody waits
  Value dq, dk, dv;    ///< memory of the gradients
  SmallVector<Table> tables;
  Value weights, differentials; ///< of the whole slice, in parts
  Value sq, sk;
  Value together; ///< heads whose tiles follow one another; null: no turns
  SmallVector<Value> maskCaptures, scoreCaptures;
};

/// The body of a kernel of an attend_grad. Where the schedule has turns, a task
/// does all pairs of one tile of keys, and tasks add to a tile of queries one
/// after the other, whoever is done first; else those of a batch and key head.
class GradientKernel : GradientArguments {
public:
  GradientKernel(TileBuilder &builder, ring::AttendGradOp op,
                 const Shape &shape, const Schedule &schedule,
                 const GradientArguments &arguments,
                 GradientPart part = GradientPart::All)
      : GradientArguments(arguments), b(builder), op(op), shape(shape),
        schedule(schedule), part(part) {}

  void build(Value task);

private:
  /// A tile of keys or queries that is being computed.
  struct Tile {
    Value number, row, count;
  };

  /// What a task is about: the number of a key head of a batch, and that of a
  /// tile of keys, null where it does all.
  struct Task {
    Value head, tile;
  };

  Value ownTable(const Table &table, Sharing sharing);
  Task decode(Value task);
  int64_t numHeads() const;
  int64_t numKeyHeads() const;
  void sumUp(Value number);
  void step(const Tile &key, Value number, Value turn, bool isPartial);
  void strip(const Tile &key, const Tile &query, bool isPartial);
  void weigh(const Tile &key, const Tile &query, const Scores &scores,
             const Span &span, bool isPartial);
  void sumQueries(const Tile &key, const Tile &query, const Span &span,
                  bool isPartial);
  void sumKeys(const Tile &key, const Tile &query, bool isPartial);
  void note(const Tile &query, const Span &span);
  Value tileOf(Value block);
  Value rounded(Value block, Value into, const Tile &query);
  Scores scoresOf(Value block, const Tile &key, const Tile &query);
  void load(Value buffer, const Tile &query, Value block, double factor);
  void prefetch(Value buffer, const Tile &query);
  void differentiate(const Tile &key, const Tile &query);
  void multiply(Value left, Value panels, Value into, Value rows, Value depth,
                Value seen, bool transposed);
  void where(bool isPartial, llvm::function_ref<void(Value seen)> multiply);

  TileBuilder &b;
  ring::AttendGradOp op;
  Shape shape;
  const Schedule &schedule;
  GradientPart part;
  Value batch, keyHead, head;
  struct Blocks {
    Value q, outGrad, s, dp, dq, dk, dv, lse, delta, i, j;
    /// s and dp as left operands of pairs: of sums over queries, and dp of sums
    /// over keys. Null where products take s and dp.
    Value sPairs, dpPairs, dpRounded;
    Value t;    ///< scores before the score region
    Value seen; ///< scores of partial tiles under a mask
    Value scale;
    Value whole; ///< panels of a strip that the mask leaves as they are
    /// Of each panel of keys: the first row of queries that may see it, and one
    /// past the last.
    Value firstRow, endRow;
  };
  Blocks blocks;
  /// Whether not all numbers that weights and their gradients weigh are finite.
  Value hides;
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_GRADIENTKERNEL_H
