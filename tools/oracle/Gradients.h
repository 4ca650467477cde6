//===- Gradients.h - Gradients of attention, to compare with ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain evaluation of the backward pass. Like the forward pass's it shares
// nothing with the compiler:
//
//   t[b,h,i,j]   = scale * sum_d query[b,i,h,d] * key[b,j,h/g,d]
//   p[b,h,i,j]   = exp(score(t) - lse[b,h,i])     where mask(b, h, i, j), else
//   0 delta[b,h,i] = sum_d out[b,i,h,d] * outGrad[b,i,h,d] - lseGrad[b,h,i]
//   w[b,h,i,j]   = p * (sum_d outGrad[b,i,h,d] * value[b,j,h/g,d] - delta)
//   u[b,h,i,j]   = w * (d score / d t)
//
//   queryGrad[b,i,h] = scale * sum_j u * key[b,j,h/g]
//   keyGrad[b,j,n]   = scale * sum_{h,i} u * query[b,i,h]     over h / g = n
//   valueGrad[b,j,n] =         sum_{h,i} p * outGrad[b,i,h]   over h / g = n
//   tableGrad[x]     = sum w * (d score / d table[x])
//
// A row without keys, one of lse = -inf, has gradients 0 and gives none.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TOOLS_ORACLE_GRADIENTS_H
#define BURST_TOOLS_ORACLE_GRADIENTS_H

#include "tools/oracle/Oracle.h"

namespace burst::oracle {

//===----------------------------------------------------------------------===//
// Slopes of scores
//===----------------------------------------------------------------------===//

/// How a score changes with what goes in, and with what tables hold.
struct Slope {
  double slope = 1;     ///< d score / d s
  double curvature = 0; ///< |d slope / d s|, roughly
  double error = 0;     ///< How wrong `slope` may be for other reasons.

  struct Element {
    int64_t table; ///< Its number among BackwardProblem::tables.
    int64_t index; ///< Row-major.
    double slope, error = 0;
  };
  std::vector<Element> elements; ///< Of tables whose gradients are wanted.
};

/// Of a score that is wrong by `error`; `elements` is only asked for where
/// gradients of tables are.
using ScoreSlope = std::function<Slope(double s, double error, const Point &,
                                       bool wantsElements)>;

/// Those of the scores of the same names. `table` is the number of the gradient
/// by slopes or by values, where it is wanted.
ScoreSlope alibiSlope(const Sizes &sizes, int64_t slopes,
                      std::optional<int64_t> table = {});
ScoreSlope softcapSlope(double cap);
ScoreSlope biasSlope(const Sizes &sizes, std::vector<int64_t> shape,
                     std::optional<int64_t> table = {});

/// The slope of any function, from differences. Near a kink that is nearer than
/// the least difference, the error says so.
Slope differentiate(const std::function<double(double)> &function, double at);

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

struct BackwardProblem {
  Problem forward;
  std::vector<ScoreSlope> slopes; ///< Of `forward.scores`, one for each.
  /// As they are given to the backward pass; where one is empty, that of
  /// `forward`, without rounding.
  std::span<const double> out, lse;
  std::span<const double> outGrad;
  std::span<const double> lseGrad; ///< Empty: 0.
  std::vector<int64_t> tables;     ///< Sizes of tables with a gradient.
};

/// A gradient, and what errors are measured by. With A = 1 + a + |lse|, where
///
///   a = max(|scale| * sum_d |query_d * key_d|, |s after each score|)
///
/// is that of the one pair, p has the relative error A u. The state type's u
/// also makes the errors of the two sums of products in w, so that
///
///   |error of w| <= u * W,
///   W = A * |w| + p * (sum_d |outGrad_d * value_d| +
///                      sum_d |out_d * outGrad_d| + |lseGrad|)
///
/// and the slope f of the score has an error of
///
///   u * F,   F = 1 + |f| + (1 + a) |curvature|
///
/// since it may be computed from terms of 1 that cancel, at a t that is
/// rounded. The slope e by an element of a table has one of
///
///   u * E,   E = min(|e / f|, 1 + a) + |e|
///
/// (1 + a where f = 0), since both go through the same terms, which are as
/// large for e as those of 1 for f. Kernels of 16 bits also round p and u, and
/// the results. Hence
///
///   |error of valueGrad| <= sum (score * A + value) * p * |outGrad|
///   |error of u|         <= score * (W * |f| + |w| * F) + value * |w f|
///   |error of keyGrad|   <= |scale| * sum |error of u| * |query|
///
/// and so on, with `score` and `value` those of the tolerance. What is not
/// given has the errors of the forward pass: for lse, A has its 1 + max a as
/// well; for out, W has (1 + max a) sum_j p_j |value_j| in place of |out|, and
/// `value` also multiplies that sum. Over all pairs of a gradient of a table
/// that adds up to far more than out is wrong by: who can should give it.
/// Nothing depends on ranks, order or strategy.
///
/// Ranges of scores, as of the forward pass, and errors of slopes add what they
/// make of p, w and u, without a factor: the oracle's own error. Where score *
/// A is no small number, p may be wrong by exp(score * A).
///
/// Of tiny p, w and results underflow may take `underflow` each. Where all
/// terms of a sum are 0, the gradient must be exactly 0.
struct Gradient {
  int64_t batch, positions, heads, dims; ///< Sizes of the whole tensor.
  std::vector<Row> rows; ///< Of it, these: batch, head, position.
  /// Row r has `dims` elements from r * dims on.
  std::vector<double> value;
  /// What `score`, `value` and `underflow` of the tolerance multiply, and the
  /// oracle's own error.
  std::vector<double> stateScale, elementScale, underflowScale, ownError;

  double bound(size_t at, const Tolerance &tolerance) const;
};

struct Gradients {
  Gradient query, key, value;
  std::vector<Gradient> tables; ///< Each of one row.

  /// In this order.
  std::vector<const Gradient *> all() const;
};

/// Sizes whose rows are those of the keys: batch, key head, position.
Sizes ofKeys(const Sizes &sizes);

/// Evaluates gradients by the queries and by the keys and values of these rows
/// (those of `allRows` or `sampleRows`, of `ofKeys` for keys), and all of the
/// tables. The bits do not depend on the other rows or the number of threads.
Gradients evaluate(const BackwardProblem &problem, std::vector<Row> queryRows,
                   const std::vector<Row> &keyRows,
                   const Options &options = {});

/// The same rows, with the values of a whole tensor: as if the oracle had said
/// them.
Gradient withValues(Gradient gradient, std::span<const double> whole);

/// Compares a whole tensor with the rows that were evaluated.
Deviation compare(const Gradient &expected, std::span<const double> actual,
                  const Tolerance &tolerance);

} // namespace burst::oracle

#endif // BURST_TOOLS_ORACLE_GRADIENTS_H
