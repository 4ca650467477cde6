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
  /// Of the members of a part of the heads: the heads of keys that they
  /// exchange, and how many query heads each of them has.
  int64_t keyHeadsOfPart() const { return sizes.keyHeads / headParts; }
  int64_t group() const { return sizes.queryHeads / sizes.keyHeads; }
  /// How many members share a key head: several where there are twice as many
  /// members at least, and query heads for them.
  int64_t sharers() const {
    return group() == 1 ? 1 : std::max<int64_t>(members / keyHeadsOfPart(), 1);
  }
  bool sharesKeyHeads() const { return sharers() > 1; }
  /// How many heads a member has room for; some may have fewer.
  int64_t keyHeadsOfRank() const {
    return (keyHeadsOfPart() + members - 1) / members;
  }
  int64_t queryHeadsOfRank() const {
    return sharesKeyHeads() ? (group() + sharers() - 1) / sharers()
                            : keyHeadsOfRank() * group();
  }
  /// How many of them member `place` has.
  int64_t keyHeadsOf(int64_t place) const {
    if (sharesKeyHeads())
      return place < sharers() * keyHeadsOfPart() ? 1 : 0;
    return std::clamp<int64_t>(keyHeadsOfPart() - place * keyHeadsOfRank(), 0,
                               keyHeadsOfRank());
  }
  int64_t queryHeadsOf(int64_t place) const {
    if (!sharesKeyHeads())
      return keyHeadsOf(place) * group();
    return keyHeadsOf(place) *
           std::clamp<int64_t>(group() - place % sharers() * queryHeadsOfRank(),
                               0, queryHeadsOfRank());
  }
  /// Whether each member has as many heads.
  bool areHeadsEven() const {
    return queryHeadsOf(members - 1) == queryHeadsOfRank() &&
           keyHeadsOf(members - 1) == keyHeadsOfRank();
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
