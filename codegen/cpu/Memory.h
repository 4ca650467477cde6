//===- Memory.h - what kernels need beside a program's tensors --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CPU_MEMORY_H
#define BURST_CODEGEN_CPU_MEMORY_H

#include "codegen/cpu/Target.h"
#include "passes/Simulation/Binding.h"

namespace burst::cpu {

/// Bytes of packed operands that each rank of a ring program holds at most,
/// with these global arguments; the counterexample where its schedule cannot be
/// run. They are those of one attend at a time, for all heads, in the type of
/// the state, or of bf16 where the target takes that in pairs. With C keys and
/// R queries in a tile, n tiles of keys and m of queries in what is at hand,
/// and | | rounding up to a panel,
///
///     forward:  batch * key heads * n * C * (query dim + |value dim|) * bytes
///     backward: batch * (key heads * n * C * (query dim + |query dim| + value
///     dim)
///                 + query heads * m * R * (|query dim| + |value dim|)) * bytes
///
/// where n is the sum over segments of ceil(keys / C), and m alike. An attend
/// that computes no pair of segments packs nothing, but for one that begins and
/// ends its softmax, and for what a backward pass packs in front of its loop.
/// Pairs round the query dim up to an even number. A gradient of a captured
/// table adds, where batches or heads may contribute to the same elements of
/// it,
///
///     (batches * key heads - 1) * elements * bytes
///
/// with 1 in place of what the score tells apart.
///
/// Without local tiling, pairs are not used, and what is stored of pairs of
/// tiles, scores forward, weights and their gradients backward, adds
///
///     batch * query heads * m * R * n * C * (1, or backward 2) * bytes
///
/// where backward R is rounded up to whole register tiles, and C is wider by
/// one, in whole panels.
///
/// Of queries that are few (see FewQueries.h) nothing is packed; of p parts of
/// their keys, and of Q queries at hand, there are states of
///
///     batch * query heads * p * Q * (value dim + 2) * bytes
///
/// Where scores are stored (ring.score), keys and values are packed one after
/// the other, each as above.
std::optional<Counterexample> planPacking(Simulation &simulation,
                                          llvm::ArrayRef<Argument> globals,
                                          const Target &given,
                                          std::vector<int64_t> &bytes);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_MEMORY_H
