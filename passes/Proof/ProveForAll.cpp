//===- ProveForAll.cpp - one proof for every number of ranks --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/ProveForAll.h"

#include "passes/Proof/Conditions.h"
#include "passes/Proof/Decide.h"
#include "passes/Proof/Lifetimes.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

/// Cases after which a condition counts as not shown.
static constexpr int64_t mostSplits = 1 << 16;

namespace {
/// For each direction that a function gives, whether it goes back.
using Chosen = SmallVector<std::pair<Value, bool>>;

class Prover {
public:
  Prover(func::FuncOp program, const ProofOptions &options, Witness witness)
      : program(program), options(options), witness(witness) {}

  Verdict run();

private:
  bool proveAttention(const Chosen &chosen, int attention, int &numAttentions);
  bool decideAll(const Places &places);
  void describe(const Labels &labels);
  bool mayFollow(const Attention &attention, Places &places);

  func::FuncOp program;
  ProofOptions options;
  Witness witness;
  Decider decider;
  Verdict verdict;
};
} // namespace

/// What a mask needs is a table that a function computes: of that the contract
/// says that it is what the bounds of the mask say.
bool Prover::mayFollow(const Attention &attention, Places &places) {
  ring::AttendLikeOpInterface first = attention.first;
  Value pairs = first.getPairs();
  if (pairs && !first.getMask().empty() && !pairs.getDefiningOp<func::CallOp>())
    places.refuse(first, "a table of pairs that is not what a function of the "
                         "mask computes");
  return !places.getReason();
}

bool Prover::decideAll(const Places &places) {
  for (const Condition &condition : places.getConditions()) {
    ++verdict.conditions;
    Formula wrong = !condition.formula;
    Formula facts = places.arithmetic.factsOf(wrong);
    bool isShown = decider.isImpossible(facts && wrong, mostSplits);
    if (witness)
      witness(condition, facts, isShown);
    if (!isShown) {
      verdict.reason = Reason{condition.op, "not shown: " + condition.what};
      if (!witness)
        return false;
    }
  }
  return !verdict.reason;
}

void Prover::describe(const Labels &labels) {
  verdict.attentions.assign(labels.getAttentions().size(), {});
  program.walk([&](ring::AttendLikeOpInterface op) {
    std::optional<int> number = labels.attentionOf(op);
    if (!number)
      return;
    ProvedAttention &attention = verdict.attentions[*number];
    attention.attends.push_back(op);
    attention.heads = labels.exchangedHeads(
        labels.getAttentions()[*number].query, op.getQuery());
    StepMeaning meaning = cast<ProvedOpInterface>(op.getOperation()).describe();
    bool isForward = std::holds_alternative<Attended>(meaning);
    (isForward ? attention.isForward : attention.isBackward) = true;
  });
}

/// Follows the pairs of one attention, in rings that turn as is chosen.
bool Prover::proveAttention(const Chosen &chosen, int attention,
                            int &numAttentions) {
  Arithmetic arithmetic;
  Places places(program, verdict.contract, chosen, arithmetic);
  Labels labels(program, places);
  numAttentions = static_cast<int>(labels.getAttentions().size());
  describe(labels);
  if (!places.getReason() && numAttentions == 0)
    places.refuse(program, "a program without an attention");
  if (!places.getReason() && attention == 0)
    checkLifetimes(program, labels, places);
  if (!places.getReason() &&
      mayFollow(labels.getAttentions()[attention], places)) {
    Accounts accounts(program, places, labels, attention, verdict.contract);
    Conditions conditions(program, places, labels, accounts, verdict.contract,
                          decider, options);
    if (!places.getReason())
      conditions.collect();
  }
  verdict.isOfOneParity |= places.isOfOneParity();
  if (places.getReason()) {
    verdict.reason = places.getReason();
    return false;
  }
  return decideAll(places);
}

Verdict Prover::run() {
  verdict.contract = Contract::of(program);
  int64_t ranks = ring::shardingOf(program).sequence.size;
  // What shares heads or batches alone has nobody to count.
  bool isOne = ranks == 1 && ring::numRanks(program) > 1;
  if (ranks < 3 && !isOne) {
    verdict.reason =
        Reason{program,
               "of fewer than 3 ranks, whose number P - 1 is not told from 1"};
    return verdict;
  }
  // Where nothing goes round, no direction is asked for, nor how far.
  auto isAsked = [](const Contract::Need &need, Value step) {
    return !step.use_empty() || !need.reach.use_empty() ||
           (need.innerReach && !need.innerReach.use_empty());
  };
  SmallVector<Value> steps, unused;
  for (const Contract::Need &need : verdict.contract.needs)
    for (Value step : {need.step, need.innerStep})
      if (step && !llvm::is_contained(steps, step))
        (isAsked(need, step) ? steps : unused).push_back(step);
  if (steps.size() > 6) {
    verdict.reason = Reason{program, "too many rings"};
    return verdict;
  }
  for (unsigned directions = 0; directions < 1u << steps.size(); ++directions) {
    Chosen chosen;
    for (Value step : unused)
      chosen.push_back({step, false});
    for (auto [number, step] : llvm::enumerate(steps))
      chosen.push_back({step, (directions >> number & 1) != 0});
    int numAttentions = 1;
    for (int attention = 0; attention < numAttentions; ++attention)
      if (!proveAttention(chosen, attention, numAttentions))
        return verdict;
  }
  return verdict;
}

Verdict burst::proof::proveForAll(func::FuncOp program,
                                  const ProofOptions &options,
                                  Witness witness) {
  return Prover(program, options, witness).run();
}
