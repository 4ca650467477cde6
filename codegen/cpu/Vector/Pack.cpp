//===- Pack.cpp - operands of products as panels --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

namespace {

/// Lays out a view as panels, whose columns are those of the view, or its rows
/// where it is transposed.
class Packing : VectorBuilder {
public:
  Packing(const VectorBuilder &builder, tile::PackOp op)
      : VectorBuilder(builder), op(op), view(op.getView()),
        panels(op.getPanels()), element(bufferOf(panels).getElementType()),
        count(bufferOf(panels).getDimSize(0)),
        depth(bufferOf(panels).getDimSize(1)),
        width(bufferOf(panels).getDimSize(2)),
        columns(bufferOf(view).getDimSize(1)), zero(number(element, 0.0)),
        wide(b.index(width)), rows(b.dim(view, 0)) {}

  void run();

private:
  void packColumns();
  void packRows();
  void copyRow(Value p, Value j, Value row, int64_t begin);
  void packGroup(Value p, Value first, Value j);
  void packPairs();
  void packPairsOfRows();
  using Part = llvm::function_ref<Value(Value c, Type part)>;
  void packPair(Value flat, Value k, Part even, Part odd);

  tile::PackOp op;
  Value view, panels;
  Type element;
  int64_t count, depth, width; ///< of the panels
  int64_t columns;             ///< of the view
  Value zero, wide, rows;
};

} // namespace

void Vectorizer::lower(tile::PackOp op) { Packing(*this, op).run(); }

void Packing::run() {
  bool isPairs = element.isBF16();
  if (op.getTransposed())
    return isPairs ? packPairsOfRows() : packRows();
  return isPairs ? packPairs() : packColumns();
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

void Packing::packColumns() {
  Access access{b};
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

/// A row of the view from column `begin` on, number by number.
void Packing::copyRow(Value p, Value j, Value row, int64_t begin) {
  b.loop(b.index(begin), b.index(columns), 1, [&](Value k) {
    b.store(convert(b.load(view, {row, k}), element), panels, {p, k, j});
  });
}

/// Vectors, as many as one has numbers, become the columns of what they are the
/// rows of: blocks of 1, 2, 4... numbers off the diagonal change places.
static void transpose(tile::LoopBuilder &b, MutableArrayRef<Value> rows) {
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

/// As many rows as a vector has numbers, and as many columns at a time.
void Packing::packGroup(Value p, Value first, Value j) {
  VectorType vector = vectorOf(element);
  int64_t lane = vector.getNumElements();
  int64_t whole = llvm::alignDown(columns, lane);
  Access access{b};
  SmallVector<Value> group;
  for (int64_t r = 0; r < lane; ++r)
    group.push_back(b.add(b.add(first, j), b.index(r)));
  b.loop(b.index(0), b.index(whole), lane, [&](Value k) {
    SmallVector<Value> square;
    for (Value row : group)
      square.push_back(convert(access.load(vector, view, {row, k}), element));
    transpose(b, square);
    for (auto [r, column] : llvm::enumerate(square))
      store(column, panels, {p, b.add(k, b.index(r)), j});
  });
  if (whole != columns)
    b.loop(b.index(lane), [&](Value r) {
      Value place = b.add(j, r);
      copyRow(p, place, b.add(first, place), whole);
    });
}

void Packing::packRows() {
  int64_t lane = lanes(element);
  b.loop(b.index(count), [&](Value p) {
    Value first = b.mul(p, wide);
    Value here = b.max(b.index(0), b.min(b.sub(rows, first), wide));
    Value grouped = b.index(0);
    if (columns >= lane)
      grouped = b.sub(here, b.rem(here, b.index(lane)));
    b.loop(b.index(0), grouped, lane, [&](Value j) { packGroup(p, first, j); });
    b.loop(grouped, here, 1,
           [&](Value j) { copyRow(p, j, b.add(first, j), 0); });
    b.loop(here, wide, 1, [&](Value j) {
      b.loop(b.index(depth),
             [&](Value k) { b.store(zero, panels, {p, k, j}); });
    });
  });
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// Pair k of the depth, by what gives the numbers of columns from c on.
void Packing::packPair(Value flat, Value k, Part even, Part odd) {
  Value first = b.index(0), second = b.index(1), two = b.index(2);
  int64_t whole = columns / width, rest = columns - whole * width;
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
  eachColumn(rest, b.getF32Type(),
             [&](Value j, Type part) { place(p, j, part); });
  b.loop(b.index(rest * 2), b.index(width * 2), 1,
         [&](Value j) { b.store(zero, flat, {p, k, j}); });
}

/// Two steps of the depth side by side.
void Packing::packPairs() {
  Value flat = flatten(b, panels), one = b.index(1), two = b.index(2);
  Access access{b};
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
    packPair(flat, k, row(r), row(b.add(r, one)));
  });
  Value used = b.div(b.add(rows, one), two);
  b.loop(pairs, used, 1,
         [&](Value k) { packPair(flat, k, row(b.mul(k, two)), nothing); });
  b.loop(used, b.index(depth), 1,
         [&](Value k) { packPair(flat, k, nothing, nothing); });
}

/// A row's numbers are pairs already.
void Packing::packPairsOfRows() {
  auto pair = VectorType::get(2, element);
  Value first = b.index(0), second = b.index(1), two = b.index(2);
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
}
