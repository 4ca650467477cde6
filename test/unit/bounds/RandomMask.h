//===- RandomMask.h - Masks and rectangles drawn by chance ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_BOUNDS_RANDOMMASK_H
#define BURST_TEST_UNIT_BOUNDS_RANDOMMASK_H

#include "test/unit/bounds/Masks.h"

#include "mlir/IR/Builders.h"

#include <random>

namespace burst::test {

class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}

  int64_t within(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(engine);
  }
  bool chance(int percent) { return within(1, 100) <= percent; }
  template <typename T>
  const T &pick(const std::vector<T> &from) {
    return from[within(0, from.size() - 1)];
  }
  template <typename T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[within(0, from.size() - 1)];
  }
  /// Small, or near where an integer of this width overflows.
  int64_t number(unsigned width);

private:
  std::mt19937_64 engine;
};

/// A mask, and what each of its arguments ranges over.
struct RandomMask {
  /// Ops at random; one op; combinations of usual masks.
  enum Kind : uint8_t { Random, Single, Usual };
  Kind kind;
  mlir::OwningOpRef<mlir::Operation *> op;
  std::deque<Table> tables;
  llvm::SmallVector<Extent> rectangle;
  llvm::SmallVector<bool> captured;
};

RandomMask drawMask(mlir::MLIRContext &context, Random &random,
                    RandomMask::Kind kind);

/// A rectangle in another one; captured arguments may change at will.
llvm::SmallVector<Extent> drawPart(RandomMask &mask, Random &random);

/// A rectangle around that of the mask.
llvm::SmallVector<Extent> drawAround(RandomMask &mask, Random &random);

} // namespace burst::test

#endif // BURST_TEST_UNIT_BOUNDS_RANDOMMASK_H
