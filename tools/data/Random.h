//===- Random.h - Reproducible random numbers -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter-based generator: every number is a pure function of (seed, stream,
// index). The same three give the same bits in every run, on every platform,
// for any count and in any order of evaluation; what other streams there are
// changes nothing in this one.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TOOLS_DATA_RANDOM_H
#define BURST_TOOLS_DATA_RANDOM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace burst::data {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
/// 3", SC 2011): a keyed bijection of 128-bit counters to random bits.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                               std::array<uint32_t, 2> key);

/// Numbers 0 to count - 1 of a stream of standard normals.
std::vector<double> normal(uint64_t seed, std::string_view stream,
                           size_t count);

} // namespace burst::data

#endif // BURST_TOOLS_DATA_RANDOM_H
