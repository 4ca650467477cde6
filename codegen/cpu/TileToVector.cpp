//===- TileToVector.cpp - tile ops as loops over vectors ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/VectorRegion.h"
#include "dialect/Tile/Build.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

namespace burst::cpu {
#define GEN_PASS_DEF_TILETOVECTORPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

static MemRefType bufferOf(Value value) {
  return cast<MemRefType>(value.getType());
}

namespace {

/// Lowers the ops of one kernel.
class Vectorizer {
public:
  Vectorizer(OpBuilder &at, Location loc,
             const TileToVectorPassOptions &options)
      : b(loc, at), options(options) {}

  void lower(tile::LoadOp op);
  void lower(tile::StoreOp op);
  void lower(tile::PackOp op);
  void lower(tile::IsFiniteOp op);
  void lower(tile::FillOp op);
  void lower(tile::PositionsOp op);
  void lower(tile::MultiplyOp op);
  void multiplyWhere(tile::MultiplyOp op);
  void packPairs(tile::PackOp op);
  void transpose(MutableArrayRef<Value> rows);
  void lower(tile::MapOp op);
  void lower(tile::RowMaxOp op);
  void lower(tile::ExponentialsOp op);
  void lower(tile::RescaleOp op);
  void lower(tile::AddOp op);
  void lower(tile::RowDotOp op);
  void lower(tile::MergeOp op);
  void lower(tile::NormalizeOp op);
  void lower(tile::WeightsOp op);
  void lower(tile::DifferentialsOp op);
  void lower(tile::RoundOp op);
  void lower(tile::MapGradientOp op);

private:
  int64_t lanes(Type element) {
    return options.vectorBits / element.getIntOrFloatBitWidth();
  }
  VectorType vectorOf(Type element) {
    return VectorType::get(lanes(element), element);
  }
  SmallVector<Value>
  eachVector(Value block, int64_t together, Value begin,
             llvm::function_ref<Value(Value c, Value folded)> body);
  int64_t panelVectors() { return options.panelBytes * 8 / options.vectorBits; }
  /// What the number of vectors in a row of the tile is a multiple of.
  int64_t vectorsOf(MemRefType tile) {
    return tile.isDynamicDim(1)
               ? panelVectors()
               : tile.getDimSize(1) / lanes(tile.getElementType());
  }
  Value load(VectorType type, Value buffer, ValueRange indices) {
    return b.make<vector::LoadOp>(type, buffer, indices);
  }
  void store(Value vector, Value buffer, ValueRange indices) {
    b.make<vector::StoreOp>(vector, buffer, indices);
  }
  Value splat(VectorType type, Value scalar) {
    return b.make<vector::BroadcastOp>(type, scalar);
  }
  /// A number of a float type, or a vector full of it.
  Value number(Type type, double value) {
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    bool inexact;
    llvm::APFloat rounded(value);
    rounded.convert(element.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &inexact);
    auto scalar = FloatAttr::get(element, rounded);
    if (auto vector = dyn_cast<VectorType>(type))
      return b.make<arith::ConstantOp>(
          DenseElementsAttr::get(vector, Attribute(scalar)));
    return b.make<arith::ConstantOp>(scalar);
  }
  Value integer(Type type, int64_t value) {
    auto element = cast<IntegerType>(getElementTypeOrSelf(type));
    auto scalar = IntegerAttr::get(element, value);
    if (auto vector = dyn_cast<VectorType>(type))
      return b.make<arith::ConstantOp>(
          DenseElementsAttr::get(vector, Attribute(scalar)));
    return b.make<arith::ConstantOp>(scalar);
  }
  /// a b + c
  Value fma(Value a, Value x, Value c) {
    if (!options.fma)
      return b.make<arith::AddFOp>(b.make<arith::MulFOp>(a, x), c);
    if (isa<VectorType>(a.getType()))
      return b.make<vector::FMAOp>(a, x, c);
    return b.make<math::FmaOp>(a, x, c);
  }
  Value maximum(Value a, Value c) {
    Value greater = b.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, c);
    return b.select(greater, a, c);
  }
  Value isMinusInfinity(Value x) {
    return b.make<arith::CmpFOp>(
        arith::CmpFPredicate::OEQ, x,
        number(x.getType(), -std::numeric_limits<double>::infinity()));
  }
  /// The same value, of which LLVM does not know that it was just loaded: it
  /// would turn a load, a select and a store into a masked store, which some
  /// processors execute in microcode.
  Value opaque(Value value) {
    return b
        .make<LLVM::CallIntrinsicOp>(value.getType(),
                                     b.getStringAttr("llvm.arithmetic.fence"),
                                     ValueRange(value))
        .getResult(0);
  }
  Value half(Value pairs, bool second);
  Value dot(Value a, Value x, Value c);
  Value narrow(Value x);
  Value exp2(Value x);
  Value exp2Difference(Value a, Value c);
  Value reference(Value m);
  Value convert(Value value, Type element);
  void eachColumn(int64_t columns, Type element,
                  llvm::function_ref<void(Value, Type)> body);
  void eachColumn(Value view, Type element,
                  llvm::function_ref<void(Value, Type)> body);
  /// What a map does at the points of one vector: their row and first column,
  /// which of them are columns at all, and b to sk. `sums` are carried from
  /// vector to vector.
  using MapBody = llvm::function_ref<void(ValueRange at, Value isColumn,
                                          ArrayRef<Value> arguments,
                                          SmallVector<Value> &sums)>;
  template <typename Map>
  SmallVector<Value> eachPoint(Map op, MemRefType tile, ValueRange sums,
                               MapBody body);
  Value spill(Value vector);
  void addAt(Value table, ArrayRef<Value> indices, Value amount, Value counts);

  tile::LoopBuilder b;
  const TileToVectorPassOptions &options;
};

} // namespace

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// 2^x for x up to 0 (or a little above), within 2 units in the last place:
/// x = n + f with n an integer and |f| <= 1/2, 2^f a polynomial, interpolated
/// at the Chebyshev nodes of [-1/2, 1/2] (relative error 2.6e-9 in degree 6,
/// 4.3e-18 in degree 11). Adding 1.5 * 2^digits rounds x to n and leaves n in
/// the low bits; with the exponent of 1 added too, these are the exponent of
/// 2^n, or that of 0 where x is below the normal range. NaN stays NaN.
Value Vectorizer::exp2(Value x) {
  static constexpr double six[] = {1.0,
                                   0.6931472067028326,
                                   0.24022650922288757,
                                   0.05550327226670302,
                                   0.009618056678524637,
                                   0.0013400428177615838,
                                   0.0001546144469856913};
  static constexpr double eleven[] = {1.0,
                                      0.6931471805599453,
                                      0.24022650695910158,
                                      0.055504108664821625,
                                      0.009618129107587256,
                                      0.001333355814640647,
                                      0.00015403530463724353,
                                      1.5252733841556773e-05,
                                      1.3215432535912375e-06,
                                      1.0178057087733941e-07,
                                      7.074194297288521e-09,
                                      4.4558179083360645e-10};
  Type type = x.getType();
  bool isSingle = getElementTypeOrSelf(type).isF32();
  ArrayRef<double> coefficients =
      isSingle ? ArrayRef<double>(six) : ArrayRef<double>(eleven);
  int64_t digits = isSingle ? 23 : 52;
  double bias = isSingle ? 127.0 : 1023.0;
  // One instruction, which keeps NaN.
  Value lowest = number(type, -bias);
  Value clamped = b.select(
      b.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, lowest), lowest, x);
  Value magic = number(type, std::ldexp(1.5, digits) + bias);
  Value shifted = b.make<arith::AddFOp>(clamped, magic);
  Value n = b.make<arith::SubFOp>(shifted, magic);
  Value f = b.make<arith::SubFOp>(clamped, n);
  Value power = number(type, coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    power = fma(power, f, number(type, coefficient));
  Type bits = IntegerType::get(b.getContext(), isSingle ? 32 : 64);
  if (auto vector = dyn_cast<VectorType>(type))
    bits = vector.clone(bits);
  Value exponent = b.make<arith::ShLIOp>(
      b.make<arith::BitcastOp>(bits, shifted), integer(bits, digits));
  return b.make<arith::MulFOp>(power, b.make<arith::BitcastOp>(type, exponent));
}

/// What is subtracted from scores: m, or 0 where nothing was seen.
Value Vectorizer::reference(Value m) {
  return b.select(isMinusInfinity(m), number(m.getType(), 0.0), m);
}

/// exp2(a - c), where c is a reference at least as large as a.
Value Vectorizer::exp2Difference(Value a, Value c) {
  return exp2(b.make<arith::SubFOp>(a, c));
}

/// A float, or a vector of them, in another type of elements.
Value Vectorizer::convert(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType()), type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (from == element)
    return value;
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return b.make<arith::ExtFOp>(type, value);
  return b.make<arith::TruncFOp>(type, value);
}

/// Pairs of bf16 as 32 bits each: their first or second numbers as f32, whose
/// upper half a bf16 is.
Value Vectorizer::half(Value pairs, bool second) {
  auto type = cast<VectorType>(pairs.getType());
  Value bits;
  if (second)
    bits = b.make<arith::AndIOp>(pairs, integer(type, -0x10000));
  else
    bits = b.make<arith::ShLIOp>(pairs, integer(type, 16));
  return b.make<arith::BitcastOp>(type.clone(b.getF32Type()), bits);
}

/// c + the products of pairs, given as 32 bits each.
Value Vectorizer::dot(Value a, Value x, Value c) {
  if (!options.dot)
    return fma(half(a, true), half(x, true),
               fma(half(a, false), half(x, false), c));
  auto type = VectorType::get(
      2 * cast<VectorType>(a.getType()).getNumElements(), b.getBF16Type());
  return b.make<x86vector::DotBF16Op>(c.getType(), c,
                                      b.make<vector::BitCastOp>(type, a),
                                      b.make<vector::BitCastOp>(type, x));
}

/// A vector of f32, rounded to bf16.
Value Vectorizer::narrow(Value x) {
  if (!options.dot)
    return convert(x, b.getBF16Type());
  return b.make<x86vector::CvtPackedF32ToBF16Op>(
      cast<VectorType>(x.getType()).clone(b.getBF16Type()), x);
}

/// Columns in vectors, then one by one.
void Vectorizer::eachColumn(int64_t columns, Type element,
                            llvm::function_ref<void(Value, Type)> body) {
  int64_t whole = llvm::alignDown(columns, lanes(element));
  if (whole != 0)
    b.loop(b.index(0), b.index(whole), lanes(element),
           [&](Value c) { body(c, vectorOf(element)); });
  if (whole != columns)
    b.loop(b.index(whole), b.index(columns), 1,
           [&](Value c) { body(c, element); });
}

/// All columns of a view, of which there may be any number.
void Vectorizer::eachColumn(Value view, Type element,
                            llvm::function_ref<void(Value, Type)> body) {
  MemRefType type = bufferOf(view);
  if (!type.isDynamicDim(1))
    return eachColumn(type.getDimSize(1), element, body);
  Value columns = b.dim(view, 1);
  Value whole = b.sub(columns, b.rem(columns, b.index(lanes(element))));
  b.loop(b.index(0), whole, lanes(element),
         [&](Value c) { body(c, vectorOf(element)); });
  b.loop(whole, columns, 1, [&](Value c) { body(c, element); });
}

//===----------------------------------------------------------------------===//
// Between memory and blocks
//===----------------------------------------------------------------------===//

namespace {
/// Loads and stores scalars or vectors alike.
struct Access {
  tile::LoopBuilder &b;

  Value load(Type type, Value buffer, ValueRange indices) const {
    if (auto vector = dyn_cast<VectorType>(type))
      return b.make<vector::LoadOp>(
          vector.clone(bufferOf(buffer).getElementType()), buffer, indices);
    return b.load(buffer, indices);
  }
  void store(Value value, Value buffer, ValueRange indices) const {
    if (isa<VectorType>(value.getType()))
      b.make<vector::StoreOp>(value, buffer, indices);
    else
      b.store(value, buffer, indices);
  }
};
} // namespace

void Vectorizer::lower(tile::LoadOp op) {
  Value view = op.getView(), block = op.getBlock();
  MemRefType type = bufferOf(block);
  Type element = type.getElementType();
  Access access{b};
  auto scaled = [&](Value value) -> Value {
    value = convert(value, element);
    double factor = op.getFactor().convertToDouble();
    if (factor == 1.0)
      return value;
    return b.make<arith::MulFOp>(value, number(value.getType(), factor));
  };
  Value rows = b.dim(view, 0), all = b.index(type.getDimSize(0));
  double padding = op.getPadding().convertToDouble();
  if (type.getRank() == 1) {
    b.loop(rows, [&](Value r) { b.store(scaled(b.load(view, r)), block, r); });
    b.loop(rows, all, 1,
           [&](Value r) { b.store(number(element, padding), block, r); });
    return;
  }
  int64_t width = type.getDimSize(1);
  b.loop(rows, [&](Value r) {
    eachColumn(view, element, [&](Value c, Type part) {
      access.store(scaled(access.load(part, view, {r, c})), block, {r, c});
    });
    if (bufferOf(view).getDimSize(1) != width)
      b.loop(b.dim(view, 1), b.index(width), 1, [&](Value c) {
        b.store(number(element, padding), block, {r, c});
      });
  });
  b.loop(rows, all, 1, [&](Value r) {
    eachColumn(width, element, [&](Value c, Type part) {
      access.store(number(part, padding), block, {r, c});
    });
  });
}

void Vectorizer::lower(tile::StoreOp op) {
  Value view = op.getView(), block = op.getBlock();
  Type element = bufferOf(block).getElementType();
  Type target = bufferOf(view).getElementType();
  Access access{b};
  b.loop(b.dim(view, 0), [&](Value r) {
    if (bufferOf(block).getRank() == 1)
      return b.store(convert(b.load(block, r), target), view, r);
    eachColumn(view, element, [&](Value c, Type part) {
      access.store(convert(access.load(part, block, {r, c}), target), view,
                   {r, c});
    });
  });
}

/// Panels with the two numbers of pairs among the columns.
static Value flatten(tile::LoopBuilder &b, Value panels) {
  if (bufferOf(panels).getRank() == 3)
    return panels;
  return b.make<memref::CollapseShapeOp>(
      panels, SmallVector<ReassociationIndices>{{0}, {1}, {2, 3}});
}

void Vectorizer::lower(tile::IsFiniteOp op) {
  Value flat = flatten(b, op.getPanels());
  MemRefType type = bufferOf(flat);
  Type element = type.getElementType();
  if (element.isBF16())
    element = b.getF32Type();
  VectorType vector = vectorOf(element),
             part = vector.clone(type.getElementType());
  // x - x is 0 for numbers, and NaN for what is none.
  auto panels = b.loop(
      b.index(type.getDimSize(0)), number(vector, 0.0),
      [&](Value p, ValueRange sums) {
        auto rows = b.loop(
            b.index(type.getDimSize(1)), sums, [&](Value k, ValueRange inner) {
              Value sum = inner.front();
              for (int64_t c = 0; c < type.getDimSize(2);
                   c += vector.getNumElements()) {
                Value x =
                    convert(load(part, flat, {p, k, b.index(c)}), element);
                sum = b.make<arith::AddFOp>(sum, b.make<arith::SubFOp>(x, x));
              }
              return SmallVector<Value>{sum};
            });
        return SmallVector<Value>{rows.getResult(0)};
      });
  Value total = b.make<vector::ReductionOp>(vector::CombiningKind::ADD,
                                            panels.getResult(0),
                                            arith::FastMathFlags::reassoc);
  op.replaceAllUsesWith(Value(b.make<arith::CmpFOp>(
      arith::CmpFPredicate::OEQ, total, number(element, 0.0))));
}

void Vectorizer::lower(tile::FillOp op) {
  MemRefType type = bufferOf(op.getBlock());
  double value = op.getValue().convertToDouble();
  b.loop(b.index(type.getDimSize(0)), [&](Value r) {
    if (type.getRank() == 1)
      return b.store(number(type.getElementType(), value), op.getBlock(), r);
    eachColumn(type.getDimSize(1), type.getElementType(),
               [&](Value c, Type part) {
                 Access{b}.store(number(part, value), op.getBlock(), {r, c});
               });
  });
}

/// Vectors, as many as one has numbers, become the columns of what they are the
/// rows of: blocks of 1, 2, 4... numbers off the diagonal change places.
void Vectorizer::transpose(MutableArrayRef<Value> rows) {
  auto size = static_cast<int64_t>(rows.size());
  for (int64_t block = 1; block < size; block *= 2) {
    SmallVector<int64_t> upper, lower;
    for (int64_t c = 0; c < size; ++c) {
      upper.push_back(c & block ? size + c - block : c);
      lower.push_back(c & block ? size + c : c + block);
    }
    for (int64_t r = 0; r < size; ++r) {
      if (r & block)
        continue;
      Value a = rows[r], x = rows[r + block];
      rows[r] = b.make<vector::ShuffleOp>(a, x, upper);
      rows[r + block] = b.make<vector::ShuffleOp>(a, x, lower);
    }
  }
}

/// Two steps of the depth side by side.
void Vectorizer::packPairs(tile::PackOp op) {
  Value view = op.getView(), panels = op.getPanels();
  MemRefType type = bufferOf(panels);
  Type element = type.getElementType();
  int64_t count = type.getDimSize(0), depth = type.getDimSize(1);
  int64_t width = type.getDimSize(2);
  Value zero = number(element, 0.0), wide = b.index(width);
  Value first = b.index(0), second = b.index(1);
  Value rows = b.dim(view, 0), two = b.index(2);
  int64_t columns = bufferOf(view).getDimSize(1);
  if (op.getTransposed()) {
    // A row's numbers are pairs already.
    auto pair = VectorType::get(2, element);
    Value flat = flatten(b, panels);
    b.loop(b.index(count), [&](Value p) {
      Value begin = b.mul(p, wide);
      Value here = b.max(b.index(0), b.min(b.sub(rows, begin), wide));
      b.loop(here, [&](Value j) {
        Value row = b.add(begin, j), place = b.mul(j, two);
        b.loop(b.index(columns / 2), [&](Value k) {
          store(load(pair, view, {row, b.mul(k, two)}), flat, {p, k, place});
        });
        if (columns % 2 != 0) {
          Value k = b.index(columns / 2);
          b.store(b.load(view, {row, b.index(columns - 1)}), panels,
                  {p, k, j, first});
          b.store(zero, panels, {p, k, j, second});
        }
        b.loop(b.index((columns + 1) / 2), b.index(depth), 1,
               [&](Value k) { store(number(pair, 0.0), flat, {p, k, place}); });
      });
      b.loop(here, wide, 1, [&](Value j) {
        b.loop(b.index(depth), [&](Value k) {
          store(number(pair, 0.0), flat, {p, k, b.mul(j, two)});
        });
      });
    });
    return;
  }
  Value flat = flatten(b, panels);
  Access access{b};
  int64_t whole = columns / width;
  /// Pair k of the depth, by what gives the numbers of columns from c on.
  auto fill = [&](Value k, auto &&even, auto &&odd) {
    auto place = [&](Value p, Value j, Type part) {
      Value c = b.add(b.mul(p, wide), j);
      Value a = even(c, part), x = odd(c, part);
      if (isa<VectorType>(part))
        return store(b.make<vector::InterleaveOp>(a, x), flat,
                     {p, k, b.mul(j, two)});
      b.store(a, panels, {p, k, j, first});
      b.store(x, panels, {p, k, j, second});
    };
    b.loop(b.index(whole), [&](Value p) {
      eachColumn(width, b.getF32Type(),
                 [&](Value j, Type part) { place(p, j, part); });
    });
    if (whole == count)
      return;
    Value p = b.index(whole);
    eachColumn(columns - whole * width, b.getF32Type(),
               [&](Value j, Type part) { place(p, j, part); });
    b.loop(b.index((columns - whole * width) * 2), b.index(width * 2), 1,
           [&](Value j) { b.store(zero, flat, {p, k, j}); });
  };
  auto row = [&](Value r) {
    return
        [&, r](Value c, Type part) { return access.load(part, view, {r, c}); };
  };
  auto nothing = [&](Value, Type part) {
    return isa<VectorType>(part)
               ? number(cast<VectorType>(part).clone(element), 0.0)
               : zero;
  };
  Value pairs = b.div(rows, two);
  b.loop(pairs, [&](Value k) {
    Value r = b.mul(k, two);
    fill(k, row(r), row(b.add(r, second)));
  });
  Value used = b.div(b.add(rows, second), two);
  b.loop(pairs, used, 1,
         [&](Value k) { fill(k, row(b.mul(k, two)), nothing); });
  b.loop(used, b.index(depth), 1, [&](Value k) { fill(k, nothing, nothing); });
}

void Vectorizer::lower(tile::PackOp op) {
  if (bufferOf(op.getPanels()).getElementType().isBF16())
    return packPairs(op);
  Value view = op.getView(), panels = op.getPanels();
  MemRefType type = bufferOf(panels);
  Type element = type.getElementType();
  int64_t count = type.getDimSize(0), depth = type.getDimSize(1);
  int64_t width = type.getDimSize(2);
  Value zero = number(element, 0.0), wide = b.index(width);
  // The view's rows are columns of the panels, or their depth.
  Value rows = b.dim(view, 0);
  int64_t columns = bufferOf(view).getDimSize(1);
  Access access{b};
  if (op.getTransposed()) {
    VectorType vector = vectorOf(element);
    int64_t lane = vector.getNumElements();
    /// Some rows of the view from column `begin` on, number by number.
    auto copy = [&](Value p, Value j, Value row, int64_t begin) {
      b.loop(b.index(begin), b.index(columns), 1, [&](Value k) {
        b.store(convert(b.load(view, {row, k}), element), panels, {p, k, j});
      });
    };
    b.loop(b.index(count), [&](Value p) {
      Value first = b.mul(p, wide);
      Value here = b.max(b.index(0), b.min(b.sub(rows, first), wide));
      // As many rows as a vector has numbers, and as many columns.
      int64_t whole = llvm::alignDown(columns, lane);
      Value grouped = b.index(0);
      if (whole != 0)
        grouped = b.sub(here, b.rem(here, b.index(lane)));
      b.loop(b.index(0), grouped, lane, [&](Value j) {
        SmallVector<Value> group;
        for (int64_t r = 0; r < lane; ++r)
          group.push_back(b.add(b.add(first, j), b.index(r)));
        b.loop(b.index(0), b.index(whole), lane, [&](Value k) {
          SmallVector<Value> square;
          for (Value row : group)
            square.push_back(
                convert(access.load(vector, view, {row, k}), element));
          transpose(square);
          for (auto [r, column] : llvm::enumerate(square))
            store(column, panels, {p, b.add(k, b.index(r)), j});
        });
        if (whole != columns)
          b.loop(b.index(lane), [&](Value r) {
            Value place = b.add(j, r);
            copy(p, place, b.add(first, place), whole);
          });
      });
      b.loop(grouped, here, 1,
             [&](Value j) { copy(p, j, b.add(first, j), 0); });
      b.loop(here, wide, 1, [&](Value j) {
        b.loop(b.index(depth),
               [&](Value k) { b.store(zero, panels, {p, k, j}); });
      });
    });
    return;
  }
  int64_t whole = columns / width;
  b.loop(rows, [&](Value k) {
    // Panels that the view fills, then the one that it begins.
    b.loop(b.index(whole), [&](Value p) {
      Value first = b.mul(p, wide);
      eachColumn(width, element, [&](Value j, Type part) {
        Value value = access.load(part, view, {k, b.add(first, j)});
        access.store(convert(value, element), panels, {p, k, j});
      });
    });
    if (whole == count)
      return;
    Value p = b.index(whole), first = b.index(whole * width);
    eachColumn(columns - whole * width, element, [&](Value j, Type part) {
      Value value = access.load(part, view, {k, b.add(first, j)});
      access.store(convert(value, element), panels, {p, k, j});
    });
    b.loop(b.index(columns - whole * width), wide, 1,
           [&](Value j) { b.store(zero, panels, {p, k, j}); });
  });
  b.loop(rows, b.index(depth), 1, [&](Value k) {
    b.loop(b.index(count), [&](Value p) {
      eachColumn(width, element, [&](Value j, Type part) {
        access.store(number(part, 0.0), panels, {p, k, j});
      });
    });
  });
}

void Vectorizer::lower(tile::PositionsOp op) {
  Value positions = op.getPositions();
  Value all = b.index(bufferOf(positions).getDimSize(0));
  auto last = b.loop(op.getCount(), b.index(0), [&](Value x, ValueRange) {
    Value y = b.add(op.getFirst(), x);
    Value jumps = b.mul(b.div(y, op.getBlock()), op.getStep());
    Value position =
        b.add(op.getBegin(), b.add(jumps, b.rem(y, op.getBlock())));
    b.store(position, positions, x);
    return SmallVector<Value>{position};
  });
  b.loop(op.getCount(), all, 1,
         [&](Value x) { b.store(last.getResult(0), positions, x); });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Where a product finds a[r, k], or the score of it.
static SmallVector<Value> leftAt(tile::MultiplyOp op, Value r, Value k) {
  if (op.getTransposed())
    return {k, r};
  return {r, k};
}

/// Rare: number by number.
void Vectorizer::multiplyWhere(tile::MultiplyOp op) {
  MemRefType panels = bufferOf(op.getB());
  Type element = bufferOf(op.getC()).getElementType();
  Value wide = b.index(panels.getDimSize(2)), none = number(element, 0.0);
  Value columns = b.dim(op.getC(), 1);
  bool isPairs = panels.getRank() == 4;
  Value two = b.index(2);
  Value depth = op.getDepth() ? op.getDepth() : b.dim(op.getB(), 1);
  if (isPairs)
    depth = b.mul(depth, two);
  double factor = op.getFactor().convertToDouble();
  auto left = [&](Value r, Value k) {
    return bufferOf(op.getA()).getRank() == 3
               ? b.load(op.getA(), {b.div(k, two), r, b.rem(k, two)})
               : b.load(op.getA(), leftAt(op, r, k));
  };
  auto right = [&](Value k, Value c) {
    Value p = b.div(c, wide), j = b.rem(c, wide);
    return isPairs ? b.load(op.getB(), {p, b.div(k, two), j, b.rem(k, two)})
                   : b.load(op.getB(), {p, k, j});
  };
  b.loop(op.getRows(), [&](Value r) {
    if (!op.getAccumulate())
      b.loop(columns, [&](Value c) { b.store(none, op.getC(), {r, c}); });
    b.loop(depth, [&](Value k) {
      Value isSeen = b.make<arith::CmpFOp>(
          arith::CmpFPredicate::UNE, b.load(op.getSeen(), leftAt(op, r, k)),
          number(element, -std::numeric_limits<double>::infinity()));
      b.when(isSeen, [&] {
        Value weight = convert(left(r, k), element);
        if (factor != 1.0)
          weight = b.make<arith::MulFOp>(weight, number(element, factor));
        b.loop(columns, [&](Value c) {
          Value value = convert(right(k, c), element);
          b.store(fma(weight, value, b.load(op.getC(), {r, c})), op.getC(),
                  {r, c});
        });
      });
    });
  });
}

void Vectorizer::lower(tile::MultiplyOp op) {
  if (op.getSeen())
    return multiplyWhere(op);
  MemRefType panels = bufferOf(op.getB());
  bool isPairs = panels.getRank() == 4;
  VectorType vector = vectorOf(bufferOf(op.getC()).getElementType());
  int64_t lane = vector.getNumElements(), width = panels.getDimSize(2);
  int64_t height = bufferOf(op.getC()).getDimSize(0);
  int64_t fullRows = std::min<int64_t>(options.microRows, height);
  // Panels that a register tile is wide.
  int64_t abreast = std::max<int64_t>(1, options.microVectors * lane / width);
  // A pair is loaded, and copied to all lanes, as 32 bits.
  VectorType bits = vector.clone(b.getI32Type());
  Value flat = flatten(b, op.getB()), two = b.index(2);
  auto loadRight = [&](Value p, Value k, int64_t column) -> Value {
    if (!isPairs)
      return load(vector, flat, {p, k, b.index(column)});
    auto pairs = VectorType::get(2 * lane, b.getBF16Type());
    return b.make<vector::BitCastOp>(
        bits, load(pairs, flat, {p, k, b.index(2 * column)}));
  };
  auto loadLeft = [&](Value row, Value k) -> Value {
    if (!isPairs)
      return splat(vector, b.load(op.getA(), leftAt(op, row, k)));
    SmallVector<Value> at{row, b.mul(k, two)};
    if (op.getTransposed())
      at = {k, row, b.index(0)};
    Value pairs = b.make<vector::BitCastOp>(
        VectorType::get(1, b.getI32Type()),
        load(VectorType::get(2, b.getBF16Type()), op.getA(), at));
    return splat(bits, b.make<vector::ExtractOp>(pairs, int64_t{0}));
  };
  double factor = op.getFactor().convertToDouble();

  /// `microRows` rows from row i on, by `abreast` panels from panel p on.
  auto multiplyTile = [&](Value i, int64_t microRows, Value p,
                          int64_t abreast) {
    SmallVector<Value> row, panel;
    for (int64_t r = 0; r < microRows; ++r)
      row.push_back(b.add(i, b.index(r)));
    for (int64_t n = 0; n < abreast; ++n)
      panel.push_back(b.add(p, b.index(n)));
    int64_t microColumns = abreast * width / lane;
    // Sums begin at 0 and are added to what is there behind the loop: the error
    // of a sum of many tiles grows with their number, not with that of terms.
    SmallVector<Value> sums(static_cast<size_t>(microRows * microColumns),
                            number(vector, 0.0));
    auto steps = [&](Value begin, Value end, int64_t together,
                     ValueRange sums) {
      return b.loop(
          begin, end, together, sums, [&](Value first, ValueRange carried) {
            SmallVector<Value> next(carried);
            for (int64_t step = 0; step < together; ++step) {
              Value k = b.add(first, b.index(step));
              SmallVector<Value> right;
              for (Value p : panel)
                for (int64_t column = 0; column < width; column += lane)
                  right.push_back(loadRight(p, k, column));
              for (int64_t r = 0; r < microRows; ++r) {
                Value left = loadLeft(row[r], k);
                for (int64_t v = 0; v < microColumns; ++v) {
                  Value &sum = next[r * microColumns + v];
                  sum = isPairs ? dot(left, right[v], sum)
                                : fma(left, right[v], sum);
                }
              }
            }
            return next;
          });
    };
    int64_t together = options.steps;
    Value depth = op.getDepth();
    if (!depth) {
      depth = b.dim(op.getB(), 1);
      // One that is not static is of whole panels of scores.
      int64_t all = panels.isDynamicDim(1)
                        ? panelVectors() * lane / (isPairs ? 2 : 1)
                        : panels.getDimSize(1);
      together = std::gcd(all, together);
    }
    Value last = op.getDepth() ? b.rem(depth, b.index(together)) : b.index(0);
    auto loop = steps(b.index(0), b.sub(depth, last), together, sums);
    if (op.getDepth() && together > 1)
      loop = steps(loop.getUpperBound(), depth, 1, loop.getResults());
    Value first = b.mul(p, b.index(width));
    for (int64_t r = 0; r < microRows; ++r)
      for (int64_t v = 0; v < microColumns; ++v) {
        SmallVector<Value> place{row[r], b.add(first, b.index(v * lane))};
        Value sum = loop.getResult(r * microColumns + v);
        if (op.getAccumulate()) {
          Value before = load(vector, op.getC(), place);
          sum = factor == 1.0 ? Value(b.make<arith::AddFOp>(sum, before))
                              : fma(sum, number(vector, factor), before);
        } else if (factor != 1.0) {
          sum = b.make<arith::MulFOp>(sum, number(vector, factor));
        }
        store(sum, op.getC(), place);
      }
  };
  auto multiplyStrip = [&](Value i, int64_t microRows) {
    Value count = b.dim(op.getB(), 0);
    bool mayRemain = panels.isDynamicDim(0) || panels.getDimSize(0) % abreast;
    Value whole =
        mayRemain ? b.sub(count, b.rem(count, b.index(abreast))) : count;
    b.loop(b.index(0), whole, abreast,
           [&](Value p) { multiplyTile(i, microRows, p, abreast); });
    if (mayRemain && abreast > 1)
      b.loop(whole, count, 1,
             [&](Value p) { multiplyTile(i, microRows, p, 1); });
  };
  // A strip of the left operand stays in the first level cache while the panels
  // pass by, one number after the other, as prefetchers like it.
  //
  // A lower strip for the rows that remain: less than full ones all the way
  // down would leave multipliers idle.
  Value rows = op.getRows();
  int64_t rest = height % fullRows;
  Value whole = b.index(height - rest);
  b.loop(b.index(0), rest == 0 ? rows : b.min(rows, whole), fullRows,
         [&](Value i) { multiplyStrip(i, fullRows); });
  if (rest != 0)
    b.when(b.compare(arith::CmpIPredicate::sgt, rows, whole),
           [&] { multiplyStrip(whole, rest); });
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// What depends on columns alone, reads of tables too, is computed once for all
/// rows.
static void hoistReads(scf::ForOp rows) {
  SmallPtrSet<Value, 4> written;
  rows.walk([&](Operation *op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      written.insert(store.getMemRef());
    else if (auto store = dyn_cast<vector::StoreOp>(op))
      written.insert(store.getBase());
  });
  auto isRead = [&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return !written.contains(load.getMemRef());
    auto gather = dyn_cast<vector::GatherOp>(op);
    return gather && !written.contains(gather.getBase());
  };
  moveLoopInvariantCode(
      {&rows.getRegion()},
      [](Value value, Region *region) {
        return !region->isAncestor(value.getParentRegion());
      },
      [&](Operation *op, Region *) { return isPure(op) || isRead(op); },
      [&](Operation *op, Region *) { op->moveBefore(rows); });
}

template <typename Map>
SmallVector<Value> Vectorizer::eachPoint(Map op, MemRefType tile,
                                         ValueRange sums, MapBody body) {
  int64_t lane = lanes(tile.getElementType());
  auto indices = VectorType::get(lane, b.getIndexType());
  SmallVector<int64_t> steps(lane);
  std::iota(steps.begin(), steps.end(), 0);
  Value numbers =
      b.make<arith::ConstantOp>(DenseIntElementsAttr::get(indices, steps));
  Value columns = splat(indices, op.getColumns());

  auto loop = b.loop(
      b.index(0), b.index(tile.getDimSize(1)), lane, sums,
      [&](Value c, ValueRange sums) {
        Value j = load(indices, op.getJ(), c);
        Value isColumn = b.compare(arith::CmpIPredicate::slt,
                                   b.add(splat(indices, c), numbers), columns);
        auto rows = b.loop(op.getRows(), sums, [&](Value r, ValueRange sums) {
          SmallVector<Value> next(sums);
          body({r, c}, isColumn,
               {op.getBatch(), op.getHead(), b.load(op.getI(), r), j,
                op.getQueries(), op.getKeys()},
               next);
          return next;
        });
        hoistReads(rows);
        return SmallVector<Value>(rows.getResults());
      });
  return SmallVector<Value>(loop.getResults());
}

void Vectorizer::lower(tile::MapOp op) {
  MemRefType type = bufferOf(op.getS());
  VectorType vector = vectorOf(type.getElementType());
  int64_t lane = vector.getNumElements();
  Value minusInfinity =
      number(vector, -std::numeric_limits<double>::infinity());
  double unit = op.getUnit().convertToDouble();
  eachPoint(op, type, {},
            [&](ValueRange at, Value keep, ArrayRef<Value> arguments, auto &) {
              Value s = opaque(load(vector, op.getS(), at));
              if (!op.getScore().empty()) {
                SmallVector<Value> all{s};
                llvm::append_range(all, arguments);
                llvm::append_range(all, op.getScoreCaptures());
                s = vectorizeRegion(b, op.getScore().front(), all, lane);
                if (unit != 1.0)
                  s = b.make<arith::MulFOp>(s, number(vector, unit));
              }
              if (!op.getMask().empty()) {
                SmallVector<Value> all(arguments);
                llvm::append_range(all, op.getMaskCaptures());
                keep = b.both(
                    keep, vectorizeRegion(b, op.getMask().front(), all, lane));
              }
              store(b.select(keep, s, minusInfinity), op.getS(), at);
            });
}

/// Goes over the columns of a row in vectors, as many at a time as divide a
/// row, or, where columns are not static, as wanted, and then what is left.
/// Each of those at a time folds its own value, which begins as `begin`.
SmallVector<Value>
Vectorizer::eachVector(Value block, int64_t together, Value begin,
                       llvm::function_ref<Value(Value c, Value folded)> body) {
  MemRefType type = bufferOf(block);
  int64_t lane = lanes(type.getElementType());
  if (!type.isDynamicDim(1))
    together = std::gcd(vectorsOf(type), together);
  Value columns = b.dim(block, 1), whole = columns;
  bool mayRemain = vectorsOf(type) % together != 0;
  if (mayRemain)
    whole = b.sub(columns, b.rem(columns, b.index(together * lane)));
  auto fold = [&](Value c, Value value) {
    Value next = body(c, value);
    return next ? SmallVector<Value>{next} : SmallVector<Value>();
  };
  SmallVector<Value> folded;
  if (begin)
    folded.assign(together, begin);
  auto loop = b.loop(b.index(0), whole, together * lane, folded,
                     [&](Value c, ValueRange carried) {
                       SmallVector<Value> next;
                       for (int64_t v = 0; v < together; ++v)
                         next.append(fold(b.add(c, b.index(v * lane)),
                                          begin ? carried[v] : Value()));
                       return next;
                     });
  folded = loop.getResults();
  if (!mayRemain)
    return folded;
  auto rest = b.loop(whole, columns, lane, ArrayRef(folded).take_front(),
                     [&](Value c, ValueRange carried) {
                       return fold(c, begin ? carried.front() : Value());
                     });
  if (begin)
    folded.front() = rest.getResult(0);
  return folded;
}

void Vectorizer::lower(tile::RowMaxOp op) {
  MemRefType type = bufferOf(op.getS());
  Type element = type.getElementType();
  VectorType vector = vectorOf(element);
  Value minusInfinity =
      number(vector, -std::numeric_limits<double>::infinity());
  b.loop(op.getRows(), [&](Value r) {
    SmallVector<Value> parts = eachVector(
        op.getS(), options.maxima, minusInfinity, [&](Value c, Value most) {
          return maximum(load(vector, op.getS(), {r, c}), most);
        });
    Value all = parts.front();
    for (Value part : ArrayRef(parts).drop_front())
      all = maximum(all, part);
    Value most = b.make<vector::ReductionOp>(vector::CombiningKind::MAXNUMF,
                                             all, arith::FastMathFlags::nnan);
    Value before = b.load(op.getM(), r);
    Value after = maximum(most, before);
    b.store(number(element, 1.0), op.getFactor(), r);
    // The largest score is found early: from then on nothing changes.
    Value changes =
        b.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, after, before);
    b.when(changes, [&] {
      b.store(after, op.getM(), r);
      b.store(exp2Difference(before, reference(after)), op.getFactor(), r);
    });
  });
}

void Vectorizer::lower(tile::ExponentialsOp op) {
  MemRefType type = bufferOf(op.getS());
  Type element = type.getElementType();
  VectorType vector = vectorOf(element);
  b.loop(op.getRows(), [&](Value r) {
    Value m = splat(vector, reference(b.load(op.getM(), r)));
    SmallVector<Value> sums =
        eachVector(op.getS(), options.exponentials, number(vector, 0.0),
                   [&](Value c, Value sum) -> Value {
                     Value weight =
                         exp2Difference(load(vector, op.getS(), {r, c}), m);
                     if (op.getP())
                       store(narrow(weight), op.getP(), {r, c});
                     else
                       store(weight, op.getS(), {r, c});
                     return b.make<arith::AddFOp>(sum, weight);
                   });
    Value sum = sums.front();
    for (Value part : ArrayRef(sums).drop_front())
      sum = b.make<arith::AddFOp>(sum, part);
    Value total = b.make<vector::ReductionOp>(vector::CombiningKind::ADD, sum,
                                              arith::FastMathFlags::reassoc);
    b.store(fma(b.load(op.getFactor(), r), b.load(op.getL(), r), total),
            op.getL(), r);
  });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void Vectorizer::lower(tile::RescaleOp op) {
  MemRefType type = bufferOf(op.getO());
  VectorType vector = vectorOf(type.getElementType());
  b.loop(op.getRows(), [&](Value r) {
    Value factor = b.load(op.getFactor(), r);
    Value changes = b.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, factor,
                                          number(type.getElementType(), 1.0));
    b.when(changes, [&] {
      Value factors = splat(vector, factor);
      b.loop(b.index(0), b.index(type.getDimSize(1)), vector.getNumElements(),
             [&](Value c) {
               Value o = load(vector, op.getO(), {r, c});
               store(b.make<arith::MulFOp>(o, factors), op.getO(), {r, c});
             });
    });
  });
}

void Vectorizer::lower(tile::MergeOp op) {
  MemRefType type = bufferOf(op.getO());
  VectorType vector = vectorOf(type.getElementType());
  b.loop(op.getRows(), [&](Value r) {
    Value m = b.load(op.getM(), r), m2 = b.load(op.getM2(), r);
    Value most = maximum(m, m2), base = reference(most);
    Value a = exp2Difference(m, base), a2 = exp2Difference(m2, base);
    Value l2 = b.make<arith::MulFOp>(a2, b.load(op.getL2(), r));
    b.store(most, op.getM(), r);
    b.store(fma(a, b.load(op.getL(), r), l2), op.getL(), r);
    Value all = splat(vector, a), all2 = splat(vector, a2);
    b.loop(b.index(0), b.index(type.getDimSize(1)), vector.getNumElements(),
           [&](Value c) {
             Value o2 =
                 b.make<arith::MulFOp>(all2, load(vector, op.getO2(), {r, c}));
             store(fma(all, load(vector, op.getO(), {r, c}), o2), op.getO(),
                   {r, c});
           });
  });
}

void Vectorizer::lower(tile::AddOp op) {
  MemRefType type = bufferOf(op.getA());
  VectorType vector = vectorOf(type.getElementType());
  b.loop(op.getRows(), [&](Value r) {
    b.loop(b.index(0), b.index(type.getDimSize(1)), vector.getNumElements(),
           [&](Value c) {
             Value a = load(vector, op.getA(), {r, c});
             Value x = load(vector, op.getB(), {r, c});
             store(b.make<arith::AddFOp>(a, x), op.getA(), {r, c});
           });
  });
}

void Vectorizer::lower(tile::RowDotOp op) {
  MemRefType type = bufferOf(op.getA());
  VectorType vector = vectorOf(type.getElementType());
  b.loop(op.getRows(), [&](Value r) {
    auto sum =
        b.loop(b.index(0), b.index(type.getDimSize(1)), vector.getNumElements(),
               number(vector, 0.0), [&](Value c, ValueRange sums) {
                 Value a = load(vector, op.getA(), {r, c});
                 Value x = load(vector, op.getB(), {r, c});
                 return SmallVector<Value>{fma(a, x, sums[0])};
               });
    Value dot = b.make<vector::ReductionOp>(vector::CombiningKind::ADD,
                                            sum.getResult(0));
    b.store(b.make<arith::SubFOp>(dot, b.load(op.getX(), r)), op.getX(), r);
  });
}

void Vectorizer::lower(tile::NormalizeOp op) {
  MemRefType type = bufferOf(op.getO());
  Type element = type.getElementType();
  VectorType vector = vectorOf(element);
  b.loop(op.getRows(), [&](Value r) {
    Value l = b.load(op.getL(), r), m = b.load(op.getM(), r);
    Value isEmpty = b.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, l,
                                          number(element, 0.0));
    // Nothing was seen: o is 0 and stays it, m + log 1 is -inf.
    Value sum = b.select(isEmpty, number(element, 1.0), l);
    Value natural = b.make<arith::MulFOp>(
        b.make<arith::AddFOp>(m, b.make<math::Log2Op>(sum)),
        number(element, std::numbers::ln2));
    b.store(natural, op.getM(), r);
    Value sums = splat(vector, sum);
    b.loop(b.index(0), b.index(type.getDimSize(1)), vector.getNumElements(),
           [&](Value c) {
             Value o = load(vector, op.getO(), {r, c});
             store(b.make<arith::DivFOp>(o, sums), op.getO(), {r, c});
           });
  });
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

void Vectorizer::lower(tile::WeightsOp op) {
  MemRefType type = bufferOf(op.getS());
  Type element = type.getElementType();
  VectorType vector = vectorOf(element);
  double infinity = std::numeric_limits<double>::infinity();
  b.loop(op.getRows(), [&](Value r) {
    Value lse = b.load(op.getLse(), r);
    // Weights are those of scores above this: of none in an empty row.
    Value floor =
        splat(vector, b.select(isMinusInfinity(lse), number(element, infinity),
                               number(element, -infinity)));
    Value base = splat(vector, lse);
    eachVector(op.getS(), options.weights, Value(), [&](Value c, Value) {
      Value s = load(vector, op.getS(), {r, c});
      Value counts = b.make<arith::CmpFOp>(arith::CmpFPredicate::UGT, s, floor);
      store(b.select(counts, exp2Difference(s, base), number(vector, 0.0)),
            op.getS(), {r, c});
      return Value();
    });
  });
}

void Vectorizer::lower(tile::DifferentialsOp op) {
  MemRefType type = bufferOf(op.getP());
  VectorType vector = vectorOf(type.getElementType());
  double factor = op.getFactor().convertToDouble();
  Value none = number(vector, 0.0);
  b.loop(op.getRows(), [&](Value r) {
    Value delta = splat(vector, b.load(op.getDelta(), r));
    b.loop(
        b.index(0), b.dim(op.getP(), 1), vector.getNumElements(), [&](Value c) {
          Value p = load(vector, op.getP(), {r, c});
          Value dp = load(vector, op.getDp(), {r, c});
          Value w = b.make<arith::MulFOp>(p, b.make<arith::SubFOp>(dp, delta));
          if (factor != 1.0)
            w = b.make<arith::MulFOp>(w, number(vector, factor));
          Value isNone =
              b.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, p, none);
          store(b.select(isNone, none, w), op.getDp(), {r, c});
        });
  });
}

void Vectorizer::lower(tile::RoundOp op) {
  VectorType vector = vectorOf(b.getF32Type());
  Value p = op.getP(), two = b.index(2);
  auto eachVector = [&](llvm::function_ref<void(Value c)> body) {
    b.loop(b.index(0), b.dim(op.getS(), 1), vector.getNumElements(), body);
  };
  auto rounded = [&](Value r, Value c) {
    return narrow(load(vector, op.getS(), {r, c}));
  };
  if (bufferOf(p).getRank() == 2)
    return b.loop(op.getRows(), [&](Value r) {
      eachVector([&](Value c) { store(rounded(r, c), p, {r, c}); });
    });
  Value flat = b.make<memref::CollapseShapeOp>(
      p, SmallVector<ReassociationIndices>{{0}, {1, 2}});
  auto eachPair = [&](Value begin, Value end, auto &&second) {
    b.loop(begin, end, 1, [&](Value k) {
      Value r = b.mul(k, two);
      eachVector([&](Value c) {
        store(b.make<vector::InterleaveOp>(rounded(r, c), second(r, c)), flat,
              {k, b.mul(c, two)});
      });
    });
  };
  Value whole = b.div(op.getRows(), two);
  eachPair(b.index(0), whole,
           [&](Value r, Value c) { return rounded(b.add(r, b.index(1)), c); });
  eachPair(whole, b.ceilDiv(op.getRows(), 2), [&](Value, Value) {
    return number(vector.clone(b.getBF16Type()), 0.0);
  });
}

/// A vector in memory. That is on the stack, and made once in a call.
Value Vectorizer::spill(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Value block;
  {
    OpBuilder::InsertionGuard guard(b);
    auto kernel =
        b.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>();
    b.setInsertionPointToStart(&kernel.getBody().front());
    block = b.alloca(MemRefType::get(type.getShape(), type.getElementType()));
  }
  store(vector, block, b.index(0));
  return block;
}

/// table[indices] += amount at the points that count, one after the other, with
/// indices clamped into the table. Where all points share an element, it gets
/// their sum.
void Vectorizer::addAt(Value table, ArrayRef<Value> indices, Value amount,
                       Value counts) {
  auto vector = cast<VectorType>(amount.getType());
  SmallVector<Value> places;
  bool differ = false;
  for (auto [d, index] : llvm::enumerate(indices)) {
    Value zero = b.index(0);
    Value last = b.sub(b.dim(table, static_cast<int64_t>(d)), b.index(1));
    if (auto type = dyn_cast<VectorType>(index.getType())) {
      zero = splat(type, zero);
      last = splat(type, last);
      differ = true;
    }
    places.push_back(b.max(b.min(index, last), zero));
  }
  auto add = [&](ValueRange at, Value value) {
    b.store(b.make<arith::AddFOp>(b.load(table, at), value), table, at);
  };
  if (!differ) {
    Value counted = b.select(counts, amount, number(vector, 0.0));
    Value sum = b.make<vector::ReductionOp>(vector::CombiningKind::ADD, counted,
                                            arith::FastMathFlags::reassoc);
    return add(places, sum);
  }
  // A loop, because the code of so many points takes long to compile. The first
  // index that differs also says whether a point counts.
  Value first;
  for (Value &place : places) {
    if (!isa<VectorType>(place.getType()))
      continue;
    if (!first)
      place = b.select(counts, place,
                       splat(cast<VectorType>(place.getType()), b.index(-1)));
    place = spill(place);
    if (!first)
      first = place;
  }
  Value amounts = spill(amount);
  b.loop(b.index(vector.getNumElements()), [&](Value lane) {
    SmallVector<Value> at = llvm::map_to_vector(places, [&](Value place) {
      return isa<MemRefType>(place.getType()) ? b.load(place, lane) : place;
    });
    Value isPoint =
        b.compare(arith::CmpIPredicate::sge, b.load(first, lane), b.index(0));
    b.when(isPoint, [&] { add(at, b.load(amounts, lane)); });
  });
}

/// Whether all points of a tile contribute to one element.
static bool isOfTile(ContributeOp op) {
  RegionArguments arguments =
      RegionArguments::of(RegionRole::Gradient, *op->getBlock());
  SmallVector<Value> open(op.getIndices());
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (llvm::is_contained(
            {arguments.score, arguments.i, arguments.j, arguments.g}, value))
      return false;
    if (Operation *defining = value.getDefiningOp())
      llvm::append_range(open, defining->getOperands());
  }
  return true;
}

void Vectorizer::lower(tile::MapGradientOp op) {
  MemRefType type = bufferOf(op.getW());
  VectorType vector = vectorOf(type.getElementType());
  Block &region = op.getGradient().front();
  Value none = number(vector, 0.0);
  // What goes to one element is summed up first: that is faster than adding it
  // vector by vector, and rounds less.
  llvm::SmallDenseMap<Operation *, size_t> numbers;
  for (auto contribute : region.getOps<ContributeOp>())
    if (isOfTile(contribute))
      numbers.insert({contribute, numbers.size()});
  auto run = [&](Value t, ArrayRef<Value> arguments, Value w,
                 Contribute contribute) {
    SmallVector<Value> all{t};
    llvm::append_range(all, arguments);
    all.push_back(w);
    llvm::append_range(all, op.getCaptures());
    return vectorizeRegion(b, region, all, vector.getNumElements(), contribute);
  };
  SmallVector<Value> zeros(numbers.size(), none);
  SmallVector<Value> sums = eachPoint(
      op, type, zeros,
      [&](ValueRange at, Value keep, ArrayRef<Value> arguments, auto &sums) {
        Value w = opaque(load(vector, op.getW(), at));
        Value counts = b.both(
            keep, b.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, w, none));
        Value t = load(vector, op.getT(), at);
        Value u = run(
            t, arguments, w,
            [&](ContributeOp contribute, Value amount,
                ArrayRef<Value> indices) {
              auto found = numbers.find(contribute);
              if (found == numbers.end())
                return addAt(op.getGradOf(contribute), indices, amount, counts);
              Value &sum = sums[found->second];
              sum = b.make<arith::AddFOp>(sum, b.select(counts, amount, none));
            });
        store(b.select(counts, u, none), op.getW(), at);
      });
  if (numbers.empty())
    return;
  // Once more, for the indices alone: of no point in particular.
  Value all = b.make<arith::ConstantOp>(
      DenseElementsAttr::get(vector.clone(b.getI1Type()), true));
  Value nowhere = b.index(0);
  run(none,
      {op.getBatch(), op.getHead(), nowhere, nowhere, op.getQueries(),
       op.getKeys()},
      none, [&](ContributeOp contribute, Value, ArrayRef<Value> indices) {
        auto found = numbers.find(contribute);
        if (found != numbers.end())
          addAt(op.getGradOf(contribute), indices, sums[found->second], all);
      });
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct TileToVector : burst::cpu::impl::TileToVectorPassBase<TileToVector> {
  using TileToVectorPassBase::TileToVectorPassBase;

  LogicalResult check(Operation *op) {
    if (isa<tile::MapOp, tile::MapGradientOp, tile::WeightsOp,
            tile::DifferentialsOp>(op) &&
        op->hasAttr("transposed"))
      return op->emitOpError("of transposed scores is for GPUs");
    for (Value operand : op->getOperands()) {
      // Tables that a map captures have any shape.
      if (auto map = dyn_cast<tile::MapOp>(op); map && operand != map.getS())
        continue;
      if (auto map = dyn_cast<tile::MapGradientOp>(op);
          map && operand != map.getW())
        continue;
      // The left operand of a product is read number by number.
      if (auto product = dyn_cast<tile::MultiplyOp>(op);
          product &&
          (operand == product.getA() || operand == product.getSeen()))
        continue;
      auto type = dyn_cast<MemRefType>(operand.getType());
      if (!type || !type.getElementType().isFloat() || isa<tile::LaunchOp>(op))
        continue;
      bool isTile =
          isa<tile::MultiplyOp, tile::MapOp, tile::RowMaxOp,
              tile::ExponentialsOp, tile::RescaleOp, tile::AddOp,
              tile::RowDotOp, tile::MergeOp, tile::NormalizeOp, tile::WeightsOp,
              tile::DifferentialsOp, tile::RoundOp, tile::MapGradientOp>(op) &&
          type.getRank() >= 2;
      // Pairs go with vectors of f32, and are the last dimension where these
      // are not of the depth.
      bool isPairs = type.getElementType().isBF16();
      int64_t lanes =
          vectorBits /
          (isPairs ? 32 : type.getElementType().getIntOrFloatBitWidth());
      int64_t width =
          type.getDimSize(isPairs && type.getRank() > 2 ? type.getRank() - 2
                                                        : type.getRank() - 1);
      if (isTile && width % lanes != 0)
        return op->emitOpError("works on rows of whole vectors of ")
               << lanes << ", got: " << type;
    }
    return success();
  }

  static constexpr int64_t maxPanelBytes = 1 << 16;
  /// Of what is unrolled.
  static bool isCount(int64_t number) { return number >= 1 && number <= 64; }

  void runOnOperation() override {
    if (!getOperation()->hasAttr(tile::kernelAttr) &&
        !getOperation()->hasAttr(outlinedAttr))
      return;
    if (!isVectorBits(vectorBits) || !isCount(microRows) ||
        !isCount(microVectors)) {
      getOperation().emitError("vectors have a power of two of bits, from 64 "
                               "to 2048, and register tiles 1 to 64 rows and "
                               "vectors, got: ")
          << vectorBits.getValue() << ", " << microRows.getValue() << " and "
          << microVectors.getValue();
      return signalPassFailure();
    }
    if (panelBytes < vectorBits / 8 || panelBytes % (vectorBits / 8) != 0 ||
        panelBytes > maxPanelBytes) {
      getOperation().emitError("panels are whole vectors wide, and 64 KiB at "
                               "most, got: ")
          << panelBytes.getValue() << " bytes and vectors of "
          << vectorBits.getValue() << " bits";
      return signalPassFailure();
    }
    if (dot && vectorBits != 256 && vectorBits != 512) {
      getOperation().emitError("instructions for pairs of bf16 have vectors of "
                               "256 or 512 bits, got: ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    if (!isCount(steps) || !isCount(maxima) || !isCount(exponentials) ||
        !isCount(weights)) {
      getOperation().emitError("1 to 64 are computed together, got "
                               "steps, maxima, exponentials and weights: ")
          << steps.getValue() << ", " << maxima.getValue() << ", "
          << exponentials.getValue() << " and " << weights.getValue();
      return signalPassFailure();
    }
    TileToVectorPassOptions options{
        vectorBits, microRows,    microVectors, panelBytes, steps,
        maxima,     exponentials, weights,      fma,        dot};
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<tile::TileDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (failed(check(op)))
        return signalPassFailure();
      OpBuilder builder(op);
      Vectorizer vectorizer(builder, op->getLoc(), options);
      llvm::TypeSwitch<Operation *>(op)
          .Case<tile::LoadOp, tile::StoreOp, tile::PackOp, tile::IsFiniteOp,
                tile::FillOp, tile::PositionsOp, tile::MultiplyOp, tile::MapOp,
                tile::RowMaxOp, tile::ExponentialsOp, tile::RescaleOp,
                tile::AddOp, tile::RowDotOp, tile::MergeOp, tile::NormalizeOp,
                tile::WeightsOp, tile::DifferentialsOp, tile::RoundOp,
                tile::MapGradientOp>([&](auto op) {
            vectorizer.lower(op);
            op.erase();
          });
    }
  }
};
} // namespace
