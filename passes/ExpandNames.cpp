//===- ExpandNames.cpp - named masks and scores to regions ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

namespace burst {
#define GEN_PASS_DEF_EXPANDNAMESPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

/// Emits the region that a list of names stands for.
static void expand(AttentionInterface op, RegionRole kind, ArrayAttr names,
                   Region &region, TypeRange captureTypes) {
  OpBuilder builder(op.getContext());
  Location loc = op.getLoc();
  Block &block = addRegionBlock(builder, loc, region, kind, op.getStateType(),
                                captureTypes);
  RegionArguments args = RegionArguments::of(kind, block);
  ValueRange captures = args.captures;
  Value result = args.score;
  for (auto [index, attribute] : llvm::enumerate(names)) {
    auto name = cast<NamedRegionInterface>(attribute);
    // As the verifier has it: the last name takes what is left.
    bool isLast = index + 1 == names.size();
    size_t taken = isLast ? captures.size() : name.numTables().first;
    args.captures = captures.take_front(taken);
    captures = captures.drop_front(taken);
    Value value = name.emit(builder, loc, args);
    if (kind == RegionRole::Score)
      args.score = result = value;
    else
      result =
          result ? arith::AndIOp::create(builder, loc, result, value) : value;
  }
  YieldOp::create(builder, loc, result);
}

namespace {
struct ExpandNames : burst::impl::ExpandNamesPassBase<ExpandNames> {
  void runOnOperation() override {
    getOperation().walk([](AttentionInterface op) {
      if (ArrayAttr names = op.getMaskNamesAttr()) {
        if (!llvm::all_of(names, llvm::IsaPred<FullAttr>))
          expand(op, RegionRole::Mask, names, op.getMask(),
                 op.getMaskCaptures().getTypes());
        op.removeMaskNamesAttr();
      }
      if (ArrayAttr names = op.getScoreNamesAttr()) {
        expand(op, RegionRole::Score, names, op.getScore(),
               op.getScoreCaptures().getTypes());
        op.removeScoreNamesAttr();
      }
    });
  }
};
} // namespace
