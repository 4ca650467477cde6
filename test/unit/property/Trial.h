//===- Trial.h - runs a problem on all its ranks ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_PROPERTY_TRIAL_H
#define BURST_TEST_UNIT_PROPERTY_TRIAL_H

#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Prove/Audit.h"
#include "test/unit/property/RandomProblem.h"
#include "tools/harness/Problem.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace burst::test {

std::unique_ptr<mlir::MLIRContext> makeContext();

/// A problem on its way: text, ring program, proof, results. Each step wants
/// the ones before it, and returns false, with `error` set, where it fails.
class Trial {
public:
  Trial(mlir::MLIRContext &context, const RandomProblem &problem, int64_t ranks)
      : context(context), problem(problem), ranks(ranks) {}

  bool parse();
  bool lower();
  bool bind();
  bool prove();
  bool interpret(Semantics &semantics);
  /// All of them.
  bool all(Semantics &semantics) {
    return parse() && lower() && bind() && prove() && interpret(semantics);
  }

  /// Whether it has a nest of rings, or rings in both directions.
  bool hasSeveralRings();

  /// The attentions of the source, and their results among those of the
  /// function.
  struct Attention {
    AttentionOp op;
    oracle::Problem problem;
    mlir::Type element;            ///< of query
    TensorRef out, lse, maxScores; ///< null where not returned
  };
  /// The same of backward passes.
  struct Backward {
    AttentionBackwardOp op;
    oracle::BackwardProblem problem;
    mlir::Type element;             ///< of query
    std::vector<TensorRef> results; ///< null where not returned
  };
  bool findAttentions();
  /// Makes the arguments that stand for results of a forward pass, in `problem`
  /// itself: what is run again has them.
  bool giveForward(RandomProblem &problem);
  /// Without lowering: parse, then this, finds the attentions.
  bool bindSource();
  /// What the mask of an attention captures, where all of it are arguments.
  std::optional<std::vector<Argument>> maskCaptures(AttentionOp op) const;

  /// What regions of an attention capture: arguments and constants.
  std::optional<std::vector<RegionEvaluator::Capture>>
  captures(AttentionOp op, mlir::OperandRange operands);

  std::string error;
  mlir::OwningOpRef<mlir::ModuleOp> source, lowered;
  mlir::func::FuncOp function, program; ///< over global tensors, and of a rank
  std::unique_ptr<Simulation> simulation;
  std::vector<Argument> globals;
  Proof proof;
  std::vector<Traffic> traffic;
  std::vector<TensorRef> results;
  std::vector<Attention> attentions;
  std::vector<Backward> backwards;

private:
  bool fail(const std::string &message);
  bool proveForAll();
  bool guarded(llvm::function_ref<bool()> body);

  mlir::MLIRContext &context;
  const RandomProblem &problem;
  int64_t ranks;
  Values values;
};

/// A number that is set for the tests, or another.
uint64_t fromEnvironment(const char *name, uint64_t otherwise);

/// The same, with a larger number for the long form of the tests
/// (BURST_TEST_FULL is set).
uint64_t countFromEnvironment(const char *name, uint64_t otherwise,
                              uint64_t inFull);

/// Leaves a problem in files, and says how to run it.
std::string leave(const RandomProblem &problem);

/// Expects that what was interpreted is what was planned, rank by rank and
/// tensor by tensor.
void expectPlanned(const Trial &trial);

/// Interprets, and checks that what was not sent is NaN where it would be read.
class PoisonChecker : public Interpreter {
public:
  TensorRef deliver(const Transfer &from, const Transfer &to,
                    size_t index) override;

  int64_t poisoned = 0; ///< elements
  bool isSound = true;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_TRIAL_H
