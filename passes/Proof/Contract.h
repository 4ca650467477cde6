//===- Contract.h - what a proof takes of tables for granted ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pairs of segments a mask needs is computed by a function, and so is how
// far segments travel. A proof for every number of ranks does not look into
// it: all that it needs are relations between entries of the tables. They are
// checked, entry by entry, when sizes and tables are bound, so that no proof
// trusts the function.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_CONTRACT_H
#define BURST_PASSES_PROOF_CONTRACT_H

#include "dialect/Ring/Ring.h"
#include "passes/Simulation/Prove/Audit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace burst::proof {

struct Contract {
  /// What one call computes for the attends that take its table of pairs.
  /// Where it gives a `reach` and a `step`: of every pair that is needed the
  /// shard that travels, going by `step` from rank to rank, is at the rank of
  /// the other after no more hops than its segment's reach; 0 <= reach < P, and
  /// the step is 1 or P - 1. Where nothing may travel in vain, some pair is
  /// needed after as many hops as a reach says, unless it is 0.
  ///
  /// In a nest, N rings of P ranks, that is said of either ring: the shard
  /// comes to the ring of the other rank after no more hops than `reach`, and
  /// in it to the other after no more than `innerReach`, which has one for each
  /// ring. No segment goes round in a ring to which it does not come.
  ///
  /// Where shards go round in both directions, a pair is within the reach of
  /// the one that serves it: ahead up to (P - 1) / 2 hops, back up to P / 2.
  struct Need {
    mlir::Value pairs;       ///< flags, as `ring.attend` takes them
    mlir::Value reach, step; ///< null where all travel to where they are
                             ///< needed, and where nothing would check them
    mlir::Value innerReach, innerStep; ///< of a nest
    bool isBothWays = false;           ///< `reach` has an entry for each
    bool movesKeys = true;             ///< else queries travel
  };
  llvm::SmallVector<Need, 2> needs;

  /// What the tables of a program are, by the functions that make them.
  static Contract of(mlir::func::FuncOp program);

  const Need *find(mlir::Value pairs) const;
};

/// An attention of a program, forward, backward or both.
struct ProvedAttention {
  llvm::SmallVector<ring::AttendLikeOpInterface> attends;
  bool isForward = false, isBackward = false;
  ExchangedHeads heads = {}; ///< of queries
};

/// Checks the tables of a program, for the sizes and tables of `globals`: which
/// pairs are needed is what the bounds of each mask say (where `allowEmpty`,
/// those that they rule out may be needed, too), and what travels goes as far
/// as it must, and (but where `allowNeedless`) no farther. Where it is not so,
/// the reason; else pairs are counted, as a simulation does.
std::optional<std::string>
checkContract(mlir::func::FuncOp program, const Contract &contract,
              llvm::ArrayRef<ProvedAttention> attentions,
              llvm::ArrayRef<Argument> globals, const ProofOptions &options,
              Proof &counts);

/// Whether keys travel to where they are attended: of all of the attends the
/// queries are the rank's own. Else queries travel.
bool movesKeys(llvm::ArrayRef<ring::AttendLikeOpInterface> attends,
               mlir::Value rank);

/// The rank of a program of a rank: null where it does not ask for it.
mlir::Value rankOf(mlir::func::FuncOp program);

/// The function that is called.
mlir::func::FuncOp calleeOf(mlir::func::CallOp call);

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_CONTRACT_H
