//===- Scalars.h - scalar ops as expressions of C++ -------------*- C++ -*-===//
#ifndef BURST_CODEGEN_CUDA_SCALARS_H
#define BURST_CODEGEN_CUDA_SCALARS_H

#include "codegen/cuda/Names.h"

#include "mlir/IR/Operation.h"

namespace burst::cuda {

/// Prints ops of arith, math and tensor.extract as expressions.
///
/// In kernels an index is an int: sizes and places of tiles, of which there are
/// fewer than 2^31. In regions of users it has 64 bits, as everywhere in burst:
/// a mask may multiply positions.
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
  std::string unsignedName(mlir::Type type) const;
  llvm::LogicalResult compare(mlir::Operation *op, std::string &expression);

  Names &names;
  bool wide = false;
};

} // namespace burst::cuda

#endif // BURST_CODEGEN_CUDA_SCALARS_H
