//===- InterpretPairs.h - regions at pairs of positions ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the interpreter's forward and backward pass share: the regions of a
// inputs at a pair of a query and a key, and rows of tensors.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_INTERPRET_INTERPRETPAIRS_H
#define BURST_PASSES_SIMULATION_INTERPRET_INTERPRETPAIRS_H

#include "passes/Simulation/Simulation.h"

#include <array>
#include <limits>

namespace burst::interpreting {

inline constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

/// Batch and head of this rank's tensors, and global positions, of a pair.
struct Pair {
  int64_t b, h, i, j;
};

/// The arguments of a region at a pair, the scaled score in front.
std::array<Scalar, 8> regionArguments(const AttendInputs &inputs, Pair pair,
                                      double s, double gradient = 0);

/// The score of a pair, -inf where the mask drops it. False on a fault.
bool applyRegions(const AttendInputs &inputs,
                  std::optional<RegionEvaluator> &mask,
                  std::optional<RegionEvaluator> &score, Pair pair, double &s,
                  std::optional<Fault> &fault);

/// Null where there is no region; false where it cannot be evaluated.
bool makeEvaluator(mlir::Region &region, llvm::ArrayRef<Argument> captures,
                   std::optional<RegionEvaluator> &evaluator,
                   std::string &message);

/// Shards must have the sizes that their layouts say.
bool checkSizes(const AttendInputs &inputs, llvm::ArrayRef<Slice> slices,
                std::string &message);

/// Of what did not arrive at all nothing was delivered either.
void poisonAbsent(llvm::ArrayRef<Tensor *> tensors);

/// The first element of (b, x, h) in a (batch, sequence, heads, dim) tensor.
inline double *row(Tensor &tensor, int64_t b, int64_t x, int64_t h) {
  return tensor.floats.data() +
         ((b * tensor.shape[1] + x) * tensor.shape[2] + h) * tensor.shape[3];
}

inline double dot(const double *a, const double *b, int64_t count) {
#pragma clang fp reassociate(on)
  double sum = 0;
  for (int64_t d = 0; d < count; ++d)
    sum += a[d] * b[d];
  return sum;
}

} // namespace burst::interpreting

#endif // BURST_PASSES_SIMULATION_INTERPRET_INTERPRETPAIRS_H
