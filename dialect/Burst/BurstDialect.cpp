//===- BurstDialect.cpp - the burst dialect -------------------------------===//
#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burst;

#include "dialect/Burst/BurstDialect.cpp.inc"
#include "dialect/Burst/BurstEnums.cpp.inc"
#include "dialect/Burst/BurstInterfaces.cpp.inc"

void BurstDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/Burst/BurstOps.cpp.inc"
      >();
}

static LogicalResult verifyName(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != nameAttr)
    return op->emitError("unknown attribute of an argument or result: ")
           << attribute.getName();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!name || name.empty())
    return op->emitError("'burst.name' must be a string that is not empty, "
                         "got: ")
           << attribute.getValue();
  return success();
}

LogicalResult BurstDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned,
                                                     NamedAttribute attribute) {
  return verifyName(op, attribute);
}

LogicalResult
BurstDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                          NamedAttribute attribute) {
  return verifyName(op, attribute);
}

LogicalResult BurstDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  return op->emitError("unknown attribute: ") << attribute.getName();
}

//===----------------------------------------------------------------------===//
// Grids and shards
//===----------------------------------------------------------------------===//

shard::GridOp burst::lookupGrid(Operation *op, FlatSymbolRefAttr name) {
  auto grid =
      SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, name.getAttr());
  if (!grid) {
    op->emitOpError("names the grid ") << name << ", which does not exist";
    return nullptr;
  }
  if (llvm::any_of(grid.getShape(), ShapedType::isDynamic)) {
    auto diagnostic = op->emitOpError("needs a grid whose shape is known, got: ")
                      << name << " with a dynamic axis";
    diagnostic.attachNote(grid.getLoc()) << "the grid is declared here";
    return nullptr;
  }
  return grid;
}

FailureOr<Deal> burst::resolveDeal(Operation *op, SequenceAttr sequence) {
  shard::GridOp grid = lookupGrid(op, sequence.getGrid());
  if (!grid)
    return failure();
  for (int64_t axis : sequence.getAxes())
    if (axis >= grid.getRank())
      return op->emitOpError("names axis ")
             << axis << " of the grid " << sequence.getGrid()
             << ", which has: " << grid.getRank();
  if (grid.getRank() != 1)
    return op->emitOpError("splits its sequence over the grid ")
           << sequence.getGrid() << " of " << grid.getRank()
           << " axes, but only grids of one axis are supported: declare one "
              "axis with as many ranks";
  if (grid.getShape().front() < 1)
    return op->emitOpError("needs at least one rank, got: grid ")
           << sequence.getGrid() << " of " << grid.getShape().front();
  return sequence.deal(grid.getShape().front());
}

RankedTensorType burst::shardType(RankedTensorType type, int64_t dim,
                                  const Deal &deal) {
  SmallVector<int64_t> shape(type.getShape());
  bool even = !ShapedType::isDynamic(shape[dim]) && deal.isEven(shape[dim]);
  shape[dim] = even ? deal.count(0, shape[dim]) : ShapedType::kDynamic;
  return type.clone(shape);
}
