//===- Interpreter.h - what ring programs mean ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of the ring dialect in fp64, written to be read: this is what they
// mean. Tensors are global f64 arrays per rank, a message is a copy, and the
// softmax is the recurrence of `ring.attend`'s description, a row at a time.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_INTERPRET_INTERPRETER_H
#define BURST_PASSES_SIMULATION_INTERPRET_INTERPRETER_H

#include "passes/Simulation/Simulation.h"

namespace burst {

class Interpreter : public Semantics {
public:
  /// `progress` is told after each attend of each rank.
  explicit Interpreter(std::function<void()> progress = {})
      : progress(std::move(progress)) {}

  State init(mlir::RankedTensorType o, const Tensor &query) override;
  bool attend(Attend &attend, State &result, std::string &message) override;
  bool merge(Merge &merge, std::string &message) override;
  bool finalize(Finalize &finalize, std::string &message) override;
  TensorRef scores(mlir::Type element, const Tensor &query,
                   int64_t keys) override;
  bool score(Score &score, std::string &message) override;
  bool softmax(TensorRef &scores, State &state, std::string &message) override;
  bool weigh(Weigh &weigh, std::string &message) override;
  bool probabilities(TensorRef &scores, const TensorRef &lse,
                     std::string &message) override;
  bool weighGrad(WeighGrad &weigh, std::string &message) override;
  bool scoreGrad(ScoreGrad &score, std::string &message) override;
  TensorRef zero(mlir::Type element, const Tensor &like) override;
  bool delta(mlir::Type element, const TensorRef &out, const TensorRef &outGrad,
             const TensorRef &lseGrad, TensorRef &result,
             std::string &message) override;
  bool attendGrad(AttendGrad &attend, std::string &message) override;
  bool add(Sum &sum, std::string &message) override;
  bool round(mlir::Type element, int64_t heads, const TensorRef &gradient,
             TensorRef &result, std::string &message) override;
  TensorRef takeHeads(const Tensor &whole, const HeadChunk &of) override;
  TensorRef joinHeads(llvm::ArrayRef<TensorRef> chunks) override;
  TensorRef deliver(const Transfer &from, const Transfer &to,
                    size_t index) override;
  void exchange(const Transfer &from, const Transfer &to,
                size_t index) override;
  bool knowsTables() const override { return true; }

private:
  std::function<void()> progress;
};

/// Copies a tensor that others still use, so that it may be changed.
void makeUnique(TensorRef &tensor);

/// Copies a state that others still use, so that it may be changed.
void makeUnique(State &state);

/// A tensor without data, of the shape of `like` and the result's element type.
TensorRef makeLike(mlir::Type element, const Tensor &like);

/// Scores without data.
TensorRef makeScores(mlir::Type element, const Tensor &query, int64_t keys);

/// The shapes of o, and of m and l, for a query and the head dim of the values.
struct StateShapes {
  llvm::SmallVector<int64_t, 4> values, rows;
  mlir::Type element;

  StateShapes(mlir::RankedTensorType o, const Tensor &query);
};

/// A state without data.
State makeState(mlir::RankedTensorType o, const Tensor &query);

} // namespace burst

#endif // BURST_PASSES_SIMULATION_INTERPRET_INTERPRETER_H
