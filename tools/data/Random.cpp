//===- Random.cpp - Reproducible random numbers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same bits on every platform take integers and the operations that IEEE
// 754 rounds exactly (+ - * / sqrt), and a compiler that fuses none of them:
// this file is compiled with -ffp-contract=off. The C library's log and cos
// would not do, they may differ in the last place from machine to machine.
//
//===----------------------------------------------------------------------===//

#include "tools/data/Random.h"

#include <cmath>
#include <numbers>

using namespace burst::data;

std::array<uint32_t, 4> burst::data::philox(std::array<uint32_t, 4> counter,
                                            std::array<uint32_t, 2> key) {
  for (int round = 0; round != 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * counter[0];
    uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
               uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// 64-bit FNV-1a; the streams of one seed are told apart by it.
static uint64_t streamHash(std::string_view stream) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : stream)
    hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return hash;
}

/// The logarithm of a positive normal number: with x = 2^e * m and m about 1,
/// log m = 2 atanh(z), z = (m - 1) / (m + 1), by its power series.
static double portableLog(double x) {
  int e;
  double m = std::frexp(x, &e);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --e;
  }
  double z = (m - 1) / (m + 1), sum = 0;
  for (int k = 23; k >= 1; k -= 2)
    sum = sum * (z * z) + 1.0 / k;
  return e * std::numbers::ln2 + 2 * z * sum;
}

/// cos(2 pi u) for u in [0, 1): folded to the first quarter of the turn, then
/// the power series.
static double portableCosTurn(double u) {
  double turn = u < 0.5 ? u : 1 - u;
  bool negative = turn > 0.25;
  double x = 2 * std::numbers::pi * (negative ? 0.5 - turn : turn), sum = 1;
  for (int k = 22; k >= 2; k -= 2)
    sum = 1 - sum * (x * x) * (1.0 / (k * (k - 1)));
  return negative ? -sum : sum;
}

/// Number `index` of the stream with this hash.
static double normalAt(uint64_t seed, uint64_t hash, uint64_t index) {
  std::array<uint32_t, 4> bits = philox({uint32_t(index), uint32_t(index >> 32),
                                         uint32_t(hash), uint32_t(hash >> 32)},
                                        {uint32_t(seed), uint32_t(seed >> 32)});
  // Two uniform numbers of 53 bits, the first in (0, 1], the second in [0, 1);
  // Box and Muller make a normal one of them.
  double radius = double((uint64_t{bits[1]} << 32 | bits[0]) >> 11) + 1;
  double angle = double((uint64_t{bits[3]} << 32 | bits[2]) >> 11);
  return std::sqrt(-2 * portableLog(radius * 0x1p-53)) *
         portableCosTurn(angle * 0x1p-53);
}

std::vector<double> burst::data::normal(uint64_t seed, std::string_view stream,
                                        size_t count) {
  uint64_t hash = streamHash(stream);
  std::vector<double> values(count);
  for (size_t i = 0; i != count; ++i)
    values[i] = normalAt(seed, hash, i);
  return values;
}
