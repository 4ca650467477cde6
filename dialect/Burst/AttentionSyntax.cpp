//===- AttentionSyntax.cpp - how attentions are parsed and printed --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;

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
      parseClause<AxesAttr>(parser, result, "heads") ||
      parseClause<AxesAttr>(parser, result, "batch") ||
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
  auto printAxes = [&](StringRef keyword, AxesAttr axes) {
    if (!axes)
      return;
    printer << ' ' << keyword << ' ';
    printer.printStrippedAttrOrType(axes);
  };
  printAxes("heads", op.getHeadsAttr());
  printAxes("batch", op.getBatchAttr());
  if (op.getStrategyAttr()) {
    printer << " strategy ";
    printer.printStrippedAttrOrType(op.getStrategyAttr());
  }
}

/// Attributes that clauses print, and types.
static void printRest(OpAsmPrinter &printer, Operation *op,
                      ValueRange operands) {
  printer.printOptionalAttrDict(op->getAttrs(),
                                {"operandSegmentSizes", "maskNames",
                                 "scoreNames", "scale", "sequence", "heads",
                                 "batch", "strategy", "gradients"});
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
  if (getMaxScores())
    setName(getMaxScores(), "max");
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
