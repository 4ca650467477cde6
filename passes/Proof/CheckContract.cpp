//===- CheckContract.cpp - tables against what a proof takes of them ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Contract.h"
#include "passes/Simulation/Calls.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

template <typename... Args>
static std::string format(const char *text, Args &&...args) {
  return llvm::formatv(text, std::forward<Args>(args)...).str();
}

namespace {
/// How far what travels goes in a ring.
struct Travel {
  TensorRef reach = nullptr;          ///< null where all goes all the way
  std::vector<int64_t> farthest = {}; ///< by entry: where it is needed
  int64_t ranks = 1;
  bool goesBack = false;

  int64_t hops(int64_t from, int64_t to) const {
    int64_t way = (goesBack ? from - to : to - from) % ranks;
    return way < 0 ? way + ranks : way;
  }
};

class Checker {
public:
  Checker(func::FuncOp program, const Contract &contract,
          ArrayRef<Argument> globals, const ProofOptions &options)
      : program(program), contract(contract), globals(globals),
        options(options), parts(ring::shardingOf(program).sequence.size),
        calls(program, globals) {}

  std::optional<std::string> check(ArrayRef<ProvedAttention> attentions);

  Proof counts;

private:
  using Failure = std::optional<std::string>;

  Failure describe(ring::AttendLikeOpInterface op, AttendInputs &inputs);
  Failure checkRoom(const AttendInputs &inputs, const ExchangedHeads &queries);
  Failure checkCalls();
  Failure checkReach(const Contract::Need &need);
  Failure checkBothWays(const Contract::Need &need);
  Failure checkTravel(Value table, Value step, int64_t ranks, Travel &travel);
  Failure checkFarthest(const Travel &travel);
  Failure checkTable(const Contract::Need &need, ring::AttendLikeOpInterface op,
                     const AttendInputs &inputs);
  Failure checkPair(const Contract::Need &need, int64_t p, int64_t k, int64_t a,
                    int64_t b);
  void count(const ProvedAttention &attention, const AttendInputs &inputs);
  std::optional<Argument> valueOf(Value value) { return calls.valueOf(value); }

  func::FuncOp program;
  const Contract &contract;
  ArrayRef<Argument> globals;
  ProofOptions options;
  int64_t parts;
  Calls calls;
  Classifier classifier;
  std::shared_ptr<Tensor> query; ///< of which only the sizes matter
  Travel whole, inner;           ///< of a nest from ring to ring, and in a ring
  int64_t numRings = 1;
};
} // namespace

/// What the bounds of an attend are asked with.
std::optional<std::string> Checker::describe(ring::AttendLikeOpInterface op,
                                             AttendInputs &inputs) {
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [index, global] : llvm::enumerate(globals))
    if (program.getArgAttr(index, ring::shardAttr) &&
        ShapedType::isDynamic(shape[0]))
      shape[0] = global.table->shape[0] / ring::shardingOf(program).batch.size;
  query = std::make_shared<Tensor>(shape, type.getElementType());
  inputs.at = op;
  inputs.query = query.get();
  ring::Sharding sharding = ring::shardingOf(program);
  inputs.numBatches = shape[0] * sharding.batch.size;
  inputs.numHeads = shape[2] * sharding.numHeadParts();
  inputs.queryLayout = op.getQueryLayout().ofPart();
  inputs.keyLayout = op.getKeyLayout().ofPart();
  inputs.mask = &op.getMask();
  inputs.bounds = &op.getBounds();
  std::optional<Argument> queries = valueOf(op.getQueryExtent()),
                          keys = valueOf(op.getKeyExtent());
  bool isKnown = queries && keys;
  for (Value capture : op.getMaskCaptures()) {
    std::optional<Argument> value = valueOf(capture);
    isKnown &= value.has_value();
    inputs.maskCaptures.push_back(value.value_or(Argument{}));
  }
  if (!isKnown)
    return "an extent or a table of the mask is not known";
  inputs.queryExtent = queries->scalar.i;
  inputs.keyExtent = keys->scalar.i;
  return std::nullopt;
}

/// Where an entry of a reach begins to be of another rank, and of another
/// segment.
static std::pair<int64_t, int64_t> entryOf(const Tensor &reach, int64_t entry) {
  int64_t segments = reach.shape.back();
  return {entry / (reach.size() / reach.shape[0]), entry % segments};
}

/// 0 <= reach < P, and the step is 1 or P - 1.
std::optional<std::string> Checker::checkTravel(Value table, Value step,
                                                int64_t ranks, Travel &travel) {
  travel = Travel();
  travel.ranks = ranks;
  if (!table)
    return std::nullopt;
  std::optional<Argument> reach = valueOf(table), direction = valueOf(step);
  if (!reach || !direction)
    return calls.getMessage();
  travel.reach = reach->table;
  travel.farthest.assign(travel.reach->size(), 0);
  int64_t by = direction->scalar.i;
  if (by != 1 && by != ranks - 1)
    return format("shards go by a step of {0} from rank to rank, of {1} ranks",
                  by, ranks);
  travel.goesBack = by != 1;
  for (int64_t i = 0, size = travel.reach->size(); i < size; ++i)
    if (int64_t hops = travel.reach->integer(i); hops < 0 || hops >= ranks) {
      auto [owner, segment] = entryOf(*travel.reach, i);
      return format("segment {0} of rank {1} travels {2} hops, of {3} ranks",
                    segment, owner, hops, ranks);
    }
  return std::nullopt;
}

/// In both directions, each as far as it serves.
std::optional<std::string> Checker::checkBothWays(const Contract::Need &need) {
  whole = Travel();
  whole.ranks = parts;
  std::optional<Argument> table = valueOf(need.reach);
  if (!table)
    return calls.getMessage();
  whole.reach = table->table;
  whole.farthest.assign(whole.reach->size(), 0);
  int64_t segments = whole.reach->shape[2];
  for (int64_t i = 0, size = whole.reach->size(); i < size; ++i) {
    bool isBack = i / segments % 2 == 1;
    int64_t most = isBack ? parts / 2 : (parts - 1) / 2;
    if (int64_t hops = whole.reach->integer(i); hops < 0 || hops > most)
      return format("segment {0} of rank {1} travels {2} hops {3}, of {4} at "
                    "most",
                    i % segments, i / segments / 2, hops,
                    isBack ? "back" : "ahead", most);
  }
  return std::nullopt;
}

std::optional<std::string> Checker::checkReach(const Contract::Need &need) {
  numRings = 1;
  inner = Travel();
  if (need.isBothWays)
    return checkBothWays(need);
  if (need.innerReach)
    numRings = cast<ShapedType>(need.innerReach.getType()).getDimSize(1);
  int64_t inRing = parts / numRings;
  if (Failure failure = checkTravel(need.reach, need.step,
                                    need.innerReach ? numRings : parts, whole))
    return failure;
  if (!need.innerReach)
    return std::nullopt;
  if (Failure failure =
          checkTravel(need.innerReach, need.innerStep, inRing, inner))
    return failure;
  // What goes round in a ring has come to it.
  for (int64_t i = 0, size = inner.reach->size(); i < size; ++i) {
    auto [owner, segment] = entryOf(*inner.reach, i);
    int64_t ring = i / inner.reach->shape[2] % numRings;
    int64_t hops =
        whole.reach->integer(owner * whole.reach->shape[1] + segment);
    if (int64_t way = whole.hops(owner / inRing, ring);
        inner.reach->integer(i) != 0 && way > hops)
      return format("segment {0} of rank {1} goes round in ring {2}, {3} rings "
                    "ahead, and travels {4}",
                    segment, owner, ring, way, hops);
  }
  return std::nullopt;
}

/// What travels reaches whom needs it.
std::optional<std::string> Checker::checkPair(const Contract::Need &need,
                                              int64_t p, int64_t k, int64_t a,
                                              int64_t b) {
  if (!whole.reach)
    return std::nullopt;
  int64_t owner = need.movesKeys ? k : p, segment = need.movesKeys ? b : a,
          other = need.movesKeys ? p : k;
  auto checkWay = [&](Travel &travel, int64_t entry, int64_t way) -> Failure {
    int64_t hops = travel.reach->integer(entry);
    travel.farthest[entry] = std::max(travel.farthest[entry], way);
    if (way <= hops)
      return std::nullopt;
    return format("segment {0} of rank {1} travels {2} hops, and is needed "
                  "after {3}",
                  segment, owner, hops, way);
  };
  auto check = [&](Travel &travel, int64_t entry, int64_t from, int64_t to) {
    return checkWay(travel, entry, travel.hops(from, to));
  };
  if (need.isBothWays) {
    int64_t ahead = whole.hops(owner, other);
    bool isBack = ahead > (parts - 1) / 2;
    return checkWay(whole,
                    (owner * 2 + isBack) * whole.reach->shape[2] + segment,
                    isBack ? parts - ahead : ahead);
  }
  int64_t segments = whole.reach->shape[1], inRing = parts / numRings;
  if (!inner.reach)
    return check(whole, owner * segments + segment, owner, other);
  if (Failure failure = check(whole, owner * segments + segment, owner / inRing,
                              other / inRing))
    return failure;
  return check(inner, (owner * numRings + other / inRing) * segments + segment,
               owner % inRing, other % inRing);
}

/// And goes no farther, unless it may.
std::optional<std::string> Checker::checkFarthest(const Travel &travel) {
  if (!travel.reach || options.allowNeedless)
    return std::nullopt;
  for (int64_t i = 0, size = travel.reach->size(); i < size; ++i)
    if (int64_t hops = travel.reach->integer(i); hops != travel.farthest[i]) {
      auto [owner, segment] = entryOf(*travel.reach, i);
      return format("segment {0} of rank {1} travels {2} hops, and is needed "
                    "after {3} at most",
                    segment, owner, hops, travel.farthest[i]);
    }
  return std::nullopt;
}

/// What the table of an attend says is what the bounds of the mask say.
std::optional<std::string> Checker::checkTable(const Contract::Need &need,
                                               ring::AttendLikeOpInterface op,
                                               const AttendInputs &inputs) {
  std::optional<Argument> table = valueOf(need.pairs);
  if (!table || !table->table)
    return calls.getMessage();
  const Tensor &pairs = *table->table;
  int64_t numA = inputs.queryLayout.getNumSegments();
  int64_t numB = inputs.keyLayout.getNumSegments();
  // Of what is gathered the one owner has the segments of all.
  int64_t ofB = 1, ofA = pairs.shape[3], ofK = ofA * pairs.shape[2],
          ofP = ofK * pairs.shape[1];
  if (op.getQueryLayout().getAll())
    ofP = numA * ofA;
  if (op.getKeyLayout().getAll())
    ofK = numB * ofB;
  for (int64_t p = 0; p < parts; ++p) {
    classifier.classifyRow(inputs, p);
    for (int64_t k = 0; k < parts; ++k) {
      PairMask needed = classifier.needed(inputs, p, k);
      for (int64_t a = 0; a < numA; ++a)
        for (int64_t b = 0; b < numB; ++b) {
          bool isFlagged =
              pairs.integer(p * ofP + k * ofK + a * ofA + b * ofB) != 0;
          bool isNeeded = needed & pairBit(a, b, numB);
          if (isFlagged != isNeeded && (isNeeded || !options.allowEmpty))
            return format("query segment {0} of rank {1} with segment {2} of "
                          "rank {3} counts as {4}needed, and the mask {5}",
                          a, p, b, k, isFlagged ? "" : "not ",
                          isNeeded ? "may keep some of it" : "rules it out");
          if (!isFlagged)
            continue;
          if (Failure failure = checkPair(need, p, k, a, b))
            return failure;
        }
    }
  }
  if (Failure failure = checkFarthest(whole))
    return failure;
  return checkFarthest(inner);
}

/// Without a table all pairs of segments are computed that have positions.
void Checker::count(const ProvedAttention &attention,
                    const AttendInputs &inputs) {
  auto segments = [&](ring::LayoutAttr layout, int64_t extent) {
    int64_t found = 0;
    for (int64_t owner = 0; owner < parts; ++owner)
      for (const Segment &segment : layout.getValue().segments(owner, extent))
        found += segment.count != 0;
    return found;
  };
  int64_t all = parts * inputs.queryLayout.getNumSegments() * parts *
                inputs.keyLayout.getNumSegments();
  int64_t computed = segments(inputs.queryLayout, inputs.queryExtent) *
                     segments(inputs.keyLayout, inputs.keyExtent);
  ring::AttendLikeOpInterface first = attention.attends.front();
  if (Value pairs = first.getPairs(); pairs && !first.getMask().empty()) {
    const Tensor &table = *valueOf(pairs)->table;
    computed =
        table.size() - (table.bits.empty() ? llvm::count(table.ints, 0)
                                           : llvm::count(table.bits, false));
  }
  int64_t needed = 0;
  for (int64_t p = 0; p < parts && !inputs.mask->empty(); ++p)
    for (int64_t k = 0; k < parts; ++k)
      needed += llvm::popcount(classifier.needed(inputs, p, k));
  // Once by those that share a sequence, for each batch and head that they
  // have.
  int64_t times = (attention.isForward + attention.isBackward) *
                  (ring::numRanks(program) / parts);
  if (!inputs.mask->empty())
    counts.wasted += times * (computed - needed);
  counts.computed += times * computed;
  counts.dropped += times * (all - computed);
}

/// Functions end, whatever they are for.
std::optional<std::string> Checker::checkCalls() {
  WalkResult ends = program.walk([&](func::CallOp call) {
    return valueOf(call.getResult(0)) ? WalkResult::advance()
                                      : WalkResult::interrupt();
  });
  if (ends.wasInterrupted())
    return calls.getMessage();
  return std::nullopt;
}

std::optional<std::string> Checker::checkRoom(const AttendInputs &inputs,
                                              const ExchangedHeads &queries) {
  ring::Sharding sharding = ring::shardingOf(program);
  if (sharding.exchanged.size > 1)
    for (int64_t place = 0; place < sharding.numHeadParts(); ++place)
      if (std::string found = classifier.checkRoom(
              inputs, queries, sharding.exchanged.size, place);
          !found.empty())
        return found;
  return std::nullopt;
}

std::optional<std::string>
Checker::check(ArrayRef<ProvedAttention> attentions) {
  if (Failure failure = checkCalls())
    return failure;
  for (const ProvedAttention &attention : attentions) {
    SmallVector<Value> seen;
    for (ring::AttendLikeOpInterface op : attention.attends) {
      AttendInputs inputs;
      if (Failure failure = describe(op, inputs))
        return failure;
      // Attends of one attention may have room for other numbers.
      ExchangedHeads queries = attention.heads;
      queries.ofRank = inputs.query->shape[2];
      if (Failure failure = checkRoom(inputs, queries))
        return failure;
      // Without a mask the conditions are of all pairs.
      Value pairs = op.getMask().empty() ? Value() : op.getPairs();
      if (pairs && !llvm::is_contained(seen, pairs)) {
        seen.push_back(pairs);
        const Contract::Need &need = *contract.find(pairs);
        if (Failure failure = checkReach(need))
          return failure;
        if (Failure failure = checkTable(need, op, inputs))
          return failure;
      }
      if (op == attention.attends.front())
        count(attention, inputs);
    }
  }
  return std::nullopt;
}

std::optional<std::string>
burst::proof::checkContract(func::FuncOp program, const Contract &contract,
                            ArrayRef<ProvedAttention> attentions,
                            ArrayRef<Argument> globals,
                            const ProofOptions &options, Proof &counts) {
  Checker checker(program, contract, globals, options);
  std::optional<std::string> failure = checker.check(attentions);
  if (!failure)
    counts = checker.counts;
  return failure;
}
