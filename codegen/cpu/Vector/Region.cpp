//===- Region.cpp - a scalar region, many points at a time ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Region.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

namespace {

/// Numbers of 16 bits are held, and computed with, as f32: processors have no
/// arithmetic for them. Only truncf rounds to them.
class RegionVectorizer {
public:
  RegionVectorizer(tile::LoopBuilder &builder, int64_t lanes,
                   Contribute contribute)
      : b(builder), lanes(lanes), contribute(contribute) {}

  Value run(Block &region, ArrayRef<Value> arguments);

private:
  void convert(Operation &op);
  void convertOperands(Operation &op, SmallVector<Value> operands);
  void convertExtract(tensor::ExtractOp op);
  Value gather(Value table, ArrayRef<Value> indices);
  Value spread(Value value);
  Value clamp(Value index, Value table, int64_t dim);
  Value constant(Type type, const APInt &value);
  bool isVector(Value value) { return isa<VectorType>(value.getType()); }
  Type widen(Type scalar) { return VectorType::get(lanes, scalar); }
  static bool isShort(Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isBF16() || element.isF16();
  }
  /// A type with f32 for floats of 16 bits.
  Type held(Type type) {
    if (!isShort(type))
      return type;
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(b.getF32Type());
    return b.getF32Type();
  }
  Value hold(Value value) {
    if (!isShort(value.getType()))
      return value;
    return b.make<arith::ExtFOp>(held(value.getType()), value);
  }

  tile::LoopBuilder &b;
  int64_t lanes;
  Contribute contribute;
  IRMapping mapping;
};

} // namespace

Value RegionVectorizer::spread(Value value) {
  if (isVector(value))
    return value;
  return b.make<vector::BroadcastOp>(cast<VectorType>(widen(value.getType())),
                                     value);
}

Value RegionVectorizer::constant(Type type, const APInt &value) {
  Type element = getElementTypeOrSelf(type);
  auto scalar = IntegerAttr::get(
      element, element.isIndex() ? value.sextOrTrunc(64) : value);
  if (auto vector = dyn_cast<VectorType>(type))
    return b.make<arith::ConstantOp>(
        DenseElementsAttr::get(vector, Attribute(scalar)));
  return b.make<arith::ConstantOp>(scalar);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// `index`, a scalar or a vector, in [0, size of the dimension).
Value RegionVectorizer::clamp(Value index, Value table, int64_t dim) {
  Value zero = b.index(0), last = b.sub(b.dim(table, dim), b.index(1));
  if (isVector(index)) {
    zero = spread(zero);
    last = spread(last);
  }
  return b.max(b.min(index, last), zero);
}

/// Elements whose indices differ from point to point.
Value RegionVectorizer::gather(Value table, ArrayRef<Value> indices) {
  auto type = cast<MemRefType>(table.getType());
  Type element = type.getElementType();
  auto result = cast<VectorType>(widen(element));
  bool onlyLast = llvm::none_of(indices.drop_back(),
                                [&](Value index) { return isVector(index); });
  // Processors gather words; anything else goes one by one.
  if (onlyLast && element.isIntOrFloat() &&
      element.getIntOrFloatBitWidth() % 32 == 0) {
    SmallVector<Value> base(indices.drop_back());
    base.push_back(b.index(0));
    Value all = b.make<arith::ConstantOp>(
        DenseElementsAttr::get(cast<VectorType>(widen(b.getI1Type())), true));
    Value none = b.make<arith::ConstantOp>(
        result, cast<TypedAttr>(b.getZeroAttr(result)));
    return b.make<vector::GatherOp>(result, table, base, indices.back(), all,
                                    none);
  }
  // A bf16 moves as its bits, see HostToRuntime.
  auto stored = element.isBF16() ? result.clone(b.getI16Type()) : result;
  Value elements =
      b.make<arith::ConstantOp>(stored, cast<TypedAttr>(b.getZeroAttr(stored)));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    SmallVector<Value> point;
    for (Value index : indices)
      point.push_back(isVector(index)
                          ? b.make<vector::ExtractOp>(index, lane).getResult()
                          : index);
    Value value = b.load(table, point);
    if (element.isBF16())
      value = b.make<arith::BitcastOp>(b.getI16Type(), value);
    elements = b.make<vector::InsertOp>(value, elements, lane);
  }
  if (element.isBF16())
    return b.make<arith::BitcastOp>(result, elements);
  return elements;
}

void RegionVectorizer::convertExtract(tensor::ExtractOp op) {
  Value table = mapping.lookup(op.getTensor());
  SmallVector<Value> indices;
  bool differ = false;
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    indices.push_back(clamp(mapping.lookup(index), table, dim));
    differ |= isVector(indices.back());
  }
  mapping.map(op.getResult(),
              hold(differ ? gather(table, indices) : b.load(table, indices)));
}

//===----------------------------------------------------------------------===//
// Scalar ops
//===----------------------------------------------------------------------===//

void RegionVectorizer::convert(Operation &op) {
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return convertExtract(extract);
  if (auto contribution = dyn_cast<ContributeOp>(op)) {
    SmallVector<Value> indices =
        llvm::map_to_vector(contribution.getIndices(),
                            [&](Value index) { return mapping.lookup(index); });
    contribute(contribution, spread(mapping.lookup(contribution.getValue())),
               indices);
    return;
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    mapping.map(dim.getResult(),
                b.make<memref::DimOp>(mapping.lookup(dim.getSource()),
                                      mapping.lookup(dim.getIndex())));
    return;
  }
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (constant && isShort(constant.getType())) {
    auto value = cast<FloatAttr>(constant.getValue());
    mapping.map(constant.getResult(),
                b.make<arith::ConstantOp>(
                    b.getF32FloatAttr(value.getValue().convertToFloat())));
    return;
  }
  SmallVector<Value> operands = llvm::map_to_vector(
      op.getOperands(), [&](Value value) { return mapping.lookup(value); });
  auto inKind = [&](Type element) -> Type {
    auto vector = dyn_cast<VectorType>(operands[0].getType());
    return vector ? Type(vector.clone(element)) : element;
  };
  if (isShort(op.getResult(0).getType()) &&
      isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op)) {
    Value number = operands[0];
    if (!isa<arith::TruncFOp>(op)) // rounds twice, by way of f32
      number = b.create(b.getLoc(), op.getName().getIdentifier(), number,
                        inKind(b.getF32Type()))
                   ->getResult(0);
    Value rounded =
        b.make<arith::TruncFOp>(inKind(op.getResult(0).getType()), number);
    mapping.map(op.getResult(0), hold(rounded));
    return;
  }
  if (isa<arith::ExtFOp>(op) && isShort(op.getOperand(0).getType()) &&
      op.getResult(0).getType().isF32()) {
    mapping.map(op.getResult(0), operands[0]);
    return;
  }
  if (isa<arith::BitcastOp>(op)) {
    Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
    Value value = operands[0];
    if (isShort(from))
      value = b.make<arith::TruncFOp>(inKind(from), value);
    if (from != to)
      value = b.make<arith::BitcastOp>(inKind(to), value);
    mapping.map(op.getResult(0), hold(value));
    return;
  }
  convertOperands(op, std::move(operands));
}

void RegionVectorizer::convertOperands(Operation &op,
                                       SmallVector<Value> operands) {
  bool differ =
      llvm::any_of(operands, [&](Value value) { return isVector(value); });
  SmallVector<Type> types = llvm::map_to_vector(
      op.getResultTypes(), [&](Type type) { return held(type); });
  if (differ) {
    for (Value &operand : operands)
      operand = spread(operand);
    for (Type &type : types)
      type = widen(type);
  }
  OperationState state(b.getLoc(), op.getName(), operands, types);
  state.addAttributes(op.getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op.getPropertiesAsAttribute();
  Operation *created = b.create(state);
  mapping.map(op.getResults(), created->getResults());
}

Value RegionVectorizer::run(Block &region, ArrayRef<Value> arguments) {
  for (auto [inside, value] : llvm::zip_equal(region.getArguments(), arguments))
    mapping.map(inside, isa<FloatType, VectorType>(value.getType())
                            ? hold(value)
                            : value);
  for (Operation &op : region.without_terminator())
    convert(op);
  return spread(mapping.lookup(region.getTerminator()->getOperand(0)));
}

Value burst::cpu::vectorizeRegion(tile::LoopBuilder &builder, Block &region,
                                  ArrayRef<Value> arguments, int64_t lanes,
                                  Contribute contribute) {
  return RegionVectorizer(builder, lanes, contribute).run(region, arguments);
}
