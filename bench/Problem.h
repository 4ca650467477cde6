//===- Problem.h - attention that is measured -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_PROBLEM_H
#define BURST_BENCH_PROBLEM_H

#include <cstdint>
#include <string>
#include <vector>

namespace burst::bench {

enum class Mask : uint8_t { Full, Causal, Window, Documents, Prefix };

/// Attention, in zigzag order; of few queries against many keys, whose
/// positions are the last ones, in one piece.
struct Problem {
  std::string type = "f32";
  bool isBackward = false;
  Mask mask = Mask::Full;
  int64_t sequence = 4096, heads = 8, dim = 128, ranks = 1;
  int64_t parts = 0; ///< keys in a window or a prefix, or documents
  std::string strategy = "ring_kv";
  int64_t batch = 1;
  int64_t keyHeads = 0; ///< 0: as many as heads
  int64_t queries = 0;  ///< 0: as many as keys, of which `sequence` are
  int64_t nodes = 1;    ///< that share the ranks, along an axis of the grid

  /// A module with the function `attention`.
  std::string text(bool isDynamic = false) const;
  /// A module with the function `step`: the forward pass and the backward pass
  /// of its results.
  std::string step() const;
  /// "backward f32 causal S=4096 D=128 H=8", "forward f32 full B=8 S=1x4096
  /// D=128 H=32/8".
  std::string name() const;
  /// "8", or "2x4" of two nodes.
  std::string grid() const;
  /// Pairs of a query and a key that the mask keeps, of one head.
  double pairs() const;
  /// Useful operations of these pairs in all heads: two products, or the five
  /// of the backward pass.
  double flops() const;
  /// Bytes of keys and values.
  double keyBytes() const;
  /// Lengths of the documents, uneven, and which one each position is in.
  std::vector<int64_t> lengths() const;
  std::vector<int32_t> ids() const;
};

} // namespace burst::bench

#endif // BURST_BENCH_PROBLEM_H
