//===- Compiler.h - from MLIR to instructions -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_SCALARS_COMPILER_H
#define BURST_PASSES_SIMULATION_SCALARS_COMPILER_H

#include "dialect/Burst/Burst.h"
#include "dialect/Ring/Ring.h"
#include "passes/Simulation/Scalars/Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace burst {

/// What is held as a scalar; all else is an object.
inline bool isScalar(mlir::Type type) { return type.isIntOrIndexOrFloat(); }

inline unsigned widthOf(mlir::Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// Builds a Program; see Program::compile.
class Compiler {
public:
  explicit Compiler(llvm::function_ref<bool(mlir::Operation *)> isExternal)
      : isExternal(isExternal) {}

  llvm::LogicalResult compileTop(mlir::Region &region);

  Program program;

private:
  Slot fresh(mlir::Type type);
  Slot slot(mlir::Value value);
  Instruction &emit(Opcode opcode, mlir::Operation *op = nullptr);
  Instruction &emitSimple(Opcode opcode, mlir::Operation &op);
  void emitRounding(mlir::Operation &op);
  /// With `moves`, an object leaves where it was.
  void emitCopy(Slot to, Slot from, bool moves = false);
  void emitYield(mlir::Block &block, mlir::ValueRange to);
  void emitNextTurn(Opcode opcode, mlir::Operation *op, uint32_t head, Slot iv,
                    Slot step);
  void releaseInits(mlir::scf::ForOp loop);
  void releaseYielded(mlir::Block &block);
  void emitReleases(mlir::Operation *op);
  void reuse(mlir::Value value);
  Slot emitConstant(int64_t value);
  uint32_t operandList(mlir::Operation *op);
  bool isLastUse(mlir::Operation *op, mlir::Value value);

  llvm::LogicalResult compileBody(mlir::Block &block);
  llvm::LogicalResult compileOp(mlir::Operation &op);
  llvm::LogicalResult compileFor(mlir::scf::ForOp loop);
  llvm::LogicalResult compileIf(mlir::scf::IfOp branch);
  llvm::LogicalResult compileGenerate(mlir::tensor::GenerateOp generate);
  void describeLanes(uint32_t trial, Slot iv, int64_t extent);
  void describeSegment(ring::SegmentOp op, Instruction &instruction);
  llvm::LogicalResult compileTableOp(mlir::Operation &op);
  void compileContribute(ContributeOp op);
  llvm::LogicalResult compileConstant(mlir::arith::ConstantOp op);
  llvm::LogicalResult compileConversion(mlir::Operation &op);
  llvm::LogicalResult compileScalar(mlir::Operation &op);
  void compileCompare(mlir::arith::CmpIOp op);

  llvm::function_ref<bool(mlir::Operation *)> isExternal;
  llvm::DenseMap<mlir::Value, Slot> slots;
  /// Numbers of slots that nothing behind reads.
  llvm::SmallVector<uint32_t> freeScalars, freeObjects;
  bool isInOrder = true; ///< whether ops are run as they stand in their block
  mlir::Region *top = nullptr;
  bool isMask = false; ///< whether it yields truth values only
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SCALARS_COMPILER_H
