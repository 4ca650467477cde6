//===- FloatOps.cpp - ops on floats and their derivatives -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/FloatOps.h"

#include <cmath>
#include <numbers>

using namespace burst;
using namespace std::numbers;

/// The larger or smaller one; what is no number stays.
static double extreme(double a, double b, bool isLargest) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  return (a < b) == isLargest ? b : a;
}

static void choose(bool isFirst, double *p) {
  p[0] = isFirst;
  p[1] = !isFirst;
}

namespace {
struct Entry {
  llvm::StringLiteral name;
  FloatOp op;
};
} // namespace

using Operands = const double *;

static constexpr Entry ops[] = {
    {"arith.addf",
     {[](Operands x) { return x[0] + x[1]; },
      [](Operands, double, double *p) { p[0] = p[1] = 1; }}},
    {"arith.subf",
     {[](Operands x) { return x[0] - x[1]; },
      [](Operands, double, double *p) { p[0] = 1, p[1] = -1; }}},
    {"arith.mulf",
     {[](Operands x) { return x[0] * x[1]; },
      [](Operands x, double, double *p) { p[0] = x[1], p[1] = x[0]; }}},
    {"arith.divf",
     {[](Operands x) { return x[0] / x[1]; },
      [](Operands x, double y, double *p) {
        p[0] = 1 / x[1], p[1] = -y / x[1];
      }}},
    {"arith.remf",
     {[](Operands x) { return std::fmod(x[0], x[1]); },
      [](Operands x, double y, double *p) {
        p[0] = 1, p[1] = (y - x[0]) / x[1];
      }}},
    {"arith.negf",
     {[](Operands x) { return -x[0]; },
      [](Operands, double, double *p) { p[0] = -1; }, /*isExact=*/true}},
    {"arith.extf",
     {[](Operands x) { return x[0]; },
      [](Operands, double, double *p) { p[0] = 1; }, /*isExact=*/true}},
    {"arith.maximumf",
     {[](Operands x) { return extreme(x[0], x[1], true); },
      [](Operands x, double, double *p) { choose(x[0] >= x[1], p); },
      /*isExact=*/true}},
    {"arith.minimumf",
     {[](Operands x) { return extreme(x[0], x[1], false); },
      [](Operands x, double, double *p) { choose(x[0] <= x[1], p); },
      /*isExact=*/true}},
    {"arith.maxnumf",
     {[](Operands x) { return std::fmax(x[0], x[1]); },
      [](Operands x, double, double *p) {
        choose(x[0] >= x[1] || std::isnan(x[1]), p);
      },
      /*isExact=*/true}},
    {"arith.minnumf",
     {[](Operands x) { return std::fmin(x[0], x[1]); },
      [](Operands x, double, double *p) {
        choose(x[0] <= x[1] || std::isnan(x[1]), p);
      },
      /*isExact=*/true}},
    {"math.atan2",
     {[](Operands x) { return std::atan2(x[0], x[1]); },
      [](Operands x, double, double *p) {
        double square = x[0] * x[0] + x[1] * x[1];
        p[0] = x[1] / square, p[1] = -x[0] / square;
      }}},
    {"math.copysign",
     {[](Operands x) { return std::copysign(x[0], x[1]); },
      [](Operands x, double, double *p) {
        p[0] =
            x[0] == 0 ? 0 : std::copysign(1.0, x[0]) * std::copysign(1.0, x[1]),
        p[1] = 0;
      },
      /*isExact=*/true}},
    {"math.powf",
     {[](Operands x) { return std::pow(x[0], x[1]); },
      [](Operands x, double y, double *p) {
        p[0] = x[1] == 0 ? 0 : x[1] * std::pow(x[0], x[1] - 1);
        p[1] = y == 0 ? 0 : y * std::log(x[0]);
      }}},
    {"math.fma",
     {[](Operands x) { return std::fma(x[0], x[1], x[2]); },
      [](Operands x, double, double *p) {
        p[0] = x[1], p[1] = x[0], p[2] = 1;
      }}},
    {"math.absf",
     {[](Operands x) { return std::fabs(x[0]); },
      [](Operands x, double, double *p) {
        *p = x[0] == 0 ? 0 : std::copysign(1.0, x[0]);
      },
      /*isExact=*/true}},
    {"math.acos",
     {[](Operands x) { return std::acos(x[0]); },
      [](Operands x, double, double *p) {
        *p = -1 / std::sqrt((1 - x[0]) * (1 + x[0]));
      }}},
    {"math.acosh",
     {[](Operands x) { return std::acosh(x[0]); },
      [](Operands x, double, double *p) {
        *p = 1 / (std::sqrt(x[0] - 1) * std::sqrt(x[0] + 1));
      }}},
    {"math.asin",
     {[](Operands x) { return std::asin(x[0]); },
      [](Operands x, double, double *p) {
        *p = 1 / std::sqrt((1 - x[0]) * (1 + x[0]));
      }}},
    {"math.asinh",
     {[](Operands x) { return std::asinh(x[0]); },
      [](Operands x, double, double *p) {
        *p = 1 / std::sqrt(x[0] * x[0] + 1);
      }}},
    {"math.atan",
     {[](Operands x) { return std::atan(x[0]); },
      [](Operands x, double, double *p) { *p = 1 / (x[0] * x[0] + 1); }}},
    {"math.atanh",
     {[](Operands x) { return std::atanh(x[0]); },
      [](Operands x, double, double *p) {
        *p = 1 / ((1 - x[0]) * (1 + x[0]));
      }}},
    {"math.cbrt",
     {[](Operands x) { return std::cbrt(x[0]); },
      [](Operands, double y, double *p) { *p = 1 / (3 * y * y); }}},
    {"math.ceil",
     {[](Operands x) { return std::ceil(x[0]); },
      [](Operands, double, double *p) { *p = 0; }, /*isExact=*/true}},
    {"math.cos",
     {[](Operands x) { return std::cos(x[0]); },
      [](Operands x, double, double *p) { *p = -std::sin(x[0]); }}},
    {"math.cosh",
     {[](Operands x) { return std::cosh(x[0]); },
      [](Operands x, double, double *p) { *p = std::sinh(x[0]); }}},
    {"math.erf",
     {[](Operands x) { return std::erf(x[0]); },
      [](Operands x, double, double *p) {
        *p = 2 * inv_sqrtpi * std::exp(-x[0] * x[0]);
      }}},
    {"math.erfc",
     {[](Operands x) { return std::erfc(x[0]); },
      [](Operands x, double, double *p) {
        *p = -2 * inv_sqrtpi * std::exp(-x[0] * x[0]);
      }}},
    {"math.exp",
     {[](Operands x) { return std::exp(x[0]); },
      [](Operands, double y, double *p) { *p = y; }}},
    {"math.exp2",
     {[](Operands x) { return std::exp2(x[0]); },
      [](Operands, double y, double *p) { *p = y * ln2; }}},
    {"math.expm1",
     {[](Operands x) { return std::expm1(x[0]); },
      [](Operands x, double, double *p) { *p = std::exp(x[0]); }}},
    {"math.floor",
     {[](Operands x) { return std::floor(x[0]); },
      [](Operands, double, double *p) { *p = 0; }, /*isExact=*/true}},
    {"math.log",
     {[](Operands x) { return std::log(x[0]); },
      [](Operands x, double, double *p) { *p = 1 / x[0]; }}},
    {"math.log10",
     {[](Operands x) { return std::log10(x[0]); },
      [](Operands x, double, double *p) { *p = 1 / (x[0] * ln10); }}},
    {"math.log1p",
     {[](Operands x) { return std::log1p(x[0]); },
      [](Operands x, double, double *p) { *p = 1 / (1 + x[0]); }}},
    {"math.log2",
     {[](Operands x) { return std::log2(x[0]); },
      [](Operands x, double, double *p) { *p = 1 / (x[0] * ln2); }}},
    {"math.round",
     {[](Operands x) { return std::round(x[0]); },
      [](Operands, double, double *p) { *p = 0; }, /*isExact=*/true}},
    {"math.roundeven",
     {[](Operands x) { return std::nearbyint(x[0]); },
      [](Operands, double, double *p) { *p = 0; }, /*isExact=*/true}},
    {"math.rsqrt",
     {[](Operands x) { return 1 / std::sqrt(x[0]); },
      [](Operands x, double y, double *p) { *p = -0.5 * y / x[0]; }}},
    {"math.sin",
     {[](Operands x) { return std::sin(x[0]); },
      [](Operands x, double, double *p) { *p = std::cos(x[0]); }}},
    {"math.sinh",
     {[](Operands x) { return std::sinh(x[0]); },
      [](Operands x, double, double *p) { *p = std::cosh(x[0]); }}},
    {"math.sqrt",
     {[](Operands x) { return std::sqrt(x[0]); },
      [](Operands, double y, double *p) { *p = 1 / (2 * y); }}},
    {"math.tan",
     {[](Operands x) { return std::tan(x[0]); },
      [](Operands, double y, double *p) { *p = y * y + 1; }}},
    {"math.tanh",
     {[](Operands x) { return std::tanh(x[0]); },
      [](Operands x, double, double *p) {
        *p = 1 / (std::cosh(x[0]) * std::cosh(x[0]));
      }}},
    {"math.trunc",
     {[](Operands x) { return std::trunc(x[0]); },
      [](Operands, double, double *p) { *p = 0; }, /*isExact=*/true}},
};

const FloatOp *burst::findFloatOp(llvm::StringRef name) {
  for (const Entry &entry : ops)
    if (entry.name == name)
      return &entry.op;
  return nullptr;
}
