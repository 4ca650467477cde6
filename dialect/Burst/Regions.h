//===- Regions.h - mask, score, bounds and gradient regions -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops of all levels that carry these regions share: their arguments,
// their syntax and their rules.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_DIALECT_BURST_REGIONS_H
#define BURST_DIALECT_BURST_REGIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpImplementation.h"

namespace burst {

/// Sizes of an attention; ShapedType::kDynamic where not known.
struct AttentionSizes {
  int64_t batch, queries, keys, queryHeads, keyHeads, queryDim, valueDim;
};

/// Positions and sizes are assumed to lie below this: it is what the analysis
/// of masks starts from, and far above any sequence.
inline constexpr int64_t maxPositions = int64_t{1} << 40;
/// The largest grid.
inline constexpr int64_t maxRanks = int64_t{1} << 20;

/// Whether two sizes may be the same: equal, or one of them dynamic.
inline bool agree(int64_t a, int64_t b) {
  return a == b || mlir::ShapedType::isDynamic(a) ||
         mlir::ShapedType::isDynamic(b);
}

/// Whether two shapes may be the same.
inline bool agree(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  return llvm::equal(a, b, [](int64_t x, int64_t y) { return agree(x, y); });
}

enum class RegionRole : uint8_t { Mask, Score, Bounds, Gradient };

llvm::StringRef stringify(RegionRole kind);

/// The region's arguments in front of the captures.
llvm::SmallVector<mlir::Type> leadingArguments(RegionRole kind,
                                               mlir::FloatType state);
/// What the region's terminator yields.
llvm::SmallVector<mlir::Type> yieldedTypes(RegionRole kind,
                                           mlir::FloatType state);

/// Names the region's arguments as the documentation does.
void setArgumentNames(RegionRole kind, mlir::Region &region,
                      mlir::OpAsmSetValueNameFn setName);

/// The arguments of a mask, score or gradient region by name.
struct RegionArguments {
  mlir::Value score; ///< null in a mask
  mlir::Value g;     ///< null but in a gradient region
  mlir::Value b, h, i, j, sq, sk;
  mlir::ValueRange captures;

  static RegionArguments of(RegionRole kind, mlir::Block &block);
};

/// Appends the block of a region with the arguments of `kind` and captures.
mlir::Block &addRegionBlock(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Region &region, RegionRole kind,
                            mlir::FloatType state, mlir::TypeRange captures);

/// What regions compute with: an index, an integer of 1 to 64 bits without a
/// sign of its own, a float of at most 64 bits.
bool isRegionScalar(mlir::Type type);
/// A capture is a scalar or a table of scalars of rank 1 to 4: a tensor, or
/// behind bufferization a memref.
bool isCapture(mlir::Type type);
/// What regions see of captures: tables are tensors, whatever holds them.
llvm::SmallVector<mlir::Type> asRegionArguments(mlir::TypeRange captures);

/// Checks one block, its arguments, its ops and what it yields. An empty region
/// passes. Messages stand at the offending op.
llvm::LogicalResult verifyRegion(mlir::Operation *op, RegionRole kind,
                                 mlir::Region &region, mlir::FloatType state,
                                 mlir::TypeRange captures);

/// `kind(%b, ..., %sk, %t = %table : type) { ops }`; where the captures are
/// those of another region and not given, `bounds(%b0, ..., %t : type)`.
void printRegion(mlir::OpAsmPrinter &printer, RegionRole kind,
                 mlir::Region &region, mlir::ValueRange captures);

/// The same on a line of its own, indented as a clause of its op.
void printClauseRegion(mlir::OpAsmPrinter &printer, RegionRole kind,
                       mlir::Region &region, mlir::ValueRange captures);

/// Parses what `printRegion` prints, behind the opening parenthesis. The state
/// type is not known yet where types come last, so score regions print theirs.
/// Bounds and gradients have the captures of mask and score, unless the op
/// `lists` them here.
mlir::ParseResult parseRegion(
    mlir::OpAsmParser &parser, RegionRole kind, mlir::Region &region,
    llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &captures,
    llvm::SmallVectorImpl<mlir::Type> &captureTypes, bool lists = false);

} // namespace burst

#endif // BURST_DIALECT_BURST_REGIONS_H
