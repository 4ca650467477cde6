//===- Numbers.cpp - numbers of tiles, in vectors -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value cpu::flatten(tile::LoopBuilder &b, Value panels) {
  if (bufferOf(panels).getRank() == 3)
    return panels;
  return b.make<memref::CollapseShapeOp>(
      panels, SmallVector<ReassociationIndices>{{0}, {1}, {2, 3}});
}

Value Access::load(Type type, Value buffer, ValueRange indices) const {
  if (auto vector = dyn_cast<VectorType>(type))
    return b.make<vector::LoadOp>(
        vector.clone(bufferOf(buffer).getElementType()), buffer, indices);
  return b.load(buffer, indices);
}

void Access::store(Value value, Value buffer, ValueRange indices) const {
  if (isa<VectorType>(value.getType()))
    b.make<vector::StoreOp>(value, buffer, indices);
  else
    b.store(value, buffer, indices);
}

Value VectorBuilder::spill(Value vector) {
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

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value VectorBuilder::number(Type type, double value) {
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

Value VectorBuilder::integer(Type type, int64_t value) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(type));
  auto scalar = IntegerAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(type))
    return b.make<arith::ConstantOp>(
        DenseElementsAttr::get(vector, Attribute(scalar)));
  return b.make<arith::ConstantOp>(scalar);
}

Value VectorBuilder::fma(Value a, Value x, Value c) {
  if (!options.fma)
    return b.make<arith::AddFOp>(b.make<arith::MulFOp>(a, x), c);
  if (isa<VectorType>(a.getType()))
    return b.make<vector::FMAOp>(a, x, c);
  return b.make<math::FmaOp>(a, x, c);
}

Value VectorBuilder::maximum(Value a, Value c) {
  Value greater = b.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, c);
  return b.select(greater, a, c);
}

Value VectorBuilder::isMinusInfinity(Value x) {
  return b.make<arith::CmpFOp>(
      arith::CmpFPredicate::OEQ, x,
      number(x.getType(), -std::numeric_limits<double>::infinity()));
}

Value VectorBuilder::opaque(Value value) {
  return b
      .make<LLVM::CallIntrinsicOp>(value.getType(),
                                   b.getStringAttr("llvm.arithmetic.fence"),
                                   ValueRange(value))
      .getResult(0);
}

/// 2^x for x up to 0 (or a little above), within 2 units in the last place:
/// x = n + f with n an integer and |f| <= 1/2, 2^f a polynomial, interpolated
/// at the Chebyshev nodes of [-1/2, 1/2] (relative error 2.6e-9 in degree 6,
/// 4.3e-18 in degree 11). Adding 1.5 * 2^digits rounds x to n and leaves n in
/// the low bits; with the exponent of 1 added too, these are the exponent of
/// 2^n, or that of 0 where x is below the normal range. NaN stays NaN.
Value VectorBuilder::exp2(Value x) {
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

Value VectorBuilder::reference(Value m) {
  return b.select(isMinusInfinity(m), number(m.getType(), 0.0), m);
}

Value VectorBuilder::exp2Difference(Value a, Value c) {
  return exp2(b.make<arith::SubFOp>(a, c));
}

Value VectorBuilder::convert(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType()), type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (from == element)
    return value;
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return b.make<arith::ExtFOp>(type, value);
  return b.make<arith::TruncFOp>(type, value);
}

/// The upper half of an f32 is a bf16.
Value VectorBuilder::half(Value pairs, bool second) {
  auto type = cast<VectorType>(pairs.getType());
  Value bits;
  if (second)
    bits = b.make<arith::AndIOp>(pairs, integer(type, -0x10000));
  else
    bits = b.make<arith::ShLIOp>(pairs, integer(type, 16));
  return b.make<arith::BitcastOp>(type.clone(b.getF32Type()), bits);
}

Value VectorBuilder::dot(Value a, Value x, Value c) {
  if (!options.dot)
    return fma(half(a, true), half(x, true),
               fma(half(a, false), half(x, false), c));
  auto type = VectorType::get(
      2 * cast<VectorType>(a.getType()).getNumElements(), b.getBF16Type());
  return b.make<x86vector::DotBF16Op>(c.getType(), c,
                                      b.make<vector::BitCastOp>(type, a),
                                      b.make<vector::BitCastOp>(type, x));
}

Value VectorBuilder::narrow(Value x) {
  if (!options.dot)
    return convert(x, b.getBF16Type());
  return b.make<x86vector::CvtPackedF32ToBF16Op>(
      cast<VectorType>(x.getType()).clone(b.getBF16Type()), x);
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

void VectorBuilder::eachColumn(int64_t columns, Type element,
                               llvm::function_ref<void(Value, Type)> body) {
  int64_t whole = llvm::alignDown(columns, lanes(element));
  if (whole != 0)
    b.loop(b.index(0), b.index(whole), lanes(element),
           [&](Value c) { body(c, vectorOf(element)); });
  if (whole != columns)
    b.loop(b.index(whole), b.index(columns), 1,
           [&](Value c) { body(c, element); });
}

void VectorBuilder::eachColumn(Value view, Type element,
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

SmallVector<Value> VectorBuilder::eachVector(
    Value block, int64_t together, Value begin,
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
