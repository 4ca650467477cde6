//===- AuditGradients.cpp - the proof of backward schedules ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gradient knows which pairs of segments were added to it, by segment of its
// own shard: so much travels where only some segments are flagged. What a rank
// returns must be by its own shard and have all that the mask needs, and sums
// are of disjoint pairs, so each has entered once.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulation/Prove/Auditor.h"

using namespace mlir;
using namespace burst;

StringRef burst::describe(By by) {
  switch (by) {
  case By::Query:
    return "the query";
  case By::Key:
    return "the key";
  case By::Value:
    return "the value";
  case By::Table:
    return "a table";
  }
  llvm_unreachable("unknown kind");
}

/// Of what a gradient is, but for what was added to it.
static void know(Gradient &gradient, const Gradient &other) {
  gradient.table = other.table;
  gradient.isRounded = other.isRounded;
  gradient.proved = other.proved;
  gradient.place = other.place;
  gradient.others = other.others;
}

static std::shared_ptr<Gradient> copyOf(const Gradient &gradient,
                                        Type element) {
  auto copy = std::make_shared<Gradient>(gradient.shape, element);
  copy->labelLike(gradient);
  copy->segments = gradient.segments;
  know(*copy, gradient);
  copy->added = gradient.added;
  copy->worked = gradient.worked;
  return copy;
}

Gradient &burst::ownGradient(TensorRef &tensor) {
  if (tensor.use_count() > 1)
    tensor = copyOf(static_cast<const Gradient &>(*tensor), tensor->element);
  return static_cast<Gradient &>(*tensor);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

bool Auditor::delta(Type element, const TensorRef &out,
                    const TensorRef &outGrad, const TensorRef &lseGrad,
                    TensorRef &result, std::string &message) {
  Sharding rows = outGrad->sharding;
  rows.dim = 2;
  if (outGrad->argument < 0 || (lseGrad && lseGrad->argument < 0))
    message = "takes a gradient that is no shard of an argument";
  else if (out->argument < 0 && !isMade(*out, Made::Out))
    message = "takes as out what is neither an argument nor of ring.finalize";
  else if (!areOfOneChunk(outGrad->argument, out->argument) ||
           (lseGrad && !areOfOneChunk(outGrad->argument, lseGrad->argument)))
    message = "takes rows of different chunks of heads";
  else if ((out->argument >= 0 &&
            !haveSameHeads(out->argument, outGrad->argument)) ||
           (lseGrad && !haveSameHeads(lseGrad->argument, outGrad->argument)))
    message = "takes rows of different numbers of heads, or in other groups";
  else if (out->sharding != outGrad->sharding)
    message =
        format("takes out that is laid out as {0} with a gradient that is "
               "laid out as {1}",
               describe(out->sharding), describe(outGrad->sharding));
  else if (lseGrad && lseGrad->sharding != rows)
    message = format("takes a gradient of lse that is laid out as {0} as if it "
                     "were laid out as {1}",
                     describe(lseGrad->sharding), describe(rows));
  if (!message.empty() ||
      !Bookkeeper::delta(element, out, outGrad, lseGrad, result, message))
    return false;
  result->segments = out->segments & outGrad->segments;
  if (lseGrad)
    result->segments &= lseGrad->segments;
  for (const TensorRef &rows : {out, outGrad, lseGrad})
    if (rows)
      readSegments(*rows);
  Origin origin{out->origin ? out->origin->proved : nullptr, 2, out->argument,
                lseGrad ? lseGrad->argument : -1};
  result->origin = std::make_shared<Origin>(origin);
  return true;
}

/// What stands beside the query is of the same rows.
std::string Auditor::checkRows(const AttendGrad &attend) {
  struct Rows {
    const Tensor &tensor;
    StringRef name;
    int64_t dim;
  };
  for (auto [tensor, name, dim] : {Rows{*attend.outGrad, "outGrad", 1},
                                   {*attend.lse, "lse", 2},
                                   {*attend.delta, "delta", 2}}) {
    if (tensor.owner != attend.queryOwner)
      return format("takes {0} for that of rank {1}, it is that of {2}", name,
                    attend.queryOwner, tensor.owner);
    Sharding wanted{attend.queryLayout.getValue(), dim, attend.queryExtent};
    if (tensor.sharding != wanted)
      return format(
          "takes {0} that is laid out as {1} as if it were laid out as {2}",
          name, describe(tensor.sharding), describe(wanted));
  }
  if (attend.outGrad->argument < 0)
    return "takes as outGrad what is no shard of an argument";
  if (std::string found = checkChunk(*attend.query, *attend.outGrad, "outGrad",
                                     /*isOfKeys=*/false);
      !found.empty())
    return found;
  if (attend.lse->argument >= 0)
    if (std::string found =
            checkChunk(*attend.query, *attend.lse, "lse", /*isOfKeys=*/false);
        !found.empty())
      return found;
  if (attend.lse->argument < 0 && !isMade(*attend.lse, Made::Lse))
    return "takes as lse what is neither an argument nor of ring.finalize";
  if (!isMade(*attend.delta, Made::Delta))
    return "takes as delta what ring.delta did not make";
  if (whatIsMade(attend.delta->argument).first != attend.outGrad->argument)
    return "takes a delta that was made of another outGrad";
  for (const auto &[rows, name] :
       {std::pair(attend.lse, "lse"), {attend.delta, "delta"}})
    if (std::string found = checkOrigin(attend, *rows, name); !found.empty())
      return found;
  return "";
}

/// Where the program itself attends, the gradients must be those of that.
std::string Auditor::checkOrigin(const AttendGrad &attend, const Tensor &rows,
                                 StringRef name) {
  if (!rows.origin || !rows.origin->proved)
    return "";
  const ProvedAttention &forward = *rows.origin->proved;
  std::string other = difference(forward.inputs, attend);
  if (forward.query != attend.query->argument)
    other = "attends with another query";
  if (forward.key != attend.slice.key->argument ||
      forward.value != attend.slice.value->argument)
    other = "attends slices of other tensors";
  if (other.empty())
    return "";
  return format("{0} than the one that {1} is of", other, name);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

TensorRef Auditor::zero(Type element, const Tensor &like) {
  TensorRef made = Bookkeeper::zero(element, like);
  auto gradient = std::make_shared<Gradient>(made->shape, made->element);
  if (like.argument < 0)
    gradient->table = &like;
  return gradient;
}

std::string Auditor::checkTaken(const TensorRef &tensor, int64_t place,
                                const Tensor *of) {
  auto by = static_cast<By>(std::min<int64_t>(place, 3));
  bool isTable = by == By::Table;
  StringRef what = describe(by);
  const auto *gradient = dyn_cast<Gradient>(tensor.get());
  if (!gradient && tensor->segments == 0)
    return format("adds to a gradient by {0} that was not received", what);
  if (!gradient)
    return format("adds gradients by {0} to what ring.zero did not make", what);
  bool isOther = gradient->proved && gradient->place != place;
  if (isTable ? gradient->table != of
              : gradient->argument != madeFor(of->argument, Made::Gradient))
    isOther = true;
  if (isOther)
    return format("adds gradients by {0} to those by something else", what);
  if (!isTable && gradient->owner != of->owner)
    return format("adds gradients by {0} of rank {1} to those of {2}", what,
                  of->owner, gradient->owner);
  if (!isTable && gradient->sharding != of->sharding)
    return format("adds gradients by what is laid out as {0} to those by what "
                  "is laid out as {1}",
                  describe(of->sharding), describe(gradient->sharding));
  if (gradient->isRounded)
    return format("adds gradients by {0} to those that were rounded", what);
  return checkUnchanged(*tensor, "gradient");
}

/// Whose gradients they are, and that they can change.
std::string Auditor::checkGradients(const AttendGrad &attend) {
  SmallVector<const Tensor *> by{attend.query, attend.slice.key,
                                 attend.slice.value};
  for (int64_t n : attend.captures)
    by.push_back(attend.scoreCaptures[n].table.get());
  for (auto [place, tensor] : llvm::enumerate(attend.grads))
    if (std::string found =
            checkTaken(tensor, static_cast<int64_t>(place), by[place]);
        !found.empty())
      return found;
  return "";
}

static std::string difference(const GradientLabels &x,
                              const GradientLabels &y) {
  if (x.query != y.query)
    return "attends with another query";
  if (x.key != y.key || x.value != y.value)
    return "attends slices of other tensors";
  if (x.outGrad != y.outGrad || x.lse != y.lse)
    return "takes another outGrad or lse";
  if (x.delta != y.delta || x.out != y.out || x.lseGrad != y.lseGrad)
    return "takes a delta of another out or lseGrad";
  return "";
}

std::string burst::difference(const ProvedGradient &x,
                              const ProvedGradient &y) {
  return difference(x, y.inputs, *y.gradient, y.captures, y.labels);
}

std::string burst::difference(const ProvedGradient &x,
                              const AttendInputs &inputs, Region &gradient,
                              ArrayRef<int64_t> captures,
                              const GradientLabels &labels) {
  if (std::string found = ::difference(x.labels, labels); !found.empty())
    return found;
  if (std::string found = difference(x.inputs, inputs); !found.empty())
    return found;
  if (x.gradient == &gradient)
    return "";
  if (x.captures != captures ||
      !OperationEquivalence::isRegionEquivalentTo(
          x.gradient, &gradient, OperationEquivalence::IgnoreLocations))
    return "has another gradient of its score";
  return "";
}

const ProvedGradient *Auditor::ask(const AttendGrad &attend) {
  const Origin &delta = *attend.delta->origin;
  GradientLabels labels{attend.query->argument,
                        attend.slice.key->argument,
                        attend.slice.value->argument,
                        attend.outGrad->argument,
                        attend.lse->argument,
                        attend.delta->argument,
                        delta.out,
                        delta.lseGrad};
  for (const auto &known : provedGradients)
    if (difference(*known, attend, *attend.gradient, attend.captures, labels)
            .empty())
      return known.get();
  // It outlives what was received.
  auto shape =
      std::make_shared<Tensor>(attend.query->shape, attend.query->element);
  auto asked = std::make_unique<ProvedGradient>(
      ProvedGradient{attend, shape, attend.gradient, attend.captures, labels});
  asked->inputs.query = shape.get();
  return provedGradients.emplace_back(std::move(asked)).get();
}

/// What a pair reads and what it is added to is here.
std::string Auditor::checkArrived(const AttendGrad &attend, int64_t a,
                                  int64_t b) {
  for (const Tensor *rows :
       {attend.query, attend.outGrad, attend.lse, attend.delta})
    if (!(rows->segments >> a & 1))
      return format("reads query segment {0} of rank {1}, which was not "
                    "received",
                    a, attend.queryOwner);
  for (const Tensor *keys : {attend.slice.key, attend.slice.value})
    if (!(keys->segments >> b & 1))
      return format("reads segment {0} of rank {1}, which was not received", b,
                    attend.slice.owner);
  for (auto [place, gradient] : llvm::enumerate(attend.grads)) {
    int64_t segment = place == 0 ? a : b;
    if (place < 3 && !(gradient->segments >> segment & 1))
      return format("adds to segment {0} of a gradient by {1}, which was not "
                    "received",
                    segment, describe(static_cast<By>(place)));
  }
  return "";
}

/// The pairs of which all that they read and are added to is here.
static PairMask arrivedPairs(const AttendGrad &attend) {
  int64_t numA = attend.queryLayout.getNumSegments();
  int64_t numB = attend.keyLayout.getNumSegments();
  const Slice &slice = attend.slice;
  uint64_t rows = attend.query->segments & attend.outGrad->segments &
                  attend.lse->segments & attend.delta->segments;
  uint64_t columns = slice.key->segments & slice.value->segments;
  for (auto [place, gradient] : llvm::enumerate(attend.grads))
    if (place < 3)
      (place == 0 ? rows : columns) &= gradient->segments;
  return pairsOfQueries(rows, numA, numB) & pairsOfKeys(columns, numA, numB);
}

/// By which number a gradient knows the other side of a pair of shards.
static int64_t otherSide(const Gradient &gradient, const AttendGrad &attend,
                         int64_t parts) {
  switch (gradient.by()) {
  case By::Query:
    return attend.slice.owner;
  case By::Key:
  case By::Value:
    return attend.queryOwner;
  case By::Table:
    return attend.queryOwner * parts + attend.slice.owner;
  }
  llvm_unreachable("unknown kind");
}

std::string Auditor::addPairs(const AttendGrad &attend, PairMask pairs) {
  int64_t numB = attend.keyLayout.getNumSegments();
  constexpr int none = std::numeric_limits<PairMask>::digits;
  int pair = none; // the first that was there, in the first such gradient
  By by = By::Query;
  for (const TensorRef &tensor : attend.grads) {
    auto &gradient = static_cast<Gradient &>(*tensor);
    PairMask before =
        gradient.added.add(otherSide(gradient, attend, parts), pairs);
    if (llvm::countr_zero(before) < pair)
      std::tie(pair, by) = std::pair(llvm::countr_zero(before), gradient.by());
  }
  proof.computed += llvm::popcount(pairs);
  if (pair == none)
    return "";
  return format("adds query segment {0} of rank {1} with segment {2} of "
                "rank {3} a second time to the gradient by {4}",
                pair / numB, attend.queryOwner, pair % numB, attend.slice.owner,
                describe(by));
}

/// What comes together is read; gradients that are added to go on.
void Auditor::readMet(const AttendGrad &attend) {
  Met met = metSegments(attend, 0);
  for (const Tensor *rows :
       {attend.query, attend.outGrad, attend.lse, attend.delta})
    readSegments(*rows, met.queries);
  for (const Tensor *keys : {attend.slice.key, attend.slice.value})
    readSegments(*keys, met.keys);
  for (const TensorRef &gradient : attend.grads)
    readSegments(*gradient);
}

/// Whether a chunk of heads begins to add to a gradient by what is in all
/// chunks: what others have added is put aside.
bool Auditor::beginChunk(Gradient &gradient, const ProvedGradient &proved) {
  auto chunkOfQueries = [](const ProvedGradient &of) {
    return chunkOf(of.labels.query);
  };
  HeadChunk own = chunkOfQueries(proved);
  auto isOther = [&](const Gradient &other) {
    HeadChunk before = chunkOfQueries(*other.proved);
    return before.argument == own.argument && before.count == own.count &&
           before.chunk != own.chunk;
  };
  bool isInAll =
      gradient.by() == By::Table ||
      (gradient.by() != By::Query && chunkOf(gradient.argument).count == 1);
  if (!isInAll || !isOther(gradient) ||
      !differenceOfChunks(*gradient.proved, proved).empty() ||
      !llvm::all_of(gradient.others,
                    [&](const auto &other) { return isOther(*other); }))
    return false;
  auto before = copyOf(gradient, gradient.element);
  before->others.clear();
  gradient.others.push_back(before);
  gradient.added = PairSet();
  gradient.proved = &proved;
  return true;
}

bool Auditor::attendGrad(AttendGrad &attend, std::string &message) {
  message = checkQuery(attend);
  if (message.empty())
    message = checkSlice(attend, attend.slice);
  if (message.empty())
    message = checkRows(attend);
  if (message.empty())
    message = checkGradients(attend);
  int64_t numB = attend.keyLayout.getNumSegments();
  PairMask pairs = computedPairs(attend, 0, attend.slice.owner);
  bool isRight = (pairs & ~arrivedPairs(attend)) == 0 &&
                 areNeeded(attend, attend.slice.owner, pairs);
  for (PairMask rest = isRight ? 0 : pairs; rest != 0 && message.empty();
       rest &= rest - 1) {
    int64_t pair = llvm::countr_zero(rest), a = pair / numB, b = pair % numB;
    message = checkArrived(attend, a, b);
    if (message.empty())
      message = checkNeeded(attend, attend.slice.owner, a, b);
  }
  if (!message.empty())
    return false;
  readMet(attend);
  // Of rows that were not received, nobody knows what they are of.
  if (attend.delta->segments == 0)
    return true;
  const ProvedGradient *proved = ask(attend);
  Met met = metSegments(attend, 0);
  for (auto [place, tensor] : llvm::enumerate(attend.grads)) {
    Gradient &gradient = ownGradient(tensor);
    gradient.worked |= place == 0 ? met.queries : met.keys;
    if (gradient.proved && gradient.proved != proved &&
        !beginChunk(gradient, *proved)) {
      bool areChunks = chunkOf(proved->labels.query).count != 1;
      std::string found =
          areChunks ? differenceOfChunks(*gradient.proved, *proved) : "";
      if (found.empty())
        found = difference(*gradient.proved, *proved);
      message = found + " than what was added before";
    }
    if (gradient.proved)
      continue;
    gradient.proved = proved;
    gradient.place = static_cast<int64_t>(place);
  }
  if (message.empty() && pairs != 0)
    message = addPairs(attend, pairs);
  return message.empty();
}

/// The pairs of a gradient with some of its own segments.
static PairMask pairsOf(const Gradient &gradient, uint64_t segments) {
  const AttendInputs &inputs = gradient.proved->inputs;
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  return gradient.by() == By::Query ? pairsOfQueries(segments, numA, numB)
                                    : pairsOfKeys(segments, numA, numB);
}

bool Auditor::add(Sum &sum, std::string &message) {
  Sharding wanted{sum.layout.getValue(), 1, sum.extent};
  for (const Tensor *tensor : {sum.a.get(), sum.b}) {
    const auto *gradient = dyn_cast<Gradient>(tensor);
    if ((tensor->segments & sum.segments) != sum.segments)
      message = format("adds segments {0:x} of a gradient, of which it has "
                       "{1:x}",
                       sum.segments, tensor->segments);
    else if (!gradient)
      message = "adds what is no gradient";
    else if (tensor->owner != sum.owner)
      message = format("adds a gradient by the shard of rank {0} as one by "
                       "that of {1}",
                       tensor->owner, sum.owner);
    else if (tensor->sharding != wanted)
      message =
          format("adds a gradient by what is laid out as {0} as if it were "
                 "laid out as {1}",
                 describe(tensor->sharding), describe(wanted));
    else if (gradient->isRounded)
      message = "adds a gradient that was rounded";
    if (!message.empty())
      return false;
  }
  message = checkUnchanged(*sum.a, "gradient");
  const auto &from = static_cast<const Gradient &>(*sum.b);
  const auto &into = static_cast<const Gradient &>(*sum.a);
  if (message.empty() &&
      (into.argument != from.argument ||
       (into.proved && from.proved && into.place != from.place)))
    message = "adds gradients by different tensors";
  else if (message.empty() && into.proved && from.proved &&
           into.proved != from.proved)
    message = "adds a gradient that " + difference(*into.proved, *from.proved) +
              " than the other";
  if (!message.empty())
    return false;
  readSegments(into);
  readSegments(from, sum.segments);
  Gradient &account = ownGradient(sum.a);
  account.worked |= from.worked & sum.segments;
  if (!from.proved)
    return true;
  if (!account.proved) {
    account.proved = from.proved;
    account.place = from.place;
  }
  PairMask before =
      account.added.unite(from.added, pairsOf(account, sum.segments));
  for (int64_t s = 0; before != 0 && s < sum.layout.getNumSegments(); ++s)
    if (before & pairsOf(account, uint64_t{1} << s))
      message = format("adds to segment {0} of the gradient by {1} what was "
                       "added before",
                       s, describe(account.by()));
  return message.empty();
}

/// Behind an all-to-all, one part of each rank for a head that it shares.
bool Auditor::addHeads(Type element, int64_t heads, const TensorRef &gradient,
                       TensorRef &result, std::string &message) {
  const auto *part = dyn_cast_or_null<Gradient>(gradient->inside.get());
  if (!part || part->table || part->shape[2] != 1 ||
      gradient->shape[2] != heads * (sharding.exchanged.size / heads)) {
    message = "adds heads of what is no gradient by heads that ranks share";
    return false;
  }
  if (part->proved && headsBehind(*part) != heads) {
    message = format("adds parts for {0} heads, of the gradient by {1}, which "
                     "has {2}",
                     heads, describe(part->by()), headsBehind(*part));
    return false;
  }
  if (part->argument < -1 &&
      groupsOf(whatIsMade(part->argument).first) != heads) {
    message = format("adds heads of {0} groups to {1}",
                     groupsOf(whatIsMade(part->argument).first), heads);
    return false;
  }
  return Bookkeeper::round(element, heads, gradient, result, message);
}

bool Auditor::round(Type element, int64_t heads, const TensorRef &gradient,
                    TensorRef &result, std::string &message) {
  if (heads != 0)
    return addHeads(element, heads, gradient, result, message);
  const auto *account = dyn_cast<Gradient>(gradient.get());
  if (!account || account->isRounded) {
    message = account ? "rounds a second time" : "rounds what is no gradient";
    return false;
  }
  if (!Bookkeeper::round(element, heads, gradient, result, message))
    return false;
  readSegments(*gradient);
  auto rounded = copyOf(*account, result->element);
  rounded->isRounded = true;
  result = rounded;
  return true;
}

TensorRef burst::arrivedGradient(const Gradient &sent, const Transfer &to,
                                 size_t index) {
  auto arrived = to.makeReceived<Gradient>(index);
  know(*arrived, sent);
  arrived->worked = sent.worked & to.receiveMask;
  if (sent.proved)
    arrived->added = sent.added.restricted(pairsOf(sent, to.receiveMask));
  return arrived;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// The first pair, in the order of the own segments, that the mask does not
/// rule out and that has not been added.
std::string Auditor::describeLack(const Gradient &gradient, int64_t place) {
  const AttendInputs &inputs = gradient.proved->inputs;
  bool byQuery = gradient.by() == By::Query;
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  for (int64_t own = 0; own < (byQuery ? numA : numB); ++own)
    for (int64_t owner = 0; owner < parts; ++owner) {
      int64_t p = byQuery ? place : owner, r = byQuery ? owner : place;
      PairMask lacking = classifier.needed(inputs, p, r) &
                         ~gradient.added.at(owner) &
                         pairsOf(gradient, uint64_t{1} << own);
      if (lacking == 0)
        continue;
      int64_t pair = llvm::countr_zero(lacking);
      return format("the gradient by {0}, which lacks query segment {1} of "
                    "rank {2} with segment {3} of rank {4}",
                    describe(gradient.by()), pair / numB, p, pair % numB, r);
    }
  return "";
}

/// Every pair that the mask does not rule out has been added.
std::string Auditor::checkComplete(const Gradient &gradient, int64_t place) {
  const AttendInputs &inputs = gradient.proved->inputs;
  bool byQuery = gradient.by() == By::Query;
  int64_t numPairs =
      inputs.queryLayout.getNumSegments() * inputs.keyLayout.getNumSegments();
  for (int64_t owner = 0; owner < parts; ++owner) {
    PairMask added = gradient.added.at(owner);
    PairMask needed = byQuery ? classifier.needed(inputs, place, owner)
                              : classifier.needed(inputs, owner, place);
    if (needed & ~added)
      return describeLack(gradient, place);
    if (!byQuery) // Counted once, not for keys and values again.
      continue;
    proof.wasted += llvm::popcount(added & ~needed);
    proof.dropped += numPairs - llvm::popcount(added | needed);
  }
  return "";
}

std::string Auditor::checkGradient(int64_t rank, int64_t other, unsigned index,
                                   const Gradient &gradient,
                                   const Results &results) {
  const auto *ofOther = dyn_cast_or_null<Gradient>(results[other][index].get());
  if (!ofOther || ofOther->argument != gradient.argument ||
      ofOther->table != gradient.table)
    return format("another gradient than rank {0}", other);
  if (gradient.proved && ofOther->proved) {
    if (gradient.place != ofOther->place)
      return format("another gradient than rank {0}", other);
    if (gradient.proved != ofOther->proved)
      return format("a gradient that {0} than that of rank {1}",
                    difference(*gradient.proved, *ofOther->proved), other);
  }
  if (gradient.table) {
    // Whether tables are complete, only all ranks together can say.
    if (program.getResultAttr(resultNumbers[index], ring::partialAttr))
      return "";
    return "a part of a gradient, and has no 'ring.partial' there";
  }
  int64_t place = sharding.sequence.placeOf(rank);
  if (gradient.owner != place)
    return format("the gradient by the shard of rank {0}", gradient.owner);
  if (std::string found =
          checkSharded(index, gradient.sharding, hasExchanges());
      !found.empty())
    return found;
  uint64_t wanted = segmentsOf(gradient.sharding, place);
  if ((gradient.segments & wanted) != wanted)
    return format("segments {0:x} of a gradient, of which it has {1:x}", wanted,
                  gradient.segments);
  if (!gradient.proved)
    return wanted == 0 ? "" : "a gradient to which nothing was added";
  std::string found = checkChunks(gradient);
  if (found.empty())
    found = checkComplete(gradient, place);
  for (const auto &other : gradient.others)
    if (found.empty())
      found = checkComplete(*other, place);
  return found;
}

/// All chunks of queries have added to a gradient by what is in all of them.
std::string Auditor::checkChunks(const Gradient &gradient) {
  auto found = static_cast<int>(gradient.others.size()) + 1;
  int count = chunkOf(gradient.proved->labels.query).count;
  bool isOfOne =
      gradient.by() == By::Query ||
      (gradient.by() != By::Table && chunkOf(gradient.argument).count != 1);
  if (isOfOne || found == count)
    return "";
  return format("the gradient by {0}, to which {1} of {2} chunks of heads have "
                "added",
                describe(gradient.by()), found, count);
}

/// The parts of the ranks that have the same batches and heads make up what
/// these add.
std::string Auditor::checkTable(const Results &results, unsigned index) {
  const auto *first = dyn_cast_or_null<Gradient>(results.front()[index].get());
  if (!first || !first->table)
    return "";
  for (int64_t rank = 0, end = results.size(); rank < end; ++rank) {
    if (sharding.sequence.placeOf(rank) != 0)
      continue;
    // By rank what the last chunk has added, then what those before have.
    std::vector<SmallVector<const Gradient *>> byChunk(first->others.size() +
                                                       1);
    for (int64_t place = 0; place < parts; ++place) {
      const auto &part = static_cast<const Gradient &>(
          *results[sharding.sequence.member(rank, place)][index]);
      if (part.proved)
        if (std::string found = checkChunks(part); !found.empty())
          return found;
      if (part.others.size() != first->others.size())
        return "parts of a gradient by a table, to which other chunks of heads "
               "have added";
      byChunk[0].push_back(&part);
      for (auto [number, other] : llvm::enumerate(part.others))
        byChunk[number + 1].push_back(other.get());
    }
    for (ArrayRef<const Gradient *> ofChunk : byChunk)
      if (std::string found = checkTable(ofChunk); !found.empty())
        return found;
  }
  return "";
}

std::string Auditor::checkTable(ArrayRef<const Gradient *> ofRanks) {
  const ProvedGradient *proved = nullptr;
  std::vector<PairMask> added(parts * parts); // by owner of queries, of keys
  for (const Gradient *part : ofRanks) {
    if (!part->proved)
      continue;
    proved = part->proved;
    for (auto [begin, end, pairs] : part->added.getRuns())
      for (int64_t i = begin; i < end; ++i) {
        if (added[i] & pairs)
          return "parts of a gradient by a table, of which two ranks have "
                 "computed the same pair";
        added[i] |= pairs;
      }
  }
  if (!proved)
    return "parts of a gradient to which nothing was added";
  const AttendInputs &inputs = proved->inputs;
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  for (int64_t queries = 0; queries < parts * numA; ++queries)
    for (int64_t keys = 0; keys < parts * numB; ++keys) {
      int64_t p = queries / numA, a = queries % numA;
      int64_t r = keys / numB, b = keys % numB;
      if (!(added[p * parts + r] & pairBit(a, b, numB)) &&
          classifier.classify(inputs, p, r, a, b) != PairClass::Empty)
        return format("parts of a gradient by a table, which lack query "
                      "segment {0} of rank {1} with segment {2} of rank {3}",
                      a, p, b, r);
    }
  return "";
}
