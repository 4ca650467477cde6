//===- Verify.h - what the ops of the ring dialect share --------*- C++ -*-===//
#ifndef BURST_DIALECT_RING_VERIFY_H
#define BURST_DIALECT_RING_VERIFY_H

#include "dialect/Ring/Ring.h"

namespace burst::ring {

inline mlir::ShapedType shapedType(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType());
}

/// f64 for f64 shards, else f32.
mlir::FloatType stateTypeOf(mlir::ShapedType shard);

/// All values are tensors, or all are buffers. On buffers there are no results
/// but those that are no tensors.
llvm::LogicalResult verifyForm(mlir::Operation *op, mlir::ValueRange values,
                               size_t results, bool keepsResults = false);

using Effects = llvm::SmallVectorImpl<mlir::MemoryEffects::EffectInstance>;

/// What an op reads and writes of its operands, where they are buffers.
void addEffects(Effects &effects,
                llvm::MutableArrayRef<mlir::OpOperand> operands,
                mlir::ValueRange written);

using Operands = llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand>;

/// `kind(...) { ... }`, where it stands there.
mlir::ParseResult parseOptionalRegion(mlir::OpAsmParser &parser,
                                      RegionRole kind, mlir::Region &region,
                                      Operands &captures,
                                      llvm::SmallVector<mlir::Type> &types);

/// `<order over parts>` as attribute `name`.
mlir::ParseResult parseLayout(mlir::OpAsmParser &parser, llvm::StringRef name,
                              mlir::NamedAttrList &attributes);

} // namespace burst::ring

#endif // BURST_DIALECT_RING_VERIFY_H
