//===- RingDialect.cpp - the ring dialect ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Ring.h"
#include "dialect/Ring/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

namespace {
/// Whatever is called may be inlined.
struct RingInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

#include "dialect/Ring/RingDialect.cpp.inc"
#include "dialect/Ring/RingEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/Ring/RingAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/Ring/RingTypes.cpp.inc"

void RingDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Ring/RingAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/Ring/RingTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Ring/RingOps.cpp.inc"
      >();
  addInterfaces<RingInliner>();
}

Operation *RingDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Order order = Order::Contiguous;
  int64_t block = 1, parts = 0;
  if (parser.parseLess() || parseOrder(parser, order, block) ||
      parser.parseKeyword("over") || parser.parseInteger(parts))
    return {};
  bool all = succeeded(parser.parseOptionalComma());
  if ((all && parser.parseKeyword("all")) || parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), order, block,
                                       parts, all);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printOrder(printer, getOrder(), getBlock());
  printer << " over " << getParts() << (getAll() ? ", all>" : ">");
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Order order, int64_t block, int64_t parts,
                                 bool) {
  if (parts < 1 || parts > maxRanks)
    return emitError() << "a layout has 1 to 2^20 parts, got: " << parts;
  if (block < 1 || block >= maxPositions / parts)
    return emitError() << "a block has 1 to 2^40 / parts positions, got: "
                       << block;
  if (block != 1 && order != Order::Striped)
    return emitError() << "a block is for striped only, got: "
                       << StringRef(stringifyOrder(order)) << ' ' << block;
  return success();
}

Attribute ShardAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  LayoutAttr layout;
  int64_t dim = 0, extent = ShapedType::kDynamic;
  if (parser.parseLess() || parser.parseAttribute(layout) ||
      parser.parseComma() || parser.parseKeyword("dim") ||
      parser.parseInteger(dim) || parser.parseKeyword("extent"))
    return {};
  if (failed(parser.parseOptionalQuestion()) && parser.parseInteger(extent))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardAttr>(loc, parser.getContext(), layout, dim,
                                      extent);
}

void ShardAttr::print(AsmPrinter &printer) const {
  printer << '<' << getLayout() << ", dim " << getDim() << " extent ";
  if (ShapedType::isDynamic(getExtent()))
    printer << '?';
  else
    printer << getExtent();
  printer << '>';
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                LayoutAttr layout, int64_t dim,
                                int64_t extent) {
  if (layout.getAll())
    return emitError() << "a shard is what one rank holds of a tensor that is "
                          "sharded, got the layout of a gathered one: "
                       << layout;
  if (dim < 0)
    return emitError() << "dim must not be negative, got: " << dim;
  if (!ShapedType::isDynamic(extent) && (extent < 0 || extent >= maxPositions))
    return emitError() << "extent must be in [0, 2^40), got: " << extent;
  return success();
}

LogicalResult ChannelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  FlatSymbolRefAttr, int64_t index) {
  if (index < 0)
    return emitError() << "a channel's number must not be negative, got: "
                       << index;
  return success();
}

//===----------------------------------------------------------------------===//
// Attributes of functions
//===----------------------------------------------------------------------===//

LogicalResult RingDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == maxSlicesAttr)
    return verifyMaxSlices(op, attribute.getValue());
  if (attribute.getName() != gridAttr)
    return op->emitError("unknown attribute: ") << attribute.getName();
  auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
  if (!isa<FunctionOpInterface>(op) || !name)
    return op->emitError("'ring.grid' must name the grid of a function, got: ")
           << attribute.getValue();
  auto grid =
      SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, name.getAttr());
  if (!grid || grid.getRank() != 1 ||
      ShapedType::isDynamic(grid.getShape().front()) ||
      grid.getShape().front() < 1 || grid.getShape().front() > maxRanks)
    return op->emitError("'ring.grid' must name a grid of one axis of 1 to "
                         "2^20 ranks, got: ")
           << name;
  return success();
}

bool burst::ring::isShard(ShapedType type, ShardAttr shard) {
  int64_t size = type.getDimSize(shard.getDim()), extent = shard.getExtent();
  if (ShapedType::isDynamic(size))
    return true;
  Layout layout = shard.getLayout().getValue();
  return !ShapedType::isDynamic(extent) && layout.isEven(extent) &&
         layout.count(0, extent) == size;
}

/// What `ring.shard` may say of a tensor of `type` in a program of `op`.
static LogicalResult verifyShardOf(Operation *op, Type type, Attribute value) {
  auto shard = dyn_cast<ShardAttr>(value);
  if (!shard)
    return op->emitError("'ring.shard' must be a #ring.shard, got: ") << value;
  auto tensor = dyn_cast<ShapedType>(type);
  if (!tensor || !tensor.hasRank() || shard.getDim() >= tensor.getRank())
    return op->emitError("'ring.shard' names dimension ")
           << shard.getDim() << ", got: " << type;
  if (!op->hasAttr(gridAttr))
    return op->emitError("'ring.shard' needs a function with 'ring.grid'");
  int64_t ranks = numRanks(cast<FunctionOpInterface>(op));
  if (shard.getLayout().getParts() != ranks)
    return op->emitError("'ring.shard' must layout to the ")
           << ranks << " ranks of the grid, got: " << shard;
  if (!isShard(tensor, shard))
    return op->emitError("'ring.shard' does not give each rank a ")
           << type << ", got: " << shard;
  return success();
}

static LogicalResult verifyExtentOf(FunctionOpInterface function, Type type,
                                    Attribute value) {
  auto extent = dyn_cast<DenseI64ArrayAttr>(value);
  if (!extent || extent.empty() || extent.size() % 2 != 0 || !type.isIndex())
    return function.emitError("'ring.extent' must be array<i64: argument, "
                              "dimension, ...> on an index argument, got: ")
           << value << " on " << type;
  for (int64_t i = 0; i < extent.size(); i += 2) {
    int64_t argument = extent[i], dim = extent[i + 1];
    if (argument < 0 || argument >= function.getNumArguments())
      return function.emitError("'ring.extent' names argument ")
             << argument << " of " << function.getNumArguments();
    auto tensor = dyn_cast<ShapedType>(function.getArgumentTypes()[argument]);
    if (!tensor || !tensor.hasRank() || dim < 0 || dim >= tensor.getRank())
      return function.emitError("'ring.extent' names dimension ")
             << dim << " of " << function.getArgumentTypes()[argument];
    auto shard = function.getArgAttrOfType<ShardAttr>(argument, shardAttr);
    if (!shard || shard.getDim() != dim)
      return function.emitError("'ring.extent' must name dimensions that "
                                "'ring.shard' shards, got: ")
             << value;
  }
  return success();
}

LogicalResult RingDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned index,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError("attribute ")
           << attribute.getName() << " is for functions";
  Type type = function.getArgumentTypes()[index];
  if (attribute.getName() == shardAttr)
    return verifyShardOf(op, type, attribute.getValue());
  if (attribute.getName() == extentAttr)
    return verifyExtentOf(function, type, attribute.getValue());
  if (attribute.getName() == resultAttr || attribute.getName() == partialAttr) {
    if (isa<MemRefType>(type) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitError("'")
           << attribute.getName() << "' marks a buffer, got: " << type;
  }
  return op->emitError("unknown attribute of an argument: ")
         << attribute.getName();
}

LogicalResult RingDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (function && attribute.getName() == partialAttr &&
      isa<UnitAttr>(attribute.getValue()))
    return success();
  if (!function || attribute.getName() != shardAttr)
    return op->emitError("unknown attribute of a result: ")
           << attribute.getName();
  return verifyShardOf(op, function.getResultTypes()[index],
                       attribute.getValue());
}

int64_t burst::ring::numRanks(FunctionOpInterface program) {
  auto name = program->getAttrOfType<FlatSymbolRefAttr>(gridAttr);
  auto grid = SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(
      program, name.getAttr());
  return grid.getShape().front();
}
