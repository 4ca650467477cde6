//===- CompiledTrial.cpp - problems as machine code -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/property/CompiledTrial.h"

#include "codegen/cpu/Memory.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

bool CompiledTrial::compile(const jit::Target &target) {
  this->target = target;
  if (!trial.parse() || !trial.lower())
    return false;
  ScopedDiagnosticHandler handler(trial.program.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    trial.error += diagnostic.str() + "\n";
                                    return success();
                                  });
  auto found = burst::compile(trial.program, target);
  if (failed(found))
    return false;
  program = std::move(*found);
  return true;
}

bool CompiledTrial::run(const CompiledRun &options) {
  trial.attentions.clear();
  trial.backwards.clear();
  trial.results.clear();
  trial.proof = Proof();
  if (!trial.bind() || !trial.prove())
    return false;
  // The proof has run the program without data: it knows the shapes.
  for (unsigned i = 0; i < trial.program.getNumResults(); ++i)
    trial.results.push_back(gatherResult(*trial.simulation, i));
  auto error = burst::run(program.get(), trial.globals, trial.results, options,
                          counters);
  if (error)
    trial.error += *error;
  return !error && trial.findAttentions();
}

void CompiledTrial::check() {
  for (const Trial::Attention &attention : trial.attentions)
    checkAttention(attention);
  for (const Trial::Backward &backward : trial.backwards)
    checkBackward(backward);
  ASSERT_EQ(counters.size(), trial.proof.traffic.size());
  std::vector<int64_t> packing(counters.size(), 0);
  if (!target->gpu)
    EXPECT_FALSE(cpu::planPacking(*trial.simulation, trial.globals,
                                  target->host, packing));
  for (size_t rank = 0; rank < counters.size(); ++rank) {
    const Traffic &planned = trial.proof.traffic[rank];
    const burst_counters &counted = counters[rank];
    EXPECT_EQ(counted.bytes_sent, planned.totalBytes()) << "rank " << rank;
    EXPECT_EQ(counted.tensor_bytes + counted.peak_bytes[BURST_MEMORY_STATE] +
                  counted.peak_bytes[BURST_MEMORY_SLICE],
              planned.peakBytes)
        << "rank " << rank;
    EXPECT_EQ(counted.peak_bytes[BURST_MEMORY_PACKING], packing[rank])
        << "rank " << rank;
  }
}

std::vector<std::vector<double>> CompiledTrial::values() const {
  std::vector<std::vector<double>> values;
  values.reserve(trial.results.size());
  for (const TensorRef &result : trial.results)
    values.push_back(result->floats);
  return values;
}

void CompiledTrial::checkAttention(const Trial::Attention &attention) {
  oracle::Result expected = oracle::evaluate(
      attention.problem, oracle::allRows(attention.problem.sizes),
      {.threads = 1});
  std::vector<double> nothing(attention.out ? 0 : expected.sizes.outElements());
  std::span<const double> lse, maxScores;
  if (attention.lse)
    lse = attention.lse->floats;
  if (attention.maxScores)
    maxScores = attention.maxScores->floats;
  oracle::Verdict verdict =
      oracle::compare(expected, attention.out ? attention.out->floats : nothing,
                      lse, toleranceOf(attention.element), maxScores);
  if (!attention.out)
    verdict.out = {};
  EXPECT_TRUE(verdict.pass()) << verdict.text();
  worstRatio = std::max({worstRatio, verdict.out.worstRatio,
                         verdict.lse.worstRatio, verdict.maxScores.worstRatio});
}

void CompiledTrial::checkBackward(const Trial::Backward &backward) {
  const oracle::Sizes &sizes = backward.problem.forward.sizes;
  oracle::Gradients expected =
      oracle::evaluate(backward.problem, oracle::allRows(sizes),
                       oracle::allRows(oracle::ofKeys(sizes)), {.threads = 1});
  for (auto [index, gradient] : llvm::enumerate(expected.all())) {
    const TensorRef &found = backward.results[index];
    if (!found)
      continue;
    oracle::Deviation deviation = oracle::compare(
        *gradient, found->floats, toleranceOf(backward.element));
    EXPECT_EQ(deviation.failed, 0)
        << oracle::describe("gradient " + std::to_string(index), deviation);
    worstRatio = std::max(worstRatio, deviation.worstRatio);
  }
}
