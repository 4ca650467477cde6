//===- Programs.h - programs that the tests of the machine run --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_SIMULATION_PROGRAMS_H
#define BURST_TEST_UNIT_SIMULATION_PROGRAMS_H

#include "passes/Proof/Prove.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassInstrumentation.h"

#include <gtest/gtest.h>
#include <ostream>
#include <random>
#include <string>

namespace burst::test {

/// An attention, how it is sharded, and which optimisations run.
struct Problem {
  std::string order = "contiguous"; ///< as in #burst.sequence
  std::string mask = "";            ///< as in the IR; none where empty
  int64_t parts = 4, queries = 16, keys = 16;
  int64_t batch = 1, heads = 2, keyHeads = 1, dim = 4, valueDim = 4;
  std::string element = "f32";
  bool drop = true, overlap = true;
  /// The strategy of the attention.
  std::string forward = "ring_kv";
  /// The strategy of the gradients of the attention, or "" for itself.
  std::string backward = "";
  /// Over how many ranks heads are exchanged for the sequence around it, on a
  /// last axis of the grid; 1 where they are not.
  int64_t members = 1;
  /// In how many chunks.
  int64_t chunks = 1;
  /// How many of the parts are on the inner of two axes of the grid; 0 where
  /// they are on one.
  int64_t innerRanks = 0;
  /// The gradients that are returned, in this order.
  std::string wanted = "qkv";
  /// Whether a forward pass gives the largest scores.
  bool givesMaxScores = false;

  bool movesQueries() const {
    return llvm::StringRef(backward.empty() ? forward : backward)
        .ends_with("_q");
  }

  /// The module of burst.attention, or of burst.attention_backward.
  std::string text() const;
  /// In words, for messages.
  std::string describe() const;
};

/// The name of a test of a problem.
std::string nameOfProblem(const testing::TestParamInfo<Problem> &info);

/// For gtest.
inline void PrintTo(const Problem &problem, std::ostream *stream) {
  *stream << problem.describe();
}

std::unique_ptr<mlir::MLIRContext> makeContext();

/// Parses and verifies; aborts where the text of a test is wrong.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(mlir::MLIRContext &context,
                                              llvm::StringRef text);

/// The ring program of a problem, as burst-to-ring makes it, with whatever
/// `instrumentation` does between its passes.
mlir::OwningOpRef<mlir::ModuleOp>
lower(mlir::MLIRContext &context, const Problem &problem,
      std::unique_ptr<mlir::PassInstrumentation> instrumentation = nullptr);

/// The function with `ring.grid`.
mlir::func::FuncOp getProgram(mlir::ModuleOp module);

/// Whether the program of a module of static sizes is proved for every number
/// of ranks, and its tables keep the contract.
bool isProvedForAll(mlir::ModuleOp module, const ProofOptions &options = {},
                    Proof *proof = nullptr);

/// Proves the program of a module of static sizes, by simulation: what that
/// refuses must not be proved for every number of ranks.
std::optional<Counterexample> proveModule(mlir::ModuleOp module,
                                          const ProofOptions &options = {},
                                          Proof *proof = nullptr);

/// Global arguments for a program of static sizes: floats of normal
/// distribution, the same for the same seed.
std::vector<Argument> randomGlobals(mlir::func::FuncOp program, unsigned seed);

/// The gathered results of a program; fails the test and gives nothing where
/// the schedule fails.
std::vector<TensorRef> interpret(mlir::ModuleOp module,
                                 const std::vector<Argument> &globals);

/// Whether two tensors have one shape and, within `tolerance`, one content;
/// an infinity or NaN equals itself.
bool isClose(const Tensor &a, const Tensor &b, double tolerance = 1e-12);

} // namespace burst::test

#endif // BURST_TEST_UNIT_SIMULATION_PROGRAMS_H
