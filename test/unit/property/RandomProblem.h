//===- RandomProblem.h - attentions drawn by chance -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problems are MLIR text and named tensors, as burst-run takes them: whatever
// fails here can be replayed there.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_TEST_UNIT_PROPERTY_RANDOMPROBLEM_H
#define BURST_TEST_UNIT_PROPERTY_RANDOMPROBLEM_H

#include "tools/data/Safetensors.h"
#include "tools/oracle/Oracle.h"

#include <algorithm>
#include <string>

namespace burst::test {

struct RandomProblem {
  uint64_t seed;
  oracle::Sizes sizes;
  std::string element, order;
  int64_t ranks; ///< over which the sequence is sharded
  /// Which optimisations burst-to-ring runs.
  bool drop, overlap;
  /// Bounds of the masks are exact: what is planned is the least there can be.
  bool isExact;
  std::string body; ///< of the module, without the grid
  data::Tensors tensors;
  /// Whether ends of states are fused, and each for itself.
  bool fuse = true, fuseSeparately = false;
  /// Over how many ranks heads and batch are, on other axes of the grid.
  int64_t headParts = 1, batchParts = 1;
  /// Of the two, heads are on the last axis, and batch on the first.
  bool isHeadsLast = false;

  /// Over how many ranks heads are exchanged for a sequence that these and
  /// `ranks` share, where not 1: on the last axis of the sequence.
  int64_t members = 1;
  /// How many of `ranks` are on the inner of two axes over which the sequence
  /// is sharded; 0 where there is one axis.
  int64_t innerRanks = 0;

  bool isGrid() const { return headParts * batchParts > 1; }
  /// Whether ranks that differ in their heads share those of keys.
  bool sharesKeyHeads() const {
    int64_t ranks = headParts * members;
    return sizes.keyHeads < ranks && ranks % sizes.keyHeads == 0;
  }
  /// Whether each of these ranks has as many heads.
  bool areHeadsEven() const {
    int64_t ranks = headParts * members;
    return sizes.queryHeads % ranks == 0 &&
           (sharesKeyHeads() || sizes.keyHeads % ranks == 0);
  }
  /// How many heads such a rank has room for; the last ones may have fewer.
  int64_t keyHeadsOfRank() const {
    int64_t ranks = headParts * members;
    return (sizes.keyHeads + ranks - 1) / ranks;
  }
  int64_t queryHeadsOfRank() const {
    int64_t ranks = headParts * members;
    return areHeadsEven() || sharesKeyHeads()
               ? (sizes.queryHeads + ranks - 1) / ranks
               : keyHeadsOfRank() * (sizes.queryHeads / sizes.keyHeads);
  }
  /// Of all these ranks, also what they only have room for.
  int64_t keyHeadCopies() const {
    return keyHeadsOfRank() * headParts * members;
  }
  int64_t queryHeadCopies() const {
    return queryHeadsOfRank() * headParts * members;
  }

  /// The module, its sequence sharded over so many ranks, or all of it on one.
  std::string text(int64_t ranks) const;
  /// How an attention of it is sharded.
  std::string clauses() const;
  /// Where heads are exchanged, with this around it.
  std::string strategy(const std::string &name) const;
  /// Makes up an operand, of the element type, from a seed.
  void drawOperand(const std::string &name, std::vector<int64_t> shape,
                   uint64_t from);
  /// How to run it again, for messages.
  std::string replay() const;
};

/// What problems are for: numbers and sizes that every target has, or those
/// that kernels of GPUs take.
enum class For : uint8_t { Any, Gpus };

/// The problem with this number.
RandomProblem drawProblem(uint64_t seed, For kind = For::Any);

/// A backward pass, or a forward pass and the backward pass of it. Where the
/// function takes out and lse these are still zeros, see Trial::giveForward.
/// Tables: scores, and gradients of the tables that they capture.
enum class Scores : uint8_t { None, Tables };
RandomProblem drawBackward(uint64_t seed, Scores scores, For kind = For::Any);

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_RANDOMPROBLEM_H
