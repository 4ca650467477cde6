//===- Products.cpp - products of tiles -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

#include <numeric>

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

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
  bool isPairs = panels.getRank() == 4, isSlice = panels.getRank() == 2;
  Value wide = isSlice ? Value() : b.index(panels.getDimSize(2));
  Value none = number(element, 0.0), columns = b.dim(op.getC(), 1);
  Value two = b.index(2);
  Value depth =
      op.getDepth() ? op.getDepth() : b.dim(op.getB(), isSlice ? 0 : 1);
  if (isPairs)
    depth = b.mul(depth, two);
  double factor = op.getFactor().convertToDouble();
  auto left = [&](Value r, Value k) {
    return bufferOf(op.getA()).getRank() == 3
               ? b.load(op.getA(), {b.div(k, two), r, b.rem(k, two)})
               : b.load(op.getA(), leftAt(op, r, k));
  };
  auto right = [&](Value k, Value c) {
    if (isSlice)
      return b.load(op.getB(), {k, c});
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

namespace {

/// A product, by register tiles: some rows by some panels, whose sums stay in
/// registers over the whole depth.
class Product : VectorBuilder {
public:
  Product(const VectorBuilder &builder, tile::MultiplyOp op)
      : VectorBuilder(builder), op(op), panels(bufferOf(op.getB())),
        isPairs(panels.getRank() == 4),
        vector(vectorOf(bufferOf(op.getC()).getElementType())),
        lane(vector.getNumElements()), width(panels.getDimSize(2)),
        factor(op.getFactor().convertToDouble()), flat(flatten(b, op.getB())) {}

  void run();

private:
  /// The rows and panels of a register tile.
  struct RegisterTile {
    SmallVector<Value> rows, panels;
    int64_t columns; ///< vectors of a row
  };
  Value loadRight(Value p, Value k, int64_t column);
  Value loadLeft(Value row, Value k);
  scf::ForOp steps(const RegisterTile &tile, Value begin, Value end,
                   int64_t together, ValueRange sums);
  void storeSums(const RegisterTile &tile, Value p, ValueRange sums);
  void multiplyTile(Value i, int64_t microRows, Value p, int64_t abreast);
  void multiplyStrip(Value i, int64_t microRows);

  tile::MultiplyOp op;
  MemRefType panels;
  bool isPairs;
  VectorType vector;
  int64_t lane, width;
  double factor;
  Value flat;
};

} // namespace

void Vectorizer::lower(tile::MultiplyOp op) {
  if (op.getSeen())
    return multiplyWhere(op);
  if (bufferOf(op.getB()).getRank() == 2)
    return multiplySlice(op);
  Product(*this, op).run();
}

/// A pair is loaded, and copied to all lanes, as 32 bits.
Value Product::loadRight(Value p, Value k, int64_t column) {
  if (!isPairs)
    return load(vector, flat, {p, k, b.index(column)});
  auto pairs = VectorType::get(2 * lane, b.getBF16Type());
  return b.make<vector::BitCastOp>(
      vector.clone(b.getI32Type()),
      load(pairs, flat, {p, k, b.index(2 * column)}));
}

Value Product::loadLeft(Value row, Value k) {
  if (!isPairs)
    return splat(vector, b.load(op.getA(), leftAt(op, row, k)));
  SmallVector<Value> at{row, b.mul(k, b.index(2))};
  if (op.getTransposed())
    at = {k, row, b.index(0)};
  Value pairs = b.make<vector::BitCastOp>(
      VectorType::get(1, b.getI32Type()),
      load(VectorType::get(2, b.getBF16Type()), op.getA(), at));
  return splat(vector.clone(b.getI32Type()),
               b.make<vector::ExtractOp>(pairs, int64_t{0}));
}

/// Adds products to the sums, for some steps of the depth, `together` at a
/// time.
scf::ForOp Product::steps(const RegisterTile &tile, Value begin, Value end,
                          int64_t together, ValueRange sums) {
  return b.loop(begin, end, together, sums,
                [&](Value first, ValueRange carried) {
                  SmallVector<Value> next(carried);
                  for (int64_t step = 0; step < together; ++step) {
                    Value k = b.add(first, b.index(step));
                    SmallVector<Value> right;
                    for (Value p : tile.panels)
                      for (int64_t column = 0; column < width; column += lane)
                        right.push_back(loadRight(p, k, column));
                    for (auto [r, row] : llvm::enumerate(tile.rows)) {
                      Value left = loadLeft(row, k);
                      for (int64_t v = 0; v < tile.columns; ++v) {
                        Value &sum = next[r * tile.columns + v];
                        sum = isPairs ? dot(left, right[v], sum)
                                      : fma(left, right[v], sum);
                      }
                    }
                  }
                  return next;
                });
}

/// From panel p on.
void Product::storeSums(const RegisterTile &tile, Value p, ValueRange sums) {
  Value first = b.mul(p, b.index(width));
  for (auto [r, row] : llvm::enumerate(tile.rows))
    for (int64_t v = 0; v < tile.columns; ++v) {
      SmallVector<Value> place{row, b.add(first, b.index(v * lane))};
      Value sum = sums[r * tile.columns + v];
      if (op.getAccumulate()) {
        Value before = load(vector, op.getC(), place);
        sum = factor == 1.0 ? Value(b.make<arith::AddFOp>(sum, before))
                            : fma(sum, number(vector, factor), before);
      } else if (factor != 1.0) {
        sum = b.make<arith::MulFOp>(sum, number(vector, factor));
      }
      store(sum, op.getC(), place);
    }
}

/// `microRows` rows from row i on, by `abreast` panels from panel p on.
void Product::multiplyTile(Value i, int64_t microRows, Value p,
                           int64_t abreast) {
  RegisterTile tile{{}, {}, abreast * width / lane};
  for (int64_t r = 0; r < microRows; ++r)
    tile.rows.push_back(b.add(i, b.index(r)));
  for (int64_t n = 0; n < abreast; ++n)
    tile.panels.push_back(b.add(p, b.index(n)));
  // Sums begin at 0 and are added to what is there behind the loop: the error
  // of a sum of many tiles grows with their number, not with that of terms.
  SmallVector<Value> sums(static_cast<size_t>(microRows * tile.columns),
                          number(vector, 0.0));
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
  auto loop = steps(tile, b.index(0), b.sub(depth, last), together, sums);
  if (op.getDepth() && together > 1)
    loop = steps(tile, loop.getUpperBound(), depth, 1, loop.getResults());
  storeSums(tile, p, loop.getResults());
}

void Product::multiplyStrip(Value i, int64_t microRows) {
  // Panels that a register tile is wide.
  int64_t abreast = std::max<int64_t>(1, options.microVectors * lane / width);
  Value count = b.dim(op.getB(), 0);
  bool mayRemain = panels.isDynamicDim(0) || panels.getDimSize(0) % abreast;
  Value whole =
      mayRemain ? b.sub(count, b.rem(count, b.index(abreast))) : count;
  b.loop(b.index(0), whole, abreast,
         [&](Value p) { multiplyTile(i, microRows, p, abreast); });
  if (mayRemain && abreast > 1)
    b.loop(whole, count, 1, [&](Value p) { multiplyTile(i, microRows, p, 1); });
}

/// A strip of the left operand stays in the first level cache while the panels
/// pass by, one number after the other, as prefetchers like it.
///
/// A lower strip for the rows that remain: less than full ones all the way down
/// would leave multipliers idle.
void Product::run() {
  int64_t height = bufferOf(op.getC()).getDimSize(0);
  int64_t fullRows = std::min<int64_t>(options.microRows, height);
  Value rows = op.getRows();
  int64_t rest = height % fullRows;
  Value whole = b.index(height - rest);
  b.loop(b.index(0), rest == 0 ? rows : b.min(rows, whole), fullRows,
         [&](Value i) { multiplyStrip(i, fullRows); });
  if (rest != 0)
    b.when(b.compare(arith::CmpIPredicate::sgt, rows, whole),
           [&] { multiplyStrip(whole, rest); });
}
