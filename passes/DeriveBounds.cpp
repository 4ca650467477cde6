//===- DeriveBounds.cpp - what masks may and must keep --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Bounds/Bounds.h"
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_DERIVEBOUNDSPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

/// Least and greatest element of a box of a table, as values of its type.
static std::pair<Value, Value>
emitTableRange(OpBuilder &builder, Location loc, Value table,
               ArrayRef<std::pair<Value, Value>> box) {
  SmallVector<Value> from, to;
  auto asIndex = [&](Value value) {
    if (value.getType().isIndex())
      return value;
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                      value)
        .getResult();
  };
  for (auto [low, high] : box) {
    from.push_back(asIndex(low));
    to.push_back(asIndex(high));
  }
  auto range = TableRangeOp::create(builder, loc, table, from, to);
  Type element = cast<RankedTensorType>(table.getType()).getElementType();
  auto asElement = [&](Value value) -> Value {
    if (element.isIndex())
      return arith::IndexCastOp::create(builder, loc, element, value);
    if (element == value.getType())
      return value;
    return arith::TruncIOp::create(builder, loc, element, value);
  };
  return {asElement(range.getMin()), asElement(range.getMax())};
}

/// The arguments of the mask, as intervals of those of the bounds region.
static SmallVector<bounds::Argument>
intervals(OpBuilder &builder, AttentionInterface op, Block &block) {
  Location loc = op.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value one = constant(1);
  AttentionSizes sizes = op.getSizes();
  auto limit = [](int64_t size) {
    return ShapedType::isDynamic(size) ? maxPositions : size;
  };
  SmallVector<bounds::Argument> result;
  const int64_t boxSizes[] = {sizes.batch, sizes.queryHeads, sizes.queries,
                              sizes.keys};
  for (auto [dim, size] : llvm::enumerate(boxSizes)) {
    Value last = arith::SubIOp::create(builder, loc,
                                       block.getArgument(2 * dim + 1), one);
    // Boxes are not empty, so a size of 0 needs no bounds; they must hold
    // still.
    int64_t largest = std::max<int64_t>(limit(size) - 1, 0);
    result.push_back(
        bounds::Interval{block.getArgument(2 * dim), last, 0, largest});
  }
  const int64_t extents[] = {sizes.queries, sizes.keys};
  for (auto [index, size] : llvm::enumerate(extents)) {
    Value value = ShapedType::isDynamic(size) ? block.getArgument(8 + index)
                                              : constant(size);
    result.push_back(bounds::Interval{
        value, value, ShapedType::isDynamic(size) ? 0 : size, limit(size)});
  }
  for (Value capture : block.getArguments().drop_front(10))
    result.push_back(bounds::Captured{capture});
  return result;
}

static void derive(AttentionInterface op) {
  OpBuilder builder(op.getContext());
  Location loc = op.getLoc();
  Block &block =
      addRegionBlock(builder, loc, op.getBounds(), RegionRole::Bounds,
                     op.getStateType(), op.getMaskCaptures().getTypes());
  SmallVector<bounds::Argument> arguments = intervals(builder, op, block);
  bounds::Truth truth =
      bounds::emit(builder, loc, op.getMask(), arguments, emitTableRange);
  YieldOp::create(builder, loc, ValueRange{truth.may, truth.must});
  for (Operation &unused : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&unused))
      unused.erase();
}

namespace {
struct DeriveBounds : burst::impl::DeriveBoundsPassBase<DeriveBounds> {
  void runOnOperation() override {
    getOperation().walk([](AttentionInterface op) {
      // Bounds that stand there are not trusted: proofs rest on them.
      op.getBounds().getBlocks().clear();
      if (!op.getMask().empty())
        derive(op);
    });
  }
};
} // namespace
