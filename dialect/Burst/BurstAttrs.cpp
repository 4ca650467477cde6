//===- BurstAttrs.cpp - sequences, named masks and scores -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"
#include "dialect/Burst/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

#include <cmath>

using namespace mlir;
using namespace burst;

/// `<` in front of parameters that a name takes; `usage` says which.
static ParseResult parseOpening(AsmParser &parser, StringRef usage) {
  if (succeeded(parser.parseOptionalLess()))
    return success();
  return parser.emitError(parser.getCurrentLocation(), usage);
}

static void printOpening(AsmPrinter &printer, StringRef /*usage*/) {
  printer << '<';
}

#define GET_ATTRDEF_CLASSES
#include "dialect/Burst/BurstAttrs.cpp.inc"

void BurstDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Burst/BurstAttrs.cpp.inc"
      >();
}

/// Of those attributes that name a mask or a score.
template <typename... Attributes>
static std::string listNames() {
  SmallVector<StringRef> masks, scores;
  auto add = [&]<typename Name>() {
    if constexpr (std::is_base_of_v<NamedRegionInterface::Trait<Name>, Name>) {
      // A mask leaves what tells them apart to the interface.
      constexpr bool isScore =
          std::is_same_v<decltype(&Name::isScore), bool (Name::*)() const>;
      (isScore ? scores : masks).push_back(Name::getMnemonic());
    }
  };
  (add.template operator()<Attributes>(), ...);
  return "masks: " + llvm::join(masks, ", ") +
         "; scores: " + llvm::join(scores, ", ");
}

ParseResult burst::parseName(AsmParser &parser, Attribute &name) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  OptionalParseResult result =
      generatedAttributeParser(parser, &mnemonic, Type(), name);
  if (result.has_value())
    return *result;
  std::string known = listNames<
#define GET_ATTRDEF_LIST
#include "dialect/Burst/BurstAttrs.cpp.inc"
      >();
  return parser.emitError(loc, "unknown name '")
         << mnemonic << "', known " << known;
}

void burst::printName(AsmPrinter &printer, Attribute name) {
  if (failed(generatedAttributePrinter(name, printer)))
    printer << name;
}

//===----------------------------------------------------------------------===//
// Sequence
//===----------------------------------------------------------------------===//

void burst::printOrder(AsmPrinter &printer, Order order, int64_t block) {
  printer << StringRef(stringifyOrder(order));
  if (block != 1)
    printer << ' ' << block;
}

ParseResult burst::parseOrder(AsmParser &parser, Order &order, int64_t &block) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<Order> found = symbolizeOrder(name);
  if (!found)
    return parser.emitError(loc, "unknown order '")
           << name << "', known: contiguous, zigzag, striped";
  order = *found;
  block = 1;
  OptionalParseResult given = parser.parseOptionalInteger(block);
  return given.has_value() ? *given : success();
}

ParseResult burst::parseAxes(AsmParser &parser, FlatSymbolRefAttr &grid,
                             SmallVector<int64_t> &axes) {
  StringAttr name;
  if (parser.parseSymbolName(name))
    return failure();
  grid = FlatSymbolRefAttr::get(name);
  return parseAxisList(parser, axes);
}

ParseResult burst::parseAxisList(AsmParser &parser,
                                 SmallVector<int64_t> &axes) {
  if (failed(parser.parseOptionalLSquare()))
    return success();
  if (succeeded(parser.parseOptionalRSquare())) {
    axes.push_back(noAxis);
    return success();
  }
  auto parseAxis = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    int64_t &axis = axes.emplace_back();
    if (parser.parseInteger(axis))
      return failure();
    if (axis < 0)
      return parser.emitError(loc, "axes must not be negative, got: ") << axis;
    return success();
  };
  return failure(parser.parseCommaSeparatedList(parseAxis) ||
                 parser.parseRSquare());
}

void burst::printAxes(AsmPrinter &printer, FlatSymbolRefAttr grid,
                      ArrayRef<int64_t> axes) {
  printer << grid;
  printAxisList(printer.getStream(), axes);
}

void burst::printAxisList(raw_ostream &os, ArrayRef<int64_t> axes) {
  if (axes == ArrayRef(noAxis))
    os << "[]";
  else if (!axes.empty())
    os << llvm::interleaved_array(axes);
}

LogicalResult burst::verifyAxes(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> axes) {
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (axis < 0 && (axis != noAxis || axes.size() != 1))
      return emitError() << "axes must not be negative, got: " << axis;
    if (index > 0 && axis - 1 != axes[index - 1])
      return emitError() << "each axis follows the one before it in the grid, "
                            "got: "
                         << axis << " behind " << axes[index - 1];
  }
  return success();
}

namespace {
/// As attributes hold them.
struct StrategyParts {
  StrategyParts(MLIRContext *context, ArrayRef<StrategyPart> parts) {
    Builder builder(context);
    for (const StrategyPart &part : parts) {
      names.push_back(builder.getStringAttr(part.name));
      axes.push_back(builder.getDenseI64ArrayAttr(part.axes));
      chunks.push_back(part.chunks);
    }
  }

  SmallVector<StringAttr> names;
  SmallVector<DenseI64ArrayAttr> axes;
  SmallVector<int64_t> chunks;
};
} // namespace

/// `in 4 chunks`, where it stands there.
static ParseResult parseChunks(AsmParser &parser, int64_t &chunks) {
  if (failed(parser.parseOptionalKeyword("in")))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(chunks) || parser.parseKeyword("chunks"))
    return failure();
  if (chunks < 1)
    return parser.emitError(loc, "heads go in 1 chunk or more, got: ")
           << chunks;
  return success();
}

Attribute StrategyAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<StrategyPart> parts;
  auto parsePart = [&]() -> ParseResult {
    StrategyPart &part = parts.emplace_back();
    if (parser.parseKeyword(&part.name))
      return failure();
    if (failed(parser.parseOptionalKeyword("on")))
      return parseChunks(parser, part.chunks);
    SMLoc loc = parser.getCurrentLocation();
    if (parseAxisList(parser, part.axes))
      return failure();
    if (part.axes.empty())
      return parser.emitError(loc, "expected the axes on which the strategy "
                                   "works, as in on [1]");
    return parseChunks(parser, part.chunks);
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(parsePart) ||
      parser.parseGreater())
    return {};
  StrategyParts listed(parser.getContext(), parts);
  return parser.getChecked<StrategyAttr>(loc, parser.getContext(), listed.names,
                                         listed.axes, listed.chunks);
}

StrategyAttr StrategyAttr::get(MLIRContext *context,
                               ArrayRef<StrategyPart> parts) {
  StrategyParts listed(context, parts);
  return get(context, listed.names, listed.axes, listed.chunks);
}

SmallVector<StrategyPart> StrategyAttr::getParts() const {
  SmallVector<StrategyPart> parts;
  for (auto [name, axes, chunks] :
       llvm::zip_equal(getNames(), getAxes(), getChunks()))
    parts.push_back(
        {name.getValue(), SmallVector<int64_t>(axes.asArrayRef()), chunks});
  return parts;
}

std::string StrategyAttr::getText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator comma;
  for (const StrategyPart &part : getParts()) {
    os << comma << part.name;
    if (!part.axes.empty())
      os << " on ";
    printAxisList(os, part.axes);
    if (part.chunks != 1)
      os << " in " << part.chunks << " chunks";
  }
  return text;
}

void StrategyAttr::print(AsmPrinter &printer) const {
  printer << '<' << getText() << '>';
}

LogicalResult StrategyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<StringAttr> names,
                                   ArrayRef<DenseI64ArrayAttr> axes,
                                   ArrayRef<int64_t> chunks) {
  if (names.empty() || names.size() != axes.size() ||
      names.size() != chunks.size())
    return emitError() << "a strategy has one name or more, and axes and "
                          "chunks of each";
  for (int64_t count : chunks)
    if (count < 1)
      return emitError() << "heads go in 1 chunk or more, got: " << count;
  SmallVector<int64_t> taken;
  int64_t numOpen = 0;
  for (auto [index, name] : llvm::enumerate(names)) {
    if (llvm::is_contained(names.take_front(index), name))
      return emitError() << "names a strategy once, got again: " << name;
    ArrayRef<int64_t> own = axes[index].asArrayRef();
    numOpen += own.empty();
    if (failed(verifyAxes(emitError, own)))
      return failure();
    for (int64_t axis : own) {
      if (axis == noAxis)
        return emitError() << "names no axes for " << name;
      if (llvm::is_contained(taken, axis))
        return emitError() << "names axis " << axis
                           << ", which another strategy has, for " << name;
      taken.push_back(axis);
    }
  }
  if (numOpen > 1)
    return emitError() << "at most one strategy has no axes of its own, got: "
                       << numOpen;
  return success();
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FlatSymbolRefAttr grid;
  SmallVector<int64_t> axes;
  if (parser.parseLess() || parseAxes(parser, grid, axes) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<AxesAttr>(loc, parser.getContext(), grid, axes);
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, getGrid(), getAxes());
  printer << '>';
}

LogicalResult AxesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               FlatSymbolRefAttr, ArrayRef<int64_t> axes) {
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (axis < 0 && (axis != noAxis || axes.size() != 1))
      return emitError() << "axes must not be negative, got: " << axis;
    if (llvm::is_contained(axes.take_front(index), axis))
      return emitError() << "names axis " << axis << " twice";
  }
  return success();
}

Attribute SequenceAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FlatSymbolRefAttr grid;
  SmallVector<int64_t> axes;
  Order order = Order::Contiguous;
  int64_t block = 1;
  if (parser.parseLess() || parseAxes(parser, grid, axes) ||
      parser.parseComma() || parseOrder(parser, order, block) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<SequenceAttr>(loc, parser.getContext(), grid, axes,
                                         order, block);
}

void SequenceAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, getGrid(), getAxes());
  printer << ", ";
  printOrder(printer, getOrder(), getBlock());
  printer << '>';
}

LogicalResult SequenceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   FlatSymbolRefAttr, ArrayRef<int64_t> axes,
                                   Order order, int64_t block) {
  if (failed(verifyAxes(emitError, axes)))
    return failure();
  if (block < 1 || block >= maxPositions)
    return emitError() << "a block has 1 to 2^40 - 1 positions, got: " << block;
  if (block != 1 && order != Order::Striped)
    return emitError() << "a block is for striped only, got: "
                       << StringRef(stringifyOrder(order)) << ' ' << block;
  return success();
}

//===----------------------------------------------------------------------===//
// Emission helpers
//===----------------------------------------------------------------------===//

namespace {
/// A float as another float type.
Value convert(const Emit &e, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(e.builder, e.loc, type, value);
  if (from > to)
    return arith::TruncFOp::create(e.builder, e.loc, type, value);
  return value;
}

/// The key position aligned with query i: i + Sk - Sq.
Value aligned(const Emit &e, const RegionArguments &args) {
  return e.add(args.i, e.sub(args.sk, args.sq));
}

Value emitCausal(const Emit &e, const RegionArguments &args) {
  return e.compare(arith::CmpIPredicate::sle, args.j, aligned(e, args));
}

/// `table` must be of `kind` elements and of one of the shapes.
LogicalResult verifyTable(function_ref<InFlightDiagnostic()> emitError,
                          StringRef name, Type type, bool floats,
                          ArrayRef<SmallVector<int64_t>> shapes) {
  auto table = dyn_cast<RankedTensorType>(type);
  auto fits = [&](ArrayRef<int64_t> shape) {
    return agree(table.getShape(), shape);
  };
  if (table && isa<FloatType>(table.getElementType()) == floats &&
      llvm::any_of(shapes, fits))
    return success();
  auto diagnostic = emitError()
                    << name << " takes a table of "
                    << (floats ? "floats" : "integers") << " of shape ";
  llvm::interleave(
      shapes,
      [&](ArrayRef<int64_t> shape) {
        llvm::interleave(
            shape,
            [&](int64_t size) {
              if (ShapedType::isDynamic(size))
                diagnostic << '?';
              else
                diagnostic << size;
            },
            [&] { diagnostic << 'x'; });
      },
      [&] { diagnostic << " or "; });
  return diagnostic << ", got: " << type;
}
} // namespace

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static LogicalResult
verifyPositions(function_ref<InFlightDiagnostic()> emitError, StringRef what,
                int64_t value) {
  if (value < 0 || value > maxPositions)
    return emitError() << what << " must be in [0, 2^40], got: " << value;
  return success();
}

std::pair<unsigned, unsigned> FullAttr::numTables() const { return {0, 0}; }
std::pair<unsigned, unsigned> CausalAttr::numTables() const { return {0, 0}; }
std::pair<unsigned, unsigned> WindowAttr::numTables() const { return {0, 0}; }
std::pair<unsigned, unsigned> PrefixAttr::numTables() const { return {0, 0}; }
std::pair<unsigned, unsigned> DocumentsAttr::numTables() const {
  return {1, 2};
}

#define BURST_NO_TABLES(NAME)                                                  \
  LogicalResult NAME::verifyTables(function_ref<InFlightDiagnostic()>,         \
                                   TypeRange, const AttentionSizes &) const {  \
    return success();                                                          \
  }
BURST_NO_TABLES(FullAttr)
BURST_NO_TABLES(CausalAttr)
BURST_NO_TABLES(WindowAttr)
BURST_NO_TABLES(PrefixAttr)
BURST_NO_TABLES(SoftcapAttr)
#undef BURST_NO_TABLES

Value FullAttr::emit(OpBuilder &builder, Location loc,
                     const RegionArguments &) const {
  return Emit{builder, loc}.truth(true);
}

Value CausalAttr::emit(OpBuilder &builder, Location loc,
                       const RegionArguments &args) const {
  return emitCausal({builder, loc}, args);
}

LogicalResult WindowAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 std::optional<int64_t> left,
                                 std::optional<int64_t> right) {
  if (left && failed(verifyPositions(emitError, "left", *left)))
    return failure();
  if (right && failed(verifyPositions(emitError, "right", *right)))
    return failure();
  return success();
}

Value WindowAttr::emit(OpBuilder &builder, Location loc,
                       const RegionArguments &args) const {
  Emit e{builder, loc};
  if (!getLeft() && !getRight())
    return e.truth(true);
  Value center = aligned(e, args);
  Value left, right;
  if (getLeft())
    left = e.compare(arith::CmpIPredicate::sge, args.j,
                     e.sub(center, e.index(*getLeft())));
  if (getRight())
    right = e.compare(arith::CmpIPredicate::sle, args.j,
                      e.add(center, e.index(*getRight())));
  if (left && right)
    return e.both(left, right);
  return left ? left : right;
}

LogicalResult PrefixAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t length) {
  return verifyPositions(emitError, "a prefix", length);
}

Value PrefixAttr::emit(OpBuilder &builder, Location loc,
                       const RegionArguments &args) const {
  Emit e{builder, loc};
  return e.either(
      e.compare(arith::CmpIPredicate::slt, args.j, e.index(getLength())),
      emitCausal(e, args));
}

LogicalResult
DocumentsAttr::verifyTables(function_ref<InFlightDiagnostic()> emitError,
                            TypeRange tables,
                            const AttentionSizes &sizes) const {
  auto verifyIds = [&](Type type, int64_t extent) {
    return verifyTable(emitError, "'documents'", type, /*floats=*/false,
                       {{extent}, {sizes.batch, extent}});
  };
  if (failed(verifyIds(tables.front(), sizes.queries)) ||
      failed(verifyIds(tables.back(), sizes.keys)))
    return failure();
  if (getElementTypeOrSelf(tables.front()) !=
      getElementTypeOrSelf(tables.back()))
    return emitError() << "'documents' takes ids of one type, got: " << tables;
  return success();
}

Value DocumentsAttr::emit(OpBuilder &builder, Location loc,
                          const RegionArguments &args) const {
  Emit e{builder, loc};
  auto id = [&](Value table, Value position) {
    if (cast<RankedTensorType>(table.getType()).getRank() == 1)
      return e.extract(table, {position});
    return e.extract(table, {args.b, position});
  };
  return e.compare(arith::CmpIPredicate::eq, id(args.captures.front(), args.i),
                   id(args.captures.back(), args.j));
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

bool AlibiAttr::isScore() const { return true; }
bool SoftcapAttr::isScore() const { return true; }
bool BiasAttr::isScore() const { return true; }
std::pair<unsigned, unsigned> AlibiAttr::numTables() const { return {1, 1}; }
std::pair<unsigned, unsigned> SoftcapAttr::numTables() const { return {0, 0}; }
std::pair<unsigned, unsigned> BiasAttr::numTables() const { return {1, 1}; }

LogicalResult
AlibiAttr::verifyTables(function_ref<InFlightDiagnostic()> emitError,
                        TypeRange tables, const AttentionSizes &sizes) const {
  return verifyTable(emitError, "'alibi'", tables.front(), /*floats=*/true,
                     {{sizes.queryHeads}, {sizes.batch, sizes.queryHeads}});
}

Value AlibiAttr::emit(OpBuilder &builder, Location loc,
                      const RegionArguments &args) const {
  Emit e{builder, loc};
  Value table = args.captures.front();
  SmallVector<Value> indices{args.b, args.h};
  if (cast<RankedTensorType>(table.getType()).getRank() == 1)
    indices.erase(indices.begin());
  Type state = args.score.getType();
  Value slope = convert(e, e.extract(table, indices), state);
  Value offset = e.sub(aligned(e, args), args.j);
  Value wide =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), offset);
  Value distance = math::AbsFOp::create(
      builder, loc, arith::SIToFPOp::create(builder, loc, state, wide));
  return arith::SubFOp::create(
      builder, loc, args.score,
      arith::MulFOp::create(builder, loc, slope, distance));
}

Attribute SoftcapAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double cap;
  if (parseOpening(parser, "score 'softcap' takes <CAP>, the bound as a float, "
                           "e.g. softcap<30.0>") ||
      parser.parseFloat(cap) || parser.parseGreater())
    return {};
  return parser.getChecked<SoftcapAttr>(loc, parser.getContext(), APFloat(cap));
}

void SoftcapAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printFloat(getCap());
  printer << '>';
}

LogicalResult SoftcapAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  // The declaration is tablegen's.
                                  // NOLINTNEXTLINE(performance-*)
                                  APFloat cap) {
  // What an f32, the smallest state type, holds with all its bits.
  double value = cap.convertToDouble();
  if (std::isnan(value) || value < 0x1p-126 || value > 0x1p127)
    return emitError() << "cap must be in [2^-126, 2^127], got: " << value;
  return success();
}

Value SoftcapAttr::emit(OpBuilder &builder, Location loc,
                        const RegionArguments &args) const {
  Type state = args.score.getType();
  Value cap = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(state, getCap().convertToDouble()));
  Value ratio = arith::DivFOp::create(builder, loc, args.score, cap);
  return arith::MulFOp::create(builder, loc, cap,
                               math::TanhOp::create(builder, loc, ratio));
}

LogicalResult
BiasAttr::verifyTables(function_ref<InFlightDiagnostic()> emitError,
                       TypeRange tables, const AttentionSizes &sizes) const {
  SmallVector<int64_t> full{sizes.batch, sizes.queryHeads, sizes.queries,
                            sizes.keys};
  // A dimension of size 1 is broadcast.
  SmallVector<int64_t> shape = full;
  if (auto table = dyn_cast<RankedTensorType>(tables.front());
      table && table.getRank() == 4)
    for (auto [size, found] : llvm::zip(shape, table.getShape()))
      size = found == 1 ? 1 : size;
  return verifyTable(emitError, "'bias'", tables.front(), /*floats=*/true,
                     {{sizes.queries, sizes.keys}, shape});
}

Value BiasAttr::emit(OpBuilder &builder, Location loc,
                     const RegionArguments &args) const {
  Emit e{builder, loc};
  Value table = args.captures.front();
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<Value> indices{args.b, args.h, args.i, args.j};
  indices.erase(indices.begin(), indices.end() - type.getRank());
  if (type.getRank() == 4)
    for (auto [index, size] : llvm::zip(indices, type.getShape()))
      if (size == 1)
        index = e.index(0);
  Value bias = convert(e, e.extract(table, indices), args.score.getType());
  return arith::AddFOp::create(builder, loc, args.score, bias);
}
