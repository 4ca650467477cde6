//===- Oracle.h - Attention in fp64, to compare with ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain evaluation of attention that every numerical test compares with,
// and the comparison. It shares nothing with the compiler, neither code nor
// formulas:
//
//   s[b,h,i,j] = score(scale * sum_d query[b,i,h,d] * key[b,j,h/g,d])
//   lse[b,h,i] = log sum_j exp(s[b,h,i,j])        over j where mask(b, h, i, j)
//   out[b,i,h] = sum_j exp(s[b,h,i,j] - lse[b,h,i]) * value[b,j,h/g]
//   maxScores[b,h,i] = max_j s[b,h,i,j]           over the same j
//
// with g = queryHeads / keyHeads. A row that sees no key has out = 0 and both
// lse and maxScores = -inf; a key of score -inf counts as not seen. A score of
// +inf is larger than NaN. What the mask drops is never computed with, so
// dropped keys and values may be NaN.
//
// All tensors are row-major doubles: query, key, value and out (batch,
// sequence, heads, dim), lse and maxScores (batch, heads, sequence). Arguments
// of the wrong size are mistakes of the caller and end the program with a
// message.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TOOLS_ORACLE_ORACLE_H
#define BURST_TOOLS_ORACLE_ORACLE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace burst::oracle {

struct Sizes {
  int64_t batch, queries, keys, queryHeads, keyHeads, queryDim, valueDim;

  int64_t queryElements() const {
    return batch * queries * queryHeads * queryDim;
  }
  int64_t keyElements() const { return batch * keys * keyHeads * queryDim; }
  int64_t valueElements() const { return batch * keys * keyHeads * valueDim; }
  int64_t outElements() const {
    return batch * queries * queryHeads * valueDim;
  }
  int64_t lseElements() const { return batch * queryHeads * queries; }
};

/// One query of one head: a row of scores.
struct Row {
  int64_t b, h, i;
  bool operator==(const Row &) const = default;
};

/// A query and a key, of one head.
struct Point {
  int64_t b, h, i, j;
};

//===----------------------------------------------------------------------===//
// Masks and scores. Called from many threads at once.
//===----------------------------------------------------------------------===//

/// Whether to keep a pair.
using Mask = std::function<bool(const Point &)>;

Mask causal(const Sizes &sizes);
/// A side that is left out is not bounded.
Mask window(const Sizes &sizes, std::optional<int64_t> left,
            std::optional<int64_t> right);
Mask prefix(const Sizes &sizes, int64_t length);
/// Ids by position, or by batch and position.
Mask documents(const Sizes &sizes, std::vector<int64_t> queryIds,
               std::vector<int64_t> keyIds);

/// The new score of a pair that is kept.
using Score = std::function<double(double s, const Point &)>;

/// Slopes by head, or by batch and head.
Score alibi(const Sizes &sizes, std::vector<double> slopes);
Score softcap(double cap);
/// `shape` is (queries, keys) or (batch, heads, queries, keys); in the latter a
/// dimension of size 1 is broadcast.
Score bias(const Sizes &sizes, std::vector<int64_t> shape,
           std::vector<double> values);

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// What a score may be.
struct Range {
  double lo, hi;
};

/// All that the scores together may be in the arithmetic of a kernel, where the
/// product in front of them is wrong by `error`. NaN where the score is NaN
/// whatever is rounded; infinite where it is not determined.
using ScoreRange = std::function<Range(double s, double error, const Point &)>;

struct Problem {
  Sizes sizes;
  std::optional<double> scale; ///< 1 / sqrt(queryDim) when left out.
  std::span<const double> query, key, value;
  std::vector<Mask> masks;   ///< A pair is kept that all of them keep.
  std::vector<Score> scores; ///< Applied in this order.
  /// Where scores may be worse conditioned than by a factor of 1: their range,
  /// and the error of a product by its magnitude, `score` of the tolerance.
  ScoreRange range = {};
  double unit = 0;
};

/// All rows, in the order of lse.
std::vector<Row> allRows(const Sizes &sizes);

/// At most `count` rows, spread evenly over all of them and random in detail,
/// the first and the last one included. The same seed gives the same rows.
std::vector<Row> sampleRows(const Sizes &sizes, int64_t count, uint64_t seed);

struct Options {
  unsigned threads = 0; ///< 0: as many as the machine has.
  /// Called now and then with rows done and rows in all, never twice at once.
  std::function<void(int64_t, int64_t)> progress = {};
};

/// What rounding may cost, by element type; see Result.
struct Tolerance;

/// The rows that were asked for, in that order: row r has one element of each
/// vector, or valueDim elements from r * valueDim on.
///
/// Besides the result it holds what errors are measured by. A computation that
/// rounds to u computes each score with an absolute error of about u * a,
///
///   a = max_j max(|scale| * sum_d |query_d * key_d|, |s_j after each score|),
///
/// which is a relative error of p = exp(s - lse), and the sum over p * value
/// adds relative errors of its own: hence
///
///   |error of out| <= (score * (1 + a) + value) * sum_j p_j |value_j|
///   |error of lse| <= score * (1 + a + |lse|)
///   |error of maxScores| <= score * (1 + a)
///
/// `score` is boundFactor times the unit roundoff of the state type, in which
/// scores and sums are. `value` covers that 16-bit kernels also round p and out
/// to the element type; that error does not grow with a. Tiny p may be lost to
/// underflow, which adds `underflow` * sum_j (1 + max_d |value_jd|) to the
/// first. Where sum_j p_j |value_j| is 0, out must be exactly 0.
///
/// A score whose range is wider than that, [lo, hi], makes p as large as
/// exp(hi - lse) and as small as exp(lo - lse): with c the larger change,
///
///   |error of out| <= sum_j c_j |value_j - out| / sum_j exp(lo_j - lse),
///
/// and no more than the largest |value_j - out|, which adds to the bound. Where
/// a range is infinite, results are not determined, and not compared.
struct Result {
  Sizes sizes;
  std::vector<Row> rows;
  std::vector<double> out, lse, maxScores;
  std::vector<double> magnitude; ///< Per element of out: sum_j p_j |value_j|
  std::vector<double> amplification;  ///< Per row: 1 + a
  std::vector<double> underflowScale; ///< Per row: sum_j (1 + max_d |value_jd|)
  /// What ranges of scores add: per element of out, and per row.
  std::vector<double> outExtra, lseExtra, maxExtra;

  double outBound(size_t row, int64_t d, const Tolerance &tolerance) const;
  double lseBound(size_t row, const Tolerance &tolerance) const;
  double maxBound(size_t row, const Tolerance &tolerance) const;
};

/// Evaluates the rows. The bits of a row depend neither on the other rows nor
/// on the number of threads. The oracle's own error is a small part of the
/// bounds for fp64, however long the sequence.
Result evaluate(const Problem &problem, std::vector<Row> rows,
                const Options &options = {});

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

struct Tolerance {
  double score, value, underflow;
};

/// Chosen once and frozen: the same for every mask, size, schedule and number
/// of ranks. A kernel that needs more is wrong.
inline constexpr double boundFactor = 16;
/// Rounding p and rounding out is one unit roundoff each; twice that.
inline constexpr double roundingFactor = 4;

inline constexpr Tolerance toleranceF64 = {boundFactor * 0x1p-53, 0, 0x1p-1022};
inline constexpr Tolerance toleranceF32 = {boundFactor * 0x1p-24, 0, 0x1p-126};
inline constexpr Tolerance toleranceF16 = {boundFactor * 0x1p-24,
                                           roundingFactor * 0x1p-11, 0x1p-25};
inline constexpr Tolerance toleranceBF16 = {boundFactor * 0x1p-24,
                                            roundingFactor * 0x1p-8, 0x1p-126};

/// How far one tensor is from the oracle.
struct Deviation {
  int64_t checked = 0; ///< Elements compared.
  int64_t failed = 0;  ///< Of these, beyond their bound or wrongly not finite.
  int64_t nonFinite = 0;    ///< Of these, not finite where the oracle is.
  int64_t bothNaN = 0;      ///< Of these, NaN, and so is the oracle.
  int64_t undetermined = 0; ///< Not compared: rounding decides what they are.
  double largestError = 0;  ///< The largest absolute error; NaN counts as inf.
  double relativeError = 0; ///< |actual - expected| / |expected|, of 2-norms.

  /// The largest error / bound: above 1 is a failure. Where it is:
  double worstRatio = 0;
  Row row = {};
  int64_t d = 0; ///< For lse always 0.
  double actual = 0, expected = 0, bound = 0;

  /// Whether an element was compared, where there are any.
  bool isCompared() const { return checked != 0 || undetermined == 0; }
};

/// A line for people, without end of line. `hasDim`: d says something.
std::string describe(const std::string &name, const Deviation &deviation,
                     bool hasDim = true);

struct Verdict {
  Deviation out, lse, maxScores;
  bool pass() const {
    return out.failed == 0 && lse.failed == 0 && maxScores.failed == 0;
  }
  /// A line of each that was compared for people, the last one without end of
  /// line.
  std::string text() const;
};

/// Compares whole tensors with the rows that the oracle evaluated: `lse` and
/// `maxScores` where they are not empty. Where the oracle is infinite
/// (lse of a row without keys) the same infinity is wanted, where it is NaN (of
/// a row with a score that is) NaN is.
Verdict compare(const Result &expected, std::span<const double> out,
                std::span<const double> lse, const Tolerance &tolerance,
                std::span<const double> maxScores = {});

/// Where row (b, h, i) begins in out, and where it is in lse and maxScores.
int64_t outOffset(const Sizes &sizes, const Row &row);
int64_t lseOffset(const Sizes &sizes, const Row &row);

} // namespace burst::oracle

#endif // BURST_TOOLS_ORACLE_ORACLE_H
