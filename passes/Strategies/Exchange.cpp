//===- Exchange.cpp - heads in place of the sequence ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Exchange.h"

#include "dialect/Ring/Ring.h"
#include "passes/Strategies/Strategy.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InterleavedRange.h"

#include <numeric>
#include <utility>

using namespace mlir;
using namespace burst;

shard::GridOp burst::gridOf(AttentionInterface op) {
  return lookupGrid(op, op.getSequence()->getGrid());
}

int64_t burst::membersAlong(AttentionInterface op, ArrayRef<int64_t> axes) {
  return axes.empty() ? 1 : groupOf(gridOf(op), axes).size;
}

static SmallVector<int64_t> sequenceAxes(AttentionInterface op) {
  return axesOf(op, *op.getSequence());
}

/// The axes over which heads are sharded, each by name.
static SmallVector<int64_t> headAxes(AttentionInterface op) {
  AxesAttr heads = op.getHeadsAttr();
  if (!heads || heads.getAxes() == ArrayRef(noAxis))
    return {};
  return SmallVector<int64_t>(heads.getAxes());
}

static int64_t headsOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getDimSize(2);
}

DividedHeads burst::divideHeads(AttentionInterface op, int64_t members) {
  // That parts divide them is for burst-partition to ask.
  int64_t parts = numParts(op, op.getHeadsAttr());
  auto ofPart = [&](Value tensor) {
    return (headsOf(tensor) + parts - 1) / parts;
  };
  return divideHeads(ofPart(op.getQuery()), ofPart(op.getKey()), members);
}

DividedHeads burst::divideHeads(int64_t queryHeads, int64_t keyHeads,
                                int64_t members) {
  DividedHeads heads{queryHeads, keyHeads, members, queryHeads, keyHeads};
  if (members == 1 || keyHeads == 0)
    return heads;
  auto most = [](int64_t all, int64_t ranks) {
    return (all + ranks - 1) / ranks;
  };
  heads.key = most(keyHeads, members);
  int64_t ofKey = queryHeads / keyHeads;
  // Query heads are where the key head is that they share, and ranks share that
  // where there are several for each.
  if (ofKey != 1 && members >= 2 * keyHeads) {
    heads.groups = keyHeads;
    heads.query = most(ofKey, heads.ranksOfGroup());
  } else {
    heads.query = heads.key * ofKey;
  }
  return heads;
}

std::string burst::whyNoHeadsTogether(ArrayRef<AttentionInterface> ops,
                                      int64_t members) {
  llvm::DenseMap<Value, std::pair<int64_t, int64_t>> known;
  for (AttentionInterface op : ops) {
    DividedHeads heads = divideHeads(op, members);
    for (const Sharded &sharded : op.getSharded()) {
      std::pair own(sharded.isOfKeys ? heads.key : heads.query,
                    heads.groupsOf(sharded.isOfKeys));
      auto other = known.try_emplace(sharded.tensor, own).first->second;
      if (own.first != other.first)
        return llvm::formatv("a tensor of which a rank has {0} heads for one "
                             "attention has {1} for another one",
                             other.first, own.first);
      if (own != other)
        return llvm::formatv("a tensor of which ranks have heads in {0} "
                             "groups for one attention has them in {1} for "
                             "another one",
                             other.second, own.second);
    }
  }
  return {};
}

/// The most of `ranks` ranks that share the heads of an attention evenly.
static int64_t mostMembers(AttentionInterface op, int64_t ranks) {
  int64_t members = ranks;
  while (members > 1 &&
         (ranks % members != 0 || !divideHeads(op, members).areEven()))
    --members;
  return members;
}

/// Why sequence and heads cannot be exchanged along `axes`, to follow "pins the
/// strategy ulysses, which"; empty where they can. What to do about it, to
/// `advice`.
static std::string whyNot(AttentionInterface op, ArrayRef<int64_t> axes,
                          std::string &advice) {
  SmallVector<int64_t> sequence = sequenceAxes(op);
  if (axes.size() > sequence.size() ||
      axes != ArrayRef(sequence).take_back(axes.size()))
    return llvm::formatv("works on the last axes of the sequence, of [{0}], "
                         "got: [{1}]",
                         llvm::interleaved(sequence), llvm::interleaved(axes));
  int64_t members = groupOf(gridOf(op), axes).size;
  if (ShapedType::isDynamic(headsOf(op.getQuery())) ||
      ShapedType::isDynamic(headsOf(op.getKey())))
    return "needs to know how many heads there are";
  int64_t queries = divideHeads(op, members).queries;
  if (queries == 0 || queries >= members || members % queries != 0)
    return {};
  int64_t most = mostMembers(op, members);
  if (most == 1)
    advice = "; pin another strategy";
  else if (axes.size() > 1 && membersAlong(op, axes.back()) == most)
    advice = llvm::formatv("; pin ulysses on [{0}] and a ring on the others",
                           axes.back());
  else
    advice = llvm::formatv("; shard the sequence over two axes of the grid, "
                           "the last one of {0} ranks, and pin ulysses on "
                           "that and a ring on the other",
                           most);
  return llvm::formatv("shards {0} query heads over {1} ranks, of which {2} "
                       "would have none",
                       queries, members, members - queries);
}

bool burst::haveChunksOwnKeys(AttentionInterface op) {
  return headsOf(op.getQuery()) == headsOf(op.getKey());
}

std::string burst::whyNoChunksTogether(ArrayRef<AttentionInterface> ops) {
  if (llvm::all_of(ops, haveChunksOwnKeys))
    return {};
  if (llvm::any_of(ops, haveChunksOwnKeys))
    return "in one attention of its function a key head has one query head, in "
           "another one several";
  llvm::SmallDenseSet<Value> ofQueries, ofKeys;
  for (AttentionInterface op : ops)
    for (const Sharded &sharded : op.getSharded())
      if (sharded.tensor.getDefiningOp() != op)
        (sharded.isOfKeys ? ofKeys : ofQueries).insert(sharded.tensor);
  if (llvm::any_of(ofKeys,
                   [&](Value tensor) { return ofQueries.contains(tensor); }))
    return "a tensor is keys or values of one attention of its function, and "
           "queries or a gradient by them of another one";
  return {};
}

/// Into how many chunks heads of a rank can go that are `ofAll` in all, or of a
/// key head: advice to follow what cannot be had.
static std::string chunksOf(int64_t ofRank, int64_t ofAll) {
  int64_t heads = std::gcd(ofRank, ofAll);
  SmallVector<int64_t> counts;
  for (int64_t count = 2; count <= ring::maxHeadChunks; ++count)
    if (heads % count == 0)
      counts.push_back(count);
  if (counts.empty())
    return llvm::formatv("; no number divides both {0} and {1}: pin ulysses "
                         "without chunks",
                         ofRank, ofAll);
  return llvm::formatv("; pin ulysses in {0} chunks, or without chunks",
                       llvm::interleaved(counts, " or "));
}

/// Why heads cannot go in so many chunks, to follow "pins the strategy ulysses
/// in 4 chunks, which"; empty where they can.
static std::string whyNotInChunks(AttentionInterface op,
                                  const Exchange &exchange, int64_t chunks) {
  if (chunks > ring::maxHeadChunks)
    return llvm::formatv("are more than {0}", ring::maxHeadChunks);
  if (resolveLayout(op, exchange.sequence)->parts != 1)
    return "need the whole sequence on each rank in between; pin ulysses on "
           "all axes of the sequence, or without chunks";
  // A chunk has as many heads of each rank, and of each group of ranks.
  DividedHeads heads = divideHeads(op, membersAlong(op, exchange.axes));
  int64_t group = heads.queries / heads.keys;
  int64_t ofAll = haveChunksOwnKeys(op) ? heads.queries : group;
  std::string advice = chunksOf(heads.query, ofAll);
  if (heads.query % chunks != 0)
    return llvm::formatv("do not divide the {0} query heads that a rank has in "
                         "between{1}",
                         heads.query, advice);
  if (ofAll % chunks != 0)
    return llvm::formatv("do not divide the {0} query heads{1}{2}", ofAll,
                         haveChunksOwnKeys(op) ? "" : " of a key head", advice);
  return {};
}

static Exchange along(AttentionInterface op, ArrayRef<int64_t> axes) {
  SequenceAttr sequence = *op.getSequence();
  if (groupOf(gridOf(op), axes).size == 1)
    return {{}, sequence, op.getHeadsAttr(), {}, 1};
  FlatSymbolRefAttr grid = sequence.getGrid();
  SmallVector<int64_t> left = sequenceAxes(op), heads = headAxes(op);
  left.pop_back_n(axes.size());
  if (left.empty())
    left.push_back(noAxis);
  heads.append(axes.begin(), axes.end());
  int64_t members = groupOf(gridOf(op), axes).size;
  Layout groups =
      sequence.getLayout(groupOf(gridOf(op), sequence.getAxes()).size)
          .ofGroups(members);
  return {SmallVector<int64_t>(axes),
          SequenceAttr::get(op.getContext(), grid, left, groups.order,
                            groups.block),
          AxesAttr::get(op.getContext(), grid, heads),
          {},
          1};
}

FailureOr<Exchange> burst::exchangeOf(AttentionInterface op) {
  Exchange exchange{{}, *op.getSequence(), op.getHeadsAttr(), {}, 1};
  StrategyAttr pinned = op.getStrategyAttr();
  if (!pinned)
    return exchange;
  SmallVector<StrategyPart> parts = pinned.getParts();
  SmallVector<int64_t> left = sequenceAxes(op);
  const auto *part = llvm::find_if(parts, [](const StrategyPart &other) {
    return other.name == exchangeName;
  });
  auto refuse = [&](const Twine &why) {
    return op->emitOpError("pins the strategy ") << pinned.getText() << why;
  };
  if (parts.size() > (part == parts.end() ? 1 : 2))
    return refuse(", of which several compute; pin one, and ulysses beside it");
  StrategyPart rest;
  for (const StrategyPart &other : parts) {
    for (int64_t axis : other.axes)
      if (!llvm::is_contained(left, axis))
        return refuse(", on axis " + Twine(axis) +
                      ", over which the sequence is not sharded");
    if (other.chunks != 1 && other.name != exchangeName)
      return refuse(", and heads go in chunks by " + Twine(exchangeName) +
                    " alone");
    if (other.name != exchangeName)
      rest = other;
  }
  if (part != parts.end()) {
    SmallVector<int64_t> axes = part->axes;
    if (axes.empty()) {
      axes = left;
      axes.pop_back_n(rest.axes.size());
    }
    if (axes.empty())
      return refuse(", and no axis of the sequence is left for ulysses");
    std::string advice;
    if (std::string why = whyNot(op, axes, advice); !why.empty())
      return op->emitOpError("pins the strategy ")
             << exchangeName << ", which " << why << advice;
    exchange = along(op, axes);
    left.pop_back_n(axes.size());
    if (exchange.isDone() && part->chunks != 1) {
      exchange.chunks = part->chunks;
      if (std::string why = whyNotInChunks(op, exchange, part->chunks);
          !why.empty())
        return refuse(", which " + why);
    }
  }
  if (rest.name.empty())
    return exchange;
  for (int64_t axis : left)
    if (!rest.axes.empty() && !llvm::is_contained(rest.axes, axis) &&
        gridOf(op).getShape()[axis] != 1)
      return refuse(", and nothing on axis " + Twine(axis) +
                    " of the sequence");
  exchange.rest =
      StrategyAttr::get(op.getContext(), ArrayRef(StrategyPart{rest.name}));
  return exchange;
}

SmallVector<Exchange>
burst::allExchanges(AttentionInterface op,
                    SmallVectorImpl<RefusedExchange> &refused) {
  SmallVector<Exchange> all{{{}, *op.getSequence(), op.getHeadsAttr(), {}, 1}};
  SmallVector<int64_t> axes = sequenceAxes(op);
  int64_t members = 1, most = groupOf(gridOf(op), axes).size;
  for (size_t count = 1; count <= axes.size(); ++count) {
    ArrayRef<int64_t> last = ArrayRef(axes).take_back(count);
    int64_t fewer = std::exchange(members, groupOf(gridOf(op), last).size);
    std::string advice;
    std::string why = whyNot(op, last, advice);
    if (!why.empty()) {
      if (members != fewer)
        refused.push_back({members == most ? SmallVector<int64_t>()
                                           : SmallVector<int64_t>(last),
                           why});
      continue;
    }
    Exchange exchange = along(op, last);
    // Axes of one rank change nothing.
    if (exchange.sequence != all.back().sequence && exchange.isDone())
      all.push_back(exchange);
  }
  return all;
}

SmallVector<Exchange> burst::inChunks(AttentionInterface op,
                                      const Exchange &exchange) {
  SmallVector<Exchange> all;
  for (int64_t chunks = 2; chunks <= ring::maxHeadChunks; chunks *= 2)
    if (exchange.isDone() && whyNotInChunks(op, exchange, chunks).empty()) {
      all.push_back(exchange);
      all.back().chunks = chunks;
    }
  return all;
}

Estimate burst::estimateExchange(const Workload &inside,
                                 const DividedHeads &heads, ArrayRef<Axis> axes,
                                 bool hasLseGradient, const Hardware &hardware,
                                 HeadChunks chunks) {
  auto element = static_cast<double>(inside.elementBytes);
  auto state = static_cast<double>(inside.stateBytes);
  auto queryDim = static_cast<double>(inside.sizes.queryDim);
  auto valueDim = static_cast<double>(inside.sizes.valueDim);
  // Numbers of a position and a head: forward q to o, lse and the largest
  // scores, k and v; backward q, o, do, lse and its gradient to dq, k and v to
  // dk and dv.
  double rows = (hasLseGradient || inside.givesMaxScores ? 2 : 1) * state;
  double in = queryDim * element, out = valueDim * element + rows;
  double ofKeys = (queryDim + valueDim) * element;
  double keysIn = ofKeys, keysOut = 0;
  bool sharesHeads = heads.areShared();
  if (inside.isBackward) {
    in += 2 * valueDim * element + rows;
    auto [wantsQuery, wantsKey, wantsValue] = inside.wanted;
    out = wantsQuery ? queryDim * element : 0;
    keysOut = ((wantsKey ? queryDim : 0) + (wantsValue ? valueDim : 0)) *
              (sharesHeads ? state : element);
  }
  auto queries = static_cast<double>(inside.sizes.batch) *
                 static_cast<double>(inside.sizes.queryHeads) *
                 static_cast<double>(inside.queriesOfRank);
  auto keys = static_cast<double>(inside.sizes.batch) *
              static_cast<double>(inside.sizes.keyHeads) *
              static_cast<double>(inside.keysOfRank);
  Estimate result;
  double ofQueries = queries * (in + out),
         ofAllKeys = keys * (keysIn + keysOut);
  auto ranks = static_cast<double>(heads.members);
  // On average: where heads are divided unevenly, a rank has fewer than room
  // for.
  auto share = [&](int64_t all, int64_t most) {
    return static_cast<double>(all) / (ranks * static_cast<double>(most));
  };
  int64_t keysOfAll =
      sharesHeads ? heads.groups * heads.ranksOfGroup() : heads.keys;
  double keysSent =
      ofAllKeys * share(keysOfAll, heads.key) * (ranks - 1) / ranks;
  result.bytes =
      ofQueries * share(heads.queries, heads.query) * (ranks - 1) / ranks +
      keysSent;
  for (auto [index, axis] : llvm::enumerate(axes))
    result.addAlong(axis.number, result.bytes * shareOfPairs(axes, index));
  // Buffers of two chunks, of which one is attended.
  auto count = static_cast<double>(chunks.count);
  double held = chunks.count == 1 ? 1 : 2 / count;
  // Of a key head that ranks share, each of these gives a part.
  double parts = sharesHeads ? static_cast<double>(keysOfAll) / ranks : 1;
  result.buffers = ofQueries * held + keys * (keysIn + keysOut * parts) *
                                          (chunks.haveOwnKeys ? held : 1);
  // What comes back is added first; in between sums are made where they are
  // sent from, which the strategy there counts in another type.
  if (sharesHeads && element == state)
    result.buffers += keys * keysOut;
  // Both ways, each as one start of messages to all. The first chunk is waited
  // for, and the last one; of the others what takes longer than an attention.
  constexpr double issue = 0.1; // as in estimateGathering
  double whole = chunks.haveOwnKeys ? 0 : keysSent / hardware.bandwidth;
  double each = 2 * hardware.latency * (1 + issue * (ranks - 2)) +
                (result.bytes / hardware.bandwidth - whole) / count;
  double behind = std::min(each, chunks.compute / count);
  result.hidden = (count - 1) * behind;
  result.exposed = whole + each + (count - 1) * (each - behind);
  return result;
}

Workload burst::chunkOf(const Workload &inside, const HeadChunks &chunks) {
  Workload chunk = inside;
  chunk.sizes.queryHeads /= chunks.count;
  if (chunks.haveOwnKeys)
    chunk.sizes.keyHeads /= chunks.count;
  return chunk;
}

double burst::buffersInChunks(double buffers, const Workload &inside,
                              const HeadChunks &chunks) {
  return chunks.count > 1 && inside.givesMaxScores ? 2 * buffers : buffers;
}
