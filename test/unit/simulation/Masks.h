//===- Masks.h - masks by name and by pair ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_SIMULATION_MASKS_H
#define BURST_TEST_UNIT_SIMULATION_MASKS_H

#include <cstdint>

namespace burst::test {

struct NamedMask {
  const char *text;
  /// With i counted so that the last query is the last key; null without a
  /// mask.
  bool (*keeps)(int64_t i, int64_t j);
};

inline constexpr NamedMask masks[] = {
    {"", nullptr},
    {"causal", [](int64_t i, int64_t j) { return j <= i; }},
    {"window<left = 9, right = 0>",
     [](int64_t i, int64_t j) { return j <= i && j >= i - 9; }},
    {"prefix<5>", [](int64_t i, int64_t j) { return j < 5 || j <= i; }},
};

} // namespace burst::test

#endif
