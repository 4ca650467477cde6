//===- Ring.h - the ring dialect --------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_RING_RING_H
#define BURST_DIALECT_RING_RING_H

#include "dialect/Burst/Burst.h"

#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

// clang-format off
#include "dialect/Ring/RingDialect.h.inc"
#include "dialect/Ring/RingEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/Ring/RingAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/Ring/RingTypes.h.inc"
// clang-format on

namespace burst::ring {

/// What transfers read and write; see RingOps.td.
struct ChannelResource
    : public mlir::SideEffects::Resource::Base<ChannelResource> {
  llvm::StringRef getName() final { return "ring.channel"; }
};

/// Function attribute: a rank's program over this grid.
inline constexpr llvm::StringLiteral gridAttr = "ring.grid";
/// On a program whose attentions are not lowered: in how many chunks
/// all-to-alls are to exchange heads.
inline constexpr llvm::StringLiteral headChunksAttr = "ring.head_chunks";

/// On an attend, its number among those that `cse` must not make one of: each
/// updates a state, or gradients, of its own.
inline constexpr llvm::StringLiteral apartAttr = "ring.apart";
/// Argument and result attribute: what a rank holds of a global tensor.
inline constexpr llvm::StringLiteral shardAttr = "ring.shard";
/// Beside it, an array of `#ring.shard`: dimensions that are sharded too, over
/// other axes of the grid, into equal contiguous parts.
inline constexpr llvm::StringLiteral splitsAttr = "ring.splits";
/// Attribute of an index argument: `array<i64: a, d, ...>`, the global size of
/// argument a along dimension d, the same for all pairs.
inline constexpr llvm::StringLiteral extentAttr = "ring.extent";

/// Unit attribute of a result, or of the buffer it is written to: the ranks'
/// results add up to it.
inline constexpr llvm::StringLiteral partialAttr = "ring.partial";
/// Unit attribute of a buffer argument: the program writes a result there.
inline constexpr llvm::StringLiteral resultAttr = "ring.result";

/// Whether ranks can hold what `shard` says as tensors of `type`: its dimension
/// is static only where every rank holds that many positions.
bool isShard(mlir::ShapedType type, ShardAttr shard);

/// The grid of a rank's program, and how many ranks it has.
mlir::shard::GridOp gridOf(mlir::FunctionOpInterface program);
int64_t numRanks(mlir::FunctionOpInterface program);
/// The groups of its ranks that differ in these axes only.
RankGroup groupOf(mlir::FunctionOpInterface program,
                  llvm::ArrayRef<int64_t> axes);
/// The place of the rank that runs among those that differ in `axes` only.
mlir::Value createPlace(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::shard::GridOp grid, llvm::ArrayRef<int64_t> axes);
/// The axes of the program's grid of which a value is the place, as createPlace
/// makes it, the last of them the fastest; none where it is something else.
std::optional<llvm::SmallVector<int64_t>>
matchAxes(mlir::FunctionOpInterface program, mlir::Value value);
/// The groups that differ in such axes only; none where these have gaps or
/// another order than those of the grid.
std::optional<RankGroup> groupAlong(mlir::FunctionOpInterface program,
                                    llvm::ArrayRef<int64_t> axes);
/// The groups of which a value is the place.
std::optional<RankGroup> matchPlace(mlir::FunctionOpInterface program,
                                    mlir::Value value);
/// The number of the channels of all-to-alls. Rings and gathers have those
/// below; inner rings of a nest, those behind.
inline constexpr int64_t exchangeChannel = 2;

/// How the ranks of a program share the tensors that attend, all of them alike:
/// who differ in the sequence, in the batch or in the heads that they have. Of
/// what is not sharded a group has one rank.
struct Sharding {
  RankGroup sequence, batch;
  RankGroup heads;      ///< of arguments and results
  bool isSplit = false; ///< batch or heads are sharded
  /// Where all-to-alls shard heads in place of the sequence: along which axes,
  /// and who differ in the sequence of arguments and results.
  RankGroup exchanged, whole;

  /// Into how many parts the heads that attend are cut: an all-to-all cuts what
  /// a rank has of them anew. And which part a rank has.
  int64_t numHeadParts() const { return heads.size * exchanged.size; }
  int64_t headPartOf(int64_t rank) const {
    return heads.placeOf(rank) * exchanged.size + exchanged.placeOf(rank);
  }
};
Sharding shardingOf(mlir::FunctionOpInterface program);

/// Where a tensor (batch, sequence, heads, dim) or (batch, heads, sequence) has
/// its heads.
inline int64_t headsDimOf(mlir::ShapedType type) {
  return type.getRank() == 4 ? 2 : 1;
}

/// Into how many chunks heads go at most, see ring.take_heads.
inline constexpr int64_t maxHeadChunks = 64;
/// A type with a number of heads in place of its own.
mlir::RankedTensorType withHeads(mlir::RankedTensorType type, int64_t heads);

/// How an argument or a result is sharded: first what `ring.shard` says, then
/// what `ring.splits` does. None where every rank has all of it.
llvm::SmallVector<ShardAttr> shardsOf(mlir::Attribute shard,
                                      mlir::Attribute splits);
llvm::SmallVector<ShardAttr> argumentShards(mlir::FunctionOpInterface program,
                                            unsigned argument);
llvm::SmallVector<ShardAttr> resultShards(mlir::FunctionOpInterface program,
                                          unsigned result);

/// Where a table of flags, see `ring.start`, has that of a segment of an owner.
llvm::SmallVector<mlir::Value>
segmentIndices(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value table,
               mlir::Value owner, mlir::Value turn, mlir::Value segment);

/// What a step's operand or result holds.
enum class Content : uint8_t {
  Data,    ///< of the caller, or what is made of it
  State,   ///< part of a softmax state
  Gradient ///< a sum that is not complete
};

/// What says how large something is along a dimension: that dimension of a
/// tensor or buffer, or a number.
struct SizeSource {
  mlir::Value value;
  int64_t dim = 0; ///< where the value is shaped
};

/// The tensor of this rank of which an all-to-all has taken parts, or chunks of
/// heads, to bring `tensor`, which has the same batch; else `tensor` itself.
mlir::Value behindAllToAll(mlir::Value tensor);

/// In how many groups all-to-alls have the heads of each argument.
llvm::SmallVector<int64_t> headGroups(mlir::FunctionOpInterface program);

/// What every TransferOpInterface keeps to, see `ring.start`.
llvm::LogicalResult verifyTransfer(mlir::Operation *op);
/// That all-to-alls of a program are along the same axes: the last of those of
/// the sequence, behind those of the heads. Those of an argument have its heads
/// in as many groups.
llvm::LogicalResult verifyExchanges(mlir::FunctionOpInterface program);

} // namespace burst::ring

// clang-format off
#include "dialect/Ring/RingInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialect/Ring/RingOps.h.inc"
// clang-format on

namespace burst::ring {

/// The all-to-all that brings `tensor`; null where none does.
TransferOpInterface allToAllOf(mlir::Value tensor);

} // namespace burst::ring

#endif // BURST_DIALECT_RING_RING_H
