//===- Strategy.cpp - the strategies that there are -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/AllGather/AllGather.h"
#include "passes/Strategies/Ring/Ring.h"
#include "passes/Strategies/baselines/StoredScores.h"

using namespace burst;

static llvm::SmallVector<const Strategy *> &all() {
  static llvm::SmallVector<const Strategy *> strategies = {
      getKeyRing(),
      getQueryRing(),
      getAllGather(),
      getStoredScores(),
  };
  return strategies;
}

llvm::ArrayRef<const Strategy *> burst::getStrategies() { return all(); }

void burst::addStrategy(const Strategy *strategy) { all().push_back(strategy); }

const Strategy *burst::lookupStrategy(llvm::StringRef name) {
  for (const Strategy *strategy : getStrategies())
    if (strategy->getName() == name)
      return strategy;
  return nullptr;
}
