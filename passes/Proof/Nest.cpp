//===- Nest.cpp - places in two rings, or in both directions of one -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// N rings of P ranks: what a rank, a turn or a constant of the text is where
// shards go round in two rings. And P = 2 h + 1, or 2 h, where half of them
// goes round the other way.
//
//===----------------------------------------------------------------------===//
#include "passes/Proof/Places.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

Place Place::around() const {
  scf::ForOp outerLoop = loop ? loopAround(loop) : scf::ForOp();
  return {rank, outerLoop, outer};
}

Place Place::at(scf::ForOp own) const {
  if (own == loop)
    return *this;
  Place found = around();
  return own == found.loop ? found : Place{rank};
}

/// Where transfers go along two of the axes of a sequence apart.
void Places::findNest() {
  SmallVector<RankGroup> groups;
  program.walk([&](ring::TransferOpInterface start) {
    RankGroup group = ring::groupOf(program, start.getChannel().getAxes());
    if (!start.isAllToAll() && group != sequence &&
        !llvm::is_contained(groups, group))
      groups.push_back(group);
  });
  if (groups.size() == 2) {
    auto [outer, inner] = std::pair(groups[0], groups[1]);
    if (outer.stride < inner.stride)
      std::swap(outer, inner);
    if (inner.stride == sequence.stride && inner.size > 1 && outer.size > 1 &&
        outer.stride == inner.stride * inner.size &&
        outer.size * inner.size == parts)
      nest = Nest{outer, inner};
  }
  for (const Contract::Need &need : contract.needs) {
    bool isOfNest =
        need.innerReach &&
        (!nest || cast<ShapedType>(need.innerReach.getType()).getDimSize(1) !=
                      nest->outer.size);
    if (isOfNest || (nest && need.reach && !need.innerReach))
      refuse(program, "what travels in a ring of all ranks beside what does in "
                      "a nest of rings");
  }
}

Index Places::join(const Index &ring, const Index &inner) const {
  return ring * Polynomial::numRanks() + inner;
}

Index Places::numRanks() {
  return nest ? join(arithmetic.numRings(), 0) : Index::numRanks();
}

Index Places::anyRank(const std::string &name) {
  if (isOne())
    return 0;
  Index inner = Index::of(arithmetic.addAtom(name));
  if (!nest)
    return inner;
  return join(Index::of(arithmetic.addAtom(name + ".ring", 1, Modulus::Rings)),
              inner);
}

std::optional<Digits> Places::digits(const Index &x, Operation *op) {
  std::optional<Digits> found = arithmetic.digits(x);
  if (!found)
    refuse(op, "a rank of a nest that is none of a ring");
  return found;
}

Index Places::ringOf(const Index &rank, Operation *op) {
  return digits(rank, op).value_or(Digits()).high;
}

int64_t Places::signOf(Value step) const {
  auto found = llvm::find_if(
      goBack, [&](const auto &chosen) { return chosen.first == step; });
  return found != goBack.end() && found->second ? -1 : 1;
}

Hops Places::hops(const Index &from, const Index &to,
                  const Contract::Need &need, Operation *op) {
  if (!nest)
    return {0, remainder((to - from) * signOf(need.step), op)};
  Digits own = digits(from, op).value_or(Digits()),
         other = digits(to, op).value_or(Digits());
  return {remainder((other.high - own.high) * signOf(need.step), Modulus::Rings,
                    op),
          remainder((other.low - own.low) * signOf(need.innerStep),
                    Modulus::Ranks, op)};
}

Index Places::ahead(const Index &from, const Hops &hops,
                    const Contract::Need &need, Operation *op) {
  if (!nest)
    return remainder(from + hops.inner * signOf(need.step), op);
  Digits own = digits(from, op).value_or(Digits());
  return join(
      remainder(own.high + hops.outer * signOf(need.step), Modulus::Rings, op),
      remainder(own.low + hops.inner * signOf(need.innerStep), Modulus::Ranks,
                op));
}

Index Places::reverse(const Index &hops, bool isOuter, Operation *op) {
  return remainder(Index(0) - hops, isOuter ? Modulus::Rings : Modulus::Ranks,
                   op);
}

Index Places::peer(ring::TransferOpInterface start, const Index &place,
                   const Index &rank) {
  if (!isOfNest(start))
    return place;
  Digits own = digits(rank, start).value_or(Digits());
  return isOuter(start) ? join(place, own.low) : join(own.high, place);
}

bool Places::isOuter(ring::TransferOpInterface start) {
  return nest &&
         ring::groupOf(program, start.getChannel().getAxes()) == nest->outer;
}

bool Places::isOfNest(ring::TransferOpInterface start) {
  return nest &&
         ring::groupOf(program, start.getChannel().getAxes()) != sequence;
}

Formula Places::isPeer(ring::TransferOpInterface start, const Index &place) {
  Index end = isOuter(start)    ? arithmetic.numRings()
              : isOfNest(start) ? Index::numRanks()
                                : numRanks();
  return isAtLeast(place, 0, start) && isBelow(place, end, start);
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

Index Places::nextTurn(scf::ForOp loop, const Index &turn) {
  std::optional<int64_t> past = (endTurn(loop) - Index::numRanks()).getNumber();
  if (!loopAround(loop) || !past || *past > 0)
    return turn + 1;
  auto [known, isNew] = nextTurns.try_emplace({loop, turn}, 0);
  if (isNew) {
    Atom atom = arithmetic.addAtom("next");
    known->second = Index::of(atom);
    Formula goesOn = isBelow(turn + 1, endTurn(loop), loop);
    arithmetic.addFact(
        atom, isBelow(known->second, endTurn(loop), loop) &&
                  implies(goesOn, isEqual(known->second, turn + 1, loop)));
  }
  return known->second;
}

//===----------------------------------------------------------------------===//
// Constants of a text
//===----------------------------------------------------------------------===//

/// In a nest, beside an index of some kind. What it is read as may be wrong,
/// and what is proved then is no less true of this program.
Index Places::constant(int64_t value, Kind kind, bool isExact) {
  auto isAbout = [&](int64_t size) {
    return value == size ||
           (!isExact && value > 1 && std::abs(value - size) == 1);
  };
  const RankGroup &inner = nest->inner, &outer = nest->outer;
  switch (kind) {
  case Kind::Number:
    break;
  case Kind::Whole: // of so many rings
    if (value % inner.size == 0 &&
        std::abs(value / inner.size - outer.size) <= 1)
      return join(arithmetic.numRings() + (value / inner.size - outer.size), 0);
    [[fallthrough]];
  case Kind::Ranks:
  case Kind::Rows:
    if (isAbout(inner.size))
      return Index::numRanks() + Index(value - inner.size);
    break;
  case Kind::Rings:
    if (isAbout(outer.size))
      return arithmetic.numRings() + Index(value - outer.size);
    break;
  }
  return value;
}

Places::Kind Places::kindOf(const Index &x) const {
  Kind kind = Kind::Number;
  if (!x.getConstant().isConstant())
    kind = Kind::Ranks;
  for (const auto &[atom, coefficient] : x.getTerms()) {
    if (!coefficient.isConstant())
      return coefficient[0] == 0 ? Kind::Whole : Kind::Rows;
    bool isOfRings = arithmetic.isNumRings(atom) ||
                     (arithmetic.isBounded(atom) &&
                      arithmetic.modulusOf(atom) == Modulus::Rings);
    if (isOfRings || arithmetic.isBounded(atom))
      kind = isOfRings ? Kind::Rings : Kind::Ranks;
  }
  return kind;
}

/// A direction may be the number 1.
Places::Kind Places::kindOf(Value value, const Index &x) const {
  for (const Contract::Need &need : contract.needs) {
    if (value == need.step)
      return Kind::Rings;
    if (value == need.innerStep)
      return Kind::Ranks;
  }
  return kindOf(x);
}

/// The size of a table of a nest along which an index counts: a ring has a row
/// for each of its turns, and one.
Index Places::endOf(int64_t size, Kind kind, bool isOfRanks) {
  if (!isOfRanks)
    return size;
  if (kind == Kind::Rows && size == nest->outer.size * (nest->inner.size + 1))
    return arithmetic.numRings() * (Polynomial::numRanks() += 1);
  return constant(size, kind);
}

//===----------------------------------------------------------------------===//
// Both directions
//===----------------------------------------------------------------------===//

/// Numbers about P / 2 are no others where there are 6 ranks or more.
void Places::findHalves() {
  isHalved = !nest && parts >= 6 &&
             llvm::any_of(program.getOps<scf::ForOp>(), [&](scf::ForOp loop) {
               IntegerAttr end;
               return matchPattern(loop.getUpperBound(), m_Constant(&end)) &&
                      std::abs(end.getInt() - parts / 2) <= 1;
             });
}

/// P / 2: odd and even numbers of ranks have other texts, each with its proof.
Index Places::half() {
  if (!halfOfRanks) {
    Atom atom = arithmetic.addAtom("h");
    Linear numRanks = *Arithmetic::linear(Index::numRanks());
    arithmetic.addFact(
        atom, atLeast(numRanks, 3) &&
                  equal(numRanks, Linear::unknown(atom) * 2 + parts % 2));
    halfOfRanks = Index::of(atom);
  }
  return *halfOfRanks;
}

Index Places::mostHops(bool isBack) {
  return isBack || parts % 2 == 1 ? half() : half() - 1;
}

std::optional<Index> Places::asHalf(int64_t value) {
  if (!isHalved || std::abs(value - parts / 2) > 1)
    return std::nullopt;
  return half() + (value - parts / 2);
}

//===----------------------------------------------------------------------===//
// The contract
//===----------------------------------------------------------------------===//

/// What goes round in a ring has come to it.
void Places::addInnerContract(const Contract::Need &need, ArrayRef<Index> at,
                              Atom atom) {
  Operation *op = need.pairs.getDefiningOp();
  Index where[] = {at[0], at[2]};
  Index reach = number(need.reach, where, Place{genericRank});
  Index hops = remainder((at[1] - ringOf(at[0], op)) * signOf(need.step),
                         Modulus::Rings, op);
  arithmetic.addFact(atom, implies(atLeast(Linear::unknown(atom), 1),
                                   isAtLeast(reach, hops, op)));
}
