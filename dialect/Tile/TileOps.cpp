//===- TileOps.cpp - operations of the tile dialect -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Tile/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace burst;
using namespace burst::tile;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

static ParseResult parseSameType(OpAsmParser &parser, Type &a, Type &b) {
  if (parser.parseType(a))
    return failure();
  b = a;
  return success();
}
static void printSameType(OpAsmPrinter &printer, Operation *, Type a, Type) {
  printer << a;
}
static ParseResult parseSameType3(OpAsmParser &parser, Type &a, Type &b,
                                  Type &c) {
  if (parseSameType(parser, a, b))
    return failure();
  c = a;
  return success();
}
static void printSameType3(OpAsmPrinter &printer, Operation *, Type a, Type,
                           Type) {
  printer << a;
}
static ParseResult parseSameType4(OpAsmParser &parser, Type &a, Type &b,
                                  Type &c, Type &d) {
  if (parseSameType3(parser, a, b, c))
    return failure();
  d = a;
  return success();
}
static void printSameType4(OpAsmPrinter &printer, Operation *, Type a, Type,
                           Type, Type) {
  printer << a;
}

static ParseResult
parseGradientRegion(OpAsmParser &parser, Region &region,
                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &captures,
                    SmallVectorImpl<Type> &types) {
  if (parser.parseKeyword(stringify(RegionRole::Gradient)) ||
      parser.parseLParen())
    return failure();
  return parseRegion(parser, RegionRole::Gradient, region, captures, types,
                     /*lists=*/true);
}
static void printGradientRegion(OpAsmPrinter &printer, Operation *,
                                Region &region, ValueRange captures,
                                TypeRange) {
  printClauseRegion(printer, RegionRole::Gradient, region, captures);
}

#define GET_OP_CLASSES
#include "dialect/Tile/TileOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<MemoryEffects::EffectInstance>;

/// Reads all buffers among its operands, and writes `written`.
static void addEffects(Operation *op, ValueRange written, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (llvm::is_contained(written, operand.get()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

void LaunchOp::getEffects(Effects &effects) {
  addEffects(*this, getWrites(), effects);
}
void AllocateOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Allocate::get(),
                       cast<OpResult>(getBuffer()));
}
void SortOp::getEffects(Effects &effects) {
  addEffects(*this, getOrder(), effects);
}
/// Behind it any memory may be another, and nothing is read before it that
/// stands behind.
void AwaitOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}
void LoadOp::getEffects(Effects &effects) {
  addEffects(*this, getBlock(), effects);
}
void StoreOp::getEffects(Effects &effects) {
  addEffects(*this, getView(), effects);
}
void PackOp::getEffects(Effects &effects) {
  addEffects(*this, getPanels(), effects);
}
void IsFiniteOp::getEffects(Effects &effects) {
  addEffects(*this, {}, effects);
}
void FillOp::getEffects(Effects &effects) {
  addEffects(*this, getBlock(), effects);
}
void PositionsOp::getEffects(Effects &effects) {
  addEffects(*this, getPositions(), effects);
}
void MultiplyOp::getEffects(Effects &effects) {
  addEffects(*this, getC(), effects);
}
void MapOp::getEffects(Effects &effects) { addEffects(*this, getS(), effects); }
void RowMaxOp::getEffects(Effects &effects) {
  addEffects(*this, {getM(), getFactor()}, effects);
}
void ExponentialsOp::getEffects(Effects &effects) {
  addEffects(*this, {getP() ? getP() : getS(), getL()}, effects);
}
void RescaleOp::getEffects(Effects &effects) {
  addEffects(*this, getO(), effects);
}
void tile::AddOp::getEffects(Effects &effects) {
  addEffects(*this, getA(), effects);
}
void RowDotOp::getEffects(Effects &effects) {
  addEffects(*this, getX(), effects);
}
void tile::MergeOp::getEffects(Effects &effects) {
  addEffects(*this, {getO(), getM(), getL(), getO2(), getM2(), getL2()},
             effects);
}
void NormalizeOp::getEffects(Effects &effects) {
  addEffects(*this, {getO(), getM()}, effects);
}
void MaxScoreOp::getEffects(Effects &effects) {
  addEffects(*this, getM(), effects);
}
void WeightsOp::getEffects(Effects &effects) {
  addEffects(*this, getS(), effects);
}
void DifferentialsOp::getEffects(Effects &effects) {
  addEffects(*this, getDp(), effects);
}
void RoundOp::getEffects(Effects &effects) {
  addEffects(*this, getP(), effects);
}
void MapGradientOp::getEffects(Effects &effects) {
  SmallVector<Value> written(getGrads());
  written.push_back(getW());
  addEffects(*this, written, effects);
}

//===----------------------------------------------------------------------===//
// map, map_gradient
//===----------------------------------------------------------------------===//

Value MapGradientOp::getGradOf(ContributeOp op) {
  unsigned first = getGradient().getNumArguments() -
                   static_cast<unsigned>(getCaptures().size());
  int64_t capture = cast<BlockArgument>(op.getTable()).getArgNumber() - first;
  const auto *found = llvm::find(getWanted(), capture);
  return found == getWanted().end()
             ? Value()
             : getGrads()[std::distance(getWanted().begin(), found)];
}

void MapGradientOp::getAsmBlockArgumentNames(Region &region,
                                             OpAsmSetValueNameFn setName) {
  setArgumentNames(RegionRole::Gradient, region, setName);
}

void MapOp::getAsmBlockArgumentNames(Region &region,
                                     OpAsmSetValueNameFn setName) {
  setArgumentNames(&region == &getMask() ? RegionRole::Mask : RegionRole::Score,
                   region, setName);
}

ParseResult MapOp::parse(OpAsmParser &parser, OperationState &result) {
  using Operand = OpAsmParser::UnresolvedOperand;
  Operand s, rows, columns, b, h, i, j, queries, keys;
  SmallVector<Operand> maskCaptures, scoreCaptures;
  SmallVector<Type> maskTypes, scoreTypes;
  Region &mask = *result.addRegion(), &score = *result.addRegion();
  FloatAttr unit;
  Type tile, iType, jType, index = parser.getBuilder().getIndexType();
  Type hType = index;
  auto parseClause = [&](RegionRole role, Region &region,
                         SmallVector<Operand> &captures,
                         SmallVector<Type> &types) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(stringify(role))))
      return success();
    if (parser.parseLParen())
      return failure();
    return parseRegion(parser, role, region, captures, types);
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperand(s) || parser.parseKeyword("rows") ||
      parser.parseOperand(rows) || parser.parseKeyword("columns") ||
      parser.parseOperand(columns) || parser.parseKeyword("at") ||
      parser.parseLParen() || parser.parseOperand(b) || parser.parseComma() ||
      parser.parseOperand(h) || parser.parseComma() || parser.parseOperand(i) ||
      parser.parseComma() || parser.parseOperand(j) || parser.parseRParen() ||
      parser.parseKeyword("of") || parser.parseLParen() ||
      parser.parseOperand(queries) || parser.parseComma() ||
      parser.parseOperand(keys) || parser.parseRParen() ||
      parser.parseKeyword("unit") ||
      parser.parseAttribute(unit, parser.getBuilder().getF64Type(), "unit",
                            result.attributes) ||
      parseClause(RegionRole::Mask, mask, maskCaptures, maskTypes) ||
      parseClause(RegionRole::Score, score, scoreCaptures, scoreTypes) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(tile) || parser.parseComma() ||
      parser.parseType(iType) || parser.parseComma() ||
      parser.parseType(jType) ||
      (succeeded(parser.parseOptionalComma()) && parser.parseType(hType)) ||
      parser.resolveOperand(s, tile, result.operands) ||
      parser.resolveOperands(SmallVector<Operand>{rows, columns, b}, index,
                             result.operands) ||
      parser.resolveOperand(h, hType, result.operands) ||
      parser.resolveOperand(i, iType, result.operands) ||
      parser.resolveOperand(j, jType, result.operands) ||
      parser.resolveOperands(SmallVector<Operand>{queries, keys}, index,
                             result.operands) ||
      parser.resolveOperands(maskCaptures, maskTypes, loc, result.operands) ||
      parser.resolveOperands(scoreCaptures, scoreTypes, loc, result.operands))
    return failure();
  result.getOrAddProperties<MapOp::Properties>().operandSegmentSizes = {
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      1,
      static_cast<int32_t>(maskCaptures.size()),
      static_cast<int32_t>(scoreCaptures.size())};
  return success();
}

void MapOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getS() << " rows " << getRows() << " columns "
          << getColumns() << " at (" << getBatch() << ", " << getHead() << ", "
          << getI() << ", " << getJ() << ") of (" << getQueries() << ", "
          << getKeys() << ") unit ";
  printer.printAttributeWithoutType(getUnitAttr());
  if (!getMask().empty())
    printClauseRegion(printer, RegionRole::Mask, getMask(), getMaskCaptures());
  if (!getScore().empty())
    printClauseRegion(printer, RegionRole::Score, getScore(),
                      getScoreCaptures());
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {getOperandSegmentSizeAttr(), getUnitAttrName()});
  printer << " : " << getS().getType() << ", " << getI().getType() << ", "
          << getJ().getType();
  if (!getHead().getType().isIndex())
    printer << ", " << getHead().getType();
}
