//===- Blocks.cpp - between memory and blocks -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

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

void Vectorizer::lower(tile::IsFiniteOp op) {
  Value rows = op.getPanels();
  bool isSlice = bufferOf(rows).getRank() == 2;
  if (!isSlice)
    rows = flatten(b, rows);
  MemRefType type = bufferOf(rows);
  Type element = type.getElementType();
  if (element.getIntOrFloatBitWidth() == 16)
    element = b.getF32Type();
  VectorType vector = vectorOf(element),
             part = vector.clone(type.getElementType());
  // x - x is 0 for numbers, and NaN for what is none.
  auto addRow = [&](SmallVector<Value> at, Value sum) {
    at.emplace_back();
    for (int64_t c = 0; c < type.getShape().back();
         c += vector.getNumElements()) {
      at.back() = b.index(c);
      Value x = convert(load(part, rows, at), element);
      sum = b.make<arith::AddFOp>(sum, b.make<arith::SubFOp>(x, x));
    }
    return SmallVector<Value>{sum};
  };
  auto all = b.loop(
      b.dim(rows, 0), number(vector, 0.0), [&](Value first, ValueRange sums) {
        if (isSlice)
          return addRow({first}, sums.front());
        auto inner =
            b.loop(b.dim(rows, 1), sums, [&](Value k, ValueRange sums) {
              return addRow({first, k}, sums.front());
            });
        return SmallVector<Value>{inner.getResult(0)};
      });
  Value total =
      b.make<vector::ReductionOp>(vector::CombiningKind::ADD, all.getResult(0),
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
