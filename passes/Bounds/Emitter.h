//===- Emitter.h - Scalars at the place of emission -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds 64-bit arithmetic that folds: every scalar carries static bounds,
// which decide comparisons, minima and selects before an op is made. Equal ops
// are made once. Dead ops are the caller's to drop.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_PASSES_BOUNDS_EMITTER_H
#define BURST_PASSES_BOUNDS_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>

namespace burst::bounds {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

/// Wide enough for sums and products of scalars.
using Wide = __int128;

/// The least 2^k - 1 such that all numbers are in -2^k..2^k-1.
int64_t onesCovering(llvm::ArrayRef<int64_t> numbers);

/// A 64-bit integer known at the place of emission, of type `index`, and static
/// bounds of it. A constant has equal bounds and no value.
struct Scalar {
  mlir::Value value;
  int64_t min = 0, max = 0;

  bool isConstant() const { return min == max; }
  /// Surely the same number.
  bool operator==(const Scalar &other) const {
    return isConstant() ? other.isConstant() && min == other.min
                        : value == other.value;
  }
};

/// A truth value known at the place of emission. A constant has no value.
struct Bool {
  mlir::Value value;
  std::optional<bool> known;

  bool operator==(const Bool &other) const {
    return value == other.value && known == other.known;
  }
};

class Emitter {
public:
  using Predicate = mlir::arith::CmpIPredicate;

  Emitter(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  static Scalar constant(int64_t number) { return {{}, number, number}; }
  static Bool known(bool truth) { return {{}, truth}; }

  /// A given value: `index` or an integer of at most 64 bits, signed.
  Scalar scalar(mlir::Value value, int64_t min = kMin, int64_t max = kMax);
  /// A given i1.
  Bool truth(mlir::Value value);

  mlir::Value materialize(Scalar scalar);
  mlir::Value materialize(Bool truth);

  /// The same number with bounds that the caller knows to hold as well.
  static Scalar assume(Scalar scalar, int64_t min, int64_t max);

  /// Arithmetic wraps at 64 bits. Where it may wrap the static bounds are wide.
  Scalar add(Scalar a, Scalar b);
  Scalar sub(Scalar a, Scalar b);
  Scalar mul(Scalar a, Scalar b);
  /// Quotients and remainder, signed. The caller sees to it that no division by
  /// zero and no kMin / -1 is executed.
  Scalar div(Scalar a, Scalar b);
  Scalar floorDiv(Scalar a, Scalar b);
  Scalar ceilDiv(Scalar a, Scalar b);
  Scalar rem(Scalar a, Scalar b);
  Scalar min(Scalar a, Scalar b);
  Scalar max(Scalar a, Scalar b);
  Scalar bitAnd(Scalar a, Scalar b);
  Scalar bitOr(Scalar a, Scalar b);
  Scalar bitXor(Scalar a, Scalar b);
  /// Shifts by 0..63.
  Scalar shiftLeft(Scalar a, Scalar b);
  Scalar shiftRightSigned(Scalar a, Scalar b);
  Scalar shiftRightUnsigned(Scalar a, Scalar b);
  Scalar select(Bool condition, Scalar a, Scalar b);

  /// A signed comparison, or one for equality.
  Bool compare(Predicate predicate, Scalar a, Scalar b);
  Bool isNegative(Scalar a) { return compare(Predicate::slt, a, constant(0)); }
  Bool both(Bool a, Bool b);
  Bool either(Bool a, Bool b);
  Bool negate(Bool a);

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() { return loc; }

private:
  using Key =
      std::tuple<const void *, int64_t, mlir::Value, mlir::Value, mlir::Value>;

  /// The result of an op, made once for each key.
  mlir::Value once(Key key, llvm::function_ref<mlir::Value()> make);
  template <typename Op>
  mlir::Value once(mlir::Value a, mlir::Value b, mlir::Value c = {});
  Bool once(Predicate predicate, mlir::Value a, mlir::Value b);
  /// `Op` applied to `a` and `b`; the result, before it wraps, is in
  /// `lo`..`hi`.
  template <typename Op>
  Scalar apply(Scalar a, Scalar b, Wide lo, Wide hi);
  template <typename Op>
  Scalar quotient(Scalar a, Scalar b);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::DenseMap<Key, mlir::Value> made;
};

} // namespace burst::bounds

#endif // BURST_PASSES_BOUNDS_EMITTER_H
