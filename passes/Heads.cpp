//===- Heads.cpp - the heads that regions see -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Heads.h"

using namespace mlir;
using namespace burst;

void burst::renumberHeads(AttentionInterface attention,
                          function_ref<Value(Emit, Value, bool isEnd)> number) {
  auto renumber = [&](Value head, bool isEnd) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : head.getUses())
      uses.push_back(&use);
    if (uses.empty())
      return;
    auto builder = OpBuilder::atBlockBegin(head.getParentBlock());
    Value made = number({builder, attention.getLoc()}, head, isEnd);
    for (OpOperand *use : uses)
      use->set(made);
  };
  auto renumberIn = [&](RegionRole role, Region &region) {
    if (!region.empty())
      renumber(RegionArguments::of(role, region.front()).h, /*isEnd=*/false);
  };
  renumberIn(RegionRole::Mask, attention.getMask());
  renumberIn(RegionRole::Score, attention.getScore());
  if (auto backward = dyn_cast<AttentionBackwardOp>(attention.getOperation()))
    renumberIn(RegionRole::Gradient, backward.getGradient());
  if (Region &bounds = attention.getBounds(); !bounds.empty()) {
    renumber(bounds.getArgument(2), /*isEnd=*/false);
    renumber(bounds.getArgument(3), /*isEnd=*/true);
  }
}
