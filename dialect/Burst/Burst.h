//===- Burst.h - the burst dialect ------------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_BURST_H
#define BURST_DIALECT_BURST_BURST_H

#include "dialect/Burst/Regions.h"
#include "dialect/Burst/Sequence.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::shard {
class GridOp;
} // namespace mlir::shard

namespace burst {

/// Refuses segments of operands that have not one element where the op, which
/// lists the others as `variadicSegments`, has one operand.
llvm::LogicalResult verifyFixedSegments(mlir::Operation *op,
                                        llvm::ArrayRef<int32_t> sizes,
                                        llvm::ArrayRef<unsigned> variadic);

/// The trait Burst_FixedSegments.
template <typename ConcreteType>
class FixedSegments
    : public mlir::OpTrait::TraitBase<ConcreteType, FixedSegments> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    auto concrete = llvm::cast<ConcreteType>(op);
    return verifyFixedSegments(op, concrete.getProperties().operandSegmentSizes,
                               ConcreteType::variadicSegments);
  }
};

/// A tensor of an attention that is sharded over the ranks along its dimension
/// `dim`: as keys are, or as queries are.
struct Sharded {
  mlir::Value tensor;
  int64_t dim;
  bool isOfKeys;
};

/// A name of a strategy, and the axes on which it works; none where it works on
/// all that are left. In how many chunks heads go, where it says so.
struct StrategyPart {
  llvm::StringRef name;
  llvm::SmallVector<int64_t> axes = {};
  int64_t chunks = 1;
};

class AttentionInterface;
AttentionSizes sizesOf(AttentionInterface op);
double scaleOf(AttentionInterface op);
mlir::FloatType stateTypeOf(AttentionInterface op);

/// The largest score of a state type: FLT_MAX / log2(e) for f32. Exponentials
/// are powers of two, and a score beyond it is infinite once it is multiplied
/// by log2(e).
double largestScore(mlir::Type stateType);
/// A score, infinite where it is beyond the largest.
double toScore(double s, mlir::Type stateType);

} // namespace burst

// clang-format off
#include "dialect/Burst/BurstDialect.h.inc"
#include "dialect/Burst/BurstEnums.h.inc"
#include "dialect/Burst/BurstInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/Burst/BurstAttrs.h.inc"
#include "dialect/Burst/BurstOpInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialect/Burst/BurstOps.h.inc"
// clang-format on

namespace burst {

/// Argument and result attribute by which tools name a tensor.
inline constexpr llvm::StringLiteral nameAttr = "burst.name";

/// The grid a symbol names; emits an error at `op` and returns null where there
/// is none, or where it has dynamic axes.
mlir::shard::GridOp lookupGrid(mlir::Operation *op,
                               mlir::FlatSymbolRefAttr name);

/// As the only one of some axes: none are meant. Without any, all are.
inline constexpr int64_t noAxis = -1;

/// `@mesh[0, 1]`, a grid and axes of it; all of them where no list stands
/// there, none in `@mesh[]`. Each axis follows the one before it.
mlir::ParseResult parseAxes(mlir::AsmParser &parser,
                            mlir::FlatSymbolRefAttr &grid,
                            llvm::SmallVector<int64_t> &axes);
void printAxes(mlir::AsmPrinter &printer, mlir::FlatSymbolRefAttr grid,
               llvm::ArrayRef<int64_t> axes);
/// The list alone, with its brackets; nothing where all are meant.
mlir::ParseResult parseAxisList(mlir::AsmParser &parser,
                                llvm::SmallVector<int64_t> &axes);
void printAxisList(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> axes);
llvm::LogicalResult
verifyAxes(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
           llvm::ArrayRef<int64_t> axes);

/// The ranks that differ in some axes of a grid only, which follow each other:
/// of every place in the other axes there is one such group. Ranks count the
/// places of the grid, its last axis the fastest. Of no axes a group is one
/// rank.
struct RankGroup {
  int64_t size = 1, stride = 1;

  /// The place of `rank` in its group.
  int64_t placeOf(int64_t rank) const { return rank / stride % size; }
  /// The rank at a place of the group of `rank`.
  int64_t member(int64_t rank, int64_t place) const {
    return rank + (place - placeOf(rank)) * stride;
  }
  /// Whether its ranks are some of those of a group of `all`, every so many of
  /// them.
  bool isPartOf(const RankGroup &all) const {
    return stride % all.stride == 0 &&
           all.size * all.stride % (size * stride) == 0;
  }
  bool operator==(const RankGroup &) const = default;
};

/// The groups of some axes, or of all; emits an error at `op` where the grid
/// has not such axes.
llvm::FailureOr<RankGroup> resolveAxes(mlir::Operation *op,
                                       mlir::FlatSymbolRefAttr grid,
                                       llvm::ArrayRef<int64_t> axes);
/// The same of a grid that is known to have them.
RankGroup groupOf(mlir::shard::GridOp grid, llvm::ArrayRef<int64_t> axes);

/// Into how many parts heads, or batches, are cut: one where there is no such
/// clause.
int64_t numParts(mlir::Operation *op, AxesAttr axes);

/// How `sequence` is laid out over the ranks of its axes; emits an error at
/// `op` where that cannot be said.
llvm::FailureOr<Layout> resolveLayout(mlir::Operation *op,
                                      SequenceAttr sequence);

/// `type` with dimension `dim` cut down to what each rank holds of it: static
/// where all hold equally many, else dynamic.
mlir::RankedTensorType shardType(mlir::RankedTensorType type, int64_t dim,
                                 const Layout &layout);

/// Order and block, as both `#burst.sequence` and `#ring.layout` spell them.
void printOrder(mlir::AsmPrinter &printer, Order order, int64_t block);
mlir::ParseResult parseOrder(mlir::AsmParser &parser, Order &order,
                             int64_t &block);

/// A named mask or score without its dialect: `causal`, `window<right = 0>`.
/// (With it, the parser would take a colon behind it for the attribute's type.)
mlir::ParseResult parseName(mlir::AsmParser &parser, mlir::Attribute &name);
void printName(mlir::AsmPrinter &printer, mlir::Attribute name);

} // namespace burst

#endif // BURST_DIALECT_BURST_BURST_H
