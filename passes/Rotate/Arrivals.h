//===- Arrivals.h - what arrives for a turn of a rotate ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_ROTATE_ARRIVALS_H
#define BURST_PASSES_ROTATE_ARRIVALS_H

#include "dialect/Burst/Emit.h"
#include "dialect/Ring/Ring.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace burst {

/// Which segments arrive, as tables of flags by owner, distance from it and
/// segment; null where all do.
struct Arrivals {
  mlir::Value shards;
  mlir::Value partials; ///< of the rank behind
  mlir::Value returned; ///< those of the rank's own shards, from their end
};

/// Makes these tables for a rotate, in front of all loops.
class ArrivalTables {
public:
  /// `op` stands in `program`, whose symbols these are.
  ArrivalTables(ring::RotateOp op, mlir::func::FuncOp program,
                mlir::SymbolTable &symbols)
      : op(op), program(program), symbols(symbols), builder(op),
        loc(op.getLoc()), parts(op.getLayout().getParts()) {
    goInFrontOfLoops();
  }

  /// Those of shards that go up to `farthest` hops, in a direction of this
  /// number; of one that is direct, from their owners. Partial results are
  /// those that are wanted. Tables have a row for each distance up to the
  /// number of ranks.
  Arrivals find(int64_t direction, int64_t farthest, bool hasPartials,
                bool isWhole);

  /// Flags by turn, for all owners and segments alike.
  mlir::Value
  byTurn(int64_t turns,
         llvm::function_ref<mlir::Value(Emit, mlir::Value turn)> flag);

private:
  using Arrival = mlir::Value (*)(Emit e, mlir::Value past, mlir::Value turn);
  mlir::ValueRange byReach(mlir::StringRef name, int64_t direction,
                           llvm::ArrayRef<Arrival> arrivals);
  Arrivals findDirect();
  void goInFrontOfLoops();

  ring::RotateOp op;
  mlir::func::FuncOp program;
  mlir::SymbolTable &symbols;
  mlir::OpBuilder builder;
  mlir::Location loc;
  int64_t parts; ///< all owners
};

} // namespace burst

#endif // BURST_PASSES_ROTATE_ARRIVALS_H
