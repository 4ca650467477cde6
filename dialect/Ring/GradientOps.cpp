//===- GradientOps.cpp - operations of the backward pass ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

/// `made`, a result or a buffer that is written, has the shape of `of`.
static LogicalResult verifyMade(Operation *op, Value of, Value made) {
  if (!made)
    return op->emitOpError("needs a result, or a buffer to write into");
  if (!agree(shapedType(of).getShape(), shapedType(made).getShape()))
    return op->emitOpError("makes what has the shape of ")
           << of.getType() << ", got: " << made.getType();
  return success();
}

// zero_c1
LogicalResult ZeroOp::verify() {
  if (failed(verifyForm(*this, (*this)->getOperands(), 1)))
    return failure();
  Value made = getInto() ? getInto() : getZero();
  if (failed(verifyMade(*this, getLike(), made)))
    return failure();
  int64_t rank = shapedType(made).getRank();
  if (rank < 1 || rank > 4)
    return emitOpError("makes gradients of 1 to 4 dimensions, got: ")
           << made.getType();
  Type element = shapedType(made).getElementType();
  if (element.isF32() || element.isF64())
    return success();
  return emitOpError("makes gradients of f32 or f64, got: ") << made.getType();
}

/// `rows` is (batch, heads, sequence) of `shard`, in its state type.
static LogicalResult verifyRows(Operation *op, StringRef name, ShapedType rows,
                                ShapedType shard) {
  bool fits = rows.getElementType() == stateTypeOf(shard) &&
              agree(rows.getDimSize(0), shard.getDimSize(0)) &&
              agree(rows.getDimSize(1), shard.getDimSize(2)) &&
              agree(rows.getDimSize(2), shard.getDimSize(1));
  if (fits)
    return success();
  return op->emitOpError() << name << " must be (batch, heads, sequence) of "
                           << shard << " in " << stateTypeOf(shard)
                           << ", got: " << rows;
}

// delta_c1
LogicalResult DeltaOp::verify() {
  if (failed(verifyForm(*this, (*this)->getOperands(), 1)))
    return failure();
  ShapedType out = shapedType(getOut()), grad = shapedType(getOutGrad());
  if (out.getElementType() != grad.getElementType() ||
      !agree(out.getShape(), grad.getShape()))
    return emitOpError("out and its gradient must have one shape and element "
                       "type, got: ")
           << out << " and " << grad;
  Value made = getInto() ? getInto() : getDelta();
  if (!made)
    return emitOpError("needs a result, or a buffer to write into");
  if (made == getInto() && shapedType(made).getRank() != 3)
    return emitOpError("writes (batch, heads, sequence), got: ")
           << made.getType();
  if (failed(verifyRows(*this, "delta", shapedType(made), out)))
    return failure();
  if (!getLseGrad())
    return success();
  return verifyRows(*this, "the gradient of lse", shapedType(getLseGrad()),
                    out);
}

// add_c1, add_c2
LogicalResult AddOp::verify() {
  if (failed(verifyForm(*this, {getA(), getB()}, 1)))
    return failure();
  ShapedType a = shapedType(getA()), b = shapedType(getB());
  bool fits = a.getElementType() == b.getElementType() &&
              agree(a.getShape(), b.getShape()) &&
              (!getSum() || getSum().getType() == a);
  if (!fits)
    return emitOpError("adds gradients of one shape and type, got: ")
           << a << " and " << b;
  if (failed(verifyPart(*this, getLayout())))
    return failure();
  return verifySegments(*this, isa<MemRefType>(getA().getType()));
}

// round_c1
LogicalResult RoundOp::verify() {
  if (failed(verifyForm(*this, (*this)->getOperands(), 1)))
    return failure();
  Value made = getInto() ? getInto() : getRounded();
  ShapedType gradient = shapedType(getGradient());
  bool adds = made && addsHeads();
  if (adds) {
    SmallVector<int64_t> shape(gradient.getShape());
    shape[2] = shapedType(made).getDimSize(2);
    gradient = gradient.clone(shape);
  }
  if (!made || !agree(gradient.getShape(), shapedType(made).getShape()))
    return verifyMade(*this, getGradient(), made);
  // round_c2
  Type from = gradient.getElementType(), to = shapedType(made).getElementType();
  unsigned width = from.getIntOrFloatBitWidth();
  if (isa<FloatType>(to) && to.getIntOrFloatBitWidth() < width + adds)
    return success();
  return emitOpError("rounds to a narrower type than ")
         << from << ", got: " << to;
}

bool RoundOp::addsHeads() {
  ShapedType from = shapedType(getGradient()),
             to = shapedType(getInto() ? getInto() : getRounded());
  if (from.getRank() != 4 || to.getRank() != 4)
    return false;
  int64_t parts = from.getDimSize(2), heads = to.getDimSize(2);
  return !ShapedType::isDynamic(parts) && !ShapedType::isDynamic(heads) &&
         heads > 0 && parts > heads && parts % heads == 0;
}

//===----------------------------------------------------------------------===//
// attend_grad: syntax
//===----------------------------------------------------------------------===//

namespace {
/// Everything that is parsed before its types.
struct ParsedAttendGrad {
  Operands rows, slice; ///< (query, outGrad, lse, delta) and (key, value)
  OpAsmParser::UnresolvedOperand queryOwner, queryExtent, keyOwner, keyExtent;
  Operands grads, offsets, pairs, maskCaptures, scoreCaptures;
  SmallVector<Type> pairTypes, maskTypes, scoreTypes;
};
} // namespace

/// `(%a, %b at %owner) of <layout> extent %e`
static ParseResult parseSharded(OpAsmParser &parser, int count,
                                Operands &tensors, StringRef layout,
                                OpAsmParser::UnresolvedOperand &owner,
                                OpAsmParser::UnresolvedOperand &extent,
                                NamedAttrList &attributes) {
  return failure(parser.parseLParen() ||
                 parser.parseOperandList(tensors, count) ||
                 parser.parseKeyword("at") || parser.parseOperand(owner) ||
                 parser.parseRParen() || parser.parseKeyword("of") ||
                 parseLayout(parser, layout, attributes) ||
                 parser.parseKeyword("extent") || parser.parseOperand(extent));
}

/// `captures [0, 2]`
static ParseResult parseCaptures(OpAsmParser &parser,
                                 NamedAttrList &attributes) {
  SmallVector<int64_t> numbers;
  if (succeeded(parser.parseOptionalKeyword("captures"))) {
    auto parseOne = [&] { return parser.parseInteger(numbers.emplace_back()); };
    if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                       parseOne))
      return failure();
  }
  attributes.set("captures", parser.getBuilder().getDenseI64ArrayAttr(numbers));
  return success();
}

ParseResult AttendGradOp::parse(OpAsmParser &parser, OperationState &result) {
  ParsedAttendGrad parsed;
  NamedAttrList &attributes = result.attributes;
  SMLoc loc = parser.getCurrentLocation();
  FloatAttr scale;
  FunctionType type;
  Region &mask = *result.addRegion(), &score = *result.addRegion();
  Region &bounds = *result.addRegion(), &gradient = *result.addRegion();
  Operands none;
  SmallVector<Type> noTypes;
  Builder &builder = parser.getBuilder();
  if (parseSharded(parser, 4, parsed.rows, "queryLayout", parsed.queryOwner,
                   parsed.queryExtent, attributes) ||
      parser.parseKeyword("slice") ||
      parseSharded(parser, 2, parsed.slice, "keyLayout", parsed.keyOwner,
                   parsed.keyExtent, attributes) ||
      parser.parseKeyword("into") || parser.parseOperandList(parsed.grads) ||
      parseCaptures(parser, attributes) ||
      parseOptionalOffsets(parser, parsed.offsets) ||
      parseOptionalPairs(parser, parsed.pairs, parsed.pairTypes) ||
      parser.parseKeyword("scale") ||
      parser.parseAttribute(scale, builder.getF64Type(), "scale", attributes) ||
      parseOptionalRegion(parser, RegionRole::Mask, mask, parsed.maskCaptures,
                          parsed.maskTypes) ||
      parseOptionalRegion(parser, RegionRole::Score, score,
                          parsed.scoreCaptures, parsed.scoreTypes) ||
      parseOptionalRegion(parser, RegionRole::Bounds, bounds, none, noTypes) ||
      parseOptionalRegion(parser, RegionRole::Gradient, gradient, none,
                          noTypes) ||
      parser.parseOptionalAttrDict(attributes) || parser.parseColonType(type))
    return failure();
  bool tensors = type.getNumResults() != 0;
  size_t count = parsed.grads.size();
  if (type.getNumInputs() != 6 + (tensors ? 0 : count) ||
      (tensors && type.getNumResults() != count))
    return parser.emitError(loc, "expects the types of query, outGrad, lse, "
                                 "delta, key and value, then those of the "
                                 "gradients: ")
           << count << " results, or on buffers as many operands more";
  ArrayRef<Type> inputs = type.getInputs();
  ArrayRef<Type> grads = tensors ? type.getResults() : inputs.drop_front(6);
  Type index = builder.getIndexType();
  auto &operands = result.operands;
  if (parser.resolveOperands(parsed.rows, inputs.take_front(4), loc,
                             operands) ||
      parser.resolveOperand(parsed.queryOwner, index, operands) ||
      parser.resolveOperand(parsed.queryExtent, index, operands) ||
      parser.resolveOperands(parsed.slice, inputs.slice(4, 2), loc, operands) ||
      parser.resolveOperand(parsed.keyOwner, index, operands) ||
      parser.resolveOperand(parsed.keyExtent, index, operands) ||
      parser.resolveOperands(parsed.grads, grads, loc, operands) ||
      parser.resolveOperands(parsed.offsets, index, operands) ||
      parser.resolveOperands(parsed.pairs, parsed.pairTypes, loc, operands) ||
      parser.resolveOperands(parsed.maskCaptures, parsed.maskTypes, loc,
                             operands) ||
      parser.resolveOperands(parsed.scoreCaptures, parsed.scoreTypes, loc,
                             operands))
    return failure();
  result.addTypes(type.getResults());
  auto size = [](const Operands &list) {
    return static_cast<int32_t>(list.size());
  };
  result.getOrAddProperties<Properties>().operandSegmentSizes = {
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      size(parsed.grads),
      size(parsed.offsets),
      size(parsed.pairs),
      size(parsed.maskCaptures),
      size(parsed.scoreCaptures)};
  return success();
}

void AttendGradOp::print(OpAsmPrinter &printer) {
  auto newline = [&] {
    printer.printNewline();
    printer << "    ";
  };
  printer << " (" << getQuery() << ", " << getOutGrad() << ", " << getLse()
          << ", " << getDelta() << " at " << getQueryOwner() << ") of ";
  printer.printStrippedAttrOrType(getQueryLayout());
  printer << " extent " << getQueryExtent();
  newline();
  printer << "slice (" << getKey() << ", " << getValue() << " at "
          << getKeyOwner() << ") of ";
  printer.printStrippedAttrOrType(getKeyLayout());
  printer << " extent " << getKeyExtent();
  newline();
  printer << "into " << getGrads();
  if (!getCaptures().empty()) {
    printer << " captures [";
    llvm::interleaveComma(getCaptures(), printer);
    printer << ']';
  }
  printClauses(printer, *this, getScaleAttr());
  if (!getGradient().empty())
    printClauseRegion(printer, RegionRole::Gradient, getGradient(), {});
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getOperandSegmentSizeAttr(), getQueryLayoutAttrName(),
       getKeyLayoutAttrName(), getScaleAttrName(), getCapturesAttrName()});
  newline();
  SmallVector<Type> inputs;
  for (Value tensor : {Value(getQuery()), Value(getOutGrad()), Value(getLse()),
                       Value(getDelta()), Value(getKey()), Value(getValue())})
    inputs.push_back(tensor.getType());
  if (getNewGrads().empty())
    llvm::append_range(inputs, getGrads().getTypes());
  printer << ": ";
  printer.printFunctionalType(inputs, getResultTypes());
}

void AttendGradOp::getAsmBlockArgumentNames(Region &region,
                                            OpAsmSetValueNameFn setName) {
  RegionRole kind = &region == &getMask()     ? RegionRole::Mask
                    : &region == &getScore()  ? RegionRole::Score
                    : &region == &getBounds() ? RegionRole::Bounds
                                              : RegionRole::Gradient;
  setArgumentNames(kind, region, setName);
}

void AttendGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  static constexpr StringLiteral names[] = {"dq", "dk", "dv"};
  for (auto [index, grad] : llvm::enumerate(getNewGrads()))
    setName(grad, index < 3 ? names[index] : StringLiteral("dt"));
}

//===----------------------------------------------------------------------===//
// attend_grad: rules
//===----------------------------------------------------------------------===//

FloatType AttendGradOp::getStateType() {
  return stateTypeOf(shapedType(getQuery()));
}

// attend_grad_c1
static LogicalResult verifyTensors(AttendGradOp op) {
  ShapedType query = shapedType(op.getQuery()), key = shapedType(op.getKey());
  ShapedType value = shapedType(op.getValue()),
             grad = shapedType(op.getOutGrad());
  for (ShapedType type : {query, key, value, grad}) {
    int64_t heads = type.getDimSize(2), dim = type.getDimSize(3);
    if (heads < 1 || dim < 1 || dim > 256)
      return op.emitOpError("heads and head dims must be static, at least 1, "
                            "and head dims at most 256, got: ")
             << type;
    if (type.getElementType() != query.getElementType())
      return op.emitOpError("query, outGrad, key and value must have one "
                            "element type, got: ")
             << query << " and " << type;
    if (!agree(type.getDimSize(0), query.getDimSize(0)))
      return op.emitOpError("all tensors must have one batch, got: ")
             << query << " and " << type;
  }
  if (!agree(grad.getDimSize(1), query.getDimSize(1)) ||
      grad.getDimSize(2) != query.getDimSize(2))
    return op.emitOpError("outGrad must have sequence and heads of the query, "
                          "got: ")
           << grad << " for " << query;
  if (!agree(value.getDimSize(1), key.getDimSize(1)) ||
      value.getDimSize(2) != key.getDimSize(2))
    return op.emitOpError(
               "a slice must have one sequence and head count, got: ")
           << key << " and " << value;
  if (query.getDimSize(2) % key.getDimSize(2) != 0)
    return op.emitOpError("query heads must be a multiple of key heads, got: ")
           << query << " and " << key;
  if (query.getDimSize(3) != key.getDimSize(3) ||
      grad.getDimSize(3) != value.getDimSize(3))
    return op.emitOpError("key must have the head dim of the query, and value "
                          "that of outGrad, got: ")
           << query << ", " << key << ", " << grad << " and " << value;
  if (failed(verifyRows(op, "lse", shapedType(op.getLse()), query)))
    return failure();
  return verifyRows(op, "delta", shapedType(op.getDelta()), query);
}

// attend_grad_c2
static LogicalResult verifyGrads(AttendGradOp op) {
  size_t captures = op.getCaptures().size();
  if (op.getGrads().size() != 3 + captures)
    return op.emitOpError("needs gradients by query, key, value and ")
           << captures << " captures, got: " << op.getGrads().size();
  SmallVector<Value> of{op.getQuery(), op.getKey(), op.getValue()};
  for (int64_t n : op.getCaptures()) {
    if (n < 0 || n >= static_cast<int64_t>(op.getScoreCaptures().size()) ||
        !isa<ShapedType>(op.getScoreCaptures()[n].getType()))
      return op.emitOpError("`captures` names tables that the score captures, "
                            "got: ")
             << n;
    of.push_back(op.getScoreCaptures()[n]);
  }
  for (auto [tensor, grad] : llvm::zip_equal(of, op.getGrads())) {
    ShapedType type = shapedType(grad);
    if (type.getElementType() != op.getStateType() ||
        !agree(type.getShape(), shapedType(tensor).getShape()))
      return op.emitOpError("the gradient by ")
             << tensor.getType() << " must have its shape, in "
             << op.getStateType() << ", got: " << type;
  }
  if (!op.getNewGrads().empty() &&
      op.getNewGrads().getTypes() != op.getGrads().getTypes())
    return op.emitOpError("must give gradients of the types it takes, got: ")
           << op.getNewGrads().getTypes();
  return success();
}

LogicalResult AttendGradOp::verify() {
  SmallVector<Value> shaped{getQuery(), getOutGrad(), getLse(),
                            getDelta(), getKey(),     getValue()};
  llvm::append_range(shaped, getGrads());
  if (failed(verifyForm(*this, shaped, getGrads().size())) ||
      failed(verifyTensors(*this)) || failed(verifyGrads(*this)))
    return failure();
  // attend_grad_c3
  return verifyAttendLike(*this);
}

// attend_grad_c4
LogicalResult AttendGradOp::verifyRegions() {
  if (failed(verifyAttendRegions(*this)))
    return failure();
  if (getScore().empty() != getGradient().empty())
    return emitOpError("a score region and its gradient region go together, "
                       "got one of them");
  return verifyRegion(*this, RegionRole::Gradient, getGradient(),
                      getStateType(),
                      asRegionArguments(getScoreCaptures().getTypes()));
}
