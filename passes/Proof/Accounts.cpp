//===- Accounts.cpp - what tensors hold at a rank and a turn --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Accounts.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

//===----------------------------------------------------------------------===//
// The pair
//===----------------------------------------------------------------------===//

Accounts::Accounts(func::FuncOp program, Places &places, const Labels &labels,
                   int attention, const Contract &contract)
    : program(program), places(places), labels(labels), attention(attention) {
  const Attention &followed = labels.getAttentions()[attention];
  ring::AttendLikeOpInterface first = followed.first;
  queryLayout = first.getQueryLayout().ofPart();
  keyLayout = first.getKeyLayout().ofPart();
  Arithmetic &arithmetic = places.arithmetic;
  auto segment = [&](const char *name, ring::LayoutAttr layout) -> Index {
    int64_t count = layout.getNumSegments();
    if (count == 1)
      return 0;
    Atom atom = arithmetic.addOpenAtom(name);
    Linear own = Linear::unknown(atom);
    arithmetic.addFact(atom, atLeast(own, 0) && below(own, count));
    return Index::of(atom);
  };
  a = segment("a", queryLayout);
  b = segment("b", keyLayout);
  SmallVector<ring::AttendLikeOpInterface> attends;
  program.walk([&](ring::AttendLikeOpInterface op) {
    if (labels.attentionOf(op) == attention)
      attends.push_back(op);
  });
  addMotions(attends, contract);
  if (first.getMask().empty())
    return;
  // Whatever computes the tables, they say the same: what the mask needs.
  if (!first.getPairs())
    return;
  Atom atom = arithmetic.addOpenAtom("need");
  Linear own = Linear::unknown(atom);
  needed = atLeast(own, 1);
  arithmetic.addFact(atom, atLeast(own, 0) && atLeast(1, own));
  for (ring::AttendLikeOpInterface op : attends)
    if (Value pairs = op.getPairs();
        pairs && pairs.getDefiningOp<func::CallOp>()) {
      // Of any pair, also of one that no attend reads: a fact about a formula
      // is one about the table only where nothing wraps.
      Formula entry =
          isComputed(op, p, k, a, b, {places.rank()}, /*checks=*/true);
      arithmetic.addFact(atom,
                         implies(needed, entry) && implies(entry, needed));
    }
}

/// The loop around all others in which an op is; null where it is in none.
static scf::ForOp outermostLoop(Operation *op) {
  scf::ForOp loop = op->getParentOfType<scf::ForOp>();
  while (scf::ForOp outer = loop ? loopAround(loop) : scf::ForOp())
    loop = outer;
  return loop;
}

/// One for each loop with attends, in their order; for those outside of loops
/// only where there is none.
void Accounts::addMotions(ArrayRef<ring::AttendLikeOpInterface> attends,
                          const Contract &contract) {
  llvm::MapVector<scf::ForOp, SmallVector<ring::AttendLikeOpInterface>> byLoop;
  for (ring::AttendLikeOpInterface attend : attends)
    byLoop[outermostLoop(attend)].push_back(attend);
  if (byLoop.size() > 1)
    byLoop.erase(scf::ForOp());
  for (auto &[loop, together] : byLoop)
    motions.push_back({loop, contract.find(together.front().getPairs()),
                       proof::movesKeys(together, rankOf(program))});
  // One shard stays, the other one goes so many hops to it.
  Arithmetic &arithmetic = places.arithmetic;
  const Motion &first = motions.front();
  Index stays = places.anyRank(first.movesKeys ? "p" : "k");
  Hops back;
  if (!places.isOne())
    back.inner = Index(0) - Index::of(arithmetic.addAtom("way"));
  if (places.getNest())
    back.outer =
        Index(0) - Index::of(arithmetic.addAtom("way.ring", 1, Modulus::Rings));
  Index moves = places.ahead(stays, back, *first.need, attends.front());
  std::tie(p, k) =
      first.movesKeys ? std::pair(stays, moves) : std::pair(moves, stays);
  for (Motion &motion : motions)
    motion.way = motion.movesKeys
                     ? places.hops(k, p, *motion.need, attends.front())
                     : places.hops(p, k, *motion.need, attends.front());
}

const Accounts::Motion &Accounts::motionOf(scf::ForOp loop) const {
  scf::ForOp outer = loop ? loopAround(loop) : scf::ForOp();
  const auto *found = llvm::find_if(motions, [&](const Motion &motion) {
    return motion.loop == (outer ? outer : loop);
  });
  return found == motions.end() ? motions.front() : *found;
}

std::optional<Side> Accounts::sideOf(Value tensor) const {
  const Attention &followed = labels.getAttentions()[attention];
  Label label = labels.of(tensor);
  if (label.tensor == -1)
    return std::nullopt;
  if (label.isOf(Made::Gradient))
    return label.place <= 0 ? Side::Query : Side::Key;
  bool isOfKeys =
      label.tensor == followed.key || label.tensor == followed.value;
  return isOfKeys ? Side::Key : Side::Query;
}

bool Accounts::isAccount(Value tensor) const {
  Label label = labels.of(tensor);
  return isa<RankedTensorType>(tensor.getType()) &&
         label.isOfAttention(attention) &&
         (label.isOf(Made::O) || label.isOf(Made::Gradient) || label.table);
}

std::pair<Index, Index> Accounts::ownersOf(ring::AttendLikeOpInterface op,
                                           const Place &place) {
  return {
      op.getQueryLayout().getAll() ? p
                                   : places.index(op.getQueryOwner(), place),
      op.getKeyLayout().getAll() ? k : places.index(op.getKeyOwner(), place)};
}

Formula Accounts::isComputed(ring::AttendLikeOpInterface op,
                             const Index &queryOwner, const Index &keyOwner,
                             const Index &a, const Index &b, const Place &place,
                             bool checks) {
  Value pairs = op.getPairs();
  if (!pairs)
    return Formula(true);
  // Of what is gathered the one owner has the segments of all.
  auto indices = [](ring::LayoutAttr layout, const Index &owner,
                    const Index &segment) -> std::pair<Index, Index> {
    if (!layout.getAll())
      return {owner, segment};
    return {0, owner * Polynomial(layout.ofPart().getNumSegments()) + segment};
  };
  auto [row, x] = indices(op.getQueryLayout(), queryOwner, a);
  auto [column, y] = indices(op.getKeyLayout(), keyOwner, b);
  Index at[] = {row, column, x, y};
  return places.flag(pairs, at, place, checks);
}

Formula Accounts::isEqual(const Index &x, const Index &y, Operation *op) {
  return places.isEqual(x, y, op);
}

Formula Accounts::contribution(ring::AttendLikeOpInterface op,
                               const Place &place) {
  auto [queryOwner, keyOwner] = ownersOf(op, place);
  return isEqual(queryOwner, p, op) && isEqual(keyOwner, k, op) &&
         isComputed(op, queryOwner, keyOwner, a, b, place);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

const Holding &Accounts::of(Value tensor, const Place &place) {
  // In front of and behind loops there are no turns.
  Place own = place.at(loopOf(tensor));
  std::pair key(tensor.getAsOpaquePointer(), own);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Holding holding = find(tensor, own);
  return known.insert_or_assign(key, std::move(holding)).first->second;
}

Holding Accounts::find(Value tensor, const Place &place) {
  if (places.getReason())
    return {};
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop)
      return carried(loop, argument.getArgNumber() - 1, place);
    return {place.rank, false};
  }
  auto result = cast<OpResult>(tensor);
  Operation *op = result.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return carried(loop, result.getResultNumber(),
                   place.inside(loop, places.endTurn(loop)));
  if (auto wait = dyn_cast<ring::WaitOp>(op))
    return received(wait, result.getResultNumber(), place);
  if (auto step = dyn_cast<ProvedOpInterface>(op)) {
    StepMeaning meaning = step.describe();
    return std::visit(
        [&](const auto &what) { return made(what, tensor, place); }, meaning);
  }
  places.refuse(op, "a tensor of which a proof does not know what it holds");
  return {};
}

static size_t indexIn(ValueRange values, Value value) {
  return std::distance(values.begin(), llvm::find(values, value));
}

Holding Accounts::made(const Init &init, Value, const Place &place) {
  Holding query = of(init.query, place);
  return {query.owner, query.isGathered};
}

Holding Accounts::made(const Zero &zero, Value, const Place &place) {
  if (labels.of(zero.like).tensor == -1) // by a table
    return {place.rank, false};
  Holding like = of(zero.like, place);
  return {like.owner, like.isGathered};
}

Holding Accounts::made(const Delta &delta, Value, const Place &place) {
  Holding rows = of(delta.outGrad, place), out = of(delta.out, place);
  std::optional<Holding> other;
  if (delta.lseGrad)
    other = of(delta.lseGrad, place);
  rows.has = Formula(false);
  rows.present = [=, ofRows = rows.present](const Index &o, const Index &s) {
    return ofRows(o, s) && out.present(o, s) &&
           (other ? other->present(o, s) : Formula(true));
  };
  return rows;
}

Holding Accounts::made(const Attended &attended, Value tensor,
                       const Place &place) {
  Holding holding;
  if (attended.state.empty()) {
    holding = made(Init{attended.op.getQuery(), {}}, tensor, place);
  } else {
    holding = of(
        attended
            .state[attended.op.isLast() ? 0 : indexIn(attended.made, tensor)],
        place);
  }
  if (attended.op.isLast())
    holding.has = Formula(false); // It is complete.
  else if (isAccount(tensor))
    holding.has = holding.has || contribution(attended.op, place);
  return holding;
}

Holding Accounts::made(const AttendedGrad &attended, Value tensor,
                       const Place &place) {
  Holding holding = of(attended.grads[indexIn(attended.made, tensor)], place);
  if (isAccount(tensor) && labels.attentionOf(attended.op) == attention)
    holding.has = holding.has || contribution(attended.op, place);
  return holding;
}

Holding Accounts::made(const Joined &joined, Value tensor, const Place &place) {
  size_t number = indexIn(joined.made, tensor);
  Holding holding = of(joined.into[number], place);
  if (!isAccount(tensor))
    return holding;
  Index owner = places.index(joined.owner, place);
  for (const Joined::Part &part : joined.parts)
    holding.has = holding.has ||
                  (places.segment(part.segments.table, part.segments.turn,
                                  owner, segmentOf(*sideOf(tensor)), place) &&
                   of(part.from[number], place).has);
  return holding;
}

Holding Accounts::made(const Finalized &finalized, Value, const Place &place) {
  Holding holding = of(finalized.state[0], place);
  holding.has = Formula(false); // It is complete.
  return holding;
}

Holding Accounts::made(const TakenHeads &taken, Value, const Place &place) {
  return of(taken.whole, place);
}

/// Of the first chunk; what a program returns is asked of each.
Holding Accounts::made(const JoinedHeads &joined, Value, const Place &place) {
  return of(joined.chunks.front(), place);
}

Holding Accounts::made(const Rounded &rounded, Value, const Place &place) {
  return of(rounded.gradient, place);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

Formula Accounts::isSent(ring::TransferOpInterface start, const Index &owner,
                         const Index &segment, const Place &place,
                         bool checks) {
  return places.segment(start.getSegments(), start.getTurn(), owner, segment,
                        place, checks);
}

bool Accounts::isOfTurn(Value tensor, Operation *op) {
  auto loop = op->getParentOfType<scf::ForOp>();
  return loop && loop->isAncestor(tensor.getParentRegion()->getParentOp());
}

Holding Accounts::arrived(ring::TransferOpInterface start, unsigned index,
                          const Place &place) {
  Value tensor = start.getTensors()[index];
  // In place of the shard of a rank come heads of all that its group has, or
  // they go: of these the rank is the same.
  if (start.isAllToAll())
    return of(tensor, place);
  Holding holding;
  Side side = sideOf(tensor).value_or(Side::Query);
  // What the sender has, at the same place.
  auto has = [&](const Place &there) {
    if (isOfTurn(tensor, start))
      return sent(start, index, there);
    const Holding &sent = of(tensor, there);
    if (!sent.isGathered)
      return sent.has;
    return sent.has &&
           isEqual(places.index(start.getOwner(), there), ownerOf(side), start);
  };
  if (start.isGather()) {
    holding.isGathered = true;
    holding.present = [=, this](const Index &owner,
                                const Index &segment) mutable {
      Index distance = places.remainder(place.rank - owner, start);
      return places.segment(start.getSegments(), distance, owner, segment,
                            place);
    };
    if (isAccount(tensor))
      holding.has = holding.present(ownerOf(side), segmentOf(side)) &&
                    has(place.on(ownerOf(side)));
    return holding;
  }
  Index owner = places.index(start.getReceivedOwner(), place);
  holding.owner = owner;
  holding.present = [=, this](const Index &, const Index &segment) mutable {
    return isSent(start, owner, segment, place);
  };
  if (isAccount(tensor)) {
    Index from =
        places.peer(start, places.index(start.getFrom(), place), place.rank);
    holding.has =
        holding.present(owner, segmentOf(side)) && has(place.on(from));
  }
  return holding;
}

Holding Accounts::received(ring::WaitOp wait, unsigned index,
                           const Place &place) {
  Value token = wait.getToken();
  SmallVector<ring::TransferOpInterface> starts = labels.transfersOf(token);
  if (places.getReason())
    return {};
  if (starts.size() == 1)
    return arrived(starts[0], index, place.at(loopAround(starts[0])));
  // The one of the loop comes first, that in front of it second.
  scf::ForOp loop = loopAround(starts[0]);
  if (!loop || loopAround(starts[1]) != loopAround(loop)) {
    places.refuse(wait, "a transfer that is not waited for in the turn "
                        "behind it");
    return {};
  }
  Place around = place.at(loopAround(loop));
  Index turn =
      isa<BlockArgument>(token) ? place.at(loop).turn : places.endTurn(loop);
  return atFirst(
      loop, turn,
      [&](const Index &) { return arrived(starts[1], index, around); },
      [&](const Index &turn) {
        return arrived(starts[0], index, around.inside(loop, turn - 1));
      },
      wait);
}

//===----------------------------------------------------------------------===//
// What loops carry
//===----------------------------------------------------------------------===//

/// What is carried from outside into the first turn, and from turn to turn.
Holding Accounts::atFirst(scf::ForOp loop, const Index &turn,
                          llvm::function_ref<Holding(const Index &)> first,
                          llvm::function_ref<Holding(const Index &)> other,
                          Operation *op) {
  Index begin = places.firstTurn(loop);
  Holding before = first(begin);
  if (turn == begin)
    return before;
  Holding behind = other(turn);
  Formula isFirst = isEqual(turn, begin, op);
  if (isFirst.isFalse())
    return behind;
  Holding holding = behind;
  // Often one owner says both.
  if (!(other(begin).owner == before.owner)) {
    auto chosen = places.arithmetic.select(isFirst, before.owner, behind.owner);
    if (!chosen)
      places.refuse(op, "owners that are not linear");
    holding.owner = chosen.value_or(0);
  }
  holding.present = [=](const Index &owner, const Index &segment) mutable {
    return (isFirst && before.present(owner, segment)) ||
           (!isFirst && behind.present(owner, segment));
  };
  holding.has = (isFirst && before.has) || (!isFirst && behind.has);
  return holding;
}

/// The transfer of a turn that brings what the next one is given.
static ring::TransferOpInterface broughtBy(scf::ForOp loop, unsigned number) {
  auto wait = loop.getYieldedValues()[number].getDefiningOp<ring::WaitOp>();
  if (!wait)
    return {};
  auto start = wait.getToken().getDefiningOp<ring::TransferOpInterface>();
  return start && start->getParentOp() == loop ? start
                                               : ring::TransferOpInterface();
}

bool Accounts::isKept(scf::ForOp loop, unsigned number) {
  return !broughtBy(loop, number);
}

Holding Accounts::carried(scf::ForOp loop, unsigned number,
                          const Place &place) {
  Value init = loop.getInitArgs()[number];
  if (ring::TransferOpInterface start = broughtBy(loop, number)) {
    unsigned index =
        cast<OpResult>(loop.getYieldedValues()[number]).getResultNumber();
    return atFirst(
        loop, place.turn,
        [&](const Index &) { return of(init, place.around()); },
        [&](const Index &turn) {
          return arrived(start, index, place.in(turn - 1));
        },
        loop);
  }
  Holding holding = of(init, place.around());
  if (isAccount(loop.getRegionIterArg(number)))
    holding.has = kept(loop, number, place);
  return holding;
}

/// What a rank keeps: the pairs that it computed, or that were joined, in the
/// turns before; or what it computed in the first turn, and what has returned
/// from the end of the shard's way, or at once from where it was computed. What
/// an inner loop keeps it has of this turn of the outer one, or of those
/// before.
Formula Accounts::kept(scf::ForOp loop, unsigned number, const Place &place) {
  unsigned invariant = chosen[{loop, number}];
  std::optional<Side> side = sideOf(loop.getRegionIterArg(number));
  bool isByTable = labels.of(loop.getRegionIterArg(number)).tensor == -1;
  const Motion &motion = motionOf(loop);
  const Contract::Need *need = motion.need;
  Index owner = isByTable ? (motion.movesKeys ? p : k)
                          : ownerOf(side.value_or(Side::Query));
  scf::ForOp outer = loopAround(loop);
  Linear turn = places.linear(place.turn - places.firstTurn(loop), loop),
         at = hopsOf(motion, invariant, loop, loop);
  Formula isFirst = equal(at, 0) && atLeast(turn, 1);
  Formula held(false);
  if (!outer && invariant >= numKept)
    held = keptBothWays(motion, invariant - numKept, turn, loop);
  else
    switch (invariant % numKept / 2) {
    case 0:
      held = below(at, turn);
      break;
    case 1:
      held = isFirst;
      if (need->reach && !need->isBothWays) {
        SmallVector<Index> where{motion.movesKeys ? k : p,
                                 motion.movesKeys ? b : a};
        if (outer)
          where.insert(where.begin() + 1,
                       places.ringOf(motion.movesKeys ? p : k, loop));
        Linear reach =
            places.linear(places.number(outer ? need->innerReach : need->reach,
                                        where, {places.rank()}),
                          loop);
        held = held || (atLeast(at, 1) && atLeast(turn, reach + 2));
      }
      break;
    case 2:
      held = isFirst;
      break;
    default:
      held = isFirst || (atLeast(at, 1) && atLeast(turn, at + 2));
    }
  if (outer) {
    Linear ofOuter = places.linear(place.outer - places.firstTurn(outer), loop);
    Linear atOuter = hopsOf(motion, invariant, outer, loop);
    held = held && equal(atOuter, ofOuter);
    if (invariant >= numKept)
      held = held || below(atOuter, ofOuter);
  }
  Index holder = isByTable || !outer
                     ? place.rank
                     : of(loop.getInitArgs()[number], place.around()).owner;
  return needed && isEqual(holder, owner, loop) && held;
}

unsigned Accounts::countKept(scf::ForOp loop) {
  if (loopAround(loop))
    return 2 * numKept;
  return numKept + (places.getIsHalved() ? numKeptBothWays : 0);
}

unsigned Accounts::countSent() {
  return places.getIsHalved() ? numSentBothWays : numSent;
}

/// Of shards that come from both sides: what the rank has met in the turns
/// before, or what was computed with its own one, by itself and, where that has
/// returned, by others. In a first turn the own one is there, or has been
/// before.
Formula Accounts::keptBothWays(const Motion &motion, unsigned invariant,
                               const Linear &turn, Operation *op) {
  const Index &way = motion.way.inner;
  Linear ahead = places.linear(way, op),
         back = places.linear(places.reverse(way, false, op), op);
  Formula isOwn = equal(ahead, 0);
  int64_t before = invariant % 2;
  if (invariant < 2)
    return below(ahead, turn + before) || (!isOwn && atLeast(turn, back));
  Formula held = isOwn && (before == 1 ? Formula(true) : atLeast(turn, 1));
  if (!motion.need->isBothWays)
    return held;
  auto returns = [&](bool isBack, int64_t turns) {
    Index where[] = {motion.movesKeys ? k : p, isBack,
                     motion.movesKeys ? b : a};
    return atLeast(turn, places.linear(places.number(motion.need->reach, where,
                                                     {places.rank()}),
                                       op) +
                             turns);
  };
  Formula isAhead = atLeast(places.linear(places.mostHops(false), op), ahead);
  return held || (!isOwn && isAhead && returns(false, 2 - before)) ||
         (!isOwn && !isAhead && returns(true, 1));
}

/// How far the shard that travels goes round the ring of a loop, or the rest of
/// the way round.
Linear Accounts::hopsOf(const Motion &motion, unsigned invariant,
                        scf::ForOp loop, Operation *op) {
  bool isOuter = places.getNest() && !loopAround(loop);
  const Index &way = isOuter ? motion.way.outer : motion.way.inner;
  return places.linear(
      invariant % 2 == 0 ? way : places.reverse(way, isOuter, op), op);
}

/// What is sent on with a shard: what ranks have computed with it since it left
/// its owner, or with the owner; or what this one has, which returns at once.
Formula Accounts::sent(ring::TransferOpInterface start, unsigned number,
                       const Place &place) {
  unsigned invariant = chosen[{start, number}];
  scf::ForOp loop = loopAround(start), outer = loopAround(loop);
  const Motion &motion = motionOf(loop);
  Linear at = hopsOf(motion, invariant, loop, start);
  // In both directions some have gone a hop before the first turn.
  int64_t before = invariant / numSent;
  invariant %= numSent;
  Index owner = places.index(start.getOwner(), place);
  Linear turn = places.linear(place.turn + before, start);
  Formula isOf = needed && isEqual(owner, motion.movesKeys ? k : p, start);
  if (outer)
    isOf = isOf && equal(hopsOf(motion, invariant, outer, start),
                         places.linear(place.outer, start));
  if (invariant / 2 == 2)
    return isOf && equal(turn, at);
  return isOf && atLeast(at, invariant / 2 == 0 ? 1 : 0) && atLeast(turn, at);
}
