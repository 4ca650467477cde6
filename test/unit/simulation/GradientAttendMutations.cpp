//===- GradientAttendMutations.cpp - how gradients are made wrongly -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// Rows and slices
//===----------------------------------------------------------------------===//

static bool shiftQueryOwner(Backward &s) {
  Emit e(s, s.attend);
  s.attend.getQueryOwnerMutable().set(e.ahead(s.attend.getQueryOwner()));
  return true;
}

static bool shiftKeyOwner(Backward &s) {
  Emit e(s, s.attend);
  s.attend.getKeyOwnerMutable().set(e.ahead(s.attend.getKeyOwner()));
  return true;
}

/// Queries come from others, and meet what is this rank's own.
static bool takeOwnDelta(Backward &s) {
  if (s.movesKeys)
    return false;
  s.attend.getDeltaMutable().set(s.delta.getDelta());
  return true;
}

static bool takeOwnLse(Backward &s) {
  if (s.movesKeys)
    return false;
  s.attend.getLseMutable().set(s.program.getArgument(4));
  return true;
}

static bool takeOwnOutGrad(Backward &s) {
  if (s.movesKeys)
    return false;
  s.attend.getOutGradMutable().set(s.program.getArgument(5));
  return true;
}

static bool takeOwnValue(Backward &s) {
  if (!s.movesKeys)
    return false;
  s.attend.getValueMutable().set(s.program.getArgument(2));
  return true;
}

/// What is given up as a gradient is read besides.
static bool takeGradientForQuery(Backward &s) {
  Value gradient = s.attend.getGrads()[0];
  if (gradient.getType() != s.attend.getQuery().getType())
    return false;
  s.attend.getQueryMutable().set(gradient);
  return true;
}

static bool swapLseAndDelta(Backward &s) {
  Value lse = s.attend.getLse(), delta = s.attend.getDelta();
  s.attend.getLseMutable().set(delta);
  s.attend.getDeltaMutable().set(lse);
  return true;
}

static bool takeDeltaOfAnotherOutGrad(Backward &s) {
  s.delta.getOutGradMutable().set(s.delta.getOut());
  return true;
}

static bool takeDeltaOfAnotherOut(Backward &s) {
  Emit e = Emit::atTop(s);
  e.builder.setInsertionPointAfter(s.delta);
  auto other =
      ring::DeltaOp::create(e.builder, e.loc, s.delta.getDelta().getType(),
                            s.delta.getOutGrad(), s.delta.getOutGrad(),
                            /*lseGrad=*/Value(), /*into=*/Value());
  SmallPtrSet<Operation *, 4> users(s.delta->user_begin(), s.delta->user_end());
  Value delta = e.tensorOnRank(0, other.getDelta(), s.delta.getDelta());
  s.delta.getDelta().replaceUsesWithIf(
      delta, [&](OpOperand &use) { return users.contains(use.getOwner()); });
  return true;
}

static bool lengthenKeys(Backward &s) {
  Emit e(s, s.attend);
  s.attend.getKeyExtentMutable().set(e.plus(s.attend.getKeyExtent(), 1));
  return true;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

static bool clearPair(Backward &s) {
  Emit e(s, s.attend);
  // Of the rank's own first segments, which are on every mask's diagonal.
  e.changePairs(s.attend, [&](Emit &e, Value old, ValueRange at) {
    Value keep =
        e.either(e.differs(s.loop.getInductionVar(), 0), e.differs(s.rank, 0));
    return e.both(old, e.either(keep, e.either(e.differs(at[2], 0),
                                               e.differs(at[3], 0))));
  });
  return true;
}

static bool setPairs(Backward &s) {
  if (!s.hasRuledOut || !s.problem.drop)
    return false;
  Emit(s, s.attend).changePairs(s.attend, [](Emit &e, Value, ValueRange) {
    return e.truth(true);
  });
  return true;
}

/// Behind the attend stands another, which adds to the same gradients.
static ring::AttendGradOp attendAgain(Backward &s) {
  OpBuilder builder(s.attend->getNextNode());
  auto second = cast<ring::AttendGradOp>(builder.clone(*s.attend));
  for (auto [a, b] :
       llvm::zip_equal(s.attend.getNewGrads(), second.getNewGrads()))
    a.replaceAllUsesWith(b);
  second.getGradsMutable().assign(s.attend.getNewGrads());
  return second;
}

static bool attendTwice(Backward &s) {
  attendAgain(s);
  return true;
}

/// It computes nothing, but of another attention.
static bool attendWithAnotherScale(Backward &s) {
  ring::AttendGradOp second = attendAgain(s);
  Emit e(s, second);
  e.changePairs(second,
                [](Emit &e, Value, ValueRange) { return e.truth(false); });
  second.setScaleAttr(e.builder.getF64FloatAttr(1));
  return true;
}

static bool attendSwappedSlices(Backward &s) {
  Value key = s.attend.getKey(), value = s.attend.getValue();
  if (key.getType() != value.getType() ||
      s.attend.getGrads()[1].getType() != s.attend.getGrads()[2].getType())
    return false;
  s.attend.getKeyMutable().set(value);
  s.attend.getValueMutable().set(key);
  return true;
}

static bool shortenLoop(Backward &s) {
  if (!llvm::any_of(s.returns, [&](const Backward::Message &m) {
        return m.turn == s.parts - 1;
      }))
    return false;
  Emit e(s, s.loop);
  s.loop.setUpperBound(e.index(s.parts - 1));
  return true;
}

static bool lengthenLoop(Backward &s) {
  Emit e(s, s.loop);
  s.loop.setUpperBound(e.index(s.parts + 1));
  return true;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static bool swapGradients(Backward &s, unsigned a, unsigned b) {
  Value x = s.attend.getGrads()[a], y = s.attend.getGrads()[b];
  if (x.getType() != y.getType())
    return false;
  s.attend.getGradsMutable().slice(a, 1).assign(y);
  s.attend.getGradsMutable().slice(b, 1).assign(x);
  return true;
}

static bool swapKeyAndValueGradients(Backward &s) {
  return swapGradients(s, 1, 2);
}

static bool swapQueryAndKeyGradients(Backward &s) {
  return swapGradients(s, 0, 1);
}

/// Gradients by all slices into those by this rank's own.
static bool zeroIsNotOfTheSlice(Backward &s) {
  for (auto [index, zero] : llvm::enumerate(s.zeros)) {
    unsigned argument = s.movesKeys ? 1 + index : 0;
    if (s.program.getArgument(argument).getType() != zero.getLike().getType())
      return false;
    zero.getLikeMutable().set(s.program.getArgument(argument));
  }
  return true;
}

static bool accumulateInTheOwn(Backward &s) {
  for (auto [zero, sum] : llvm::zip_equal(s.zeros, s.returnSums)) {
    if (zero.getZero().getType() != sum.getA().getType())
      return false;
    zero.getZero().replaceAllUsesWith(sum.getA());
  }
  return true;
}

static bool addTo(Value first, Backward &s) {
  // A tensor that is an argument is no gradient.
  auto add = first.getDefiningOp<ring::AddOp>();
  unsigned argument = s.movesKeys ? 1 : 0;
  if (s.program.getArgument(argument).getType() != first.getType())
    return false;
  add.getBMutable().set(s.program.getArgument(argument));
  return true;
}

static bool addAnArgument(Backward &s) {
  return addTo(s.ownSums[0].getSum(), s);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

static bool drop(ArrayRef<ring::AddOp> sums) {
  for (ring::AddOp sum : sums) {
    sum.getSum().replaceAllUsesWith(sum.getA());
    sum.erase();
  }
  return true;
}

static bool repeat(ArrayRef<ring::AddOp> sums) {
  for (ring::AddOp sum : sums) {
    OpBuilder builder(sum->getNextNode());
    auto second = cast<ring::AddOp>(builder.clone(*sum));
    sum.getSum().replaceAllUsesWith(second.getSum());
    second.getAMutable().set(sum.getSum());
  }
  return true;
}

static bool flagAll(Backward &s, ArrayRef<ring::AddOp> sums) {
  for (ring::AddOp sum : sums)
    changeSegments(s, sum,
                   [](Emit &e, Value, ValueRange) { return e.truth(true); });
  return true;
}

static bool dropOwnSums(Backward &s) { return drop(s.ownSums); }
static bool dropOnwardSums(Backward &s) {
  return !s.onwards.empty() && drop(s.onwardSums);
}
static bool dropReturnSums(Backward &s) {
  bool isLast = llvm::all_of(s.returns, [&](const Backward::Message &m) {
    return m.turn == s.parts - 1;
  });
  return !isLast && drop(s.returnSums);
}
static bool dropLastSums(Backward &s) {
  return s.hasLastReturn() && drop(s.lastSums);
}
static bool repeatOwnSums(Backward &s) { return repeat(s.ownSums); }
static bool repeatOnwardSums(Backward &s) {
  return !s.onwards.empty() && repeat(s.onwardSums);
}
static bool repeatLastSums(Backward &s) {
  return s.hasLastReturn() && repeat(s.lastSums);
}
/// What is computed of any slice, to the own.
static bool addAllPartsToTheOwn(Backward &s) { return flagAll(s, s.ownSums); }
/// Also where nothing came.
static bool addWhatNeverCame(Backward &s) { return flagAll(s, s.onwardSums); }
static bool addWhatNeverReturned(Backward &s) {
  return flagAll(s, s.returnSums);
}

static bool addASegmentLess(Backward &s) {
  for (ring::AddOp sum : s.ownSums)
    changeSegments(s, sum, [&](Emit &e, Value old, ValueRange at) {
      Value isOther = e.differs(at[2], sum.getLayout().getNumSegments() - 1);
      return e.both(old, e.either(e.differs(s.rank, 1), isOther));
    });
  return true;
}

static bool addAsAnothers(Backward &s) {
  for (ring::AddOp sum : s.ownSums) {
    Emit e(s, sum);
    sum.getOwnerMutable().set(e.ahead(sum.getOwner()));
  }
  return true;
}

static bool addDifferentGradients(Backward &s) {
  if (!s.movesKeys ||
      s.ownSums[0].getB().getType() != s.ownSums[1].getB().getType())
    return false;
  Value first = s.ownSums[0].getB(), second = s.ownSums[1].getB();
  s.ownSums[0].getBMutable().set(second);
  s.ownSums[1].getBMutable().set(first);
  return true;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

static bool returnGradientsOfAnotherRank(Backward &s) {
  Emit e(s, s.end());
  Value result = s.end().getOperand(0);
  Value received = e.receive(e.send(result, shardOf(s, 0), 9));
  s.end()->setOperand(0, received);
  return true;
}

static bool returnZeros(Backward &s) {
  Emit e(s, s.end());
  Value result = s.end().getOperand(0);
  s.end()->setOperand(
      0, ring::ZeroOp::create(e.builder, e.loc, result.getType(),
                              s.program.getArgument(0), /*into=*/Value())
             .getZero());
  return true;
}

static bool returnTheQuery(Backward &s) {
  s.end()->setOperand(0, s.program.getArgument(0));
  return true;
}

static bool returnAnotherOnOneRank(Backward &s) {
  Value key = s.end().getOperand(1), value = s.end().getOperand(2);
  if (key.getType() != value.getType())
    return false;
  Emit e(s, s.end());
  s.end()->setOperand(1, e.tensorOnRank(1, value, key));
  return true;
}

static bool returnAnotherLayout(Backward &s) {
  ring::ShardAttr shard = shardOf(s, 0);
  if (s.problem.order == "zigzag")
    return false; // Shards may have other sizes.
  Layout layout{s.problem.order == "contiguous" ? Order::Striped
                                                : Order::Contiguous,
                1, s.parts};
  s.program.setResultAttr(
      0, ring::shardAttr,
      ring::ShardAttr::get(s.module.getContext(),
                           ring::LayoutAttr::get(s.module.getContext(), layout),
                           shard.getDim(), shard.getExtent(), shard.getAxes()));
  return true;
}

/// From f64 to bf16 in two steps.
static bool roundTwice(Backward &s) {
  Emit e(s, s.end());
  Value result = s.end().getOperand(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (!type.getElementType().isF64())
    return false;
  for (Type element :
       {Type(e.builder.getF32Type()), Type(e.builder.getBF16Type())})
    result = ring::RoundOp::create(e.builder, e.loc, type.clone(element),
                                   result, /*into=*/Value())
                 .getRounded();
  s.end()->setOperand(0, result);
  SmallVector<Type> results(s.program.getResultTypes());
  results[0] = result.getType();
  s.program.setFunctionType(FunctionType::get(
      s.module.getContext(), s.program.getArgumentTypes(), results));
  return true;
}

ArrayRef<GradientMutation> gradientAttendMutations() {
  static constexpr GradientMutation mutations[] = {
      {"the owner of queries is off by one", shiftQueryOwner,
       "takes the queries for those of rank|has [0-9]+ queries",
       "ring.attend_grad"},
      {"the owner of keys is off by one", shiftKeyOwner,
       "takes the keys for those of rank|has [0-9]+ keys", "ring.attend_grad"},
      {"delta is this rank's, queries another's", takeOwnDelta,
       "takes delta for that of rank|different rows", "ring.attend_grad"},
      {"lse is this rank's, queries another's", takeOwnLse,
       "takes lse for that of rank|different rows", "ring.attend_grad"},
      {"outGrad is this rank's, queries another's", takeOwnOutGrad,
       "takes outGrad for that of rank|different rows", "ring.attend_grad"},
      {"values are this rank's, keys another's", takeOwnValue,
       "takes the values for those of rank|different rows", "ring.attend_grad"},
      {"the gradient by queries is taken for these", takeGradientForQuery,
       "a query that is no shard of an argument", "ring.attend_grad"},
      {"lse and delta change places", swapLseAndDelta,
       "takes as lse what is neither", "ring.attend_grad"},
      {"delta is of another outGrad", takeDeltaOfAnotherOutGrad,
       "a delta that was made of another outGrad", "ring.attend_grad"},
      {"delta is of another out on one rank", takeDeltaOfAnotherOut,
       "takes a delta of another out", "ring.(attend_grad|add)|func.return"},
      {"there are more keys", lengthenKeys, "laid out as|its layout says",
       "ring.attend_grad"},
      {"a pair is skipped", clearPair,
       "lacks query segment 0 of rank 0 with segment 0 of rank 0",
       "func.return"},
      {"ruled-out pairs are computed", setPairs,
       "the mask keeps nothing|which was not received", "ring.attend_grad"},
      {"pairs are computed twice", attendTwice, "a second time",
       "ring.attend_grad"},
      {"one hop has another scale", attendWithAnotherScale,
       "has another mask, score, scale or layout than what was added before",
       "ring.attend_grad"},
      {"keys are attended as values", attendSwappedSlices,
       "adds gradients by the key to those by something else",
       "ring.attend_grad"},
      {"a hop too few", shortenLoop, "lacks query segment|adds segments",
       "func.return|ring.add"},
      {"a hop too many", lengthenLoop,
       "deadlock|a second time|which was not received|receives .* from rank|"
       "adds segments|sends segments|reads flags of segments",
       "ring.(start|attend_grad|add)"},
      {"gradients by key and value change places", swapKeyAndValueGradients,
       "adds gradients by the key to those by something else",
       "ring.attend_grad"},
      {"gradients by query and key change places", swapQueryAndKeyGradients,
       "adds gradients by the query to those by something else|different rows",
       "ring.attend_grad"},
      {"zeros are not those of the slice", zeroIsNotOfTheSlice,
       "adds gradients by the .* of rank|different rows", "ring.attend_grad"},
      {"gradients of slices are added to the own", accumulateInTheOwn,
       "adds gradients by the .* of rank|different rows|added before",
       "ring.(attend_grad|add)"},
      {"what is no gradient is added", addAnArgument,
       "adds what is no gradient", "ring.add"},
      {"what the owner computes is not added", dropOwnSums,
       "lacks query segment|nothing was added", "func.return"},
      {"what came is not added", dropOnwardSums, "lacks query segment",
       "func.return"},
      {"what returned to its owner is not added", dropReturnSums,
       "lacks query segment", "func.return"},
      {"what returned to its owner last is not added", dropLastSums,
       "lacks query segment", "func.return"},
      {"what the owner computes is added twice", repeatOwnSums,
       "what was added before", "ring.add"},
      {"what came is added twice", repeatOnwardSums, "what was added before",
       "ring.add"},
      {"what returned to its owner is added twice", repeatLastSums,
       "what was added before", "ring.add"},
      {"all parts are added to the own", addAllPartsToTheOwn,
       "adds a gradient by the shard of rank|adds gradients of", "ring.add"},
      {"what never came is added", addWhatNeverCame,
       "adds segments|adds gradients of", "ring.add"},
      {"what never returned is added", addWhatNeverReturned,
       "adds segments|adds gradients of", "ring.add"},
      {"a segment is not added on one rank", addASegmentLess,
       "lacks query segment|nothing was added", "func.return"},
      {"the own is added as another's", addAsAnothers,
       "adds a gradient by the shard of rank|adds gradients of", "ring.add"},
      {"different gradients are added", addDifferentGradients,
       "adds gradients by different tensors", "ring.add"},
      {"gradients of another rank are returned", returnGradientsOfAnotherRank,
       "the gradient by the shard of rank", "func.return"},
      {"zeros are returned", returnZeros, "to which nothing was added",
       "func.return"},
      {"the query is returned", returnTheQuery, "what no ring.finalize has",
       "func.return"},
      {"one rank returns another gradient", returnAnotherOnOneRank,
       "another gradient than rank 0", "func.return"},
      {"gradients are returned with another layout", returnAnotherLayout,
       "what is laid out as", "func.return"},
      {"gradients are rounded twice", roundTwice, "rounds a second time",
       "ring.round"},
  };
  return mutations;
}

} // namespace burst::test
