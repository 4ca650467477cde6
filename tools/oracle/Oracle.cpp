//===- Oracle.cpp - Attention in fp64 -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each row is computed as the formulas say: all its scores, their maximum, the
// exponentials, the sums. What is not plain is there for two reasons:
//
// - Accuracy: sums are compensated, so that the oracle's own error does not
//   grow with their length and is far below any bound for fp64.
// - Speed: both products of matrices are one kernel, `weightedSum`, that
//   computes eight sums side by side, one per lane of a vector. Keys and values
//   are packed into panels for it, once per key head: the lanes are eight keys
//   for the first product and eight dims for the second. Several rows take
//   turns at a panel while it is in the cache.
//
// Every machine adds in the same order, and this file is compiled with
// -ffp-contract=off: only the C library's exp, log and tanh can make two
// machines differ.
//
//===----------------------------------------------------------------------===//

#include "tools/oracle/Oracle.h"
#include "tools/oracle/Parallel.h"
#include "tools/oracle/Require.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

using namespace burst::oracle;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace {

/// Eight doubles, computed with side by side: a register of AVX-512, or several
/// smaller ones.
constexpr int64_t laneCount = 8;
using Lanes [[gnu::vector_size(8 * sizeof(double))]] = double;
using LaneBits [[gnu::vector_size(8 * sizeof(double))]] = int64_t;

/// Aligned by name: GCC aligns big vectors to what the base machine has, and
/// the clones of `weightedSum` for bigger machines ask for more.
struct alignas(64) Line {
  Lanes lanes = {};
};

/// The sums that `weightedSum` makes, one per lane.
struct Sums {
  Line total;     ///< sum_t weight_t * x_t
  Line magnitude; ///< sum_t |weight_t * x_t|
};

/// How many terms `weightedSum` takes at a time.
constexpr int64_t termCount = 8;

} // namespace

#if defined(__x86_64__)
#define BURST_ORACLE_CLONES                                                    \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BURST_ORACLE_CLONES
#endif

/// In every lane, the sum over t < count of weights[t] * panel[terms[t]]; the
/// count is a multiple of termCount. Eight products are added up as a tree, the
/// eights by a compensated sum: the error is about 4 u times the magnitude at
/// most.
BURST_ORACLE_CLONES
static void weightedSum(const double *weights, const int64_t *terms,
                        int64_t count, const Line *panel, Sums *sums) {
  const LaneBits noSign = INT64_MAX - LaneBits{};
  Lanes sum = {}, lost = {}, magnitude = {};
  for (int64_t t = 0; t < count; t += termCount) {
    Lanes products[termCount], absolutes[termCount];
    for (int64_t k = 0; k < termCount; ++k) {
      products[k] = weights[t + k] * panel[terms[t + k]].lanes;
      absolutes[k] = (Lanes)((LaneBits)products[k] & noSign);
    }
    for (int64_t step = 1; step < termCount; step *= 2)
      for (int64_t k = 0; k < termCount; k += 2 * step) {
        products[k] += products[k + step];
        absolutes[k] += absolutes[k + step];
      }
    magnitude += absolutes[0];
    // As in CompensatedSum.
    Lanes next = sum + products[0], added = next - sum;
    lost += (sum - (next - added)) + (products[0] - added);
    sum = next;
  }
  sums->total.lanes = sum + lost;
  sums->magnitude.lanes = magnitude;
}

//===----------------------------------------------------------------------===//
// Packed operands
//===----------------------------------------------------------------------===//

namespace {

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// A matrix of terms x lanes, cut into panels of eight lanes. Lanes that fill
/// up the last panel are 0, and so is the term `terms`, which fills up sums.
class Panels {
public:
  Panels() = default;
  template <typename Element>
  Panels(int64_t terms, int64_t lanes, Element element)
      : terms(terms), count(roundUp(lanes, laneCount) / laneCount),
        lines(count * (terms + 1)) {
    for (int64_t lane = 0; lane < lanes; lane += laneCount) {
      Line *panel = &lines[lane / laneCount * (terms + 1)];
      int64_t used = std::min(laneCount, lanes - lane);
      for (int64_t term = 0; term != terms; ++term)
        for (int64_t k = 0; k != used; ++k)
          panel[term].lanes[k] = element(term, lane + k);
    }
  }

  const Line *panel(int64_t i) const { return lines.data() + i * (terms + 1); }

  int64_t terms = 0; ///< Without the one that fills up.
  int64_t count = 0; ///< Of panels.

private:
  std::vector<Line> lines;
};

/// What the rows of one batch and one key head share.
struct KeyHead {
  KeyHead(const Problem &problem, int64_t b, int64_t head);

  double scale;
  Panels keys, values;
  std::vector<int64_t> dims;        ///< The terms of a score: all dims.
  std::vector<double> largestValue; ///< Per key: max_d |value_d|.
};

} // namespace

KeyHead::KeyHead(const Problem &problem, int64_t b, int64_t head)
    : scale(problem.scale.value_or(1 /
                                   std::sqrt(double(problem.sizes.queryDim)))) {
  const Sizes &sizes = problem.sizes;
  auto key = [&](int64_t d, int64_t j) {
    int64_t vector = (b * sizes.keys + j) * sizes.keyHeads + head;
    return problem.key[vector * sizes.queryDim + d];
  };
  auto value = [&](int64_t j, int64_t d) {
    int64_t vector = (b * sizes.keys + j) * sizes.keyHeads + head;
    return problem.value[vector * sizes.valueDim + d];
  };
  keys = Panels(sizes.queryDim, sizes.keys, key);
  values = Panels(sizes.keys, sizes.valueDim, value);
  for (int64_t t = 0; t < roundUp(sizes.queryDim, termCount); ++t)
    dims.push_back(std::min(t, sizes.queryDim));
  for (int64_t j = 0; j != sizes.keys; ++j) {
    double largest = 0;
    for (int64_t d = 0; d != sizes.valueDim; ++d)
      largest = std::max(largest, std::abs(value(j, d)));
    largestValue.push_back(largest);
  }
}

//===----------------------------------------------------------------------===//
// One row
//===----------------------------------------------------------------------===//

namespace {

/// One row on its way to the result.
class RowEvaluation {
public:
  RowEvaluation(const Problem &problem, const KeyHead &head, const Row &row);

  /// The products of query and key, for the keys of one panel.
  void multiplyKeys(int64_t panel);
  /// Makes weights of the products; writes lse and the measures of the row.
  void finishScores(Result &result, int64_t r);
  /// Writes out, for the dims of one panel.
  void multiplyValues(int64_t panel, Result &result, int64_t r) const;
  /// Writes what the ranges of scores add to the bounds of the row.
  void measureRanges(Result &result, int64_t r) const;

private:
  bool keeps(int64_t j) const;
  void addExtra(Result &result, int64_t r, double low) const;

  const Problem &problem;
  const KeyHead &head;
  const Row row;
  std::vector<double> query;        ///< Filled up with zeros.
  std::vector<Sums> products;       ///< Per panel of keys.
  std::vector<uint8_t> panelIsSeen; ///< Per panel: it has a key that is kept.
  std::vector<int64_t> kept;        ///< The keys that are kept.
  std::vector<double> weights;      ///< Per kept key: exp(s - max s).
  std::vector<double> scores;       ///< Per kept key, where there are ranges.
  std::vector<Range> ranges;
  double weightSum = 0;
};

} // namespace

RowEvaluation::RowEvaluation(const Problem &problem, const KeyHead &head,
                             const Row &row)
    : problem(problem), head(head), row(row), query(head.dims.size()),
      products(head.keys.count), panelIsSeen(head.keys.count) {
  const Sizes &sizes = problem.sizes;
  int64_t vector = (row.b * sizes.queries + row.i) * sizes.queryHeads + row.h;
  std::copy_n(problem.query.begin() + vector * sizes.queryDim, sizes.queryDim,
              query.begin());
  for (int64_t j = 0; j != sizes.keys; ++j) {
    if (!keeps(j))
      continue;
    kept.push_back(j);
    panelIsSeen[j / laneCount] = true;
  }
}

bool RowEvaluation::keeps(int64_t j) const {
  Point point = {row.b, row.h, row.i, j};
  for (const Mask &mask : problem.masks)
    if (!mask(point))
      return false;
  return true;
}

void RowEvaluation::multiplyKeys(int64_t panel) {
  if (panelIsSeen[panel])
    weightedSum(query.data(), head.dims.data(), int64_t(head.dims.size()),
                head.keys.panel(panel), &products[panel]);
}

/// What of a range is wider than a margin around the score, which other parts
/// of the bound cover.
static Range widerThan(Range range, double s, double margin) {
  if (s - range.lo <= margin)
    range.lo = s;
  if (range.hi - s <= margin)
    range.hi = s;
  return range;
}

void RowEvaluation::finishScores(Result &result, int64_t r) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double scale = head.scale;
  double largest = -infinity, amplitude = 0, underflowScale = 0;
  int64_t count = 0; // Of the keys that stay.
  bool hasInfinity = false;
  for (int64_t j : kept) {
    const Sums &sums = products[j / laneCount];
    double s = scale * sums.total.lanes[j % laneCount];
    double a = std::abs(scale) * sums.magnitude.lanes[j % laneCount];
    const double product = s, error = problem.unit * a;
    for (const Score &score : problem.scores) {
      s = score(s, {row.b, row.h, row.i, j});
      // From an infinity, a later score can only make something exact.
      if (std::isfinite(s))
        a = std::max(a, std::abs(s));
    }
    if (problem.range) {
      Range range =
          widerThan(problem.range(product, error, {row.b, row.h, row.i, j}), s,
                    problem.unit * (1 + a));
      if (s == -infinity && !(range.hi > s))
        continue;
      scores.push_back(s);
      ranges.push_back(range);
    } else if (s == -infinity) {
      continue;
    }
    kept[count++] = j;
    weights.push_back(s);
    // std::max would drop a NaN, and the row has to show it.
    largest = s > largest || std::isnan(s) ? s : largest;
    hasInfinity |= s == infinity;
    amplitude = std::max(amplitude, a);
    underflowScale += 1 + head.largestValue[j];
  }
  kept.resize(count);

  CompensatedSum sum;
  for (double &weight : weights)
    sum.add(weight = std::exp(weight - largest));
  weightSum = sum.get();
  result.lse[r] = count ? largest + std::log(weightSum) : -infinity;
  result.maxScores[r] = hasInfinity ? infinity : largest;
  result.amplification[r] = 1 + amplitude;
  result.underflowScale[r] = underflowScale;

  kept.resize(roundUp(count, termCount), head.values.terms);
  weights.resize(kept.size());
}

/// exp(lo - lse) and exp(hi - lse) of keys, against exp(s - lse).
void RowEvaluation::addExtra(Result &result, int64_t r, double low) const {
  const Sizes &sizes = problem.sizes;
  int64_t head = row.h / (sizes.queryHeads / sizes.keyHeads);
  for (int64_t d = 0; d != sizes.valueDim; ++d) {
    double out = result.out[r * sizes.valueDim + d], sum = 0, farthest = 0;
    for (size_t k = 0; k != scores.size(); ++k) {
      double lse = result.lse[r], p = std::exp(scores[k] - lse);
      double most = std::exp(ranges[k].hi - lse);
      double change = std::max(most - p, p - std::exp(ranges[k].lo - lse));
      int64_t vector = (row.b * sizes.keys + kept[k]) * sizes.keyHeads + head;
      double far = std::abs(problem.value[vector * sizes.valueDim + d] - out);
      if (most > 0)
        farthest = std::max(farthest, far);
      if (change > 0 && far > 0)
        sum += change * far;
    }
    result.outExtra[r * sizes.valueDim + d] =
        low > 0 ? std::min(sum / low, farthest) : farthest;
  }
}

/// log sum_k exp(x_k)
static double logOfSum(std::span<const double> x) {
  double largest = *std::max_element(x.begin(), x.end()), sum = 0;
  if (!std::isfinite(largest))
    return largest;
  for (double term : x)
    sum += std::exp(term - largest);
  return largest + std::log(sum);
}

void RowEvaluation::measureRanges(Result &result, int64_t r) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> low, high;
  bool isWide = false, isNaN = false;
  for (size_t k = 0; k != scores.size(); ++k) {
    const Range &range = ranges[k];
    isWide |= range.hi > range.lo;
    isNaN |= std::isnan(range.lo) || range.lo == infinity;
    low.push_back(range.lo - result.lse[r]);
    high.push_back(range.hi - result.lse[r]);
  }
  // What is not a number whatever is rounded is determined, too.
  if (!isWide || isNaN)
    return;
  double lowest = -infinity, highest = -infinity;
  for (const Range &range : ranges) {
    lowest = std::max(lowest, range.lo);
    highest = std::max(highest, range.hi);
  }
  double largest = result.maxScores[r];
  bool isKnown =
      std::isfinite(lowest) && std::isfinite(highest) && std::isfinite(largest);
  result.maxExtra[r] =
      isKnown ? std::max(highest - largest, largest - lowest) : infinity;
  bool isOpen = !std::isfinite(result.lse[r]);
  for (const Range &range : ranges)
    isOpen |= range.hi == infinity;
  if (isOpen) {
    result.lseExtra[r] = infinity;
    std::fill_n(result.outExtra.begin() + r * problem.sizes.valueDim,
                problem.sizes.valueDim, infinity);
    return;
  }
  double least = logOfSum(low);
  result.lseExtra[r] = std::max(logOfSum(high), -least);
  addExtra(result, r, std::exp(least));
}

void RowEvaluation::multiplyValues(int64_t panel, Result &result,
                                   int64_t r) const {
  Sums sums;
  weightedSum(weights.data(), kept.data(), int64_t(kept.size()),
              head.values.panel(panel), &sums);
  // Without keys there is nothing to divide, and the results stay 0.
  if (kept.empty())
    return;
  int64_t valueDim = problem.sizes.valueDim, first = panel * laneCount;
  for (int64_t d = first; d < std::min(first + laneCount, valueDim); ++d) {
    result.out[r * valueDim + d] = sums.total.lanes[d - first] / weightSum;
    result.magnitude[r * valueDim + d] =
        sums.magnitude.lanes[d - first] / weightSum;
  }
}

//===----------------------------------------------------------------------===//
// All rows
//===----------------------------------------------------------------------===//

/// So many rows share a panel while it is in the cache.
static constexpr size_t rowsPerBlock = 16;

/// Evaluates the rows of one key head whose numbers `block` lists.
static void evaluateBlock(const Problem &problem, const KeyHead &head,
                          std::span<const size_t> block, Result &result) {
  std::vector<RowEvaluation> rows;
  rows.reserve(block.size());
  for (size_t r : block)
    rows.emplace_back(problem, head, result.rows[r]);
  for (int64_t panel = 0; panel != head.keys.count; ++panel)
    for (RowEvaluation &row : rows)
      row.multiplyKeys(panel);
  for (size_t k = 0; k != block.size(); ++k)
    rows[k].finishScores(result, int64_t(block[k]));
  for (int64_t panel = 0; panel != head.values.count; ++panel)
    for (size_t k = 0; k != block.size(); ++k)
      rows[k].multiplyValues(panel, result, int64_t(block[k]));
  for (size_t k = 0; k != block.size(); ++k)
    rows[k].measureRanges(result, int64_t(block[k]));
}

void burst::oracle::inParallel(size_t count, unsigned threads,
                               const std::function<void(size_t)> &task) {
  if (threads == 0)
    threads = std::thread::hardware_concurrency();
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < count;)
      task(i);
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < std::min<size_t>(threads, count); ++t)
    others.emplace_back(work);
  work();
  for (std::thread &other : others)
    other.join();
}

static void check(const Problem &problem, std::span<const Row> rows) {
  const Sizes &s = problem.sizes;
  require(std::min({s.batch, s.queries, s.keys}) >= 0 &&
              std::min({s.queryHeads, s.keyHeads, s.queryDim, s.valueDim}) > 0,
          "a size is too small");
  require(s.queryHeads % s.keyHeads == 0,
          "query heads are no multiple of key heads");
  require(int64_t(problem.query.size()) == s.queryElements(),
          "wrong size of query");
  require(int64_t(problem.key.size()) == s.keyElements(), "wrong size of key");
  require(int64_t(problem.value.size()) == s.valueElements(),
          "wrong size of value");
  for (const Row &row : rows)
    require(std::min({row.b, row.h, row.i}) >= 0 && row.b < s.batch &&
                row.h < s.queryHeads && row.i < s.queries,
            "a row lies outside of the problem");
}

/// The numbers of the rows, by batch and key head.
static std::vector<std::vector<size_t>>
groupByKeyHead(const Sizes &sizes, std::span<const Row> rows) {
  std::vector<std::vector<size_t>> groups(sizes.batch * sizes.keyHeads);
  int64_t group = sizes.queryHeads / sizes.keyHeads;
  for (size_t r = 0; r != rows.size(); ++r)
    groups[rows[r].b * sizes.keyHeads + rows[r].h / group].push_back(r);
  return groups;
}

Result burst::oracle::evaluate(const Problem &problem, std::vector<Row> rows,
                               const Options &options) {
  check(problem, rows);
  const Sizes &sizes = problem.sizes;
  Result result;
  result.sizes = sizes;
  result.rows = std::move(rows);
  size_t count = result.rows.size(), done = 0;
  for (auto *perElement : {&result.out, &result.magnitude, &result.outExtra})
    perElement->resize(count * sizes.valueDim);
  for (auto *perRow :
       {&result.lse, &result.maxScores, &result.amplification,
        &result.underflowScale, &result.lseExtra, &result.maxExtra})
    perRow->resize(count);

  std::mutex progressMutex;
  auto groups = groupByKeyHead(sizes, result.rows);
  for (size_t g = 0; g != groups.size(); ++g) {
    std::span<const size_t> group = groups[g];
    if (group.empty())
      continue;
    KeyHead head(problem, int64_t(g) / sizes.keyHeads,
                 int64_t(g) % sizes.keyHeads);
    size_t blocks = (group.size() + rowsPerBlock - 1) / rowsPerBlock;
    inParallel(blocks, options.threads, [&](size_t b) {
      size_t from = b * rowsPerBlock;
      auto block =
          group.subspan(from, std::min(rowsPerBlock, group.size() - from));
      evaluateBlock(problem, head, block, result);
      if (options.progress) {
        std::lock_guard lock(progressMutex);
        done += block.size();
        options.progress(int64_t(done), int64_t(count));
      }
    });
  }
  return result;
}

/// The row at a place in the order of lse.
static Row rowAt(const Sizes &sizes, int64_t place) {
  int64_t head = place / sizes.queries;
  return {head / sizes.queryHeads, head % sizes.queryHeads,
          place % sizes.queries};
}

std::vector<Row> burst::oracle::allRows(const Sizes &sizes) {
  std::vector<Row> rows;
  for (int64_t place = 0; place != sizes.lseElements(); ++place)
    rows.push_back(rowAt(sizes, place));
  return rows;
}

/// Well-mixed bits of a number (SplitMix64).
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::vector<Row> burst::oracle::sampleRows(const Sizes &sizes, int64_t count,
                                           uint64_t seed) {
  int64_t total = sizes.lseElements();
  if (count >= total)
    return allRows(sizes);
  // One row of each of `count` equal parts: no row twice, no part without.
  std::vector<Row> rows;
  for (int64_t k = 0; k < count; ++k) {
    int64_t from = k * total / count, to = (k + 1) * total / count;
    int64_t place = from + int64_t(mix(mix(seed) + k) % uint64_t(to - from));
    if (k == 0)
      place = 0;
    else if (k == count - 1)
      place = total - 1;
    rows.push_back(rowAt(sizes, place));
  }
  return rows;
}
