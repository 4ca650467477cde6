//===- Scalars.h - scalar ops as expressions of C++ -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CUDA_SCALARS_H
#define BURST_CODEGEN_CUDA_SCALARS_H

#include "codegen/cuda/Names.h"

#include "mlir/IR/Operation.h"

namespace burst::cuda {

/// Prints ops of arith, math and tensor.extract as expressions.
///
/// In kernels an index is an int: sizes and places of tiles, of which there are
/// fewer than 2^31. In regions of users it has 64 bits, as everywhere in burst:
/// a mask may multiply positions. Floats of 16 bits are computed with as f32
/// there, and integers of other widths than those of C++ in the next wider one,
/// sign-extended.
class Scalars {
public:
  explicit Scalars(Names &names) : names(names) {}

  /// While it lives, indices have 64 bits.
  class Wide {
  public:
    explicit Wide(Scalars &scalars) : scalars(scalars) { scalars.wide = true; }
    ~Wide() { scalars.wide = false; }
    Wide(const Wide &) = delete;
    Wide &operator=(const Wide &) = delete;

  private:
    Scalars &scalars;
  };

  /// The expression of an op's result; empty where the value is its own name
  /// (constants). An op without one is an error at it.
  llvm::LogicalResult print(mlir::Operation *op, std::string &expression);

  std::string typeName(mlir::Type type) const;
  /// Of what memory holds.
  std::string elementName(mlir::Type type) const;
  std::string literal(const llvm::APFloat &number, bool isDouble) const;

private:
  /// The integer of C++ that holds one of any width, with and without a sign.
  std::string holderName(mlir::Type type) const;
  std::string unsignedName(mlir::Type type) const;
  std::string wrappingName(mlir::Type type) const;
  /// What makes a number of the type: a type of C++, or a function.
  std::string resultName(mlir::Type type) const;
  /// A value as a number to compute with, and without a sign.
  std::string operand(mlir::Value value) const;
  std::string unsignedOperand(mlir::Value value) const;

  std::string apply(const char *form, mlir::Operation *op) const;
  std::string convert(mlir::Operation *op) const;
  std::string bitcast(mlir::Operation *op) const;
  llvm::LogicalResult compare(mlir::Operation *op, std::string &expression);

  Names &names;
  bool wide = false;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_SCALARS_H
