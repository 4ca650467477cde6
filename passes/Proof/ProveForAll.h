//===- ProveForAll.h - one proof for every number of ranks ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proves the program of a rank, as it stands, for every number of ranks, for
// all sizes and all tables that keep a contract: what ring-verify proves by
// running all ranks. From outside of this folder, include this and Contract.h.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_PROVEFORALL_H
#define BURST_PASSES_PROOF_PROVEFORALL_H

#include "passes/Proof/Places.h"

namespace burst::proof {

struct Verdict {
  /// Why it is not proved, where it is not: outside of what can be, or a
  /// condition that was not shown. It may be right all the same.
  std::optional<Reason> reason;
  Contract contract; ///< what tables must keep
  std::vector<ProvedAttention> attentions;
  int64_t conditions = 0; ///< that were decided
  /// Whether it is proved for odd numbers of ranks alone, or for even ones, as
  /// that of the program.
  bool isOfOneParity = false;

  bool isProved() const { return !reason; }
};

/// Is given every condition of a program with its facts, and whether it holds.
using Witness = llvm::function_ref<void(const Condition &condition,
                                        const Formula &facts, bool isShown)>;

/// Tries to prove a program of 3 or more ranks.
Verdict proveForAll(mlir::func::FuncOp program, const ProofOptions &options,
                    Witness witness = nullptr);

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_PROVEFORALL_H
