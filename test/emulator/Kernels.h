//===- Kernels.h - Launches of the kernels in Inputs ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_EMULATOR_KERNELS_H
#define BURST_TEST_EMULATOR_KERNELS_H

#include "test/emulator/Float.h"
#include "test/emulator/Text.h"

#include <random>

namespace burst::emulator {

/// A matrix of 64x96 floats.
struct Transposition {
  Memory memory;
  std::vector<float> input = std::vector<float>(size_t(64) * 96);
  uint64_t in, out;
  Transposition() {
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = float(i);
    in = memory.add(input, "in", Memory::Access::ReadOnly);
    out = memory.allocate(4 * input.size(), "out");
  }
  Outcome launch(const Module &module, const Options &options = {}) {
    Arguments arguments;
    arguments.add(in).add(out).add(64).add(96);
    return module.launch("transpose", {3, 2}, {32, 8}, 0, arguments, memory,
                         options);
  }
};

/// A product of 128x128 by 128x128.
struct Product {
  Memory memory;
  std::vector<uint16_t> left = std::vector<uint16_t>(size_t(128) * 128),
                        right = left;
  uint64_t a, b, c;
  size_t sharedBytes = 16384;
  Product() {
    std::mt19937 random(1);
    for (auto *matrix : {&left, &right})
      for (uint16_t &x : *matrix)
        x = toBF16(float(int(random() % 17) - 8) / 4);
    a = memory.add(left, "a", Memory::Access::ReadOnly);
    b = memory.add(right, "b", Memory::Access::ReadOnly);
    c = memory.allocate(4 * left.size(), "c");
  }
  Outcome launch(const Module &module, const Options &options = {}) {
    Arguments arguments;
    arguments.add(a).add(b).add(c).add(128).add(128);
    return module.launch("product", {2, 2}, {128}, sharedBytes, arguments,
                         memory, options);
  }
  void check() const {
    auto got = memory.get<float>(c, left.size());
    for (size_t i = 0; i < 128; ++i)
      for (size_t j = 0; j < 128; ++j) {
        float want = 0;
        for (size_t k = 0; k < 128; ++k)
          want += fromBF16(left[i * 128 + k]) * fromBF16(right[k * 128 + j]);
        ASSERT_EQ(got[i * 128 + j], want) << i << ", " << j;
      }
  }
};

/// The sum of 1000 ones by 3 blocks.
struct Reduction {
  Memory memory;
  uint64_t in = memory.add(std::vector<float>(1000, 1.0F), "in"),
           parts = memory.allocate(12, "parts"),
           arrived = memory.add(std::vector<uint32_t>(1), "arrived"),
           out = memory.allocate(4, "out");
  Outcome launch(const Module &module, const Options &options = {}) {
    Arguments arguments;
    arguments.add(in).add(parts).add(arrived).add(out).add(1000);
    return module.launch("reduce", {3}, {128}, 0, arguments, memory, options);
  }
};

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_KERNELS_H
