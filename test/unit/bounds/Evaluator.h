//===- Evaluator.h - Runs straight-line scalar IR ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ground of these tests: what ops mean at one point, written independently
// of the library. It runs masks and what the library emits for them.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_UNIT_BOUNDS_EVALUATOR_H
#define BURST_TEST_UNIT_BOUNDS_EVALUATOR_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <vector>

namespace burst::test {

struct Table {
  std::vector<int64_t> shape;
  std::vector<int64_t> elements; // as in Cell::number
};

/// A value at one point: integers sign extended (an i1 is 0 or -1), floats as
/// double.
struct Cell {
  int64_t number = 0;
  double real = 0;
  const Table *table = nullptr;
  bool poison = false;
};

/// A block whose ops run in order. Yields `results`, or the operands of the
/// terminator if there are none.
class Program {
public:
  explicit Program(mlir::Block &block, mlir::ValueRange results = {});

  /// Gives ops the values that burst.attention says they have in its regions
  /// where arith leaves them undefined.
  bool isTotal = false;

  /// False if behaviour is undefined.
  bool run(llvm::ArrayRef<Cell> arguments,
           llvm::SmallVectorImpl<Cell> &results);

private:
  struct Step {
    mlir::Operation *op;
    llvm::SmallVector<unsigned, 3> operands, results;
  };
  bool execute(const Step &step);
  bool applyOp(const Step &step, llvm::ArrayRef<Cell> operands, Cell &result);
  bool integerBinary(const Step &step, unsigned width);

  llvm::DenseMap<mlir::Value, unsigned> slots;
  std::vector<Step> steps;
  llvm::SmallVector<unsigned, 3> resultSlots;
  std::vector<Cell> cells;
};

/// The width of an integer type, 64 of `index`.
unsigned widthOf(mlir::Type type);

/// The number that the low bits of `number` are, signed.
int64_t signExtend(uint64_t number, unsigned width);

} // namespace burst::test

#endif // BURST_TEST_UNIT_BOUNDS_EVALUATOR_H
