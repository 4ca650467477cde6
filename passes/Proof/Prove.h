//===- Prove.h - the proof of a schedule ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PROOF_PROVE_H
#define BURST_PASSES_PROOF_PROVE_H

#include "passes/Proof/ProveForAll.h"
#include "passes/Simulation/Prove/Audit.h"

namespace burst {

/// For what a schedule was proved.
enum class ProvedFor : uint8_t {
  /// For every number of ranks, all sizes and all tables that keep the contract
  /// (which has been checked where they are known).
  AllRanks,
  /// For every number that is odd, or even, as that of the program.
  AllOddRanks,
  AllEvenRanks,
  /// For the ranks, sizes and tables that were simulated.
  TheseRanks
};

/// "for every number of ranks", "for every odd number of ranks", "for every
/// even number of ranks", "for these ranks, sizes and tables".
llvm::StringRef proofText(ProvedFor proved);

/// For what a program is proved by a verdict that is a proof.
ProvedFor provedFor(const proof::Verdict &verdict, mlir::func::FuncOp program);

struct ScheduleProof : Proof {
  ProvedFor proved = ProvedFor::TheseRanks;
  /// Why not for all ranks; empty where it is.
  std::string reason;
};

struct ScheduleProofOptions : ProofOptions {
  /// Whether it is told what each rank sends and holds.
  bool wantsTraffic = false;
  /// What then has run the program, for results without data; else one is made.
  Simulation *simulation = nullptr;
  Listener *listener = nullptr; ///< is told what ranks do
};

/// Proves a program for the sizes and tables of `globals`. `verdict` is what
/// the proof for every number of ranks said: where that is a proof, tables are
/// looked at, and else all ranks are simulated. Emits an error where the
/// schedule is refused, or where it has too many ranks to be simulated.
mlir::LogicalResult proveSchedule(mlir::func::FuncOp program,
                                  const proof::Verdict &verdict,
                                  llvm::ArrayRef<Argument> globals,
                                  const ScheduleProofOptions &options,
                                  ScheduleProof &proved);

} // namespace burst

#endif // BURST_PASSES_PROOF_PROVE_H
