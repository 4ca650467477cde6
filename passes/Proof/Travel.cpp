//===- Travel.cpp - that nothing arrives in vain --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each segment that arrives is read by the rank or sent on by it, so what is
// sent on ends where it is read. What arrives is followed through waits and
// loops to the ops that use it. That the last rank of a way needs what comes to
// it is the contract: it says so of each reach, in its only use as a fact.
//
//===----------------------------------------------------------------------===//
#include "passes/Proof/Conditions.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

/// Loops into and out of which what arrives is followed.
static constexpr int mostLoops = 4;

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// Whether an attend computes some pair with the segment, of these owners.
Formula Conditions::meets(ring::AttendLikeOpInterface op, Side side,
                          const Index &query, const Index &key,
                          Arrived &arrived, const Place &place) {
  if (!op.getPairs())
    return Formula(true);
  bool isQuery = side == Side::Query;
  ring::LayoutAttr others = isQuery ? op.getKeyLayout() : op.getQueryLayout();
  std::vector<Formula> some;
  for (int64_t x = 0, end = others.ofPart().getNumSegments(); x < end; ++x)
    some.push_back(accounts.isComputed(
        op, query, key, isQuery ? arrived.segment : Index(x),
        isQuery ? Index(x) : arrived.segment, place));
  Formula any = Formula::any(std::move(some));
  const Contract::Need *need = contract.find(op.getPairs());
  if (!need || !need->reach || need->movesKeys == isQuery)
    return any;
  const Index &moves = isQuery ? query : key, &stays = isQuery ? key : query;
  Hops hops = places.hops(moves, stays, *need, op);
  auto reachOf = [&](Value table, ArrayRef<Index> where) {
    return places.linear(places.number(table, where, {places.rank()}), op);
  };
  auto isLast = [&](const Index &hops, const Linear &reach) {
    return equal(places.linear(hops, op), reach) && atLeast(reach, 1);
  };
  if (need->isBothWays) {
    for (bool isBack : {false, true})
      arrived.facts.push_back(implies(
          isLast(isBack ? places.reverse(hops.inner, false, op) : hops.inner,
                 reachOf(need->reach, {moves, isBack, arrived.segment})),
          any));
    return any;
  }
  Linear reach = reachOf(need->reach, {moves, arrived.segment});
  if (!places.getNest()) {
    arrived.facts.push_back(implies(isLast(hops.inner, reach), any));
    return any;
  }
  // To the last ring a segment comes for the rank to which it comes, or for
  // others of that ring.
  Linear inner = reachOf(need->innerReach,
                         {moves, places.ringOf(stays, op), arrived.segment});
  arrived.facts.push_back(implies(isLast(hops.inner, inner), any));
  arrived.facts.push_back(implies(isLast(hops.outer, reach) &&
                                      equal(places.linear(hops.inner, op), 0),
                                  any || atLeast(inner, 1)));
  return any;
}

/// The same of the owners that an attend names.
Formula Conditions::meets(ring::AttendLikeOpInterface op, Side side,
                          Arrived &arrived, const Place &place) {
  bool isQuery = side == Side::Query;
  if ((isQuery ? op.getKeyLayout() : op.getQueryLayout()).getAll())
    return Formula(!op.getPairs());
  auto ownerOf = [&](ring::LayoutAttr layout, Value owner) {
    return layout.getAll() ? arrived.owner : places.index(owner, place);
  };
  return meets(op, side, ownerOf(op.getQueryLayout(), op.getQueryOwner()),
               ownerOf(op.getKeyLayout(), op.getKeyOwner()), arrived, place);
}

Formula Conditions::isJoined(const Joined &joined, Value value,
                             const Place &place, Arrived &arrived, int depth) {
  Index owner = places.index(joined.owner, place);
  std::vector<Formula> reads;
  for (const Joined::Part &part : joined.parts)
    if (llvm::is_contained(part.from, value))
      reads.push_back(places.segment(part.segments.table, part.segments.turn,
                                     owner, arrived.segment, place));
  for (auto [into, made] : llvm::zip_equal(joined.into, joined.made))
    if (into == value)
      reads.push_back(isRead(made, place, arrived, depth + 1));
  return Formula::any(std::move(reads));
}

/// What a loop carries on is read in the next turn, or behind the last one.
Formula Conditions::isReadIn(scf::YieldOp yield, unsigned number,
                             const Place &place, Arrived &arrived, int depth) {
  auto loop = dyn_cast<scf::ForOp>(yield->getParentOp());
  if (!loop)
    return Formula(false);
  Index next = places.nextTurn(loop, place.turn);
  Formula goesOn = places.isBelow(place.turn + 1, places.endTurn(loop), loop);
  Formula inNext =
      isRead(loop.getRegionIterArg(number), place.in(next), arrived, depth + 1);
  Formula behind =
      isRead(loop.getResult(number), place.around(), arrived, depth + 1);
  return (goesOn && inNext) || (!goesOn && behind);
}

Formula Conditions::isReadBy(OpOperand &use, const Place &place,
                             Arrived &arrived, int depth) {
  Operation *op = use.getOwner();
  Value value = use.get();
  if (op->getBlock() != value.getParentBlock())
    return Formula(false); // in turns of which there may be none
  if (auto wait = dyn_cast<ring::WaitOp>(op))
    return isRead(wait.getResult(arrived.number), place, arrived, depth);
  if (auto yield = dyn_cast<scf::YieldOp>(op))
    return isReadIn(yield, use.getOperandNumber(), place, arrived, depth);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    unsigned number = use.getOperandNumber() - loop.getNumControlOperands();
    Index first = places.firstTurn(loop);
    Formula goesOn = places.isBelow(first, places.endTurn(loop), loop);
    Formula inFirst = isRead(loop.getRegionIterArg(number),
                             place.inside(loop, first), arrived, depth + 1);
    Formula behind = isRead(loop.getResult(number), place, arrived, depth + 1);
    return (goesOn && inFirst) || (!goesOn && behind);
  }
  if (auto start = dyn_cast<ring::TransferOpInterface>(op)) {
    if (start.isAllToAll())
      return Formula(true);
    if (start.isGather())
      return Formula(false);
    return accounts.isSent(start, arrived.owner, arrived.segment, place);
  }
  auto step = dyn_cast<ProvedOpInterface>(op);
  if (!step)
    return Formula(isa<func::ReturnOp>(op));
  StepMeaning meaning = step.describe();
  if (auto *attended = std::get_if<Attended>(&meaning)) {
    bool isKey = value == attended->key || value == attended->value;
    return meets(attended->op, isKey ? Side::Key : Side::Query, arrived, place);
  }
  if (auto *attended = std::get_if<AttendedGrad>(&meaning)) {
    bool isKey = value == attended->key || value == attended->value ||
                 llvm::is_contained(attended->grads.slice(1, 2), value);
    return meets(attended->op, isKey ? Side::Key : Side::Query, arrived, place);
  }
  if (auto *joined = std::get_if<Joined>(&meaning))
    return isJoined(*joined, value, place, arrived, depth);
  // Of queries or keys only the sizes are taken, where something begins.
  return Formula(!std::holds_alternative<Init>(meaning) &&
                 !std::holds_alternative<Zero>(meaning));
}

/// Whether a segment of a tensor, or of what a token stands for, is read, or
/// sent on, by an op that uses it.
Formula Conditions::isRead(Value value, const Place &place, Arrived &arrived,
                           int depth) {
  if (depth > mostLoops || places.getReason())
    return Formula(false);
  std::vector<Formula> reads;
  for (OpOperand &use : value.getUses())
    reads.push_back(isReadBy(use, place, arrived, depth));
  return Formula::any(std::move(reads));
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

/// They are of no pair: asked once, whichever attention is followed.
void Conditions::requireRead(ring::TransferOpInterface start,
                             const Formula &receives, const Index &owner,
                             const Index &segment, const Place &place) {
  if (options.allowNeedless || accounts.followed() != 0)
    return;
  std::vector<Formula> asked; // tensors of one shard are often read together
  for (unsigned number = 0; number < start.getTensors().size(); ++number) {
    Arrived arrived{number, owner, segment};
    Formula read = isRead(start.getToken(), place, arrived, 0);
    Formula facts = Formula::all(std::move(arrived.facts));
    Formula condition = implies(facts && receives, read);
    if (llvm::is_contained(asked, condition))
      continue;
    asked.push_back(condition);
    places.require(start, "what arrives is read or sent on", condition);
  }
}

/// The attend that made a partial result, or what was joined to it: others of
/// the attention may stand beside it. Null where its table is not what is
/// needed.
ring::AttendLikeOpInterface Conditions::attendOf(Value partial) {
  ring::AttendLikeOpInterface found;
  SmallVector<Value> values{partial};
  while (!found && !values.empty()) {
    Value value = values.pop_back_val();
    Operation *op = value.getDefiningOp();
    // What a ring of a nest has computed goes on to the others.
    if (auto loop = dyn_cast_or_null<scf::ForOp>(op))
      values.push_back(
          loop.getYieldedValues()[cast<OpResult>(value).getResultNumber()]);
    found = dyn_cast_or_null<ring::AttendLikeOpInterface>(op);
    if (!found && isa_and_nonnull<ring::AddOp, ring::MergeOp>(op))
      llvm::append_range(values, op->getOperands());
  }
  if (!found)
    return {};
  Value pairs = found.getPairs();
  bool saysNeed = pairs ? static_cast<bool>(pairs.getDefiningOp<func::CallOp>())
                        : accounts.isNeeded().isTrue();
  return saysNeed ? found : ring::AttendLikeOpInterface();
}

/// Who returns a partial result to its owner has computed some pair for it.
void Conditions::requireWorked(ring::TransferOpInterface start,
                               const Index &owner, const Index &segment,
                               const Place &place) {
  if (options.allowNeedless)
    return;
  Formula leaves = !isEqual(
      places.peer(start, places.index(start.getTo(), place), place.rank),
      places.rank(), start);
  // To another ring returns what ranks of this one have computed.
  bool isOfRing = places.isOuter(start);
  auto isHere = [&](const Index &rank) {
    return isOfRing ? isEqual(places.ringOf(places.rank(), start),
                              places.ringOf(rank, start), start)
                    : isEqual(places.rank(), rank, start);
  };
  bool isAsked = false; // which is the same of all of its tensors
  for (Value tensor : start.getTensors()) {
    if (!accounts.isAccount(tensor))
      continue;
    Side side = *accounts.sideOf(tensor);
    bool isQuery = side == Side::Query;
    if (!isAsked) {
      ring::AttendLikeOpInterface op = attendOf(tensor);
      Arrived arrived{0, owner, segment};
      Formula some(false);
      if (op)
        some = meets(op, side, isQuery ? owner : places.rank(),
                     isQuery ? places.rank() : owner, arrived, {places.rank()});
      const Contract::Need *need = op ? contract.find(op.getPairs()) : nullptr;
      if (isOfRing && need && need->innerReach) {
        Index where[] = {owner, places.ringOf(places.rank(), start), segment};
        some = some || places.isAtLeast(places.number(need->innerReach, where,
                                                      {places.rank()}),
                                        1, start);
      }
      Formula facts = Formula::all(std::move(arrived.facts));
      places.require(start, "returns partial results of segments that it needs",
                     implies(facts && leaves &&
                                 accounts.isSent(start, owner, segment, place),
                             some));
    }
    isAsked = true;
    Formula isOwn = isEqual(owner, accounts.ownerOf(side), start) &&
                    isHere(isQuery ? accounts.k : accounts.p);
    places.require(
        start, "returns what it has computed",
        implies(isOwn && accounts.isNeeded() &&
                    accounts.isSent(start, owner, accounts.segmentOf(side),
                                    place) &&
                    leaves,
                accounts.of(tensor, place).has));
  }
}
