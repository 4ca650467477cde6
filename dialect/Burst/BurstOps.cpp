//===- BurstOps.cpp - operations of the burst dialect ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace burst;

#define GET_OP_CLASSES
#include "dialect/Burst/BurstOps.cpp.inc"

//===----------------------------------------------------------------------===//
// attention: syntax
//===----------------------------------------------------------------------===//

namespace {
/// Operands with their types, as they are parsed.
struct Captures {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
};
} // namespace

/// One name or a list of names in brackets, then the tables they take.
static ParseResult parseNames(OpAsmParser &parser, OperationState &result,
                              StringRef attribute, Captures &captures) {
  SmallVector<Attribute> names;
  auto parseOne = [&] { return parseName(parser, names.emplace_back()); };
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parser.parseCommaSeparatedList(parseOne) || parser.parseRSquare())
      return failure();
  } else if (parseOne()) {
    return failure();
  }
  result.addAttribute(attribute, parser.getBuilder().getArrayAttr(names));
  if (failed(parser.parseOptionalLParen()))
    return success();
  if (parser.parseOperandList(captures.operands) ||
      parser.parseColonTypeList(captures.types))
    return failure();
  return parser.parseRParen();
}

/// Behind the keyword: a region or names. A mask in front of derived bounds.
static ParseResult parseNamesOrRegion(OpAsmParser &parser, RegionRole kind,
                                      OperationState &result, Region &region,
                                      StringRef attribute, Captures &captures) {
  if (succeeded(parser.parseOptionalKeyword(stringify(kind)))) {
    if (failed(parser.parseOptionalLParen()))
      return parseNames(parser, result, attribute, captures);
    return parseRegion(parser, kind, region, captures.operands, captures.types);
  }
  return success();
}

/// `kind(...) { ... }` of a region whose captures are those of another.
static ParseResult parseShared(OpAsmParser &parser, RegionRole kind,
                               Region &region) {
  Captures ignored;
  if (failed(parser.parseOptionalKeyword(stringify(kind))))
    return success();
  if (parser.parseLParen())
    return failure();
  return parseRegion(parser, kind, region, ignored.operands, ignored.types);
}

/// `keyword VALUE`, where VALUE is an attribute of one kind.
template <typename AttributeT>
static ParseResult parseClause(OpAsmParser &parser, OperationState &result,
                               StringRef keyword, Type type = {}) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  AttributeT attribute;
  return parser.parseCustomAttributeWithFallback(attribute, type, keyword,
                                                 result.attributes);
}

/// The clauses that all attentions have, behind the tensors.
template <typename OpT>
static ParseResult parseClauses(OpAsmParser &parser, OperationState &result,
                                Captures &mask, Captures &score) {
  Region &maskRegion = *result.addRegion();
  Region &scoreRegion = *result.addRegion();
  Region &boundsRegion = *result.addRegion();
  return failure(
      parseNamesOrRegion(parser, RegionRole::Mask, result, maskRegion,
                         OpT::getMaskNamesAttrName(result.name), mask) ||
      parseNamesOrRegion(parser, RegionRole::Score, result, scoreRegion,
                         OpT::getScoreNamesAttrName(result.name), score) ||
      parseShared(parser, RegionRole::Bounds, boundsRegion) ||
      parseClause<FloatAttr>(parser, result, "scale",
                             parser.getBuilder().getF64Type()) ||
      parseClause<SequenceAttr>(parser, result, "sequence") ||
      parseClause<StrategyAttr>(parser, result, "strategy"));
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Captures mask, score;
  SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parser.parseOperandList(operands, 3) ||
      parseClauses<AttentionOp>(parser, result, mask, score) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc,
                             result.operands) ||
      parser.resolveOperands(mask.operands, mask.types, loc, result.operands) ||
      parser.resolveOperands(score.operands, score.types, loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  result.getOrAddProperties<Properties>().operandSegmentSizes = {
      1, 1, 1, static_cast<int32_t>(mask.operands.size()),
      static_cast<int32_t>(score.operands.size())};
  return success();
}

/// `gradients [0, 2]`
static ParseResult parseGradients(OpAsmParser &parser, OperationState &result) {
  if (failed(parser.parseOptionalKeyword("gradients")))
    return success();
  SmallVector<int64_t> wanted;
  auto parseOne = [&] { return parser.parseInteger(wanted.emplace_back()); };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  result.addAttribute("gradients",
                      parser.getBuilder().getDenseI64ArrayAttr(wanted));
  return success();
}

ParseResult AttentionBackwardOp::parse(OpAsmParser &parser,
                                       OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Captures mask, score;
  SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parser.parseOperandList(operands))
    return failure();
  if (operands.size() != 6 && operands.size() != 7)
    return parser.emitError(loc, "expects query, key, value, out, lse, the "
                                 "gradient of out and maybe that of lse, got: ")
           << operands.size() << " operands";
  if (parseClauses<AttentionBackwardOp>(parser, result, mask, score) ||
      parseShared(parser, RegionRole::Gradient, *result.addRegion()) ||
      parseGradients(parser, result) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc,
                             result.operands) ||
      parser.resolveOperands(mask.operands, mask.types, loc, result.operands) ||
      parser.resolveOperands(score.operands, score.types, loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  result.getOrAddProperties<Properties>().operandSegmentSizes = {
      1,
      1,
      1,
      1,
      1,
      1,
      static_cast<int32_t>(operands.size() - 6),
      static_cast<int32_t>(mask.operands.size()),
      static_cast<int32_t>(score.operands.size())};
  return success();
}

static void printNamesOrRegion(OpAsmPrinter &printer, RegionRole kind,
                               ArrayAttr names, Region &region,
                               OperandRange captures) {
  if (!region.empty()) {
    printClauseRegion(printer, kind, region, captures);
  } else if (names) {
    printer << ' ' << stringify(kind) << ' ' << (names.size() == 1 ? "" : "[");
    llvm::interleaveComma(names, printer,
                          [&](Attribute name) { printName(printer, name); });
    printer << (names.size() == 1 ? "" : "]");
    if (!captures.empty())
      printer << '(' << captures << " : " << captures.getTypes() << ')';
  }
}

static void printClauses(OpAsmPrinter &printer, AttentionInterface op) {
  printNamesOrRegion(printer, RegionRole::Mask, op.getMaskNamesAttr(),
                     op.getMask(), op.getMaskCaptures());
  printNamesOrRegion(printer, RegionRole::Score, op.getScoreNamesAttr(),
                     op.getScore(), op.getScoreCaptures());
  if (!op.getBounds().empty())
    printClauseRegion(printer, RegionRole::Bounds, op.getBounds(), {});
  if (op.getScaleAttr()) {
    printer << " scale ";
    printer.printAttributeWithoutType(op.getScaleAttr());
  }
  if (op.getSequence()) {
    printer << " sequence ";
    printer.printStrippedAttrOrType(*op.getSequence());
  }
  if (op.getStrategyAttr()) {
    printer << " strategy ";
    printer.printStrippedAttrOrType(op.getStrategyAttr());
  }
}

/// Attributes that clauses print, and types.
static void printRest(OpAsmPrinter &printer, Operation *op,
                      ValueRange operands) {
  printer.printOptionalAttrDict(
      op->getAttrs(), {"operandSegmentSizes", "maskNames", "scoreNames",
                       "scale", "sequence", "strategy", "gradients"});
  printer << " : ";
  printer.printFunctionalType(operands.getTypes(), op->getResultTypes());
}

void AttentionOp::print(OpAsmPrinter &printer) {
  ValueRange tensors = (*this)->getOperands().take_front(3);
  printer << ' ' << tensors;
  printClauses(printer, *this);
  printRest(printer, *this, tensors);
}

void AttentionBackwardOp::print(OpAsmPrinter &printer) {
  ValueRange tensors = (*this)->getOperands().take_front(getLseGrad() ? 7 : 6);
  printer << ' ' << tensors;
  printClauses(printer, *this);
  if (!getGradient().empty())
    printClauseRegion(printer, RegionRole::Gradient, getGradient(), {});
  if (auto wanted = getGradients()) {
    printer << " gradients [";
    llvm::interleaveComma(*wanted, printer);
    printer << ']';
  }
  printRest(printer, *this, tensors);
}

void AttentionOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOut(), "out");
  setName(getLse(), "lse");
}

void AttentionBackwardOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getQueryGrad(), "dq");
  setName(getKeyGrad(), "dk");
  setName(getValueGrad(), "dv");
  for (Value grad : getCaptureGrads())
    setName(grad, "dt");
}

static void nameArguments(AttentionInterface op, Region &region,
                          OpAsmSetValueNameFn setName) {
  RegionRole kind = &region == &op.getMask()     ? RegionRole::Mask
                    : &region == &op.getScore()  ? RegionRole::Score
                    : &region == &op.getBounds() ? RegionRole::Bounds
                                                 : RegionRole::Gradient;
  setArgumentNames(kind, region, setName);
}

void AttentionOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  nameArguments(*this, region, setName);
}

void AttentionBackwardOp::getAsmBlockArgumentNames(
    Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(*this, region, setName);
}

//===----------------------------------------------------------------------===//
// attention: rules
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

AttentionSizes burst::sizesOf(AttentionInterface op) {
  auto merge = [](int64_t a, int64_t b) {
    return ShapedType::isDynamic(a) ? b : a;
  };
  RankedTensorType q = op.getQuery().getType(), k = op.getKey().getType(),
                   v = op.getValue().getType();
  return {merge(merge(q.getDimSize(0), k.getDimSize(0)), v.getDimSize(0)),
          q.getDimSize(1),
          merge(k.getDimSize(1), v.getDimSize(1)),
          q.getDimSize(2),
          k.getDimSize(2),
          q.getDimSize(3),
          v.getDimSize(3)};
}

double burst::scaleOf(AttentionInterface op) {
  if (FloatAttr scale = op.getScaleAttr())
    return scale.getValueAsDouble();
  return 1.0 / std::sqrt(static_cast<double>(sizesOf(op).queryDim));
}

double burst::largestScore(Type stateType) {
  double largest = stateType.isF64() ? std::numeric_limits<double>::max()
                                     : std::numeric_limits<float>::max();
  return largest / std::numbers::log2e;
}

double burst::toScore(double s, Type stateType) {
  return std::abs(s) > largestScore(stateType) ? std::copysign(HUGE_VAL, s) : s;
}

FloatType burst::stateTypeOf(AttentionInterface op) {
  Type element = op.getQuery().getType().getElementType();
  Builder builder(op.getContext());
  return element.isF64() ? builder.getF64Type() : builder.getF32Type();
}

static constexpr bool ofQueries = false, ofKeys = true;

SmallVector<Dealt> AttentionOp::getDealt() {
  return {{getQuery(), 1, ofQueries},
          {getKey(), 1, ofKeys},
          {getValue(), 1, ofKeys},
          {getOut(), 1, ofQueries},
          {getLse(), 2, ofQueries}};
}

SmallVector<Dealt> AttentionBackwardOp::getDealt() {
  SmallVector<Dealt> dealt{
      {getQuery(), 1, ofQueries},     {getKey(), 1, ofKeys},
      {getValue(), 1, ofKeys},        {getOut(), 1, ofQueries},
      {getLse(), 2, ofQueries},       {getOutGrad(), 1, ofQueries},
      {getQueryGrad(), 1, ofQueries}, {getKeyGrad(), 1, ofKeys},
      {getValueGrad(), 1, ofKeys}};
  if (getLseGrad())
    dealt.push_back({getLseGrad(), 2, ofQueries});
  return dealt;
}

namespace {
/// A tensor of an attention, by the name that messages give it, and its shape.
struct Shaped {
  StringRef name;
  Value tensor;
  StringRef form;
  SmallVector<int64_t> shape;
};
} // namespace

/// (C1): a tensor has the shape that is wanted: a result exactly, an operand
/// where both are static.
static LogicalResult verifyShape(Operation *op, const Shaped &shaped) {
  RankedTensorType type = tensorType(shaped.tensor);
  bool isResult = shaped.tensor.getDefiningOp() == op;
  for (auto [found, size] : llvm::zip_equal(type.getShape(), shaped.shape))
    if (isResult ? found != size : !agree(found, size)) {
      auto diagnostic = op->emitOpError()
                        << shaped.name << " must have the shape " << shaped.form
                        << " = (";
      llvm::interleaveComma(shaped.shape, diagnostic, [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          diagnostic << '?';
        else
          diagnostic << size;
      });
      return diagnostic << "), got: " << type;
    }
  return success();
}

/// Whose shapes are known to those of the sizes, and whose elements agree:
/// those of rank 4 among each other, those of rank 3 with the state type.
static LogicalResult verifyTensors(AttentionInterface op,
                                   ArrayRef<Shaped> tensors) {
  for (const Shaped &shaped : tensors)
    if (failed(verifyShape(op, shaped)))
      return failure();
  AttentionSizes s = sizesOf(op);
  for (int64_t size : {s.batch, s.queries, s.keys, s.queryHeads})
    if (size >= maxPositions)
      return op->emitOpError("sizes must be below 2^40, got: ") << size;
  Type element = op.getQuery().getType().getElementType();
  FloatType state = stateTypeOf(op);
  for (const Shaped &shaped : tensors) {
    Type found = tensorType(shaped.tensor).getElementType();
    bool isRow = shaped.shape.size() == 3;
    if (isRow && found != state)
      return op->emitOpError()
             << shaped.name << " of " << element << " attention must be of "
             << state << ", got: " << found;
    if (!isRow && found != element)
      return op->emitOpError()
             << shaped.name << " must have the element type of query, "
             << element << ", got: " << found;
  }
  return success();
}

/// The shapes of what a query, key, value, result and row look like.
static Shaped likeQuery(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sq, Hq, Dqk)",
          {s.batch, s.queries, s.queryHeads, s.queryDim}};
}
static Shaped likeKey(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sk, Hkv, Dqk)",
          {s.batch, s.keys, s.keyHeads, s.queryDim}};
}
static Shaped likeValue(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sk, Hkv, Dv)",
          {s.batch, s.keys, s.keyHeads, s.valueDim}};
}
static Shaped likeOut(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name,
          tensor,
          "(B, Sq, Hq, Dv)",
          {s.batch, s.queries, s.queryHeads, s.valueDim}};
}
static Shaped likeLse(AttentionInterface op, StringRef name, Value tensor) {
  AttentionSizes s = sizesOf(op);
  return {name, tensor, "(B, Hq, Sq)", {s.batch, s.queryHeads, s.queries}};
}

// attention_c2
static LogicalResult verifyHeads(AttentionInterface op) {
  for (Value value :
       {Value(op.getQuery()), Value(op.getKey()), Value(op.getValue())}) {
    RankedTensorType type = tensorType(value);
    if (type.isDynamicDim(2) || type.isDynamicDim(3))
      return op->emitOpError("heads and head dims must be static, got: ")
             << type;
  }
  AttentionSizes s = sizesOf(op);
  if (s.keyHeads < 1 || s.queryHeads < 1 || s.queryHeads % s.keyHeads != 0)
    return op->emitOpError("query heads must be a multiple of key heads, got: ")
           << s.queryHeads << " and " << s.keyHeads;
  for (int64_t size : {s.queryDim, s.valueDim})
    if (size < 1 || size > 256)
      return op->emitOpError("head dims must be in [1, 256], got: ") << size;
  return success();
}

// attention_c4
static LogicalResult verifyNames(AttentionInterface op, RegionRole kind,
                                 ArrayAttr names, Region &region,
                                 TypeRange captures) {
  if (!names) {
    if (region.empty() && !captures.empty())
      return op->emitOpError()
             << stringify(kind) << " captures values but has no region";
    return success();
  }
  if (!region.empty())
    return op->emitOpError()
           << stringify(kind) << " must be names or a region, got both";
  if (names.empty())
    return op->emitOpError() << stringify(kind) << " names must not be empty";
  auto emitError = [&] { return op->emitOpError(); };
  AttentionSizes sizes = sizesOf(op);
  for (auto [index, attribute] : llvm::enumerate(names)) {
    auto named = dyn_cast<NamedRegionInterface>(attribute);
    if (!named || named.isScore() != (kind == RegionRole::Score))
      return op->emitOpError() << "expects the name of a " << stringify(kind)
                               << ", got: " << attribute;
    auto [least, most] = named.numTables();
    // Only the last name may be open-ended about how many it takes.
    unsigned taken = index + 1 == names.size()
                         ? static_cast<unsigned>(captures.size())
                         : std::min<unsigned>(least, captures.size());
    if (taken < least || taken > most)
      return op->emitOpError()
             << stringify(kind) << " " << attribute << " takes " << least
             << (most > least ? " or " + std::to_string(most) : "")
             << " tables, got: " << taken;
    TypeRange tables = captures.take_front(taken);
    if (taken != 0 && failed(named.verifyTables(emitError, tables, sizes)))
      return failure();
    captures = captures.drop_front(taken);
  }
  return success();
}

/// What does not depend on what is computed.
static LogicalResult verifyClauses(AttentionInterface op) {
  // attention_c6
  for (Type type : llvm::concat<const Type>(op.getMaskCaptures().getTypes(),
                                            op.getScoreCaptures().getTypes()))
    if (!isCapture(type) || isa<MemRefType>(type))
      return op->emitOpError(
                 "captures must be scalars, or tables of scalars of "
                 "rank 1 to 4, got: ")
             << type;
  if (failed(verifyNames(op, RegionRole::Mask, op.getMaskNamesAttr(),
                         op.getMask(), op.getMaskCaptures().getTypes())) ||
      failed(verifyNames(op, RegionRole::Score, op.getScoreNamesAttr(),
                         op.getScore(), op.getScoreCaptures().getTypes())))
    return failure();
  // attention_c8
  if (!std::isfinite(scaleOf(op)))
    return op->emitOpError("scale must be finite, got: ") << op.getScaleAttr();
  FloatType state = stateTypeOf(op);
  if (std::abs(scaleOf(op)) > largestScore(state))
    return op->emitOpError("scale must be at most ")
           << llvm::formatv("{0:e2}", largestScore(state)).str()
           << " in magnitude, as scores in " << state
           << " are, got: " << op.getScaleAttr();
  return success();
}

LogicalResult AttentionOp::verify() {
  // attention_c1, attention_c3
  if (failed(verifyHeads(*this)) ||
      failed(verifyTensors(*this, {likeQuery(*this, "query", getQuery()),
                                   likeKey(*this, "key", getKey()),
                                   likeValue(*this, "value", getValue()),
                                   likeOut(*this, "out", getOut()),
                                   likeLse(*this, "lse", getLse())})))
    return failure();
  return verifyClauses(*this);
}

// attention_backward_c2
static LogicalResult verifyGradients(AttentionBackwardOp op) {
  ArrayRef<int64_t> wanted = op.getGradients().value_or(ArrayRef<int64_t>());
  if (wanted.size() != op.getCaptureGrads().size())
    return op.emitOpError("gives a gradient per captured table in `gradients`, "
                          "got: ")
           << op.getCaptureGrads().size() << " for " << wanted.size();
  auto captures = op.getScoreCaptures();
  for (auto [index, n] : llvm::enumerate(wanted)) {
    if (n < 0 || n >= static_cast<int64_t>(captures.size()))
      return op.emitOpError("`gradients` counts the captures of the score, of "
                            "which there are ")
             << captures.size() << ", got: " << n;
    if (llvm::is_contained(wanted.take_front(index), n))
      return op.emitOpError("`gradients` names capture ") << n << " twice";
    auto table = dyn_cast<RankedTensorType>(captures[n].getType());
    if (!table || !isa<FloatType>(table.getElementType()))
      return op.emitOpError("only a table of floats has a gradient, capture ")
             << n << " is " << captures[n].getType();
    auto type = table.clone(stateTypeOf(op));
    if (Value grad = op.getCaptureGrads()[index]; grad.getType() != type)
      return op.emitOpError("the gradient of capture ")
             << n << " must be " << type << ", got: " << grad.getType();
  }
  return success();
}

LogicalResult AttentionBackwardOp::verify() {
  // attention_backward_c1
  SmallVector<Shaped> tensors{likeQuery(*this, "query", getQuery()),
                              likeKey(*this, "key", getKey()),
                              likeValue(*this, "value", getValue()),
                              likeOut(*this, "out", getOut()),
                              likeLse(*this, "lse", getLse()),
                              likeOut(*this, "out_grad", getOutGrad()),
                              likeQuery(*this, "query_grad", getQueryGrad()),
                              likeKey(*this, "key_grad", getKeyGrad()),
                              likeValue(*this, "value_grad", getValueGrad())};
  if (getLseGrad())
    tensors.push_back(likeLse(*this, "lse_grad", getLseGrad()));
  if (failed(verifyHeads(*this)) || failed(verifyTensors(*this, tensors)) ||
      failed(verifyClauses(*this)))
    return failure();
  return verifyGradients(*this);
}

// attention_c5
static LogicalResult verifyAllRegions(AttentionInterface op) {
  FloatType state = stateTypeOf(op);
  TypeRange mask = op.getMaskCaptures().getTypes();
  if (failed(verifyRegion(op, RegionRole::Mask, op.getMask(), state, mask)) ||
      failed(verifyRegion(op, RegionRole::Score, op.getScore(), state,
                          op.getScoreCaptures().getTypes())))
    return failure();
  if (!op.getBounds().empty() && op.getMask().empty())
    return op->emitOpError("bounds are bounds of a mask region, got none");
  return verifyRegion(op, RegionRole::Bounds, op.getBounds(), state, mask);
}

LogicalResult AttentionOp::verifyRegions() { return verifyAllRegions(*this); }

LogicalResult AttentionBackwardOp::verifyRegions() {
  if (failed(verifyAllRegions(*this)))
    return failure();
  if (!getGradient().empty() && getScore().empty())
    return emitOpError("a gradient region is that of a score region, got none");
  return verifyRegion(*this, RegionRole::Gradient, getGradient(),
                      stateTypeOf(*this), getScoreCaptures().getTypes());
}

// attention_c7
static LogicalResult verifyGrid(AttentionInterface op) {
  if (!op.getSequence())
    return success();
  return success(succeeded(resolveDeal(op, *op.getSequence())));
}

LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGrid(*this);
}

LogicalResult AttentionBackwardOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyGrid(*this);
}

//===----------------------------------------------------------------------===//
// table_range
//===----------------------------------------------------------------------===//

LogicalResult TableRangeOp::verify() {
  auto table = cast<ShapedType>(getTable().getType());
  if (!table.hasRank() || !table.getElementType().isSignlessIntOrIndex() ||
      !isRegionScalar(table.getElementType()))
    return emitOpError("needs a table of index or of integers of 1 to 64 bits, "
                       "got: ")
           << table;
  for (size_t indices : {getFrom().size(), getTo().size()})
    if (table.getRank() != static_cast<int64_t>(indices))
      return emitOpError("needs an index range per dimension of ")
             << table << ", got: " << indices;
  return success();
}

LogicalResult ContributeOp::verify() {
  auto target = dyn_cast<BlockArgument>(getTable());
  // contribute_c1
  if (!target || target.getOwner() != (*this)->getBlock())
    return emitOpError("must add to an argument of its region");
  // contribute_c2
  Type type = target.getType();
  auto table = dyn_cast<RankedTensorType>(type);
  if (!isCapture(type) || isa<MemRefType>(type) ||
      !isa<FloatType>(getElementTypeOrSelf(type)))
    return emitOpError("needs a captured float or table of floats, got: ")
           << type;
  size_t rank = table ? table.getRank() : 0;
  if (getIndices().size() != rank)
    return emitOpError("needs an index per dimension of ")
           << type << ", got: " << getIndices().size();
  return success();
}

//===----------------------------------------------------------------------===//
// shard, unshard
//===----------------------------------------------------------------------===//

// unshard_c1, unshard_c2
static LogicalResult verifySharding(Operation *op, RankedTensorType global,
                                    RankedTensorType shard, int64_t dim,
                                    SequenceAttr sequence) {
  if (dim < 0 || dim >= global.getRank())
    return op->emitOpError("dim must be in [0, ")
           << global.getRank() << "), got: " << dim;
  FailureOr<Deal> deal = resolveDeal(op, sequence);
  if (failed(deal))
    return failure();
  RankedTensorType wanted = shardType(global, dim, *deal);
  if (shard != wanted)
    return op->emitOpError("the shard of ")
           << global << " must be " << wanted << ", got: " << shard;
  return success();
}

LogicalResult UnshardOp::verifySymbolUses(SymbolTableCollection &) {
  RankedTensorType global = tensorType(getGlobal());
  int64_t dim = getDim();
  std::optional<int64_t> extent = getConstantIntValue(getExtent());
  if (extent && (*extent < 0 || *extent >= maxPositions))
    return emitOpError("extent must be in [0, 2^40), got: ") << *extent;
  if (dim >= 0 && dim < global.getRank() && extent &&
      !agree(*extent, global.getDimSize(dim)))
    return emitOpError("the extent of ")
           << global << " along dimension " << dim << " is not " << *extent;
  return verifySharding(*this, global, tensorType(getShard()), dim,
                        getSequence());
}

LogicalResult ShardOp::verifySymbolUses(SymbolTableCollection &) {
  return verifySharding(*this, tensorType(getGlobal()), tensorType(getShard()),
                        getDim(), getSequence());
}
