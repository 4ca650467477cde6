//===- Strategy.cpp - the strategies that there are -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Strategy.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace burst;

static llvm::SmallVector<const Strategy *> &all() {
  static llvm::SmallVector<const Strategy *> strategies = {
#define STRATEGY(name) get##name(),
#include "passes/Strategies/Strategies.def"
  };
  return strategies;
}

llvm::ArrayRef<const Strategy *> burst::getStrategies() { return all(); }

void burst::addStrategy(const Strategy *strategy) { all().push_back(strategy); }

llvm::SmallVector<int64_t> burst::axesOf(AttentionInterface op,
                                         SequenceAttr sequence) {
  llvm::SmallVector<int64_t> axes(sequence.getAxes());
  if (axes.empty())
    llvm::append_range(axes,
                       llvm::seq(lookupGrid(op, sequence.getGrid()).getRank()));
  if (axes == llvm::SmallVector<int64_t>{noAxis})
    axes.clear();
  return axes;
}

const Strategy *burst::lookupStrategy(llvm::StringRef name) {
  for (const Strategy *strategy : getStrategies())
    if (strategy->getName() == name)
      return strategy;
  return nullptr;
}
