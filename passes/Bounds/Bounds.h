//===- Bounds.h - What a mask keeps in a rectangle --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Abstract interpretation of a region of scalar ops, emitted as IR.
//
// A mask is a region of one block of pure scalar ops (arith, math,
// tensor.extract) whose terminator yields one i1, "keep this point". `emit`
// writes IR that says, for a whole rectangle of the region's arguments, whether
// any point may be kept and whether all points are kept. The IR folds where the
// rectangle is constant and runs where it is not.
//
// Always sound: `may` = false means that no point is kept, `must` = true that
// every point is kept. Exact on rectangles of contiguous positions for
//
//   full        true
//   causal      j <= i + (sk - sq)
//   window      i + (sk - sq) - left <= j && j <= i + (sk - sq) + right,
//               where it is not empty: left + right + 1 > 0
//   prefix      j < n || j <= i + (sk - sq)
//   documents   id[i] == id[j], ids nondecreasing in one table
//
// In general a comparison of expressions in which each argument occurs once is
// exact. Conjunctions are exact in `must`, disjunctions in `may`; the other
// half is exact where one point decides both sides (prefix: the last key for
// the first query), or where both sides bound one quantity from opposite ends
// and it takes every value between (window: j - i).
//
// Knows nothing of burst: arith, math, tensor and builtin only.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_PASSES_BOUNDS_BOUNDS_H
#define BURST_PASSES_BOUNDS_BOUNDS_H

#include "mlir/IR/Builders.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

namespace burst::bounds {

/// The values `lo`..`hi`, both included, of an integer or index argument, as
/// `index` or as integers of at most 64 bits, signed. Where `lo > hi` at run
/// time the rectangle is empty: what is emitted may be executed, but its
/// results mean nothing.
///
/// Both values are in `staticLo`..`staticHi`, of an empty rectangle too (the
/// last position of no positions is -1). Tight static bounds (positions are in
/// 0..2^40-1, say) save the guards against overflow: without them `i + n` may
/// wrap, and the IR has to find out. Constant bounds need none.
struct Interval {
  mlir::Value lo, hi;
  int64_t staticLo = std::numeric_limits<int64_t>::min();
  int64_t staticHi = std::numeric_limits<int64_t>::max();
};

/// Of an i1: may it be true somewhere, is it true everywhere. `must` implies
/// `may`.
struct Truth {
  mlir::Value may, must;
};

/// A value that is the same at all points: an integer of at most 64 bits, an
/// index (both within the static bounds), an i1; or a table, a tensor that is
/// read at varying indices. Of other types, nothing is known.
struct Captured {
  mlir::Value value;
  int64_t staticLo = std::numeric_limits<int64_t>::min();
  int64_t staticHi = std::numeric_limits<int64_t>::max();
};

/// What is known of an argument of the region; std::monostate: nothing.
using Argument = std::variant<std::monostate, Interval, Truth, Captured>;

/// Emits the least and the greatest element (signed; for i1, true is -1) of an
/// integer table in a box of index ranges, both ends included, one per
/// dimension. Both results have the element type or `index`. The ends of the
/// box are within the table, unless that is empty: then they are 0, results
/// mean nothing, and nothing may be read. The box is empty only if the
/// rectangle is.
///
/// Emitted code may turn out to be unneeded: it is dropped if it is pure. It is
/// made in a scratch module and moved to its place in the end.
using TableRange = llvm::function_ref<std::pair<mlir::Value, mlir::Value>(
    mlir::OpBuilder &, mlir::Location, mlir::Value table,
    llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> box)>;

/// Emits, at the insertion point of `builder`, what `mask` yields over the
/// product of `arguments` (one per argument of the region; missing ones are
/// unknown). Emits arith, tensor.dim of tables, what `tableRange` emits, and no
/// dead op. The emitted code neither traps nor reads outside tables, whatever
/// the values are at run time, as long as they keep their static bounds.
///
/// Integers wrap at their width and `index` has 64 bits; indices are clamped
/// into tables. Points at which the region has undefined behaviour or yields
/// poison (division by zero, a shift by the width) are not accounted for.
/// Without `tableRange` nothing is known of table elements but their type.
Truth emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Region &mask,
           llvm::ArrayRef<Argument> arguments, TableRange tableRange = {});

} // namespace burst::bounds

#endif // BURST_PASSES_BOUNDS_BOUNDS_H
