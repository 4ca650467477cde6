//===- Dice.h - chance ------------------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_PROPERTY_DICE_H
#define BURST_TEST_UNIT_PROPERTY_DICE_H

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace burst::test {

/// The same throws for the same seed, with every C++ library.
class Dice {
public:
  explicit Dice(uint64_t seed) : engine(seed) {}

  /// Both ends included.
  int64_t within(int64_t lo, int64_t hi) {
    uint64_t count = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;
    uint64_t drawn = count == 0 ? engine() : engine() % count;
    return static_cast<int64_t>(static_cast<uint64_t>(lo) + drawn);
  }
  bool chance(int percent) { return within(1, 100) <= percent; }

  template <typename T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[within(0, from.size() - 1)];
  }
  template <typename T>
  const T &pick(const std::vector<T> &from) {
    return from[within(0, from.size() - 1)];
  }

  /// An integer of `width` bits, signed: small, or near where one overflows.
  int64_t number(unsigned width) {
    int64_t most = static_cast<int64_t>(~uint64_t{0} >> (65 - width));
    int64_t least = -most - 1;
    switch (within(0, 9)) {
    case 0:
      return least + within(0, 1);
    case 1:
      return most - within(0, 1);
    case 2:
      return within(least, most);
    default:
      return std::clamp<int64_t>(within(-4, 12), least, most);
    }
  }

private:
  std::mt19937_64 engine;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_DICE_H
