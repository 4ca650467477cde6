//===- Calls.h - what a program's functions give ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_CALLS_H
#define BURST_PASSES_SIMULATION_CALLS_H

#include "passes/Simulation/Binding.h"

namespace burst {

/// Calls the functions that a rank's program calls with what is the same on all
/// ranks, without a run of the program.
class Calls : private Environment {
public:
  /// `globals` are the arguments of the program.
  Calls(mlir::func::FuncOp program, llvm::ArrayRef<Argument> globals);

  /// What all ranks have in `value`: an argument, a constant, a size, or what
  /// is made of these. None, with a message, where it cannot be said.
  std::optional<Argument> valueOf(mlir::Value value);
  const std::string &getMessage() const { return message; }

private:
  std::optional<Argument> call(mlir::func::CallOp op, unsigned result);
  Step execute(const ExternalCall &call) override;
  bool executeTogether(const ExternalCall &, const LaneValues &) override {
    return false;
  }
  Step call(const ExternalCall &call) override;
  void fault(mlir::Location loc, const llvm::Twine &text) override;
  int64_t numOwners() const override { return parts; }

  mlir::func::FuncOp program;
  int64_t parts;
  std::vector<Argument> arguments; ///< of a rank
  std::optional<Argument> find(mlir::Value value);

  llvm::DenseMap<mlir::Operation *, std::vector<Argument>> results;
  llvm::DenseMap<mlir::Value, std::optional<Argument>> values; ///< asked for
  std::string message;
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_CALLS_H
