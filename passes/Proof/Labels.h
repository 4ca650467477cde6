//===- Labels.h - what the tensors of a program are -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of which argument a tensor holds shards, or what was made for one, how it is
// sharded, and of which attention it is a part: what does not depend on ranks
// and turns. All of it is checked where it is used, so that conditions on
// owners and segments are all that is left.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_PROOF_LABELS_H
#define BURST_PASSES_PROOF_LABELS_H

#include "passes/Proof/Places.h"
#include "passes/Proof/StepMeaning.h"
#include "passes/Simulation/Scalars/Tensor.h"

#include <array>

namespace burst::proof {

/// How many positions a sequence has: a number, or an argument.
struct Extent {
  mlir::Value argument = {};
  int64_t number = -1;

  friend bool operator==(const Extent &, const Extent &) = default;
};

struct Label {
  /// As in Tensor: an argument, what is made for one, -1 for others.
  int tensor = -1;
  ring::LayoutAttr layout;
  int64_t dim = 0;
  Extent extent;
  mlir::Value table; ///< by which a gradient is, where it is by no shard
  bool isRounded = false;
  int out = -1, lseGrad = -1; ///< of a delta: what it was made of
  /// Among the gradients of its attention, of one to which some was added.
  int place = -1;
  /// The attention that it is a part or a result of; -1 before it has attended.
  int attention = -1;
  /// Of a gradient to which several chunks of heads add, those of the others.
  llvm::SmallVector<int, 1> others = {};

  bool isOfAttention(int number) const {
    return attention == number || llvm::is_contained(others, number);
  }

  bool isShard() const { return static_cast<bool>(layout); }
  bool isOf(Made what) const {
    return tensor < -1 && whatIsMade(tensor).second == what;
  }
  /// Whether an attention gives it.
  bool isResult() const {
    return tensor < -1 && burst::isResult(whatIsMade(tensor).second);
  }
  /// But for what it has attended.
  bool isLike(const Label &other) const;
};

/// Whether a tensor follows a shard of others: a part of a state, or a
/// gradient.
bool isPartialResult(const Label &label);

/// Queries that attend keys and values: all ops that do so ask the same.
struct Attention {
  int query, key, value;                     ///< arguments
  mutable ring::AttendLikeOpInterface first; ///< whose methods are not const
  std::optional<AttendedGrad> gradient;      ///< the first op that gives some
  int outGrad = -1, lse = -1, delta = -1, out = -1, lseGrad = -1;
};

class Labels {
public:
  Labels(mlir::func::FuncOp program, Places &places);

  Label of(mlir::Value tensor) const;
  llvm::ArrayRef<Attention> getAttentions() const { return attentions; }
  /// The number of the attention that an op is a part of.
  std::optional<int> attentionOf(mlir::Operation *op) const {
    auto found = ofOp.find(op);
    if (found == ofOp.end())
      return std::nullopt;
    return found->second;
  }
  /// The transfers that a token may be of.
  llvm::SmallVector<ring::TransferOpInterface>
  transfersOf(mlir::Value token) const;
  Extent extentOf(mlir::Value value) const;

  /// How many heads an argument has, or a chunk of it.
  int64_t headsOfArgument(int number) const;
  int64_t groupsOf(int number) const;
  /// Whether of two arguments ranks have the same heads.
  bool haveSameHeads(int x, int y) const;
  /// The heads of an argument, of which `shard` is a rank's.
  ExchangedHeads exchangedHeads(int argument, mlir::Value shard) const;

private:
  /// o, m and l.
  using StateParts = std::array<mlir::Value, 3>;

  void visit(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visit(mlir::func::CallOp call);
  void visit(mlir::scf::ForOp loop);
  void visit(ring::TransferOpInterface start);
  void visitAllToAll(ring::TransferOpInterface start, const Extent &extent);
  void visit(const Init &init, mlir::Operation *op);
  void visit(const Zero &zero, mlir::Operation *op);
  void visit(const Delta &delta, mlir::Operation *op);
  void visit(const Attended &attended, mlir::Operation *op);
  void visit(const AttendedGrad &attended, mlir::Operation *op);
  void visit(const Joined &joined, mlir::Operation *op);
  void visit(const Finalized &finalized, mlir::Operation *op);
  void visit(const Rounded &rounded, mlir::Operation *op);
  void visit(const TakenHeads &taken, mlir::Operation *op);
  void visit(const JoinedHeads &joined, mlir::Operation *op);
  bool isOfChunk(const Label &query, const Label &other, bool isOfKeys) const;
  bool isOfOtherChunk(const Label &gradient, int attention) const;
  bool hasAllChunks(const Label &gradient) const;
  bool areChunksOfOne(const Attention &x, const Attention &y) const;
  bool hasAllHeads(mlir::Value result, const Label &label) const;
  bool mayAddHeads(const Rounded &rounded, const Label &label) const;
  void visitReturn(mlir::Operation *op);
  void visitArguments();

  int join(ring::AttendLikeOpInterface op, mlir::Value keys,
           mlir::Value values);
  void joinGradient(const AttendedGrad &attended, Attention &attention,
                    mlir::Operation *op);
  bool asksAlike(ring::AttendLikeOpInterface x,
                 ring::AttendLikeOpInterface y) const;
  bool asksSame(ring::AttendLikeOpInterface x,
                ring::AttendLikeOpInterface y) const;
  bool isUniform(mlir::Value value);
  bool isMadeUniform(mlir::Value value);
  bool isSameOnAllRanks(mlir::Value capture) const;
  bool isState(mlir::ValueRange state) const;
  bool isState(llvm::ArrayRef<mlir::Value> state,
               llvm::SmallVectorImpl<StateParts> &assumed) const;
  bool hasRoom(ring::TransferOpInterface start, unsigned index,
               const Extent &extent) const;
  bool hasSharding(const Label &label, ring::LayoutAttr layout, int64_t dim,
                   const Extent &extent) const;
  /// Gives `value` what is known of it; a part of what it was before.
  void give(mlir::Value value, const Label &label, unsigned index = 0);
  bool unify(Label &into, const Label &from);
  void fail(mlir::Operation *op, const llvm::Twine &why) {
    places.refuse(op, why);
  }

  mutable mlir::func::FuncOp program; ///< whose methods are not const
  Places &places;
  llvm::SmallVector<int64_t> headGroups; ///< of arguments in all-to-alls
  std::vector<Attention> attentions;
  llvm::DenseMap<mlir::Operation *, int> ofOp;
  llvm::DenseMap<mlir::Value, bool> uniform; ///< what was asked
  /// Of a tensor one, of a token one for each tensor.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Label, 1>> labels;
  bool hasChanged = false;
};

} // namespace burst::proof

#endif // BURST_PASSES_PROOF_LABELS_H
