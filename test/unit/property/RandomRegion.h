//===- RandomRegion.h - mask and score regions drawn by chance --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_PROPERTY_RANDOMREGION_H
#define BURST_TEST_UNIT_PROPERTY_RANDOMREGION_H

#include "test/unit/property/Captures.h"
#include "tools/oracle/Oracle.h"

namespace burst::test {

/// "mask(%b, ...) { ... }": ops at random, combinations of usual masks, or
/// both. Some ops are undefined in arith for some pairs.
std::string drawMaskRegion(Dice &dice, const oracle::Sizes &sizes,
                           Captures &captures);

/// "score(%s : f32, ...) { ... }": smooth and bounded, but that some keys may
/// get a score of -inf. What it captures is added to `captured`.
std::string drawScoreRegion(Dice &dice, const oracle::Sizes &sizes,
                            const std::string &state, Captures &captures,
                            std::vector<Capture> &captured);

/// The same of ops at random, in f64: neither smooth nor bounded nor always
/// finite.
std::string drawWildScoreRegion(Dice &dice, const oracle::Sizes &sizes,
                                Captures &captures);

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_RANDOMREGION_H
