//===- Emit.h - short names for emitting scalar ops -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_EMIT_H
#define BURST_DIALECT_BURST_EMIT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace burst {

/// Emits arith on index and i1, and reads of tables, at one location.
struct Emit {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value index(int64_t value) const {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::Value truth(bool value) const {
    return mlir::arith::ConstantIntOp::create(builder, loc, value, 1);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) const {
    return mlir::arith::AddIOp::create(builder, loc, a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) const {
    return mlir::arith::SubIOp::create(builder, loc, a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) const {
    return mlir::arith::MulIOp::create(builder, loc, a, b);
  }
  /// a / b, of values that are not negative.
  mlir::Value div(mlir::Value a, int64_t b) const {
    return mlir::arith::DivUIOp::create(builder, loc, a, index(b));
  }
  /// a mod b, of values that are not negative.
  mlir::Value mod(mlir::Value a, int64_t b) const {
    return mlir::arith::RemUIOp::create(builder, loc, a, index(b));
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a,
                      mlir::Value b) const {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  mlir::Value both(mlir::Value a, mlir::Value b) const {
    return mlir::arith::AndIOp::create(builder, loc, a, b);
  }
  mlir::Value either(mlir::Value a, mlir::Value b) const {
    return mlir::arith::OrIOp::create(builder, loc, a, b);
  }
  mlir::Value negate(mlir::Value a) const {
    return mlir::arith::XOrIOp::create(builder, loc, a, truth(true));
  }
  mlir::Value select(mlir::Value condition, mlir::Value a,
                     mlir::Value b) const {
    return mlir::arith::SelectOp::create(builder, loc, condition, a, b);
  }
  mlir::Value extract(mlir::Value table, mlir::ValueRange indices) const {
    return mlir::tensor::ExtractOp::create(builder, loc, table, indices);
  }
};

} // namespace burst

#endif // BURST_DIALECT_BURST_EMIT_H
