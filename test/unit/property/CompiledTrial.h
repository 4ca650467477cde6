//===- CompiledTrial.h - problems as machine code ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_PROPERTY_COMPILEDTRIAL_H
#define BURST_TEST_UNIT_PROPERTY_COMPILEDTRIAL_H

#include "test/unit/property/Trial.h"
#include "tools/harness/Compiled.h"

namespace burst::test {

/// A problem that is compiled and run on all its ranks.
class CompiledTrial {
public:
  CompiledTrial(mlir::MLIRContext &context, const RandomProblem &problem)
      : trial(context, problem, problem.ranks) {}

  bool compile(const jit::Target &target);
  /// Binds the problem's tensors, which may have changed, and runs.
  bool run(const CompiledRun &options);
  /// Expects what the oracle says, and the bytes that were planned.
  void check();
  /// The bits of all results.
  std::vector<std::vector<double>> values() const;

  Trial trial;
  std::vector<burst_counters> counters;
  double worstRatio = 0; ///< of an error and its bound

private:
  void checkAttention(const Trial::Attention &attention);
  void checkBackward(const Trial::Backward &backward);

  std::optional<jit::Target> target;
  ProgramRef program;
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_COMPILEDTRIAL_H
