//===- Accounts.h - what tensors hold at a rank and a turn ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One arbitrary pair of segments is followed: segment a of the queries of p and
// segment b of the keys of k. What a state or a gradient has absorbed is then
// one formula, whether it has the pair. What loops carry, and what is sent from
// turn to turn, has it by an invariant: one of a few templates, that is checked
// and never trusted.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_ACCOUNTS_H
#define BURST_PASSES_PROOF_ACCOUNTS_H

#include "passes/Proof/Labels.h"

#include <functional>

namespace burst::proof {

/// What is known of a tensor at a place.
struct Holding {
  Index owner;
  bool isGathered = false; ///< the shards of all owners
  /// Whether a segment holds data, of an owner where all are gathered.
  std::function<Formula(const Index &owner, const Index &segment)> present =
      [](const Index &, const Index &) { return Formula(true); };
  /// Whether it has the pair that is followed, of partial results; of gathered
  /// ones, whether that by the shard of the pair's owner has.
  Formula has{false};
};

/// Of what a loop carries, or a transfer in a loop sends.
struct AccountKey {
  mlir::Operation *op; ///< the loop or the transfer
  unsigned number;     ///< of the carried value, of the tensor

  friend bool operator<(const AccountKey &a, const AccountKey &b) {
    return std::tie(a.op, a.number) < std::tie(b.op, b.number);
  }
};

class Accounts {
public:
  /// Follows a pair of one of the attentions.
  Accounts(mlir::func::FuncOp program, Places &places, const Labels &labels,
           int attention, const Contract &contract);

  const Holding &of(mlir::Value tensor, const Place &place);

  /// The pair.
  Index p, k, a, b;
  const Index &ownerOf(Side side) const { return side == Side::Query ? p : k; }
  const Index &segmentOf(Side side) const {
    return side == Side::Query ? a : b;
  }
  /// Whether the mask may keep something of it.
  Formula isNeeded() { return needed; }

  /// Whose shard a tensor is, or is by; that of a gradient by a table is none.
  std::optional<Side> sideOf(mlir::Value tensor) const;
  /// Partial results of the attention that is followed.
  bool isAccount(mlir::Value tensor) const;
  int followed() const { return attention; }

  /// The owners that meet, at a place: of those that are gathered the pair's.
  std::pair<Index, Index> ownersOf(ring::AttendLikeOpInterface op,
                                   const Place &place);
  /// Whether segments of two owners are computed together.
  Formula isComputed(ring::AttendLikeOpInterface op, const Index &queryOwner,
                     const Index &keyOwner, const Index &a, const Index &b,
                     const Place &place, bool checks = false);
  /// Whether the pair is computed by an op at a place.
  Formula contribution(ring::AttendLikeOpInterface op, const Place &place);

  /// What a transfer that was started at a place brings.
  Holding arrived(ring::TransferOpInterface start, unsigned index,
                  const Place &place);
  /// Whether a segment is sent, and received, at a place.
  Formula isSent(ring::TransferOpInterface start, const Index &owner,
                 const Index &segment, const Place &place, bool checks = false);

  Formula isEqual(const Index &x, const Index &y, mlir::Operation *op);

  /// What must be invariant, and how many templates there are; of an inner loop
  /// twice as many of what is kept.
  static constexpr unsigned numKept = 8, numSent = 6;
  /// And of what goes round in both directions.
  static constexpr unsigned numKeptBothWays = 4, numSentBothWays = 12;
  void choose(const AccountKey &key, unsigned invariant) {
    chosen[key] = invariant;
    known.clear();
  }
  /// Whether a tensor is another one in each turn of the loop of an op.
  static bool isOfTurn(mlir::Value tensor, mlir::Operation *op);
  /// Whether a loop carries what it was given or has made, and not what a
  /// transfer of the turn before has brought.
  /// How many templates there are, of what a loop keeps and of what is sent.
  unsigned countKept(mlir::scf::ForOp loop);
  unsigned countSent();
  static bool isKept(mlir::scf::ForOp loop, unsigned number);
  Formula kept(mlir::scf::ForOp loop, unsigned number, const Place &place);
  Formula sent(ring::TransferOpInterface start, unsigned number,
               const Place &place);
  Holding carried(mlir::scf::ForOp loop, unsigned number, const Place &place);

private:
  /// How shards come together in the turns of one loop, or nest of them, or
  /// outside of loops.
  struct Motion {
    mlir::scf::ForOp loop; ///< the outermost; null outside of loops
    const Contract::Need *need;
    bool movesKeys; ///< else queries travel
    Hops way = {};  ///< until the shard that travels is where they meet
  };

  void addMotions(llvm::ArrayRef<ring::AttendLikeOpInterface> attends,
                  const Contract &contract);
  const Motion &motionOf(mlir::scf::ForOp loop) const;
  Formula keptBothWays(const Motion &motion, unsigned invariant,
                       const Linear &turn, mlir::Operation *op);
  Linear hopsOf(const Motion &motion, unsigned invariant, mlir::scf::ForOp loop,
                mlir::Operation *op);
  Holding find(mlir::Value tensor, const Place &place);
  Holding received(ring::WaitOp wait, unsigned index, const Place &place);
  Holding atFirst(mlir::scf::ForOp loop, const Index &turn,
                  llvm::function_ref<Holding(const Index &turn)> first,
                  llvm::function_ref<Holding(const Index &turn)> other,
                  mlir::Operation *op);
  Holding made(const Init &init, mlir::Value tensor, const Place &place);
  Holding made(const Zero &zero, mlir::Value tensor, const Place &place);
  Holding made(const Delta &delta, mlir::Value tensor, const Place &place);
  Holding made(const Attended &attended, mlir::Value tensor,
               const Place &place);
  Holding made(const AttendedGrad &attended, mlir::Value tensor,
               const Place &place);
  Holding made(const Joined &joined, mlir::Value tensor, const Place &place);
  Holding made(const Finalized &finalized, mlir::Value tensor,
               const Place &place);
  Holding made(const Rounded &rounded, mlir::Value tensor, const Place &place);
  Holding made(const TakenHeads &taken, mlir::Value tensor, const Place &place);
  Holding made(const JoinedHeads &joined, mlir::Value tensor,
               const Place &place);

  mlir::func::FuncOp program;
  Places &places;
  const Labels &labels;
  int attention;
  ring::LayoutAttr queryLayout, keyLayout; ///< of parts
  llvm::SmallVector<Motion, 2> motions;
  Formula needed{true};
  std::map<AccountKey, unsigned> chosen;
  std::map<std::pair<void *, Place>, Holding> known;
};

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_ACCOUNTS_H
