//===- Rows.cpp - the recurrence of the online softmax, row by row --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

#include <numbers>

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

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

void Vectorizer::lower(tile::MaxScoreOp op) {
  Type element = bufferOf(op.getM()).getElementType();
  Value infinity = number(element, std::numeric_limits<double>::infinity());
  b.loop(op.getRows(), [&](Value r) {
    Value m = b.load(op.getM(), r), l = b.load(op.getL(), r);
    Value isNaN = b.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, l, l);
    Value isBelow =
        b.make<arith::CmpFOp>(arith::CmpFPredicate::ONE, m, infinity);
    Value natural =
        b.make<arith::MulFOp>(m, number(element, std::numbers::ln2));
    b.store(b.select(b.make<arith::AndIOp>(isNaN, isBelow), l, natural),
            op.getM(), r);
  });
}

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
