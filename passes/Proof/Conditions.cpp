//===- Conditions.cpp - what a program must satisfy at every place --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Conditions.h"

#include "dialect/Ring/Slices.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

Index Conditions::segmentOf(ring::LayoutAttr layout) {
  int64_t count = layout.ofPart().getNumSegments();
  auto [known, isNew] = segments.try_emplace(count, 0);
  if (isNew && count > 1) {
    Atom atom = places.arithmetic.addOpenAtom("s");
    Linear own = Linear::unknown(atom);
    places.arithmetic.addFact(atom, atLeast(own, 0) && below(own, count));
    known->second = Index::of(atom);
  }
  return known->second;
}

/// One of all, as generic as that of the conditions.
Index Conditions::anyRank() {
  if (!otherRank)
    otherRank = places.anyRank("q");
  return *otherRank;
}

Formula Conditions::isRank(const Index &x, Operation *op) {
  return places.isAtLeast(x, 0, op) && places.isBelow(x, places.numRanks(), op);
}

/// Two conditions are decided faster than one of both.
void Conditions::requireSame(Operation *op, const char *what, const Formula &x,
                             const Formula &y) {
  places.require(op, what, implies(x, y));
  places.require(op, what, implies(y, x));
}

//===----------------------------------------------------------------------===//
// Invariants
//===----------------------------------------------------------------------===//

bool Conditions::holds(ArrayRef<Formula> formulas) {
  return llvm::all_of(formulas, [&](const Formula &formula) {
    Formula wrong = !formula;
    // What cannot be shown quickly is no invariant.
    return decider.isImpossible(places.arithmetic.factsOf(wrong) && wrong,
                                1 << 12);
  });
}

std::vector<Formula> Conditions::ofSent(ring::TransferOpInterface start,
                                        unsigned index) {
  if (start.isGather()) {
    places.refuse(start, "a gather of what its turn has computed");
    return {};
  }
  Value tensor = start.getTensors()[index];
  Place place = places.generic(loopAround(start));
  Side side = accounts.sideOf(tensor).value_or(Side::Query);
  Index owner = places.index(start.getOwner(), place);
  Formula isSent =
      accounts.isSent(start, owner, accounts.segmentOf(side), place);
  const Formula &has = accounts.of(tensor, place).has;
  Formula invariant = accounts.sent(start, index, place);
  return {implies(isSent && has, invariant), implies(isSent && invariant, has)};
}

std::vector<Formula> Conditions::ofKept(scf::ForOp loop, unsigned number) {
  Place place = places.generic(loop);
  Formula first = accounts.of(loop.getInitArgs()[number], place.around()).has;
  Formula before =
      accounts.kept(loop, number, place.in(places.firstTurn(loop)));
  Formula next = accounts.of(loop.getYieldedValues()[number], place).has;
  Formula behind = accounts.kept(loop, number, place.in(place.turn + 1));
  return {implies(first, before), implies(before, first), implies(next, behind),
          implies(behind, next)};
}

/// Tries the templates; those of what is sent first, since they do not depend
/// on those of what is kept. Where none holds the last one stays, of which the
/// conditions will not be shown.
void Conditions::findInvariants(scf::ForOp loop) {
  auto choose = [&](const AccountKey &key, unsigned count, auto conditions) {
    for (unsigned i = 0; i < count; ++i) {
      accounts.choose(key, i);
      if (holds(conditions()))
        return;
    }
  };
  // What goes into an inner loop is there by the first template.
  for (auto inner : loop.getOps<scf::ForOp>())
    findInvariants(inner);
  for (auto start : loop.getOps<ring::TransferOpInterface>())
    for (auto [index, tensor] : llvm::enumerate(start.getTensors()))
      if (accounts.isAccount(tensor) && Accounts::isOfTurn(tensor, start))
        choose({start, static_cast<unsigned>(index)}, accounts.countSent(),
               [&] { return ofSent(start, index); });
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    if (accounts.isAccount(argument) && Accounts::isKept(loop, number))
      choose({loop, static_cast<unsigned>(number)}, accounts.countKept(loop),
             [&] { return ofKept(loop, number); });
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Conditions::collect() {
  for (auto loop : program.getOps<scf::ForOp>())
    findInvariants(loop);
  visit(program.getBody().front(), {places.rank()});
}

void Conditions::visit(Block &block, const Place &place) {
  for (Operation &op : block) {
    if (places.getReason())
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      visit(loop);
    } else if (auto start = dyn_cast<ring::TransferOpInterface>(op)) {
      visit(start, place);
    } else if (auto step = dyn_cast<ProvedOpInterface>(op)) {
      StepMeaning meaning = step.describe();
      std::visit([&](const auto &what) { visit(what, &op, place); }, meaning);
    } else if (isa<func::ReturnOp>(op)) {
      visitReturn(&op);
    } else {
      places.check(&op, place);
    }
  }
}

void Conditions::visit(scf::ForOp loop) {
  Place here = places.generic(loop);
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (argument.getType().isIndex()) {
      places.checkCarried(loop, number);
      continue;
    }
    Label label = labels.of(argument);
    if (isa<ring::TokenType>(argument.getType()) ||
        (label.tensor == -1 && !label.table))
      continue;
    if (!Accounts::isKept(loop, number)) // what came is what the transfer says
      continue;
    Value init = loop.getInitArgs()[number];
    Value next = loop.getYieldedValues()[number];
    Holding before = accounts.of(init, here.around()),
            behind = accounts.of(next, here);
    Holding carried = accounts.carried(loop, number, here.in(here.turn + 1));
    places.require(loop, "carries the shard of one owner",
                   isEqual(behind.owner, carried.owner, loop));
    if (behind.isGathered != carried.isGathered)
      places.refuse(loop, "carries what is gathered in some turns only");
    Index segment = label.table ? Index(0) : segmentOf(label.layout);
    bool isGathered = carried.isGathered;
    places.require(
        loop, "carries all segments that it did before",
        implies(
            carried.present(isGathered ? anyRank() : carried.owner, segment),
            behind.present(isGathered ? anyRank() : behind.owner, segment)));
    if (accounts.isAccount(argument))
      for (Formula &formula : ofKept(loop, number))
        places.require(loop, "carries the pairs of the turns before",
                       std::move(formula));
  }
  visit(*loop.getBody(), here);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// Sends and receives meet: all ranks of a group come to it.
void Conditions::visitAllToAll(ring::TransferOpInterface start,
                               const Place &place) {
  Index segment = segmentOf(start.getSentLayout());
  for (Value tensor : start.getTensors()) {
    const Holding &sent = accounts.of(tensor, place);
    if (sent.isGathered)
      return places.refuse(start, "exchanges what is gathered");
    places.require(start, "exchanges what is of this rank",
                   isEqual(sent.owner, places.rank(), start));
    places.require(start, "exchanges what is there",
                   sent.present(places.rank(), segment));
  }
}

void Conditions::visit(ring::TransferOpInterface start, const Place &place) {
  if (start.isAllToAll())
    return visitAllToAll(start, place);
  if (start.isGather())
    visitGather(start, place);
  else
    visitShift(start, place);
  if (!place.loop)
    return;
  for (auto [index, tensor] : llvm::enumerate(start.getTensors()))
    if (accounts.isAccount(tensor) && Accounts::isOfTurn(tensor, start))
      for (Formula &formula : ofSent(start, index))
        places.require(start, "sends the pairs that its shard has met",
                       std::move(formula));
}

/// Whether what returns to this rank has the same buffers.
bool Conditions::sharesBuffers(ring::TransferOpInterface start) {
  bool isByChannel = static_cast<bool>(ring::getMaxSlices(program));
  WalkResult found = program.walk([&](ring::TransferOpInterface other) {
    bool returns = other.getReceivedOwner() == rankOf(program) &&
                   isPartialResult(labels.of(other.getTensors().front()));
    bool isAlike = !isByChannel || other.getChannel().getIndex() ==
                                       start.getChannel().getIndex();
    return returns && isAlike ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

void Conditions::visitShift(ring::TransferOpInterface start,
                            const Place &place) {
  struct Fields {
    Index owner, to, received, from;
  };
  auto fieldsAt = [&](const Place &at) -> Fields {
    auto peer = [&](Value value) {
      return places.peer(start, places.index(value, at), at.rank);
    };
    return {places.index(start.getOwner(), at), peer(start.getTo()),
            places.index(start.getReceivedOwner(), at), peer(start.getFrom())};
  };
  Index segment = segmentOf(start.getLayout());
  auto isSent = [&](const Index &owner, const Place &at, bool checks = false) {
    return accounts.isSent(start, owner, segment, at, checks);
  };
  Fields own = fieldsAt(place);
  for (const Index &rank : {own.owner, own.received})
    places.require(start, "names ranks", isRank(rank, start));
  for (Value peer : {start.getTo(), start.getFrom()})
    places.require(start, "names ranks",
                   places.isPeer(start, places.index(peer, place)));
  Formula sends = isSent(own.owner, place, true);
  Formula receives = isSent(own.received, place, true);
  // What follows the shard of another has other buffers than what returns.
  if (isPartialResult(labels.of(start.getTensors().front())) &&
      start.getReceivedOwner() != rankOf(program) && sharesBuffers(start))
    places.require(
        start, "receives what follows the shard of another",
        implies(receives, !isEqual(own.received, places.rank(), start)));
  for (Value tensor : start.getTensors()) {
    const Holding &sent = accounts.of(tensor, place);
    if (sent.isGathered != start.getLayout().getAll())
      places.refuse(start, "sends a gathered tensor as one that is not");
    if (!sent.isGathered)
      places.require(start, "sends the shard of the owner that it names",
                     isEqual(sent.owner, own.owner, start));
    places.require(start, "sends what is there",
                   implies(sends, sent.present(own.owner, segment)));
  }
  // To whom it sends receives the same, at the same place.
  Place there = place.on(own.to);
  Fields other = fieldsAt(there);
  Formula isMet = isEqual(other.from, places.rank(), start) &&
                  isEqual(other.received, own.owner, start);
  places.require(start, "a send meets its receive", implies(sends, isMet));
  requireSame(start, "a send meets a receive of the same segments",
              isMet && sends, isMet && isSent(other.received, there));
  // From whom it receives sends to it, and so the same.
  Place back = place.on(own.from);
  Fields sender = fieldsAt(back);
  places.require(
      start, "a receive meets its send",
      implies(receives, isEqual(sender.to, places.rank(), start) &&
                            isEqual(sender.owner, own.received, start) &&
                            isSent(sender.owner, back)));
  // What goes to the rank itself has stayed there.
  requireRead(start, receives && !isEqual(own.from, places.rank(), start),
              own.received, segment, place);
  if (start.getReceivedOwner() == rankOf(program))
    requireWorked(start, own.owner, segment, place);
}

void Conditions::visitGather(ring::TransferOpInterface start,
                             const Place &place) {
  Index segment = segmentOf(start.getLayout());
  Index owner = places.index(start.getOwner(), place);
  places.require(start, "gathers the own shard",
                 isEqual(owner, places.rank(), start));
  places.require(start, "all flags of the own shard are true",
                 places.segment(start.getSegments(), Index(0), owner, segment,
                                place, true));
  // Rows exist for every distance.
  Index distance = places.remainder(accounts.p - places.rank(), start);
  Formula isSent = places.segment(start.getSegments(), distance, owner, segment,
                                  place, true);
  // Who receives it reads the same flag.
  Place there = place.on(anyRank());
  Index from = places.index(start.getOwner(), there);
  Index way = places.remainder(places.rank() - from, start);
  requireSame(start, "a gather's sender and its receiver read one flag",
              places.segment(start.getSegments(), way, from, segment, there,
                             /*checks=*/true),
              places.segment(start.getSegments(), way, from, segment, place,
                             /*checks=*/true));
  for (Value tensor : start.getTensors()) {
    const Holding &sent = accounts.of(tensor, place);
    if (sent.isGathered)
      places.refuse(start, "gathers what is gathered");
    places.require(start, "gathers the own shard",
                   isEqual(sent.owner, owner, start));
    places.require(start, "gathers what is there",
                   implies(isSent, sent.present(owner, segment)));
  }
  Formula arrives =
      places.segment(start.getSegments(), way, from, segment, place);
  requireRead(start, arrives && !isEqual(way, 0, start), from, segment, place);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Conditions::visit(const Delta &delta, Operation *op, const Place &place) {
  const Index owner = accounts.of(delta.outGrad, place).owner;
  for (Value rows : {delta.out, delta.lseGrad})
    if (rows)
      places.require(op, "takes rows of one owner",
                     isEqual(accounts.of(rows, place).owner, owner, op));
}

void Conditions::visitMeeting(ring::AttendLikeOpInterface op, ArrayRef<Met> met,
                              ArrayRef<Value> tables, const Place &place) {
  auto [queryOwner, keyOwner] = accounts.ownersOf(op, place);
  for (auto [layout, owner] :
       {std::pair(op.getQueryLayout(), op.getQueryOwner()),
        {op.getKeyLayout(), op.getKeyOwner()}})
    places.require(op, "names the owner of its shards",
                   layout.getAll() ? isEqual(places.index(owner, place), 0, op)
                                   : isRank(places.index(owner, place), op));
  Formula computed = accounts.isComputed(op, queryOwner, keyOwner, accounts.a,
                                         accounts.b, place, true);
  if (!op.getPairs() && !options.allowEmpty && !op.getMask().empty())
    return places.refuse(op, "computes pairs that the mask may rule out");
  for (const Met &part : met) {
    bool isQuery = part.side == Side::Query;
    Holding holding = accounts.of(part.tensor, place);
    const Index &owner = isQuery ? queryOwner : keyOwner;
    bool isAll = (isQuery ? op.getQueryLayout() : op.getKeyLayout()).getAll();
    if (holding.isGathered != isAll)
      return places.refuse(op, "takes what is gathered for the shard of a "
                               "rank, or the other way round");
    if (!isAll)
      places.require(op,
                     part.isPartial ? "adds to what is of the owner named"
                                    : "takes the shard of the owner named",
                     isEqual(holding.owner, owner, op));
    places.require(
        op, part.isPartial ? "adds to what is there" : "reads what is there",
        implies(computed,
                holding.present(owner, isQuery ? accounts.a : accounts.b)));
  }
  if (labels.attentionOf(op) != accounts.followed())
    return;
  Formula adds = accounts.contribution(op, place);
  places.require(op, "computes only what is needed",
                 implies(adds, accounts.isNeeded()));
  auto requireNew = [&](Value tensor) {
    if (accounts.isAccount(tensor))
      places.require(op, "computes no pair a second time",
                     !(adds && accounts.of(tensor, place).has));
  };
  for (const Met &part : met)
    if (part.isPartial)
      requireNew(part.tensor);
  for (Value table : tables)
    requireNew(table);
}

/// A state that ends has all that is needed of its queries.
void Conditions::complete(const Holding &holding, const Formula &has,
                          Operation *op) {
  Formula isOwn = isEqual(holding.owner, accounts.p, op);
  places.require(op, "ends with every pair that is needed",
                 implies(isOwn && accounts.isNeeded(), has));
  places.require(op, "ends with no pair that is not needed",
                 implies(isOwn && has, accounts.isNeeded()));
  places.require(op, "ends all segments",
                 holding.present(holding.owner, accounts.a));
}

void Conditions::visit(const Attended &attended, Operation *op,
                       const Place &place) {
  SmallVector<Met> met = {{attended.op.getQuery(), Side::Query},
                          {attended.key, Side::Key},
                          {attended.value, Side::Key}};
  for (Value part : attended.state)
    met.push_back({part, Side::Query, true});
  visitMeeting(attended.op, met, {}, place);
  if (!attended.op.isLast() || labels.attentionOf(op) != accounts.followed())
    return;
  if (attended.op.getQueryLayout().getAll())
    return places.refuse(op, "ends states of gathered queries");
  Holding state = accounts.of(attended.state.empty() ? attended.op.getQuery()
                                                     : attended.state[0],
                              place);
  complete(state, state.has || accounts.contribution(attended.op, place), op);
}

void Conditions::visit(const AttendedGrad &attended, Operation *op,
                       const Place &place) {
  SmallVector<Met> met = {{attended.op.getQuery(), Side::Query},
                          {attended.outGrad, Side::Query},
                          {attended.lse, Side::Query},
                          {attended.delta, Side::Query},
                          {attended.key, Side::Key},
                          {attended.value, Side::Key},
                          {attended.grads[0], Side::Query, true},
                          {attended.grads[1], Side::Key, true},
                          {attended.grads[2], Side::Key, true}};
  visitMeeting(attended.op, met,
               SmallVector<Value>(attended.grads.drop_front(3)), place);
}

void Conditions::visit(const Joined &joined, Operation *op,
                       const Place &place) {
  Index owner = places.index(joined.owner, place);
  Index segment = segmentOf(joined.layout);
  places.require(op, "names a rank as owner", isRank(owner, op));
  for (size_t i = 0; i < joined.into.size(); ++i) {
    Holding into = accounts.of(joined.into[i], place);
    // What was joined before; the followed pair is in one segment.
    Formula has = into.has;
    for (const Joined::Part &part : joined.parts) {
      auto joins = [&](const Index &segment, bool checks = false) {
        return places.segment(part.segments.table, part.segments.turn, owner,
                              segment, place, checks);
      };
      Holding from = accounts.of(part.from[i], place);
      if (into.isGathered || from.isGathered)
        return places.refuse(op, "joins what is gathered");
      Formula some = joins(segment, true);
      places.require(op, "joins what is of the owner named",
                     implies(some, isEqual(into.owner, owner, op) &&
                                       isEqual(from.owner, owner, op)));
      places.require(op, "joins what is there",
                     implies(some, into.present(owner, segment) &&
                                       from.present(owner, segment)));
      if (!accounts.isAccount(joined.made[i]))
        continue;
      Formula adds =
          joins(accounts.segmentOf(*accounts.sideOf(joined.made[i]))) &&
          from.has;
      places.require(op, "joins no pair a second time", !(has && adds));
      has = has || adds;
    }
  }
}

void Conditions::visit(const Finalized &finalized, Operation *op,
                       const Place &place) {
  Holding state = accounts.of(finalized.state[0], place);
  if (state.isGathered)
    return places.refuse(op, "ends states of gathered queries");
  Label label = labels.of(finalized.state[0]);
  if (label.attention < 0)
    return places.refuse(op, "ends a state that has attended nothing");
  if (label.attention == accounts.followed())
    complete(state, state.has, op);
}

/// What a program returns: chunks of heads in place of what is joined of them.
static SmallVector<Value> returnedBy(Operation *op) {
  SmallVector<Value> returned;
  for (Value result : op->getOperands())
    if (auto join = result.getDefiningOp<ring::JoinHeadsOp>())
      llvm::append_range(returned, join.getChunks());
    else
      returned.push_back(result);
  return returned;
}

void Conditions::visitReturn(Operation *op) {
  Place place{places.rank()};
  for (Value result : returnedBy(op)) {
    Label label = labels.of(result);
    Holding holding = accounts.of(result, place);
    if (holding.isGathered)
      return places.refuse(op, "returns what is gathered");
    if (label.table) {
      // A part: each pair is in that of one rank, of its queries or its keys.
      if (!label.isOfAttention(accounts.followed()))
        continue;
      auto isHere = [&](const Index &owner) {
        return accounts.isNeeded() && isEqual(places.rank(), owner, op);
      };
      auto isWith = [&](const Index &owner) {
        return holds({implies(holding.has, isHere(owner)),
                      implies(isHere(owner), holding.has)});
      };
      requireSame(op, "returns parts that have every pair once", holding.has,
                  isHere(isWith(accounts.p) ? accounts.p : accounts.k));
      continue;
    }
    places.require(op, "returns what is of this rank",
                   isEqual(holding.owner, places.rank(), op));
    places.require(op, "returns all segments",
                   holding.present(places.rank(), segmentOf(label.layout)));
    if (!label.isOf(Made::Gradient) ||
        !label.isOfAttention(accounts.followed()))
      continue;
    Formula isOwn =
        isEqual(places.rank(), accounts.ownerOf(*accounts.sideOf(result)), op);
    places.require(op, "returns every pair that is needed",
                   implies(isOwn && accounts.isNeeded(), holding.has));
    places.require(op, "returns no pair that is not needed",
                   implies(isOwn && holding.has, accounts.isNeeded()));
  }
}
