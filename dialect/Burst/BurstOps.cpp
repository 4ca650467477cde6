//===- BurstOps.cpp - operations of the burst dialect ---------------------===//
#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

#include <cmath>

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

/// `bounds(...) { ... }`; its captures are those of the mask.
static ParseResult parseBounds(OpAsmParser &parser, Region &region) {
  Captures ignored;
  if (failed(parser.parseOptionalKeyword("bounds")))
    return success();
  if (parser.parseLParen())
    return failure();
  return parseRegion(parser, RegionRole::Bounds, region, ignored.operands,
                     ignored.types);
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

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Captures mask, score;
  Region &maskRegion = *result.addRegion();
  Region &scoreRegion = *result.addRegion();
  Region &boundsRegion = *result.addRegion();
  SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parser.parseOperandList(operands, 3) ||
      parseNamesOrRegion(parser, RegionRole::Mask, result, maskRegion,
                         getMaskNamesAttrName(result.name), mask) ||
      parseNamesOrRegion(parser, RegionRole::Score, result, scoreRegion,
                         getScoreNamesAttrName(result.name), score) ||
      parseBounds(parser, boundsRegion) ||
      parseClause<FloatAttr>(parser, result, "scale",
                             parser.getBuilder().getF64Type()) ||
      parseClause<SequenceAttr>(parser, result, "sequence") ||
      parseClause<StrategyAttr>(parser, result, "strategy") ||
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

void AttentionOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getQuery() << ", " << getKey() << ", " << getValue();
  printNamesOrRegion(printer, RegionRole::Mask, getMaskNamesAttr(), getMask(),
                     getMaskCaptures());
  printNamesOrRegion(printer, RegionRole::Score, getScoreNamesAttr(),
                     getScore(), getScoreCaptures());
  if (!getBounds().empty()) {
    printClauseRegion(printer, RegionRole::Bounds, getBounds(), {});
  }
  if (getScaleAttr()) {
    printer << " scale ";
    printer.printAttributeWithoutType(getScaleAttr());
  }
  if (getSequence()) {
    printer << " sequence ";
    printer.printStrippedAttrOrType(*getSequence());
  }
  if (getStrategyAttr()) {
    printer << " strategy ";
    printer.printStrippedAttrOrType(getStrategyAttr());
  }
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {getOperandSegmentSizeAttr(), getMaskNamesAttrName(),
                            getScoreNamesAttrName(), getScaleAttrName(),
                            getSequenceAttrName(), getStrategyAttrName()});
  printer << " : ";
  printer.printFunctionalType(
      TypeRange{getQuery().getType(), getKey().getType(), getValue().getType()},
      (*this)->getResultTypes());
}

void AttentionOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getOut(), "out");
  setName(getLse(), "lse");
}

void AttentionOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  RegionRole kind = &region == &getMask()    ? RegionRole::Mask
                    : &region == &getScore() ? RegionRole::Score
                                             : RegionRole::Bounds;
  setArgumentNames(kind, region, setName);
}

//===----------------------------------------------------------------------===//
// attention: rules
//===----------------------------------------------------------------------===//

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

AttentionSizes AttentionOp::getSizes() {
  auto merge = [](int64_t a, int64_t b) {
    return ShapedType::isDynamic(a) ? b : a;
  };
  RankedTensorType q = tensorType(getQuery()), k = tensorType(getKey()),
                   v = tensorType(getValue());
  return {merge(merge(q.getDimSize(0), k.getDimSize(0)), v.getDimSize(0)),
          q.getDimSize(1),
          merge(k.getDimSize(1), v.getDimSize(1)),
          q.getDimSize(2),
          k.getDimSize(2),
          q.getDimSize(3),
          v.getDimSize(3)};
}

double AttentionOp::getScaleOrDefault() {
  if (FloatAttr scale = getScaleAttr())
    return scale.getValueAsDouble();
  return 1.0 / std::sqrt(static_cast<double>(getSizes().queryDim));
}

FloatType AttentionOp::getStateType() {
  Type element = tensorType(getQuery()).getElementType();
  Builder builder(getContext());
  return element.isF64() ? builder.getF64Type() : builder.getF32Type();
}

/// (C1): `value` has the shape `wanted`: a result exactly, an operand where
/// both are static.
static LogicalResult verifyShape(AttentionOp op, StringRef name, Value value,
                                 StringRef form, ArrayRef<int64_t> wanted) {
  RankedTensorType type = tensorType(value);
  bool isResult = value.getDefiningOp() == op;
  for (auto [found, size] : llvm::zip_equal(type.getShape(), wanted))
    if (isResult ? found != size : !agree(found, size)) {
      auto diagnostic = op.emitOpError()
                        << name << " must have the shape " << form << " = (";
      llvm::interleaveComma(wanted, diagnostic, [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          diagnostic << '?';
        else
          diagnostic << size;
      });
      return diagnostic << "), got: " << type;
    }
  return success();
}

// attention_c1
static LogicalResult verifyShapes(AttentionOp op) {
  AttentionSizes s = op.getSizes();
  if (failed(verifyShape(op, "query", op.getQuery(), "(B, Sq, Hq, Dqk)",
                         {s.batch, s.queries, s.queryHeads, s.queryDim})) ||
      failed(verifyShape(op, "key", op.getKey(), "(B, Sk, Hkv, Dqk)",
                         {s.batch, s.keys, s.keyHeads, s.queryDim})) ||
      failed(verifyShape(op, "value", op.getValue(), "(B, Sk, Hkv, Dv)",
                         {s.batch, s.keys, s.keyHeads, s.valueDim})) ||
      failed(verifyShape(op, "out", op.getOut(), "(B, Sq, Hq, Dv)",
                         {s.batch, s.queries, s.queryHeads, s.valueDim})) ||
      failed(verifyShape(op, "lse", op.getLse(), "(B, Hq, Sq)",
                         {s.batch, s.queryHeads, s.queries})))
    return failure();
  for (int64_t size : {s.batch, s.queries, s.keys, s.queryHeads})
    if (size >= maxPositions)
      return op.emitOpError("sizes must be below 2^40, got: ") << size;
  return success();
}

// attention_c2
static LogicalResult verifyHeads(AttentionOp op) {
  for (Value value : {op.getQuery(), op.getKey(), op.getValue()}) {
    RankedTensorType type = tensorType(value);
    if (type.isDynamicDim(2) || type.isDynamicDim(3))
      return op.emitOpError("heads and head dims must be static, got: ")
             << type;
  }
  AttentionSizes s = op.getSizes();
  if (s.keyHeads < 1 || s.queryHeads < 1 || s.queryHeads % s.keyHeads != 0)
    return op.emitOpError("query heads must be a multiple of key heads, got: ")
           << s.queryHeads << " and " << s.keyHeads;
  for (int64_t size : {s.queryDim, s.valueDim})
    if (size < 1 || size > 256)
      return op.emitOpError("head dims must be in [1, 256], got: ") << size;
  return success();
}

// attention_c3
static LogicalResult verifyElements(AttentionOp op) {
  Type element = tensorType(op.getQuery()).getElementType();
  for (Value value : {op.getKey(), op.getValue(), op.getOut()})
    if (tensorType(value).getElementType() != element)
      return op.emitOpError("query, key, value and out must have one element "
                            "type, got: ")
             << element << " and " << tensorType(value).getElementType();
  Type lse = tensorType(op.getLse()).getElementType();
  if (lse != op.getStateType())
    return op.emitOpError("lse of ") << element << " attention must be of "
                                     << op.getStateType() << ", got: " << lse;
  return success();
}

// attention_c4
static LogicalResult verifyNames(AttentionOp op, RegionRole kind,
                                 ArrayAttr names, Region &region,
                                 TypeRange captures) {
  if (!names) {
    if (region.empty() && !captures.empty())
      return op.emitOpError()
             << stringify(kind) << " captures values but has no region";
    return success();
  }
  if (!region.empty())
    return op.emitOpError()
           << stringify(kind) << " must be names or a region, got both";
  if (names.empty())
    return op.emitOpError() << stringify(kind) << " names must not be empty";
  auto emitError = [&] { return op.emitOpError(); };
  AttentionSizes sizes = op.getSizes();
  for (auto [index, attribute] : llvm::enumerate(names)) {
    auto named = dyn_cast<NamedRegionInterface>(attribute);
    if (!named || named.isScore() != (kind == RegionRole::Score))
      return op.emitOpError() << "expects the name of a " << stringify(kind)
                              << ", got: " << attribute;
    auto [least, most] = named.numTables();
    // Only the last name may be open-ended about how many it takes.
    unsigned taken = index + 1 == names.size()
                         ? static_cast<unsigned>(captures.size())
                         : std::min<unsigned>(least, captures.size());
    if (taken < least || taken > most)
      return op.emitOpError()
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

LogicalResult AttentionOp::verify() {
  if (failed(verifyHeads(*this)) || failed(verifyShapes(*this)) ||
      failed(verifyElements(*this)))
    return failure();
  // attention_c6
  for (Type type : llvm::concat<const Type>(getMaskCaptures().getTypes(),
                                            getScoreCaptures().getTypes()))
    if (!isCapture(type) || isa<MemRefType>(type))
      return emitOpError("captures must be scalars, or tables of scalars of "
                         "rank 1 to 4, got: ")
             << type;
  if (failed(verifyNames(*this, RegionRole::Mask, getMaskNamesAttr(), getMask(),
                         getMaskCaptures().getTypes())) ||
      failed(verifyNames(*this, RegionRole::Score, getScoreNamesAttr(),
                         getScore(), getScoreCaptures().getTypes())))
    return failure();
  // attention_c8
  if (!std::isfinite(getScaleOrDefault()))
    return emitOpError("scale must be finite, got: ") << getScaleAttr();
  return success();
}

// attention_c5
LogicalResult AttentionOp::verifyRegions() {
  FloatType state = getStateType();
  TypeRange mask = getMaskCaptures().getTypes();
  if (failed(verifyRegion(*this, RegionRole::Mask, getMask(), state, mask)) ||
      failed(verifyRegion(*this, RegionRole::Score, getScore(), state,
                          getScoreCaptures().getTypes())))
    return failure();
  if (!getBounds().empty() && getMask().empty())
    return emitOpError("bounds are bounds of a mask region, got none");
  return verifyRegion(*this, RegionRole::Bounds, getBounds(), state, mask);
}

// attention_c7
LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &) {
  if (!getSequence())
    return success();
  return success(succeeded(resolveDeal(*this, *getSequence())));
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
