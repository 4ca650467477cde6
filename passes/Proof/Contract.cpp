//===- Contract.cpp - what a proof takes of tables for granted ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Contract.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

func::FuncOp burst::proof::calleeOf(func::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
}

Value burst::proof::rankOf(func::FuncOp program) {
  RankGroup sequence = ring::shardingOf(program).sequence;
  for (Operation &op : program.getOps())
    if (isa<shard::ProcessMultiIndexOp, arith::AddIOp>(op))
      if (ring::matchPlace(program, op.getResult(0)) == sequence)
        return op.getResult(0);
  return {};
}

bool burst::proof::movesKeys(ArrayRef<ring::AttendLikeOpInterface> attends,
                             Value rank) {
  return llvm::all_of(attends, [&](ring::AttendLikeOpInterface attend) {
    return attend.getQueryOwner() == rank && !attend.getQueryLayout().getAll();
  });
}

Contract Contract::of(func::FuncOp program) {
  Contract contract;
  llvm::MapVector<Value, SmallVector<ring::AttendLikeOpInterface>> attends;
  program.walk([&](ring::AttendLikeOpInterface attend) {
    attends[attend.getPairs()].push_back(attend);
  });
  Value rank = rankOf(program);
  for (auto &[pairs, ofTable] : attends) {
    Need need;
    need.pairs = pairs;
    need.movesKeys = proof::movesKeys(ofTable, rank);
    // They are checked for masks, and by the segments of one owner.
    bool isChecked =
        llvm::any_of(ofTable,
                     [](ring::AttendLikeOpInterface attend) {
                       return !attend.getMask().empty();
                     }) &&
        llvm::none_of(ofTable, [](ring::AttendLikeOpInterface attend) {
          return attend.getQueryLayout().getAll() ||
                 attend.getKeyLayout().getAll();
        });
    ring::AttendLikeOpInterface first = ofTable.front();
    int64_t travelling[] = {
        first.getQueryLayout().getParts(),
        (need.movesKeys ? first.getKeyLayout() : first.getQueryLayout())
            .getNumSegments()};
    auto call = pairs && isChecked ? pairs.getDefiningOp<func::CallOp>()
                                   : func::CallOp();
    for (Value other : call ? ValueRange(call.getResults()) : ValueRange()) {
      auto type = dyn_cast<RankedTensorType>(other.getType());
      bool isTable = type && type.getElementType().isIndex();
      if (other.getType().isIndex())
        (need.step ? need.innerStep : need.step) = other;
      else if (isTable && type.getShape() == ArrayRef<int64_t>(travelling))
        need.reach = other;
      else if (isTable && type.getRank() == 3 &&
               type.getDimSize(0) == travelling[0] &&
               type.getDimSize(2) == travelling[1])
        need.innerReach = other;
    }
    if (need.innerReach && !need.reach && !need.step &&
        cast<ShapedType>(need.innerReach.getType()).getDimSize(1) == 2) {
      need.isBothWays = true;
      std::swap(need.reach, need.innerReach);
    }
    if (!need.reach || (!need.step && !need.isBothWays))
      need.reach = need.step = nullptr;
    if (!need.reach || !need.innerReach || !need.innerStep)
      need.innerReach = need.innerStep = nullptr;
    contract.needs.push_back(need);
  }
  return contract;
}

const Contract::Need *Contract::find(Value pairs) const {
  const auto *found = llvm::find_if(
      needs, [&](const Need &need) { return need.pairs == pairs; });
  return found == needs.end() ? nullptr : &*found;
}
