//===- Emitter.h - prints one kernel as CUDA C++ ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emit.cpp prints the function, its parameters, control flow and memory,
// EmitTiles.cpp tile ops and their regions, EmitHopper.cpp what only
// warp-specialized kernels have.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_CODEGEN_CUDA_EMITTER_H
#define BURST_CODEGEN_CUDA_EMITTER_H

#include "codegen/cuda/Emit.h"
#include "codegen/cuda/Names.h"
#include "codegen/cuda/Scalars.h"
#include "dialect/Cuda/Cuda.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/raw_ostream.h"

namespace burst::cuda {

inline mlir::MemRefType typeOf(mlir::Value value) {
  return mlir::cast<mlir::MemRefType>(value.getType());
}

/// Whether a region uses an argument in 32 bits only, as narrowing leaves it:
/// by casts, and as a place in a table.
bool isNarrow(mlir::Value argument);

/// Prints one kernel. What an op computes gets a name, and each tile op is a
/// call of the device library.
class Emitter {
public:
  explicit Emitter(mlir::func::FuncOp kernel)
      : kernel(kernel), scalars(names) {}

  llvm::FailureOr<KernelText> emit();

private:
  llvm::LogicalResult emit(mlir::Block &block);
  llvm::LogicalResult emit(mlir::Operation *op);
  llvm::LogicalResult emitScalar(mlir::Operation *op);
  llvm::LogicalResult emit(mlir::scf::ForOp op);
  llvm::LogicalResult emitBranch(mlir::scf::IfOp op, mlir::Block &block);
  llvm::LogicalResult emit(mlir::scf::IfOp op);
  llvm::LogicalResult emit(mlir::memref::AllocaOp op);
  llvm::LogicalResult emit(mlir::memref::SubViewOp op);
  llvm::LogicalResult emit(tile::LoadOp op);
  llvm::LogicalResult emit(tile::MultiplyOp op);
  llvm::LogicalResult emit(tile::MapOp op);
  llvm::LogicalResult emit(tile::MapGradientOp op);
  llvm::LogicalResult emit(MaskBitsOp op);
  template <typename OpT>
  llvm::SmallVector<llvm::StringRef>
  emitPlaces(OpT op,
             llvm::ArrayRef<std::pair<mlir::Region *, unsigned>> regions,
             bool isTransposed = false);
  llvm::FailureOr<std::string>
  emitRegion(mlir::Region &region, unsigned first,
             llvm::ArrayRef<llvm::StringRef> places, mlir::ValueRange captures);
  llvm::LogicalResult emitTile(mlir::Operation *op);
  llvm::LogicalResult emitRows(mlir::Operation *op);
  void placePipelines();
  llvm::LogicalResult emit(PipelineOp op);
  llvm::LogicalResult emit(WarpSpecializeOp op);
  llvm::LogicalResult emit(AwaitOp op);
  llvm::LogicalResult emitHopper(mlir::Operation *op);
  llvm::LogicalResult parameter(mlir::BlockArgument argument,
                                std::string &text);

  llvm::raw_ostream &line();
  llvm::StringRef name(mlir::Value value) { return names.of(value); }
  std::string unitOf(mlir::Value scores);

  mlir::func::FuncOp kernel;
  Names names;
  Scalars scalars;
  std::string text;
  llvm::raw_string_ostream os{text};
  unsigned depth = 1;
  int64_t sharedBytes = 0;
  WarpSpecializeOp specialized;                         ///< or null
  llvm::StringRef warpgroup = "uniformWarpgroup()";     ///< of a consumer
  llvm::SmallDenseMap<mlir::Operation *, Place> places; ///< of pipelines
  std::vector<ParameterText> parameters{{"order", 0, 8, {}}};
  int64_t argumentBytes = 8;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_EMITTER_H
