//===- Gradients.cpp - Gradients of attention in fp64 ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every row of a gradient is computed by itself, from all pairs it is a sum
// over: pairs are computed anew for the gradients by queries, by keys and by
// tables. That is slow and cannot mix anything up.
//
//===----------------------------------------------------------------------===//

#include "tools/oracle/Gradients.h"
#include "tools/oracle/Parallel.h"
#include "tools/oracle/Require.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>

using namespace burst::oracle;

static constexpr double infinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Slopes of functions
//===----------------------------------------------------------------------===//

namespace {

/// Estimates of a slope that differ where the function is not smooth.
struct Estimates {
  double both, left, right; ///< From differences to these sides.
  double error;
};

/// Takes the terms of h^2 and h^4, or of h and h^2, from differences with steps
/// of h, h / 2 and h / 4 (Richardson).
double extrapolate(const double (&differences)[3], double first, double second,
                   double *coarser = nullptr) {
  double a = (first * differences[1] - differences[0]) / (first - 1);
  double b = (first * differences[2] - differences[1]) / (first - 1);
  if (coarser)
    *coarser = b;
  return (second * b - a) / (second - 1);
}

} // namespace

static Estimates estimate(const std::function<double(double)> &function,
                          double at, double step) {
  double here = function(at), both[3], left[3], right[3];
  for (int k = 0; k != 3; ++k, step /= 2) {
    double below = function(at - step), above = function(at + step);
    both[k] = (above - below) / (2 * step);
    left[k] = (here - below) / step;
    right[k] = (above - here) / step;
  }
  Estimates result;
  double coarser;
  result.both = extrapolate(both, 4, 16, &coarser);
  result.left = extrapolate(left, 2, 4);
  result.right = extrapolate(right, 2, 4);
  // The sides agree to h^3 if there is no kink between them. What is rounded
  // is the function, relative to the least step.
  result.error = std::abs(result.both - coarser) +
                 std::abs(result.right - result.left) +
                 8 * 0x1p-53 * (std::abs(here) + std::abs(at)) / step;
  return result;
}

Slope burst::oracle::differentiate(
    const std::function<double(double)> &function, double at) {
  Slope result;
  result.error = infinity;
  double unit = std::max(1.0, std::abs(at));
  for (double step : {0x1p-6, 0x1p-9, 0x1p-12, 0x1p-15, 0x1p-18}) {
    step *= unit;
    Estimates found = estimate(function, at, step);
    if (!(found.error < result.error))
      continue;
    result.slope = found.both;
    result.error = found.error;
    result.curvature =
        std::abs(function(at + step) - 2 * function(at) + function(at - step)) /
        (step * step);
    if (result.error < 1e-10 * (1 + std::abs(result.slope)))
      break;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

namespace {

/// A number and what its error is measured by, as in Gradient.
struct Measured {
  double value = 0, state = 0, element = 0, underflow = 0, own = 0;

  /// What may be anything is no part of a sum, but for its error.
  void settle() {
    if (std::isnan(own))
      own = std::isnan(value) ? 0 : infinity;
    if (own == infinity)
      *this = {0, 0, 0, 0, infinity};
  }
};

/// A product of errors: what is exactly 0 stays 0, and what may be anything so.
double times(double a, double b) {
  if (a == 0 || b == 0)
    return 0;
  return a == infinity || b == infinity ? infinity : a * b;
}

double plus(double a, double b) {
  return a == infinity || b == infinity ? infinity : a + b;
}

/// Of one query and one key that it sees.
struct Pair {
  Measured p, u;
  struct Element {
    int64_t table, index;
    Measured gradient;
  };
  std::vector<Element> elements;
};

/// What the pairs of a row have in common.
struct RowTerms {
  double lse = 0;
  double relative = 0; ///< What lse adds to A.
  double delta = 0;
  double deltaState = 0, deltaElement = 0; ///< What delta adds to W / p.
  /// What ranges of scores add to lse and to delta.
  double extra = 0, deltaExtra = 0;
};

/// A row of a gradient on its way: the sum of measured numbers times vectors.
class VectorSum {
public:
  explicit VectorSum(int64_t dims)
      : sums(dims), state(dims), element(dims), own(dims) {}

  void add(const Measured &factor, const double *vector, double scale) {
    double largest = 0;
    for (size_t d = 0; d != sums.size(); ++d) {
      double x = scale * vector[d], size = std::abs(x);
      sums[d].add(factor.value * x);
      state[d] += factor.state * size;
      element[d] += factor.element * size;
      own[d] = plus(own[d], times(factor.own, size));
      largest = std::max(largest, size);
    }
    underflow += 1 + factor.underflow * largest;
  }

  void store(Gradient &gradient, size_t row) const {
    for (size_t d = 0; d != sums.size(); ++d) {
      size_t at = row * sums.size() + d;
      gradient.value[at] = sums[d].get();
      gradient.stateScale[at] = state[d];
      gradient.elementScale[at] = element[d];
      gradient.underflowScale[at] = underflow;
      gradient.ownError[at] = own[d];
    }
  }

private:
  std::vector<CompensatedSum> sums;
  std::vector<double> state, element, own;
  double underflow = 0;
};

/// A sum of products, and of their absolute values.
struct Dot {
  double value = 0, magnitude = 0;

  Dot(const double *a, const double *b, int64_t count) {
    CompensatedSum sum;
    for (int64_t d = 0; d != count; ++d) {
      sum.add(a[d] * b[d]);
      magnitude += std::abs(a[d] * b[d]);
    }
    value = sum.get();
  }
};

class Evaluation {
public:
  Evaluation(const BackwardProblem &problem, const Options &options);

  void queryRow(Gradient &query, size_t row) const;
  void keyRow(Gradient &key, Gradient &value, size_t row) const;
  void tables(std::vector<Gradient> &tables) const;

private:
  void prepareRows(const Options &options);
  void prepareRow(const Row &row, std::span<const double> out, RowTerms terms);
  void addForward(RowTerms &terms, const Result &forward, size_t r) const;
  double extraOf(const Point &point, double product, double s, double a,
                 double magnitude, const RowTerms &row) const;
  bool keeps(const Point &point) const;
  /// False where the pair gives nothing.
  bool evaluate(const Point &point, Pair &pair,
                bool wantsElements = false) const;

  const double *query(int64_t b, int64_t i, int64_t h) const {
    return problem.forward.query.data() +
           ((b * sizes.queries + i) * sizes.queryHeads + h) * sizes.queryDim;
  }
  const double *outGrad(int64_t b, int64_t i, int64_t h) const {
    return problem.outGrad.data() + outOffset(sizes, {b, h, i});
  }
  /// `head` is a key head.
  const double *key(int64_t b, int64_t j, int64_t head) const {
    return problem.forward.key.data() +
           ((b * sizes.keys + j) * sizes.keyHeads + head) * sizes.queryDim;
  }
  const double *value(int64_t b, int64_t j, int64_t head) const {
    return problem.forward.value.data() +
           ((b * sizes.keys + j) * sizes.keyHeads + head) * sizes.valueDim;
  }

  const BackwardProblem &problem;
  const Sizes &sizes;
  double scale;
  int64_t group;
  std::vector<RowTerms> rows; ///< In the order of lse.
};

} // namespace

Evaluation::Evaluation(const BackwardProblem &problem, const Options &options)
    : problem(problem), sizes(problem.forward.sizes),
      scale(problem.forward.scale.value_or(
          1 / std::sqrt(double(problem.forward.sizes.queryDim)))),
      group(sizes.queryHeads / sizes.keyHeads), rows(sizes.lseElements()) {
  prepareRows(options);
}

void Evaluation::prepareRows(const Options &options) {
  std::vector<Row> all = allRows(sizes);
  bool hasOut = !problem.out.empty(), hasLse = !problem.lse.empty();
  Result forward;
  if (!hasOut || !hasLse)
    forward = burst::oracle::evaluate(problem.forward, all, {options.threads});
  for (size_t r = 0; r != all.size(); ++r) {
    const Row &row = all[r];
    RowTerms terms;
    terms.lse = hasLse ? problem.lse[lseOffset(sizes, row)] : forward.lse[r];
    terms.relative =
        std::abs(terms.lse) + (hasLse ? 0 : forward.amplification[r]);
    terms.extra = hasLse ? 0 : forward.lseExtra[r];
    if (!hasOut)
      addForward(terms, forward, r);
    prepareRow(
        row,
        hasOut
            ? problem.out.subspan(outOffset(sizes, row))
            : std::span<const double>(forward.out).subspan(r * sizes.valueDim),
        terms);
  }
}

/// What the error of an out that is not given adds.
void Evaluation::addForward(RowTerms &terms, const Result &forward,
                            size_t r) const {
  const Row &row = forward.rows[r];
  const double *gradient = outGrad(row.b, row.i, row.h);
  for (int64_t d = 0; d != sizes.valueDim; ++d) {
    size_t at = r * sizes.valueDim + d;
    double size = std::abs(gradient[d]);
    terms.deltaElement += times(forward.magnitude[at], size);
    terms.deltaExtra += times(forward.outExtra[at], size);
  }
  terms.deltaState = forward.amplification[r] * terms.deltaElement;
}

void Evaluation::prepareRow(const Row &row, std::span<const double> out,
                            RowTerms terms) {
  RowTerms &result = rows[lseOffset(sizes, row)];
  if (terms.lse == -infinity) {
    result.lse = terms.lse;
    return; // Nothing is computed with its gradients.
  }
  const double *gradient = outGrad(row.b, row.i, row.h);
  Dot product(out.data(), gradient, sizes.valueDim);
  terms.delta = product.value;
  terms.deltaState += product.magnitude;
  if (!problem.lseGrad.empty()) {
    double lseGrad = problem.lseGrad[lseOffset(sizes, row)];
    terms.delta -= lseGrad;
    terms.deltaState += std::abs(lseGrad);
  }
  result = terms;
}

bool Evaluation::keeps(const Point &point) const {
  for (const Mask &mask : problem.forward.masks)
    if (!mask(point))
      return false;
  return true;
}

bool Evaluation::evaluate(const Point &point, Pair &pair,
                          bool wantsElements) const {
  const auto &[b, h, i, j] = point;
  const RowTerms &row = rows[lseOffset(sizes, {b, h, i})];
  if (row.lse == -infinity || !keeps(point))
    return false;
  Dot product(query(b, i, h), key(b, j, h / group), sizes.queryDim);
  double s = scale * product.value;
  double a = std::abs(scale) * product.magnitude;
  const double before = s, magnitude = a;

  // The slope of all scores so far, what its error is measured by, and its own
  // error; and the slopes by elements of tables on their way to the end.
  double slope = 1, slopeScale = 0, slopeError = 0;
  pair.elements.clear();
  for (size_t k = 0; k != problem.forward.scores.size(); ++k) {
    Slope next =
        problem.slopes[k](s, problem.forward.unit * a, point, wantsElements);
    double size = std::abs(next.slope);
    double rounding = 1 + size + (1 + a) * next.curvature;
    slopeError = slopeError * size + std::abs(slope) * next.error;
    slopeScale = slopeScale * size + std::abs(slope) * rounding;
    slope *= next.slope;
    for (Pair::Element &element : pair.elements) {
      Measured &m = element.gradient;
      m.own = m.own * size + std::abs(m.value) * next.error;
      m.state = m.state * size + std::abs(m.value) * rounding;
      m.value *= next.slope;
    }
    for (const Slope::Element &element : next.elements) {
      double by = std::abs(element.slope);
      double terms = by < (1 + a) * size ? by / size : 1 + a;
      pair.elements.push_back(
          {element.table,
           element.index,
           {element.slope, terms + by, 0, 0, element.error}});
    }
    s = problem.forward.scores[k](s, point);
    // From an infinity, a later score can only make something exact.
    if (std::isfinite(s))
      a = std::max(a, std::abs(s));
  }
  double extra = extraOf(point, before, s, a, magnitude, row);
  if (s == -infinity && extra == 0)
    return false;

  Dot incoming(outGrad(b, i, h), value(b, j, h / group), sizes.valueDim);
  double p = std::exp(s - row.lse);
  double w = p * (incoming.value - row.delta);
  double relative = 1 + a + row.relative;
  double terms = incoming.magnitude + row.deltaState;
  pair.p = {p, relative * p, p, 1, extra};
  double wState = relative * std::abs(w) + p * terms;
  double wElement = std::abs(w) + p * row.deltaElement;
  double wExtra = plus(times(extra, std::abs(incoming.value - row.delta) +
                                        problem.forward.unit * terms),
                       times(p + extra, row.deltaExtra));
  double size = std::abs(slope);
  pair.u = {
      w * slope, wState * size + std::abs(w) * slopeScale, wElement * size,
      (1 + terms) * size,
      plus(times(wExtra, size + slopeError), times(std::abs(w), slopeError))};
  // Whether a score that does not vary passes NaN on is left to the kernel.
  if (std::isnan(w) && slope == 0)
    pair.u.own = infinity;
  pair.p.settle();
  pair.u.settle();
  // Gradients of tables are in the state type, and so is w there.
  for (Pair::Element &element : pair.elements) {
    Measured &m = element.gradient;
    double by = std::abs(m.value);
    m = {w * m.value, wState * by + std::abs(w) * m.state,
         p * row.deltaElement * by, (1 + terms) * by,
         plus(times(wExtra, by + m.own), times(std::abs(w), m.own))};
    m.settle();
  }
  return true;
}

/// By how much p may be larger than it is for what A does not cover: the range
/// of its score, that of lse, and errors that are no small numbers.
double Evaluation::extraOf(const Point &point, double product, double s,
                           double a, double magnitude,
                           const RowTerms &row) const {
  const Problem &forward = problem.forward;
  double highest = s;
  if (forward.range) {
    Range range = forward.range(product, forward.unit * magnitude, point);
    double apart = std::max(range.hi - s, s - range.lo);
    if (!std::isfinite(s))
      highest = range.hi;
    else if (apart > forward.unit * (1 + a))
      highest = s + apart;
  }
  double exponent = row.extra, usual = forward.unit * (1 + a + row.relative);
  if (usual > 0x1p-4)
    exponent += usual;
  if (exponent == 0 && !(highest > s))
    return 0;
  double p = std::exp(s - row.lse);
  double most = std::exp(highest + exponent - row.lse);
  return most == infinity ? infinity : std::max(most - p, 0.0);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

void Evaluation::queryRow(Gradient &query, size_t row) const {
  const Row &at = query.rows[row];
  VectorSum sum(sizes.queryDim);
  Pair pair;
  for (int64_t j = 0; j != sizes.keys; ++j)
    if (evaluate({at.b, at.h, at.i, j}, pair))
      sum.add(pair.u, key(at.b, j, at.h / group), scale);
  sum.store(query, row);
}

void Evaluation::keyRow(Gradient &key, Gradient &value, size_t row) const {
  const Row &at = key.rows[row];
  VectorSum keySum(sizes.queryDim), valueSum(sizes.valueDim);
  Pair pair;
  for (int64_t h = at.h * group; h != (at.h + 1) * group; ++h)
    for (int64_t i = 0; i != sizes.queries; ++i) {
      if (!evaluate({at.b, h, i, at.i}, pair))
        continue;
      keySum.add(pair.u, query(at.b, i, h), scale);
      valueSum.add(pair.p, outGrad(at.b, i, h), 1);
    }
  keySum.store(key, row);
  valueSum.store(value, row);
}

void Evaluation::tables(std::vector<Gradient> &tables) const {
  // Of each table as many sums of one element.
  std::vector<std::vector<VectorSum>> sums;
  sums.reserve(tables.size());
  for (const Gradient &table : tables)
    sums.emplace_back(table.dims, VectorSum(1));
  const std::vector<double> one = {1};
  Pair pair;
  for (const Row &row : allRows(sizes))
    for (int64_t j = 0; j != sizes.keys; ++j) {
      if (!evaluate({row.b, row.h, row.i, j}, pair, /*wantsElements=*/true))
        continue;
      for (const Pair::Element &element : pair.elements)
        sums[element.table][element.index].add(element.gradient, one.data(), 1);
    }
  for (size_t t = 0; t != tables.size(); ++t)
    for (size_t x = 0; x != sums[t].size(); ++x)
      sums[t][x].store(tables[t], x);
}

std::vector<const Gradient *> Gradients::all() const {
  std::vector<const Gradient *> result = {&query, &key, &value};
  for (const Gradient &table : tables)
    result.push_back(&table);
  return result;
}

Sizes burst::oracle::ofKeys(const Sizes &sizes) {
  Sizes result = sizes;
  result.queries = sizes.keys;
  result.queryHeads = sizes.keyHeads;
  return result;
}

static Gradient makeGradient(int64_t batch, int64_t positions, int64_t heads,
                             int64_t dims, std::vector<Row> rows) {
  Gradient gradient = {batch, positions, heads, dims, std::move(rows),
                       {},    {},        {},    {},   {}};
  for (auto *perElement :
       {&gradient.value, &gradient.stateScale, &gradient.elementScale,
        &gradient.underflowScale, &gradient.ownError})
    perElement->resize(gradient.rows.size() * dims);
  return gradient;
}

static void check(const BackwardProblem &problem,
                  const std::vector<Row> &queryRows,
                  const std::vector<Row> &keyRows) {
  // The forward pass of no rows checks what both have in common.
  std::ignore = evaluate(problem.forward, {});
  const Sizes &s = problem.forward.sizes;
  require(problem.slopes.size() == problem.forward.scores.size(),
          "not one slope for each score");
  require(problem.out.empty() || int64_t(problem.out.size()) == s.outElements(),
          "wrong size of out");
  require(problem.lse.empty() || int64_t(problem.lse.size()) == s.lseElements(),
          "wrong size of lse");
  require(int64_t(problem.outGrad.size()) == s.outElements(),
          "wrong size of outGrad");
  require(problem.lseGrad.empty() ||
              int64_t(problem.lseGrad.size()) == s.lseElements(),
          "wrong size of lseGrad");
  auto inside = [&](const Row &row, int64_t heads, int64_t positions) {
    return std::min({row.b, row.h, row.i}) >= 0 && row.b < s.batch &&
           row.h < heads && row.i < positions;
  };
  for (const Row &row : queryRows)
    require(inside(row, s.queryHeads, s.queries),
            "a row of queries lies outside of the problem");
  for (const Row &row : keyRows)
    require(inside(row, s.keyHeads, s.keys),
            "a row of keys lies outside of the problem");
}

Gradients burst::oracle::evaluate(const BackwardProblem &problem,
                                  std::vector<Row> queryRows,
                                  const std::vector<Row> &keyRows,
                                  const Options &options) {
  check(problem, queryRows, keyRows);
  const Sizes &s = problem.forward.sizes;
  Gradients result = {
      makeGradient(s.batch, s.queries, s.queryHeads, s.queryDim,
                   std::move(queryRows)),
      makeGradient(s.batch, s.keys, s.keyHeads, s.queryDim, keyRows),
      makeGradient(s.batch, s.keys, s.keyHeads, s.valueDim, keyRows),
      {}};
  for (int64_t size : problem.tables)
    result.tables.push_back(makeGradient(1, 1, 1, size, {{0, 0, 0}}));

  Evaluation evaluation(problem, options);
  size_t queries = result.query.rows.size(), done = 0;
  size_t count = queries + keyRows.size();
  std::mutex progressMutex;
  inParallel(count, options.threads, [&](size_t task) {
    if (task < queries)
      evaluation.queryRow(result.query, task);
    else
      evaluation.keyRow(result.key, result.value, task - queries);
    if (options.progress) {
      std::lock_guard lock(progressMutex);
      options.progress(int64_t(++done), int64_t(count));
    }
  });
  if (!result.tables.empty())
    evaluation.tables(result.tables);
  return result;
}
