//===- AuditStates.cpp - the proof of forward schedules -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state knows which pairs of segments it has absorbed, of which attention. It
// absorbs none twice, merges what is disjoint, and lacks none that the mask
// needs when it ends.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Prove/Auditor.h"

using namespace mlir;
using namespace burst;

std::string burst::describe(const Sharding &sharding) {
  std::string order(stringifyOrder(sharding.layout.order));
  if (sharding.layout.order == Order::Striped)
    order += " " + std::to_string(sharding.layout.block);
  return format("dimension {0} of {1} positions, {2} over {3}", sharding.dim,
                sharding.extent, order, sharding.layout.parts);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// A part like another.
template <typename T>
static std::shared_ptr<T> copyPart(const Part &part) {
  auto copy = std::make_shared<T>(part.shape, part.element);
  copy->labelLike(part);
  copy->name = part.name;
  copy->segments = part.segments;
  return copy;
}

/// A new state has its parts for itself: values never change, and others may
/// still use those of the state before it.
void Auditor::renumber(State &state) {
  ++numStates;
  for (TensorRef *part : {&state.m, &state.l}) {
    if (part->use_count() > 1)
      *part = copyPart<Part>(static_cast<const Part &>(**part));
    static_cast<Part &>(**part).state = numStates;
  }
  static_cast<Account &>(*state.o).state = numStates;
}

State Auditor::init(RankedTensorType type, const Tensor &query) {
  StateShapes shapes(type, query);
  auto o = std::make_shared<Account>(shapes.values, shapes.element);
  auto m = std::make_shared<Part>(shapes.rows, shapes.element);
  auto l = std::make_shared<Part>(shapes.rows, shapes.element);
  std::tie(o->name, m->name, l->name) = std::tuple('o', 'm', 'l');
  State state{std::move(o), std::move(m), std::move(l)};
  renumber(state);
  return state;
}

Account &burst::ownAccount(State &state) {
  auto &old = static_cast<Account &>(*state.o);
  if (state.o.use_count() == 1)
    return old;
  auto account = copyPart<Account>(old);
  account->absorbed = old.absorbed;
  account->worked = old.worked;
  account->proved = old.proved;
  state.o = account;
  return *account;
}

std::string burst::checkState(const State &state) {
  const auto *o = dyn_cast<Account>(state.o.get());
  const auto *m = dyn_cast<Part>(state.m.get());
  const auto *l = dyn_cast<Part>(state.l.get());
  if (!o || !m || !l)
    return "takes a state that ring.init did not make";
  if (m->name != 'm' || l->name != 'l')
    return "takes m and l for each other";
  if (o->state == 0 || o->state != m->state || o->state != l->state)
    return "takes o, m and l of different states";
  return "";
}

std::string Auditor::checkUnchanged(const Tensor &tensor, StringRef what) {
  if (tensor.numSending == 0)
    return "";
  return format("changes a {0} that is under way", what);
}

std::string Auditor::checkUnchanged(const State &state) {
  for (const TensorRef *part : {&state.o, &state.m, &state.l})
    if (std::string found = checkUnchanged(**part, "state"); !found.empty())
      return found;
  return "";
}

//===----------------------------------------------------------------------===//
// Attends
//===----------------------------------------------------------------------===//

/// Batches and heads are counted from where those of this rank begin.
std::string Auditor::checkOffsets(const AttendInputs &inputs) {
  auto check = [](StringRef what, int64_t part, int64_t parts, int64_t size,
                  int64_t first, int64_t all) -> std::string {
    if (first == part * size && all == parts * size)
      return "";
    return format("counts from {0} {1} of {2}, the tensors of this rank begin "
                  "with {3} of {4}",
                  what, first, all, part * size, parts * size);
  };
  ArrayRef<int64_t> query(inputs.query->shape);
  std::string message =
      check("batch", sharding.batch.placeOf(inputs.rank), sharding.batch.size,
            query[0], inputs.firstBatch, inputs.numBatches);
  if (message.empty())
    message =
        check("head", sharding.headPartOf(inputs.rank), sharding.numHeadParts(),
              query[2], inputs.firstHead, inputs.numHeads);
  if (!message.empty())
    return message;
  int number = inputs.query->argument;
  if (number < 0 || !hasExchanges())
    return "";
  return classifier.checkRoom(
      inputs, {headsOfArgument(number), query[2], groupsOf(number)},
      sharding.exchanged.size, sharding.headPartOf(inputs.rank));
}

std::string Auditor::checkQuery(const AttendInputs &inputs) {
  const Tensor &query = *inputs.query;
  if (query.argument < 0)
    return "attends with a query that is no shard of an argument";
  if (query.owner != inputs.queryOwner)
    return format("takes the queries for those of rank {0}, they are those of "
                  "{1}",
                  inputs.queryOwner, query.owner);
  Layout layout = inputs.queryLayout.getValue();
  int64_t rows = shards.of(layout, inputs.queryExtent, inputs.queryOwner).count;
  if (query.shape[1] != rows)
    return format("has {0} queries, its layout says {1}", query.shape[1], rows);
  Sharding wanted{layout, 1, inputs.queryExtent};
  if (query.sharding != wanted)
    return format(
        "takes queries that are laid out as {0} as if they were laid out "
        "as {1}",
        describe(query.sharding), describe(wanted));
  return checkOffsets(inputs);
}

std::string Auditor::checkSlice(const AttendInputs &inputs,
                                const Slice &slice) {
  Layout layout = inputs.keyLayout.getValue();
  for (const Tensor *tensor : {slice.key, slice.value}) {
    if (!tensor)
      continue;
    StringRef what = tensor == slice.key ? "keys" : "values";
    if (tensor->argument < 0)
      return format("attends {0} that are no shard of an argument", what);
    if (std::string found =
            checkChunk(*inputs.query, *tensor, what, /*isOfKeys=*/true);
        !found.empty())
      return found;
    if (slice.key && slice.value &&
        headsOfArgument(slice.key->argument) !=
            headsOfArgument(tensor->argument))
      return format("takes values of {0} heads with keys of {1}",
                    headsOfArgument(tensor->argument),
                    headsOfArgument(slice.key->argument));
    if (tensor->owner != slice.owner)
      return format("takes the {0} for those of rank {1}, they are those of "
                    "{2}",
                    what, slice.owner, tensor->owner);
    int64_t count = shards.of(layout, inputs.keyExtent, slice.owner).count;
    if (tensor->shape[1] != count)
      return format("has {0} {1}, its layout says {2}", tensor->shape[1], what,
                    count);
    Sharding wanted{layout, 1, inputs.keyExtent};
    if (tensor->sharding != wanted)
      return format(
          "takes {0} that are laid out as {1} as if they were laid out as "
          "{2}",
          what, describe(tensor->sharding), describe(wanted));
  }
  return "";
}

PairMask Auditor::computedPairs(const AttendInputs &inputs, size_t index,
                                int64_t owner) {
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  PairMask pairs = 0;
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b)
      pairs |= inputs.isComputed(index, a, b) * pairBit(a, b, numB);
  if (pairs == 0)
    return 0;
  uint64_t rows =
      segmentsOf({inputs.queryLayout.getValue(), 1, inputs.queryExtent},
                 inputs.queryOwner);
  uint64_t columns =
      segmentsOf({inputs.keyLayout.getValue(), 1, inputs.keyExtent}, owner);
  return pairs & pairsOfQueries(rows, numA, numB) &
         pairsOfKeys(columns, numA, numB);
}

Met burst::metSegments(const AttendInputs &inputs, size_t index) {
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  Met met;
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b)
      if (inputs.isComputed(index, a, b)) {
        met.queries |= uint64_t{1} << a;
        met.keys |= uint64_t{1} << b;
      }
  return met;
}

/// Whether pairs that are to be computed are such that the mask needs.
bool Auditor::areNeeded(const AttendInputs &inputs, int64_t owner,
                        PairMask pairs) {
  return options.allowEmpty || pairs == 0 ||
         (pairs & ~classifier.needed(inputs, inputs.queryOwner, owner)) == 0;
}

std::string Auditor::checkNeeded(const AttendInputs &inputs, int64_t owner,
                                 int64_t a, int64_t b) {
  if (options.allowEmpty ||
      classifier.classify(inputs, owner, a, b) != PairClass::Empty)
    return "";
  return format("computes query segment {0} with segment {1} of rank {2}, of "
                "which the mask keeps nothing",
                a, b, owner);
}

/// One table, or two of the same content: each rank makes its own.
static bool sameTable(const TensorRef &a, const TensorRef &b) {
  if (!a || !b || a == b)
    return a == b;
  return a->shape == b->shape && a->element == b->element && a->hasData() &&
         a->ints == b->ints && a->floats == b->floats;
}

static bool sameArguments(ArrayRef<Argument> a, ArrayRef<Argument> b) {
  return llvm::equal(a, b, [](const Argument &x, const Argument &y) {
    return x.scalar.i == y.scalar.i && sameTable(x.table, y.table);
  });
}

/// It is kept for what it names, and outlives what was received.
const ProvedAttention *Auditor::keep(const AttendInputs &inputs, int query,
                                     int key, int value) {
  auto shape =
      std::make_shared<Tensor>(inputs.query->shape, inputs.query->element);
  auto proved = std::make_unique<ProvedAttention>(
      ProvedAttention{inputs, shape, query, key, value});
  proved->inputs.query = shape.get();
  return provedAttentions.emplace_back(std::move(proved)).get();
}

/// In what two differ beside their masks and scores.
static std::string differenceBesideRegions(const AttendInputs &x,
                                           const AttendInputs &y) {
  if (x.queryExtent != y.queryExtent || x.keyExtent != y.keyExtent)
    return "has other extents";
  if (!sameArguments(x.maskCaptures, y.maskCaptures) ||
      !sameArguments(x.scoreCaptures, y.scoreCaptures))
    return "captures other values";
  if (x.scale != y.scale || x.keyLayout != y.keyLayout ||
      x.queryLayout != y.queryLayout)
    return "has another mask, score, scale or layout";
  return "";
}

std::string burst::difference(const AttendInputs &x, const AttendInputs &y) {
  if (std::string found = differenceBesideRegions(x, y); !found.empty())
    return found;
  if (x.at == y.at)
    return "";
  auto same = [](Region *x, Region *y) {
    return OperationEquivalence::isRegionEquivalentTo(
        x, y, OperationEquivalence::IgnoreLocations);
  };
  if (!same(x.mask, y.mask) || !same(x.score, y.score) ||
      !same(x.bounds, y.bounds))
    return "has another mask, score, scale or layout";
  return "";
}

std::string burst::difference(const ProvedAttention &x,
                              const ProvedAttention &y) {
  if (x.key != y.key || x.value != y.value)
    return "attends slices of other tensors";
  if (x.query != y.query)
    return "attends with another query";
  return difference(x.inputs, y.inputs);
}

/// Whether chunks of heads are of the same, and are as many, or both are all.
static bool areOfOne(int x, int y) {
  return ofAllHeads(x) == ofAllHeads(y) && chunkOf(x).count == chunkOf(y).count;
}

std::string burst::differenceOfChunks(const ProvedAttention &x,
                                      const ProvedAttention &y) {
  if (!areOfOne(x.key, y.key) || !areOfOne(x.value, y.value))
    return "attends slices of other tensors";
  if (!areOfOne(x.query, y.query))
    return "attends with another query";
  return differenceBesideRegions(x.inputs, y.inputs);
}

std::string burst::differenceOfChunks(const ProvedGradient &x,
                                      const ProvedGradient &y) {
  const GradientLabels &a = x.labels, &b = y.labels;
  const std::pair<int, int> labels[] = {
      {a.query, b.query}, {a.key, b.key},        {a.value, b.value},
      {a.lse, b.lse},     {a.delta, b.delta},    {a.outGrad, b.outGrad},
      {a.out, b.out},     {a.lseGrad, b.lseGrad}};
  for (auto [own, other] : labels)
    if (!areOfOne(own, other))
      return "takes other tensors";
  if (x.captures != y.captures)
    return "has another gradient of its score";
  return differenceBesideRegions(x.inputs, y.inputs);
}

/// All attends of one state compute one attention, for one rank's queries.
static std::string checkAgrees(const ProvedAttention &proved,
                               const Attend &attend) {
  std::string found = difference(proved.inputs, attend);
  if (attend.query->argument != proved.query)
    found = "attends with another query";
  for (const Slice &slice : attend.slices)
    if (slice.key->argument != proved.key ||
        slice.value->argument != proved.value)
      found = "attends slices of other tensors";
  if (int64_t owner = proved.inputs.queryOwner; owner != attend.queryOwner)
    found = format("attends with the queries of rank {0}, not of {1},",
                   attend.queryOwner, owner);
  return found.empty() ? "" : found + " than the state before it";
}

/// What an attend asks of a fresh state.
const ProvedAttention *Auditor::ask(const Attend &attend) {
  const ProvedAttention *&known = asked[{attend.at, attend.queryOwner}];
  const Slice &slice = attend.slices.front();
  if (!known || !checkAgrees(*known, attend).empty())
    known = keep(attend, attend.query->argument, slice.key->argument,
                 slice.value->argument);
  return known;
}

/// The first of the pairs that must not be computed, and why.
std::string Auditor::describeWrong(const Attend &attend, const Slice &slice,
                                   const Account &account, PairMask pairs) {
  int64_t numA = attend.queryLayout.getNumSegments();
  int64_t numB = attend.keyLayout.getNumSegments();
  PairMask before = account.absorbed.at(slice.owner);
  for (int64_t a = 0; a < numA; ++a)
    for (int64_t b = 0; b < numB; ++b) {
      if (!(pairs & pairBit(a, b, numB)))
        continue;
      if (!((slice.key->segments & slice.value->segments) >> b & 1))
        return format("reads segment {0} of rank {1}, which was not received",
                      b, slice.owner);
      if (!(attend.query->segments >> a & 1))
        return format("reads query segment {0} of rank {1}, which was not "
                      "received",
                      a, attend.queryOwner);
      if (!(account.segments >> a & 1))
        return format("adds to segment {0} of a state, which was not received",
                      a);
      if (std::string found = checkNeeded(attend, slice.owner, a, b);
          !found.empty())
        return found;
      if (before & pairBit(a, b, numB))
        return format("computes query segment {0} with segment {1} of rank {2} "
                      "a second time",
                      a, b, slice.owner);
    }
  llvm_unreachable("some pair must not be computed");
}

std::string Auditor::absorb(const Attend &attend, size_t index,
                            Account &account) {
  const Slice &slice = attend.slices[index];
  int64_t numA = attend.queryLayout.getNumSegments();
  int64_t numB = attend.keyLayout.getNumSegments();
  PairMask pairs = computedPairs(attend, index, slice.owner);
  PairMask before = account.absorbed.at(slice.owner);
  PairMask here =
      pairsOfQueries(attend.query->segments & account.segments, numA, numB) &
      pairsOfKeys(slice.key->segments & slice.value->segments, numA, numB);
  if ((pairs & (~here | before)) == 0 &&
      areNeeded(attend, slice.owner, pairs)) {
    proof.computed += llvm::popcount(pairs);
    account.absorbed.add(slice.owner, pairs);
    Met met = metSegments(attend, index);
    account.worked |= met.queries;
    readSegments(*attend.query, met.queries);
    for (const Tensor *keys : {slice.key, slice.value})
      readSegments(*keys, met.keys);
    return "";
  }
  return describeWrong(attend, slice, account, pairs);
}

bool Auditor::attend(Attend &attend, State &result, std::string &message) {
  message = checkQuery(attend);
  for (size_t index = 0; index < attend.slices.size() && message.empty();
       ++index)
    message = checkSlice(attend, attend.slices[index]);
  if (message.empty())
    message = checkState(attend.state);
  if (message.empty())
    message = checkUnchanged(attend.state);
  const Tensor &state = *attend.state.o;
  if (message.empty() && state.owner != attend.queryOwner)
    message = format("attends with the queries of rank {0} for a state of "
                     "those of {1}",
                     attend.queryOwner, state.owner);
  if (message.empty() && state.sharding != attend.query->sharding)
    message =
        format("attends with queries that are laid out as {0} for a state "
               "of such that are laid out as {1}",
               describe(attend.query->sharding), describe(state.sharding));
  if (!message.empty())
    return false;
  result = std::move(attend.state);
  readState(result);
  Account &account = ownAccount(result);
  renumber(result);
  if (!account.proved)
    account.proved = ask(attend);
  message = checkAgrees(*account.proved, attend);
  for (size_t index = 0; index < attend.slices.size() && message.empty();
       ++index)
    message = absorb(attend, index, account);
  return message.empty();
}

/// Both are states of the owner's queries, and what is merged is there.
std::string Auditor::checkMerged(const Merge &merge) {
  Layout layout = merge.layout.getValue();
  for (const State *state : {&merge.into, &merge.from}) {
    for (const auto &[part, dim] : {std::pair(state->o.get(), 1),
                                    {state->m.get(), 2},
                                    {state->l.get(), 2}}) {
      if ((part->segments & merge.segments) != merge.segments)
        return format("merges segments {0:x} of a state, of which it has {1:x}",
                      merge.segments, part->segments);
      if (part->owner != merge.owner)
        return format("merges a state of the queries of rank {0} as one of "
                      "those of {1}",
                      part->owner, merge.owner);
      Sharding wanted{layout, dim, merge.extent};
      if (part->sharding != wanted)
        return format("merges a state of what is laid out as {0} as if it were "
                      "laid out as {1}",
                      describe(part->sharding), describe(wanted));
    }
    if (std::string found = checkState(*state); !found.empty())
      return found;
  }
  return checkUnchanged(merge.into);
}

bool Auditor::merge(Merge &merge, std::string &message) {
  message = checkMerged(merge);
  if (!message.empty())
    return false;
  readState(merge.into);
  readState(merge.from, merge.segments);
  Account &account = ownAccount(merge.into);
  renumber(merge.into);
  const auto &other = static_cast<const Account &>(*merge.from.o);
  account.worked |= other.worked & merge.segments;
  if (!other.proved)
    return true;
  if (!account.proved)
    account.proved = other.proved;
  // Whose queries they are has been checked.
  if (std::string found = difference(*account.proved, *other.proved);
      !found.empty()) {
    message = "merges a state that " + found + " than the other";
    return false;
  }
  int64_t numA = account.proved->inputs.queryLayout.getNumSegments();
  int64_t numB = account.proved->inputs.keyLayout.getNumSegments();
  if (account.absorbed.unite(other.absorbed,
                             pairsOfQueries(merge.segments, numA, numB)) != 0)
    message = "merges states that have absorbed the same pair";
  return message.empty();
}

/// Every pair that the mask does not rule out has been absorbed.
std::string Auditor::checkComplete(const Account &account) {
  const AttendInputs &first = account.proved->inputs;
  int64_t numA = first.queryLayout.getNumSegments();
  int64_t numB = first.keyLayout.getNumSegments();
  for (int64_t owner = 0; owner < parts; ++owner) {
    PairMask absorbed = account.absorbed.at(owner);
    PairMask needed = classifier.needed(first, first.queryOwner, owner);
    if (PairMask lacking = needed & ~absorbed) {
      int64_t pair = llvm::countr_zero(lacking);
      return format("lacks query segment {0} with segment {1} of rank {2}, "
                    "which no attend has computed",
                    pair / numB, pair % numB, owner);
    }
    proof.wasted += llvm::popcount(absorbed & ~needed);
    proof.dropped += numA * numB - llvm::popcount(absorbed | needed);
  }
  return "";
}

bool Auditor::finalize(Finalize &finalize, std::string &message) {
  State &state = finalize.state;
  message = checkState(state);
  if (message.empty())
    message = checkUnchanged(state);
  if (!message.empty())
    return false;
  readState(state);
  const auto &account = static_cast<const Account &>(*state.o);
  Sharding sharding = account.sharding;
  uint64_t wanted = segmentsOf(sharding, account.owner);
  if ((account.segments & wanted) != wanted)
    message = format("ends segments {0:x} of a state, of which it has {1:x}",
                     wanted, account.segments);
  else if (account.proved)
    message = checkComplete(account);
  else if (wanted != 0)
    message = "ends a state that has attended nothing";
  if (!message.empty())
    return false;
  const ProvedAttention *proved = account.proved;
  if (!Bookkeeper::finalize(finalize, message))
    return false;
  for (const auto &[tensor, dim] : {std::pair(finalize.out, 1),
                                    {finalize.lse, 2},
                                    {finalize.maxScores, 2}}) {
    if (!tensor)
      continue;
    if (auto *part = dyn_cast<Part>(tensor.get()))
      part->state = 0; // A part of a state no longer.
    tensor->sharding = sharding;
    tensor->sharding.dim = dim;
    tensor->origin = std::make_shared<Origin>(Origin{proved, dim});
  }
  return true;
}

/// Part of the same state arrives, with what the segments have absorbed that
/// come.
static TensorRef arrivedPart(const Part &sent, const Transfer &to,
                             size_t index) {
  auto label = [&](Part &arrived) {
    arrived.name = sent.name;
    arrived.state = sent.state;
  };
  const auto *account = dyn_cast<Account>(&sent);
  if (!account) {
    auto arrived = to.makeReceived<Part>(index);
    label(*arrived);
    return arrived;
  }
  auto arrived = to.makeReceived<Account>(index);
  label(*arrived);
  arrived->worked = account->worked & to.receiveMask;
  if (!account->proved)
    return arrived;
  const AttendInputs &inputs = account->proved->inputs;
  PairMask pairs =
      pairsOfQueries(to.receiveMask, inputs.queryLayout.getNumSegments(),
                     inputs.keyLayout.getNumSegments());
  arrived->proved = account->proved;
  arrived->absorbed = account->absorbed.restricted(pairs);
  return arrived;
}

/// What was known of a tensor is known of what arrives of it.
TensorRef Auditor::deliver(const Transfer &from, const Transfer &to,
                           size_t index) {
  const Tensor &sent = *from.tensors[index];
  TensorRef arrived;
  if (const auto *part = dyn_cast<Part>(&sent))
    arrived = arrivedPart(*part, to, index);
  else if (const auto *gradient = dyn_cast<Gradient>(&sent))
    arrived = arrivedGradient(*gradient, to, index);
  else
    arrived = to.makeReceived(index);
  arrived->origin = sent.origin;
  if (travel)
    receive(from, to, index, *arrived);
  return arrived;
}
