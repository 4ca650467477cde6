//===- Lowering.h - from ring steps on buffers to kernels -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ring-lower-to-tile does to one program: each step becomes launches of
// kernels. Steps of a forward pass are lowered in LowerAttend.cpp, those of a
// backward pass in LowerGradients.cpp, gradients of captured tables in
// TableGradients.cpp, what is only for GPUs in LowerStaged.cpp, and what burst
// is compared with in baselines/.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_TILE_LOWERING_H
#define BURST_PASSES_TILE_LOWERING_H

#include "passes/Passes.h"
#include "passes/Tile/AttendKernel.h"
#include "passes/Tile/CtaGradient.h"
#include "passes/Tile/FewQueries.h"
#include "passes/Tile/Schedule.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/MapVector.h"

namespace burst::tiling {

/// Emits what is done to a row of a table: all its elements along the last
/// dimension, by where the row lies in the others.
using RowBody = llvm::function_ref<void(TileBuilder &, mlir::ValueRange row)>;

/// Lowers the ops of one program.
class Lowering {
public:
  Lowering(mlir::func::FuncOp program, const LowerToTilePassOptions &options)
      : program(program), options(options) {}

  llvm::LogicalResult run();

  // What a step is lowered with.

  /// Launches a kernel of this body, which runs `tasks` times, in the order
  /// that the table `order` says, if any. Equal kernels are one. Gives the
  /// kernel.
  mlir::func::FuncOp launch(TileBuilder &builder, llvm::StringRef name,
                            mlir::Value tasks, mlir::Value order,
                            const Operands &operands, Body body, int64_t warps);
  void launch(TileBuilder &builder, llvm::StringRef name, mlir::Value tasks,
              mlir::Value order, const Operands &operands, Body body) {
    launch(builder, name, tasks, order, operands, body, options.warps);
  }

  /// The tiles of an attend whose state or gradients are of this type.
  Shape shapeOf(mlir::FloatType type);
  Shape shapeOf(mlir::Value state) {
    return shapeOf(mlir::cast<mlir::FloatType>(
        mlir::cast<mlir::MemRefType>(state.getType()).getElementType()));
  }
  /// The tiles of what is done row by row, without products.
  Shape rowShapeOf(mlir::Value state);

  // The steps of the ring dialect.
  void lower(ring::InitOp op);
  void lower(ring::AttendOp op);
  void lower(ring::MergeOp op);
  void lower(ring::FinalizeOp op);
  void lower(ring::ScoresOp op);
  void lower(ring::ScoreOp op);
  void lower(ring::SoftmaxOp op);
  void lower(ring::WeighOp op);
  void lower(ring::ProbabilitiesOp op);
  void lower(ring::WeighGradOp op);
  void lower(ring::ScoreGradOp op);
  void lower(ring::ZeroOp op);
  void lower(ring::DeltaOp op);
  void lower(ring::AttendGradOp op);
  void lower(ring::AddOp op);
  void lower(ring::RoundOp op);

private:
  /// Whether products are of pairs, of these operands and others of their type.
  bool arePairs(mlir::Value operand) const {
    return options.pairs && options.localTiling &&
           mlir::cast<mlir::MemRefType>(operand.getType())
               .getElementType()
               .isBF16();
  }
  llvm::LogicalResult verifyStaged(mlir::Operation *op);
  Shape stripShapeOf(mlir::Value stored);
  void splitEnds(ring::AttendOp op);
  void attend(TileBuilder &builder, ring::AttendOp op);
  void attendStaged(TileBuilder &builder, ring::AttendOp op, Shape shape,
                    const Schedule &schedule);
  void attendTiled(TileBuilder &builder, ring::AttendOp op, Shape shape,
                   const Schedule &schedule);
  static Shape ofFew(Shape shape, const FewQueries &few);
  void attendParts(TileBuilder &builder, ring::AttendOp op, const Shape &shape,
                   const Schedule &schedule);
  void mergeParts(TileBuilder &builder, ring::AttendOp op, Shape shape,
                  const KeyParts &parts);
  PackedSlice pack(TileBuilder &builder, ring::AttendOp op, const Shape &shape,
                   const Schedule &schedule);
  void attendGrad(TileBuilder &builder, ring::AttendGradOp op);
  void attendGradStaged(TileBuilder &builder, ring::AttendGradOp op,
                        const CtaShape &cta, llvm::ArrayRef<Sums> kernels);
  void attendGradTiled(TileBuilder &builder, ring::AttendGradOp op);
  void findTables(llvm::ArrayRef<mlir::Operation *> steps);
  void makeCopies(mlir::Value gradient, llvm::ArrayRef<ring::AttendGradOp> ops,
                  int64_t capture);
  void launchRows(TileBuilder &builder, llvm::StringRef name, mlir::Value table,
                  const mlir::Value &inside, const Operands &operands,
                  RowBody body);
  void launchZeros(TileBuilder &builder, mlir::Value table);
  void launchZero(TileBuilder &builder, mlir::Value zero);
  void clearRoom(ring::TransferOpInterface start);

  /// The gradients of captured tables that attends add to: what their tasks add
  /// to, beside the gradient; null where that alone will do.
  llvm::MapVector<mlir::Value, mlir::Value> tables;
  mlir::func::FuncOp program;
  const LowerToTilePassOptions &options;
  llvm::SmallVector<mlir::func::FuncOp> kernels;
};

/// Segments of the shard of an owner, and which of them are meant: all, where
/// there are no flags.
struct OwnedSegments {
  ring::LayoutAttr layout;
  mlir::Value owner, extent;
  mlir::Value flags, turn; ///< a table, and which row of the owner's

  template <typename OpT>
  static OwnedSegments of(OpT op) {
    return {op.getLayout(), op.getOwner(), op.getExtent(), op.getSegments(),
            op.getTurn()};
  }
};

/// Whether there is nothing in a buffer, as its type says: memref.subview has
/// no segments of it.
inline bool hasNoElements(mlir::Value buffer) {
  return llvm::is_contained(
      mlir::cast<mlir::MemRefType>(buffer.getType()).getShape(), 0);
}

/// Emits code for each segment that is meant and not empty: its first position
/// in the shard, and how many it has.
void ofSegments(
    TileBuilder &builder, const OwnedSegments &of,
    llvm::function_ref<void(mlir::Value first, mlir::Value count)> body);

/// Emits `body` for where a rank computes any pair of segments: in the hops
/// where it computes none, nothing is classified, packed or launched.
void wherePairs(TileBuilder &builder, ring::AttendLikeOpInterface op,
                llvm::function_ref<void()> body);

/// Whether a gradient may be that of a shard (batch, sequence, heads, dim), and
/// not that of a table.
bool hasHeads(mlir::Value gradient);

/// Memory for all pairs of tiles of a slice.
mlir::Value allocateTiles(TileBuilder &builder, mlir::Value query,
                          const Schedule &schedule, const Shape &shape);

} // namespace burst::tiling

#include "passes/Tile/TileLowering.h.inc"

namespace burst {

/// Gives the steps of the ring dialect their TileLoweringOpInterface.
void registerRingTileLowering(mlir::DialectRegistry &registry);

} // namespace burst

#endif // BURST_PASSES_TILE_LOWERING_H
