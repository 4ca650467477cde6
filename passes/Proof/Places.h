//===- Places.h - scalars of a program at a rank and a turn -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank's program computes with ranks, turns and tables, as formulas over
// the atoms of a proof: of any rank, in any turn of a loop. In the text of a
// program the constants P and P - 1 are read as these. An owner that a loop
// carries, and that becomes (itself + c) mod P, is (first + c t) mod P after t
// turns. Tables that functions generate are read through; those that they
// compute otherwise are opaque: what is known of their entries is the contract
// that stands in Contract.h.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_PLACES_H
#define BURST_PASSES_PROOF_PLACES_H

#include "passes/Proof/Contract.h"
#include "passes/Proof/Index.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"

namespace burst::proof {

/// Where an op runs: on a rank, in a turn of its loop.
struct Place {
  Index rank;
  mutable mlir::scf::ForOp loop = nullptr; ///< null outside of loops
  Index turn = 0; ///< the value of its induction variable

  friend bool operator<(const Place &a, const Place &b);
};

/// What must hold of all integers that keep the facts.
struct Condition {
  mlir::Operation *op;
  std::string what;
  Formula formula;
};

/// Why a program is not proved for every number of ranks.
struct Reason {
  mlir::Operation *op = nullptr;
  std::string text;
};

/// Where scalar code is evaluated, see Places.cpp.
struct Scope;

class Places {
public:
  /// Scalars that functions give, such as the direction of a ring, are what
  /// `chosen` says.
  Places(mlir::func::FuncOp program, const Contract &contract,
         llvm::ArrayRef<std::pair<mlir::Value, Index>> chosen,
         Arithmetic &arithmetic);

  /// The value of an index.
  Index index(mlir::Value value, const Place &place);
  /// An entry of a table of flags.
  Formula flag(mlir::Value table, llvm::ArrayRef<Index> at, const Place &place,
               bool checks = false);
  /// An entry of a table of indices.
  Index number(mlir::Value table, llvm::ArrayRef<Index> at, const Place &place);
  /// The flag of a segment of an owner, of a table as `ring.start` has it: true
  /// where there is no table.
  Formula segment(mlir::Value table, mlir::Value turn, const Index &owner,
                  const Index &segment, const Place &place,
                  bool checks = false);
  Formula segment(mlir::Value table, const Index &turn, const Index &owner,
                  const Index &segment, const Place &place,
                  bool checks = false);

  /// The rank at which conditions are generic, and such a turn of a loop.
  const Index &rank() const { return genericRank; }
  /// Whether each rank has all of the sequence, of some heads or batches: it is
  /// the rank 0 of one, however many there are.
  bool isOne() const { return parts == 1; }
  Index turnOf(mlir::scf::ForOp loop);
  Place generic(mlir::scf::ForOp loop = nullptr);
  Index firstTurn(mlir::scf::ForOp loop) { return boundsOf(loop).first; }
  /// The turn behind the last one.
  Index endTurn(mlir::scf::ForOp loop) { return boundsOf(loop).end; }
  Index remainder(const Index &x, mlir::Operation *op);
  Linear linear(const Index &x, mlir::Operation *op);

  /// Notes what scalar code of the program needs: indices that do not wrap,
  /// entries that tables have.
  void check(mlir::Operation *op, const Place &place);
  /// What a carried index must be for its closed form to be that.
  void checkCarried(mlir::scf::ForOp loop, unsigned number);
  void require(mlir::Operation *op, std::string what, Formula formula);
  const std::vector<Condition> &getConditions() const { return conditions; }

  /// The program is outside of what can be proved; the first reason stays.
  void refuse(mlir::Operation *op, const llvm::Twine &why);
  const std::optional<Reason> &getReason() const { return reason; }

  Arithmetic &arithmetic;

private:
  struct Scalar {
    Index index;
    Formula truth{false};
  };
  struct Bounds {
    Index first = 0, end = 0;
    std::optional<Index> turn; ///< a generic one
  };
  friend struct Scope;

  const Bounds &boundsOf(mlir::scf::ForOp loop);
  Scalar evaluate(mlir::Value value, const Scope &scope);
  Scalar evaluateIn(mlir::Value value, const Scope &scope);
  bool steers(mlir::Operation *op);
  bool isReadable(mlir::Operation *op, int depth = 0);
  bool isNeverNegative(const Index &x) const;
  Scalar compute(mlir::Operation *op, const Scope &scope);
  void checkNoFault(mlir::Operation *op, const Scope &scope);
  Scalar compare(mlir::arith::CmpIOp op, const Scope &scope);
  Scalar ofArgument(mlir::BlockArgument argument, const Scope &scope);
  Scalar ofCall(mlir::OpResult result, const Scope &scope);
  Scalar closedForm(mlir::scf::ForOp loop, unsigned number, const Index &rank,
                    const Index &turn);
  std::optional<int64_t> stepOf(mlir::scf::ForOp loop, unsigned number);
  Scalar entry(mlir::Value table, llvm::ArrayRef<Index> at, const Scope &scope);
  Scalar generated(mlir::tensor::GenerateOp op, llvm::ArrayRef<Index> at,
                   const Scope &scope);
  Scalar constantEntry(mlir::Value table, mlir::DenseElementsAttr values,
                       llvm::ArrayRef<Index> at);
  Scalar opaque(mlir::Value table, llvm::ArrayRef<Index> at,
                const Scope &scope);
  void addContract(const Contract::Need &need, llvm::ArrayRef<Index> at,
                   const Formula &entry, Atom atom);
  Formula isInside(mlir::Value table, llvm::ArrayRef<Index> at);
  Index constant(int64_t value) const;

  mlir::func::FuncOp program;
  const Contract &contract;
  RankGroup sequence; ///< who share a sequence
  int64_t parts;      ///< how many they are
  std::vector<std::pair<mlir::Value, Index>> chosen;
  Index genericRank;
  llvm::DenseMap<mlir::Operation *, Bounds> bounds;
  llvm::DenseMap<mlir::Value, std::optional<int64_t>> carriedSteps;
  std::map<std::pair<void *, Place>, Scalar> known;
  std::optional<llvm::DenseSet<mlir::Operation *>> steering;
  llvm::DenseMap<mlir::Operation *, bool> readable;
  int depth = 0; ///< of values that are evaluated for each other
  int64_t numEvaluated = 0;
  /// An entry of an opaque table.
  struct Application {
    llvm::SmallVector<Index> at;
    Scalar value;
  };
  llvm::DenseMap<mlir::Value, std::vector<Application>> applications;
  std::vector<Condition> conditions;
  std::optional<Reason> reason;
};

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_PLACES_H
