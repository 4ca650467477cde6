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
  const AttendInputs &first = stored->proved->inputs;
  int64_t numA = first.queryLayout.getNumSegments();
  int64_t numB = first.keyLayout.getNumSegments();
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t a = 0; a < numA; ++a)
      for (int64_t b = 0; b < numB; ++b)
        if (!(stored->scored.at(owner) & pairBit(a, b, numB)) &&
            classifier.classify(first, owner, a, b) != PairClass::Empty) {
          message = format("lacks the scores of query segment {0} with segment "
                           "{1} of rank {2}",
                           a, b, owner);
          return false;
        }
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
  return "";
}

bool Auditor::weigh(Weigh &weigh, std::string &message) {
  const auto *stored = dyn_cast<Stored>(weigh.weights);
  message = checkState(weigh.state);
  if (!message.empty())
    return false;
  if (!stored || !stored->isWeights) {
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
