//===- BurstDialect.cpp - the burst dialect -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace burst;

namespace {
/// Whatever is called may be inlined.
struct BurstInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

#include "dialect/Burst/BurstDialect.cpp.inc"
#include "dialect/Burst/BurstEnums.cpp.inc"
#include "dialect/Burst/BurstInterfaces.cpp.inc"
#include "dialect/Burst/BurstOpInterfaces.cpp.inc"

void BurstDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/Burst/BurstOps.cpp.inc"
      >();
  addInterfaces<BurstInliner>();
}

LogicalResult burst::verifyFixedSegments(Operation *op, ArrayRef<int32_t> sizes,
                                         ArrayRef<unsigned> variadic) {
  for (auto [index, size] : llvm::enumerate(sizes))
    if (size != 1 && !llvm::is_contained(variadic, index))
      return op->emitOpError("operand segment ")
             << index << " must have one operand, got: " << size;
  return success();
}

/// `attribute` of argument or result `index`; `others` are the attributes of
/// all of these.
static LogicalResult verifyName(Operation *op, unsigned index,
                                NamedAttribute attribute, ArrayAttr others) {
  if (attribute.getName() != nameAttr)
    return op->emitError("unknown attribute of an argument or result: ")
           << attribute.getName();
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!name || name.empty())
    return op->emitError("'burst.name' must be a string that is not empty, "
                         "got: ")
           << attribute.getValue();
  ArrayRef<Attribute> before =
      others ? others.getValue().take_front(index) : ArrayRef<Attribute>();
  // A result may be named as an argument is, also where it is a buffer.
  auto isResult = [&](Attribute attributes) {
    return cast<DictionaryAttr>(attributes).contains("ring.result");
  };
  if (llvm::any_of(before, [&](Attribute other) {
        return cast<DictionaryAttr>(other).get(nameAttr) == name &&
               isResult(other) == isResult(others[index]);
      }))
    return op->emitError("'burst.name' must differ, got twice: ") << name;
  return success();
}

LogicalResult BurstDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verifyName(op, index, attribute,
                    function ? function.getArgAttrsAttr() : ArrayAttr());
}

LogicalResult BurstDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verifyName(op, index, attribute,
                    function ? function.getResAttrsAttr() : ArrayAttr());
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
    auto diagnostic =
        op->emitOpError("needs a grid whose shape is known, got: ")
        << name << " with a dynamic axis";
    diagnostic.attachNote(grid.getLoc()) << "the grid is declared here";
    return nullptr;
  }
  return grid;
}

RankGroup burst::groupOf(shard::GridOp grid, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> shape = grid.getShape();
  RankGroup group;
  for (int64_t axis = grid.getRank(); axis-- > 0;) {
    if (axes.empty() || llvm::is_contained(axes, axis))
      group.size *= shape[axis];
    else if (axis > axes.back())
      group.stride *= shape[axis];
  }
  return group;
}

int64_t burst::numParts(Operation *op, AxesAttr axes) {
  if (!axes)
    return 1;
  auto grid = SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(
      op, axes.getGrid().getAttr());
  return groupOf(grid, axes.getAxes()).size;
}

FailureOr<RankGroup> burst::resolveAxes(Operation *op, FlatSymbolRefAttr grid,
                                        ArrayRef<int64_t> axes) {
  shard::GridOp found = lookupGrid(op, grid);
  if (!found)
    return failure();
  for (int64_t axis : axes)
    if (axis >= found.getRank())
      return op->emitOpError("names axis ")
             << axis << " of the grid " << grid
             << ", which has: " << found.getRank();
  int64_t ranks = 1;
  for (int64_t size : found.getShape()) {
    ranks = size < 1 || size > maxRanks ? 0 : ranks * size;
    if (ranks < 1 || ranks > maxRanks)
      return op->emitOpError("needs 1 to 2^20 ranks, got: grid ")
             << grid << " of " << llvm::interleaved(found.getShape(), "x");
  }
  return groupOf(found, axes);
}

FailureOr<Layout> burst::resolveLayout(Operation *op, SequenceAttr sequence) {
  FailureOr<RankGroup> group =
      resolveAxes(op, sequence.getGrid(), sequence.getAxes());
  if (failed(group))
    return failure();
  int64_t ranks = group->size;
  if (sequence.getBlock() >= maxPositions / ranks)
    return op->emitOpError("shards in blocks of ")
           << sequence.getBlock() << " positions to " << ranks
           << " ranks, which together must be fewer than 2^40";
  return sequence.getLayout(ranks);
}

RankedTensorType burst::shardType(RankedTensorType type, int64_t dim,
                                  const Layout &layout) {
  SmallVector<int64_t> shape(type.getShape());
  bool even = !ShapedType::isDynamic(shape[dim]) && layout.isEven(shape[dim]);
  shape[dim] = even ? layout.count(0, shape[dim]) : ShapedType::kDynamic;
  return type.clone(shape);
}
