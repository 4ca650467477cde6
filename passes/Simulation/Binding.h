//===- Binding.h - global tensors to ranks' arguments and back --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_BINDING_H
#define BURST_PASSES_SIMULATION_BINDING_H

#include "passes/Simulation/Simulation.h"

namespace burst {

/// The sizes of a program that are not static.
struct Sizes {
  /// Left out where no tensor has a dynamic one, and for 1.
  std::optional<int64_t> batch;
  /// One per `ring.extent` argument, in order.
  llvm::SmallVector<int64_t> extents;
};

/// Whether the schedule depends on the value of an argument: it does on sizes
/// and on what masks capture, not on tensors and on what scores capture.
bool steersSchedule(mlir::func::FuncOp program, unsigned argument);

/// Whether all sizes of a program are static and its masks capture no values:
/// then its schedule is known when it is compiled.
bool isStatic(mlir::func::FuncOp program);

/// Whether these are lengths for the `wanted` dynamic ones of a function; emits
/// an error where they are not. `option` is what users give them with.
llvm::LogicalResult checkLengths(mlir::func::FuncOp function, size_t wanted,
                                 llvm::ArrayRef<int64_t> found,
                                 llvm::StringRef option = "extents");
/// The same for a batch size, of a function that has a dynamic one or not.
llvm::LogicalResult checkBatch(mlir::func::FuncOp function, bool isDynamic,
                               std::optional<int64_t> found,
                               llvm::StringRef option = "batch");

/// Global arguments without data, of a rank's program; emits an error where
/// `sizes` do not fit.
llvm::FailureOr<std::vector<Argument>>
describeGlobals(mlir::func::FuncOp program, const Sizes &sizes);

/// Checks that global arguments fit a rank's program: number, kind, shapes,
/// element types, equal batch. Emits an error at the program.
llvm::LogicalResult checkGlobals(mlir::func::FuncOp program,
                                 llvm::ArrayRef<Argument> globals);

/// The arguments of a rank, or of each rank: shards of sharded tensors, sizes
/// from the shapes of the global tensors, everything else as it is. Shards hold
/// data only on demand. Call `Simulation::reset` before.
enum class ShardData : uint8_t { Omit, Copy };
std::vector<Argument> shardGlobals(mlir::func::FuncOp program,
                                   llvm::ArrayRef<Argument> globals,
                                   int64_t rank, ShardData data);
std::vector<std::vector<Argument>>
shardGlobals(Simulation &simulation, llvm::ArrayRef<Argument> globals,
             ShardData data);

/// The global tensor of which the ranks' results `index` are shards, or of
/// which each rank gives a part of the sum: in f64, not rounded again.
TensorRef gatherResult(const Simulation &simulation, unsigned index);

/// Copies the positions `from` of dimension `dim` of one tensor to the
/// positions `to` of another.
void copyPositions(const Tensor &source, llvm::ArrayRef<int64_t> from,
                   Tensor &target, llvm::ArrayRef<int64_t> to, int64_t dim);

} // namespace burst

#endif // BURST_PASSES_SIMULATION_BINDING_H
