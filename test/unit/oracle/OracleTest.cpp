//===- OracleTest.cpp - Tests of the oracle -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/oracle/Inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace burst::oracle;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

//===----------------------------------------------------------------------===//
// A second opinion on random problems
//===----------------------------------------------------------------------===//

/// Everything that can differ does.
constexpr Sizes mixedSizes = {2, 13, 21, 6, 2, 5, 11};

using LongMask = std::function<bool(int b, int h, int i, int j)>;
using LongScore =
    std::function<long double(long double s, int b, int h, int i, int j)>;

/// Whole tensors.
struct Tensors {
  std::vector<double> out, lse, maxScores;
};

/// The formulas again, in long double and without any thought of speed.
Tensors slowly(const Inputs &in, const LongMask &mask, const LongScore &score) {
  const auto [B, Sq, Sk, Hq, Hkv, D, Dv] = in.sizes;
  Tensors result;
  result.out.resize(in.sizes.outElements());
  result.lse.resize(in.sizes.lseElements());
  result.maxScores.resize(in.sizes.lseElements());
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < Hq; ++h)
      for (int i = 0; i < Sq; ++i) {
        int64_t head = h / (Hq / Hkv);
        std::vector<long double> s(Sk), out(Dv);
        long double largest = -HUGE_VALL, l = 0;
        for (int j = 0; j < Sk; ++j) {
          if (!mask(b, h, i, j))
            continue;
          for (int d = 0; d < D; ++d)
            s[j] += (long double)in.query[((b * Sq + i) * Hq + h) * D + d] *
                    in.key[((b * Sk + j) * Hkv + head) * D + d];
          s[j] = score(s[j] * (1 / std::sqrt(double(D))), b, h, i, j);
          largest = std::max(largest, s[j]);
        }
        for (int j = 0; j < Sk; ++j) {
          if (!mask(b, h, i, j))
            continue;
          long double p = std::exp(s[j] - largest);
          l += p;
          for (int d = 0; d < Dv; ++d)
            out[d] += p * in.value[((b * Sk + j) * Hkv + head) * Dv + d];
        }
        for (int d = 0; d < Dv; ++d)
          result.out[((b * Sq + i) * Hq + h) * Dv + d] =
              l == 0 ? 0 : double(out[d] / l);
        result.lse[(b * Hq + h) * Sq + i] = double(largest + std::log(l));
        result.maxScores[(b * Hq + h) * Sq + i] = double(largest);
      }
  return result;
}

bool keepAll(int, int, int, int) { return true; }
long double sameScore(long double s, int, int, int, int) { return s; }

/// The oracle's own error has to be small against the bounds for fp64.
void expectAgree(const Inputs &in, const Problem &problem, const LongMask &mask,
                 const LongScore &score) {
  Tensors tensors = slowly(in, mask, score);
  Result result = evaluate(problem, allRows(in.sizes), {.threads = 2});
  Verdict verdict = compare(result, tensors.out, tensors.lse, toleranceF64,
                            tensors.maxScores);
  EXPECT_TRUE(verdict.pass()) << verdict.text();
  EXPECT_EQ(verdict.maxScores.checked, in.sizes.lseElements());
  EXPECT_LT(verdict.maxScores.worstRatio, 0.125) << verdict.text();
  EXPECT_EQ(verdict.out.checked, in.sizes.outElements());
  EXPECT_EQ(verdict.lse.checked, in.sizes.lseElements());
  EXPECT_LT(verdict.out.worstRatio, 0.125) << verdict.text();
  EXPECT_LT(verdict.lse.worstRatio, 0.125) << verdict.text();
}

void expectMask(const std::vector<Mask> &masks, const LongMask &mask) {
  Inputs in(mixedSizes);
  expectAgree(in, in.problem(masks), mask, sameScore);
}

void expectScore(const std::vector<Score> &scores, const LongScore &score) {
  Inputs in(mixedSizes);
  expectAgree(in, in.problem({}, scores), keepAll, score);
}

/// The tensors that the rows of a result are rows of.
Tensors wholeTensors(const Result &result) {
  const Sizes &sizes = result.sizes;
  Tensors tensors = {std::vector<double>(sizes.outElements()),
                     std::vector<double>(sizes.lseElements()),
                     std::vector<double>(sizes.lseElements())};
  for (size_t r = 0; r != result.rows.size(); ++r) {
    std::copy_n(result.out.begin() + int64_t(r) * sizes.valueDim,
                sizes.valueDim,
                tensors.out.begin() + outOffset(sizes, result.rows[r]));
    tensors.lse[lseOffset(sizes, result.rows[r])] = result.lse[r];
    tensors.maxScores[lseOffset(sizes, result.rows[r])] = result.maxScores[r];
  }
  return tensors;
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

TEST(Oracle, ByHand) {
  Sizes sizes = {1, 2, 2, 1, 1, 1, 1};
  double log3 = std::log(3.0);
  std::vector<double> query = {0, 1}, key = {0, log3}, value = {-1, 5};
  Result result = evaluate({sizes, 1, query, key, value, {causal(sizes)}, {}},
                           allRows(sizes));
  EXPECT_EQ(result.rows, (std::vector<Row>{{0, 0, 0}, {0, 0, 1}}));
  EXPECT_EQ(result.out[0], -1);
  EXPECT_EQ(result.lse[0], 0);
  EXPECT_EQ(result.magnitude[0], 1);
  EXPECT_EQ(result.amplification[0], 1);
  EXPECT_EQ(result.underflowScale[0], 2);
  // Scores 0 and log 3: p is 1/4 and 3/4.
  EXPECT_DOUBLE_EQ(result.out[1], 3.5);
  EXPECT_DOUBLE_EQ(result.lse[1], std::log(4.0));
  EXPECT_DOUBLE_EQ(result.magnitude[1], 4);
  EXPECT_DOUBLE_EQ(result.amplification[1], 1 + log3);
  EXPECT_EQ(result.underflowScale[1], 8);
}

TEST(Oracle, Full) { expectMask({}, keepAll); }

TEST(Oracle, Causal) {
  expectMask({causal(mixedSizes)},
             [](int, int, int i, int j) { return j - 8 <= i; });
}

TEST(Oracle, Windows) {
  expectMask({window(mixedSizes, 4, 1)}, [](int, int, int i, int j) {
    return i + 8 - 4 <= j && j <= i + 8 + 1;
  });
  expectMask({window(mixedSizes, 4, {})},
             [](int, int, int i, int j) { return i + 8 - 4 <= j; });
  expectMask({window(mixedSizes, {}, 1)},
             [](int, int, int i, int j) { return j <= i + 8 + 1; });
  expectMask({window(mixedSizes, {}, {})}, keepAll);
}

TEST(Oracle, Prefix) {
  expectMask({prefix(mixedSizes, 12)},
             [](int, int, int i, int j) { return j < 12 || j <= i + 8; });
}

TEST(Oracle, Documents) {
  std::vector<int64_t> queryIds = {0, 0, 3, 3, 3, 1, 1, 1, 1, 7, 7, 7, 0};
  std::vector<int64_t> keyIds(21);
  for (int64_t j = 0; j != 21; ++j)
    keyIds[j] = j / 4;
  auto same = [&](int, int, int i, int j) { return queryIds[i] == keyIds[j]; };
  expectMask({documents(mixedSizes, queryIds, keyIds)}, same); // 7: no keys.
  expectMask({documents(mixedSizes, queryIds, keyIds), causal(mixedSizes)},
             [&](int b, int h, int i, int j) {
               return same(b, h, i, j) && j <= i + 8;
             });
}

TEST(Oracle, DocumentsByBatch) {
  std::vector<int64_t> queryIds(size_t{2} * 13), keyIds(size_t{2} * 21);
  for (size_t k = 0; k != queryIds.size(); ++k)
    queryIds[k] = int64_t(k * k % 5);
  for (size_t k = 0; k != keyIds.size(); ++k)
    keyIds[k] = int64_t(k * k % 7);
  expectMask({documents(mixedSizes, queryIds, keyIds)},
             [&](int b, int, int i, int j) {
               return queryIds[b * 13 + i] == keyIds[b * 21 + j];
             });
}

TEST(Oracle, MasksOfOnesOwn) {
  auto odd = [](int b, int h, int i, int j) {
    return (b * 3 + h * 5 + i * 7 + j * j) % 4 == 1;
  };
  expectMask({[&](const Point &p) {
               return odd(int(p.b), int(p.h), int(p.i), int(p.j));
             }},
             odd);
}

TEST(Oracle, Alibi) {
  std::vector<double> slopes = {0.5, 0.25, 0.125, 1, 2, 0};
  expectScore({alibi(mixedSizes, slopes)},
              [&](long double s, int, int h, int i, int j) {
                int distance = i + 8 > j ? i + 8 - j : j - i - 8;
                return s - slopes[h] * distance;
              });
  std::vector<double> byBatch = randomValues(12, 9);
  expectScore({alibi(mixedSizes, byBatch)},
              [&](long double s, int b, int h, int i, int j) {
                long double slope = byBatch[b * 6 + h];
                return s - slope * std::abs(j - i - 8);
              });
}

TEST(Oracle, Softcap) {
  expectScore({softcap(1.5)}, [](long double s, int, int, int, int) {
    return 1.5L * std::tanh(s / 1.5L);
  });
}

TEST(Oracle, Bias) {
  std::vector<double> table = randomValues(int64_t{13} * 21, 5);
  expectScore({bias(mixedSizes, {13, 21}, table)},
              [&](long double s, int, int, int i, int j) {
                return s + table[i * 21 + j];
              });
  std::vector<double> full = randomValues(int64_t{2} * 6 * 13 * 21, 5);
  expectScore({bias(mixedSizes, {2, 6, 13, 21}, full)},
              [&](long double s, int b, int h, int i, int j) {
                return s + full[((b * 6 + h) * 13 + i) * 21 + j];
              });
  std::vector<double> some = randomValues(int64_t{6} * 21, 5);
  expectScore({bias(mixedSizes, {1, 6, 1, 21}, some)},
              [&](long double s, int, int h, int, int j) {
                return s + some[h * 21 + j];
              });
}

TEST(Oracle, ScoresInOrder) {
  std::vector<double> table = randomValues(int64_t{13} * 21, 5);
  Score capped = softcap(1), biased = bias(mixedSizes, {13, 21}, table);
  expectScore({capped, biased}, [&](long double s, int, int, int i, int j) {
    return std::tanh(s) + table[i * 21 + j];
  });
  expectScore({biased, capped}, [&](long double s, int, int, int i, int j) {
    return std::tanh(s + table[i * 21 + j]);
  });
}

TEST(Oracle, MaskAndScoreTogether) {
  Inputs in({1, 40, 33, 4, 4, 16, 8}, 7);
  std::vector<double> slopes = {1, 0.5, 0.25, 0.125};
  expectAgree(
      in, in.problem({causal(in.sizes)}, {alibi(in.sizes, slopes)}),
      [](int, int, int i, int j) { return j <= i - 7; },
      [&](long double s, int, int h, int i, int j) {
        return s - slopes[h] * std::abs(i - 7 - j);
      });
}

TEST(Oracle, ExtremeLogits) {
  // Scores reach to about 2 * factor, of both signs.
  for (double factor : {100.0, 5000.0, 1e6}) {
    Inputs in({1, 9, 70, 2, 1, 12, 3}, 3, factor);
    expectAgree(in, in.problem(), keepAll, sameScore);
  }
  for (double shift : {200.0, -200.0, 1e4, -1e4}) {
    Inputs in({1, 9, 70, 2, 1, 12, 3});
    Score shifted = [=](double s, const Point &) { return s + shift; };
    expectAgree(in, in.problem({}, {shifted}), keepAll,
                [=](long double s, int, int, int, int) { return s + shift; });
  }
}

TEST(Oracle, LongSumsOfOneSign) {
  // Where plain sums lose most: everything positive, and many terms.
  Inputs in({1, 1, 20000, 1, 1, 256, 2}, 4);
  for (auto *tensor : {&in.query, &in.key, &in.value})
    for (double &x : *tensor)
      x = std::abs(x) / 16;
  expectAgree(in, in.problem(), keepAll, sameScore);
}

TEST(Oracle, RowsWithoutKeys) {
  Inputs in({1, 5, 3, 2, 1, 4, 3});
  Result result = evaluate(in.problem({causal(in.sizes)}), allRows(in.sizes));
  for (size_t r = 0; r != result.rows.size(); ++r) {
    bool empty = result.rows[r].i < 2;
    EXPECT_EQ(result.lse[r] == -infinity, empty);
    EXPECT_EQ(result.underflowScale[r] == 0, empty);
    for (int d = 0; d != 3; ++d) {
      EXPECT_EQ(result.out[r * 3 + d] == 0, empty);
      EXPECT_EQ(result.outBound(r, d, toleranceBF16) == 0, empty);
    }
  }
}

TEST(Oracle, EmptyProblems) {
  Inputs noKeys({2, 3, 0, 1, 1, 4, 3});
  Result result = evaluate(noKeys.problem(), allRows(noKeys.sizes));
  EXPECT_EQ(result.out, std::vector<double>(18));
  EXPECT_EQ(result.lse, std::vector<double>(6, -infinity));
  for (Sizes sizes : {Sizes{2, 0, 3, 1, 1, 4, 3}, Sizes{0, 3, 3, 1, 1, 4, 3}}) {
    Inputs noRows(sizes);
    EXPECT_TRUE(allRows(sizes).empty());
    EXPECT_TRUE(sampleRows(sizes, 5, 1).empty());
    EXPECT_TRUE(evaluate(noRows.problem(), {}).out.empty());
  }
}

TEST(Oracle, DroppedKeysMayBeAnything) {
  Inputs in({1, 4, 19, 1, 1, 3, 5});
  Problem problem = in.problem({[](const Point &p) { return p.j % 3 != 1; }});
  Tensors before = wholeTensors(evaluate(problem, allRows(in.sizes)));
  for (int64_t j = 1; j < 19; j += 3) {
    std::fill_n(in.key.begin() + j * 3, 3, nan);
    std::fill_n(in.value.begin() + j * 5, 5, infinity);
  }
  Result after = evaluate(problem, allRows(in.sizes));
  EXPECT_EQ(wholeTensors(after).out, before.out);
  EXPECT_EQ(wholeTensors(after).lse, before.lse);
  EXPECT_EQ(wholeTensors(after).maxScores, before.maxScores);
  for (double scale : after.underflowScale)
    EXPECT_LT(scale, 13 * 3);
}

TEST(Oracle, ScoreOfMinusInfinityDrops) {
  Inputs in({1, 6, 6, 1, 1, 3, 5});
  std::vector<double> table(36);
  for (int i = 0; i != 6; ++i)
    for (int j = 0; j != 6; ++j)
      table[i * 6 + j] = j < i ? 0 : -infinity; // Row 0 sees no key.
  Result added = evaluate(in.problem({}, {bias(in.sizes, {6, 6}, table)}),
                          allRows(in.sizes));
  Result dropped =
      evaluate(in.problem({[](const Point &p) { return p.j < p.i; }}),
               allRows(in.sizes));
  EXPECT_EQ(added.out, dropped.out);
  EXPECT_EQ(added.lse, dropped.lse);
  EXPECT_EQ(added.lse[0], -infinity);
  EXPECT_EQ(added.amplification, dropped.amplification);
}

TEST(Oracle, NaNShows) {
  Inputs in({1, 1, 9, 1, 1, 3, 2});
  in.key[4] = nan; // Of key 1.
  Result result = evaluate(in.problem(), allRows(in.sizes));
  EXPECT_TRUE(std::isnan(result.lse[0]));
  EXPECT_TRUE(std::isnan(result.out[0]));
}

TEST(Oracle, LargeScoresOnTheWayCount) {
  Inputs in({1, 2, 9, 1, 1, 3, 2});
  Score up = [](double s, const Point &) { return s + 1e6; };
  Score down = [](double s, const Point &) { return s - 1e6; };
  Result result = evaluate(in.problem({}, {up, down}), allRows(in.sizes));
  EXPECT_GT(result.amplification[0], 0.9e6);
  // But an infinity on the way would make a bound that holds for anything.
  Score drop = [](double, const Point &) { return -infinity; };
  result = evaluate(in.problem({}, {drop, softcap(3)}), allRows(in.sizes));
  EXPECT_LT(result.amplification[0], 20);
  EXPECT_EQ(result.lse[0], -3 + std::log(9.0));
}

//===----------------------------------------------------------------------===//
// Rows and threads
//===----------------------------------------------------------------------===//

TEST(Oracle, ThreadsDoNotMatter) {
  Inputs in({2, 50, 60, 4, 2, 8, 12});
  Problem problem = in.problem({causal(in.sizes)}, {softcap(2)});
  Result one = evaluate(problem, allRows(in.sizes), {.threads = 1});
  for (unsigned threads : {0, 2, 5}) {
    Result many = evaluate(problem, allRows(in.sizes), {.threads = threads});
    EXPECT_EQ(one.out, many.out);
    EXPECT_EQ(one.lse, many.lse);
    EXPECT_EQ(one.magnitude, many.magnitude);
    EXPECT_EQ(one.amplification, many.amplification);
    EXPECT_EQ(one.underflowScale, many.underflowScale);
  }
}

TEST(Oracle, SampledRowsAreTheSame) {
  Inputs in({2, 50, 60, 4, 2, 8, 12});
  Problem problem = in.problem({causal(in.sizes)}, {softcap(2)});
  Result whole = evaluate(problem, allRows(in.sizes));
  std::vector<Row> rows = sampleRows(in.sizes, 37, 11);
  std::swap(rows[3], rows[30]); // Any order will do.
  Result some = evaluate(problem, rows);
  EXPECT_EQ(some.rows, rows);
  for (size_t r = 0; r != rows.size(); ++r) {
    int64_t at = lseOffset(in.sizes, rows[r]);
    EXPECT_EQ(whole.rows[at], rows[r]);
    EXPECT_EQ(some.lse[r], whole.lse[at]);
    EXPECT_EQ(some.amplification[r], whole.amplification[at]);
    for (int64_t d = 0; d != 12; ++d) {
      EXPECT_EQ(some.out[r * 12 + d], whole.out[at * 12 + d]);
      EXPECT_EQ(some.magnitude[r * 12 + d], whole.magnitude[at * 12 + d]);
    }
  }
}

TEST(Oracle, SampleRows) {
  Sizes sizes = {2, 50, 60, 4, 2, 8, 12};
  for (int64_t count : {1, 2, 3, 100, 399}) {
    std::vector<Row> rows = sampleRows(sizes, count, 5);
    ASSERT_EQ(int64_t(rows.size()), count);
    EXPECT_EQ(rows.front(), (Row{0, 0, 0}));
    if (count > 1) {
      EXPECT_EQ(rows.back(), (Row{1, 3, 49}));
    }
    for (size_t r = 1; r < rows.size(); ++r)
      EXPECT_LT(lseOffset(sizes, rows[r - 1]), lseOffset(sizes, rows[r]));
  }
  EXPECT_TRUE(sampleRows(sizes, 0, 5).empty());
  EXPECT_EQ(sampleRows(sizes, 400, 5), allRows(sizes));
  EXPECT_EQ(sampleRows(sizes, 1000, 5), allRows(sizes));
  EXPECT_EQ(sampleRows(sizes, 50, 5), sampleRows(sizes, 50, 5));
  EXPECT_NE(sampleRows(sizes, 50, 5), sampleRows(sizes, 50, 6));
}

TEST(Oracle, Progress) {
  Inputs in({2, 50, 60, 4, 2, 8, 12});
  int64_t last = 0, calls = 0;
  evaluate(in.problem(), allRows(in.sizes),
           {.threads = 3, .progress = [&](int64_t done, int64_t all) {
              EXPECT_GT(done, last);
              EXPECT_EQ(all, 400);
              last = done;
              ++calls;
            }});
  EXPECT_EQ(last, 400);
  EXPECT_GT(calls, 4);
}

TEST(OracleDeathTest, WrongSizes) {
  Inputs in(mixedSizes);
  Problem problem = in.problem();
  problem.key = problem.key.first(5);
  EXPECT_DEATH(evaluate(problem, {}), "oracle: wrong size of key");
  EXPECT_DEATH(evaluate(in.problem(), {{0, 6, 0}}), "a row lies outside");
  EXPECT_DEATH(bias(mixedSizes, {13, 1}, std::vector<double>(13)),
               "wrong shape of a bias");
  EXPECT_DEATH(documents(mixedSizes, {1, 2}, {3}), "number of query ids");
  EXPECT_DEATH(alibi(mixedSizes, {1, 2}), "number of slopes");
  Result result = evaluate(in.problem(), {});
  EXPECT_DEATH(compare(result, {}, {}, toleranceF32), "wrong size of out");
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// A result, and tensors equal to it to spoil. Queries 0 and 1 see no key, and
/// dim 2 of all values is 0.
struct Comparison : testing::Test {
  Inputs in = [] {
    Inputs in({1, 12, 10, 4, 2, 8, 4});
    for (size_t k = 2; k < in.value.size(); k += 4)
      in.value[k] = 0;
    return in;
  }();
  Result result = evaluate(in.problem({causal(in.sizes)}), allRows(in.sizes));
  Tensors actual = wholeTensors(result);

  static constexpr Row row = {0, 3, 7}, emptyRow = {0, 1, 1};
  size_t number = lseOffset(in.sizes, row); // The order of all rows is lse's.

  double &out(const Row &at, int64_t d) {
    return actual.out[outOffset(in.sizes, at) + d];
  }
  double &lse(const Row &at) { return actual.lse[lseOffset(in.sizes, at)]; }
  Verdict verdict(const Tolerance &tolerance = toleranceF32) {
    return compare(result, actual.out, actual.lse, tolerance, actual.maxScores);
  }
};

TEST_F(Comparison, MaxScores) {
  double &largest = actual.maxScores[number], right = largest;
  double bound = result.maxBound(number, toleranceF32);
  for (double wrong :
       {right + 1.01 * bound, right - 1.01 * bound, infinity, -infinity, nan}) {
    largest = wrong;
    Verdict found = verdict();
    EXPECT_FALSE(found.pass()) << wrong;
    EXPECT_EQ(found.maxScores.failed, 1);
    EXPECT_EQ(found.maxScores.row, row);
    EXPECT_NE(found.text().find("max scores"), std::string::npos);
  }
  largest = right + 0.99 * bound;
  EXPECT_TRUE(verdict().pass());
  largest = right;
  double &empty = actual.maxScores[lseOffset(in.sizes, emptyRow)];
  EXPECT_EQ(empty, -infinity);
  empty = 0;
  EXPECT_FALSE(verdict().pass());
  // Without them nothing is compared.
  EXPECT_TRUE(compare(result, actual.out, actual.lse, toleranceF32).pass());
}

TEST(Oracle, MaxScoreOfScoresThatAreNotFinite) {
  Inputs in({1, 4, 4, 1, 1, 3, 5});
  std::vector<double> table(16);
  table[1] = nan;            // of row 0
  table[4] = table[6] = nan; // of row 1, in which one is infinite
  table[5] = infinity;
  std::fill_n(table.begin() + 8, 4, -infinity); // row 2
  Result result = evaluate(in.problem({}, {bias(in.sizes, {4, 4}, table)}),
                           allRows(in.sizes));
  EXPECT_TRUE(std::isnan(result.maxScores[0]));
  EXPECT_EQ(result.maxScores[1], infinity);
  EXPECT_EQ(result.maxScores[2], -infinity);
  EXPECT_TRUE(std::isfinite(result.maxScores[3]));
}

TEST_F(Comparison, Equal) {
  Verdict v = verdict();
  EXPECT_TRUE(v.pass());
  EXPECT_EQ(v.out.checked, 192);
  EXPECT_EQ(v.lse.checked, 48);
  EXPECT_EQ(v.out.worstRatio, 0);
  EXPECT_EQ(v.lse.largestError, 0);
  EXPECT_EQ(v.out.relativeError, 0);
}

TEST_F(Comparison, Bounds) {
  double a = result.amplification[number], m = result.magnitude[number * 4];
  double underflow = result.underflowScale[number], lse = result.lse[number];
  EXPECT_EQ(result.outBound(number, 0, {3, 0, 0}), 3 * a * m);
  EXPECT_EQ(result.outBound(number, 0, {0, 3, 0}), 3 * m);
  EXPECT_EQ(result.outBound(number, 0, {0, 0, 3}), 3 * underflow);
  EXPECT_EQ(result.outBound(number, 2, {3, 3, 3}), 0);
  EXPECT_EQ(result.lseBound(number, {3, 5, 5}), 3 * (a + std::abs(lse)));
}

TEST_F(Comparison, OneElementOfOut) {
  double bound = result.outBound(number, 1, toleranceF32);
  out(row, 1) += bound / 2;
  EXPECT_TRUE(verdict().pass());
  out(row, 1) += 1.5 * bound;
  Verdict v = verdict();
  EXPECT_FALSE(v.pass());
  EXPECT_EQ(v.out.failed, 1);
  EXPECT_EQ(v.out.nonFinite, 0);
  EXPECT_NEAR(v.out.worstRatio, 2, 1e-6);
  EXPECT_NEAR(v.out.largestError, 2 * bound, 1e-6 * bound);
  EXPECT_EQ(v.out.row, row);
  EXPECT_EQ(v.out.d, 1);
  EXPECT_EQ(v.out.bound, bound);
  EXPECT_EQ(v.out.actual, out(row, 1));
  EXPECT_EQ(v.out.expected, result.out[number * 4 + 1]);
  EXPECT_NE(v.text().find("out: FAILED, 192 compared, 1 wrong"),
            std::string::npos);
  EXPECT_NE(v.text().find("at b=0 h=3 i=7 d=1"), std::string::npos);
  EXPECT_TRUE(verdict(toleranceBF16).pass());
}

TEST_F(Comparison, OneElementOfLse) {
  double bound = result.lseBound(number, toleranceBF16);
  EXPECT_EQ(bound, result.lseBound(number, toleranceF32));
  lse(row) -= bound / 2;
  EXPECT_TRUE(verdict(toleranceBF16).pass());
  lse(row) -= 1.5 * bound;
  Verdict v = verdict(toleranceBF16);
  EXPECT_FALSE(v.pass());
  EXPECT_EQ(v.lse.failed, 1);
  EXPECT_EQ(v.out.failed, 0);
  EXPECT_EQ(v.lse.row, row);
  EXPECT_NE(v.text().find("lse: FAILED"), std::string::npos);
  // Without lse, nobody complains of it.
  EXPECT_TRUE(compare(result, actual.out, {}, toleranceBF16).pass());
}

TEST_F(Comparison, NotFinite) {
  for (double wrong : {nan, infinity, -infinity}) {
    out(row, 1) = wrong;
    lse(row) = wrong;
    Verdict v = verdict();
    EXPECT_FALSE(v.pass());
    for (const Deviation &deviation : {v.out, v.lse}) {
      EXPECT_EQ(deviation.failed, 1);
      EXPECT_EQ(deviation.nonFinite, 1);
      EXPECT_EQ(deviation.worstRatio, infinity);
      EXPECT_EQ(deviation.largestError, infinity);
      EXPECT_EQ(deviation.row, row);
    }
  }
}

TEST_F(Comparison, RowsWithoutKeys) {
  for (double wrong : {nan, infinity, -1e30, 0.0}) {
    lse(emptyRow) = wrong;
    EXPECT_EQ(verdict().lse.failed, 1) << wrong;
    EXPECT_EQ(verdict().lse.row, emptyRow);
  }
  for (double wrong : {nan, infinity, 1e-300}) {
    out(emptyRow, 0) = wrong;
    EXPECT_EQ(verdict().out.failed, 1) << wrong;
    EXPECT_EQ(verdict().out.row, emptyRow);
  }
  out(emptyRow, 0) = -0.0;
  EXPECT_EQ(verdict().out.failed, 0);
}

TEST_F(Comparison, SumsOfZeros) {
  EXPECT_EQ(out(row, 2), 0);
  out(row, 2) = 1e-300;
  Verdict v = verdict();
  EXPECT_EQ(v.out.failed, 1);
  EXPECT_EQ(v.out.row, row);
  EXPECT_EQ(v.out.d, 2);
}

TEST_F(Comparison, NaNOfTheOracleIsWanted) {
  result.out[number * 4] = nan;
  for (double wrong : {0.0, infinity}) {
    out(row, 0) = wrong;
    EXPECT_EQ(verdict().out.failed, 1);
  }
  out(row, 0) = nan;
  EXPECT_EQ(verdict().out.failed, 0);
  out(row, 1) = nan;
  EXPECT_EQ(verdict().out.failed, 1);
}

TEST_F(Comparison, WhatIsNotDeterminedIsNotCompared) {
  result.outExtra[number * 4 + 1] = infinity;
  result.lseExtra[number] = infinity;
  out(row, 1) = lse(row) = nan;
  Verdict v = verdict();
  EXPECT_TRUE(v.pass());
  EXPECT_EQ(v.out.undetermined, 1);
  EXPECT_EQ(v.out.checked, 191);
  EXPECT_EQ(v.lse.undetermined, 1);
  out(row, 2) = nan;
  EXPECT_EQ(verdict().out.failed, 1);
}

TEST(Oracle, RangesOfScoresWidenBounds) {
  // 1 / s, of products that are wrong by `error`.
  Inputs in({1, 40, 40, 1, 1, 4, 4}, 3);
  Score inverse = [](double s, const Point &) { return 1 / s; };
  Problem problem = in.problem({}, {inverse});
  problem.unit = toleranceF32.score;
  problem.range = [](double s, double error, const Point &) -> Range {
    if (std::abs(s) <= error)
      return {-infinity, infinity};
    double a = 1 / (s - error), b = 1 / (s + error);
    return {std::min(a, b), std::max(a, b)};
  };
  Result expected = evaluate(problem, allRows(in.sizes));
  // What a kernel makes that multiplies with an error of its own.
  Problem other = problem;
  other.range = {};
  other.scores = {[](double s, const Point &p) {
    return 1 / (s + (p.j % 2 ? 1 : -1) * 0x1p-24);
  }};
  Tensors kernel = wholeTensors(evaluate(other, allRows(in.sizes)));
  Verdict v = compare(expected, kernel.out, kernel.lse, toleranceF32);
  EXPECT_TRUE(v.pass()) << v.text();
  EXPECT_LT(v.out.undetermined, 20);
  Result narrow = evaluate(in.problem({}, {inverse}), allRows(in.sizes));
  EXPECT_FALSE(compare(narrow, kernel.out, kernel.lse, toleranceF32).pass());
  // A quarter of the keys is not seen.
  other.masks = {[](const Point &p) { return p.j >= 10; }};
  other.scores = {inverse};
  Tensors dropped = wholeTensors(evaluate(other, allRows(in.sizes)));
  EXPECT_FALSE(compare(expected, dropped.out, {}, toleranceF32).pass());
}

TEST_F(Comparison, BoundThatIsNotFiniteFails) {
  result.amplification[number] = infinity;
  EXPECT_TRUE(verdict().pass());
  out(row, 0) += 1e-3;
  lse(row) += 1e-3;
  EXPECT_EQ(verdict().out.failed, 1);
  EXPECT_EQ(verdict().lse.failed, 1);
}

TEST_F(Comparison, OnlyTheRowsThatWereEvaluated) {
  Result some = evaluate(in.problem({causal(in.sizes)}), {row, {0, 0, 5}});
  out(emptyRow, 0) = nan;
  Verdict v = compare(some, actual.out, actual.lse, toleranceF64);
  EXPECT_TRUE(v.pass());
  EXPECT_EQ(v.out.checked, 8);
  out(row, 0) = 5;
  v = compare(some, actual.out, actual.lse, toleranceF64);
  EXPECT_EQ(v.out.failed, 1);
}

//===----------------------------------------------------------------------===//
// The tolerances: what kernels do has to pass, what they must not do must not
//===----------------------------------------------------------------------===//

/// A kernel as real ones are: all in float, keys in blocks with running maximum
/// and sums, p and out rounded to `bits`.
Tensors kernel(const Inputs &in, int bits, double scale) {
  const Sizes &s = in.sizes;
  Tensors result = {std::vector<double>(s.outElements()),
                    std::vector<double>(s.lseElements()),
                    {}};
  for (const Row &row : allRows(s)) {
    const double *q =
        &in.query[((row.b * s.queries + row.i) * s.queryHeads + row.h) *
                  s.queryDim];
    float m = -INFINITY, l = 0;
    std::vector<float> o(s.valueDim), p(16);
    for (int64_t begin = 0; begin < s.keys; begin += 16) {
      float largest = m;
      for (int64_t j = 0; j != 16; ++j) {
        float dot = 0;
        for (int64_t d = 0; d != s.queryDim; ++d)
          dot += float(q[d]) *
                 float(in.key[(row.b * s.keys + begin + j) * s.queryDim + d]);
        p[j] = float(scale) * dot;
        largest = std::max(largest, p[j]);
      }
      float factor = std::exp(m - largest);
      m = largest;
      l *= factor;
      for (float &x : o)
        x *= factor;
      for (int64_t j = 0; j != 16; ++j) {
        float weight = std::exp(p[j] - m);
        l += weight;
        for (int64_t d = 0; d != s.valueDim; ++d)
          o[d] +=
              roundTo(weight, bits) *
              float(in.value[(row.b * s.keys + begin + j) * s.valueDim + d]);
      }
    }
    for (int64_t d = 0; d != s.valueDim; ++d)
      result.out[outOffset(s, row) + d] = roundTo(o[d] / l, bits);
    result.lse[lseOffset(s, row)] = m + std::log(l);
  }
  return result;
}

/// One key head, and elements that are numbers of 8 bits.
Inputs shortInputs(double factor) {
  Inputs in({1, 16, 1024, 2, 1, 64, 32}, 8);
  for (auto *tensor : {&in.query, &in.key, &in.value})
    for (double &x : *tensor)
      x = roundTo(float(x), 8);
  for (double &x : in.query)
    x *= factor;
  return in;
}

TEST(Tolerance, KernelsPass) {
  for (const Precision &precision : precisions)
    for (double factor : {0.0, 1.0, 64.0}) {
      Inputs in = shortInputs(factor);
      Result result = evaluate(in.problem(), allRows(in.sizes));
      Tensors actual = kernel(in, precision.bits, 0.125);
      Verdict v = compare(result, actual.out, actual.lse, precision.tolerance);
      EXPECT_TRUE(v.pass()) << precision.name << '\n' << v.text();
      RecordProperty(precision.name + std::to_string(int(factor)), v.text());
    }
}

TEST(Tolerance, WrongKernelsFail) {
  Inputs in = shortInputs(1);
  Result result = evaluate(in.problem(), allRows(in.sizes));
  for (const Precision &precision : precisions) {
    // Out left zero, and a scale that is wrong by 5 percent.
    Tensors zero = {std::vector<double>(in.sizes.outElements()), {}, {}};
    EXPECT_FALSE(compare(result, zero.out, {}, precision.tolerance).pass())
        << precision.name;
    Tensors scaled = kernel(in, precision.bits, 0.125 * 1.05);
    EXPECT_FALSE(compare(result, scaled.out, {}, precision.tolerance).pass())
        << precision.name;
    EXPECT_FALSE(
        compare(result, scaled.out, scaled.lse, precision.tolerance).pass());
  }
}

} // namespace
