//===- Auditor.h - what a proof remembers of tensors ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_PROVE_AUDITOR_H
#define BURST_PASSES_SIMULATION_PROVE_AUDITOR_H

#include "dialect/Ring/Slices.h"
#include "passes/Simulation/Prove/Audit.h"
#include "passes/Simulation/Prove/PairSet.h"
#include "passes/Simulation/Prove/Travel.h"
#include "passes/Simulation/Shards.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst {

/// The attention that an attend is a part of, for the queries of one rank.
struct ProvedAttention {
  AttendInputs inputs; ///< its query is `queryShape`
  TensorRef queryShape;
  int query, key, value;
};

/// A part of a state, and of which: states are numbered from 1.
struct Part : Tensor {
  Part(llvm::ArrayRef<int64_t> shape, mlir::Type element)
      : Part(shape, element, TensorKind::Part) {}
  static bool classof(const Tensor *tensor) {
    return tensor->kind == TensorKind::Part ||
           tensor->kind == TensorKind::Account;
  }

  char name = 0; ///< o, m or l
  int64_t state = 0;

protected:
  using Tensor::Tensor;
};

/// The part o, with what the state has absorbed.
struct Account : Part {
  Account(llvm::ArrayRef<int64_t> shape, mlir::Type element)
      : Part(shape, element, TensorKind::Account) {}
  static bool classof(const Tensor *tensor) {
    return tensor->kind == TensorKind::Account;
  }

  /// Of its queries with the keys of all owners, those that were absorbed.
  PairSet absorbed;
  /// The segments of its queries for which an attend has computed something.
  uint64_t worked = 0;
  /// What the first attend asked: all others must agree. Null before.
  const ProvedAttention *proved = nullptr;
};

struct ProvedGradient;

/// Scores that are stored, and then what they become: the weights of a softmax;
/// or probabilities, and owner by owner gradients by scores.
struct Stored : Tensor {
  Stored(llvm::ArrayRef<int64_t> shape, mlir::Type element)
      : Tensor(shape, element, TensorKind::Stored) {}
  static bool classof(const Tensor *tensor) {
    return tensor->kind == TensorKind::Stored;
  }

  /// Of its queries with the keys of all owners, those that were scored.
  PairSet scored;
  /// What the first score asked, of no values.
  const ProvedAttention *proved = nullptr;
  bool isWeights = false;
  /// Of probabilities, by which lse, and the pairs that are gradients already,
  /// of which attention; null before.
  TensorRef lse;
  PairSet differentiated;
  const ProvedGradient *gradient = nullptr;
};

/// Where rows that a program makes, out, lse and delta, come from.
struct Origin {
  /// The attention that made out or lse; null where out came from outside.
  const ProvedAttention *proved = nullptr;
  int64_t dim = 1;            ///< of the queries
  int out = -1, lseGrad = -1; ///< of a delta: labels of what it was made of
};

/// Of what a `ring.attend_grad` takes, the arguments that they are of.
struct GradientLabels {
  int query, key, value, outGrad, lse, delta;
  int out, lseGrad; ///< of which delta was made
};

/// The attention of which a `ring.attend_grad` gives gradients.
struct ProvedGradient {
  AttendInputs inputs; ///< its query is `queryShape`
  TensorRef queryShape;
  mlir::Region *gradient;           ///< of the score
  llvm::ArrayRef<int64_t> captures; ///< of the score, that have gradients
  GradientLabels labels;
};

/// By what a gradient is: its place among the gradients of an attend_grad, so
/// tables are from 3.
enum class By : uint8_t { Query, Key, Value, Table };

/// A gradient, with what was added to it.
struct Gradient : Tensor {
  Gradient(llvm::ArrayRef<int64_t> shape, mlir::Type element)
      : Tensor(shape, element, TensorKind::Gradient) {}
  static bool classof(const Tensor *tensor) {
    return tensor->kind == TensorKind::Gradient;
  }

  const Tensor *table = nullptr; ///< where it is by no shard: by which table
  bool isRounded = false;
  /// What the first attend asked, and by what of it this is; null before.
  const ProvedGradient *proved = nullptr;
  int64_t place = 0;
  /// Of the own shard with the other side of all owners, the pairs that have
  /// been added. Of a table, those of all owners with all, as if owner p of the
  /// queries and r of the keys were one, of number p * parts + r.
  PairSet added;
  /// The segments of the own shard to which something was added.
  uint64_t worked = 0;
  /// What other chunks of heads have added, where several add to it.
  std::vector<std::shared_ptr<const Gradient>> others;

  By by() const {
    return static_cast<By>(std::min(place, static_cast<int64_t>(By::Table)));
  }
};

class Auditor : public Bookkeeper {
public:
  using Results = std::vector<std::vector<TensorRef>>;

  Auditor(mlir::func::FuncOp program, const ProofOptions &options, Proof &proof)
      : program(program), sharding(ring::shardingOf(program)),
        parts(sharding.sequence.size), headGroups(ring::headGroups(program)),
        options(options), proof(proof), maxSlices(ring::getMaxSlices(program)),
        travel(options.allowNeedless ? nullptr : std::make_shared<Travel>()),
        shards(parts) {}

  State init(mlir::RankedTensorType type, const Tensor &query) override;
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
  bool start(const Transfer &transfer, const Held &held,
             std::string &message) override;
  TensorRef deliver(const Transfer &from, const Transfer &to,
                    size_t index) override;
  void wait(const Transfer &transfer) override;

  /// With the chunks in place of results that are joined of them.
  Results splitChunks(Results results);
  /// Every rank returns its part of one attention or of one gradient. Else the
  /// rank that does not.
  std::optional<int64_t> checkResults(Results results, std::string &message);
  /// What arrived was read or sent on, unless that is not asked for; asked when
  /// all ranks have ended, of which these are the results.
  std::optional<Counterexample> checkTravel(const Results &results);

private:
  /// Segments of a tensor are read, or sent on.
  void readSegments(const Tensor &tensor, uint64_t segments = ~uint64_t{0});
  void readState(const State &state, uint64_t segments = ~uint64_t{0}) {
    for (const TensorRef &part : {state.o, state.m, state.l})
      readSegments(*part, segments);
  }
  void readMet(const AttendGrad &attend);
  void receive(const Transfer &from, const Transfer &to, size_t index,
               Tensor &arrived);
  void noteEmpty(const Transfer &from, const Transfer &to, size_t index);
  /// The segments of a shard that have positions.
  uint64_t segmentsOf(const Sharding &sharding, int64_t owner) {
    return shards.of(sharding.layout, sharding.extent, owner).mask;
  }
  /// Of slice `index`, which `owner` owns, the pairs that a inputs computes:
  /// those that are flagged, of segments that have positions.
  PairMask computedPairs(const AttendInputs &inputs, size_t index,
                         int64_t owner);
  std::string checkHeld(const Transfer &transfer, const Held &held);
  std::string checkQuery(const AttendInputs &inputs);
  std::string checkOffsets(const AttendInputs &inputs);
  /// Of keys, values or both.
  std::string checkSlice(const AttendInputs &inputs, const Slice &slice);
  /// A pair that is to be computed must be one that the mask needs.
  bool areNeeded(const AttendInputs &inputs, int64_t owner, PairMask pairs);
  std::string checkNeeded(const AttendInputs &inputs, int64_t owner, int64_t a,
                          int64_t b);
  std::string describeWrong(const Attend &attend, const Slice &slice,
                            const Account &account, PairMask pairs);
  std::string absorb(const Attend &attend, size_t index, Account &account);
  const ProvedAttention *ask(const Attend &attend);
  const ProvedAttention *keep(const AttendInputs &inputs, int query, int key,
                              int value);
  std::string checkUnchanged(const Tensor &tensor, llvm::StringRef what);
  std::string checkUnchanged(const State &state);
  std::string checkMerged(const Merge &merge);
  std::string checkComplete(const Account &account);
  std::string checkResult(int64_t rank, int64_t other, unsigned index,
                          const Results &results);
  std::string checkScore(const Score &score);
  std::string addScores(const Score &score, Stored &stored);
  std::string addWeighed(const Weigh &weigh, Account &account);
  std::string checkScored(const Stored &stored);
  std::string checkStoredRows(const Stored &stored, const Tensor &rows,
                              llvm::StringRef name, int64_t dim);
  std::string addStored(const Stored &stored, TensorRef &tensor, By by,
                        const Tensor &of, int64_t keyOwner, PairMask pairs);
  /// Or what an attention between all-to-alls made of it.
  std::string checkSharded(unsigned index, const Sharding &made, bool isInside);
  std::string checkExchanged(int64_t rank, unsigned index, TensorRef &result);
  int64_t headsBehind(const Gradient &gradient);
  int64_t headsOfArgument(int number);
  int64_t groupsOf(int number) const {
    return number < 0 ? 1 : headGroups[chunkOf(number).argument];
  }
  /// Whether of two arguments ranks have the same heads.
  bool haveSameHeads(int x, int y) {
    return headsOfArgument(x) == headsOfArgument(y) &&
           groupsOf(x) == groupsOf(y);
  }
  std::string checkExchange(const Transfer &transfer,
                            const Tensor &tensor) const;
  std::string checkChunk(const Tensor &query, const Tensor &other,
                         llvm::StringRef what, bool isOfKeys);
  bool addHeads(mlir::Type element, int64_t heads, const TensorRef &gradient,
                TensorRef &result, std::string &message);
  bool hasExchanges() const { return sharding.exchanged.size > 1; }
  void renumber(State &state);

  std::string checkRows(const AttendGrad &attend);
  std::string checkOrigin(const AttendGrad &attend, const Tensor &rows,
                          llvm::StringRef name);
  std::string checkGradients(const AttendGrad &attend);
  /// Of a gradient that is about to change: it is by that place of an
  /// attend_grad, which takes the tensor `of` there.
  std::string checkTaken(const TensorRef &tensor, int64_t place,
                         const Tensor *of);
  std::string checkArrived(const AttendGrad &attend, int64_t a, int64_t b);
  const ProvedGradient *ask(const AttendGrad &attend);
  std::string addPairs(const AttendGrad &attend, PairMask pairs);
  std::string describeLack(const Gradient &gradient, int64_t place);
  std::string checkComplete(const Gradient &gradient, int64_t place);
  std::string checkChunks(const Gradient &gradient);
  std::string checkNextChunk(const Tensor &before, const Tensor &chunk);
  bool beginChunk(Gradient &gradient, const ProvedGradient &proved);
  std::string checkGradient(int64_t rank, int64_t other, unsigned index,
                            const Gradient &gradient, const Results &results);
  std::string checkTable(const Results &results, unsigned index);
  std::string checkTable(llvm::ArrayRef<const Gradient *> ofRanks);

  mlir::func::FuncOp program;
  ring::Sharding sharding;
  int64_t parts;                         ///< over which the sequence is sharded
  llvm::SmallVector<int64_t> headGroups; ///< of arguments in all-to-alls
  const ProofOptions &options;
  Proof &proof;
  mlir::DenseI64ArrayAttr maxSlices; ///< null where it is the default
  std::shared_ptr<Travel> travel;    ///< null where nobody asks
  std::shared_ptr<Arrival> arriving; ///< of which tensors are handed over
  Classifier classifier;
  int64_t numStates = 0;
  /// Which result of the program each of those is that are checked, and whether
  /// it is a chunk of it.
  llvm::SmallVector<unsigned> resultNumbers;
  llvm::SmallVector<bool> areChunks;
  /// One for all attends that ask the same: they are many, of few attentions.
  /// By op, and owner of the queries.
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, const ProvedAttention *>
      asked;
  std::vector<std::unique_ptr<const ProvedAttention>> provedAttentions;
  std::vector<std::unique_ptr<const ProvedGradient>> provedGradients;
  ShardTable shards;
};

template <typename... Args>
std::string format(const char *text, Args &&...args) {
  return llvm::formatv(text, std::forward<Args>(args)...).str();
}

std::string describe(const Sharding &sharding);

/// The segments of queries and of keys that come together.
struct Met {
  uint64_t queries = 0, keys = 0;
};
/// Those of which a pair is flagged, of slice `index`: all where there is no
/// table, also where the other side has no positions, for then nobody has asked
/// what is needed.
Met metSegments(const AttendInputs &inputs, size_t index);

/// Whether a program has made `tensor`, as what.
inline bool isMade(const Tensor &tensor, Made what) {
  return tensor.argument < -1 && whatIsMade(tensor.argument).second == what;
}

llvm::StringRef describe(By by);
/// A gradient that is about to change.
Gradient &ownGradient(TensorRef &tensor);
/// What arrives of a gradient.
TensorRef arrivedGradient(const Gradient &sent, const Transfer &to,
                          size_t index);
/// The account of a state that is about to change.
Account &ownAccount(State &state);

/// o, m and l belong together.
std::string checkState(const State &state);

/// In what two are parts of different attentions; of inputs, whatever their
/// tensors.
std::string difference(const AttendInputs &x, const AttendInputs &y);
std::string difference(const ProvedAttention &x, const ProvedAttention &y);
std::string difference(const ProvedGradient &x, const ProvedGradient &y);
/// The same of chunks of heads, of which each has its own: in what they are not
/// of one attention. Masks and scores know their chunk, and are not compared.
std::string differenceOfChunks(const ProvedAttention &x,
                               const ProvedAttention &y);
std::string differenceOfChunks(const ProvedGradient &x,
                               const ProvedGradient &y);
std::string difference(const ProvedGradient &x, const AttendInputs &inputs,
                       mlir::Region &gradient, llvm::ArrayRef<int64_t> captures,
                       const GradientLabels &labels);

} // namespace burst

#endif // BURST_PASSES_SIMULATION_PROVE_AUDITOR_H
