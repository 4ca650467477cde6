//===- Compare.cpp - Results against the oracle's -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/oracle/Gradients.h"
#include "tools/oracle/Require.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

using namespace burst::oracle;

static constexpr double infinity = std::numeric_limits<double>::infinity();

int64_t burst::oracle::outOffset(const Sizes &sizes, const Row &row) {
  return ((row.b * sizes.queries + row.i) * sizes.queryHeads + row.h) *
         sizes.valueDim;
}

int64_t burst::oracle::lseOffset(const Sizes &sizes, const Row &row) {
  return (row.b * sizes.queryHeads + row.h) * sizes.queries + row.i;
}

double Result::outBound(size_t row, int64_t d,
                        const Tolerance &tolerance) const {
  double scale = magnitude[row * sizes.valueDim + d];
  double extra = outExtra[row * sizes.valueDim + d];
  if (scale == 0 && extra == 0)
    return 0;
  double relative = tolerance.score * amplification[row] + tolerance.value;
  return relative * scale + tolerance.underflow * underflowScale[row] + extra;
}

double Result::lseBound(size_t row, const Tolerance &tolerance) const {
  return tolerance.score * (amplification[row] + std::abs(lse[row])) +
         lseExtra[row];
}

double Result::maxBound(size_t row, const Tolerance &tolerance) const {
  return tolerance.score * amplification[row] + maxExtra[row];
}

namespace {

/// Collects the deviation of one tensor, element by element.
class Collector {
public:
  /// `extra` is a part of the bound: infinite, nothing is determined.
  void add(const Row &row, int64_t d, double actual, double expected,
           double bound, double extra) {
    if (extra == infinity) {
      ++result.undetermined;
      return;
    }
    ++result.checked;
    double error, ratio;
    if (std::isfinite(actual) && std::isfinite(expected)) {
      error = std::abs(actual - expected);
      // Without error any bound will do, also 0. With a bound that is not
      // finite nothing would be compared.
      ratio = error == 0 ? 0 : std::isfinite(bound) ? error / bound : infinity;
      squaredError += error * error;
      squaredNorm += expected * expected;
    } else {
      bool isSame =
          actual == expected || (std::isnan(actual) && std::isnan(expected));
      error = ratio = isSame ? 0 : infinity;
      result.bothNaN += std::isnan(actual) && std::isnan(expected);
      result.nonFinite += !std::isfinite(actual) && std::isfinite(expected);
    }
    result.failed += ratio > 1;
    result.largestError = std::max(result.largestError, error);
    if (result.checked > 1 && ratio <= result.worstRatio)
      return;
    result.worstRatio = ratio;
    result.row = row;
    result.d = d;
    result.actual = actual;
    result.expected = expected;
    result.bound = bound;
  }

  Deviation take() {
    if (squaredError > 0)
      result.relativeError = std::sqrt(squaredError / squaredNorm);
    return result;
  }

private:
  Deviation result;
  double squaredError = 0, squaredNorm = 0;
};

} // namespace

Verdict burst::oracle::compare(const Result &expected,
                               std::span<const double> out,
                               std::span<const double> lse,
                               const Tolerance &tolerance,
                               std::span<const double> maxScores) {
  const Sizes &sizes = expected.sizes;
  require(int64_t(out.size()) == sizes.outElements(), "wrong size of out");
  require(lse.empty() || int64_t(lse.size()) == sizes.lseElements(),
          "wrong size of lse");
  require(maxScores.empty() || int64_t(maxScores.size()) == sizes.lseElements(),
          "wrong size of maxScores");
  Collector outs, lses, maxima;
  for (size_t r = 0; r != expected.rows.size(); ++r) {
    const Row &row = expected.rows[r];
    for (int64_t d = 0; d != sizes.valueDim; ++d)
      outs.add(row, d, out[outOffset(sizes, row) + d],
               expected.out[r * sizes.valueDim + d],
               expected.outBound(r, d, tolerance),
               expected.outExtra[r * sizes.valueDim + d]);
    if (!lse.empty())
      lses.add(row, 0, lse[lseOffset(sizes, row)], expected.lse[r],
               expected.lseBound(r, tolerance), expected.lseExtra[r]);
    if (!maxScores.empty())
      maxima.add(row, 0, maxScores[lseOffset(sizes, row)],
                 expected.maxScores[r], expected.maxBound(r, tolerance),
                 expected.maxExtra[r]);
  }
  return {outs.take(), lses.take(), maxima.take()};
}

double Gradient::bound(size_t at, const Tolerance &tolerance) const {
  if (stateScale[at] == 0 && ownError[at] == 0)
    return 0;
  return tolerance.score * stateScale[at] + tolerance.value * elementScale[at] +
         tolerance.underflow * underflowScale[at] + ownError[at];
}

static int64_t elementsOf(const Gradient &gradient) {
  return gradient.batch * gradient.positions * gradient.heads * gradient.dims;
}

/// Where a row begins in the whole tensor.
static int64_t offsetOf(const Gradient &gradient, const Row &row) {
  int64_t position = row.b * gradient.positions + row.i;
  return (position * gradient.heads + row.h) * gradient.dims;
}

Gradient burst::oracle::withValues(Gradient gradient,
                                   std::span<const double> whole) {
  require(int64_t(whole.size()) == elementsOf(gradient),
          "wrong size of a gradient");
  for (size_t r = 0; r != gradient.rows.size(); ++r)
    std::copy_n(whole.begin() + offsetOf(gradient, gradient.rows[r]),
                gradient.dims,
                gradient.value.begin() + int64_t(r) * gradient.dims);
  return gradient;
}

Deviation burst::oracle::compare(const Gradient &expected,
                                 std::span<const double> actual,
                                 const Tolerance &tolerance) {
  require(int64_t(actual.size()) == elementsOf(expected),
          "wrong size of a gradient");
  Collector collector;
  for (size_t r = 0; r != expected.rows.size(); ++r) {
    const Row &row = expected.rows[r];
    for (int64_t d = 0; d != expected.dims; ++d) {
      size_t at = r * expected.dims + d;
      collector.add(row, d, actual[offsetOf(expected, row) + d],
                    expected.value[at], expected.bound(at, tolerance),
                    expected.ownError[at]);
    }
  }
  return collector.take();
}

std::string burst::oracle::describe(const std::string &name,
                                    const Deviation &deviation, bool hasDim) {
  std::ostringstream os;
  const Deviation &dev = deviation;
  os << name << ": ";
  if (dev.checked == 0) {
    os << (dev.undetermined ? "not determined" : "not compared");
    return os.str();
  }
  os << (dev.failed ? "FAILED, " : "ok, ") << dev.checked << " compared, "
     << dev.failed << " wrong, " << dev.nonFinite << " wrongly not finite, "
     << dev.bothNaN << " NaN as expected, " << dev.undetermined
     << " not determined; " << std::setprecision(3) << "largest error "
     << dev.largestError << ", relative error " << dev.relativeError
     << ", worst error/bound " << dev.worstRatio << " at b=" << dev.row.b
     << " h=" << dev.row.h << " i=" << dev.row.i;
  if (hasDim)
    os << " d=" << dev.d;
  os << std::setprecision(17) << ": " << dev.actual << ", expected "
     << dev.expected << std::setprecision(3) << " within " << dev.bound;
  return os.str();
}

std::string Verdict::text() const {
  std::string text =
      describe("out", out) + '\n' + describe("lse", lse, /*hasDim=*/false);
  if (maxScores.checked + maxScores.undetermined != 0)
    text += '\n' + describe("max scores", maxScores, /*hasDim=*/false);
  return text;
}
