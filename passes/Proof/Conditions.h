//===- Conditions.h - what a program must satisfy at every place -*- C++
//-*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The conditions of a program, of any rank and any turn: each pair that is
// needed is computed once, what is read is there, a send meets its receive. By
// the theorem in docs/rationale-ring.md they are all that matching and progress
// need, as conditions on two neighbors.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_CONDITIONS_H
#define BURST_PASSES_PROOF_CONDITIONS_H

#include "passes/Proof/Accounts.h"
#include "passes/Proof/Decide.h"

namespace burst::proof {

class Conditions {
public:
  Conditions(mlir::func::FuncOp program, Places &places, const Labels &labels,
             Accounts &accounts, const Contract &contract, Decider &decider,
             const ProofOptions &options)
      : program(program), places(places), labels(labels), accounts(accounts),
        contract(contract), decider(decider), options(options) {}

  /// Finds invariants, then gives all conditions to the places.
  void collect();

private:
  void findInvariants(mlir::scf::ForOp loop);
  bool holds(llvm::ArrayRef<Formula> formulas);
  std::vector<Formula> ofSent(ring::TransferOpInterface start, unsigned index);
  std::vector<Formula> ofKept(mlir::scf::ForOp loop, unsigned number);

  void visit(mlir::Block &block, const Place &place);
  void visit(mlir::scf::ForOp loop);
  void visit(ring::TransferOpInterface start, const Place &place);
  void visitAllToAll(ring::TransferOpInterface start, const Place &place);
  bool sharesBuffers(ring::TransferOpInterface start);
  void visitShift(ring::TransferOpInterface start, const Place &place);
  void visitGather(ring::TransferOpInterface start, const Place &place);
  void visitReturn(mlir::Operation *op);
  void visit(const Init &, mlir::Operation *, const Place &) {}
  void visit(const Zero &, mlir::Operation *, const Place &) {}
  void visit(const Delta &delta, mlir::Operation *op, const Place &place);
  void visit(const Attended &attended, mlir::Operation *op, const Place &place);
  void visit(const AttendedGrad &attended, mlir::Operation *op,
             const Place &place);
  void visit(const Joined &joined, mlir::Operation *op, const Place &place);
  void visit(const Finalized &finalized, mlir::Operation *op,
             const Place &place);
  void visit(const Rounded &, mlir::Operation *, const Place &) {}
  void visit(const TakenHeads &, mlir::Operation *, const Place &) {}
  void visit(const JoinedHeads &, mlir::Operation *, const Place &) {}
  /// What an op in which queries and keys meet reads and adds to.
  struct Met {
    mlir::Value tensor;
    Side side;
    bool isPartial = false;
  };
  void visitMeeting(ring::AttendLikeOpInterface op, llvm::ArrayRef<Met> met,
                    llvm::ArrayRef<mlir::Value> tables, const Place &place);
  void complete(const Holding &holding, const Formula &has,
                mlir::Operation *op);

  // That nothing arrives in vain, see Travel.cpp.

  /// A segment of what a transfer brought, in one of its tensors.
  struct Arrived {
    unsigned number; ///< of the tensor
    Index owner, segment;
    std::vector<Formula> facts = {}; ///< of the contract, that it may take
  };
  void requireRead(ring::TransferOpInterface start, const Formula &receives,
                   const Index &owner, const Index &segment,
                   const Place &place);
  void requireWorked(ring::TransferOpInterface start, const Index &owner,
                     const Index &segment, const Place &place);
  ring::AttendLikeOpInterface attendOf(mlir::Value partial);
  Formula isRead(mlir::Value value, const Place &place, Arrived &arrived,
                 int depth);
  Formula isReadBy(mlir::OpOperand &use, const Place &place, Arrived &arrived,
                   int depth);
  Formula isReadIn(mlir::scf::YieldOp yield, unsigned number,
                   const Place &place, Arrived &arrived, int depth);
  Formula meets(ring::AttendLikeOpInterface op, Side side, const Index &query,
                const Index &key, Arrived &arrived, const Place &place);
  Formula meets(ring::AttendLikeOpInterface op, Side side, Arrived &arrived,
                const Place &place);
  Formula isJoined(const Joined &joined, mlir::Value value, const Place &place,
                   Arrived &arrived, int depth);
  void requireSame(mlir::Operation *op, const char *what, const Formula &x,
                   const Formula &y);
  Index anyRank();
  Formula isRank(const Index &x, mlir::Operation *op);
  Formula isEqual(const Index &x, const Index &y, mlir::Operation *op) {
    return accounts.isEqual(x, y, op);
  }
  /// An arbitrary segment of a layout.
  Index segmentOf(ring::LayoutAttr layout);

  mlir::func::FuncOp program;
  Places &places;
  const Labels &labels;
  Accounts &accounts;
  const Contract &contract;
  Decider &decider;
  ProofOptions options;
  std::map<int64_t, Index> segments; ///< by how many a layout has
  std::optional<Index> otherRank;
};

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_CONDITIONS_H
