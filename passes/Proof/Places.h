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
// In a nest, a ring inside of another one, a rank is P g + x, rank x of ring g,
// and a place has a turn of both loops. Which of P, N and their product a
// constant is, is told by what it is added to or compared with.
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
  Index turn = 0;  ///< the value of its induction variable
  Index outer = 0; ///< of the loop around that one

  /// The same on another rank, in another turn.
  Place on(const Index &other) const { return {other, loop, turn, outer}; }
  Place in(const Index &other) const { return {rank, loop, other, outer}; }
  /// A turn of a loop that stands here.
  Place inside(mlir::scf::ForOp inner, const Index &first) const {
    return {rank, inner, first, turn};
  }
  /// Where the loop stands.
  Place around() const;
  /// Here, or around loops, where a loop is that of a place, or none is.
  Place at(mlir::scf::ForOp own) const;

  friend bool operator<(const Place &a, const Place &b);
};

/// The loop around an op or a block of a program; null where there is none.
mlir::scf::ForOp loopAround(mlir::Operation *op);
mlir::scf::ForOp loopOf(mlir::Value value);

/// A sequence of which shards go round on two axes apart: N rings of P ranks.
struct Nest {
  RankGroup outer, inner;
};

/// How many places a rank is ahead of another one, in a direction.
struct Hops {
  Index outer = 0; ///< in the ring of rings, of a nest
  Index inner = 0; ///< in its own ring
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
  /// Which of the directions that functions give go back.
  Places(mlir::func::FuncOp program, const Contract &contract,
         llvm::ArrayRef<std::pair<mlir::Value, bool>> goBack,
         Arithmetic &arithmetic);

  /// Whether something was asked of half of the ranks: of an odd number of
  /// them, or of an even one, as that of the program.
  bool isOfOneParity() const { return halfOfRanks.has_value(); }

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
  const std::optional<Nest> &getNest() const { return nest; }
  /// Whether shards go round in both directions.
  bool getIsHalved() const { return isHalved; }
  /// How many ranks there are.
  Index numRanks();
  /// Hops ahead, or back, that shards go at most in both directions at once:
  /// (P - 1) / 2 and P / 2.
  Index mostHops(bool isBack);
  /// Any rank, as generic as that of the conditions.
  Index anyRank(const std::string &name);
  /// The ring of a rank in a nest.
  Index ringOf(const Index &rank, mlir::Operation *op);
  /// From rank to rank in the directions of a need, and back.
  Hops hops(const Index &from, const Index &to, const Contract::Need &need,
            mlir::Operation *op);
  Index ahead(const Index &from, const Hops &hops, const Contract::Need &need,
              mlir::Operation *op);
  /// The other way round a ring.
  Index reverse(const Index &hops, bool isOuter, mlir::Operation *op);
  /// The rank that is meant by a place along the axes of a transfer.
  Index peer(ring::TransferOpInterface start, const Index &place,
             const Index &rank);
  /// Whether a transfer goes along the axis of one of the rings of a nest, and
  /// whether from ring to ring.
  bool isOfNest(ring::TransferOpInterface start);
  bool isOuter(ring::TransferOpInterface start);
  /// Whether such a place is one.
  Formula isPeer(ring::TransferOpInterface start, const Index &place);
  Index turnOf(mlir::scf::ForOp loop);
  Place generic(mlir::scf::ForOp loop = nullptr);
  Index firstTurn(mlir::scf::ForOp loop) { return boundsOf(loop).first; }
  /// The turn behind the last one.
  Index endTurn(mlir::scf::ForOp loop) { return boundsOf(loop).end; }
  /// The turn behind one, if the loop goes on. That of an inner loop is one of
  /// its turns in any case: behind its rows of a table are those of another
  /// ring.
  Index nextTurn(mlir::scf::ForOp loop, const Index &turn);
  Index remainder(const Index &x, mlir::Operation *op);
  Linear linear(const Index &x, mlir::Operation *op);
  Formula isEqual(const Index &x, const Index &y, mlir::Operation *op);
  Formula isAtLeast(const Index &x, const Index &y, mlir::Operation *op);
  Formula isBelow(const Index &x, const Index &y, mlir::Operation *op) {
    return !isAtLeast(x, y, op);
  }

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
  /// What an index counts.
  enum class Kind : uint8_t { Number, Ranks, Rings, Whole, Rows };
  /// What a loop adds to a carried index in each turn, modulo N and P.
  struct Steps {
    int64_t outer = 0, inner = 0;
  };

  void findNest();
  void findHalves();
  Index half();
  std::optional<Index> asHalf(int64_t value);
  Kind kindOf(const Index &x) const;
  Kind kindOf(mlir::Value value, const Index &x) const;
  std::pair<Index, Index> pairOf(mlir::Operation *op, const Scope &scope);
  Index factor(mlir::Value value, const Scope &scope);
  Index turnIndex(mlir::Value turn, const Place &place);
  std::optional<Digits> digits(const Index &x, mlir::Operation *op);
  Scalar divide(mlir::Operation *op, const Scope &scope);
  Scalar remainderOf(mlir::Operation *op, const Scope &scope);
  Index join(const Index &ring, const Index &inner) const;
  Index remainder(const Index &x, Modulus modulus, mlir::Operation *op);
  int64_t signOf(mlir::Value step) const;
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
  Scalar closedForm(mlir::scf::ForOp loop, unsigned number, const Place &place);
  std::optional<Steps> stepOf(mlir::scf::ForOp loop, unsigned number);
  Scalar entry(mlir::Value table, llvm::ArrayRef<Index> at, const Scope &scope);
  Scalar generated(mlir::tensor::GenerateOp op, llvm::ArrayRef<Index> at,
                   const Scope &scope);
  Scalar constantEntry(mlir::Value table, mlir::DenseElementsAttr values,
                       llvm::ArrayRef<Index> at);
  Scalar opaque(mlir::Value table, llvm::ArrayRef<Index> at,
                const Scope &scope);
  void addContract(const Contract::Need &need, llvm::ArrayRef<Index> at,
                   const Formula &entry, Atom atom);
  void addInnerContract(const Contract::Need &need, llvm::ArrayRef<Index> at,
                        Atom atom);
  Formula isInside(mlir::Value table, llvm::ArrayRef<Index> at);
  Index endOf(int64_t size, Kind kind, bool isOfRanks);
  Index constant(int64_t value) const;
  Index constant(int64_t value, Kind kind, bool isExact = false);

  mlir::func::FuncOp program;
  const Contract &contract;
  RankGroup sequence; ///< who share a sequence
  int64_t parts;      ///< how many they are
  std::vector<std::pair<mlir::Value, bool>> goBack;
  std::optional<Nest> nest;
  bool isHalved = false; ///< loops have about P / 2 turns
  std::optional<Index> halfOfRanks;
  Index genericRank;
  llvm::DenseMap<mlir::Operation *, Bounds> bounds;
  std::map<std::pair<mlir::Operation *, Index>, Index> nextTurns;
  llvm::DenseMap<mlir::Value, std::optional<Steps>> carriedSteps;
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
