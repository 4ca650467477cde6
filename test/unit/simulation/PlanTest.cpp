//===- PlanTest.cpp - plans against an independent count ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes and hops of plans equal what is counted here pair by pair, with
// formulas of its own for positions and masks.
//
//===----------------------------------------------------------------------===//
#include "test/unit/Sanitizers.h"
#include "test/unit/simulation/Programs.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

struct Mask {
  const char *text; ///< as in the IR
  /// Null: nothing is dropped, not even what ranks without queries pass on.
  bool (*keeps)(int64_t i, int64_t j, int64_t sq, int64_t sk);
};

constexpr Mask masks[] = {
    {"", nullptr},
    {"full", nullptr},
    {"causal", [](int64_t i, int64_t j, int64_t sq,
                  int64_t sk) { return j <= i + sk - sq; }},
    {"window<left = 4, right = 0>",
     [](int64_t i, int64_t j, int64_t sq, int64_t sk) {
       return j <= i + sk - sq && j >= i + sk - sq - 4;
     }},
    {"window<left = 1, right = 6>",
     [](int64_t i, int64_t j, int64_t sq, int64_t sk) {
       return j <= i + sk - sq + 6 && j >= i + sk - sq - 1;
     }},
    {"window<right = 2>", [](int64_t i, int64_t j, int64_t sq,
                             int64_t sk) { return j <= i + sk - sq + 2; }},
    {"prefix<7>", [](int64_t i, int64_t j, int64_t sq,
                     int64_t sk) { return j < 7 || j <= i + sk - sq; }},
    // One key for each query.
    {"[window<left = 0>, window<right = 0>, causal, prefix<0>]",
     [](int64_t i, int64_t j, int64_t sq, int64_t sk) {
       return j == i + sk - sq;
     }},
};

struct Place {
  int64_t owner, segment;
};

/// Where position p of `extent` lies; chunk c of n begins at floor(c S / n).
Place locate(StringRef order, int64_t parts, int64_t p, int64_t extent) {
  auto chunk = [&](int64_t n) { return (n * (p + 1) - 1) / extent; };
  if (order == "contiguous")
    return {chunk(parts), 0};
  if (order == "zigzag") {
    int64_t c = chunk(2 * parts);
    return c < parts ? Place{c, 0} : Place{2 * parts - 1 - c, 1};
  }
  int64_t block = order == "striped 3" ? 3 : 1;
  return {p / block % parts, 0};
}

/// How many positions of what moves each rank sends, in one direction of the
/// ring, and of what follows it: its state, or gradients by it.
struct Count {
  std::vector<int64_t> sent, followed;
  int64_t total = 0;
};

Count countIn(const Problem &problem, const Mask &mask, bool goesBack) {
  int64_t parts = problem.parts;
  bool movesQueries = problem.movesQueries();
  int64_t moving = movesQueries ? problem.queries : problem.keys;
  int64_t staying = movesQueries ? problem.keys : problem.queries;
  // [owner][segment]: positions, and how far the farthest needs them.
  std::vector<std::array<int64_t, 2>> size(parts), reach(parts);
  for (int64_t x = 0; x < moving; ++x) {
    Place place = locate(problem.order, parts, x, moving);
    ++size[place.owner][place.segment];
    if (!mask.keeps)
      reach[place.owner][place.segment] = parts - 1;
    for (int64_t y = 0; mask.keeps && y < staying; ++y) {
      auto [i, j] = movesQueries ? std::pair(x, y) : std::pair(y, x);
      if (!mask.keeps(i, j, problem.queries, problem.keys))
        continue;
      int64_t rank = locate(problem.order, parts, y, staying).owner;
      int64_t distance = goesBack ? place.owner - rank : rank - place.owner;
      int64_t &far = reach[place.owner][place.segment];
      far = std::max(far, (distance + parts) % parts);
    }
  }
  Count count;
  count.sent.resize(parts);
  count.followed.resize(parts);
  for (int64_t owner = 0; owner < parts; ++owner)
    for (int64_t segment : {0, 1})
      for (int64_t hop = 0; hop < reach[owner][segment]; ++hop) {
        int64_t sender = (owner + (goesBack ? parts - hop : hop)) % parts;
        count.sent[sender] += size[owner][segment];
        count.total += size[owner][segment];
        // Who received it sends what follows it: on, or at last to its owner.
        int64_t receiver = (sender + (goesBack ? parts - 1 : 1)) % parts;
        count.followed[receiver] += size[owner][segment];
      }
  return count;
}

/// The cheaper direction; of equals, the one that goes up.
Count countBest(const Problem &problem, const Mask &mask) {
  Count ahead = countIn(problem, mask, false),
        back = countIn(problem, mask, true);
  return back.total < ahead.total ? back : ahead;
}

/// The plan, which is the same whether ranks are simulated or, as those of a
/// program that is proved, counted without their neighbors.
std::vector<Traffic> planOf(ModuleOp module) {
  func::FuncOp program = getProgram(module);
  std::vector<Traffic> traffic, alone;
  for (bool isProved : {false, true}) {
    auto simulation = Simulation::create(program);
    auto counterexample = plan(*simulation, *describeGlobals(program, {}),
                               isProved ? alone : traffic, isProved);
    EXPECT_FALSE(counterexample) << counterexample->message;
  }
  auto fields = [](const Traffic &t) {
    return std::tie(t.sentBytes, t.sentByAxis, t.messages, t.hops, t.peakSlices,
                    t.peakBytes);
  };
  for (auto [rank, pair] : llvm::enumerate(llvm::zip_equal(traffic, alone)))
    EXPECT_EQ(fields(std::get<0>(pair)), fields(std::get<1>(pair))) << rank;
  return traffic;
}

class PlanTest : public ::testing::TestWithParam<const char *> {
protected:
  /// Calls `check` with all sizes and numbers of ranks.
  void forAllSizes(function_ref<void(const Problem &)> check) {
    for (int64_t parts : sampleOf<int64_t>({1, 2, 3, 4, 5, 7, 8}))
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{48, 48},
                                   {29, 29},
                                   {13, 37},
                                   {37, 13},
                                   {6, 5}}) {
        Problem problem;
        problem.order = GetParam();
        problem.parts = parts;
        problem.queries = queries;
        problem.keys = keys;
        // Bytes of keys and values must not be mixed up.
        problem.batch = 2;
        problem.heads = 6;
        problem.keyHeads = 3;
        problem.dim = 5;
        problem.valueDim = 4;
        problem.element = "bf16";
        check(problem);
      }
  }

  std::unique_ptr<MLIRContext> context = makeContext();
};

/// Bytes of one position of keys, and of values.
int64_t keyBytes(const Problem &p) { return p.batch * p.keyHeads * p.dim * 2; }
int64_t valueBytes(const Problem &p) {
  return p.batch * p.keyHeads * p.valueDim * 2;
}

} // namespace

INSTANTIATE_TEST_SUITE_P(Orders, PlanTest,
                         ::testing::Values("contiguous", "zigzag", "striped",
                                           "striped 3"),
                         [](const auto &info) {
                           std::string name = info.param;
                           llvm::erase(name, ' ');
                           return name;
                         });

TEST_P(PlanTest, BytesEqualABruteForceCount) {
  forAllSizes([&](Problem problem) {
    for (const Mask &mask : masks) {
      problem.mask = mask.text;
      SCOPED_TRACE(problem.describe());
      // A box around the positions of a stripe says less than they do: with a
      // lower bound of j, more may travel than is needed.
      bool isExact = !problem.order.starts_with("striped") ||
                     !StringRef(mask.text).contains("left");
      Count expected = countBest(problem, mask);
      Count full = countBest(problem, masks[0]);
      auto traffic = planOf(*lower(*context, problem));
      int64_t total = 0;
      for (int64_t rank = 0; rank < problem.parts; ++rank) {
        auto &sent = traffic[rank].sentBytes;
        if (isExact) {
          EXPECT_EQ(sent[1], expected.sent[rank] * keyBytes(problem)) << rank;
          EXPECT_EQ(sent[2], expected.sent[rank] * valueBytes(problem)) << rank;
        }
        EXPECT_EQ(sent[1] * problem.valueDim, sent[2] * problem.dim);
        EXPECT_EQ(traffic[rank].totalBytes(), sent[1] + sent[2]);
        total += sent[1] / keyBytes(problem);
      }
      EXPECT_GE(total, expected.total);
      EXPECT_LE(total, full.total);
    }
  });
}

/// Bytes of one position of what moves in a ring from which something comes
/// to the owner, and of what does.
static std::map<int, int64_t> movingBytes(const Problem &p) {
  int64_t rows = p.batch * p.heads;
  if (p.backward.empty())
    return {{0, rows * p.dim * 2}};
  if (p.backward == "ring_q")
    return {{0, rows * p.dim * 2},
            {5, rows * p.valueDim * 2},
            {4, rows * 4},
            {madeFor(5, Made::Delta), rows * 4}};
  return {{1, keyBytes(p)}, {2, valueBytes(p)}};
}

static std::map<int, int64_t> followingBytes(const Problem &p) {
  int64_t rows = p.batch * p.heads;
  if (p.backward.empty())
    return {{madeFor(0, Made::O), rows * p.valueDim * 4},
            {madeFor(0, Made::M), rows * 4},
            {madeFor(0, Made::L), rows * 4}};
  if (p.backward == "ring_q")
    return {{madeFor(0, Made::Gradient), p.batch * p.heads * p.dim * 4}};
  return {{madeFor(1, Made::Gradient), 2 * keyBytes(p)},
          {madeFor(2, Made::Gradient), 2 * valueBytes(p)}};
}

/// The rings from which something returns to the owner: forward, the state of
/// queries.
constexpr const char *returning[] = {"", "ring_q", "ring_kv"};

TEST_P(PlanTest, BytesOfReturnsEqualABruteForceCount) {
  forAllSizes([&](Problem problem) {
    for (const char *backward : returning)
      for (const Mask &mask : masks) {
        problem.forward = "ring_q";
        problem.backward = backward;
        problem.mask = mask.text;
        SCOPED_TRACE(problem.describe());
        bool isExact = !problem.order.starts_with("striped") ||
                       !StringRef(mask.text).contains("left");
        Count expected = countBest(problem, mask);
        auto traffic = planOf(*lower(*context, problem));
        for (int64_t rank = 0; rank < problem.parts; ++rank) {
          auto &sent = traffic[rank].sentBytes;
          int64_t all = 0;
          for (auto [label, bytes] : movingBytes(problem)) {
            if (isExact)
              EXPECT_EQ(sent[label], expected.sent[rank] * bytes) << rank;
            all += sent[label];
          }
          for (auto [label, bytes] : followingBytes(problem)) {
            if (isExact)
              EXPECT_EQ(sent[label], expected.followed[rank] * bytes) << rank;
            all += sent[label];
          }
          EXPECT_EQ(traffic[rank].totalBytes(), all);
          EXPECT_LE(traffic[rank].peakSlices, 2);
        }
      }
  });
}

TEST_P(PlanTest, WithoutDroppingEverythingTravels) {
  forAllSizes([&](Problem problem) {
    problem.drop = false;
    for (const Mask &mask : masks) {
      problem.mask = mask.text;
      SCOPED_TRACE(problem.describe());
      Count expected = countIn(problem, masks[0], false);
      auto traffic = planOf(*lower(*context, problem));
      for (int64_t rank = 0; rank < problem.parts; ++rank)
        EXPECT_EQ(traffic[rank].sentBytes[1],
                  expected.sent[rank] * keyBytes(problem));
    }
  });
}

TEST_P(PlanTest, HopsAndSlices) {
  forAllSizes([&](Problem problem) {
    for (const Mask &mask : masks)
      for (bool overlap : {false, true}) {
        problem.mask = mask.text;
        problem.overlap = overlap;
        SCOPED_TRACE(problem.describe());
        auto module = lower(*context, problem);
        for (const Traffic &traffic : planOf(*module)) {
          EXPECT_EQ(traffic.hops, problem.parts - 1);
          EXPECT_LE(traffic.messages, problem.parts - 1);
          EXPECT_LE(traffic.peakSlices, 2);
        }
      }
  });
}

/// Of a program that is proved many ranks are counted at once, if each holds as
/// much as every other.
TEST(PlanFormulaTest, RanksAreCountedTogether) {
  auto context = makeContext();
  for (int64_t parts : sampleOf<int64_t>({9, 66, 129}))
    for (const char *order : {"contiguous", "zigzag"})
      for (const char *mask : {"causal", "window<left = 100, right = 7>"})
        for (auto [forward, backward] : {std::pair("ring_kv", ""),
                                         {"ring_q", ""},
                                         {"ring_kv", "ring_q"},
                                         {"ring_kv", "ring_kv"},
                                         {"all_gather", ""},
                                         {"all_gather", "all_gather"}}) {
          Problem problem;
          problem.parts = parts;
          // Bytes are told by axis, too, of which these are two.
          problem.innerRanks = order == StringRef("zigzag") ? 3 : 0;
          problem.order = order;
          problem.mask = mask;
          problem.forward = forward;
          problem.backward = backward;
          problem.queries = problem.keys = 4 * parts;
          SCOPED_TRACE(problem.describe());
          auto traffic = planOf(*lower(*context, problem));
          EXPECT_NE(traffic.front().totalBytes() + traffic.back().totalBytes(),
                    0);
        }
}

TEST(PlanFormulaTest, FullMasksHaveAClosedForm) {
  auto context = makeContext();
  for (const char *order : {"contiguous", "zigzag", "striped"})
    for (int64_t parts : {1, 2, 4, 8}) {
      Problem problem;
      problem.order = order;
      problem.parts = parts;
      problem.queries = problem.keys = 16 * parts;
      problem.keyHeads = 2;
      problem.dim = problem.valueDim = 8;
      problem.element = "bf16";
      for (const Traffic &traffic : planOf(*lower(*context, problem)))
        EXPECT_EQ(traffic.totalBytes(), (parts - 1) * 2 * 16 * 2 * 8 * 2);
    }
}

TEST(PlanFormulaTest, ReturnsOfFullMasksHaveAClosedForm) {
  // The owner's own part stays with it, so what follows takes P - 1 hops.
  auto context = makeContext();
  for (const char *order : {"contiguous", "zigzag", "striped"})
    for (bool drop : {false, true})
      for (int64_t parts : {1, 2, 3, 4, 8}) {
        Problem problem;
        problem.order = order;
        problem.parts = parts;
        problem.drop = drop;
        problem.forward = "ring_q";
        int64_t n = 16, hq = 6, hkv = 3, d = 8, e = 2, gradient = 4;
        problem.queries = problem.keys = n * parts;
        problem.heads = hq;
        problem.keyHeads = hkv;
        problem.dim = problem.valueDim = d;
        problem.element = "bf16";
        for (const char *backward : returning) {
          problem.backward = backward;
          SCOPED_TRACE(problem.describe());
          int64_t forward = n * hq * (d * e + 4 * d + 8);
          int64_t byKeys = 2 * n * hkv * d * (e + gradient);
          int64_t byQuery = n * hq * (2 * d * e + 8 + d * gradient);
          int64_t hop = problem.backward.empty() ? forward
                        : problem.movesQueries() ? byQuery
                                                 : byKeys;
          Proof proof;
          ProofOptions options;
          options.allowEmpty = !drop;
          ASSERT_FALSE(proveModule(*lower(*context, problem), options, &proof));
          for (const Traffic &traffic : proof.traffic) {
            EXPECT_EQ(traffic.totalBytes(), (parts - 1) * hop);
            EXPECT_EQ(traffic.messages, 2 * (parts - 1));
          }
        }
      }
}

TEST(PlanFormulaTest, MemoryOfReturnsDoesNotGrowWithTheRanks) {
  auto context = makeContext();
  for (const char *backward : returning) {
    std::optional<int64_t> peak;
    for (int64_t parts : {4, 8, 16}) {
      Problem problem;
      problem.forward = "ring_q";
      problem.backward = backward;
      problem.parts = parts;
      problem.queries = problem.keys = 16 * parts;
      for (const Traffic &traffic : planOf(*lower(*context, problem)))
        EXPECT_EQ(traffic.peakBytes, peak.value_or(traffic.peakBytes)) << parts;
      peak = planOf(*lower(*context, problem)).front().peakBytes;
    }
  }
}

TEST(PlanFormulaTest, ACausalZigzagRingSendsAQuarterLess) {
  // Second chunks go down only: of the P (P - 1) segments that travel as second
  // chunks, half are not needed where the ring goes down.
  auto context = makeContext();
  for (int64_t parts : {2, 4, 8}) {
    Problem problem;
    problem.order = "zigzag";
    problem.mask = "causal";
    problem.parts = parts;
    problem.queries = problem.keys = 16 * parts;
    int64_t total = 0;
    for (const Traffic &traffic : planOf(*lower(*context, problem)))
      total += traffic.totalBytes();
    int64_t full = parts * (parts - 1) * 2 * 16 * problem.dim * 4;
    EXPECT_EQ(total, full * 3 / 4) << parts;
  }
}

TEST(PlanFormulaTest, PeakBytesAreThoseOfThePlacesOnBuffers) {
  // The rank's own q, k, v, o and lse, l, the f32 state of o where o is of
  // another type, and at most two slices of k and v with room for any shard. A
  // rank that is alone has no state in memory.
  auto context = makeContext();
  for (const char *element : {"f64", "f32", "bf16", "f16"})
    for (const char *order : {"contiguous", "zigzag", "striped 3"})
      for (int64_t parts : {1, 2, 3, 8})
        for (int64_t keys : {24, 37, 5, 0}) {
          Problem problem;
          problem.element = element;
          problem.order = order;
          problem.mask = "causal";
          problem.parts = parts;
          problem.keys = keys;
          problem.queries = 2 * keys + 1;
          problem.keyHeads = 2;
          problem.heads = 4;
          problem.valueDim = 3;
          SCOPED_TRACE(problem.describe());
          auto module = lower(*context, problem);
          Layout layout{order[0] == 'c'   ? Order::Contiguous
                        : order[0] == 'z' ? Order::Zigzag
                                          : Order::Striped,
                        order[0] == 's' ? 3 : 1, parts};
          bool isShort = element[0] == 'b' || element[1] == '1';
          int64_t bytes = isShort ? 2 : element[1] == '6' ? 8 : 4;
          int64_t state = std::max<int64_t>(bytes, 4);
          int64_t room = 0;
          for (int64_t rank = 0; rank < parts; ++rank)
            room = std::max(room, layout.count(rank, keys));
          int64_t key = problem.keyHeads * (problem.dim + 3) * bytes;
          auto traffic = planOf(*module);
          for (int64_t rank = 0; rank < parts; ++rank) {
            int64_t q = layout.count(rank, problem.queries) * problem.heads;
            int64_t wanted = q * (problem.dim + 3) * bytes + q * state +
                             layout.count(rank, keys) * key +
                             std::min<int64_t>(parts - 1, 2) * room * key;
            if (parts > 1)
              wanted += q * state;
            if (parts > 1 && isShort)
              wanted += q * 3 * state;
            EXPECT_EQ(traffic[rank].peakBytes, wanted) << "rank " << rank;
          }
        }
}

TEST(PlanFormulaTest, PeakBytesOfQueriesThatTravel) {
  // The rank's own q, k, v, o and lse, l, the f32 state of o where o is of
  // another type; two slices of q, the states of two, and two that come. A rank
  // that is alone has no state in memory.
  auto context = makeContext();
  for (const char *element : {"f64", "f32", "bf16"})
    for (const char *order : {"contiguous", "zigzag"})
      for (int64_t parts : {1, 2, 3, 8}) {
        Problem problem;
        problem.forward = "ring_q";
        problem.element = element;
        problem.order = order;
        problem.mask = "causal";
        problem.parts = parts;
        problem.queries = 17;
        problem.keys = 37;
        problem.valueDim = 3;
        SCOPED_TRACE(problem.describe());
        bool isShort = problem.element == "bf16";
        int64_t bytes = isShort ? 2 : problem.element == "f64" ? 8 : 4;
        int64_t state = std::max<int64_t>(bytes, 4);
        Layout layout{order[0] == 'c' ? Order::Contiguous : Order::Zigzag, 1,
                      parts};
        int64_t room = 0;
        for (int64_t rank = 0; rank < parts; ++rank)
          room = std::max(room, layout.count(rank, problem.queries));
        room *= problem.heads;
        int64_t slice = problem.dim * bytes, stateOfRow = (3 + 2) * state;
        auto traffic = planOf(*lower(*context, problem));
        for (int64_t rank = 0; rank < parts; ++rank) {
          int64_t q = layout.count(rank, problem.queries) * problem.heads;
          int64_t wanted = q * (slice + 3 * bytes) + q * state +
                           layout.count(rank, problem.keys) * problem.keyHeads *
                               (problem.dim + 3) * bytes;
          if (parts > 1)
            wanted += q * state + room * (2 * slice + 4 * stateOfRow);
          if (parts > 1 && isShort)
            wanted += q * 3 * state;
          EXPECT_EQ(traffic[rank].peakBytes, wanted) << "rank " << rank;
        }
      }
}

TEST(PlanFormulaTest, PeakBytesCountWhatIsHeld) {
  // Full mask, even shards, overlap: the rank's own q, k, v, the state, and two
  // received slices of k and v.
  auto context = makeContext();
  Problem problem;
  problem.parts = 4;
  problem.queries = problem.keys = 4 * 16;
  int64_t q = 16 * problem.heads * problem.dim * 4;
  int64_t k = 16 * problem.keyHeads * problem.dim * 4;
  int64_t o = 16 * problem.heads * problem.valueDim * 4;
  int64_t rows = 16 * problem.heads * 4;
  for (const Traffic &traffic : planOf(*lower(*context, problem)))
    EXPECT_EQ(traffic.peakBytes, q + 2 * k + o + 2 * rows + 2 * 2 * k);
}
