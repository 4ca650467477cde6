//===- Places.cpp - scalars of a program at a rank and a turn -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Places.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

/// Scalar code that is deeper, or of which more has to be evaluated, is not
/// looked at, nor a formula that is larger.
static constexpr int mostDepth = 500;
static constexpr int64_t mostEvaluated = 1 << 19;
static constexpr uint64_t largestFormula = 1 << 14;

namespace burst::proof {

bool operator<(const Place &a, const Place &b) {
  Operation *loopA = a.loop, *loopB = b.loop;
  return std::tie(loopA, a.rank, a.turn, a.outer) <
         std::tie(loopB, b.rank, b.turn, b.outer);
}

scf::ForOp loopAround(Operation *op) {
  return dyn_cast<scf::ForOp>(op->getParentOp());
}

scf::ForOp loopOf(Value value) {
  return dyn_cast<scf::ForOp>(value.getParentRegion()->getParentOp());
}

/// Where scalar code is evaluated: in the program at a place, in a function
/// that is called there, in the region that gives the entries of a table.
struct Scope {
  const Place &place;
  const Scope *outer = nullptr;
  mutable func::CallOp call = {}; ///< of the function that this is the body of
  ValueRange arguments = {};      ///< of a region, and their values
  ArrayRef<Index> values = {};    ///< or of one carried index
  bool checks = false;            ///< whether conditions are noted
  bool remembers = false;         ///< whether this is a place of the program
  std::map<void *, std::pair<Index, Formula>> *known = nullptr; ///< in it
};

} // namespace burst::proof

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Places::Places(func::FuncOp program, const Contract &contract,
               ArrayRef<std::pair<Value, bool>> goBack, Arithmetic &arithmetic)
    : arithmetic(arithmetic), program(program), contract(contract),
      sequence(ring::shardingOf(program).sequence), parts(sequence.size),
      goBack(goBack) {
  findNest();
  findHalves();
  genericRank = anyRank("r");
}

void Places::refuse(Operation *op, const Twine &why) {
  if (!reason)
    reason = Reason{op, why.str()};
}

void Places::require(Operation *op, std::string what, Formula formula) {
  if (!formula.isTrue())
    conditions.push_back({op, std::move(what), std::move(formula)});
}

Place Places::generic(scf::ForOp loop) {
  if (!loop)
    return {genericRank};
  return generic(loopAround(loop)).inside(loop, turnOf(loop));
}

Linear Places::linear(const Index &x, Operation *op) {
  if (std::optional<Linear> found = Arithmetic::linear(x))
    return *found;
  refuse(op, "an index is not linear in what is not the number of ranks");
  return 0;
}

Formula Places::isEqual(const Index &x, const Index &y, Operation *op) {
  if (std::optional<Formula> found = arithmetic.isZero(x - y))
    return *found;
  linear(x - y, op);
  return Formula(false);
}

Formula Places::isAtLeast(const Index &x, const Index &y, Operation *op) {
  if (std::optional<Formula> found = arithmetic.isAtLeastZero(x - y))
    return *found;
  linear(x - y, op);
  return Formula(false);
}

Index Places::remainder(const Index &x, Modulus modulus, Operation *op) {
  if (std::optional<Remainder> found = arithmetic.remainder(x, modulus))
    return found->value;
  refuse(op, "a remainder of what may be of any size");
  return 0;
}

/// By the number of all ranks.
Index Places::remainder(const Index &x, Operation *op) {
  if (!nest)
    return remainder(x, Modulus::Ranks, op);
  Digits found = digits(x, op).value_or(Digits());
  return join(remainder(found.high, Modulus::Rings, op), found.low);
}

/// A constant, where those that depend on the number of ranks are read so.
Index Places::constant(int64_t value) const {
  if (!isOne() && !nest && value >= parts - 1 && value <= parts + 1)
    return Index::numRanks() + Index(value - parts);
  return value;
}

const Places::Bounds &Places::boundsOf(scf::ForOp loop) {
  auto [known, isNew] = bounds.try_emplace(loop);
  if (!isNew)
    return known->second;
  Bounds made;
  Place top{genericRank};
  Index step = index(loop.getStep(), top);
  made.first = index(loop.getLowerBound(), top);
  made.end = index(loop.getUpperBound(), top);
  Modulus modulus = nest && !loopAround(loop) ? Modulus::Rings : Modulus::Ranks;
  if (std::optional<int64_t> end = made.end.getNumber(); nest && end) {
    const RankGroup &ring =
        modulus == Modulus::Rings ? nest->outer : nest->inner;
    if (std::abs(*end - ring.size) <= 1)
      made.end = arithmetic.numberOf(modulus) + (*end - ring.size);
  }
  // Turns of which ranks differ would be turns of which they do not meet.
  Index past = made.end - arithmetic.numberOf(modulus);
  if (std::optional<int64_t> end = made.end.getNumber(); isHalved && end)
    if (std::optional<Index> read = asHalf(*end)) {
      made.end = *read;
      past = 0;
    }
  if (step.getNumber() != 1 || !made.first.getNumber() ||
      *made.first.getNumber() < 0 || !past.getNumber() ||
      *past.getNumber() > 1 ||
      // Of two ranks there is no turn less than none.
      *past.getNumber() + 2 < *made.first.getNumber()) {
    refuse(loop,
           "a loop whose turns are not those of 1, 2, 3, ... up to about P");
    made.end = arithmetic.numberOf(modulus);
    made.first = 0;
  }
  Atom turn = arithmetic.addAtom("t", past.getNumber().value_or(0) > 0 ? 2 : 1,
                                 modulus);
  Linear own = Linear::unknown(turn);
  arithmetic.addFact(turn, atLeast(own, linear(made.first, loop)) &&
                               below(own, linear(made.end, loop)));
  made.turn = Index::of(turn);
  // There may be new loops since.
  return bounds[loop] = made;
}

Index Places::turnOf(scf::ForOp loop) { return *boundsOf(loop).turn; }

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Index Places::index(Value value, const Place &place) {
  return evaluate(value, {.place = place, .remembers = true}).index;
}

/// Whether a value is one of the program, in front of or in a loop.
static bool isOfProgram(Value value, func::FuncOp program) {
  Operation *parent = value.getParentRegion()->getParentOp();
  return parent == program ||
         (isa<scf::ForOp>(parent) &&
          parent->getParentOfType<func::FuncOp>() == program);
}

Places::Scalar Places::evaluate(Value value, const Scope &scope) {
  if (depth == mostDepth || ++numEvaluated > mostEvaluated)
    refuse(value.getParentRegion()->getParentOp(),
           "scalar code that is too long");
  if (reason)
    return {};
  ++depth;
  Scalar found = evaluateIn(value, scope);
  --depth;
  if (found.truth.getSize() > largestFormula)
    refuse(value.getParentRegion()->getParentOp(),
           "flags that depend on too much");
  return found;
}

Places::Scalar Places::evaluateIn(Value value, const Scope &scope) {
  for (const Scope *s = &scope; s; s = s->outer)
    for (auto [argument, bound] : llvm::zip(s->arguments, s->values))
      if (argument == value)
        return {bound};
  const Scope *own = &scope;
  if (isOfProgram(value, program))
    while (own->outer)
      own = own->outer;
  auto make = [&]() -> Scalar {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return ofArgument(argument, *own);
    auto result = cast<OpResult>(value);
    if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
      return closedForm(
          loop, result.getResultNumber(),
          own->place.at(loopAround(loop)).inside(loop, endTurn(loop)));
    if (isa<func::CallOp>(result.getOwner()))
      return ofCall(result, *own);
    std::optional<RankGroup> place = ring::matchPlace(program, result);
    if (place == sequence)
      return {own->place.rank};
    if (nest && place == nest->outer)
      return {ringOf(own->place.rank, result.getOwner())};
    return compute(result.getOwner(), *own);
  };
  if (!own->remembers && own->known) {
    void *key = value.getAsOpaquePointer();
    if (auto found = own->known->find(key); found != own->known->end())
      return {found->second.first, found->second.second};
    Scalar made = make();
    own->known->emplace(key, std::pair(made.index, made.truth));
    return made;
  }
  if (!own->remembers)
    return make();
  std::pair key(value.getAsOpaquePointer(), own->place);
  if (auto found = known.find(key); found != known.end())
    return found->second;
  Scalar made = make();
  known.emplace(key, made);
  return made;
}

Places::Scalar Places::ofArgument(BlockArgument argument, const Scope &scope) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    Place place = scope.place.at(loop);
    if (loop != place.loop) {
      refuse(loop, "what a loop carries, outside of it");
      return {};
    }
    if (argument.getArgNumber() == 0)
      return {place.turn};
    return closedForm(loop, argument.getArgNumber() - 1, place);
  }
  for (const Scope *s = &scope; s; s = s->outer)
    if (s->call && parent == calleeOf(s->call))
      return evaluate(s->call.getOperand(argument.getArgNumber()), *s->outer);
  refuse(parent, "an argument decides what is sent");
  return {};
}

Places::Scalar Places::ofCall(OpResult result, const Scope &scope) {
  for (const auto &[value, isBack] : goBack)
    if (value == result) {
      if (!isBack)
        return {1};
      bool isOuter = nest && kindOf(value, 0) == Kind::Rings;
      return {arithmetic.numberOf(isOuter ? Modulus::Rings : Modulus::Ranks) -
              1};
    }
  refuse(result.getOwner(), "a number that a function computes");
  return {};
}

Places::Scalar Places::compute(Operation *op, const Scope &scope) {
  auto operand = [&](unsigned number) {
    return evaluate(op->getOperand(number), scope);
  };
  auto index = [&](unsigned number) { return operand(number).index; };
  auto truth = [&](unsigned number) { return operand(number).truth; };
  bool isFlag =
      op->getNumResults() == 1 && op->getResult(0).getType().isInteger(1);
  bool isIndex =
      op->getNumResults() == 1 && op->getResult(0).getType().isIndex();
  bool isLogic = isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op);
  bool isArithmetic =
      isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::RemUIOp>(op);
  if ((isLogic && !isFlag) || (isArithmetic && !isIndex) ||
      (isa<arith::SelectOp>(op) && !isFlag && !isIndex)) {
    refuse(op,
           "arithmetic of other than indices, or logic of other than flags");
    return {};
  }
  return llvm::TypeSwitch<Operation *, Scalar>(op)
      .Case<arith::ConstantOp>([&](arith::ConstantOp op) -> Scalar {
        auto value = dyn_cast<IntegerAttr>(op.getValue());
        if (!value) {
          refuse(op, "a constant that is no index");
          return {};
        }
        if (isFlag)
          return {0, Formula(value.getValue().getBoolValue())};
        if (nest)
          return {value.getInt()};
        // Functions count segments, of which there may be P - 1.
        bool isOfFunction = op->getParentOfType<func::FuncOp>() != program;
        if (isOfFunction && value.getInt() != parts)
          return {value.getInt()};
        return {constant(value.getInt())};
      })
      .Case<shard::GridShapeOp>([&](shard::GridShapeOp op) -> Scalar {
        SmallVector<int64_t> axes(op.getAxes().begin(), op.getAxes().end());
        bool isOfSequence =
            op.getNumResults() == 1 && ring::groupOf(program, axes) == sequence;
        if (isOfSequence)
          return {Index::numRanks()};
        refuse(op, "the size of an axis along which nothing travels");
        return {};
      })
      .Case<arith::AddIOp>([&](auto) -> Scalar {
        auto [a, b] = pairOf(op, scope);
        return {a + b};
      })
      .Case<arith::SubIOp>([&](auto) -> Scalar {
        auto [a, b] = pairOf(op, scope);
        return {a - b};
      })
      .Case<arith::MulIOp>([&](auto) -> Scalar {
        if (auto product =
                Arithmetic::multiply(factor(op->getOperand(0), scope),
                                     factor(op->getOperand(1), scope)))
          return {*product};
        refuse(op, "a product of two numbers that depend on ranks or turns");
        return {};
      })
      .Case<arith::RemUIOp>([&](auto) { return remainderOf(op, scope); })
      .Case<arith::DivUIOp>([&](auto) { return divide(op, scope); })
      .Case<arith::AndIOp>(
          [&](auto) -> Scalar { return {0, truth(0) && truth(1)}; })
      .Case<arith::OrIOp>(
          [&](auto) -> Scalar { return {0, truth(0) || truth(1)}; })
      .Case<arith::XOrIOp>([&](auto) -> Scalar {
        Formula a = truth(0), b = truth(1);
        return {0, (a && !b) || (!a && b)};
      })
      .Case<arith::CmpIOp>(
          [&](arith::CmpIOp compared) { return compare(compared, scope); })
      .Case<arith::SelectOp>([&](auto) -> Scalar {
        Formula condition = truth(0);
        if (isFlag)
          return {0, (condition && truth(1)) || (!condition && truth(2))};
        if (auto chosen = arithmetic.select(condition, index(1), index(2)))
          return {*chosen};
        refuse(op, "a choice between what is not linear");
        return {};
      })
      .Case<tensor::ExtractOp>([&](tensor::ExtractOp extract) {
        auto at = llvm::map_to_vector(extract.getIndices(), [&](Value value) {
          return evaluate(value, scope).index;
        });
        return entry(extract.getTensor(), at, scope);
      })
      .Default([&](Operation *) -> Scalar {
        refuse(op, "not an op of which a proof knows what it computes");
        return {};
      });
}

Places::Scalar Places::compare(arith::CmpIOp op, const Scope &scope) {
  if (!op.getLhs().getType().isIndex()) {
    refuse(op, "a comparison of other than indices");
    return {};
  }
  auto [a, b] = pairOf(op, scope);
  bool isUnsigned = op.getPredicate() >= arith::CmpIPredicate::ult;
  if (isUnsigned && scope.checks)
    require(op, "an index does not wrap",
            isAtLeast(a, 0, op) && isAtLeast(b, 0, op));
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return {0, isEqual(a, b, op)};
  case arith::CmpIPredicate::ne:
    return {0, !isEqual(a, b, op)};
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return {0, isBelow(a, b, op)};
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return {0, isAtLeast(b, a, op)};
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return {0, isBelow(b, a, op)};
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return {0, isAtLeast(a, b, op)};
  }
  llvm_unreachable("unknown predicate");
}

/// Both operands; in a nest a constant is read by what the other one counts.
std::pair<Index, Index> Places::pairOf(Operation *op, const Scope &scope) {
  Value values[] = {op->getOperand(0), op->getOperand(1)};
  Index found[] = {evaluate(values[0], scope).index,
                   evaluate(values[1], scope).index};
  // In regions a turn is compared with numbers like 1; those of a loop go on by
  // one.
  bool isOfPlace = isOfProgram(op->getResult(0), program);
  for (int own : {0, 1}) {
    IntegerAttr number;
    Value other = values[1 - own];
    // In tables of turns, which stand in the program.
    if (isHalved && isa<arith::CmpIOp>(op) &&
        op->getParentOfType<func::FuncOp>() == program &&
        matchPattern(values[own], m_Constant(&number)))
      found[own] = asHalf(number.getInt()).value_or(found[own]);
    if (!nest || !matchPattern(values[own], m_Constant(&number)))
      continue;
    scf::ForOp loop = loopOf(other);
    bool isTurn = loop && loop.getInductionVar() == other;
    found[own] = constant(number.getInt(), kindOf(other, found[1 - own]),
                          /*isExact=*/!isOfPlace || isTurn);
  }
  return {found[0], found[1]};
}

/// Of a product: in a nest a constant is how far rings, or their rows of a
/// table with a turn more than ranks, are apart.
Index Places::factor(Value value, const Scope &scope) {
  IntegerAttr number;
  if (nest && matchPattern(value, m_Constant(&number)))
    if (int64_t past = number.getInt() - nest->inner.size;
        past == 0 || past == 1)
      return Index::numRanks() + Index(past);
  return evaluate(value, scope).index;
}

/// The constant by which a number of a nest is divided, and that number.
Places::Scalar Places::divide(Operation *op, const Scope &scope) {
  Index of = evaluate(op->getOperand(0), scope).index;
  Index by = factor(op->getOperand(1), scope);
  std::optional<int64_t> past = (by - Index::numRanks()).getNumber();
  std::optional<Digits> found;
  if (nest && past)
    found = arithmetic.digits(of, *past);
  if (!found) {
    refuse(op, "a division by other than the number of ranks in a ring");
    return {};
  }
  if (scope.checks && !isNeverNegative(of))
    require(op, "an index does not wrap", isAtLeast(of, 0, op));
  return {found->high};
}

Places::Scalar Places::remainderOf(Operation *op, const Scope &scope) {
  Index of = evaluate(op->getOperand(0), scope).index,
        by = evaluate(op->getOperand(1), scope).index;
  IntegerAttr number;
  if (nest && matchPattern(op->getOperand(1), m_Constant(&number))) {
    Kind kind = kindOf(of);
    by = constant(number.getInt(), kind);
    if (kind == Kind::Rows || (kind == Kind::Whole && !(by == numRanks())))
      by = factor(op->getOperand(1), scope);
  }
  if (scope.checks && !isNeverNegative(of))
    require(op, "an index does not wrap", isAtLeast(of, 0, op));
  if (by == numRanks())
    return {remainder(of, op)};
  if (nest && by == Index::numRanks())
    return {remainder(of, Modulus::Ranks, op)};
  if (nest && by == arithmetic.numRings())
    return {remainder(of, Modulus::Rings, op)};
  if (nest && by == Index::numRanks() + 1)
    if (std::optional<Digits> found = arithmetic.digits(of, 1))
      return {found->low};
  refuse(op, "a remainder by another number than that of ranks");
  return {};
}

/// Whether what an op computes decides what a rank does. What is required of
/// tables, and what functions are given, does not.
bool Places::steers(Operation *op) {
  if (!steering) {
    steering.emplace();
    // Users come first.
    program.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      bool found = llvm::any_of(op->getUsers(), [&](Operation *user) {
        bool isScalar =
            isa<arith::ArithDialect, tensor::TensorDialect>(user->getDialect());
        if (isScalar && !isa<tensor::YieldOp>(user))
          return steering->contains(user);
        return !isa<ring::RequireOp, func::CallOp>(user);
      });
      if (found)
        steering->insert(op);
    });
  }
  return steering->contains(op);
}

/// Whether it is so by the signs of its terms alone.
bool Places::isNeverNegative(const Index &x) const {
  auto isPositive = [](const Polynomial &coefficient) {
    for (size_t i = 0; i < coefficient.size(); ++i)
      if (coefficient[i] < 0)
        return false;
    return true;
  };
  // Nor is t (P - 1), for any t that is not.
  auto isMultiple = [](const Polynomial &coefficient) {
    return coefficient.size() == 2 && coefficient[0] == -1 &&
           coefficient[1] == 1;
  };
  return isPositive(x.getConstant()) &&
         llvm::all_of(x.getTerms(), [&](const auto &term) {
           return arithmetic.isBounded(term.first) &&
                  (isPositive(term.second) || isMultiple(term.second));
         });
}

/// What ends a program where it goes wrong, whatever it is for.
void Places::checkNoFault(Operation *op, const Scope &scope) {
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::RemSIOp, arith::RemUIOp,
          arith::CeilDivUIOp, arith::CeilDivSIOp, arith::FloorDivSIOp>(op)) {
    APInt divisor;
    if (!matchPattern(op->getOperand(1), m_ConstantInt(&divisor)) ||
        divisor.isZero())
      refuse(op, "a division by what may be 0");
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    auto at = llvm::map_to_vector(extract.getIndices(), [&](Value value) {
      return evaluate(value, scope).index;
    });
    require(op, "a table has the entry that is read",
            isInside(extract.getTensor(), at));
  }
  // Of a table that the program itself makes, all entries are made.
  if (isa<tensor::GenerateOp>(op))
    op->walk([&](Operation *inner) {
      if (isa<tensor::ExtractOp>(inner))
        refuse(inner, "an entry of a table in that of another one");
      else if (inner != op)
        checkNoFault(inner, scope);
    });
}

void Places::check(Operation *op, const Place &place) {
  Scope operands{.place = place, .remembers = true};
  checkNoFault(op, operands);
  if (!isa<arith::RemUIOp, arith::DivUIOp, arith::CmpIOp, tensor::ExtractOp>(
          op) ||
      !steers(op))
    return;
  Scope scope{.place = place, .outer = &operands, .checks = true};
  compute(op, scope);
}

//===----------------------------------------------------------------------===//
// What loops carry
//===----------------------------------------------------------------------===//

/// What is added, modulo P, to a carried index in each turn; none where it
/// becomes something else.
std::optional<Places::Steps> Places::stepOf(scf::ForOp loop, unsigned number) {
  BlockArgument argument = loop.getRegionIterArg(number);
  auto [found, isNew] = carriedSteps.try_emplace(argument);
  if (!isNew)
    return found->second;
  Index carried = anyRank("carried");
  Place place = generic(loop);
  Value values[] = {argument};
  std::map<void *, std::pair<Index, Formula>> known;
  Scope scope{.place = place,
              .arguments = ValueRange(values),
              .values = ArrayRef(carried),
              .known = &known};
  Index next = evaluate(loop.getYieldedValues()[number], scope).index;
  if (!nest) {
    std::optional<int64_t> step =
        (arithmetic.reduce(next) - carried).getNumber();
    return carriedSteps[argument] =
               step ? std::optional(Steps{0, *step}) : std::nullopt;
  }
  std::optional<Digits> before = arithmetic.digits(carried),
                        behind = arithmetic.digits(next);
  if (!before || !behind)
    return carriedSteps[argument] = std::nullopt;
  auto difference = [&](const Index &x, const Index &y, Modulus modulus) {
    return (arithmetic.reduce(x, modulus) - y).getNumber();
  };
  std::optional<int64_t> outer = difference(behind->high, before->high,
                                            Modulus::Rings),
                         inner = difference(behind->low, before->low,
                                            Modulus::Ranks);
  return carriedSteps[argument] = outer && inner
                                      ? std::optional(Steps{*outer, *inner})
                                      : std::nullopt;
}

Places::Scalar Places::closedForm(scf::ForOp loop, unsigned number,
                                  const Place &place) {
  if (!loop.getRegionIterArg(number).getType().isIndex()) {
    refuse(loop, "a loop carries a scalar that is no index");
    return {};
  }
  std::optional<Steps> step = stepOf(loop, number);
  if (!step) {
    refuse(loop, "a loop carries an index that does not change by a constant "
                 "modulo the number of ranks");
    return {};
  }
  Index first = index(loop.getInitArgs()[number], place.around());
  Index turns = place.turn - firstTurn(loop);
  if (!nest)
    return {remainder(first + turns * Polynomial(step->inner), loop)};
  auto after = [&](const Index &x, int64_t step, Modulus modulus) {
    return step == 0 ? x
                     : remainder(x + turns * Polynomial(step), modulus, loop);
  };
  Digits found = digits(first, loop).value_or(Digits());
  return {join(after(found.high, step->outer, Modulus::Rings),
               after(found.low, step->inner, Modulus::Ranks))};
}

void Places::checkCarried(scf::ForOp loop, unsigned number) {
  Place here = generic(loop);
  auto form = [&](const Index &turn) {
    return closedForm(loop, number, here.in(turn)).index;
  };
  Index first = index(loop.getInitArgs()[number], here.around());
  Index next = index(loop.getYieldedValues()[number], here);
  require(loop, "a carried index is that of the first turn",
          isEqual(first, form(firstTurn(loop)), loop));
  require(loop, "a carried index is that of the next turn",
          isEqual(next, form(here.turn + 1), loop));
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

Formula Places::flag(Value table, ArrayRef<Index> at, const Place &place,
                     bool checks) {
  Scope root{.place = place, .checks = checks, .remembers = true};
  return entry(table, at, root).truth;
}

Index Places::number(Value table, ArrayRef<Index> at, const Place &place) {
  Scope root{.place = place, .remembers = true};
  return entry(table, at, root).index;
}

Formula Places::segment(Value table, Value turn, const Index &owner,
                        const Index &segment, const Place &place, bool checks) {
  return this->segment(table, table ? turnIndex(turn, place) : Index(0), owner,
                       segment, place, checks);
}

/// In a nest a constant is a turn behind the ring that stands there.
Index Places::turnIndex(Value turn, const Place &place) {
  IntegerAttr number;
  if ((!nest && !isHalved) || !matchPattern(turn, m_Constant(&number)))
    return index(turn, place);
  if (isHalved)
    return asHalf(number.getInt()).value_or(index(turn, place));
  return constant(number.getInt(), place.loop ? Kind::Ranks : Kind::Rings);
}

Formula Places::segment(Value table, const Index &turn, const Index &owner,
                        const Index &segment, const Place &place, bool checks) {
  if (!table)
    return Formula(true);
  ArrayRef<int64_t> shape = cast<ShapedType>(table.getType()).getShape();
  Index at[] = {shape[0] == 1 ? Index(0) : owner, turn,
                shape[2] == 1 ? Index(0) : segment};
  return flag(table, at, place, checks);
}

/// Whether a table has such an entry.
Formula Places::isInside(Value table, ArrayRef<Index> at) {
  std::vector<Formula> inside;
  auto shape = cast<ShapedType>(table.getType()).getShape();
  for (auto [d, size, index] : llvm::enumerate(shape, at)) {
    // Ranks or turns come first, then segments, of all ranks too.
    bool isOfRanks = d + 1 < std::min<size_t>(shape.size(), 3);
    Index end = nest ? endOf(size, kindOf(index), isOfRanks)
                : isOfRanks && !index.getNumber()
                    ? asHalf(size).value_or(constant(size))
                : isOfRanks ? constant(size)
                            : Index(size);
    if (!isOfRanks && !isOne() && !nest && size > 2 && size % parts == 0)
      end = Index::numRanks() * Polynomial(size / parts);
    Operation *op = table.getDefiningOp();
    inside.push_back(isAtLeast(index, 0, op) && isBelow(index, end, op));
  }
  return Formula::all(std::move(inside));
}

/// Whether entries of a table can be read through: its region is scalar code
/// of which evaluate knows the ops.
bool Places::isReadable(Operation *op, int depth) {
  if (depth == mostDepth)
    return false;
  if (auto found = readable.find(op); found != readable.end())
    return found->second;
  auto isRead = [&](Value value) {
    Operation *from = value.getDefiningOp();
    return !from || isReadable(from, depth + 1);
  };
  bool made = false;
  if (isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp,
          arith::RemUIOp, arith::DivUIOp, arith::AndIOp, arith::OrIOp,
          arith::XOrIOp, arith::CmpIOp, arith::SelectOp, tensor::YieldOp>(op)) {
    made = llvm::all_of(op->getOperands(), isRead);
  } else if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    // Another table that the function gives is an opaque one, if need be.
    Value table = extract.getTensor();
    bool isGiven =
        llvm::any_of(table.getUsers(), llvm::IsaPred<func::ReturnOp>);
    made = (isGiven || isRead(table)) &&
           llvm::all_of(extract.getIndices(), isRead);
  } else if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    made = isReadable(generate.getBody().front().getTerminator(), depth + 1);
  }
  return readable[op] = made;
}

Places::Scalar Places::generated(tensor::GenerateOp op, ArrayRef<Index> at,
                                 const Scope &scope) {
  Block &body = op.getBody().front();
  std::map<void *, std::pair<Index, Formula>> known;
  Scope inside{.place = scope.place,
               .outer = &scope,
               .arguments = body.getArguments(),
               .values = at,
               .checks = scope.checks,
               .known = &known};
  return evaluate(body.getTerminator()->getOperand(0), inside);
}

Places::Scalar Places::constantEntry(Value table, DenseElementsAttr values,
                                     ArrayRef<Index> at) {
  auto scalar = [&](const APInt &value) -> Scalar {
    if (values.getElementType().isInteger(1))
      return {0, Formula(value.getBoolValue())};
    return {constant(value.getSExtValue())};
  };
  if (values.isSplat())
    return scalar(values.getSplatValue<APInt>());
  int64_t offset = 0;
  for (auto [size, index] : llvm::zip(values.getType().getShape(), at)) {
    std::optional<int64_t> number = index.getNumber();
    if (!number || *number < 0 || *number >= size) {
      refuse(table.getDefiningOp(), "a table of constants that differ");
      return {};
    }
    offset = offset * size + *number;
  }
  return scalar(*(values.value_begin<APInt>() + offset));
}

Places::Scalar Places::entry(Value table, ArrayRef<Index> at,
                             const Scope &scope) {
  if (scope.checks)
    require(table.getDefiningOp() ? table.getDefiningOp()
                                  : table.getParentRegion()->getParentOp(),
            "a table has the entry that is read", isInside(table, at));
  if (auto argument = dyn_cast<BlockArgument>(table)) {
    for (const Scope *s = &scope; s; s = s->outer)
      if (s->call && argument.getOwner()->getParentOp() == calleeOf(s->call)) {
        Scope outer = *s->outer;
        outer.checks = scope.checks;
        return entry(s->call.getOperand(argument.getArgNumber()), at, outer);
      }
    // The same on all ranks, and in all turns.
    if (argument.getOwner() == &program.getBody().front() &&
        !program.getArgAttr(argument.getArgNumber(), ring::shardAttr))
      return opaque(table, at, scope);
    refuse(argument.getOwner()->getParentOp(),
           "a table of flags that ranks may not have in common");
    return {};
  }
  Operation *op = table.getDefiningOp();
  DenseElementsAttr values;
  if (matchPattern(table, m_Constant(&values)) && values &&
      values.getElementType().isIntOrIndex())
    return constantEntry(table, values, at);
  if (auto call = dyn_cast<func::CallOp>(op)) {
    func::FuncOp callee = calleeOf(call);
    Value given = callee.getBody().front().getTerminator()->getOperand(
        cast<OpResult>(table).getResultNumber());
    auto generate = given.getDefiningOp<tensor::GenerateOp>();
    // The contract is of what stands in a table, wherever it comes from.
    bool isReach =
        llvm::any_of(contract.needs, [&](const Contract::Need &need) {
          return table == need.reach || table == need.innerReach;
        });
    if (isReach || !generate || !isReadable(generate))
      return opaque(table, at, scope);
    Scope inside{.place = scope.place,
                 .outer = &scope,
                 .call = call,
                 .checks = scope.checks};
    return generated(generate, at, inside);
  }
  auto generate = dyn_cast<tensor::GenerateOp>(op);
  if (generate && isReadable(generate))
    return generated(generate, at, scope);
  // In a function: what it gives besides.
  for (const Scope *s = &scope; s; s = s->outer)
    if (s->call && op->getParentOfType<func::FuncOp>() == calleeOf(s->call)) {
      Operation *end = calleeOf(s->call).getBody().front().getTerminator();
      for (auto [number, given] : llvm::enumerate(end->getOperands()))
        if (given == table)
          return opaque(s->call.getResult(number), at, *s->outer);
    }
  refuse(op, "a table of which a proof knows no entry");
  return {};
}

/// An entry of a table of which nothing is known but the contract, and that it
/// is the same wherever it is read.
Places::Scalar Places::opaque(Value table, ArrayRef<Index> at,
                              const Scope &scope) {
  std::vector<Application> &others = applications[table];
  for (const Application &other : others)
    if (ArrayRef(other.at) == at)
      return other.value;
  bool isFlag = getElementTypeOrSelf(table.getType()).isInteger(1);
  Operation *op = table.getDefiningOp() ? table.getDefiningOp() : program;
  // Of numbers all that is known is what is checked when tables are.
  if (!isFlag && llvm::none_of(contract.needs, [&](const Contract::Need &need) {
        return need.reach == table || need.innerReach == table;
      })) {
    refuse(op, "a table of numbers of which nothing is known");
    return {};
  }
  const auto *ofRings =
      llvm::find_if(contract.needs, [&](const Contract::Need &need) {
        return need.innerReach && need.reach == table;
      });
  bool isOuter = ofRings != contract.needs.end();
  Atom atom =
      isFlag ? arithmetic.addOpenAtom("flag")
             : arithmetic.addAtom("reach", 1,
                                  isOuter ? Modulus::Rings : Modulus::Ranks);
  Linear own = Linear::unknown(atom);
  Scalar value{Index::of(atom), atLeast(own, 1)};
  if (isFlag)
    arithmetic.addFact(atom, atLeast(own, 0) && atLeast(1, own));
  for (const Contract::Need &need : contract.needs)
    if (need.isBothWays && need.reach == table)
      arithmetic.addFact(
          atom, atLeast(linear(mostHops(!(at[1] == Index(0))), op), own));
  for (const Application &other : others) {
    std::vector<Formula> same;
    for (auto [x, y] : llvm::zip_equal(other.at, at))
      same.push_back(isEqual(x, y, op));
    arithmetic.addFact(atom, *other.value.index.getAtom(),
                       implies(Formula::all(std::move(same)),
                               equal(own, linear(other.value.index, op))));
  }
  others.push_back({SmallVector<Index>(at), value});
  if (const Contract::Need *need = contract.find(table))
    if (need->reach)
      addContract(*need, at, value.truth, atom);
  for (const Contract::Need &need : contract.needs)
    if (need.innerReach == table)
      addInnerContract(need, at, atom);
  return value;
}

/// A pair that is needed is within the reach of what travels.
void Places::addContract(const Contract::Need &need, ArrayRef<Index> at,
                         const Formula &entry, Atom atom) {
  Place top{genericRank};
  Operation *op = need.pairs.getDefiningOp();
  const Index &stays = at[need.movesKeys ? 0 : 1],
              &moves = at[need.movesKeys ? 1 : 0],
              &segment = at[need.movesKeys ? 3 : 2];
  Hops hops = this->hops(moves, stays, need, op);
  if (need.isBothWays) {
    auto reaches = [&](bool isBack, const Index &way) {
      Index where[] = {moves, isBack, segment};
      return isAtLeast(number(need.reach, where, top), way, op);
    };
    Formula isAhead = isAtLeast(mostHops(false), hops.inner, op);
    arithmetic.addFact(
        atom, implies(entry && isAhead, reaches(false, hops.inner)) &&
                  implies(entry && !isAhead,
                          reaches(true, reverse(hops.inner, false, op))));
    return;
  }
  Index where[] = {moves, segment};
  Index reach = number(need.reach, where, top);
  Formula reaches = isAtLeast(reach, nest ? hops.outer : hops.inner, op);
  if (nest) {
    Index inner[] = {moves, ringOf(stays, op), segment};
    reaches = reaches &&
              isAtLeast(number(need.innerReach, inner, top), hops.inner, op);
  }
  arithmetic.addFact(atom, implies(entry, reaches));
}
