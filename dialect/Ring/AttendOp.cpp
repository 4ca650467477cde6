//===- AttendOp.cpp - queries attend a slice of keys and values -----------===//
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
  OpAsmParser::UnresolvedOperand query, queryOwner, queryExtent;
  OpAsmParser::UnresolvedOperand key, value, keyOwner, keyExtent;
  Operands state, into, offsets, pairs, maskCaptures, scoreCaptures;
  bool isFirst = false, isLast = false;
  SmallVector<Type> pairTypes, maskTypes, scoreTypes;
};
} // namespace

/// `slice (%k, %v at %owner)`
static ParseResult parseSlice(OpAsmParser &parser, ParsedAttend &parsed) {
  return failure(parser.parseKeyword("slice") || parser.parseLParen() ||
                 parser.parseOperand(parsed.key) || parser.parseComma() ||
                 parser.parseOperand(parsed.value) ||
                 parser.parseKeyword("at") ||
                 parser.parseOperand(parsed.keyOwner) || parser.parseRParen());
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

ParseResult ring::parseOptionalOffsets(OpAsmParser &parser, Operands &offsets) {
  if (failed(parser.parseOptionalKeyword("offsets")))
    return success();
  auto parseOne = [&]() -> ParseResult {
    return failure(parser.parseOperand(offsets.emplace_back()) ||
                   parser.parseKeyword("of") ||
                   parser.parseOperand(offsets.emplace_back()));
  };
  return failure(parser.parseLParen() || parseOne() || parser.parseComma() ||
                 parseOne() || parser.parseRParen());
}

ParseResult ring::parseLayout(OpAsmParser &parser, StringRef name,
                              NamedAttrList &attributes) {
  LayoutAttr layout;
  return parser.parseCustomAttributeWithFallback(layout, Type(), name,
                                                 attributes);
}

/// `first` or `state ...`, then `last` and, on buffers, `into ...`.
static ParseResult parseEnds(OpAsmParser &parser, OperationState &result,
                             ParsedAttend &parsed) {
  parsed.isFirst = succeeded(parser.parseOptionalKeyword("first"));
  if (!parsed.isFirst && (parser.parseKeyword("state") ||
                          parser.parseOperandList(parsed.state, 3)))
    return failure();
  parsed.isLast = succeeded(parser.parseOptionalKeyword("last"));
  if (parsed.isLast)
    result.addAttribute("last", parser.getBuilder().getUnitAttr());
  if (succeeded(parser.parseOptionalKeyword("into")))
    return parser.parseOperandList(parsed.into);
  return success();
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
      parser.parseOperand(parsed.queryExtent) || parseSlice(parser, parsed) ||
      parser.parseKeyword("of") ||
      parseLayout(parser, "keyLayout", attributes) ||
      parser.parseKeyword("extent") || parser.parseOperand(parsed.keyExtent) ||
      parseEnds(parser, result, parsed) ||
      parseOptionalOffsets(parser, parsed.offsets) ||
      parseOptionalPairs(parser, parsed.pairs, parsed.pairTypes))
    return failure();
  return failure(parser.parseKeyword("scale") ||
                 parser.parseAttribute(scale, parser.getBuilder().getF64Type(),
                                       "scale", attributes));
}

/// Resolves the operands once the types are known; `type` lists query, key and
/// value, and gives o and m, or out and lse.
static ParseResult resolveAttend(OpAsmParser &parser, OperationState &result,
                                 ParsedAttend &parsed, FunctionType type,
                                 SMLoc loc) {
  constexpr size_t shards = 3;
  bool tensors = type.getNumResults() == 2;
  size_t buffers = tensors ? 0 : parsed.state.size() + parsed.into.size();
  if (type.getNumInputs() != shards + buffers ||
      (!tensors && type.getNumResults() != 0))
    return parser.emitError(loc,
                            "expects the types of query, key and value, then "
                            "those of o and m, or of out and lse, or on "
                            "buffers of the state and of what is written into");
  Type index = parser.getBuilder().getIndexType();
  ArrayRef<Type> memory = type.getInputs().drop_front(shards);
  SmallVector<Type> made, state, into;
  if (tensors) {
    made = {type.getResult(0), type.getResult(1)};
    if (!parsed.isLast)
      made.push_back(type.getResult(1));
    auto out = dyn_cast<RankedTensorType>(made[0]);
    auto lse = dyn_cast<RankedTensorType>(made[1]);
    if (!out || !lse)
      return parser.emitError(loc, "makes ranked tensors, got: ") << made;
    if (!parsed.isFirst && parsed.isLast) // of the rows of the results
      state = {out.clone(lse.getElementType()), lse, lse};
    else if (!parsed.isFirst)
      state = made;
  } else {
    state.assign(memory.begin(), memory.begin() + parsed.state.size());
    into.assign(memory.begin() + parsed.state.size(), memory.end());
  }
  auto &operands = result.operands;
  if (parser.resolveOperand(parsed.query, type.getInput(0), operands) ||
      parser.resolveOperand(parsed.queryOwner, index, operands) ||
      parser.resolveOperand(parsed.queryExtent, index, operands) ||
      parser.resolveOperand(parsed.key, type.getInput(1), operands) ||
      parser.resolveOperand(parsed.value, type.getInput(2), operands) ||
      parser.resolveOperand(parsed.keyOwner, index, operands) ||
      parser.resolveOperand(parsed.keyExtent, index, operands) ||
      parser.resolveOperands(parsed.state, state, loc, operands) ||
      parser.resolveOperands(parsed.offsets, index, operands) ||
      parser.resolveOperands(parsed.pairs, parsed.pairTypes, loc, operands) ||
      parser.resolveOperands(parsed.maskCaptures, parsed.maskTypes, loc,
                             operands) ||
      parser.resolveOperands(parsed.scoreCaptures, parsed.scoreTypes, loc,
                             operands) ||
      parser.resolveOperands(parsed.into, into, loc, operands))
    return failure();
  result.addTypes(made);
  auto size = [](const Operands &list) {
    return static_cast<int32_t>(list.size());
  };
  int32_t part = parsed.isFirst ? 0 : 1; // of the state
  result.getOrAddProperties<AttendOp::Properties>().operandSegmentSizes = {
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      part,
      part,
      part,
      size(parsed.offsets),
      size(parsed.pairs),
      size(parsed.maskCaptures),
      size(parsed.scoreCaptures),
      size(parsed.into)};
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
  OperandRange offsets = op.getOffsetsMutable();
  if (!offsets.empty())
    printer << " offsets (" << offsets[0] << " of " << offsets[1] << ", "
            << offsets[2] << " of " << offsets[3] << ')';
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
  printer << "slice (" << getKey() << ", " << getValue() << " at "
          << getKeyOwner() << ") of ";
  printer.printStrippedAttrOrType(getKeyLayout());
  printer << " extent " << getKeyExtent();
  newline();
  if (isFirst())
    printer << "first";
  else
    printer << "state " << getState();
  if (isLast())
    printer << " last";
  if (!getInto().empty())
    printer << " into " << getInto();
  printClauses(printer, *this, getScaleAttr());
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getOperandSegmentSizeAttr(), getQueryLayoutAttrName(),
       getKeyLayoutAttrName(), getScaleAttrName(), getLastAttrName()});
  newline();
  SmallVector<Type> inputs{getQuery().getType(), getKey().getType(),
                           getValue().getType()};
  SmallVector<Type> outputs(llvm::map_range(
      llvm::make_range(getResults().begin(),
                       getResults().begin() + std::min(2u, getNumResults())),
      [](Value made) { return made.getType(); }));
  if (outputs.empty()) {
    llvm::append_range(inputs, getState().getTypes());
    llvm::append_range(inputs, getInto().getTypes());
  }
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
  static constexpr StringLiteral state[] = {"o", "m", "l"};
  static constexpr StringLiteral results[] = {"out", "lse"};
  ArrayRef<StringLiteral> names = isLast() ? ArrayRef(results) : state;
  for (auto [made, name] : llvm::zip(getResults(), names))
    setName(made, name);
}

FloatType AttendOp::getStateType() {
  return stateTypeOf(shapedType(getQuery()));
}

/// attend_c1, of m and l.
static LogicalResult verifyRows(AttendOp op, ValueRange state) {
  ShapedType m = shapedType(state[1]), l = shapedType(state[2]);
  if (m.getShape() == l.getShape() && m.getElementType() == l.getElementType())
    return success();
  return op.emitOpError("m and l must have one shape and type, got: ")
         << m << " and " << l;
}

/// attend_c1, of the state and of what the op makes.
static LogicalResult verifyEnds(AttendOp op) {
  ShapedType query = shapedType(op.getQuery());
  OperandRange state = op.getState();
  if (!op.isFirst() && (failed(verifyRows(op, state)) ||
                        failed(verifyState(op, query, shapedType(state[0]),
                                           shapedType(state[1])))))
    return failure();
  if (op.isLast()) {
    ShapedType out = shapedType(op.getMade(0)), lse = shapedType(op.getMade(1));
    return verifyState(op, query, out.clone(stateTypeOf(out)), lse);
  }
  if (op.isFirst()) {
    Value made[] = {op.getMade(0), op.getMade(1), op.getMade(2)};
    if (failed(verifyRows(op, made)))
      return failure();
    return verifyState(op, query, shapedType(made[0]), shapedType(made[1]));
  }
  if (op.getNumResults() && op.getResultTypes() != state.getTypes())
    return op.emitOpError("must give a state of the types it takes, got: ")
           << state.getTypes() << " to " << op.getResultTypes();
  return success();
}

/// attend_c1, for each tensor but m and l.
static LogicalResult verifyHeads(AttendOp op) {
  for (Value tensor :
       {op.getQuery(), op.getMade(0), op.getKey(), op.getValue()}) {
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

/// attend_c1, for the slice.
static LogicalResult verifySlice(AttendOp op) {
  ShapedType query = shapedType(op.getQuery());
  ShapedType key = shapedType(op.getKey()), value = shapedType(op.getValue());
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
  for (Value o : {Value(op.getO()), op.getMade(0)})
    if (o && !agree(value.getDimSize(3), shapedType(o).getDimSize(3)))
      return op.emitOpError("o must have the head dim of the values, got: ")
             << o.getType() << " and " << value;
  return success();
}

LogicalResult AttendOp::verify() {
  if (!getM() != isFirst() || !getL() != isFirst())
    return emitOpError("needs o, m and l of a state, or none of them");
  SmallVector<Value> shaped{getQuery(), getKey(), getValue()};
  llvm::append_range(shaped, getState());
  llvm::append_range(shaped, getInto());
  if (failed(verifyForm(*this, shaped, isLast() ? 2 : 3)))
    return failure();
  // attend_c4
  bool isWritten = getNumResults() == 0 && (isFirst() || isLast());
  size_t written = !isWritten ? 0 : isLast() ? 2 : 3;
  if (getInto().size() != written)
    return emitOpError("on buffers is written into o, m and l where it is "
                       "first, into out and lse where it is last, got ")
           << getInto().size() << " buffers";
  // attend_c1
  SmallVector<Value> made;
  for (unsigned i = 0, e = isLast() ? 2 : 3; i < e; ++i)
    made.push_back(getMade(i));
  if (failed(verifyRanks(*this, made)) || failed(verifyEnds(*this)) ||
      failed(verifyHeads(*this)) || failed(verifySlice(*this)))
    return failure();
  // attend_c2
  return verifyAttendLike(*this);
}

// attend_c3
LogicalResult AttendOp::verifyRegions() { return verifyAttendRegions(*this); }
