//===- Snippet.h - scalar code, evaluated and folded ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_SIMULATION_SNIPPET_H
#define BURST_TEST_UNIT_SIMULATION_SNIPPET_H

#include "passes/Simulation/Scalars/Program.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace burst::test {

/// The body of a function, given as text: run by the machine, and folded by
/// upstream where it is one op.
class Snippet {
public:
  using Capture = RegionEvaluator::Capture;

  /// `arguments` and `results` as in "%a: i8, %b: i8" and "i8"; the body ends
  /// in a return. Trailing arguments are captures.
  Snippet(mlir::MLIRContext &context, llvm::StringRef arguments,
          llvm::StringRef results, llvm::StringRef body,
          llvm::ArrayRef<Capture> captures = {});

  /// One op, the value %r of which is returned.
  static Snippet ofOp(mlir::MLIRContext &context, llvm::StringRef arguments,
                      llvm::StringRef result, llvm::StringRef op);

  /// Whether the machine knows all ops.
  bool isValid() const { return evaluator.has_value(); }

  /// From now on, ops have the meaning that regions have; before, what arith
  /// leaves undefined is a fault.
  void giveMeaning();

  /// Runs; false on a fault.
  bool run(llvm::ArrayRef<Scalar> arguments) {
    return evaluator->evaluate(arguments);
  }
  Scalar result(unsigned index = 0) const { return evaluator->result(index); }
  std::string fault() const { return evaluator->getFault()->message; }

  /// What upstream's folder makes of the only op; nothing where it does not
  /// fold or gives poison.
  std::optional<Scalar> fold(llvm::ArrayRef<Scalar> arguments);

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Block *body;
  std::vector<Capture> captures;
  std::optional<RegionEvaluator> evaluator;
};

inline Scalar integer(int64_t value) {
  Scalar scalar;
  scalar.i = value;
  return scalar;
}
inline Scalar real(double value) {
  Scalar scalar;
  scalar.f = value;
  return scalar;
}

/// A table of integers or floats, as a capture.
Snippet::Capture tableOf(mlir::Type element, llvm::ArrayRef<int64_t> shape,
                         std::vector<int64_t> ints,
                         std::vector<double> floats = {});

/// The low bits of a number, as the machine holds them: sign-extended.
int64_t signExtend(int64_t value, unsigned width);

} // namespace burst::test

#endif // BURST_TEST_UNIT_SIMULATION_SNIPPET_H
