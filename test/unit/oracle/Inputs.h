//===- Inputs.h - Random problems for tests of the oracle -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_ORACLE_INPUTS_H
#define BURST_TEST_UNIT_ORACLE_INPUTS_H

#include "tools/oracle/Oracle.h"

#include <cmath>

namespace burst::oracle {

/// Multiples of 2^-20 in (-2, 2): products of them are exact in long double.
inline std::vector<double> randomValues(int64_t count, uint64_t seed,
                                        double factor = 1) {
  std::vector<double> values;
  uint64_t state = seed * 2 + 1;
  for (int64_t i = 0; i != count; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    values.push_back(factor * (double(state >> 42) * 0x1p-20 - 2));
  }
  return values;
}

struct Inputs {
  Sizes sizes;
  std::vector<double> query, key, value;

  explicit Inputs(const Sizes &sizes, uint64_t seed = 1, double factor = 1)
      : sizes(sizes), query(randomValues(sizes.queryElements(), seed, factor)),
        key(randomValues(sizes.keyElements(), seed + 1)),
        value(randomValues(sizes.valueElements(), seed + 2)) {}

  Problem problem(std::vector<Mask> masks = {},
                  std::vector<Score> scores = {}) const {
    return {sizes,
            std::nullopt,
            query,
            key,
            value,
            std::move(masks),
            std::move(scores)};
  }
};

/// Rounds to `bits` of significand, in the range of normal floats.
inline float roundTo(float x, int bits) {
  if (x == 0)
    return x;
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, bits - exponent)),
                    exponent - bits);
}

/// A type that kernels compute with.
struct Precision {
  const char *name;
  int bits;
  Tolerance tolerance;
};
inline constexpr Precision precisions[] = {{"f32", 24, toleranceF32},
                                           {"f16", 11, toleranceF16},
                                           {"bf16", 8, toleranceBF16}};

} // namespace burst::oracle

#endif // BURST_TEST_UNIT_ORACLE_INPUTS_H
