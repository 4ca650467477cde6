//===- Slices.cpp - products with rows of memory --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

namespace {

/// A product whose right operand lies in memory, row by row, and is read in
/// that order, in whole vectors: each for as many rows of the left operand as
/// registers hold sums of.
class SliceProduct : VectorBuilder {
public:
  SliceProduct(const VectorBuilder &builder, tile::MultiplyOp op)
      : VectorBuilder(builder), op(op), type(bufferOf(op.getB())),
        vector(vectorOf(bufferOf(op.getC()).getElementType())),
        lane(vector.getNumElements()), numVectors(type.getDimSize(1) / lane),
        height(bufferOf(op.getC()).getDimSize(0)),
        factor(op.getFactor().convertToDouble()), count(b.dim(op.getB(), 0)) {}

  void run() { return op.getByRows() ? runDots() : runSums(); }

private:
  /// Registers for sums, beside those of one number of each operand.
  int64_t registers() const {
    return options.microVectors * (options.microRows + 1) - 1;
  }
  using Group = llvm::function_ref<void(Value row, int64_t rows, bool isFirst)>;
  void eachGroup(int64_t groupRows, Group body);
  Value loadRight(Value row, int64_t v, Value begin, bool isFirst);
  void put(Value sum, Value row, Value column);
  void runDots();
  void dots(Value row, int64_t rows, Value first, int64_t together,
            bool isFirst);
  void runSums();
  void sums(Value row, int64_t rows, Value column, int64_t together,
            bool isFirst);

  tile::MultiplyOp op;
  MemRefType type; ///< of the right operand
  VectorType vector;
  int64_t lane, numVectors; ///< of a row of the right operand
  int64_t height;           ///< rows of the left operand
  double factor;
  Value count; ///< rows of the right operand
};

} // namespace

/// The largest divisor of `number` that is no larger than `most`.
static int64_t divisorOf(int64_t number, int64_t most) {
  int64_t divisor = std::clamp<int64_t>(most, 1, number);
  while (number % divisor != 0)
    --divisor;
  return divisor;
}

/// Adds up each of as many vectors as one has numbers: the sum of the first is
/// the first number, and so on.
static Value sumsOf(tile::LoopBuilder &b, SmallVector<Value> vectors) {
  auto lane = cast<VectorType>(vectors.front().getType()).getNumElements();
  for (int64_t block = 1; block < lane; block *= 2) {
    // Of two neighbours, one in the places that have this bit of their number.
    SmallVector<int64_t> upper, lower;
    for (int64_t c = 0; c < lane; ++c) {
      upper.push_back(c & block ? lane + c - block : c);
      lower.push_back(c & block ? lane + c : c + block);
    }
    SmallVector<Value> next;
    for (size_t n = 0; n < vectors.size(); n += 2) {
      Value a = vectors[n], x = vectors[n + 1];
      next.push_back(
          b.make<arith::AddFOp>(b.make<vector::ShuffleOp>(a, x, upper),
                                b.make<vector::ShuffleOp>(a, x, lower)));
    }
    vectors = std::move(next);
  }
  return vectors.front();
}

/// Does `body` for groups of rows of the left operand, the last of which may
/// have fewer.
void SliceProduct::eachGroup(int64_t groupRows, Group body) {
  body(b.index(0), groupRows, /*isFirst=*/true);
  if (groupRows == height)
    return;
  int64_t rest = height % groupRows;
  Value rows = op.getRows(), whole = b.index(height - rest);
  if (height - rest > groupRows)
    b.loop(b.index(groupRows), rest == 0 ? rows : b.min(rows, whole), groupRows,
           [&](Value row) { body(row, groupRows, /*isFirst=*/false); });
  if (rest != 0)
    b.when(b.compare(arith::CmpIPredicate::sgt, rows, whole),
           [&] { body(whole, rest, /*isFirst=*/false); });
}

/// Groups of about as many rows, and few enough for some vectors to be
/// multiplied by each.
static int64_t rowsOfGroup(int64_t height) {
  static constexpr int64_t most = 6;
  return llvm::divideCeil(height, llvm::divideCeil(height, most));
}

/// Vector v of a row from column `begin` on. The first group that meets it asks
/// for a row ahead, which may be the next tile's: products take so little time
/// that processors alone would not ask for enough.
Value SliceProduct::loadRight(Value row, int64_t v, Value begin, bool isFirst) {
  static constexpr int64_t line = 64, ahead = 8 << 10;
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value column = b.add(begin, b.index(v * lane));
  if (isFirst && (v * lane * bytes) % line == 0) {
    int64_t rows = llvm::divideCeil(ahead, type.getDimSize(1) * bytes);
    b.make<memref::PrefetchOp>(
        op.getB(), ValueRange{b.add(row, b.index(rows)), column},
        /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
  }
  return convert(
      load(vector.clone(type.getElementType()), op.getB(), {row, column}),
      vector.getElementType());
}

/// Sums of products go to c.
void SliceProduct::put(Value sum, Value row, Value column) {
  auto type = cast<VectorType>(sum.getType());
  if (op.getAccumulate()) {
    Value before = load(type, op.getC(), {row, column});
    sum = factor == 1.0 ? Value(b.make<arith::AddFOp>(sum, before))
                        : fma(sum, number(type, factor), before);
  } else if (factor != 1.0) {
    sum = b.make<arith::MulFOp>(sum, number(type, factor));
  }
  store(sum, op.getC(), {row, column});
}

//===----------------------------------------------------------------------===//
// Rows by rows
//===----------------------------------------------------------------------===//

/// Some rows by `together` rows of the right operand, from `first` on. Behind
/// its last row, that one again: the columns of c are there.
void SliceProduct::dots(Value row, int64_t rows, Value first, int64_t together,
                        bool isFirst) {
  Value last = b.sub(count, b.index(1));
  SmallVector<Value> left, right;
  for (int64_t r = 0; r < rows; ++r)
    left.push_back(b.add(row, b.index(r)));
  for (int64_t n = 0; n < together; ++n)
    right.push_back(b.min(b.add(first, b.index(n)), last));
  Value none = number(vector, 0.0);
  SmallVector<Value> zeros(static_cast<size_t>(rows * together), none);
  // Much of a row at a time, as memory lies.
  int64_t part = divisorOf(numVectors, 16);
  auto loop =
      b.loop(b.index(0), b.index(numVectors * lane), part * lane, zeros,
             [&](Value begin, ValueRange carried) {
               SmallVector<Value> next(carried);
               for (int64_t n = 0; n < together; ++n)
                 for (int64_t v = 0; v < part; ++v) {
                   Value k = b.add(begin, b.index(v * lane));
                   Value x = loadRight(right[n], v, begin, isFirst);
                   for (int64_t r = 0; r < rows; ++r) {
                     Value &sum = next[r * together + n];
                     sum = fma(load(vector, op.getA(), {left[r], k}), x, sum);
                   }
                 }
               return next;
             });
  // A vector has the sums of some rows.
  SmallVector<Value> all(loop.getResults());
  int64_t rowsOfVector = lane / together;
  all.resize(llvm::alignTo(all.size(), static_cast<uint64_t>(lane)), none);
  Value found;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t place = r % rowsOfVector;
    if (place == 0)
      found = sumsOf(b, SmallVector<Value>(ArrayRef(all).slice(
                            static_cast<size_t>(r * together),
                            static_cast<size_t>(lane))));
    Value sum = found;
    if (together != lane)
      sum = b.make<vector::ExtractStridedSliceOp>(sum, place * together,
                                                  together, int64_t{1});
    put(sum, left[r], first);
  }
}

/// All rows of the left operand meet some of the right one while these are in
/// the first level cache.
void SliceProduct::runDots() {
  int64_t groupRows = rowsOfGroup(height);
  int64_t most = std::clamp<int64_t>(registers() / groupRows, 1, lane);
  auto together =
      static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(most)));
  b.loop(b.index(0), count, together, [&](Value first) {
    eachGroup(groupRows, [&](Value row, int64_t rows, bool isFirst) {
      dots(row, rows, first, together, isFirst);
    });
  });
}

//===----------------------------------------------------------------------===//
// Sums of rows
//===----------------------------------------------------------------------===//

/// Some rows by `together` vectors of all rows of the right operand, from a
/// column on. As with panels, what was there before is added at the end.
void SliceProduct::sums(Value row, int64_t rows, Value column, int64_t together,
                        bool isFirst) {
  SmallVector<Value> left, columns;
  for (int64_t r = 0; r < rows; ++r)
    left.push_back(b.add(row, b.index(r)));
  for (int64_t v = 0; v < together; ++v)
    columns.push_back(b.add(column, b.index(v * lane)));
  SmallVector<Value> zeros(static_cast<size_t>(rows * together),
                           number(vector, 0.0));
  auto loop = b.loop(count, zeros, [&](Value k, ValueRange carried) {
    SmallVector<Value> next(carried), weights;
    for (Value place : left)
      weights.push_back(splat(vector, b.load(op.getA(), {place, k})));
    for (int64_t v = 0; v < together; ++v) {
      Value x = loadRight(k, v, column, isFirst);
      for (int64_t r = 0; r < rows; ++r) {
        Value &sum = next[r * together + v];
        sum = fma(weights[r], x, sum);
      }
    }
    return next;
  });
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < together; ++v)
      put(loop.getResult(r * together + v), left[r], columns[v]);
}

/// As many columns at a time as registers hold sums of, which all rows of the
/// left operand meet while they are in the first level cache.
void SliceProduct::runSums() {
  int64_t groupRows = rowsOfGroup(height);
  int64_t together = divisorOf(numVectors, registers() / groupRows);
  b.loop(b.index(0), b.index(numVectors * lane), together * lane,
         [&](Value column) {
           eachGroup(groupRows, [&](Value row, int64_t rows, bool isFirst) {
             sums(row, rows, column, together, isFirst);
           });
         });
}

void Vectorizer::multiplySlice(tile::MultiplyOp op) {
  SliceProduct(*this, op).run();
}
