//===- Problem.h - attentions with their tensors ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_JIT_PROBLEM_H
#define BURST_TEST_UNIT_JIT_PROBLEM_H

#include "burst/burst.hpp"

#include <gtest/gtest.h>
#include <string>

namespace burst::test {

/// An axis that lives as long as the process.
const burst_axis *axis(int64_t ranks, const char *order);

/// A causal attention of 3 ranks, zigzag, in f32, small enough for the
/// definition.
burst_attention smallAttention();

/// The text of an error, which it destroys; empty for success.
std::string take(burst_error *error);
/// Fails the test where there is an error.
void expectSuccess(const api::Status &status);

/// A program that must compile.
api::Program compiled(
    const burst_attention &attention,
    const burst_compile_config &config = api::make<burst_compile_config>());
api::Program compiled(
    std::string_view text,
    const burst_compile_config &config = api::make<burst_compile_config>());

/// That of smallAttention, compiled once for all tests.
const api::Program &smallProgram();

/// Global tensors in f32 for a description, and what its results must be.
class Problem {
public:
  /// `queries` and `keys` are the lengths, where the description has none.
  explicit Problem(const burst_attention &attention, int64_t queries = 0,
                   int64_t keys = 0);

  /// For the parameters of a program, by their names.
  std::vector<burst_tensor> globals(const api::Program &program);
  /// Those of them that are arguments.
  std::vector<burst_tensor> arguments(const api::Program &program);
  /// Runs all ranks on the global tensors.
  api::Status run(const api::Program &program);
  /// Compares the results with the definition.
  void expectResults() const;
  /// Compares gradients with those that the definition gives.
  void expectGradients() const;
  /// What a run must overwrite.
  void clearResults();

  std::vector<float> q, k, v, o, lse, maxScores, slopes, bias;
  /// Of the backward pass; lseGrad where the description takes one.
  std::vector<float> outGrad, lseGrad, dq, dk, dv, slopeGrad, biasGrad;
  std::vector<int32_t> queryIds, keyIds;
  burst_attention attention;

private:
  bool keeps(int64_t i, int64_t j) const;
  double score(double s, int64_t h, int64_t i, int64_t j) const;

  int64_t valueDim, extents[2];
  /// What the names of the description say.
  bool isCausal, hasDocuments;
  double left, right, prefix, cap;
  size_t capAt, alibiAt, biasAt; ///< in the score; npos: not there
};

} // namespace burst::test

#endif // BURST_TEST_UNIT_JIT_PROBLEM_H
