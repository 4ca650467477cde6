//===- Strategy.cpp - the strategies that there are -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Ring.h"
#include "passes/Strategies/baselines/StoredScores.h"

using namespace burst;

llvm::ArrayRef<const Strategy *> burst::getStrategies() {
  static const Strategy *const all[] = {
      getKeyRing(),
      getQueryRing(),
      getStoredScores(),
  };
  return all;
}

const Strategy *burst::lookupStrategy(llvm::StringRef name) {
  for (const Strategy *strategy : getStrategies())
    if (strategy->getName() == name)
      return strategy;
  return nullptr;
}
