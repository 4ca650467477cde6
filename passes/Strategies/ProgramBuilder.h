//===- ProgramBuilder.h - a rank's program of one attention -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_STRATEGIES_PROGRAMBUILDER_H
#define BURST_PASSES_STRATEGIES_PROGRAMBUILDER_H

#include "passes/Passes.h"

namespace burst {

using Tensors = llvm::SmallVector<mlir::Value>;

/// Builds what a rank does of one attention, which stands between burst.unshard
/// and burst.shard, and erases the attention.
class ProgramBuilder {
public:
  ProgramBuilder(AttentionInterface op, const Layout &layout);

protected:
  /// Shards rotate over one axis of the sequence inside of the rotation over
  /// the axis in front of it, and not over all axes at once. Axes of one rank
  /// do not count.
  void nestRings();
  /// Shards come from their owners, not from rank to rank.
  void goDirectly() { isDirect = true; }
  /// Shards go round in both directions at once.
  void goBidirectionally() { isBidirectional = true; }
  /// The shard behind a global tensor.
  static UnshardOp unshardOf(mlir::Value global) {
    return global.getDefiningOp<UnshardOp>();
  }
  /// Makes `rank` and `offsets`.
  void beginProgram();

  /// What goes round, see ring.rotate.
  struct Rotation {
    Tensors tensors;                 ///< this rank's shards
    llvm::SmallVector<int64_t> dims; ///< which dimension of each is laid out
    mlir::Value extent;              ///< of that dimension on all ranks
    Tensors carried = {};            ///< what the first turn begins with
    /// How partial results of ranks for one owner become one; none without.
    std::optional<ring::Join> join = std::nullopt;
    llvm::SmallVector<mlir::Type> partials = {}; ///< of an owner's
    llvm::SmallVector<int64_t> partialDims = {}; ///< and which is laid out
  };
  /// What a turn makes of the carried values and of fresh partial results.
  using Turn = llvm::function_ref<Tensors(
      mlir::Value owner, mlir::ValueRange shards, mlir::ValueRange carried,
      mlir::ValueRange partials)>;
  /// The carried values behind the last turn, then the joined partial results.
  Tensors rotate(const Rotation &rotation, Turn turn) {
    return rotate(rotation, rings, rank, turn);
  }

  /// What is gathered, see ring.gather; fields as in a Rotation. Types of
  /// partial results are those of one owner, here as there; in the region they
  /// have those of all owners, one behind the other.
  struct Gathering {
    Tensors tensors;
    llvm::SmallVector<int64_t> dims;
    mlir::Value extent;
    /// Of what the region makes for this rank alone; may be none.
    llvm::SmallVector<mlir::Type> values;
    std::optional<ring::Join> join = std::nullopt;
    llvm::SmallVector<mlir::Type> partials = {};
    llvm::SmallVector<int64_t> partialDims = {};
  };
  /// What the region makes of gathered tensors and of fresh partial results:
  /// the values, then the partial results.
  using Whole = llvm::function_ref<Tensors(mlir::ValueRange gathered,
                                           mlir::ValueRange partials)>;
  /// The values, then the joined partial results.
  Tensors gather(const Gathering &gathering, Whole whole);

  /// Shards of an owner, or what is gathered.
  struct Shards {
    Tensors tensors;
    mlir::Value owner;
    ring::LayoutAttr layout;
  };
  Shards gatheredShards(mlir::ValueRange tensors);
  /// `tensor`, a shard, becomes what `global` was cut into.
  static void replace(mlir::Value global, mlir::Value tensor);
  /// Erases the attention and what brought its tensors.
  void erase();

private:
  /// Ranks round which shards go; see ring.rotate for the stride.
  struct Ring {
    ring::ChannelAttr channel;
    int64_t stride;
  };
  /// The same of the shards of an owner, and rings of which the first is the
  /// outermost.
  Tensors rotate(const Rotation &rotation, llvm::ArrayRef<Ring> nest,
                 mlir::Value owner, Turn turn);
  llvm::SmallVector<Ring, 2> rings;
  bool isDirect = false, isBidirectional = false;

protected:
  AttentionInterface attention;
  mlir::OpBuilder builder;
  mlir::Location loc;
  ring::LayoutAttr layout;
  ring::ChannelAttr
      channel;      ///< of the ranks over which the sequence is sharded
  mlir::Value rank; ///< the place of this one among them
  Tensors offsets;  ///< see ring.attend
};

} // namespace burst

#endif // BURST_PASSES_STRATEGIES_PROGRAMBUILDER_H
