//===- CtaGradient.h - the backward pass of a CTA of a GPU ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_CTAGRADIENT_H
#define BURST_PASSES_TILE_CTAGRADIENT_H

#include "passes/Tile/Schedule.h"

namespace burst::tiling {

/// What a kernel adds up: gradients by queries over the keys of its list, or
/// gradients by keys, by values or by both over queries and their heads.
enum class Sums : uint8_t { OfQueries, OfKeysAndValues, OfKeys, OfValues };

/// Shape of the work of a CTA (cooperative thread array; its warps do one
/// task): rows of its own tile, columns of those it lists.
struct CtaShape {
  int64_t rows, columns, warps;
};

/// Shapes whose kernels are known to fit into the registers and the shared
/// memory of all GPUs from sm_80 on, and what they add up at once.
CtaShape queryCtaOf(int64_t dim, int64_t valueDim);
CtaShape keyCtaOf(int64_t dim, int64_t valueDim);
llvm::SmallVector<Sums> keySumsOf(int64_t dim, int64_t valueDim);

/// What stands for the operands of a kernel of an attend_grad in it.
struct CtaGradientArguments {
  /// Adds the operands to those of a launch.
  void bindTo(Operands &operands, ring::AttendGradOp op,
              const Schedule &schedule, Sums sums);

  /// What is multiplied to scores, and to their gradients: queries or keys,
  /// and gradients by outputs or values.
  struct Shards {
    Value first, second, tiles;
  } queries, keys;
  Value lse, delta, list, counts;
  Value gradient, valueGradient; ///< memory
  Value sq, sk;
  SmallVector<Value> maskCaptures, scoreCaptures;
};

/// The body of a kernel of an attend_grad. Its task is a tile of queries or of
/// keys, which it alone adds to; scores are transposed where it is of keys, so
/// that weights are left operands as they lie in registers.
class CtaGradient : CtaGradientArguments {
public:
  CtaGradient(TileBuilder &builder, ring::AttendGradOp op, const Shape &shape,
              const Schedule &schedule, const CtaGradientArguments &arguments,
              Sums sums)
      : CtaGradientArguments(arguments), b(builder), op(op), shape(shape),
        schedule(schedule), sums(sums), ofKeys(sums != Sums::OfQueries) {}

  void build(Value task);

private:
  /// Where a listed tile lies in its shard.
  struct Listed {
    Value row, count;
  };

  void makeBlocks();
  void sumUp(Value group);
  void lists(Value head);
  void step(Value number, Value isPartial);
  void differentiate(Value columns);
  void product(Value own, Value other, Value into, double factor);
  void add(Value sum, Value gradient);
  Value otherTile(bool isSecond, const Listed &other);
  Value rowsOf(Value shard, Value row, Value count);
  MemRefType perQuery();

  TileBuilder &b;
  ring::AttendGradOp op;
  Shape shape;
  const Schedule &schedule;
  Sums sums;
  bool ofKeys; ///< its own tile is of keys

  Value batch, head, keyHead, tile, row, count;
  struct {
    Shards own, other;
    Value s, dp, gradient, valueGradient, lse, delta, i, j;
    Value t; ///< scores before the score region
    Value scale;
  } blocks;
};

} // namespace burst::tiling

#endif // BURST_PASSES_TILE_CTAGRADIENT_H
