//===- Strategy.cpp - the strategies that there are -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Ring/Ring.h"
#include "passes/Strategies/baselines/StoredScores.h"

using namespace burst;

llvm::ArrayRef<const StrategyModel *> burst::getStrategies() {
  static const StrategyModel *const all[] = {
      getKeyRing(),
      getQueryRing(),
      getStoredScores(),
  };
  return all;
}

const StrategyModel *burst::lookupStrategy(Strategy strategy) {
  for (const StrategyModel *model : getStrategies())
    if (model->getStrategy() == strategy)
      return model;
  return nullptr;
}
