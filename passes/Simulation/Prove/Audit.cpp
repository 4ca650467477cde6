//===- Audit.cpp - schedules without data, and their proof ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Prove/Auditor.h"

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Without data
//===----------------------------------------------------------------------===//

State Bookkeeper::init(RankedTensorType o, const Tensor &query) {
  return makeState(o, query);
}

bool Bookkeeper::attend(Attend &attend, State &result, std::string &) {
  result = std::move(attend.state);
  makeUnique(result);
  return true;
}

bool Bookkeeper::merge(Merge &merge, std::string &) {
  makeUnique(merge.into);
  return true;
}

bool Bookkeeper::finalize(Finalize &finalize, std::string &) {
  State &state = finalize.state;
  makeUnique(state);
  finalize.out = state.o;
  if (state.o->element != finalize.element)
    finalize.out = std::make_shared<Tensor>(state.o->shape, finalize.element);
  finalize.lse = state.m;
  if (finalize.hasMaxScores)
    finalize.maxScores = state.l;
  return true;
}

TensorRef Bookkeeper::zero(Type element, const Tensor &like) {
  return makeLike(element, like);
}

bool Bookkeeper::delta(Type element, const TensorRef &out, const TensorRef &,
                       const TensorRef &, TensorRef &result, std::string &) {
  int64_t shape[] = {out->shape[0], out->shape[2], out->shape[1]};
  result = std::make_shared<Tensor>(shape, element);
  return true;
}

bool Bookkeeper::attendGrad(AttendGrad &attend, std::string &) {
  for (TensorRef &grad : attend.grads)
    makeUnique(grad);
  return true;
}

bool Bookkeeper::add(Sum &sum, std::string &) {
  makeUnique(sum.a);
  return true;
}

bool Bookkeeper::round(Type element, int64_t heads, const TensorRef &gradient,
                       TensorRef &result, std::string &) {
  result = makeLike(element, *gradient);
  if (heads != 0)
    result->shape[2] = heads;
  return true;
}

//===----------------------------------------------------------------------===//
// Classes of pairs
//===----------------------------------------------------------------------===//

Classifier::Entry &Classifier::entryOf(const AttendInputs &inputs) {
  if (inputs.at == lastOp)
    return *last;
  lastOp = inputs.at;
  last = &entries[lastOp];
  if (last->known.empty()) {
    last->keyOwners = inputs.keyLayout.getParts();
    last->numA = inputs.queryLayout.getNumSegments();
    last->numB = inputs.keyLayout.getNumSegments();
    last->known.resize(inputs.queryLayout.getParts() * last->keyOwners);
  }
  return *last;
}

PairClass Classifier::classify(const AttendInputs &inputs, int64_t queryOwner,
                               int64_t owner, int64_t a, int64_t b) {
  Entry &entry = entryOf(inputs);
  uint8_t &known = entry.known[queryOwner * entry.keyOwners + owner];
  int64_t shift = 2 * (a * entry.numB + b);
  if ((known >> shift & 3) == 0) {
    PairClass found = compute(
        entry, inputs, {0, inputs.numHeads},
        inputs.queryLayout.getValue().segment(queryOwner, a,
                                              inputs.queryExtent),
        inputs.keyLayout.getValue().segment(owner, b, inputs.keyExtent));
    known |= (static_cast<uint8_t>(found) + 1) << shift;
  }
  return static_cast<PairClass>((known >> shift & 3) - 1);
}

PairMask Classifier::needed(const AttendInputs &inputs, int64_t queryOwner,
                            int64_t owner) {
  Entry &entry = entryOf(inputs);
  uint8_t known = entry.known[queryOwner * entry.keyOwners + owner];
  PairMask pairs = 0;
  for (int64_t a = 0; a < entry.numA; ++a)
    for (int64_t b = 0; b < entry.numB; ++b) {
      int64_t found = known >> 2 * (a * entry.numB + b) & 3;
      bool isEmpty =
          found == 0
              ? classify(inputs, queryOwner, owner, a, b) == PairClass::Empty
              : found - 1 == static_cast<int64_t>(PairClass::Empty);
      if (!isEmpty)
        pairs |= pairBit(a, b, entry.numB);
    }
  return pairs;
}

/// What bounds are asked of two segments.
static std::array<Scalar, 10> boxOf(const AttendInputs &inputs, HeadRange heads,
                                    const Segment &q, const Segment &k) {
  int64_t box[] = {0,
                   std::max<int64_t>(inputs.numBatches, 1),
                   heads.begin,
                   heads.end,
                   q.begin,
                   q.end(),
                   k.begin,
                   k.end(),
                   inputs.queryExtent,
                   inputs.keyExtent};
  std::array<Scalar, 10> arguments;
  for (auto [argument, value] : llvm::zip_equal(arguments, box))
    argument.i = value;
  return arguments;
}

/// What bounds answer.
static PairClass classOf(Scalar any, Scalar all) {
  if (any.i == 0)
    return PairClass::Empty;
  return all.i != 0 ? PairClass::Full : PairClass::Partial;
}

PairClass Classifier::compute(Entry &entry, const AttendInputs &inputs,
                              HeadRange heads, const Segment &q,
                              const Segment &k) {
  if (q.count == 0 || k.count == 0)
    return PairClass::Empty;
  if (inputs.mask->empty())
    return PairClass::Full;
  if (inputs.bounds->empty())
    return PairClass::Partial;
  std::optional<RegionEvaluator> &bounds = entry.bounds;
  if (!bounds)
    bounds = RegionEvaluator::create(*inputs.bounds, inputs.maskCaptures);
  if (!bounds || !bounds->evaluate(boxOf(inputs, heads, q, k)))
    return PairClass::Partial;
  return classOf(bounds->result(0), bounds->result(1));
}

HeadRange Classifier::attendedHeads(const AttendInputs &inputs) {
  HeadRange own{inputs.firstHead, inputs.firstHead + inputs.query->shape[2]};
  Entry &entry = entryOf(inputs);
  auto [known, isNew] = entry.attended.try_emplace(own.begin, own);
  if (!isNew)
    return known->second;
  auto mayAttend = [&](int64_t head) {
    return compute(entry, inputs, {head, head + 1}, {0, inputs.queryExtent},
                   {0, inputs.keyExtent}) != PairClass::Empty;
  };
  HeadRange &attended = known->second;
  while (attended.begin < attended.end && !mayAttend(attended.begin))
    ++attended.begin;
  while (attended.begin < attended.end && !mayAttend(attended.end - 1))
    --attended.end;
  return attended;
}

std::string Classifier::checkRoom(const AttendInputs &inputs,
                                  const ExchangedHeads &queries,
                                  int64_t members, int64_t place) {
  burst_heads own = burst_heads_of(place % members, members, queries.all,
                                   queries.ofRank, queries.groups);
  int64_t first = place * queries.ofRank + own.count,
          end = (place + 1) * queries.ofRank;
  if (first >= end)
    return "";
  bool isKept = inputs.mask->empty() || inputs.bounds->empty();
  if (!isKept && inputs.queryExtent != 0 && inputs.keyExtent != 0) {
    std::optional<RegionEvaluator> &bounds = entryOf(inputs).bounds;
    if (!bounds)
      bounds = RegionEvaluator::create(*inputs.bounds, inputs.maskCaptures);
    std::array<Scalar, 10> box =
        boxOf(inputs, {first, end}, Segment(), Segment());
    box[4].i = box[6].i = 0;
    box[5].i = inputs.queryExtent;
    box[7].i = inputs.keyExtent;
    isKept = !bounds || !bounds->evaluate(box) || bounds->result(0).i != 0;
  }
  if (!isKept)
    return "";
  return llvm::formatv(
      "may attend heads {0} to {1}, which a rank only has room for: its mask "
      "must rule them out",
      first, end - 1);
}

void Classifier::classifyRow(const AttendInputs &inputs, int64_t queryOwner) {
  if (inputs.mask->empty() || inputs.bounds->empty())
    return;
  Entry &entry = entryOf(inputs);
  if (!entry.bounds)
    entry.bounds = RegionEvaluator::create(*inputs.bounds, inputs.maskCaptures);
  if (!entry.bounds)
    return;
  if (entry.keys.empty())
    for (int64_t owner = 0; owner < entry.keyOwners; ++owner)
      for (const Segment &k :
           inputs.keyLayout.getValue().segments(owner, inputs.keyExtent)) {
        entry.keys.push_back(k);
        entry.keyBegins.push_back({.i = k.begin});
        entry.keyEnds.push_back({.i = k.end()});
      }
  std::vector<Segment> queries =
      inputs.queryLayout.getValue().segments(queryOwner, inputs.queryExtent);
  auto count = static_cast<int64_t>(entry.keys.size());
  std::vector<Scalar> any(count), all(count);
  for (auto [a, q] : llvm::enumerate(queries)) {
    std::array<Scalar, 10> box =
        boxOf(inputs, {0, inputs.numHeads}, q, entry.keys.front());
    SmallVector<ArrayRef<Scalar>, 10> columns(box.begin(), box.end());
    columns[6] = entry.keyBegins;
    columns[7] = entry.keyEnds;
    if (!entry.bounds->evaluateMany(count, columns, {any, all}))
      return;
    for (int64_t i = 0; i < count; ++i) {
      bool isEmpty = q.count == 0 || entry.keys[i].count == 0;
      PairClass found = isEmpty ? PairClass::Empty : classOf(any[i], all[i]);
      uint8_t &known =
          entry.known[queryOwner * entry.keyOwners + i / entry.numB];
      auto shift = 2 * (static_cast<int64_t>(a) * entry.numB + i % entry.numB);
      known = (known & ~(3 << shift)) | (static_cast<uint8_t>(found) + 1)
                                            << shift;
    }
  }
}

//===----------------------------------------------------------------------===//
// Transfers and results
//===----------------------------------------------------------------------===//

/// What a transfer brings, in words.
static StringRef nameOf(const Transfer &transfer) {
  std::optional<Made> partial = transfer.partial();
  if (!partial)
    return "slice";
  return *partial == Made::Gradient ? "gradient" : "state";
}

/// What a rank holds fits the buffers that its program states.
std::string Auditor::checkHeld(const Transfer &transfer, const Held &held) {
  if (!maxSlices) {
    if (held.all <= ring::defaultMaxSlices)
      return "";
    return format("receives a {0} while {1} are still needed, and there are "
                  "buffers for {2}",
                  nameOf(transfer), held.all - 1, ring::defaultMaxSlices);
  }
  ring::TransferOpInterface start = transfer.start;
  ring::ChannelAttr channel = start.getChannel();
  int64_t bound = ring::maxSlicesOf(maxSlices, channel.getIndex());
  if (held.ofChannel <= bound)
    return "";
  return format("receives a {0} while {1} of channel {2} are still needed, and "
                "'{3}' states buffers for {4}",
                nameOf(transfer), held.ofChannel - 1, channel.getIndex(),
                ring::maxSlicesAttr, bound);
}

/// Arguments come in an all-to-all, and results go back: why not, empty where
/// they may.
std::string Auditor::checkExchange(const Transfer &transfer,
                                   const Tensor &tensor) const {
  ring::TransferOpInterface start = transfer.start;
  bool isArgument = tensor.argument >= 0;
  Made made = isArgument ? Made::Gradient : whatIsMade(tensor.argument).second;
  bool toHeads = start.getRoute() == ring::Route::ToHeads;
  if (toHeads != isArgument || (!isResult(made) && made != Made::Gradient))
    return "exchanges what is neither an argument nor a result of an attention";
  int number = isArgument ? tensor.argument : whatIsMade(tensor.argument).first;
  int64_t groups = groupsOf(number);
  if (static_cast<int64_t>(start.getGroups()) != groups)
    return format("exchanges heads in {0} groups that came in {1}",
                  start.getGroups(), groups);
  return "";
}

bool Auditor::start(const Transfer &transfer, const Held &held,
                    std::string &message) {
  ring::TransferOpInterface op = transfer.start;
  bool isAllToAll = op.isAllToAll();
  const char *verb = isAllToAll ? "exchanges" : "sends";
  for (auto [index, tensor] : llvm::enumerate(transfer.tensors)) {
    Sharding wanted{transfer.layout, transfer.dims[index], transfer.extent};
    if (tensor->argument == -1)
      message = format("{0} a tensor that is no shard of an argument", verb);
    else if (std::string found =
                 isAllToAll ? checkExchange(transfer, *tensor) : "";
             !found.empty())
      message = std::move(found);
    else if (tensor->owner != transfer.owner)
      message = format("{0} the shard of rank {1} as that of {2}", verb,
                       tensor->owner, transfer.owner);
    else if (tensor->sharding != wanted)
      message =
          format("{0} what is laid out as {1} as if it were laid out as {2}",
                 verb, describe(tensor->sharding), describe(wanted));
    else if ((tensor->segments & transfer.sendMask) != transfer.sendMask)
      message =
          format("{0} segments {1:x} of rank {2}, of which it has {3:x}", verb,
                 transfer.sendMask, transfer.owner, tensor->segments);
  }
  if (!isAllToAll)
    if (std::string found = checkHeld(transfer, held); !found.empty())
      message = std::move(found);
  if (transfer.sendMask != 0)
    for (const TensorRef &tensor : transfer.tensors) {
      ++tensor->numSending;
      readSegments(*tensor, isAllToAll ? ~uint64_t{0} : transfer.sendMask);
    }
  return message.empty();
}

void Auditor::wait(const Transfer &transfer) {
  if (transfer.sendMask == 0)
    return;
  for (const TensorRef &tensor : transfer.tensors)
    --tensor->numSending;
}

std::string Auditor::checkResult(int64_t rank, int64_t other, unsigned index,
                                 const Results &results) {
  const TensorRef &result = results[rank][index];
  if (const auto *gradient = dyn_cast_or_null<Gradient>(result.get()))
    return checkGradient(rank, other, index, *gradient, results);
  if (!result || !result->origin || result->argument >= -1 ||
      !isResult(whatIsMade(result->argument).second))
    return "what no ring.finalize has made";
  if (result->owner != sharding.sequence.placeOf(rank))
    return format("the attention of the queries of rank {0}", result->owner);
  if (std::string message =
          checkSharded(index, result->sharding, hasExchanges());
      !message.empty())
    return message;
  const TensorRef &ofOther = results[other][index];
  if (!ofOther || !ofOther->origin)
    return format("another result than rank {0}", other);
  // A rank without queries may have attended nothing.
  const ProvedAttention *asked = result->origin->proved;
  const ProvedAttention *askedByOther = ofOther->origin->proved;
  if (!asked || !askedByOther)
    return "";
  std::string differs = difference(*askedByOther, *asked);
  if (!differs.empty())
    return format("an attention that {0} than that of rank {1}", differs,
                  other);
  return "";
}

/// The function says of a result how it is sharded.
std::string Auditor::checkSharded(unsigned index, const Sharding &made,
                                  bool isInside) {
  auto shard = program.getResultAttrOfType<ring::ShardAttr>(
      resultNumbers[index], ring::shardAttr);
  if (!shard)
    return "a shard, and has no 'ring.shard' there";
  Layout layout = shard.getLayout().getValue();
  if (isInside)
    layout = layout.ofGroups(sharding.exchanged.size);
  Sharding named{layout, shard.getDim(),
                 ShapedType::isDynamic(shard.getExtent()) ? made.extent
                                                          : shard.getExtent()};
  if (made != named)
    return format("what is laid out as {0} as if it were laid out as {1}",
                  describe(made), describe(named));
  return "";
}

/// Of results that all-to-alls made shards of the sequence, what the rank gave
/// for them is looked at in their place.
std::string Auditor::checkExchanged(int64_t rank, unsigned index,
                                    TensorRef &result) {
  if (!hasExchanges() || !result)
    return "";
  if (const auto *gradient = dyn_cast<Gradient>(result.get());
      gradient && gradient->table)
    return ""; // of all ranks
  if (!result->inside)
    return "what heads are sharded of, and the sequence is to be";
  if (result->owner != sharding.whole.placeOf(rank))
    return format("a shard of rank {0}", result->owner);
  if (std::string found =
          checkSharded(index, result->sharding, /*isInside=*/false);
      !found.empty())
    return found;
  // Ranks share no heads of queries; parts of a gradient by heads that they
  // share have been added.
  if (const auto *origin = result->inside->origin.get();
      origin && origin->proved) {
    int64_t heads = headsOfArgument(origin->proved->query);
    int64_t found = result->shape[result->headsDim()];
    if (heads != 0 && found != heads)
      return format("{0} heads of the attention of {1}", found, heads);
  }
  const auto *gradient = dyn_cast<Gradient>(result->inside.get());
  if (gradient && gradient->proved)
    if (int64_t heads = headsBehind(*gradient);
        heads != 0 && result->shape[2] != heads)
      return format("a gradient of {0} heads by a tensor of {1}",
                    result->shape[2], heads);
  result = result->inside;
  return "";
}

/// How many heads this rank has of the argument by which a gradient is, before
/// all-to-alls shard them; 0 where that is not known.
int64_t Auditor::headsBehind(const Gradient &gradient) {
  const GradientLabels &labels = gradient.proved->labels;
  const int by[] = {labels.query, labels.key, labels.value};
  return gradient.table || gradient.place >= std::ssize(by)
             ? 0
             : headsOfArgument(by[gradient.place]);
}

int64_t Auditor::headsOfArgument(int number) {
  if (number < 0)
    return 0;
  HeadChunk of = chunkOf(number);
  auto type =
      dyn_cast<RankedTensorType>(program.getArgumentTypes()[of.argument]);
  if (!type || (type.getRank() != 3 && type.getRank() != 4))
    return 0;
  int64_t heads = type.getDimSize(ring::headsDimOf(type));
  return ShapedType::isDynamic(heads) ? 0 : heads / of.count;
}

/// Queries of a chunk of heads meet rows of it, and keys as mayMeetKeys says.
std::string Auditor::checkChunk(const Tensor &query, const Tensor &other,
                                StringRef what, bool isOfKeys) {
  HeadChunk own = chunkOf(query.argument), met = chunkOf(other.argument);
  bool fits = isOfKeys
                  ? mayMeetKeys(query.argument, headsOfArgument(own.argument),
                                other.argument, headsOfArgument(met.argument))
                  : areOfOneChunk(query.argument, other.argument);
  // Scores stand for queries of which they were made.
  int64_t heads = headsOfArgument(query.argument),
          others = headsOfArgument(other.argument);
  if (fits && heads != 0 &&
      !(isOfKeys
            ? doHeadsMeet({heads, query.shape[2], groupsOf(query.argument)},
                          {others, other.shape[2], groupsOf(other.argument)},
                          sharding.exchanged.size)
            : heads == others))
    return format("takes {0} of {1} heads for queries of {2}, of which a rank "
                  "has {3} and {4}",
                  what, others, heads, other.shape[other.headsDim()],
                  query.shape[2]);
  if (fits && !isOfKeys && !haveSameHeads(query.argument, other.argument))
    return format("takes {0} with heads in {1} groups for queries with heads "
                  "in {2}",
                  what, groupsOf(other.argument), groupsOf(query.argument));
  if (fits)
    return "";
  return format("takes {0} of chunk {1} of {2} of the heads for queries of "
                "chunk {3} of {4}",
                what, met.chunk, met.count, own.chunk, own.count);
}

Auditor::Results Auditor::splitChunks(Results results) {
  resultNumbers.clear();
  areChunks.clear();
  for (auto [rank, ofRank] : llvm::enumerate(results)) {
    std::vector<TensorRef> split;
    for (auto [index, result] : llvm::enumerate(ofRank)) {
      size_t before = split.size();
      if (result && !result->chunks.empty())
        llvm::append_range(split, result->chunks);
      else
        split.push_back(result);
      if (rank != 0)
        continue;
      resultNumbers.append(split.size() - before, index);
      areChunks.append(split.size() - before,
                       result && !result->chunks.empty());
    }
    ofRank = std::move(split);
  }
  return results;
}

/// Chunks of one result are of one attention.
std::string Auditor::checkNextChunk(const Tensor &before, const Tensor &chunk) {
  std::string found;
  const auto *a = dyn_cast<Gradient>(&before), *b = dyn_cast<Gradient>(&chunk);
  if (a && b && a->proved && b->proved)
    found = differenceOfChunks(*a->proved, *b->proved);
  else if (!a && !b && before.origin && chunk.origin && before.origin->proved &&
           chunk.origin->proved)
    found = differenceOfChunks(*before.origin->proved, *chunk.origin->proved);
  return found.empty() ? ""
                       : "a chunk of heads that " + found + " than another";
}

std::optional<int64_t> Auditor::checkResults(Results results,
                                             std::string &message) {
  for (auto [rank, ofRank] : llvm::enumerate(results))
    for (auto [index, result] : llvm::enumerate(ofRank)) {
      if (!areChunks[index] && result && chunkOf(result->argument).count != 1)
        message = "a chunk of its heads";
      else
        message = checkExchanged(rank, index, result);
      if (message.empty())
        continue;
      message =
          format("returns as result {0} {1}", resultNumbers[index], message);
      return rank;
    }
  for (auto [rank, ofRank] : llvm::enumerate(results))
    for (unsigned index = 0; index < ofRank.size(); ++index) {
      // All are compared with the first that holds anything.
      auto other = llvm::find_if(results, [&](const auto &ofOther) {
        return ofOther[index] && ofOther[index]->size() != 0;
      });
      int64_t number = other == results.end() ? 0 : other - results.begin();
      message = checkResult(rank, number, index, results);
      if (message.empty() && rank + 1 == results.size())
        message = checkTable(results, index);
      if (message.empty() && index != 0 && areChunks[index] &&
          resultNumbers[index] == resultNumbers[index - 1])
        message = checkNextChunk(*ofRank[index - 1], *ofRank[index]);
      if (message.empty())
        continue;
      message =
          format("returns as result {0} {1}", resultNumbers[index], message);
      return rank;
    }
  return std::nullopt;
}

std::optional<Counterexample> burst::prove(Simulation &simulation,
                                           ArrayRef<Argument> globals,
                                           const ProofOptions &options,
                                           Proof &proof, Listener *listener) {
  simulation.reset();
  func::FuncOp program = simulation.getFunction();
  Auditor auditor(program, options, proof);
  if (!simulation.run(auditor,
                      shardGlobals(simulation, globals, ShardData::Omit),
                      listener))
    return simulation.getCounterexample();
  proof.traffic = simulation.getTraffic();
  std::string message;
  Auditor::Results results = auditor.splitChunks(simulation.getResults());
  if (auto rank = auditor.checkResults(results, message))
    return Counterexample{*rank, 0, program.getBody().front().getTerminator(),
                          message};
  return auditor.checkTravel(results);
}

std::optional<Counterexample> burst::plan(Simulation &simulation,
                                          ArrayRef<Argument> globals,
                                          std::vector<Traffic> &traffic,
                                          bool isProved, Listener *listener) {
  simulation.reset();
  Bookkeeper bookkeeper;
  bool isRun = false;
  if (isProved)
    isRun = simulation.runAlone(bookkeeper, globals, listener);
  else
    isRun = simulation.run(bookkeeper,
                           shardGlobals(simulation, globals, ShardData::Omit),
                           listener);
  if (!isRun)
    return simulation.getCounterexample();
  traffic = simulation.getTraffic();
  return std::nullopt;
}

void burst::report(func::FuncOp program, const Counterexample &counterexample) {
  Operation *op = counterexample.op ? counterexample.op : program;
  InFlightDiagnostic diagnostic =
      emitError(counterexample.loc.value_or(op->getLoc()))
      << "'" << op->getName() << "' op schedule refused: rank "
      << counterexample.rank << ", hop " << counterexample.hop << ": "
      << counterexample.message;
  diagnostic.attachNote(program.getLoc())
      << "in the program of a rank of " << SymbolRefAttr::get(program);
}
