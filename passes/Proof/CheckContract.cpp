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
  Failure checkCalls();
  Failure checkReach(const Contract::Need &need);
  Failure checkFarthest();
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
  TensorRef reach;
  std::vector<int64_t> farthest; ///< by entry of the reach: where it is needed
  int64_t step = 1;
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

/// 0 <= reach < P, and the step is 1 or P - 1.
std::optional<std::string> Checker::checkReach(const Contract::Need &need) {
  reach = nullptr;
  if (!need.reach)
    return std::nullopt;
  std::optional<Argument> table = valueOf(need.reach),
                          direction = valueOf(need.step);
  if (!table || !direction)
    return calls.getMessage();
  reach = table->table;
  farthest.assign(reach->size(), 0);
  step = direction->scalar.i;
  if (step != 1 && step != parts - 1)
    return format("shards go by a step of {0} from rank to rank, of {1} ranks",
                  step, parts);
  for (int64_t i = 0, size = reach->size(); i < size; ++i)
    if (int64_t hops = reach->integer(i); hops < 0 || hops >= parts)
      return format("segment {0} of rank {1} travels {2} hops, of {3} ranks",
                    i % reach->shape[1], i / reach->shape[1], hops, parts);
  return std::nullopt;
}

/// What travels reaches whom needs it.
std::optional<std::string> Checker::checkPair(const Contract::Need &need,
                                              int64_t p, int64_t k, int64_t a,
                                              int64_t b) {
  if (!reach)
    return std::nullopt;
  int64_t way = need.movesKeys ? p - k : k - p;
  way = step == 1 ? way : -way;
  way += way < 0 ? parts : 0;
  int64_t owner = need.movesKeys ? k : p, segment = need.movesKeys ? b : a;
  int64_t entry = owner * reach->shape[1] + segment;
  int64_t hops = reach->integer(entry);
  farthest[entry] = std::max(farthest[entry], way);
  if (way <= hops)
    return std::nullopt;
  return format("segment {0} of rank {1} travels {2} hops, and is needed after "
                "{3}",
                segment, owner, hops, way);
}

/// And goes no farther, unless it may.
std::optional<std::string> Checker::checkFarthest() {
  if (!reach || options.allowNeedless)
    return std::nullopt;
  for (auto [entry, wanted] : llvm::enumerate(farthest))
    if (int64_t hops = reach->integer(static_cast<int64_t>(entry));
        hops != wanted)
      return format("segment {0} of rank {1} travels {2} hops, and is needed "
                    "after {3} at most",
                    entry % reach->shape[1], entry / reach->shape[1], hops,
                    wanted);
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
  return checkFarthest();
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
  for (auto call : program.getOps<func::CallOp>())
    if (call.getNumResults() != 0 && !valueOf(call.getResult(0)))
      return calls.getMessage();
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
      if (std::string found = classifier.checkRoom(inputs, attention.heads);
          !found.empty())
        return found;
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
