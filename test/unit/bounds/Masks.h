//===- Masks.h - Masks, rectangles and what they keep -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_BOUNDS_MASKS_H
#define BURST_TEST_UNIT_BOUNDS_MASKS_H

#include "passes/Bounds/Bounds.h"
#include "test/unit/bounds/Evaluator.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <deque>
#include <optional>
#include <string>

namespace burst::test {

/// A context in which the tests' dialects are loaded.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// A mask from its body, which may use %b, %h, %i, %j, %sq, %sk (index) and the
/// parameters in `captured` ("%n: i32, %ids: tensor<?xi32>") and keeps %keep.
mlir::OwningOpRef<mlir::Operation *> parseMask(mlir::MLIRContext &context,
                                               llvm::StringRef body,
                                               llvm::StringRef captured = "");

/// What an argument of a mask ranges over: numbers lo..hi, or one table.
struct Extent {
  int64_t lo = 0, hi = 0;
  const Table *table = nullptr;
};

/// How the ends of a rectangle are handed to the library.
enum class Style {
  Constant, // constants
  Bounded,  // values, with static bounds
  Open      // values of which nothing is known
};

struct Decision {
  bool may, must;
  bool operator==(const Decision &) const = default;
};
void PrintTo(const Decision &decision, std::ostream *stream);

/// The IR that the library emits for a mask, and a way to run it.
class Emitted {
public:
  /// `within`: for each argument of the mask, static bounds of its ends
  /// (Bounded), or the ends themselves (Constant). `captured` arguments get one
  /// value.
  Emitted(mlir::Region &mask, Style style, llvm::ArrayRef<Extent> within,
          llvm::ArrayRef<bool> captured);

  /// Nothing if the emitted code has undefined behaviour.
  std::optional<Decision> run(llvm::ArrayRef<Extent> rectangle);

  /// Ops except constants.
  unsigned numOps();
  bool isConstant() { return numOps() == 0; }
  std::string text();

private:
  bounds::Argument argument(mlir::BlockArgument parameter, const Extent &extent,
                            bool isCaptured);

  Style style;
  mlir::OwningOpRef<mlir::Operation *> holder;
  mlir::Block *block;
  /// For each argument of the mask, the arguments of the block that stand for
  /// it.
  llvm::SmallVector<unsigned> numValues;
  std::unique_ptr<Program> program;
};

/// What a mask keeps of a rectangle, by trying all points with defined
/// behaviour; nothing if there is none.
std::optional<Decision> bruteForce(Program &mask,
                                   llvm::ArrayRef<Extent> rectangle);

} // namespace burst::test

#endif // BURST_TEST_UNIT_BOUNDS_MASKS_H
