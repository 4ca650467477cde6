//===- ScoreOps.cpp - attention that stores its scores --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

/// Scores are (batch, heads, rows, keys), in the type of the state.
static LogicalResult verifyScores(Operation *op, ShapedType scores,
                                  ShapedType shard) {
  bool fits = scores.getElementType() == stateTypeOf(shard) &&
              agree(scores.getDimSize(0), shard.getDimSize(0)) &&
              agree(scores.getDimSize(1), shard.getDimSize(2)) &&
              agree(scores.getDimSize(2), shard.getDimSize(1));
  if (fits)
    return success();
  return op->emitOpError("scores must be (batch, heads, sequence, keys) of ")
         << shard << " in " << stateTypeOf(shard) << ", got: " << scores;
}

// scores_c1
LogicalResult ScoresOp::verify() {
  SmallVector<Value> shaped{getQuery()};
  if (getInto())
    shaped.push_back(getInto());
  if (failed(verifyForm(*this, shaped, 1)))
    return failure();
  Value made = getInto() ? getInto() : getScores();
  if (!made || shapedType(made).getRank() != 4)
    return emitOpError("needs scores of four dimensions to make");
  return verifyScores(*this, shapedType(made), shapedType(getQuery()));
}

/// The state is of the rows of the scores.
static LogicalResult verifyStored(Operation *op, Value scores, Value o, Value m,
                                  Value l) {
  ShapedType rows = shapedType(m), sum = shapedType(o);
  if (failed(verifyScores(op, shapedType(scores), sum)))
    return failure();
  bool fits = rows.getElementType() == sum.getElementType() &&
              shapedType(l).getElementType() == rows.getElementType() &&
              agree(shapedType(l).getShape(), rows.getShape()) &&
              agree(rows.getDimSize(0), sum.getDimSize(0)) &&
              agree(rows.getDimSize(1), sum.getDimSize(2)) &&
              agree(rows.getDimSize(2), sum.getDimSize(1));
  if (fits)
    return success();
  return op->emitOpError("m and l must be (batch, heads, sequence) of ")
         << sum << ", got: " << rows << " and " << l.getType();
}

// softmax_c1
LogicalResult SoftmaxOp::verify() {
  if (failed(verifyForm(*this, (*this)->getOperands(), 4)))
    return failure();
  if (getWeights() && (*this)->getResultTypes() != (*this)->getOperandTypes())
    return emitOpError("must give what has the types of what it takes, got: ")
           << (*this)->getResultTypes();
  return verifyStored(*this, getScores(), getO(), getM(), getL());
}

// weigh_c1
LogicalResult WeighOp::verify() {
  SmallVector<Value> shaped{getWeights(), getValue(), getO(), getM(), getL()};
  if (failed(verifyForm(*this, shaped, 3)) ||
      failed(verifyPart(*this, getKeyLayout())))
    return failure();
  if (getNewO() &&
      (*this)->getResultTypes() != ValueRange(shaped).drop_front(2).getTypes())
    return emitOpError("must give a state of the types it takes, got: ")
           << (*this)->getResultTypes();
  ShapedType value = shapedType(getValue()), o = shapedType(getO());
  int64_t heads = value.getDimSize(2);
  if (!agree(value.getDimSize(0), o.getDimSize(0)) ||
      !agree(value.getDimSize(3), o.getDimSize(3)) || heads < 1 ||
      o.getDimSize(2) % heads != 0)
    return emitOpError("the value must have the batch and head dim of o, and "
                       "heads of which o has a multiple, got: ")
           << value << " for " << o;
  return verifyStored(*this, getWeights(), getO(), getM(), getL());
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Rows are (batch, heads, sequence) of scores, in their type.
static LogicalResult verifyRowsOf(Operation *op, StringRef name,
                                  ShapedType rows, ShapedType scores) {
  if (rows.getElementType() == scores.getElementType() &&
      agree(rows.getShape(), scores.getShape().take_front(3)))
    return success();
  return op->emitOpError() << name << " must be (batch, heads, sequence) of "
                           << scores << ", got: " << rows;
}

/// What is tied keeps its type.
static LogicalResult verifyTied(Operation *op) {
  auto step = cast<DestinationStyleOpInterface>(op);
  for (OpResult result : op->getResults())
    if (Value tied = step.getTiedOpOperand(result)->get();
        tied.getType() != result.getType())
      return op->emitOpError("must give what has the types of what it updates, "
                             "got: ")
             << tied.getType() << " to " << result.getType();
  return success();
}

/// A slice of keys or values fits what stands for it beside queries.
static LogicalResult verifySlice(Operation *op, StringRef name,
                                 ShapedType slice, ShapedType rows) {
  int64_t heads = slice.getDimSize(2);
  if (slice.getElementType() == rows.getElementType() &&
      agree(slice.getDimSize(0), rows.getDimSize(0)) &&
      agree(slice.getDimSize(3), rows.getDimSize(3)) && heads >= 1 &&
      rows.getDimSize(2) % heads == 0)
    return success();
  return op->emitOpError() << "the " << name
                           << " must have the element type, batch and head dim "
                           << "of " << rows
                           << ", and heads of which that has a multiple, got: "
                           << slice;
}

/// A gradient by `of`, in the state type.
static LogicalResult verifyGradient(Operation *op, ShapedType gradient,
                                    ShapedType of) {
  if (gradient.getElementType() == stateTypeOf(of) &&
      agree(gradient.getShape(), of.getShape()))
    return success();
  return op->emitOpError("a gradient by ")
         << of << " must have its shape, in " << stateTypeOf(of)
         << ", got: " << gradient;
}

// probabilities_c1
LogicalResult ProbabilitiesOp::verify() {
  if (failed(verifyForm(*this, (*this)->getOperands(), 1)) ||
      failed(verifyTied(*this)))
    return failure();
  return verifyRowsOf(*this, "lse", shapedType(getLse()),
                      shapedType(getScores()));
}

LogicalResult WeighGradOp::verify() {
  // weigh_grad_c1
  SmallVector<Value> shaped{getOutGrad(), getDelta(), getValue(), getWeights(),
                            getValueGrad()};
  ShapedType outGrad = shapedType(getOutGrad()), value = shapedType(getValue());
  ShapedType weights = shapedType(getWeights());
  if (failed(verifyForm(*this, shaped, 2)) || failed(verifyTied(*this)) ||
      failed(verifyPart(*this, getKeyLayout())) ||
      failed(verifyScores(*this, weights, outGrad)) ||
      failed(verifyRowsOf(*this, "delta", shapedType(getDelta()), weights)) ||
      failed(verifySlice(*this, "value", value, outGrad)) ||
      failed(verifyGradient(*this, shapedType(getValueGrad()), value)))
    return failure();
  // weigh_grad_c2
  if (getScale().isFinite())
    return success();
  return emitOpError("scale must be finite, got: ") << getScaleAttr();
}

// score_grad_c1
LogicalResult ScoreGradOp::verify() {
  SmallVector<Value> shaped{getWeights(), getQuery(), getKey(), getQueryGrad(),
                            getKeyGrad()};
  ShapedType query = shapedType(getQuery()), key = shapedType(getKey());
  if (failed(verifyForm(*this, shaped, 2)) || failed(verifyTied(*this)) ||
      failed(verifyPart(*this, getKeyLayout())) ||
      failed(verifyScores(*this, shapedType(getWeights()), query)) ||
      failed(verifySlice(*this, "key", key, query)) ||
      failed(verifyGradient(*this, shapedType(getQueryGrad()), query)))
    return failure();
  return verifyGradient(*this, shapedType(getKeyGrad()), key);
}

//===----------------------------------------------------------------------===//
// score
//===----------------------------------------------------------------------===//

ParseResult ScoreOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand query, queryOwner, queryExtent;
  OpAsmParser::UnresolvedOperand key, keyOwner, keyExtent, scores;
  Operands offsets, pairs, maskCaptures, scoreCaptures, none;
  SmallVector<Type> pairTypes, maskTypes, scoreTypes, noTypes;
  FloatAttr scale;
  FunctionType type;
  NamedAttrList &attributes = result.attributes;
  Region &mask = *result.addRegion(), &score = *result.addRegion();
  Region &bounds = *result.addRegion();
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperand(query) || parser.parseKeyword("at") ||
      parseLayout(parser, "queryLayout", attributes) || parser.parseLSquare() ||
      parser.parseOperand(queryOwner) || parser.parseRSquare() ||
      parser.parseKeyword("extent") || parser.parseOperand(queryExtent) ||
      parser.parseKeyword("slice") || parser.parseLParen() ||
      parser.parseOperand(key) || parser.parseKeyword("at") ||
      parser.parseOperand(keyOwner) || parser.parseRParen() ||
      parser.parseKeyword("of") ||
      parseLayout(parser, "keyLayout", attributes) ||
      parser.parseKeyword("extent") || parser.parseOperand(keyExtent) ||
      parser.parseKeyword("into") || parser.parseOperand(scores) ||
      parseOptionalOffsets(parser, offsets) ||
      parseOptionalPairs(parser, pairs, pairTypes) ||
      parser.parseKeyword("scale") ||
      parser.parseAttribute(scale, builder.getF64Type(), "scale", attributes) ||
      parseOptionalRegion(parser, RegionRole::Mask, mask, maskCaptures,
                          maskTypes) ||
      parseOptionalRegion(parser, RegionRole::Score, score, scoreCaptures,
                          scoreTypes) ||
      parseOptionalRegion(parser, RegionRole::Bounds, bounds, none, noTypes) ||
      parser.parseOptionalAttrDict(attributes) || parser.parseColonType(type))
    return failure();
  bool tensors = type.getNumResults() == 1;
  if (type.getNumInputs() != (tensors ? 2 : 3) || type.getNumResults() > 1)
    return parser.emitError(loc, "expects the types of query and key, then "
                                 "that of the scores, on buffers in front of "
                                 "the arrow");
  Type index = builder.getIndexType();
  auto &operands = result.operands;
  if (parser.resolveOperand(query, type.getInput(0), operands) ||
      parser.resolveOperand(queryOwner, index, operands) ||
      parser.resolveOperand(queryExtent, index, operands) ||
      parser.resolveOperand(key, type.getInput(1), operands) ||
      parser.resolveOperand(keyOwner, index, operands) ||
      parser.resolveOperand(keyExtent, index, operands) ||
      parser.resolveOperand(
          scores, tensors ? type.getResult(0) : type.getInput(2), operands) ||
      parser.resolveOperands(offsets, index, operands) ||
      parser.resolveOperands(pairs, pairTypes, loc, operands) ||
      parser.resolveOperands(maskCaptures, maskTypes, loc, operands) ||
      parser.resolveOperands(scoreCaptures, scoreTypes, loc, operands))
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
      size(offsets),
      size(pairs),
      size(maskCaptures),
      size(scoreCaptures)};
  return success();
}

void ScoreOp::print(OpAsmPrinter &printer) {
  auto newline = [&] {
    printer.printNewline();
    printer << "    ";
  };
  printer << ' ' << getQuery() << " at ";
  printer.printStrippedAttrOrType(getQueryLayout());
  printer << '[' << getQueryOwner() << "] extent " << getQueryExtent();
  newline();
  printer << "slice (" << getKey() << " at " << getKeyOwner() << ") of ";
  printer.printStrippedAttrOrType(getKeyLayout());
  printer << " extent " << getKeyExtent() << " into " << getScores();
  printClauses(printer, *this, getScaleAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getOperandSegmentSizeAttr(),
                                 getQueryLayoutAttrName(),
                                 getKeyLayoutAttrName(), getScaleAttrName()});
  newline();
  SmallVector<Type> inputs{getQuery().getType(), getKey().getType()};
  if (!getNewScores())
    inputs.push_back(getScores().getType());
  printer << ": ";
  printer.printFunctionalType(inputs, (*this)->getResultTypes());
}

void ScoreOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setName) {
  RegionRole kind = &region == &getMask()    ? RegionRole::Mask
                    : &region == &getScore() ? RegionRole::Score
                                             : RegionRole::Bounds;
  setArgumentNames(kind, region, setName);
}

void ScoreOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (getNewScores())
    setName(getNewScores(), "s");
}

FloatType ScoreOp::getStateType() {
  return stateTypeOf(shapedType(getQuery()));
}

LogicalResult ScoreOp::verify() {
  // score_c1
  if (failed(verifyForm(*this, {getQuery(), getKey(), getScores()}, 1)) ||
      failed(verifyPart(*this, getQueryLayout())) ||
      failed(verifyPart(*this, getKeyLayout())))
    return failure();
  if (getNewScores() && getNewScores().getType() != getScores().getType())
    return emitOpError("scores must keep their type, got: ")
           << getScores().getType() << " to " << getNewScores().getType();
  ShapedType query = shapedType(getQuery()), key = shapedType(getKey());
  for (ShapedType type : {query, key}) {
    int64_t heads = type.getDimSize(2), dim = type.getDimSize(3);
    if (heads < 1 || dim < 1 || dim > 256)
      return emitOpError("heads and head dims must be static, at least 1, and "
                         "head dims at most 256, got: ")
             << type;
  }
  if (key.getElementType() != query.getElementType() ||
      !agree(key.getDimSize(0), query.getDimSize(0)) ||
      !agree(key.getDimSize(3), query.getDimSize(3)) ||
      query.getDimSize(2) % key.getDimSize(2) != 0)
    return emitOpError("the key must have the query's element type, batch and "
                       "head dim, and heads of which the query has a "
                       "multiple, got: ")
           << key << " for " << query;
  if (failed(verifyScores(*this, shapedType(getScores()), query)))
    return failure();
  // score_c2
  return verifyAttendLike(*this);
}

// score_c3
LogicalResult ScoreOp::verifyRegions() { return verifyAttendRegions(*this); }
