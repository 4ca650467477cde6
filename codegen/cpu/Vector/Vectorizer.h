//===- Vectorizer.h - tile ops as loops over vectors ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tile-to-vector emits. Numbers.cpp has the arithmetic of numbers and
// vectors, and loops over the columns of a row; loads, stores and the like are
// in Blocks.cpp, operands of products in Pack.cpp, products in Products.cpp,
// those with rows of memory in Slices.cpp,
// what has regions in Maps.cpp, and the recurrence of the softmax in Rows.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_CODEGEN_CPU_VECTOR_VECTORIZER_H
#define BURST_CODEGEN_CPU_VECTOR_VECTORIZER_H

#include "codegen/cpu/Passes.h"
#include "dialect/Tile/Build.h"

namespace burst::cpu {

inline mlir::MemRefType bufferOf(mlir::Value value) {
  return mlir::cast<mlir::MemRefType>(value.getType());
}

/// Panels with the two numbers of pairs among the columns.
mlir::Value flatten(tile::LoopBuilder &b, mlir::Value panels);

/// Loads and stores scalars or vectors alike.
struct Access {
  tile::LoopBuilder &b;

  mlir::Value load(mlir::Type type, mlir::Value buffer,
                   mlir::ValueRange indices) const;
  void store(mlir::Value value, mlir::Value buffer,
             mlir::ValueRange indices) const;
};

/// Emits arithmetic on numbers, or on vectors of them, in the shapes of one
/// processor.
class VectorBuilder {
public:
  VectorBuilder(mlir::OpBuilder &at, mlir::Location loc,
                const TileToVectorPassOptions &options)
      : b(loc, at), options(options) {}

protected:
  using Type = mlir::Type;
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using VectorType = mlir::VectorType;

  int64_t lanes(Type element) const {
    return options.vectorBits / element.getIntOrFloatBitWidth();
  }
  VectorType vectorOf(Type element) const {
    return VectorType::get(lanes(element), element);
  }
  int64_t panelVectors() const {
    return options.panelBytes * 8 / options.vectorBits;
  }
  /// What the number of vectors in a row of the tile is a multiple of.
  int64_t vectorsOf(mlir::MemRefType tile) const {
    return tile.isDynamicDim(1)
               ? panelVectors()
               : tile.getDimSize(1) / lanes(tile.getElementType());
  }

  Value load(VectorType type, Value buffer, ValueRange indices) {
    return b.make<mlir::vector::LoadOp>(type, buffer, indices);
  }
  void store(Value vector, Value buffer, ValueRange indices) {
    b.make<mlir::vector::StoreOp>(vector, buffer, indices);
  }
  /// A vector in memory. That is on the stack, and made once in a call.
  Value spill(Value vector);
  Value splat(VectorType type, Value scalar) {
    return b.make<mlir::vector::BroadcastOp>(type, scalar);
  }
  /// A number of a float type, or a vector full of it.
  Value number(Type type, double value);
  Value integer(Type type, int64_t value);
  /// a b + c
  Value fma(Value a, Value x, Value c);
  Value maximum(Value a, Value c);
  Value isMinusInfinity(Value x);
  /// The same value, of which LLVM does not know that it was just loaded: it
  /// would turn a load, a select and a store into a masked store, which some
  /// processors execute in microcode.
  Value opaque(Value value);
  /// 2^x for x up to 0 (or a little above), within 2 units in the last place.
  Value exp2(Value x);
  /// exp2(a - c), where c is a reference at least as large as a.
  Value exp2Difference(Value a, Value c);
  /// What is subtracted from scores: m, or 0 where nothing was seen.
  Value reference(Value m);
  /// A float, or a vector of them, in another type of elements.
  Value convert(Value value, Type element);
  /// Pairs of bf16 as 32 bits each: their first or second numbers as f32.
  Value half(Value pairs, bool second);
  /// c + the products of pairs, given as 32 bits each.
  Value dot(Value a, Value x, Value c);
  /// A vector of f32, rounded to bf16.
  Value narrow(Value x);

  /// Columns in vectors, then one by one.
  void eachColumn(int64_t columns, Type element,
                  llvm::function_ref<void(Value, Type)> body);
  /// All columns of a view, of which there may be any number.
  void eachColumn(Value view, Type element,
                  llvm::function_ref<void(Value, Type)> body);
  /// Goes over the columns of a row in vectors, as many at a time as divide a
  /// row, or, where columns are not static, as wanted, and then what is left.
  /// Each of those at a time folds its own value, which begins as `begin`.
  llvm::SmallVector<Value>
  eachVector(Value block, int64_t together, Value begin,
             llvm::function_ref<Value(Value c, Value folded)> body);

  tile::LoopBuilder b;
  const TileToVectorPassOptions &options;
};

/// Lowers the ops of one kernel.
class Vectorizer : VectorBuilder {
public:
  using VectorBuilder::VectorBuilder;

  void lower(tile::LoadOp op);
  void lower(tile::StoreOp op);
  void lower(tile::PackOp op);
  void lower(tile::IsFiniteOp op);
  void lower(tile::FillOp op);
  void lower(tile::PositionsOp op);
  void lower(tile::MultiplyOp op);
  void lower(tile::MapOp op);
  void lower(tile::RowMaxOp op);
  void lower(tile::ExponentialsOp op);
  void lower(tile::RescaleOp op);
  void lower(tile::AddOp op);
  void lower(tile::RowDotOp op);
  void lower(tile::MergeOp op);
  void lower(tile::NormalizeOp op);
  void lower(tile::MaxScoreOp op);
  void lower(tile::WeightsOp op);
  void lower(tile::DifferentialsOp op);
  void lower(tile::RoundOp op);
  void lower(tile::MapGradientOp op);

private:
  void multiplyWhere(tile::MultiplyOp op);
  void multiplySlice(tile::MultiplyOp op);
  /// What a map does at the points of one vector: their row and first column,
  /// which of them are columns at all, and b to sk. `sums` are carried from
  /// vector to vector.
  using MapBody = llvm::function_ref<void(ValueRange at, Value isColumn,
                                          llvm::ArrayRef<Value> arguments,
                                          llvm::SmallVector<Value> &sums)>;
  template <typename Map>
  llvm::SmallVector<Value> eachPoint(Map op, mlir::MemRefType tile,
                                     ValueRange sums, MapBody body);
  void addAt(Value table, llvm::ArrayRef<Value> indices, Value amount,
             Value counts);
};

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_VECTOR_VECTORIZER_H
