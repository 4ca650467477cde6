//===- Bufferizer.h - the program of a rank on buffers ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ring-bufferize does to one program. Memory and its sizes are made in
// Memory.cpp, steps are put on buffers in Steps.cpp, transfers and the loops
// that carry what they bring in Loops.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_BUFFERIZE_BUFFERIZER_H
#define BURST_PASSES_BUFFERIZE_BUFFERIZER_H

#include "passes/Buffers/Reuse.h"
#include "passes/Buffers/Slots.h"
#include "passes/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

namespace burst::bufferizing {

using llvm::LogicalResult;
using llvm::SmallVector;
using mlir::ArrayRef;
using mlir::Block;
using mlir::BlockArgument;
using mlir::IRMapping;
using mlir::isa;
using mlir::Location;
using mlir::MemRefType;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::OpOperand;
using mlir::OpResult;
using mlir::RankedTensorType;
using mlir::ShapedType;
using mlir::StringRef;
using mlir::SymbolTableCollection;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
namespace arith = mlir::arith;
namespace func = mlir::func;
namespace memref = mlir::memref;
namespace scf = mlir::scf;
namespace tensor = mlir::tensor;

inline bool isTensor(Value value) {
  return isa<mlir::TensorType>(value.getType());
}

inline bool hasNoElements(Type tensor) {
  return llvm::is_contained(mlir::cast<RankedTensorType>(tensor).getShape(), 0);
}

/// Which dimension is sharded of what is made by a slice of which `dim` is: m
/// and l have the queries behind the heads.
inline int64_t shardedDim(RankedTensorType type, int64_t dim) {
  return type.getRank() == 3 ? 2 : dim;
}

/// A buffer of a tensor of `type` wherever it lies: only the last stride is
/// known, to be 1.
inline MemRefType bufferType(RankedTensorType type) {
  if (type.getRank() == 0)
    return MemRefType::get({}, type.getElementType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(type.getShape(), type.getElementType(),
                         mlir::StridedLayoutAttr::get(
                             type.getContext(), ShapedType::kDynamic, strides));
}

/// Whether a step begins a state or a gradient, of nothing that is one.
inline bool isFresh(ring::StepOpInterface op) {
  return op.getResultMemory() && op->getNumResults() != 0 &&
         op.getContent(op->getResult(0)) != ring::Content::Data;
}

inline bool isGradient(ring::StepOpInterface op) {
  return op.getContent(op->getResult(0)) == ring::Content::Gradient;
}

/// Where a transfer in a loop receives, turn by turn.
struct Slots {
  SmallVector<Value> buffers; ///< per tensor, with a leading dimension
  int64_t count;              ///< its size
};

/// Positions along a dimension that are sharded over the ranks: how many there
/// are is what the owner holds.
struct Extent {
  int64_t dim;
  ring::LayoutAttr layout;
  Value owner, extent; ///< of the old program; no owner of what is gathered
};

/// A transfer that a loop carries: where it puts what it brings.
struct Arrival {
  ring::TransferOpInterface start;
  SmallVector<Value> buffers;
  Value owner; ///< of what it brings, in the old program
  ring::Content content;
  int64_t count; ///< of buffers, as in Slots
  /// The buffer of the last turn, behind the loop; in it, that of the turn
  /// before.
  std::optional<int64_t> last;
};

/// Clones one program, with buffers in place of tensors.
class Bufferizer {
public:
  explicit Bufferizer(func::FuncOp program)
      : program(program), builder(program.getContext()) {}

  LogicalResult run();

private:
  LogicalResult convertBlock(Block &block);
  LogicalResult convert(Operation &op);
  LogicalResult convert(ring::StepOpInterface op);
  LogicalResult convert(ring::TransferOpInterface op);
  LogicalResult convert(ring::WaitOp op);
  LogicalResult convert(scf::ForOp op);
  LogicalResult convert(scf::IfOp op);
  LogicalResult convert(tensor::GenerateOp op);
  LogicalResult convert(ring::TakeHeadsOp op);
  LogicalResult convert(ring::JoinHeadsOp op);
  LogicalResult convert(arith::ConstantOp op);
  LogicalResult convert(func::ReturnOp op);
  LogicalResult convertClone(Operation &op);

  LogicalResult checkContent(ring::StepOpInterface op, OpOperand &operand);
  LogicalResult checkUpdated(Operation *op, ValueRange tensors);
  LogicalResult makeSlots(scf::ForOp op, ring::TransferOpInterface start,
                          int64_t turns);
  LogicalResult makeSlots(scf::ForOp op, Operation *fresh, int64_t turns);
  Value inFrontOfLoops(Value tensor);
  SmallVector<Value> madeInSlots(Operation *fresh);
  SmallVector<Value> madeResults(ring::StepOpInterface op);
  Operation *cloneOnBuffers(ring::StepOpInterface op, ValueRange memory);
  LogicalResult chooseCarried(scf::ForOp op,
                              llvm::SmallVectorImpl<bool> &carried,
                              llvm::SmallVectorImpl<Value> &inits);
  void mapCarried(scf::ForOp op, ArrayRef<bool> carried, ValueRange values,
                  ValueRange successors);
  LogicalResult carryTokens(scf::ForOp op, scf::ForOp created, bool isInside);
  void separateStates();
  void nameExtent(unsigned result, Value tensor);
  void nameArgument(ring::TransferOpInterface op, Value tensor, Value brought);
  void requireSizes(unsigned result, Value table);
  void requireBatch();
  Value allocate(MemRefType type, ValueRange sizes, StringRef memory);
  Value capacity(ring::LayoutAttr layout, Value extent);
  Value allocateSlices(RankedTensorType type, Value tensor, int64_t dim,
                       Value capacity, int64_t count, StringRef memory);
  Value viewSlot(RankedTensorType type, const Extent &sharded, Value slot,
                 mlir::OpFoldResult number);
  mlir::OpFoldResult slotOf(int64_t count, bool ofTurnBefore = false);
  Value receivedOwner(ring::TransferOpInterface op);
  Value receivedResult(ring::TransferOpInterface op, unsigned index);
  Value returnedMemory(Value tensor);
  Value viewChunk(Value whole, RankedTensorType type, int64_t chunk,
                  int64_t count);
  Value allocateNothing(ring::TransferOpInterface op, unsigned index,
                        RankedTensorType type);
  Value received(ring::TransferOpInterface op, unsigned index, Value slot,
                 int64_t turns);
  Value made(ring::StepOpInterface op, OpResult tensor, ArrayRef<Value> others);
  Value resultBuffer(Value tensor);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// What comes in the place of a buffer holds what that does.
  void inherit(Value buffer, Value successor) {
    contents[successor] = contents.lookup(buffer);
  }
  Value map(Value value) { return mapping.lookup(value); }
  /// Of an optional operand.
  Value mapIfAny(Value value) { return value ? map(value) : Value(); }
  SmallVector<Value> map(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return map(value); });
  }

  func::FuncOp program;
  OpBuilder builder;
  Location loc = program.getLoc();
  /// Scalars to scalars, tensors to buffers.
  IRMapping mapping;
  /// Of the transfers, states and gradients of the loop that is being
  /// converted.
  llvm::DenseMap<Operation *, Slots> slots;
  /// Of tokens that loops carry.
  llvm::DenseMap<Value, Arrival> arrivals;
  /// What transfers under way receive into.
  llvm::DenseMap<Value, SmallVector<Value>> receiving;
  /// See findReusedBuffers.
  llvm::DenseMap<Operation *, Operation *> reused;
  SymbolTableCollection tables;
  /// What buffers hold that are updated in place.
  llvm::DenseMap<Value, ring::Content> contents;
  /// The buffers of the program's results.
  SmallVector<Value> results;
  /// The argument as which what is in a buffer is sharded.
  llvm::DenseMap<Value, BlockArgument> queries;
  scf::ForOp loop; ///< innermost, that of the old program
  /// In front of which slots are made: the outermost loop, in both programs.
  scf::ForOp outermost, newOutermost;
  Value turn; ///< its number of the turn, in the new program
};

} // namespace burst::bufferizing

#endif // BURST_PASSES_BUFFERIZE_BUFFERIZER_H
