//===- AttendOp.cpp - queries attend slices of keys and values ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

//===----------------------------------------------------------------------===//
// attend
//===----------------------------------------------------------------------===//

namespace {
/// Everything of an attend that is parsed before its types.
struct ParsedAttend {
  OpAsmParser::UnresolvedOperand query, queryOwner, queryExtent, keyExtent;
  Operands keys, values, owners, state, pairs, maskCaptures, scoreCaptures;
  SmallVector<Type> pairTypes, maskTypes, scoreTypes;
};
} // namespace

/// `(%k, %v at %owner), ...`
static ParseResult parseSlices(OpAsmParser &parser, ParsedAttend &parsed) {
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    return failure(parser.parseLParen() ||
                   parser.parseOperand(parsed.keys.emplace_back()) ||
                   parser.parseComma() ||
                   parser.parseOperand(parsed.values.emplace_back()) ||
                   parser.parseKeyword("at") ||
                   parser.parseOperand(parsed.owners.emplace_back()) ||
                   parser.parseRParen());
  });
}

ParseResult ring::parseOptionalRegion(OpAsmParser &parser, RegionRole kind,
                                      Region &region, Operands &captures,
                                      SmallVector<Type> &types) {
  if (failed(parser.parseOptionalKeyword(stringify(kind))))
    return success();
  if (parser.parseLParen())
    return failure();
  return parseRegion(parser, kind, region, captures, types);
}

ParseResult ring::parseOptionalPairs(OpAsmParser &parser, Operands &pairs,
                                     SmallVector<Type> &types) {
  if (failed(parser.parseOptionalKeyword("pairs")))
    return success();
  return failure(
      parser.parseLParen() || parser.parseOperand(pairs.emplace_back()) ||
      parser.parseColonType(types.emplace_back()) || parser.parseRParen());
}

ParseResult ring::parseLayout(OpAsmParser &parser, StringRef name,
                              NamedAttrList &attributes) {
  LayoutAttr layout;
  return parser.parseCustomAttributeWithFallback(layout, Type(), name,
                                                 attributes);
}

static ParseResult parseAttendClauses(OpAsmParser &parser,
                                      OperationState &result,
                                      ParsedAttend &parsed) {
  FloatAttr scale;
  NamedAttrList &attributes = result.attributes;
  if (parser.parseOperand(parsed.query) || parser.parseKeyword("at") ||
      parseLayout(parser, "queryLayout", attributes) || parser.parseLSquare() ||
      parser.parseOperand(parsed.queryOwner) || parser.parseRSquare() ||
      parser.parseKeyword("extent") ||
      parser.parseOperand(parsed.queryExtent) ||
      parser.parseKeyword("slices") || parseSlices(parser, parsed) ||
      parser.parseKeyword("of") ||
      parseLayout(parser, "keyLayout", attributes) ||
      parser.parseKeyword("extent") || parser.parseOperand(parsed.keyExtent) ||
      parser.parseKeyword("state") ||
      parser.parseOperandList(parsed.state, 3) ||
      parseOptionalPairs(parser, parsed.pairs, parsed.pairTypes))
    return failure();
  return failure(parser.parseKeyword("scale") ||
                 parser.parseAttribute(scale, parser.getBuilder().getF64Type(),
                                       "scale", attributes));
}

/// Resolves the operands once the types are known; `type` lists the query, then
/// a key and a value per slice, and gives o and m.
static ParseResult resolveAttend(OpAsmParser &parser, OperationState &result,
                                 ParsedAttend &parsed, FunctionType type,
                                 SMLoc loc) {
  size_t slices = parsed.keys.size();
  bool tensors = type.getNumResults() == 2;
  if (type.getNumInputs() != 1 + 2 * slices + (tensors ? 0 : 3) ||
      (!tensors && type.getNumResults() != 0))
    return parser.emitError(loc,
                            "expects the types of the query and of a key "
                            "and a value per slice, then those of o and m, or "
                            "on buffers of o, m and l");
  SmallVector<Type> keys, values;
  for (size_t slice = 0; slice < slices; ++slice) {
    keys.push_back(type.getInput(1 + 2 * slice));
    values.push_back(type.getInput(2 + 2 * slice));
  }
  Type index = parser.getBuilder().getIndexType();
  SmallVector<Type> state;
  if (tensors)
    state = {type.getResult(0), type.getResult(1), type.getResult(1)};
  else
    state.append(type.getInputs().end() - 3, type.getInputs().end());
  auto &operands = result.operands;
  if (parser.resolveOperand(parsed.query, type.getInput(0), operands) ||
      parser.resolveOperand(parsed.queryOwner, index, operands) ||
      parser.resolveOperand(parsed.queryExtent, index, operands) ||
      parser.resolveOperands(parsed.keys, keys, loc, operands) ||
      parser.resolveOperands(parsed.values, values, loc, operands) ||
      parser.resolveOperands(parsed.owners, index, operands) ||
      parser.resolveOperand(parsed.keyExtent, index, operands) ||
      parser.resolveOperands(parsed.state, state, loc, operands) ||
      parser.resolveOperands(parsed.pairs, parsed.pairTypes, loc, operands) ||
      parser.resolveOperands(parsed.maskCaptures, parsed.maskTypes, loc,
                             operands) ||
      parser.resolveOperands(parsed.scoreCaptures, parsed.scoreTypes, loc,
                             operands))
    return failure();
  if (tensors)
    result.addTypes(state);
  auto size = [](const Operands &list) {
    return static_cast<int32_t>(list.size());
  };
  result.getOrAddProperties<AttendOp::Properties>().operandSegmentSizes = {
      1,
      1,
      1,
      size(parsed.keys),
      size(parsed.values),
      size(parsed.owners),
      1,
      1,
      1,
      1,
      size(parsed.pairs),
      size(parsed.maskCaptures),
      size(parsed.scoreCaptures)};
  return success();
}

ParseResult AttendOp::parse(OpAsmParser &parser, OperationState &result) {
  ParsedAttend parsed;
  Region &mask = *result.addRegion();
  Region &score = *result.addRegion();
  Region &bounds = *result.addRegion();
  Operands none;
  SmallVector<Type> noTypes;
  SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parseAttendClauses(parser, result, parsed) ||
      parseOptionalRegion(parser, RegionRole::Mask, mask, parsed.maskCaptures,
                          parsed.maskTypes) ||
      parseOptionalRegion(parser, RegionRole::Score, score,
                          parsed.scoreCaptures, parsed.scoreTypes) ||
      parseOptionalRegion(parser, RegionRole::Bounds, bounds, none, noTypes) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  return resolveAttend(parser, result, parsed, type, loc);
}

void ring::printClauses(OpAsmPrinter &printer, AttendLikeOpInterface op,
                        FloatAttr scale) {
  if (Value pairs = op.getPairs())
    printer << " pairs(" << pairs << " : " << pairs.getType() << ')';
  printer << " scale ";
  printer.printAttributeWithoutType(scale);
  auto print = [&](RegionRole kind, Region &region, ValueRange captures) {
    if (!region.empty())
      printClauseRegion(printer, kind, region, captures);
  };
  print(RegionRole::Mask, op.getMask(), op.getMaskCaptures());
  print(RegionRole::Score, op.getScore(), op.getScoreCaptures());
  print(RegionRole::Bounds, op.getBounds(), {});
}

void AttendOp::print(OpAsmPrinter &printer) {
  auto newline = [&] {
    printer.printNewline();
    printer << "    ";
  };
  printer << ' ' << getQuery() << " at ";
  printer.printStrippedAttrOrType(getQueryLayout());
  printer << '[' << getQueryOwner() << "] extent " << getQueryExtent();
  newline();
  printer << "slices ";
  llvm::interleaveComma(llvm::zip_equal(getKeys(), getValues(), getOwners()),
                        printer, [&](auto slice) {
                          auto [key, value, owner] = slice;
                          printer << '(' << key << ", " << value << " at "
                                  << owner << ')';
                        });
  printer << " of ";
  printer.printStrippedAttrOrType(getKeyLayout());
  printer << " extent " << getKeyExtent();
  newline();
  printer << "state " << getO() << ", " << getM() << ", " << getL();
  printClauses(printer, *this, getScaleAttr());
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getOperandSegmentSizeAttr(),
                                 getQueryLayoutAttrName(),
                                 getKeyLayoutAttrName(), getScaleAttrName()});
  newline();
  SmallVector<Type> inputs{getQuery().getType()};
  for (auto [key, value] : llvm::zip_equal(getKeys(), getValues())) {
    inputs.push_back(key.getType());
    inputs.push_back(value.getType());
  }
  SmallVector<Type> outputs;
  if (getNewO())
    outputs = {getNewO().getType(), getNewM().getType()};
  else
    llvm::append_range(
        inputs, TypeRange(ValueRange{getO(), getM(), getL()}.getTypes()));
  printer << ": ";
  printer.printFunctionalType(inputs, outputs);
}

void AttendOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  RegionRole kind = &region == &getMask()    ? RegionRole::Mask
                    : &region == &getScore() ? RegionRole::Score
                                             : RegionRole::Bounds;
  setArgumentNames(kind, region, setName);
}

void AttendOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (!getNewO())
    return;
  setName(getNewO(), "o");
  setName(getNewM(), "m");
  setName(getNewL(), "l");
}

FloatType AttendOp::getStateType() {
  return stateTypeOf(shapedType(getQuery()));
}

/// attend_c1, for the state. AllTypesMatch would infer types, and from the
/// wrong operands where there are several slices.
static LogicalResult verifyTypes(AttendOp op) {
  Type m = op.getM().getType();
  if (!op.getNewO()) {
    ShapedType rows = shapedType(op.getM()), other = shapedType(op.getL());
    if (rows.getShape() == other.getShape() &&
        rows.getElementType() == other.getElementType())
      return success();
    return op.emitOpError("m and l must have one shape, got: ")
           << rows << " and " << other;
  }
  bool holds = op.getO().getType() == op.getNewO().getType() &&
               llvm::all_equal(ArrayRef<Type>{m, op.getL().getType(),
                                              op.getNewM().getType(),
                                              op.getNewL().getType()});
  if (holds)
    return success();
  return op.emitOpError("o must keep its type, m and l must have one, got: ")
         << op.getO().getType() << ", " << m << " and " << op.getL().getType()
         << " to " << op.getResultTypes();
}

/// attend_c1, for each tensor but m and l.
static LogicalResult verifyHeads(AttendOp op) {
  SmallVector<Value> tensors{op.getQuery(), op.getO()};
  llvm::append_range(tensors, op.getKeys());
  llvm::append_range(tensors, op.getValues());
  for (Value tensor : tensors) {
    ShapedType type = shapedType(tensor);
    // A dynamic size is negative.
    int64_t heads = type.getDimSize(2), dim = type.getDimSize(3);
    if (heads < 1 || dim < 1 || dim > 256)
      return op.emitOpError(
                 "heads and head dims must be static, at least 1, and "
                 "head dims at most 256, got: ")
             << type;
  }
  return success();
}

/// attend_c1, for one slice.
static LogicalResult verifySlice(AttendOp op, ShapedType key,
                                 ShapedType value) {
  ShapedType query = shapedType(op.getQuery());
  if (key.getElementType() != query.getElementType() ||
      value.getElementType() != query.getElementType())
    return op.emitOpError("query, keys and values must have one element type, "
                          "got: ")
           << query << ", " << key << " and " << value;
  for (int dim : {0, 1, 2})
    if (!agree(key.getDimSize(dim), value.getDimSize(dim)))
      return op.emitOpError("a slice must have one batch, sequence and head "
                            "count, got: ")
             << key << " and " << value;
  if (!agree(key.getDimSize(0), query.getDimSize(0)) ||
      !agree(key.getDimSize(3), query.getDimSize(3)))
    return op.emitOpError("a key must have the query's batch and head dim, "
                          "got: ")
           << key << " for " << query;
  if (query.getDimSize(2) % key.getDimSize(2) != 0)
    return op.emitOpError("query heads must be a multiple of key heads, got: ")
           << query << " and " << key;
  if (!agree(value.getDimSize(3), shapedType(op.getO()).getDimSize(3)))
    return op.emitOpError("o must have the head dim of the values, got: ")
           << op.getO().getType() << " and " << value;
  return success();
}

LogicalResult AttendOp::verify() {
  SmallVector<Value> shaped{getQuery(), getO(), getM(), getL()};
  llvm::append_range(shaped, getKeys());
  llvm::append_range(shaped, getValues());
  if (failed(verifyForm(*this, shaped, 3)) || failed(verifyTypes(*this)) ||
      failed(verifyState(*this, shapedType(getQuery()), shapedType(getO()),
                         shapedType(getM()))) ||
      failed(verifyHeads(*this)))
    return failure();
  // attend_c2
  size_t slices = getKeys().size();
  if (slices == 0 || getValues().size() != slices ||
      getOwners().size() != slices)
    return emitOpError("needs a key, a value and an owner per slice, got: ")
           << slices << ", " << getValues().size() << " and "
           << getOwners().size();
  for (auto [key, value] : llvm::zip_equal(getKeys(), getValues()))
    if (failed(verifySlice(*this, shapedType(key), shapedType(value))))
      return failure();
  // attend_c3
  return verifyMeeting(*this);
}

// attend_c4
LogicalResult AttendOp::verifyRegions() { return verifyMeetingRegions(*this); }
