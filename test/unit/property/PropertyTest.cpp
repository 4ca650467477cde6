//===- PropertyTest.cpp - random problems against the oracle --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// BURST_SEED and BURST_COUNT set the seed and the number of problems: problem n
// alone is BURST_SEED=seed+n BURST_COUNT=1. A problem that fails is left in
// files that burst-run takes.
//
//===----------------------------------------------------------------------===//
#include "test/unit/property/Trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

/// What the problems were like: a test of nothing would pass, too.
struct Statistics {
  int64_t poisoned = 0, dropped = 0, computed = 0, exact = 0;
  int64_t rows = 0, rowsWithoutKeys = 0, partialMasks = 0;
  int64_t bytes = 0, allBytes = 0, ofQueries = 0;

  void print() const {
    std::printf("pairs of segments: %jd computed, %jd dropped; bytes: %jd of "
                "%jd; rows: %jd, without keys %jd; masks that keep a part: "
                "%jd; plans known to be minimal: %jd; poisoned elements: %jd; "
                "problems in which queries travel: %jd\n",
                intmax_t(computed), intmax_t(dropped), intmax_t(bytes),
                intmax_t(allBytes), intmax_t(rows), intmax_t(rowsWithoutKeys),
                intmax_t(partialMasks), intmax_t(exact), intmax_t(poisoned),
                intmax_t(ofQueries));
  }
};

/// The bound on what rounding the result to its type costs, plus 1e-12 of what
/// was summed up: the interpreter computes in fp64, whatever the type.
double tightBound(Type element, double expected, double scale) {
  double roundoff = 0, least = 0;
  if (element.isF32())
    roundoff = 0x1p-24, least = 0x1p-150;
  else if (element.isBF16())
    roundoff = 0x1p-8, least = 0x1p-134;
  else if (element.isF16())
    roundoff = 0x1p-11, least = 0x1p-25;
  return roundoff * std::abs(expected) + least + 1e-12 * std::max(1.0, scale);
}

/// One problem, on its ranks and on one.
class Check {
public:
  Check(MLIRContext &context, const RandomProblem &problem,
        Statistics &statistics)
      : problem(problem), statistics(statistics),
        many(context, problem, problem.ranks), one(context, problem, 1) {}

  void run();

private:
  void compareWithOracle(const Trial::Attention &attention,
                         const Trial::Attention &alone);
  void compareTightly(const oracle::Result &expected,
                      const Trial::Attention &attention);
  void compareTraffic();
  void compareWithLeast();
  int64_t movedHeads(bool isOfKeys, int64_t positions);
  void takeExchanged(std::map<int, int64_t> &sent);
  int64_t travelNested(const std::vector<bool> &kept, int64_t outerStep,
                       int64_t innerStep, bool movesQueries);
  int64_t leastTravel(const Trial::Attention &attention, StringRef name);
  bool needs(const std::vector<bool> &kept, int64_t rank,
             const Segment &segment, bool movesQueries);
  int64_t travel(const std::vector<bool> &kept, int64_t step, int64_t farthest,
                 bool movesQueries);
  int64_t gathered(const std::vector<bool> &kept, bool movesQueries);
  Layout layout();

  const RandomProblem &problem;
  Statistics &statistics;
  Trial many, one;
};

} // namespace

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Results in the order of the rows, as if the oracle had given them.
static oracle::Result asExpected(oracle::Result expected,
                                 const Trial::Attention &found) {
  const oracle::Sizes &sizes = expected.sizes;
  for (size_t r = 0; r < expected.rows.size(); ++r) {
    const oracle::Row &row = expected.rows[r];
    if (found.out)
      std::copy_n(found.out->floats.begin() + oracle::outOffset(sizes, row),
                  sizes.valueDim, expected.out.begin() + r * sizes.valueDim);
    if (found.lse)
      expected.lse[r] = found.lse->floats[oracle::lseOffset(sizes, row)];
    if (found.maxScores)
      expected.maxScores[r] =
          found.maxScores->floats[oracle::lseOffset(sizes, row)];
  }
  return expected;
}

static oracle::Verdict compare(const oracle::Result &expected,
                               const Trial::Attention &found) {
  const oracle::Tolerance &tolerance = toleranceOf(found.element);
  oracle::Verdict verdict;
  // Where out is not returned there is nothing to compare it with.
  std::vector<double> nothing(found.out ? 0 : expected.sizes.outElements());
  std::span<const double> lse, maxScores;
  if (found.lse)
    lse = found.lse->floats;
  if (found.maxScores)
    maxScores = found.maxScores->floats;
  verdict = oracle::compare(expected, found.out ? found.out->floats : nothing,
                            lse, tolerance, maxScores);
  if (!found.out)
    verdict.out = {};
  return verdict;
}

void Check::compareTightly(const oracle::Result &expected,
                           const Trial::Attention &attention) {
  const oracle::Sizes &sizes = expected.sizes;
  auto check = [&](const char *name, const oracle::Row &row, double found,
                   double wanted, double bound) {
    bool isClose = found == wanted || std::abs(found - wanted) <= bound;
    EXPECT_TRUE(isClose) << name << " of row (" << row.b << ", " << row.h
                         << ", " << row.i << ") is " << found << ", expected "
                         << wanted << " within " << bound;
    return isClose;
  };
  for (size_t r = 0; r < expected.rows.size(); ++r) {
    const oracle::Row &row = expected.rows[r];
    // Scores of hundreds are not known to 1e-12.
    double amplification = std::max(1.0, expected.amplification[r] / 64);
    if (attention.lse &&
        !check("lse", row, attention.lse->floats[oracle::lseOffset(sizes, row)],
               expected.lse[r],
               tightBound(attention.lse->element, expected.lse[r],
                          std::abs(expected.lse[r]))))
      return;
    if (attention.maxScores &&
        !check("max", row,
               attention.maxScores->floats[oracle::lseOffset(sizes, row)],
               expected.maxScores[r],
               tightBound(attention.maxScores->element, expected.maxScores[r],
                          amplification)))
      return;
    for (int64_t d = 0; attention.out && d < sizes.valueDim; ++d) {
      size_t at = r * sizes.valueDim + d;
      if (!check("out", row,
                 attention.out->floats[oracle::outOffset(sizes, row) + d],
                 expected.out[at],
                 tightBound(attention.out->element, expected.out[at],
                            amplification * expected.magnitude[at])))
        return;
    }
  }
}

void Check::compareWithOracle(const Trial::Attention &attention,
                              const Trial::Attention &alone) {
  oracle::Result expected = oracle::evaluate(
      attention.problem, oracle::allRows(attention.problem.sizes),
      {.threads = 1});
  oracle::Verdict verdict = compare(expected, attention);
  EXPECT_TRUE(verdict.pass()) << verdict.text();
  compareTightly(expected, attention);
  verdict = compare(asExpected(expected, alone), attention);
  EXPECT_TRUE(verdict.pass()) << "against one rank: " << verdict.text();
  statistics.rows += expected.rows.size();
  statistics.rowsWithoutKeys += llvm::count(expected.lse, -HUGE_VAL);
}

//===----------------------------------------------------------------------===//
// Traffic
//===----------------------------------------------------------------------===//

void Check::compareTraffic() {
  expectPlanned(many);
  // A double buffer for each ring, or direction.
  int64_t most = many.hasSeveralRings() ? 4 : 2;
  for (size_t rank = 0; rank < many.traffic.size(); ++rank)
    EXPECT_LE(many.traffic[rank].peakSlices, most) << "rank " << rank;
}

Layout Check::layout() {
  return many.attentions.front()
      .op.getSequence()
      ->getLayout(problem.ranks * problem.members)
      .ofGroups(problem.members);
}

/// Whether a rank has any pair with a segment of what comes to it.
bool Check::needs(const std::vector<bool> &kept, int64_t rank,
                  const Segment &segment, bool movesQueries) {
  const oracle::Sizes &sizes = problem.sizes;
  int64_t staying = movesQueries ? sizes.keys : sizes.queries;
  for (int64_t y : layout().positions(rank, staying))
    for (int64_t x = 0; x < segment.count; ++x) {
      int64_t p = segment.position(x);
      if (kept[movesQueries ? p * sizes.keys + y : y * sizes.keys + p])
        return true;
    }
  return false;
}

/// Positions times the ranks that need them, but for their owners.
int64_t Check::gathered(const std::vector<bool> &kept, bool movesQueries) {
  const oracle::Sizes &sizes = problem.sizes;
  int64_t moving = movesQueries ? sizes.queries : sizes.keys;
  int64_t parts = problem.ranks, sum = 0;
  for (int64_t owner = 0; owner < parts; ++owner)
    for (const Segment &segment : layout().segments(owner, moving))
      for (int64_t rank = 0; rank < parts; ++rank)
        if (rank != owner && needs(kept, rank, segment, movesQueries))
          sum += segment.count;
  return sum;
}

/// Positions times hops, where every segment goes by `step` until the last rank
/// that needs it has it.
int64_t Check::travel(const std::vector<bool> &kept, int64_t step,
                      int64_t farthest, bool movesQueries) {
  const oracle::Sizes &sizes = problem.sizes;
  int64_t parts = problem.ranks, sum = 0;
  int64_t moving = movesQueries ? sizes.queries : sizes.keys;
  for (int64_t owner = 0; owner < parts; ++owner)
    for (const Segment &segment : layout().segments(owner, moving)) {
      int64_t reach = 0;
      for (int64_t hop = 1; hop <= farthest; ++hop)
        if (needs(kept, (owner + hop * step) % parts, segment, movesQueries))
          reach = hop;
      sum += reach * segment.count;
    }
  return sum;
}

/// The same of a double ring: to the last inner ring that needs a segment, and
/// in each of these to the last rank.
int64_t Check::travelNested(const std::vector<bool> &kept, int64_t outerStep,
                            int64_t innerStep, bool movesQueries) {
  const oracle::Sizes &sizes = problem.sizes;
  int64_t inner = problem.innerRanks, outer = problem.ranks / inner, sum = 0;
  int64_t moving = movesQueries ? sizes.queries : sizes.keys;
  for (int64_t owner = 0; owner < problem.ranks; ++owner)
    for (const Segment &segment : layout().segments(owner, moving)) {
      int64_t turns = 0, hops = 0;
      for (int64_t turn = 0; turn < outer; ++turn) {
        int64_t node = (owner / inner + turn * outerStep) % outer, reach = -1;
        for (int64_t hop = 0; hop < inner; ++hop) {
          int64_t place = (owner % inner + hop * innerStep) % inner;
          if (needs(kept, node * inner + place, segment, movesQueries))
            reach = hop;
        }
        if (reach >= 0)
          turns = turn;
        hops += std::max<int64_t>(reach, 0);
      }
      sum += (turns + hops) * segment.count;
    }
  return sum;
}

/// The least positions times hops in which a strategy can do it, by brute
/// force.
int64_t Check::leastTravel(const Trial::Attention &attention, StringRef name) {
  bool movesQueries = name.ends_with("_q");

  const oracle::Sizes &sizes = problem.sizes;
  const auto &masks = attention.problem.masks;
  std::vector<bool> kept(sizes.queries * sizes.keys);
  for (int64_t i = 0; i < sizes.queries; ++i)
    for (int64_t j = 0; j < sizes.keys; ++j)
      for (int64_t b = 0; b < sizes.batch; ++b)
        for (int64_t h = 0; h < sizes.queryHeads; ++h)
          kept[i * sizes.keys + j] =
              kept[i * sizes.keys + j] ||
              llvm::all_of(masks, [&](const oracle::Mask &mask) {
                return mask({b, h, i, j});
              });
  int64_t count = llvm::count(kept, true);
  statistics.partialMasks += count != 0 && count != int64_t(kept.size());
  if (name.contains("gather") || name.starts_with("direct"))
    return gathered(kept, movesQueries);
  if (name.starts_with("double")) {
    int64_t inner = problem.innerRanks, outer = problem.ranks / inner;
    int64_t least = INT64_MAX;
    for (int64_t outerStep : {int64_t(1), outer - 1})
      for (int64_t innerStep : {int64_t(1), inner - 1})
        least = std::min(
            least, travelNested(kept, outerStep, innerStep, movesQueries));
    return least;
  }
  int64_t back = problem.ranks - 1;
  if (name.starts_with("bi_"))
    return travel(kept, 1, back / 2, movesQueries) +
           travel(kept, back, problem.ranks / 2, movesQueries);
  return std::min(travel(kept, 1, back, movesQueries),
                  travel(kept, back, back, movesQueries));
}

/// Heads times positions that an all-to-all sends: of the positions of each
/// rank, what heads the others have in between.
int64_t Check::movedHeads(bool isOfKeys, int64_t positions) {
  Layout whole = many.attentions.front().op.getSequence()->getLayout(
      problem.ranks * problem.members);
  int64_t moved = 0;
  for (int64_t owner = 0; owner < whole.parts; ++owner)
    for (int64_t place = 0; place < problem.members; ++place)
      if (place != owner % problem.members)
        moved += whole.count(owner, positions) *
                 (isOfKeys ? problem.keyHeadsOf(place)
                           : problem.queryHeadsOf(place));
  return problem.sizes.batch * problem.headParts * moved;
}

/// Takes what all-to-alls send out of what was sent: of each tensor that they
/// exchange all but what stays where it is, whatever the mask.
void Check::takeExchanged(std::map<int, int64_t> &sent) {
  if (problem.members == 1)
    return;
  const oracle::Sizes &s = problem.sizes;
  Type element = many.attentions.front().element;
  int64_t width = elementBytes(element), state = element.isF64() ? 8 : 4;
  // Of a key head that ranks share, each has a copy.
  int64_t keys = movedHeads(/*isOfKeys=*/true, s.keys);
  int64_t queries = movedHeads(/*isOfKeys=*/false, s.queries);
  const std::pair<int, int64_t> exchanged[] = {
      {0, queries * s.queryDim * width},
      {1, keys * s.queryDim * width},
      {2, keys * s.valueDim * width},
      {madeFor(0, Made::Out), queries * s.valueDim * width},
      {madeFor(0, Made::Lse), queries * state},
      {madeFor(0, Made::MaxScores), queries * state}};
  for (auto [number, once] : exchanged) {
    if (number >= 0) {
      sent[number] -= once;
      continue;
    }
    // Those that are returned.
    EXPECT_TRUE(once == 0 ? sent[number] == 0 : sent[number] % once == 0);
    EXPECT_LE(sent[number],
              once * static_cast<int64_t>(many.attentions.size()));
    sent.erase(number);
  }
}

/// What travels, counted without the compiler: never less than needed, never
/// more than everything, and exactly that where bounds are exact.
void Check::compareWithLeast() {
  const oracle::Sizes &sizes = problem.sizes;
  // Of keys, and of queries: positions times hops.
  int64_t least[2] = {}, all[2] = {};
  for (const Trial::Attention &attention : many.attentions) {
    StrategyAttr strategy = AttentionOp(attention.op).getStrategyAttr();
    if (!strategy)
      return; // What was chosen is not known here.
    StringRef name = strategy.getParts().back().name;
    bool movesQueries = name.ends_with("_q");
    int64_t most =
        (movesQueries ? sizes.queries : sizes.keys) * (problem.ranks - 1);
    // One keeps heads that there are, of those that ranks have room for.
    bool hasMask = !attention.problem.masks.empty() || !problem.areHeadsEven();
    least[movesQueries] +=
        hasMask && problem.drop ? leastTravel(attention, name) : most;
    all[movesQueries] += most;
  }
  std::map<int, int64_t> sent;
  for (const Traffic &traffic : many.traffic)
    for (auto [number, bytes] : traffic.sentBytes)
      sent[number] += bytes;
  takeExchanged(sent);
  Type element = many.attentions.front().element;
  int64_t width = elementBytes(element), state = element.isF64() ? 8 : 4;
  int64_t keys = sizes.batch * problem.keyHeadCopies();
  int64_t queries = sizes.batch * problem.queryHeadCopies();
  struct Moved {
    int number;
    bool withQueries;
    int64_t position; ///< its bytes
  };
  const Moved everything[] = {
      {1, false, keys * sizes.queryDim * width},
      {2, false, keys * sizes.valueDim * width},
      {0, true, queries * sizes.queryDim * width},
      {madeFor(0, Made::O), true, queries * sizes.valueDim * state},
      {madeFor(0, Made::M), true, queries * state},
      {madeFor(0, Made::L), true, queries * state},
  };
  bool isExact = problem.isExact && problem.order[0] != 's';
  for (auto [number, withQueries, position] : everything) {
    int64_t bytes = sent[number], lower = least[withQueries] * position,
            upper = all[withQueries] * position;
    EXPECT_GE(bytes, lower) << number;
    EXPECT_LE(bytes, upper) << number;
    if (isExact)
      EXPECT_EQ(bytes, lower) << number;
    statistics.bytes += bytes;
    statistics.allBytes += upper;
    sent.erase(number);
  }
  EXPECT_TRUE(sent.empty()) << "something else travels";
  statistics.exact += isExact && (least[0] != all[0] || least[1] != all[1]);
  statistics.ofQueries += all[1] != 0;
}

//===----------------------------------------------------------------------===//
// One problem
//===----------------------------------------------------------------------===//

void Check::run() {
  PoisonChecker interpreter;
  Interpreter plain;
  ASSERT_TRUE(many.all(interpreter) && many.findAttentions()) << many.error;
  ASSERT_TRUE(one.all(plain) && one.findAttentions())
      << "on one rank: " << one.error;
  EXPECT_TRUE(interpreter.isSound) << "what was not sent is not NaN";
  for (auto [attention, alone] :
       llvm::zip_equal(many.attentions, one.attentions))
    compareWithOracle(attention, alone);
  compareTraffic();
  compareWithLeast();
  statistics.poisoned += interpreter.poisoned;
  statistics.computed += many.proof.computed;
  statistics.dropped += many.proof.dropped;
}

TEST(PropertyTest, RandomProblems) {
  uint64_t seed = fromEnvironment("BURST_SEED", std::random_device()());
  uint64_t count = fromEnvironment("BURST_COUNT", 500);
  std::printf("BURST_SEED=%ju BURST_COUNT=%ju\n", uintmax_t(seed),
              uintmax_t(count));
  RecordProperty("seed", std::to_string(seed));
  std::unique_ptr<MLIRContext> context = makeContext();
  Statistics statistics;
  for (uint64_t n = 0; n < count; ++n) {
    RandomProblem problem = drawProblem(seed + n);
    Check(*context, problem, statistics).run();
    if (HasFailure())
      FAIL() << leave(problem);
  }
  statistics.print();
  if (count < 100)
    return; // too few to say how often
  EXPECT_GT(statistics.dropped, 0);
  EXPECT_GT(statistics.exact, 0);
  EXPECT_GT(statistics.poisoned, 0);
  EXPECT_GT(statistics.rowsWithoutKeys, 0);
  EXPECT_GT(statistics.ofQueries, 0);
}
