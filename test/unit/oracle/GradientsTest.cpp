//===- GradientsTest.cpp - Tests of the oracle's gradients ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/oracle/Gradients.h"
#include "test/unit/oracle/Inputs.h"

#include <gtest/gtest.h>

#include <limits>

using namespace burst::oracle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A loss that is linear in out and lse, whose coefficients are their
/// gradients.
struct Backward {
  Inputs in;
  std::vector<Mask> masks;
  std::vector<double> table; ///< Of a score, where there is one.
  std::function<std::vector<Score>(const std::vector<double> &table)> scores =
      [](const std::vector<double> &) { return std::vector<Score>(); };
  std::vector<ScoreSlope> slopes;
  std::vector<double> outGrad, lseGrad, out, lse;

  explicit Backward(const Sizes &sizes, uint64_t seed = 1, double factor = 1)
      : in(sizes, seed, factor),
        outGrad(randomValues(sizes.outElements(), seed + 3)),
        lseGrad(randomValues(sizes.lseElements(), seed + 4)) {}

  Problem forward() const { return in.problem(masks, scores(table)); }

  BackwardProblem problem() const {
    BackwardProblem problem = {forward(), slopes,  out, lse,
                               outGrad,   lseGrad, {}};
    if (!table.empty())
      problem.tables = {int64_t(table.size())};
    return problem;
  }

  Gradients gradients(unsigned threads = 1) const {
    return evaluate(problem(), allRows(in.sizes), allRows(ofKeys(in.sizes)),
                    {.threads = threads});
  }

  double loss() const {
    Result result = evaluate(forward(), allRows(in.sizes), {.threads = 1});
    double sum = 0;
    for (size_t r = 0; r != result.rows.size(); ++r) {
      const Row &row = result.rows[r];
      for (int64_t d = 0; d != in.sizes.valueDim; ++d)
        sum += result.out[r * in.sizes.valueDim + d] *
               outGrad[outOffset(in.sizes, row) + d];
      if (result.lse[r] != -infinity)
        sum += result.lse[r] *
               (lseGrad.empty() ? 0 : lseGrad[lseOffset(in.sizes, row)]);
    }
    return sum;
  }

  /// Rounds out and lse of the forward pass to so many bits, and gives them.
  void giveForward(int bits) {
    Result result = evaluate(forward(), allRows(in.sizes), {.threads = 1});
    out.resize(in.sizes.outElements());
    lse.resize(in.sizes.lseElements());
    for (size_t r = 0; r != result.rows.size(); ++r) {
      const Row &row = result.rows[r];
      for (int64_t d = 0; d != in.sizes.valueDim; ++d)
        out[outOffset(in.sizes, row) + d] =
            roundTo(float(result.out[r * in.sizes.valueDim + d]), bits);
      lse[lseOffset(in.sizes, row)] = float(result.lse[r]);
    }
  }
};

/// The gradient as a whole tensor; all rows must have been evaluated.
std::vector<double> wholeTensor(const Gradient &gradient) {
  std::vector<double> whole(gradient.value.size());
  for (size_t r = 0; r != gradient.rows.size(); ++r) {
    const Row &row = gradient.rows[r];
    int64_t vector =
        (row.b * gradient.positions + row.i) * gradient.heads + row.h;
    std::copy_n(gradient.value.begin() + int64_t(r) * gradient.dims,
                gradient.dims, whole.begin() + vector * gradient.dims);
  }
  return whole;
}

//===----------------------------------------------------------------------===//
// Differences of the loss
//===----------------------------------------------------------------------===//

/// Compares a gradient with the slope of the loss by every element of `tensor`,
/// which is one of `backward`.
void expectSlopes(const char *name, const Backward &backward,
                  std::vector<double> &tensor, const Gradient &gradient) {
  std::vector<double> found = wholeTensor(gradient);
  ASSERT_EQ(found.size(), tensor.size()) << name;
  for (size_t at = 0; at != tensor.size(); ++at) {
    double before = tensor[at];
    Slope wanted = differentiate(
        [&](double x) {
          tensor[at] = x;
          double loss = backward.loss();
          tensor[at] = before;
          return loss;
        },
        before);
    ASSERT_LT(wanted.error, 1e-6) << name << '[' << at << ']';
    ASSERT_NEAR(found[at], wanted.slope, wanted.error + 1e-12)
        << name << '[' << at << ']';
  }
}

void expectSlopes(Backward &backward) {
  Gradients gradients = backward.gradients();
  expectSlopes("query", backward, backward.in.query, gradients.query);
  expectSlopes("key", backward, backward.in.key, gradients.key);
  expectSlopes("value", backward, backward.in.value, gradients.value);
  if (!backward.table.empty())
    expectSlopes("table", backward, backward.table, gradients.tables.front());
}

/// Everything that can differ does.
constexpr Sizes mixedSizes = {2, 4, 5, 4, 2, 3, 2};

TEST(Gradients, Full) {
  for (const Sizes &sizes :
       {mixedSizes, Sizes{1, 5, 3, 2, 2, 1, 4}, Sizes{1, 1, 6, 3, 1, 2, 1}}) {
    Backward backward(sizes);
    expectSlopes(backward);
    backward.lseGrad.clear();
    expectSlopes(backward);
  }
}

TEST(Gradients, Scale) {
  Backward backward(mixedSizes);
  BackwardProblem problem = backward.problem();
  std::vector<Row> rows = allRows(mixedSizes),
                   keys = allRows(ofKeys(mixedSizes));
  problem.forward.scale = 0;
  Gradients none = evaluate(problem, rows, keys);
  for (size_t at = 0; at != none.query.value.size(); ++at) {
    EXPECT_EQ(none.query.value[at], 0);
    EXPECT_EQ(none.query.bound(at, toleranceBF16), 0);
  }
  // Twice the scale is as twice the query, and by that the gradient is double.
  problem.forward.scale = 2 / std::sqrt(3.0);
  Gradients twice = evaluate(problem, rows, keys);
  for (double &x : backward.in.query)
    x *= 2;
  Gradients other = backward.gradients();
  for (size_t at = 0; at != none.query.value.size(); ++at)
    EXPECT_NEAR(twice.query.value[at], 2 * other.query.value[at], 1e-13);
}

TEST(Gradients, Masks) {
  std::vector<int64_t> ids = {0, 1, 1, 2}, keyIds = {0, 0, 1, 1, 5};
  for (const std::vector<Mask> &masks : std::vector<std::vector<Mask>>{
           {causal(mixedSizes)},
           {window(mixedSizes, 1, 0)},
           {prefix(mixedSizes, 3)},
           {documents(mixedSizes, ids, keyIds)},
           {documents(mixedSizes, ids, keyIds), causal(mixedSizes)},
           {[](const Point &p) { return (p.b + p.h + p.i * p.j) % 2 == 0; }}}) {
    Backward backward(mixedSizes);
    backward.masks = masks;
    expectSlopes(backward);
  }
}

TEST(Gradients, RowsWithoutKeys) {
  Backward backward({1, 5, 3, 2, 1, 4, 3});
  backward.masks = {causal(backward.in.sizes)};
  expectSlopes(backward);
  // Nothing is taken from what such rows are given.
  for (int64_t i = 0; i != 2; ++i)
    for (int64_t h = 0; h != 2; ++h) {
      Row row = {0, h, i};
      backward.lseGrad[lseOffset(backward.in.sizes, row)] = nan;
      backward.outGrad[outOffset(backward.in.sizes, row)] = infinity;
    }
  for (bool isGiven : {false, true}) {
    if (isGiven)
      backward.giveForward(24);
    Gradients gradients = backward.gradients();
    for (size_t at = 0; at != gradients.query.value.size(); ++at) {
      bool isEmpty = gradients.query.rows[at / 4].i < 2;
      EXPECT_EQ(gradients.query.value[at] == 0, isEmpty);
      EXPECT_EQ(gradients.query.bound(at, toleranceBF16) == 0, isEmpty);
    }
    for (const Gradient *gradient : {&gradients.key, &gradients.value})
      for (double x : gradient->value)
        EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(Gradients, Softcap) {
  Backward backward(mixedSizes);
  backward.scores = [](auto &) { return std::vector{softcap(1.5)}; };
  backward.slopes = {softcapSlope(1.5)};
  expectSlopes(backward);
}

TEST(Gradients, Alibi) {
  for (int64_t count : {4, 8}) {
    Backward backward(mixedSizes);
    backward.table = randomValues(count, 7);
    backward.scores = [](auto &table) {
      return std::vector{alibi(mixedSizes, table)};
    };
    backward.slopes = {alibiSlope(mixedSizes, count, 0)};
    expectSlopes(backward);
  }
}

TEST(Gradients, Bias) {
  for (const std::vector<int64_t> &shape :
       std::vector<std::vector<int64_t>>{{4, 5}, {2, 4, 4, 5}, {1, 4, 1, 5}}) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    Backward backward(mixedSizes);
    backward.masks = {causal(mixedSizes)};
    backward.table = randomValues(count, 7);
    backward.scores = [&](auto &table) {
      return std::vector{bias(mixedSizes, shape, table)};
    };
    backward.slopes = {biasSlope(mixedSizes, shape, 0)};
    expectSlopes(backward);
  }
}

TEST(Gradients, ScoresInOrder) {
  Backward backward(mixedSizes);
  backward.table = randomValues(20, 7);
  auto biased = [](auto &table) { return bias(mixedSizes, {4, 5}, table); };
  ScoreSlope biasedSlope = biasSlope(mixedSizes, {4, 5}, 0);
  backward.scores = [&](auto &table) {
    return std::vector{softcap(1), biased(table)};
  };
  backward.slopes = {softcapSlope(1), biasedSlope};
  expectSlopes(backward);
  backward.scores = [&](auto &table) {
    return std::vector{biased(table), softcap(1)};
  };
  backward.slopes = {biasedSlope, softcapSlope(1)};
  expectSlopes(backward);
  // Both read the table.
  std::vector<double> slopes = randomValues(4, 9);
  backward.table = slopes;
  backward.scores = [&](auto &table) {
    return std::vector{alibi(mixedSizes, table), softcap(2),
                       alibi(mixedSizes, table)};
  };
  ScoreSlope alibis = alibiSlope(mixedSizes, 4, 0);
  backward.slopes = {alibis, softcapSlope(2), alibis};
  expectSlopes(backward);
}

TEST(Gradients, ScoreOfMinusInfinityDrops) {
  Backward dropped({1, 4, 4, 1, 1, 3, 5}), masked = dropped;
  dropped.scores = [](auto &) {
    return std::vector<Score>{
        [](double s, const Point &p) { return p.j < p.i ? s : -infinity; }};
  };
  // What it says of a pair that is dropped does not matter.
  dropped.slopes = {[](double, double, const Point &p, bool) {
    Slope slope;
    slope.slope = p.j < p.i ? 1 : nan;
    return slope;
  }};
  masked.masks = {[](const Point &p) { return p.j < p.i; }};
  Gradients expected = masked.gradients(), found = dropped.gradients();
  EXPECT_EQ(expected.query.value, found.query.value);
  EXPECT_EQ(expected.key.value, found.key.value);
  EXPECT_EQ(expected.value.value, found.value.value);
  expectSlopes(dropped);
}

TEST(Gradients, DroppedKeysMayBeAnything) {
  Backward backward({1, 4, 7, 1, 1, 3, 5});
  backward.masks = {[](const Point &p) { return p.j % 3 != 1; }};
  Gradients before = backward.gradients();
  for (int64_t j = 1; j < 7; j += 3) {
    std::fill_n(backward.in.key.begin() + j * 3, 3, nan);
    std::fill_n(backward.in.value.begin() + j * 5, 5, infinity);
  }
  Gradients after = backward.gradients();
  EXPECT_EQ(before.query.value, after.query.value);
  EXPECT_EQ(before.key.value, after.key.value);
  EXPECT_EQ(before.value.value, after.value.value);
  for (size_t at = 0; at != after.key.value.size(); ++at)
    EXPECT_EQ(after.key.value[at] == 0, at / 3 % 3 == 1);
}

TEST(Gradients, EmptyProblems) {
  for (const Sizes &sizes :
       {Sizes{2, 3, 0, 1, 1, 4, 3}, Sizes{2, 0, 3, 1, 1, 4, 3},
        Sizes{0, 3, 3, 1, 1, 4, 3}}) {
    Backward backward(sizes);
    for (int give = 0; give != 2; ++give) {
      Gradients gradients = backward.gradients();
      for (const Gradient *gradient :
           {&gradients.query, &gradients.key, &gradients.value})
        EXPECT_EQ(gradient->value, std::vector<double>(gradient->value.size()));
      EXPECT_EQ(int64_t(gradients.key.value.size()), sizes.keyElements());
      backward.giveForward(24);
    }
  }
}

//===----------------------------------------------------------------------===//
// Differences of functions
//===----------------------------------------------------------------------===//

TEST(Differentiate, SmoothFunctions) {
  for (double at : {-30.0, -2.0, -0.1, 0.0, 1e-3, 0.7, 3.0, 100.0}) {
    Slope tanh = differentiate([](double x) { return std::tanh(x); }, at);
    double expected = 1 / (std::cosh(at) * std::cosh(at));
    EXPECT_NEAR(tanh.slope, expected, 1e-9);
    EXPECT_LE(std::abs(tanh.slope - expected), tanh.error + 1e-15);
    EXPECT_LT(tanh.error, 1e-8);
    EXPECT_NEAR(tanh.curvature, std::abs(2 * std::tanh(at) * expected), 1e-2);
    Slope line = differentiate([](double x) { return 3 - 2 * x; }, at);
    EXPECT_NEAR(line.slope, -2, 1e-11);
    EXPECT_NEAR(line.curvature, 0, 1e-6);
  }
}

TEST(Differentiate, Kinks) {
  auto relu = [](double x) { return std::max(x, 0.0); };
  for (double at : {1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5})
    for (double sign : {-1.0, 1.0}) {
      Slope slope = differentiate(relu, sign * at);
      EXPECT_NEAR(slope.slope, sign > 0, 1e-9) << at;
      EXPECT_LT(slope.error, 1e-8);
    }
  for (double at : {1e-7, -1e-7, 1e-9, 0.0})
    EXPECT_GT(differentiate(relu, at).error, 0.3) << at;
}

//===----------------------------------------------------------------------===//
// A second opinion, in long double
//===----------------------------------------------------------------------===//

struct Tensors {
  std::vector<double> query, key, value;
};

/// The formulas again, with a softcap at 2, and out and lse as they are given.
Tensors slowly(const Backward &backward, bool isCapped) {
  const auto [B, Sq, Sk, Hq, Hkv, D, Dv] = backward.in.sizes;
  using Long = std::vector<long double>;
  Long dq(backward.in.query.size()), dk(backward.in.key.size()),
      dv(backward.in.value.size());
  long double scale = 1 / std::sqrt(double(D));
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hq; ++h)
      for (int64_t i = 0; i < Sq; ++i) {
        int64_t row = (b * Hq + h) * Sq + i;
        int64_t q = ((b * Sq + i) * Hq + h) * D, o = q / D * Dv;
        long double delta = -(long double)backward.lseGrad[row];
        for (int64_t d = 0; d < Dv; ++d)
          delta += (long double)backward.out[o + d] * backward.outGrad[o + d];
        for (int64_t j = 0; j < Sk; ++j) {
          if (j > i + Sk - Sq)
            continue;
          int64_t k = ((b * Sk + j) * Hkv + h / (Hq / Hkv)) * D, v = k / D * Dv;
          long double s = 0, dp = 0, slope = 1;
          for (int64_t d = 0; d < D; ++d)
            s += (long double)backward.in.query[q + d] * backward.in.key[k + d];
          s *= scale;
          if (isCapped) {
            long double y = std::tanh(s / 2);
            s = 2 * y;
            slope = 1 - y * y;
          }
          long double p = std::exp(s - backward.lse[row]);
          for (int64_t d = 0; d < Dv; ++d)
            dp +=
                (long double)backward.outGrad[o + d] * backward.in.value[v + d];
          long double u = scale * p * (dp - delta) * slope;
          for (int64_t d = 0; d < D; ++d) {
            dq[q + d] += u * backward.in.key[k + d];
            dk[k + d] += u * backward.in.query[q + d];
          }
          for (int64_t d = 0; d < Dv; ++d)
            dv[v + d] += p * backward.outGrad[o + d];
        }
      }
  return {
      {dq.begin(), dq.end()}, {dk.begin(), dk.end()}, {dv.begin(), dv.end()}};
}

void expectWithin(const Gradients &expected, const Tensors &actual,
                  const Tolerance &tolerance, double ratio, const char *what) {
  for (const auto &[name, gradient, tensor] :
       {std::tuple("query", &expected.query, &actual.query),
        std::tuple("key", &expected.key, &actual.key),
        std::tuple("value", &expected.value, &actual.value)}) {
    Deviation deviation = compare(*gradient, *tensor, tolerance);
    EXPECT_EQ(deviation.checked, int64_t(tensor->size()));
    EXPECT_EQ(deviation.failed, 0) << what << ' ' << name;
    EXPECT_LT(deviation.worstRatio, ratio) << what << ' ' << name;
    testing::Test::RecordProperty(std::string(what) + " " + name,
                                  std::to_string(deviation.worstRatio));
  }
}

/// The oracle's own error has to be small against the bounds for fp64.
TEST(Gradients, AgreeWithLongDouble) {
  for (double factor : {0.0, 1.0, 50.0})
    for (bool isCapped : {false, true})
      for (bool isLong : {false, true}) {
        Sizes sizes = isLong ? Sizes{1, 300, 300, 2, 1, 32, 16}
                             : Sizes{2, 7, 12, 4, 2, 5, 3};
        Backward backward(sizes, 3, factor);
        backward.masks = {causal(sizes)};
        if (isCapped) {
          backward.scores = [](auto &) { return std::vector{softcap(2)}; };
          backward.slopes = {softcapSlope(2)};
        }
        backward.giveForward(24);
        expectWithin(backward.gradients(0), slowly(backward, isCapped),
                     toleranceF64, 0.125, "long double");
      }
}

TEST(Gradients, ThreadsAndSamplesDoNotMatter) {
  Backward backward({2, 20, 30, 4, 2, 8, 12});
  backward.masks = {causal(backward.in.sizes)};
  Gradients one = backward.gradients(1);
  std::vector<Row> rows = sampleRows(backward.in.sizes, 17, 3);
  std::vector<Row> keys = sampleRows(ofKeys(backward.in.sizes), 11, 3);
  Gradients some = evaluate(backward.problem(), rows, keys, {.threads = 3});
  auto expectPart = [](const Gradient &part, const Gradient &whole) {
    for (size_t r = 0; r != part.rows.size(); ++r) {
      auto found =
          std::find(whole.rows.begin(), whole.rows.end(), part.rows[r]);
      ASSERT_NE(found, whole.rows.end());
      for (int64_t d = 0; d != part.dims; ++d) {
        size_t at = r * part.dims + d;
        size_t in = (found - whole.rows.begin()) * part.dims + d;
        EXPECT_EQ(part.value[at], whole.value[in]);
        EXPECT_EQ(part.bound(at, toleranceBF16),
                  whole.bound(in, toleranceBF16));
      }
    }
  };
  expectPart(some.query, one.query);
  expectPart(some.key, one.key);
  expectPart(some.value, one.value);
  Tensors whole = {wholeTensor(one.query), wholeTensor(one.key),
                   wholeTensor(one.value)};
  EXPECT_EQ(compare(some.query, whole.query, toleranceF64).checked, 17 * 8);
  EXPECT_EQ(compare(some.key, whole.key, toleranceF64).failed, 0);
  EXPECT_EQ(compare(some.value, whole.value, toleranceF64).largestError, 0);
}

TEST(GradientsDeathTest, WrongSizes) {
  Backward backward(mixedSizes);
  std::vector<Row> none;
  BackwardProblem problem = backward.problem();
  problem.outGrad = problem.outGrad.first(3);
  EXPECT_DEATH(evaluate(problem, none, none), "wrong size of outGrad");
  problem = backward.problem();
  problem.slopes = {softcapSlope(1)};
  EXPECT_DEATH(evaluate(problem, none, none), "not one slope for each score");
  problem = backward.problem();
  problem.lse = problem.lseGrad.first(3);
  EXPECT_DEATH(evaluate(problem, none, none), "wrong size of lse");
  problem = backward.problem();
  problem.out = problem.outGrad.first(3);
  EXPECT_DEATH(evaluate(problem, none, none), "wrong size of out");
  EXPECT_DEATH(evaluate(backward.problem(), none, {{0, 2, 0}}),
               "a row of keys lies outside");
  EXPECT_DEATH(evaluate(backward.problem(), {{0, 4, 0}}, none),
               "a row of queries lies outside");
  Gradients gradients = backward.gradients();
  EXPECT_DEATH(compare(gradients.query, {}, toleranceF32),
               "wrong size of a gradient");
}

//===----------------------------------------------------------------------===//
// The tolerances: what kernels do has to pass, what they must not do must not
//===----------------------------------------------------------------------===//

enum class Mistake : uint8_t {
  None,
  NoDelta,
  NoLseGrad,
  NoScale,      ///< of the gradients by query and key
  NoSlope,      ///< of the score
  LostBlock,    ///< the last keys are not computed for the last queries
  DoubledBlock, ///< and these are computed twice
  WrongScale,   ///< by 5 percent
};

/// A kernel as real ones are: all in float, one query head after the other,
/// with p, u and the results rounded to `bits`. With a softcap at 4.
Tensors kernel(const Backward &backward, int bits, Mistake mistake) {
  const auto [B, Sq, Sk, Hq, Hkv, D, Dv] = backward.in.sizes;
  std::vector<float> q(backward.in.query.begin(), backward.in.query.end()),
      k(backward.in.key.begin(), backward.in.key.end()),
      v(backward.in.value.begin(), backward.in.value.end()),
      out(backward.out.begin(), backward.out.end()),
      outGrad(backward.outGrad.begin(), backward.outGrad.end());
  std::vector<float> dq(q.size()), dk(k.size()), dv(v.size());
  auto scale = float(1 / std::sqrt(double(D)));
  if (mistake == Mistake::WrongScale)
    scale *= 1.05F;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hq; ++h)
      for (int64_t i = 0; i < Sq; ++i) {
        int64_t row = (b * Hq + h) * Sq + i;
        int64_t qAt = ((b * Sq + i) * Hq + h) * D, oAt = qAt / D * Dv;
        auto lse = float(backward.lse[row]);
        float delta = 0;
        for (int64_t d = 0; d < Dv; ++d)
          delta += out[oAt + d] * outGrad[oAt + d];
        if (mistake == Mistake::NoDelta)
          delta = 0;
        if (mistake != Mistake::NoLseGrad)
          delta -= float(backward.lseGrad[row]);
        for (int64_t j = 0; j < Sk; ++j) {
          int64_t times = 1;
          if (i >= Sq - Sq / 4 && j >= Sk - Sk / 8) {
            times = mistake == Mistake::LostBlock      ? 0
                    : mistake == Mistake::DoubledBlock ? 2
                                                       : 1;
          }
          int64_t kAt = ((b * Sk + j) * Hkv + h / (Hq / Hkv)) * D;
          int64_t vAt = kAt / D * Dv;
          float s = 0, dp = 0;
          for (int64_t d = 0; d < D; ++d)
            s += q[qAt + d] * k[kAt + d];
          for (int64_t d = 0; d < Dv; ++d)
            dp += outGrad[oAt + d] * v[vAt + d];
          float y = std::tanh(scale * s / 4);
          float p = std::exp(4 * y - lse);
          float u = p * (dp - delta);
          if (mistake != Mistake::NoSlope)
            u *= 1 - y * y;
          p = roundTo(p, bits);
          u = roundTo(u, bits);
          for (; times > 0; --times) {
            for (int64_t d = 0; d < D; ++d) {
              dq[qAt + d] += u * k[kAt + d];
              dk[kAt + d] += u * q[qAt + d];
            }
            for (int64_t d = 0; d < Dv; ++d)
              dv[vAt + d] += p * outGrad[oAt + d];
          }
        }
      }
  if (mistake == Mistake::NoScale)
    scale = 1;
  auto rounded = [&](const std::vector<float> &sums, float factor) {
    std::vector<double> result;
    result.reserve(sums.size());
    for (float sum : sums)
      result.push_back(roundTo(factor * sum, bits));
    return result;
  };
  return {rounded(dq, scale), rounded(dk, scale), rounded(dv, 1)};
}

/// Elements that are numbers of 8 bits, so of all types.
Backward shortProblem(double factor) {
  Backward backward({1, 64, 256, 4, 2, 64, 32}, 8);
  for (auto *tensor : {&backward.in.query, &backward.in.key, &backward.in.value,
                       &backward.outGrad, &backward.lseGrad})
    for (double &x : *tensor)
      x = roundTo(float(x), 8);
  for (double &x : backward.in.query)
    x *= factor;
  backward.scores = [](auto &) { return std::vector{softcap(4)}; };
  backward.slopes = {softcapSlope(4)};
  return backward;
}

TEST(GradientsTolerance, KernelsPass) {
  for (const Precision &precision : precisions)
    for (double factor : {0.0, 1.0, 64.0}) {
      Backward backward = shortProblem(factor);
      backward.giveForward(precision.bits);
      std::string name = precision.name + std::to_string(int(factor));
      Tensors actual = kernel(backward, precision.bits, Mistake::None);
      expectWithin(backward.gradients(0), actual, precision.tolerance, 0.5,
                   name.c_str());
      // And where out, lse or both come from a forward pass that rounds.
      Backward given = backward;
      backward.out.clear();
      expectWithin(backward.gradients(0), actual, precision.tolerance, 0.5,
                   (name + " with out").c_str());
      backward.lse.clear();
      expectWithin(backward.gradients(0), actual, precision.tolerance, 0.5,
                   (name + " with forward").c_str());
      backward.out = given.out;
      expectWithin(backward.gradients(0), actual, precision.tolerance, 0.5,
                   (name + " with lse").c_str());
    }
}

/// A table that is added in front of a softcap, in one score: its slope is
/// 1 - y^2, of whose terms nothing may be left. `unit` is the rounding of y.
std::vector<double> tableGradient(const Backward &backward, double unit) {
  const auto [B, Sq, Sk, Hq, Hkv, D, Dv] = backward.in.sizes;
  const std::vector<double> &q = backward.in.query, &k = backward.in.key,
                            &v = backward.in.value;
  std::vector<double> sums(Hq);
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < Hq; ++h)
      for (int64_t i = 0; i < Sq; ++i) {
        int64_t row = (b * Hq + h) * Sq + i;
        int64_t qAt = ((b * Sq + i) * Hq + h) * D, oAt = qAt / D * Dv;
        double delta = -backward.lseGrad[row];
        for (int64_t d = 0; d < Dv; ++d)
          delta += backward.out[oAt + d] * backward.outGrad[oAt + d];
        for (int64_t j = 0; j < Sk; ++j) {
          int64_t kAt = ((b * Sk + j) * Hkv + h / (Hq / Hkv)) * D;
          int64_t vAt = kAt / D * Dv;
          double s = 0, dp = 0;
          for (int64_t d = 0; d < D; ++d)
            s += q[qAt + d] * k[kAt + d] / std::sqrt(double(D));
          for (int64_t d = 0; d < Dv; ++d)
            dp += backward.outGrad[oAt + d] * v[vAt + d];
          double y = std::tanh((s + backward.table[h]) / 4);
          double p = std::exp(4 * y - backward.lse[row]);
          y = std::nearbyint(y / unit) * unit;
          sums[h] += p * (dp - delta) * (1 - y) * (1 + y);
        }
      }
  return sums;
}

TEST(GradientsTolerance, TablesInFrontOfWhatSaturatesPass) {
  for (double level : {0, 20, 24, 28, 32}) {
    Backward backward({1, 8, 8, 4, 2, 4, 4}, 8);
    backward.table = randomValues(4, 7);
    for (double &x : backward.table)
      x += level;
    backward.scores = [](auto &table) {
      return std::vector<Score>{[table](double s, const Point &point) {
        return 4 * std::tanh((s + table[point.h]) / 4);
      }};
    };
    backward.slopes = {
        [&](double s, double, const Point &point, bool wantsElements) {
          auto score = [&](double x) {
            return 4 * std::tanh((x + backward.table[point.h]) / 4);
          };
          Slope slope = differentiate(score, s);
          if (wantsElements)
            slope.elements = {{0, point.h, slope.slope, slope.error}};
          return slope;
        }};
    backward.giveForward(24);
    Gradients expected = backward.gradients();
    ASSERT_EQ(expected.tables.size(), 1U);
    auto worst = [&](double unit) {
      return compare(expected.tables[0], tableGradient(backward, unit),
                     toleranceF32)
          .worstRatio;
    };
    EXPECT_LT(worst(0x1p-24), 0.5) << level;
    if (level == 0)
      EXPECT_GT(worst(0x1p-9), 1);
  }
}

TEST(GradientsTolerance, WrongTablesOfSmallFactorsFail) {
  for (double factor : {1.0, 1e-3, 1e-6}) {
    Backward backward({1, 64, 64, 4, 2, 4, 4}, 8);
    backward.table = randomValues(4, 7);
    backward.scores = [&](auto &table) {
      return std::vector<Score>{[=](double s, const Point &point) {
        return s + factor * table[point.h];
      }};
    };
    backward.slopes = {
        [&](double, double, const Point &point, bool wantsElements) {
          Slope slope;
          if (wantsElements)
            slope.elements = {{0, point.h, factor}};
          return slope;
        }};
    backward.giveForward(24);
    Gradients expected = backward.gradients();
    std::vector<double> wrong = expected.tables[0].value;
    for (double &x : wrong)
      x *= 1.01;
    EXPECT_GT(compare(expected.tables[0], wrong, toleranceF32).failed, 0)
        << factor;
  }
}

TEST(GradientsTolerance, TablesOfGivenResultsAreNotZero) {
  Backward backward({1, 64, 64, 4, 2, 4, 4}, 8);
  backward.table = randomValues(4, 7);
  backward.masks = {causal(backward.in.sizes)};
  backward.scores = [&](auto &table) {
    return std::vector{alibi(backward.in.sizes, table)};
  };
  backward.slopes = {alibiSlope(backward.in.sizes, 4, 0)};
  backward.giveForward(8);
  auto findsZero = [&] {
    Gradients expected = backward.gradients();
    std::vector<double> zero(4);
    return compare(expected.tables[0], zero, toleranceBF16).failed;
  };
  EXPECT_EQ(findsZero(), 4);
  backward.lse.clear();
  EXPECT_EQ(findsZero(), 4);
}

TEST(GradientsTolerance, TablesOfNegativeSlopesAreNotZero) {
  // Scores grow with the distance: most weights are near 0 or 1, and out is
  // near a value.
  Backward backward({1, 192, 192, 4, 2, 16, 16}, 8);
  backward.lseGrad.clear();
  backward.table = {-0.25, -0.5, -1, -2};
  backward.masks = {causal(backward.in.sizes)};
  backward.scores = [&](auto &table) {
    return std::vector{alibi(backward.in.sizes, table)};
  };
  backward.slopes = {alibiSlope(backward.in.sizes, 4, 0)};
  for (const Precision &precision : precisions) {
    backward.giveForward(precision.bits);
    Gradients expected = backward.gradients(0);
    EXPECT_EQ(
        compare(expected.tables[0], std::vector<double>(4), precision.tolerance)
            .failed,
        4)
        << precision.name;
  }
}

/// Whether any gradient is found to be wrong.
bool isNoticed(const Gradients &expected, const Tensors &actual,
               const Tolerance &tolerance) {
  return compare(expected.query, actual.query, tolerance).failed != 0 ||
         compare(expected.key, actual.key, tolerance).failed != 0 ||
         compare(expected.value, actual.value, tolerance).failed != 0;
}

TEST(GradientsTolerance, WrongKernelsFail) {
  for (const Precision &precision : precisions) {
    Backward backward = shortProblem(1);
    backward.giveForward(precision.bits);
    for (bool isGiven : {true, false}) {
      Backward asked = backward;
      if (!isGiven) {
        asked.out.clear();
        asked.lse.clear();
      }
      Gradients expected = asked.gradients(0);
      for (Mistake mistake :
           {Mistake::NoDelta, Mistake::NoLseGrad, Mistake::NoScale,
            Mistake::NoSlope, Mistake::LostBlock, Mistake::DoubledBlock,
            Mistake::WrongScale})
        EXPECT_TRUE(isNoticed(expected,
                              kernel(backward, precision.bits, mistake),
                              precision.tolerance))
            << precision.name << " mistake " << int(mistake) << ' ' << isGiven;
      // Each gradient left zero is found by itself.
      for (const Gradient *gradient :
           {&expected.query, &expected.key, &expected.value}) {
        std::vector<double> zero(gradient->value.size());
        EXPECT_GT(compare(*gradient, zero, precision.tolerance).failed,
                  int64_t(zero.size() / 4))
            << precision.name << ' ' << isGiven;
      }
    }
  }
}

} // namespace
