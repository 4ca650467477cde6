//===- AuditScores.cpp - the proof of schedules that store scores ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Prove/Auditor.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Without data
//===----------------------------------------------------------------------===//

TensorRef Bookkeeper::scores(Type element, const Tensor &query, int64_t keys) {
  return makeScores(element, query, keys);
}

bool Bookkeeper::score(Score &score, std::string &) {
  makeUnique(score.scores);
  return true;
}

bool Bookkeeper::softmax(TensorRef &scores, State &state, std::string &) {
  makeUnique(scores);
  makeUnique(state);
  return true;
}

bool Bookkeeper::weigh(Weigh &weigh, std::string &) {
  makeUnique(weigh.state);
  return true;
}

bool Bookkeeper::probabilities(TensorRef &scores, const TensorRef &,
                               std::string &) {
  makeUnique(scores);
  return true;
}

bool Bookkeeper::weighGrad(WeighGrad &weigh, std::string &) {
  makeUnique(weigh.weights);
  makeUnique(weigh.grad);
  return true;
}

bool Bookkeeper::scoreGrad(ScoreGrad &score, std::string &) {
  makeUnique(score.queryGrad);
  makeUnique(score.keyGrad);
  return true;
}

//===----------------------------------------------------------------------===//
// The proof
//===----------------------------------------------------------------------===//

TensorRef Auditor::scores(Type element, const Tensor &query, int64_t keys) {
  TensorRef made = makeScores(element, query, keys);
  return std::make_shared<Stored>(made->shape, made->element);
}

/// Scores that are about to change, for themselves; null where `tensor` is
/// none.
static Stored *ownStored(TensorRef &tensor) {
  auto *stored = dyn_cast<Stored>(tensor.get());
  if (!stored || tensor.use_count() == 1)
    return stored;
  auto copy = std::make_shared<Stored>(stored->shape, stored->element);
  copy->scored = stored->scored;
  copy->proved = stored->proved;
  copy->isWeights = stored->isWeights;
  copy->lse = stored->lse;
  copy->differentiated = stored->differentiated;
  copy->gradient = stored->gradient;
  tensor = copy;
  return copy.get();
}

std::string Auditor::checkScore(const Score &score) {
  std::string message = checkQuery(score);
  if (message.empty())
    message = checkSlice(score, {score.key, nullptr, score.keyOwner});
  int64_t wanted[] = {score.query->shape[0], score.query->shape[2],
                      score.query->shape[1], score.keyExtent};
  if (message.empty() &&
      ArrayRef<int64_t>(score.scores->shape) != ArrayRef<int64_t>(wanted))
    message = "writes scores that have not the rows of its queries and all "
              "keys";
  return message;
}

std::string Auditor::addScores(const Score &score, Stored &stored) {
  int64_t numA = score.queryLayout.getNumSegments();
  int64_t numB = score.keyLayout.getNumSegments();
  PairMask pairs = computedPairs(score, 0, score.keyOwner);
  PairMask before = stored.scored.at(score.keyOwner);
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b) {
      if (!(pairs & pairBit(a, b, numB)))
        continue;
      if (!(score.key->segments >> b & 1))
        return format("reads segment {0} of rank {1}, which was not received",
                      b, score.keyOwner);
      if (before & pairBit(a, b, numB))
        return format("scores query segment {0} with segment {1} of rank {2} a "
                      "second time",
                      a, b, score.keyOwner);
    }
  stored.scored.add(score.keyOwner, pairs);
  Met met = metSegments(score, 0);
  readSegments(*score.query, met.queries);
  readSegments(*score.key, met.keys);
  return "";
}

bool Auditor::score(Score &score, std::string &message) {
  message = checkScore(score);
  if (!message.empty())
    return false;
  Stored *stored = ownStored(score.scores);
  if (!stored || stored->isWeights) {
    message = "writes scores that ring.scores did not make, or that are "
              "weights already";
    return false;
  }
  if (!stored->proved)
    stored->proved =
        keep(score, score.query->argument, score.key->argument, -1);
  const ProvedAttention &proved = *stored->proved;
  message = difference(proved.inputs, score);
  if (score.query->argument != proved.query)
    message = "scores another query";
  else if (score.key->argument != proved.key)
    message = "scores slices of other tensors";
  else if (score.queryOwner != proved.inputs.queryOwner)
    message = format("scores the queries of rank {0}, not of {1},",
                     score.queryOwner, proved.inputs.queryOwner);
  if (!message.empty())
    message += " than the scores before it";
  else
    message = addScores(score, *stored);
  return message.empty();
}

/// There is a score of each pair that the mask needs.
std::string Auditor::checkScored(const Stored &stored) {
  const AttendInputs &first = stored.proved->inputs;
  int64_t numA = first.queryLayout.getNumSegments();
  int64_t numB = first.keyLayout.getNumSegments();
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t a = 0; a < numA; ++a)
      for (int64_t b = 0; b < numB; ++b)
        if (!(stored.scored.at(owner) & pairBit(a, b, numB)) &&
            classifier.classify(first, owner, a, b) != PairClass::Empty)
          return format("lacks the scores of query segment {0} with segment "
                        "{1} of rank {2}",
                        a, b, owner);
  return "";
}

bool Auditor::softmax(TensorRef &scores, State &state, std::string &message) {
  Stored *stored = ownStored(scores);
  message = checkState(state);
  if (!message.empty())
    return false;
  if (!stored || !stored->proved || stored->isWeights) {
    message = "takes what are no scores";
    return false;
  }
  // A row is divided by the sum of all of its weights.
  message = checkScored(*stored);
  if (!message.empty())
    return false;
  Account &account = ownAccount(state);
  renumber(state);
  if (account.proved) {
    message = "takes a state that has attended something";
    return false;
  }
  account.proved = stored->proved;
  stored->isWeights = true;
  return true;
}

std::string Auditor::addWeighed(const Weigh &weigh, Account &account) {
  const AttendInputs &first = account.proved->inputs;
  int64_t numA = first.queryLayout.getNumSegments();
  int64_t numB = first.keyLayout.getNumSegments();
  const auto &stored = static_cast<const Stored &>(*weigh.weights);
  // What was scored has positions.
  PairMask pairs = stored.scored.at(weigh.owner);
  PairMask before = account.absorbed.at(weigh.owner);
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b) {
      if (!(pairs & pairBit(a, b, numB)))
        continue;
      if (!(weigh.value->segments >> b & 1))
        return format("reads segment {0} of rank {1}, which was not received",
                      b, weigh.owner);
      if (before & pairBit(a, b, numB))
        return format("weighs segment {0} of rank {1} for query segment {2} a "
                      "second time",
                      b, weigh.owner, a);
      ++proof.computed;
    }
  account.absorbed.add(weigh.owner, pairs);
  account.worked = ~uint64_t{0}; // of all queries, as scores are
  readSegments(*weigh.value);
  return "";
}

bool Auditor::weigh(Weigh &weigh, std::string &message) {
  const auto *stored = dyn_cast<Stored>(weigh.weights);
  message = checkState(weigh.state);
  if (!message.empty())
    return false;
  if (!stored || !stored->isWeights || stored->lse) {
    message = "takes what are no weights";
    return false;
  }
  Account &account = ownAccount(weigh.state);
  renumber(weigh.state);
  if (!account.proved) {
    message = "adds to a state that is of no ring.softmax";
    return false;
  }
  const ProvedAttention &proved = *account.proved;
  if (proved.query != stored->proved->query ||
      proved.key != stored->proved->key ||
      proved.inputs.queryOwner != stored->proved->inputs.queryOwner ||
      !difference(proved.inputs, stored->proved->inputs).empty()) {
    message = "takes weights of another attention than its state";
    return false;
  }
  if (proved.inputs.keyLayout != weigh.keyLayout ||
      proved.inputs.keyExtent != weigh.keyExtent) {
    message = "takes values that are sharded otherwise than the keys";
    return false;
  }
  message = checkSlice(proved.inputs, {nullptr, weigh.value, weigh.owner});
  if (proved.value < 0) // states may share a proved
    account.proved =
        keep(proved.inputs, proved.query, proved.key, weigh.value->argument);
  if (message.empty() && account.proved->value != weigh.value->argument)
    message = "weighs slices of other tensors than before";
  if (message.empty())
    message = addWeighed(weigh, account);
  return message.empty();
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// What stands beside scores is of the rows of their queries, all of them.
std::string Auditor::checkStoredRows(const Stored &stored, const Tensor &rows,
                                     StringRef name, int64_t dim) {
  const AttendInputs &first = stored.proved->inputs;
  Sharding wanted{first.queryLayout.getValue(), dim, first.queryExtent};
  if (rows.owner != first.queryOwner)
    return format("takes {0} of rank {1} with scores of the queries of {2}",
                  name, rows.owner, first.queryOwner);
  if (rows.sharding != wanted)
    return format("takes {0} that is laid out as {1} as if it were laid out as "
                  "{2}",
                  name, describe(rows.sharding), describe(wanted));
  if (uint64_t needed = segmentsOf(wanted, first.queryOwner);
      (rows.segments & needed) != needed)
    return format("takes segments {0:x} of {1}, of which it has {2:x}", needed,
                  name, rows.segments);
  return "";
}

bool Auditor::probabilities(TensorRef &scores, const TensorRef &lse,
                            std::string &message) {
  Stored *stored = ownStored(scores);
  if (!stored || !stored->proved || stored->isWeights)
    message = "takes what are no scores";
  else if (lse->argument < 0 && !isMade(*lse, Made::Lse))
    message = "takes as lse what is neither an argument nor of ring.finalize";
  else
    message = checkStoredRows(*stored, *lse, "lse", 2);
  if (message.empty())
    message = checkScored(*stored);
  if (!message.empty())
    return false;
  stored->isWeights = true;
  stored->lse = lse;
  readSegments(*lse);
  return true;
}

/// Adds pairs with the keys of an owner to a gradient of what `of` is a shard
/// of.
std::string Auditor::addStored(const Stored &stored, TensorRef &tensor, By by,
                               const Tensor &of, int64_t keyOwner,
                               PairMask pairs) {
  const AttendInputs &first = stored.proved->inputs;
  int64_t numA = first.queryLayout.getNumSegments();
  int64_t numB = first.keyLayout.getNumSegments();
  auto place = static_cast<int64_t>(by);
  if (std::string found = checkTaken(tensor, place, &of); !found.empty())
    return found;
  PairMask arrived = by == By::Query
                         ? pairsOfQueries(tensor->segments, numA, numB)
                         : pairsOfKeys(tensor->segments, numA, numB);
  if (pairs & ~arrived)
    return format("adds to segments of a gradient by {0} that were not "
                  "received",
                  describe(by));
  readSegments(*tensor);
  Gradient &gradient = ownGradient(tensor);
  if (gradient.proved && gradient.proved != stored.gradient)
    return difference(*gradient.proved, *stored.gradient) +
           " than what was added before";
  gradient.proved = stored.gradient;
  gradient.place = place;
  gradient.worked = ~uint64_t{0}; // of all pairs, as scores are
  int64_t other = by == By::Query ? keyOwner : first.queryOwner;
  if (PairMask before = gradient.added.add(other, pairs)) {
    int64_t pair = llvm::countr_zero(before);
    return format("adds query segment {0} of rank {1} with segment {2} of "
                  "rank {3} a second time to the gradient by {4}",
                  pair / numB, first.queryOwner, pair % numB, keyOwner,
                  describe(by));
  }
  return "";
}

/// The pairs of which a slice of keys or values has the segments.
static PairMask pairsOfSlice(const AttendInputs &inputs, const Tensor &slice) {
  return pairsOfKeys(slice.segments, inputs.queryLayout.getNumSegments(),
                     inputs.keyLayout.getNumSegments());
}

/// A slice is of the keys that were scored, or lies as they do.
template <typename Step>
static std::string checkLaidOut(const Step &step, const AttendInputs &first,
                                StringRef what) {
  if (first.keyLayout == step.keyLayout && first.keyExtent == step.keyExtent)
    return "";
  return format("takes {0} that are sharded otherwise than the keys", what);
}

bool Auditor::weighGrad(WeighGrad &weigh, std::string &message) {
  Stored *stored = ownStored(weigh.weights);
  if (!stored || !stored->lse) {
    message = "takes what are no probabilities";
    return false;
  }
  const ProvedAttention &scored = *stored->proved;
  const AttendInputs &first = scored.inputs;
  message = checkLaidOut(weigh, first, "values");
  if (message.empty())
    message = checkSlice(first, {nullptr, weigh.value, weigh.owner});
  if (message.empty())
    message = checkStoredRows(*stored, *weigh.outGrad, "outGrad", 1);
  if (message.empty())
    message = checkStoredRows(*stored, *weigh.delta, "delta", 2);
  if (message.empty() && weigh.scale != first.scale)
    message = format("has the scale {0}, and scores have {1}", weigh.scale,
                     first.scale);
  if (!message.empty())
    return false;
  // Of query and key no more is asked than what they are shards of.
  Tensor query(scored.queryShape->shape, scored.queryShape->element);
  Tensor key(weigh.value->shape, weigh.value->element);
  query.argument = scored.query;
  key.argument = scored.key;
  AttendGrad attend;
  static_cast<AttendInputs &>(attend) = first;
  attend.query = &query;
  attend.gradient = first.score; // which leaves gradients as they are
  attend.outGrad = weigh.outGrad.get();
  attend.lse = stored->lse.get();
  attend.delta = weigh.delta.get();
  attend.slice = {&key, weigh.value, weigh.owner};
  message = checkRows(attend);
  if (!message.empty())
    return false;
  const ProvedGradient *gradient = ask(attend);
  if (stored->gradient && stored->gradient != gradient)
    message = difference(*stored->gradient, *gradient) + " than before";
  stored->gradient = gradient;
  for (const Tensor *tensor :
       {weigh.outGrad.get(), weigh.delta.get(), weigh.value})
    readSegments(*tensor);
  PairMask pairs = stored->scored.at(weigh.owner);
  if (message.empty() && (pairs & ~pairsOfSlice(first, *weigh.value)))
    message =
        format("reads values of rank {0} that were not received", weigh.owner);
  if (message.empty() && stored->differentiated.add(weigh.owner, pairs))
    message = format("takes probabilities of keys of rank {0} that are "
                     "gradients already",
                     weigh.owner);
  if (message.empty())
    message = addStored(*stored, weigh.grad, By::Value, *weigh.value,
                        weigh.owner, pairs);
  return message.empty();
}

bool Auditor::scoreGrad(ScoreGrad &score, std::string &message) {
  const auto *stored = dyn_cast<Stored>(score.weights);
  if (!stored || !stored->gradient) {
    message = "takes what are no gradients by scores";
    return false;
  }
  const AttendInputs &first = stored->proved->inputs;
  message = checkLaidOut(score, first, "keys");
  if (message.empty())
    message = checkSlice(first, {score.key, nullptr, score.owner});
  if (message.empty())
    message = checkStoredRows(*stored, *score.query, "query", 1);
  if (!message.empty())
    return false;
  for (const Tensor *tensor : {score.query, score.key})
    readSegments(*tensor);
  PairMask pairs = stored->scored.at(score.owner);
  if (score.query->argument != stored->proved->query)
    message = "takes another query than the scores";
  else if (score.key->argument != stored->proved->key)
    message = "takes slices of other tensors than the scores";
  else if (pairs & ~stored->differentiated.at(score.owner))
    message = format("takes probabilities of keys of rank {0} for gradients by "
                     "scores",
                     score.owner);
  else if (pairs & ~pairsOfSlice(first, *score.key))
    message =
        format("reads keys of rank {0} that were not received", score.owner);
  if (message.empty())
    message = addStored(*stored, score.queryGrad, By::Query, *score.query,
                        score.owner, pairs);
  if (message.empty())
    message = addStored(*stored, score.keyGrad, By::Key, *score.key,
                        score.owner, pairs);
  proof.computed += llvm::popcount(pairs);
  return message.empty();
}
