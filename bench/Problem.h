//===- Problem.h - attention that is measured -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_PROBLEM_H
#define BURST_BENCH_PROBLEM_H

#include <cstdint>
#include <string>
#include <vector>

namespace burst::bench {

enum class Mask : uint8_t { Full, Causal, Window, Documents };

/// Attention of one batch, as many key heads as query heads, in zigzag order.
struct Problem {
  std::string type = "f32";
  bool isBackward = false;
  Mask mask = Mask::Full;
  int64_t sequence = 4096, heads = 8, dim = 128, ranks = 1;
  int64_t parts = 0; ///< keys in a window, or documents
  std::string strategy = "ring_kv";

  /// A module with the function `attention`.
  std::string text(bool isDynamic = false) const;
  /// A module with the function `step`: the forward pass and the backward pass
  /// of its results.
  std::string step() const;
  /// "backward f32 causal S=4096 D=128 H=8".
  std::string name() const;
  /// Pairs of a query and a key that the mask keeps, of one head.
  double pairs() const;
  /// Useful operations of these pairs in all heads: two products, or the five
  /// of the backward pass.
  double flops() const;
  /// Lengths of the documents, uneven, and which one each position is in.
  std::vector<int64_t> lengths() const;
  std::vector<int32_t> ids() const;
};

} // namespace burst::bench

#endif // BURST_BENCH_PROBLEM_H
