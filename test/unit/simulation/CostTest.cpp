//===- CostTest.cpp - costs against formulas and against plans ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Strategies/Exchange.h"
#include "passes/Strategies/Strategy.h"
#include "test/unit/simulation/Masks.h"
#include "test/unit/simulation/Programs.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

constexpr llvm::StringLiteral strategies[] = {"ring_kv", "ring_q"};

Kept keepAll(const Segment &, const Segment &) { return {}; }

/// 16-bit elements and f32 gradients, without a mask.
Workload makeBackward(const AttentionSizes &sizes, int64_t parts) {
  return {sizes, 2, 4, true, {Order::Contiguous, 1, parts}, keepAll};
}

AttentionSizes sizesOfHeads(int64_t queryHeads, int64_t keyHeads) {
  return {1, 8192, 8192, queryHeads, keyHeads, 128, 128};
}

Estimate estimate(const Workload &workload, StringRef strategy,
                  const Hardware &hardware) {
  return lookupStrategy(strategy)->estimate(workload, hardware);
}

StringRef choose(const Workload &workload, const Hardware &hardware = {}) {
  return strategies[cheapest({estimate(workload, "ring_kv", hardware),
                              estimate(workload, "ring_q", hardware)})];
}

/// A machine that computes in no time: all transfers are exposed.
Hardware boundByLinks() {
  Hardware hardware;
  hardware.flops = 1e30;
  return hardware;
}

/// A machine that hides all transfers but the last.
Hardware boundByCompute() {
  Hardware hardware;
  hardware.flops = 1e14;
  return hardware;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

// Bytes of a hop where queries travel over those where keys do, in one head dim
// of 128 with 16-bit elements and f32 gradients: (4 d e + 8) g / (6 d e), as d
// e_g = 2 d e.
TEST(CostTest, RatiosOfBytesByGroupsOfHeads) {
  constexpr std::pair<int64_t, double> wanted[] = {
      {1, 0.672}, {2, 1.34}, {4, 2.69}, {8, 5.38}};
  for (auto [group, ratio] : wanted) {
    Workload workload = makeBackward(sizesOfHeads(8, 8 / group), 8);
    Cargo keys = cargoOf(workload, true);
    Cargo queries = cargoOf(workload, false);
    EXPECT_TRUE(keys.movesKeys);
    EXPECT_FALSE(queries.movesKeys);
    EXPECT_NEAR((queries.slice + queries.behind) / (keys.slice + keys.behind),
                ratio, ratio / 100);
  }
}

TEST(CostTest, BytesOfHeadDimsThatDiffer) {
  AttentionSizes sizes{1, 512, 512, 6, 3, 192, 128};
  Workload backward = makeBackward(sizes, 4);
  EXPECT_EQ(cargoOf(backward, true).slice, 3 * 320 * 2);
  EXPECT_EQ(cargoOf(backward, true).behind, 3 * 320 * 4);
  EXPECT_EQ(cargoOf(backward, false).slice, 6 * (320 * 2 + 8));
  EXPECT_EQ(cargoOf(backward, false).behind, 6 * 192 * 4);
  EXPECT_EQ(backward.operationsOfPair(), 2 * 6 * (3 * 192 + 2 * 128));
  Workload forward(sizes, 8, 8, false, backward.layout, keepAll);
  EXPECT_EQ(cargoOf(forward, true).slice, 3 * 320 * 8);
  EXPECT_EQ(cargoOf(forward, true).behind, 0);
  EXPECT_EQ(cargoOf(forward, false).slice, 6 * 192 * 8);
  EXPECT_EQ(cargoOf(forward, false).behind, 6 * 130 * 8);
  EXPECT_EQ(forward.operationsOfPair(), 2 * 6 * 320);
}

// The border lies at Hq Sq / (Hkv Sk) = 1.49, between no groups and any.
TEST(CostTest, QueriesTravelWithoutGroupsOfHeads) {
  for (const Hardware &hardware :
       {Hardware(), boundByLinks(), boundByCompute()})
    for (int64_t parts : {2, 4, 8, 128}) {
      EXPECT_EQ(choose(makeBackward(sizesOfHeads(8, 8), parts), hardware),
                "ring_q");
      for (int64_t keyHeads : {4, 2, 1})
        EXPECT_EQ(
            choose(makeBackward(sizesOfHeads(8, keyHeads), parts), hardware),
            "ring_kv");
    }
}

TEST(CostTest, LengthsMoveTheBorder) {
  auto chosen = [](int64_t group, int64_t queries, int64_t keys) {
    AttentionSizes sizes{1, queries * 64, keys * 64, group, 1, 128, 128};
    return choose(makeBackward(sizes, 8), boundByLinks());
  };
  // 1 / 0.672 = 1.488 queries for a key.
  EXPECT_EQ(chosen(1, 148, 100), "ring_q");
  EXPECT_EQ(chosen(1, 150, 100), "ring_kv");
  // 1.344, 2.688 keys for a query of a group.
  EXPECT_EQ(chosen(2, 100, 133), "ring_kv");
  EXPECT_EQ(chosen(2, 100, 136), "ring_q");
  EXPECT_EQ(chosen(4, 100, 267), "ring_kv");
  EXPECT_EQ(chosen(4, 100, 271), "ring_q");
}

TEST(CostTest, TheMachineMovesTheBorder) {
  // Of 1.7 queries for a key more bytes travel, but of gradients in the last
  // hop, which nothing hides, fewer: 1.7 Dqk to 1 (Dqk + Dv).
  AttentionSizes sizes{1, 170 * 512, 100 * 512, 1, 1, 128, 128};
  Workload workload = makeBackward(sizes, 4);
  Hardware even;
  even.latency = 0;
  even.flops = 1e30;
  EXPECT_EQ(choose(workload, even), "ring_kv");
  // As slow as the transfer of a hop.
  double pairs = 170.0 * 128 * 100 * 128;
  even.flops = workload.operationsOfPair() * pairs /
               (170.0 * 128 * 1032 / even.bandwidth);
  EXPECT_EQ(choose(workload, even), "ring_q");
}

TEST(CostTest, TheFewestBytesOfEqualTimes) {
  Estimate slow{1, 2, 0, 1}, fast{9, 1, 0, 1}, close{8, 1, 0, 1.015},
      same{9, 1, 0, 1};
  EXPECT_EQ(cheapest({slow, fast}), 1U);
  EXPECT_EQ(cheapest({slow, fast, close}), 2U);
  EXPECT_EQ(cheapest({fast, same}), 0U);
}

TEST(CostTest, TwiceTheMemoryIsWorthAPercent) {
  Estimate small{9, 1, 0, 1, 10}, large{8, 1, 0, 1, 20}, larger{7, 1, 0, 1, 21},
      faster{99, 1, 0, 0.9, 99};
  EXPECT_EQ(cheapest({small, large}), 1U);
  EXPECT_EQ(cheapest({small, large, larger}), 1U);
  // A small one that is slow counts for nothing.
  EXPECT_EQ(cheapest({small, faster}), 1U);
  // Of sizes that are not known, nothing that takes more than twice as much.
  EXPECT_EQ(cheapest({small, faster}, /*areSizesKnown=*/false), 0U);
  EXPECT_EQ(cheapest({small, large, faster}, /*areSizesKnown=*/false), 1U);
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

TEST(CostTest, TransfersAreHiddenOrExposed) {
  constexpr int64_t parts = 4, n = 2048;
  Workload workload = makeBackward(sizesOfHeads(1, 1), parts);
  Hardware hardware{1e9, 1e-3, 1e9};
  for (StringRef strategy : strategies) {
    Cargo cargo = cargoOf(workload, strategy == "ring_kv");
    double slice = n * cargo.slice / 1e9, behind = n * cargo.behind / 1e9;
    // Slices leave in hops 0 to 2; gradients of hops 1 and 2 in 2 and 3, those
    // of the last hop when all is computed.
    double inside = (1e-3 + slice) + (1e-3 + slice) + (1e-3 + slice + behind) +
                    (1e-3 + behind);
    double last = 1e-3 + behind;
    double compute = workload.operationsOfPair() * n * n * parts / 1e9;
    Estimate slow = estimate(workload, strategy, hardware);
    EXPECT_NEAR(slow.compute, compute, compute * 1e-9);
    EXPECT_NEAR(slow.hidden, inside, inside * 1e-9);
    EXPECT_NEAR(slow.exposed, last, last * 1e-9);
    Hardware fast{1e9, 1e-3, 1e30};
    EXPECT_NEAR(estimate(workload, strategy, fast).exposed, inside + last,
                (inside + last) * 1e-9);
    EXPECT_NEAR(estimate(workload, strategy, fast).hidden, 0, 1e-9);
  }
}

TEST(CostTest, ForwardHasNothingToReturn) {
  Workload workload(sizesOfHeads(2, 1), 2, 4, false, {Order::Zigzag, 1, 8},
                    keepAll);
  EXPECT_EQ(estimate(workload, "ring_kv", {1e9, 0, 1}).exposed, 0);
}

TEST(CostTest, OneRankSendsNothing) {
  Workload workload = makeBackward(sizesOfHeads(2, 1), 1);
  for (StringRef strategy : strategies) {
    Estimate cost = estimate(workload, strategy, {});
    EXPECT_EQ(cost.bytes, 0);
    EXPECT_EQ(cost.hidden + cost.exposed, 0);
    EXPECT_GT(cost.compute, 0);
  }
}

TEST(CostTest, LargeGridsAreNearlyExact) {
  constexpr int64_t parts = 16 * maxExactRanks, n = 4096;
  AttentionSizes sizes{1, parts * n, parts * n, 1, 1, 128, 128};
  Workload workload = makeBackward(sizes, parts);
  Cargo cargo = cargoOf(workload, true);
  Hardware hardware{1e9, 1e-3, 1e30};
  Estimate cost = estimate(workload, "ring_kv", hardware);
  double bytes = (parts - 1) * n * (cargo.slice + cargo.behind);
  double seconds = parts * 1e-3 + bytes / 1e9;
  EXPECT_NEAR(cost.bytes, bytes, bytes * 0.02);
  EXPECT_NEAR(cost.exposed, seconds, seconds * 0.03);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// By counting; queries begin at `shift`.
Kept count(const NamedMask &mask, int64_t shift, const Segment &queries,
           const Segment &keys) {
  int64_t kept = 0, all = 0;
  for (int64_t i = queries.begin; i < queries.end(); ++i)
    for (int64_t j = keys.begin; j < keys.end(); ++j, ++all)
      kept += mask.keeps(i + shift, j) ? 1 : 0;
  return {kept != 0,
          all == 0 ? 0 : static_cast<double>(kept) / static_cast<double>(all)};
}

/// The estimate of a problem, against the plan of its program.
class PlannedCost {
public:
  PlannedCost(MLIRContext &context, const Problem &problem,
              const NamedMask &mask, Order order)
      : problem(problem), isDouble(problem.element == "f64"),
        heads(divideHeads(problem.heads, problem.keyHeads, problem.members)),
        workload({problem.batch, problem.queries, problem.keys, heads.query,
                  heads.key, problem.dim, problem.valueDim},
                 isDouble ? 8 : 2, isDouble ? 8 : 4, !problem.backward.empty(),
                 {order, 1, problem.parts},
                 [&](const Segment &q, const Segment &k) {
                   return mask.keeps
                              ? count(mask, problem.keys - problem.queries, q,
                                      k)
                              : Kept{};
                 }),
        cost(estimateOf(problem, workload)) {
    HeadChunks chunks{problem.chunks, problem.heads == problem.keyHeads, 0};
    Workload chunk = chunkOf(workload, chunks);
    cost.buffers =
        buffersInChunks(estimateOf(problem, chunk).buffers, workload, chunks);
    if (problem.members > 1)
      cost += estimateExchange(
          workload, heads, {{problem.innerRanks == 0 ? 1 : 2, problem.members}},
          /*hasLseGradient=*/false, {}, chunks);
    Proof proof;
    ProofOptions options;
    options.allowEmpty = problem.forward == "ring_scores";
    auto refused = proveModule(*lower(context, problem), options, &proof);
    EXPECT_FALSE(refused) << refused->message;
    traffic = proof.traffic;
  }

  void compare() const {
    int64_t sent = 0, peak = 0;
    std::vector<int64_t> sentByAxis(traffic.front().sentByAxis.size());
    for (const Traffic &found : traffic) {
      sent += found.totalBytes();
      int64_t ofRank = 0;
      for (auto [sum, own] : llvm::zip_equal(sentByAxis, found.sentByAxis)) {
        sum += own;
        ofRank += own;
      }
      EXPECT_EQ(ofRank, found.totalBytes());
      peak = std::max(peak, found.peakBytes);
    }
    int64_t ranks = problem.parts * problem.members;
    EXPECT_NEAR(cost.bytes * static_cast<double>(ranks),
                static_cast<double>(sent), 1e-6);
    EXPECT_LE(cost.bytesByAxis.size(), sentByAxis.size());
    for (auto [axis, sum] : llvm::enumerate(sentByAxis))
      EXPECT_NEAR(cost.bytesAlong(static_cast<int64_t>(axis)) *
                      static_cast<double>(ranks),
                  static_cast<double>(sum), 1e-6)
          << "axis " << axis;
    double held = static_cast<double>(tensorBytes()) + cost.buffers;
    if (problem.wanted == "qkv" && workload.whole.isEven(problem.queries) &&
        workload.whole.isEven(problem.keys))
      EXPECT_EQ(held, static_cast<double>(peak));
    else
      EXPECT_GE(held, static_cast<double>(peak));
  }

private:
  /// Operands and results of the attention, on a rank.
  int64_t tensorBytes() const {
    // As many of all heads as of a part of them, where the others are.
    int64_t element = workload.elementBytes, state = workload.stateBytes;
    int64_t queries = problem.batch * problem.heads * workload.queriesOfRank /
                      problem.members;
    int64_t keys = problem.batch * problem.keyHeads * workload.keysOfRank /
                   problem.members;
    int64_t bytes = queries * (problem.dim + problem.valueDim) * element +
                    keys * (problem.dim + problem.valueDim) * element +
                    queries * state * (problem.givesMaxScores ? 2 : 1);
    if (workload.isBackward)
      // The gradient of out, and those by query, key and value.
      bytes += queries * (problem.valueDim + problem.dim) * element +
               keys * (problem.dim + problem.valueDim) * element;
    return bytes;
  }

  static Estimate estimateOf(const Problem &problem, Workload &workload) {
    workload.wanted = {StringRef(problem.wanted).contains('q'),
                       StringRef(problem.wanted).contains('k'),
                       StringRef(problem.wanted).contains('v')};
    workload.givesMaxScores = problem.givesMaxScores;
    if (int64_t inner = problem.innerRanks; inner != 0) {
      workload.axes = {{0, problem.parts / inner}, {1, inner}};
      llvm::erase_if(workload.axes,
                     [](const Axis &axis) { return axis.ranks == 1; });
    }
    return estimate(
        workload, problem.backward.empty() ? problem.forward : problem.backward,
        {});
  }

  Problem problem;
  bool isDouble;
  DividedHeads heads;
  Workload workload;
  Estimate cost;
  std::vector<Traffic> traffic;
};

struct Direction {
  const char *forward, *backward;
};

constexpr Direction directions[] = {{"ring_kv", ""},
                                    {"ring_q", ""},
                                    {"ring_scores", ""},
                                    {"ring_scores", "ring_scores"},
                                    {"ring_kv", "ring_kv"},
                                    {"ring_kv", "ring_q"},
                                    {"all_gather", ""},
                                    {"all_gather", "all_gather"},
                                    {"gather_q", ""},
                                    {"ring_kv", "gather_q"},
                                    {"direct_kv", ""},
                                    {"direct_q", ""},
                                    {"direct_kv", "direct_kv"},
                                    {"direct_kv", "direct_q"},
                                    {"bi_ring_kv", ""},
                                    {"bi_ring_q", ""},
                                    {"bi_ring_kv", "bi_ring_kv"},
                                    {"bi_ring_kv", "bi_ring_q"}};

/// Of queries and keys: shards that are uneven, even, and of different sizes.
constexpr std::pair<int64_t, int64_t> lengths[] = {
    {53, 53}, {48, 48}, {48, 96}};

/// Under sanitizers one order tells of the others.
bool isTried(Order order) {
  return order == Order::Zigzag || !std::getenv("BURST_TEST_SHORT");
}

// What is predicted is what the compiled schedule sends and holds, to the byte.
TEST(CostTest, BytesAreThoseOfThePlan) {
  auto context = makeContext();
  for (const NamedMask &mask : masks)
    for (Order order : {Order::Contiguous, Order::Zigzag, Order::Striped})
      for (int64_t parts : {1, 2, 3, 4, 8})
        for (const char *element : {"bf16", "f64"})
          for (auto [queries, keys] : lengths)
            for (Direction direction : directions) {
              // Types and masks are told by fewer sizes.
              bool isOfSizes = queries != keys || parts == 1;
              bool isPlain = !mask.keeps && element != StringRef("f64");
              if (!isTried(order) || (isOfSizes && !isPlain))
                continue;
              Problem problem;
              problem.forward = direction.forward;
              problem.backward = direction.backward;
              problem.mask = mask.text;
              problem.order = stringifyOrder(order);
              problem.parts = parts;
              problem.queries = queries;
              problem.keys = keys;
              problem.batch = 2;
              problem.heads = 4;
              problem.keyHeads = 2;
              problem.dim = 6;
              problem.valueDim = 5;
              problem.element = element;
              SCOPED_TRACE(problem.describe());
              PlannedCost(*context, problem, mask, order).compare();
            }
}

/// Of eight heads, which so many members exchange, evenly or not.
static Problem exchanged(int64_t members, int64_t keyHeads,
                         const char *element) {
  Problem problem;
  problem.mask = masks[1].text;
  problem.order = "zigzag";
  problem.members = members;
  problem.queries = members == 5 ? 40 : 48; // shards are even
  problem.keys = 2 * problem.queries;
  problem.batch = 2;
  problem.heads = 8;
  problem.keyHeads = keyHeads;
  problem.dim = 6;
  problem.valueDim = 5;
  problem.element = element;
  return problem;
}

/// All strategies around an exchange are as planned.
static void compareExchanged(int64_t members, int64_t keyHeads,
                             ArrayRef<int64_t> numParts) {
  auto context = makeContext();
  for (int64_t parts : numParts)
    for (const char *element : {"bf16", "f64"})
      for (Direction direction : directions) {
        if (direction.forward == StringRef("ring_scores"))
          continue;
        Problem problem = exchanged(members, keyHeads, element);
        problem.forward = direction.forward;
        problem.backward = direction.backward;
        problem.parts = parts;
        SCOPED_TRACE(problem.describe());
        PlannedCost(*context, problem, masks[1], Order::Zigzag).compare();
      }
}

TEST(CostTest, BytesOfExchangesAreThoseOfThePlan) {
  for (auto [members, keyHeads] :
       {std::pair<int64_t, int64_t>{2, 4}, {4, 4}, {4, 2}})
    compareExchanged(members, keyHeads, {1, 2, 3});
}

// Of eight query heads three ranks have room for 3 where they have keys of
// their own or share one, and for 4 where two of them share one of 4: 3, 3, 2,
// and 4, 4, 0. What they only have room for is stored, and travels on rings.
// Five, or six, are two or three for each of two key heads: 2, 2, 2, 2 and 0,
// and 2, 2, 0, 2, 2 and 0.
TEST(CostTest, BytesOfUnevenHeadsAreThoseOfThePlan) {
  for (int64_t keyHeads : {8, 4, 1})
    compareExchanged(/*members=*/3, keyHeads, {1, 2, 4});
  for (int64_t members : {5, 6})
    compareExchanged(members, /*keyHeads=*/2, {1, 2});
}

// Two chunks of what all-to-alls bring, and of what they take; what an
// attention of its own has in between once.
TEST(CostTest, BytesOfChunksAreThoseOfThePlan) {
  auto context = makeContext();
  for (auto [chunks, keyHeads] :
       {std::pair<int64_t, int64_t>{2, 8}, {4, 8}, {2, 2}, {4, 2}, {4, 1}})
    for (const char *element : {"bf16", "f64"})
      for (const char *backward : {"", "ring_kv"})
        for (bool givesMaxScores : {false, true}) {
          if (*backward && givesMaxScores)
            continue;
          Problem problem = exchanged(/*members=*/2, keyHeads, element);
          problem.backward = backward;
          problem.parts = 1;
          problem.chunks = chunks;
          problem.givesMaxScores = givesMaxScores;
          SCOPED_TRACE(problem.describe());
          PlannedCost(*context, problem, masks[1], Order::Zigzag).compare();
        }
}

// The state lives in the memory of results, and is there also where one attend
// would end it.
TEST(CostTest, BytesWithMaxScoresAreThoseOfThePlan) {
  auto context = makeContext();
  for (int64_t members : {1, 2})
    for (int64_t parts : {1, 2, 4})
      for (const char *element : {"bf16", "f64"})
        for (Direction direction : directions) {
          if (*direction.backward ||
              (direction.forward == StringRef("ring_scores") && members > 1))
            continue;
          Problem problem;
          problem.forward = direction.forward;
          problem.mask = masks[1].text;
          problem.order = "zigzag";
          problem.parts = parts;
          problem.members = members;
          problem.queries = problem.keys = 48;
          problem.heads = problem.keyHeads = 4;
          problem.dim = 6;
          problem.valueDim = 5;
          problem.element = element;
          problem.givesMaxScores = true;
          SCOPED_TRACE(problem.describe());
          PlannedCost(*context, problem, masks[1], Order::Zigzag).compare();
        }
}

// Gradients that nobody uses are neither sent nor counted.
TEST(CostTest, UnusedGradientsAreNotCounted) {
  auto context = makeContext();
  for (const char *strategy :
       {"ring_kv", "ring_q", "bi_ring_kv", "bi_ring_q", "direct_kv", "direct_q",
        "all_gather", "gather_q", "double_ring_kv", "double_ring_q",
        "ring_scores"})
    for (const char *wanted : {"q", "k", "v", "kv", "qv"})
      for (int64_t members : {1, 2}) {
        StringRef name = strategy;
        if (members > 1 && name == "ring_scores")
          continue;
        const NamedMask &mask = masks[name == "ring_scores" ? 0 : 1];
        Problem problem;
        problem.backward = strategy;
        problem.mask = mask.text;
        problem.order = "zigzag";
        problem.parts = 4;
        problem.innerRanks = name.starts_with("double") ? 2 : 0;
        problem.members = members;
        problem.queries = problem.keys = 48;
        problem.heads = 4;
        problem.keyHeads = 2;
        problem.dim = 6;
        problem.valueDim = 5;
        problem.element = "bf16";
        problem.wanted = wanted;
        SCOPED_TRACE(problem.describe());
        PlannedCost(*context, problem, mask, Order::Zigzag).compare();
      }
}

constexpr Direction doubleRings[] = {{"double_ring_kv", ""},
                                     {"double_ring_q", ""},
                                     {"double_ring_kv", "double_ring_kv"},
                                     {"double_ring_kv", "double_ring_q"}};

/// Sharded over two axes, and exchanged along a third one of `members` ranks.
static Problem onGrid(int64_t outer, int64_t inner, int64_t members,
                      Direction direction, const NamedMask &mask, Order order) {
  Problem problem;
  problem.forward = direction.forward;
  problem.backward = direction.backward;
  problem.mask = mask.text;
  problem.order = stringifyOrder(order);
  problem.parts = outer * inner;
  problem.innerRanks = inner;
  problem.members = members;
  problem.heads = 4;
  problem.keyHeads = 2;
  problem.dim = 6;
  problem.valueDim = 5;
  problem.element = "bf16";
  return problem;
}

TEST(CostTest, BytesOfDoubleRingsAreThoseOfThePlan) {
  auto context = makeContext();
  constexpr std::pair<int64_t, int64_t> grids[] = {{1, 3}, {3, 1}, {2, 2},
                                                   {2, 4}, {4, 2}, {3, 3}};
  for (auto [outer, inner] : grids)
    for (const NamedMask &mask : masks)
      for (Order order : {Order::Contiguous, Order::Zigzag})
        for (auto [queries, keys] : lengths)
          for (Direction direction : doubleRings)
            for (int64_t members : {1, 2}) {
              Problem problem =
                  onGrid(outer, inner, members, direction, mask, order);
              problem.queries = queries;
              problem.keys = keys;
              if (!isTried(order))
                continue;
              // The estimate of an all-to-all is of the largest shards.
              Layout all{order, 1, problem.parts * members};
              if (members > 1 && !(all.isEven(queries) && all.isEven(keys)))
                continue;
              SCOPED_TRACE(problem.describe());
              PlannedCost(*context, problem, mask, order).compare();
            }
}

// Bytes along axes: of rings over both, of what is gathered, and of what comes
// directly, also next to an exchange.
TEST(CostTest, BytesByAxisAreThoseOfThePlan) {
  auto context = makeContext();
  constexpr std::pair<int64_t, int64_t> grids[] = {{2, 4}, {3, 2}};
  for (auto [outer, inner] : grids)
    for (const NamedMask &mask : masks)
      for (Order order : {Order::Contiguous, Order::Zigzag})
        for (Direction direction : directions)
          for (int64_t members : {1, 2}) {
            if (!isTried(order) ||
                (members > 1 && direction.forward == StringRef("ring_scores")))
              continue;
            Problem problem =
                onGrid(outer, inner, members, direction, mask, order);
            problem.queries = 48;
            problem.keys = 96;
            SCOPED_TRACE(problem.describe());
            PlannedCost(*context, problem, mask, order).compare();
          }
}

// By hand, on 2 x 4 ranks: of the neighbours in one ring over both axes, two of
// eight are on another node, of all pairs 8 x 4 of 8 x 7; of two rings the
// outer one takes one hop, and the inner one three in each turn of it.
TEST(CostTest, BytesAlongAxesAddUp) {
  Workload workload = makeBackward(sizesOfHeads(8, 2), 8);
  workload.axes = {{0, 2}, {2, 4}};
  auto shareOfNodes = [&](StringRef strategy) {
    Estimate cost = estimate(workload, strategy, {});
    EXPECT_NEAR(cost.bytesAlong(0) + cost.bytesAlong(2), cost.bytes, 1e-6);
    EXPECT_EQ(cost.bytesAlong(1), 0);
    EXPECT_EQ(cost.bytesAlong(3), 0);
    return cost.bytesAlong(0) / cost.bytes;
  };
  for (StringRef strategy : {"ring_kv", "ring_q"})
    EXPECT_NEAR(shareOfNodes(strategy), 2.0 / 8, 1e-9);
  // In both directions partial results return from three ranks ahead, of which
  // three of four are on another node, and from four back, of which all are.
  for (bool movesKeys : {true, false}) {
    Cargo cargo = cargoOf(workload, movesKeys);
    EXPECT_NEAR(
        shareOfNodes(movesKeys ? "bi_ring_kv" : "bi_ring_q"),
        (cargo.slice * 2 / 8 + cargo.behind * (5 * 2.0 / 8 + 3.0 / 4 + 1) / 7) /
            (cargo.slice + cargo.behind),
        1e-9);
  }
  for (StringRef strategy : {"all_gather", "gather_q", "direct_kv", "direct_q"})
    EXPECT_NEAR(shareOfNodes(strategy), 4.0 / 7, 1e-9);
  for (StringRef strategy : {"double_ring_kv", "double_ring_q"})
    EXPECT_NEAR(shareOfNodes(strategy), 1.0 / 7, 1e-9);
  Estimate exchange =
      estimateExchange(workload,
                       divideHeads(4 * workload.sizes.queryHeads,
                                   4 * workload.sizes.keyHeads, 4),
                       {{3, 2}, {4, 2}}, /*hasLseGradient=*/false, {});
  EXPECT_NEAR(exchange.bytesAlong(3), exchange.bytes * 2 / 3, 1e-6);
  EXPECT_NEAR(exchange.bytesAlong(4), exchange.bytes / 3, 1e-6);
  Estimate both = estimate(workload, "ring_kv", {});
  both += exchange;
  EXPECT_NEAR(both.bytesAlong(0) + both.bytesAlong(2) + both.bytesAlong(3) +
                  both.bytesAlong(4),
              both.bytes, 1e-6);
}

TEST(CostTest, BytesAlongAxesOfLargeGridsAreNearlyExact) {
  constexpr int64_t nodes = 32, inner = 8;
  AttentionSizes sizes{1, nodes * inner * 64, nodes * inner * 64, 1, 1, 8, 8};
  Workload workload = makeBackward(sizes, nodes * inner);
  workload.axes = {{0, nodes}, {1, inner}};
  constexpr std::pair<StringRef, double> shares[] = {
      {"ring_kv", 1.0 / inner},
      {"double_ring_kv", (nodes - 1.0) / (nodes * inner - 1.0)},
      {"all_gather", (nodes - 1.0) * inner / (nodes * inner - 1.0)},
      {"direct_q", (nodes - 1.0) * inner / (nodes * inner - 1.0)}};
  for (auto [strategy, share] : shares) {
    Estimate cost = estimate(workload, strategy, {});
    EXPECT_NEAR(cost.bytesAlong(0) + cost.bytesAlong(1), cost.bytes,
                cost.bytes * 1e-9);
    EXPECT_NEAR(cost.bytesAlong(0) / cost.bytes, share, share * 0.15)
        << strategy.str();
  }
}

TEST(CostTest, LargeGridsHoldWhatOneOfTheirRanksHolds) {
  // Memory is that of the whole grid, though bytes are counted on fewer ranks.
  for (StringRef strategy : {"ring_kv", "ring_q", "ring_scores"}) {
    AttentionSizes few{1, 64 * 8, 64 * 8, 2, 1, 4, 4};
    AttentionSizes many{1, 1024 * 8, 1024 * 8, 2, 1, 4, 4};
    Workload small(few, 2, 4, false, {Order::Zigzag, 1, 64}, keepAll);
    Workload large(many, 2, 4, false, {Order::Zigzag, 1, 1024}, keepAll);
    double held = estimate(small, strategy, {}).buffers;
    if (strategy == "ring_scores") // of all keys
      held += 2.0 * 8 * (1024 - 64) * 8 * 4;
    EXPECT_EQ(estimate(large, strategy, {}).buffers, held);
  }
}

TEST(CostTest, StoredScoresTakeTwoRounds) {
  // As many products as the ring of keys, whose transfers are of both tensors.
  Workload workload(sizesOfHeads(4, 2), 2, 4, false, {Order::Zigzag, 1, 4},
                    keepAll);
  Estimate stored = estimate(workload, "ring_scores", boundByLinks());
  Estimate ring = estimate(workload, "ring_kv", boundByLinks());
  EXPECT_EQ(stored.bytes, ring.bytes);
  EXPECT_NEAR(stored.compute, ring.compute, ring.compute * 1e-9);
  EXPECT_NEAR(stored.exposed, ring.exposed + 3 * boundByLinks().latency, 1e-9);
  EXPECT_TRUE(lookupStrategy("ring_scores")->isOnlyPinned(8));
}

TEST(CostTest, GradientsOfStoredScoresTakeThreeRounds) {
  // Keys go round once more than in the ring of keys, in the same products.
  Workload workload(sizesOfHeads(4, 2), 2, 4, /*isBackward=*/true,
                    {Order::Zigzag, 1, 4}, keepAll);
  Estimate stored = estimate(workload, "ring_scores", boundByLinks());
  Estimate ring = estimate(workload, "ring_kv", boundByLinks());
  AttentionSizes keys = workload.sizes;
  keys.valueDim = 0;
  Workload again(keys, 2, 4, /*isBackward=*/false, {Order::Zigzag, 1, 4},
                 keepAll);
  EXPECT_EQ(stored.bytes,
            ring.bytes + estimate(again, "ring_kv", boundByLinks()).bytes);
  EXPECT_NEAR(stored.compute, ring.compute, ring.compute * 1e-9);
  EXPECT_GT(stored.exposed, ring.exposed);
}

} // namespace
