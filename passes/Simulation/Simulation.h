//===- Simulation.h - all ranks of a ring program ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the program of a rank for all ranks of its grid in one process, one rank
// at a time, under the model of transfers that the ring dialect states: a
// message is handed over when sender and receiver have both come to it, and the
// transfers of a channel run on a rank in the order in which it started them.
// Ranks run until they wait, so receivers see a message as late as is legal.
//
// What tensors hold and what attention does to them is left to a Semantics: the
// interpreter computes (Interpret/), the verifier accounts (Prove/). Scalars/
// runs the scalar code of a program. From outside of this folder, include
// Simulation.h, Binding.h, Calls.h, SimulatedOp.h, Scalars/Program.h,
// Interpret/Interpreter.h and Prove/Audit.h.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_SIMULATION_H
#define BURST_PASSES_SIMULATION_SIMULATION_H

#include "dialect/Ring/Ring.h"
#include "passes/Simulation/Scalars/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/include/burst/internal/route.h"

#include <map>

namespace burst {

/// Tables over pairs of ranks grow with the square of their number. One rank
/// after the other can be run of more.
inline constexpr int64_t maxSimulatedRanks = 2048, maxPlannedRanks = 16384;

/// Where and why a schedule fails.
struct Counterexample {
  int64_t rank = 0;
  int64_t hop = 0; ///< transfers that the rank had waited for
  mlir::Operation *op = nullptr;
  std::string message;
  /// Of scalar code that cannot go on; else the op says where.
  std::optional<mlir::Location> loc = std::nullopt;
};

/// An argument of a rank's program.
using Argument = RegionEvaluator::Capture;

/// The state of a softmax.
struct State {
  TensorRef o, m, l;
};

/// Queries and keys that come together on a rank, at which pairs of segments,
/// under which mask.
struct AttendInputs {
  mlir::Operation *at = nullptr;
  int64_t rank = 0, hop = 0;
  Tensor *query = nullptr;
  int64_t queryOwner = 0, queryExtent = 0, keyExtent = 0;
  ring::LayoutAttr queryLayout, keyLayout;
  mlir::Region *mask = nullptr, *score = nullptr, *bounds = nullptr;
  double scale = 1;
  /// The global numbers of the first batch and query head, and how many there
  /// are in all; see `ring.attend`.
  int64_t firstBatch = 0, numBatches = 0, firstHead = 0, numHeads = 0;
  llvm::SmallVector<bool, 8> pairs; ///< slice, query segment, key segment
  std::vector<Argument> maskCaptures, scoreCaptures;

  bool isComputed(size_t slice, int64_t a, int64_t b) const {
    int64_t numA = queryLayout.getNumSegments();
    int64_t numB = keyLayout.getNumSegments();
    return pairs[(slice * numA + a) * numB + b];
  }
};

/// Keys and values of an owner.
struct Slice {
  Tensor *key = nullptr, *value = nullptr;
  int64_t owner = 0;
};

/// A `ring.attend` about to happen, its operands evaluated.
struct Attend : AttendInputs {
  llvm::SmallVector<Slice, 1> slices;
  State state;
  /// Which shard of queries this is, of an op on gathered ones: it happens for
  /// one after the other.
  int64_t queryShard = 0, numQueryShards = 1;

  bool isLastShard() const { return queryShard + 1 == numQueryShards; }
};

/// A `ring.score` about to happen, its operands evaluated.
struct Score : AttendInputs {
  Tensor *key = nullptr;
  int64_t keyOwner = 0;
  TensorRef scores;
};

/// A `ring.weigh` about to happen, its operands evaluated.
struct Weigh {
  mlir::Operation *at;
  ring::LayoutAttr keyLayout;
  Tensor *weights, *value;
  int64_t owner = 0, keyExtent = 0;
  State state;
};

/// A `ring.weigh_grad` about to happen, its operands evaluated.
struct WeighGrad {
  mlir::Operation *at;
  int64_t rank;
  ring::LayoutAttr keyLayout;
  TensorRef outGrad, delta;
  Tensor *value;
  int64_t owner = 0, keyExtent = 0;
  double scale = 1;
  TensorRef weights, grad; ///< that are updated
};

/// A `ring.score_grad` about to happen, its operands evaluated.
struct ScoreGrad {
  mlir::Operation *at;
  int64_t rank;
  ring::LayoutAttr keyLayout;
  Tensor *weights, *query, *key;
  int64_t owner = 0, keyExtent = 0;
  TensorRef queryGrad, keyGrad; ///< that are updated
};

/// A `ring.attend_grad` about to happen, its operands evaluated.
struct AttendGrad : AttendInputs {
  mlir::Region *gradient = nullptr;      ///< of the score
  llvm::ArrayRef<int64_t> captures = {}; ///< of the score, that have gradients
  Tensor *outGrad = nullptr, *lse = nullptr, *delta = nullptr;
  Slice slice;
  /// By query, key, value and captures.
  llvm::SmallVector<TensorRef, 3> grads;
  /// Which shards these are, of an op on gathered queries or keys: it happens
  /// for all of those keys with one shard of queries, then with the next.
  int64_t queryShard = 0, numQueryShards = 1, keyShard = 0, numKeyShards = 1;

  bool isLastShard() const {
    return queryShard + 1 == numQueryShards && keyShard + 1 == numKeyShards;
  }
};

/// A `ring.add` about to happen, its operands evaluated.
struct Sum {
  ring::LayoutAttr layout;
  int64_t rank, hop;
  TensorRef a;
  Tensor *b;
  int64_t owner, extent;
  uint64_t segments; ///< those that are added
};

/// A `ring.merge` about to happen, its operands evaluated.
struct Merge {
  ring::LayoutAttr layout;
  int64_t rank, hop;
  State into, from;
  int64_t owner, extent;
  uint64_t segments; ///< those that are merged
};

/// The attention of a state, see ring.finalize. What is made may be in the
/// memory of the state.
struct Finalize {
  mlir::Type element; ///< of out
  bool hasMaxScores;
  State state;
  TensorRef out, lse, maxScores;
};

/// What a transfer brings: a slice, what follows one on its way (a state of its
/// queries, gradients by it), or that of the rank's own shard.
enum class TransferKind : uint8_t { Slice, Onward, ToOwner };
inline constexpr size_t numTransferKinds = 3;

/// A `ring.start` on one rank.
struct Transfer {
  ring::TransferOpInterface start;
  int64_t rank = 0, hop = 0;
  int64_t place = 0;  ///< of the rank on the channel
  RankGroup ownersOf; ///< the places of owners along the channel
  int64_t to = -1, from = -1, owner = -1, receivedOwner = -1, extent = 0;
  /// Segments that are flagged and not empty.
  uint64_t sendMask = 0, receiveMask = 0;
  /// How many positions these have, and the shard that is received.
  int64_t sentCount = 0, receivedCount = 0, shardCount = 0;
  Layout layout;
  llvm::ArrayRef<int64_t> dims; ///< that are sharded, of each tensor
  llvm::SmallVector<TensorRef, 4> tensors;
  llvm::SmallVector<TensorRef, 4> received; ///< null until it arrives
  std::shared_ptr<void> slice;              ///< that of what is received
  int64_t sentBytes = 0;                    ///< handed over until now
  bool sent = false, arrived = false, waited = false;
  Transfer *behind = nullptr; ///< started next on the channel
  /// Of an all-gather or all-to-all, a transfer per distance between ranks,
  /// from 1 on: it has all of them and is none itself.
  std::vector<std::shared_ptr<Transfer>> legs;
  /// Of a leg of an all-to-all, the bytes of each tensor that go.
  llvm::SmallVector<int64_t, 4> legBytes;

  bool isDone() const {
    return sent && arrived &&
           llvm::all_of(legs, [](const auto &leg) { return leg->isDone(); });
  }
  /// What is received in the place of tensor `index`, without data.
  template <typename T = Tensor>
  std::shared_ptr<T> makeReceived(size_t index) const {
    const Tensor &own = *tensors[index];
    auto made = std::make_shared<T>(own.shape, own.element);
    made->shape[dims[index]] = shardCount;
    made->argument = own.argument;
    made->owner = receivedOwner;
    made->sharding = {layout, dims[index], extent};
    made->segments = receiveMask;
    made->slice = slice;
    return made;
  }
  TransferKind kind() const;
  /// What follows a slice: gradients, or a part of a state. Null for a slice.
  std::optional<Made> partial() const;
};

/// How many transfers of a kind there are of which a rank holds what they
/// bring.
struct Held {
  int64_t all = 0, ofChannel = 0; ///< on all channels, and on that of one
};

/// What one rank moved and held.
struct Traffic {
  std::map<int, int64_t> sentBytes; ///< by argument, or what is made for it
  int64_t messages = 0;             ///< transfers that sent something
  int64_t hops = 0;                 ///< transfers started
  int64_t peakSlices = 0;           ///< received slices held at once
  /// Bytes of the program on buffers, see ring-bufferize: arguments, results,
  /// states, and the slots that its transfers receive into.
  int64_t peakBytes = 0;

  /// Bytes by axis of the grid: the first in which sender and receiver differ.
  llvm::SmallVector<int64_t, 2> sentByAxis;

  int64_t totalBytes() const;
};

/// The axes by which bytes that are sent are told: those of several ranks; none
/// where there is only one.
llvm::SmallVector<int64_t> axesOfSeveral(mlir::func::FuncOp program);

/// What tensors mean. Functions return false to refuse, with the message set.
class Semantics {
public:
  virtual ~Semantics() = default;

  /// Fresh state for `query`, whose o is of type `o` but for sizes that are
  /// dynamic; see ring.init.
  virtual State init(mlir::RankedTensorType o, const Tensor &query) = 0;
  virtual bool attend(Attend &attend, State &result, std::string &message) = 0;
  /// Merges `from` into `into`.
  virtual bool merge(Merge &merge, std::string &message) = 0;
  virtual bool finalize(Finalize &finalize, std::string &message) = 0;
  /// Memory for scores, see ring.scores.
  virtual TensorRef scores(mlir::Type element, const Tensor &query,
                           int64_t keys) = 0;
  /// Writes to the scores.
  virtual bool score(Score &score, std::string &message) = 0;
  /// Scores become weights, and the state that of all of them.
  virtual bool softmax(TensorRef &scores, State &state,
                       std::string &message) = 0;
  /// Adds to o of the state.
  virtual bool weigh(Weigh &weigh, std::string &message) = 0;
  /// Scores become probabilities.
  virtual bool probabilities(TensorRef &scores, const TensorRef &lse,
                             std::string &message) = 0;
  /// Adds to the gradient by values, and makes gradients of probabilities.
  virtual bool weighGrad(WeighGrad &weigh, std::string &message) = 0;
  /// Adds to the gradients by queries and keys.
  virtual bool scoreGrad(ScoreGrad &score, std::string &message) = 0;
  virtual TensorRef zero(mlir::Type element, const Tensor &like) = 0;
  virtual bool delta(mlir::Type element, const TensorRef &out,
                     const TensorRef &outGrad, const TensorRef &lseGrad,
                     TensorRef &result, std::string &message) = 0;
  /// Adds to the gradients.
  virtual bool attendGrad(AttendGrad &attend, std::string &message) = 0;
  /// Adds b to a.
  virtual bool add(Sum &sum, std::string &message) = 0;
  /// To an element type and a number of heads, whose parts are added.
  virtual bool round(mlir::Type element, int64_t heads,
                     const TensorRef &gradient, TensorRef &result,
                     std::string &message) = 0;
  /// A chunk of heads, without what it is of; see ring.take_heads.
  virtual TensorRef takeHeads(const Tensor &whole, const HeadChunk &of);
  /// All heads, of chunks; see ring.join_heads.
  virtual TensorRef joinHeads(llvm::ArrayRef<TensorRef> chunks);
  /// A transfer starts, with which the rank holds what so many of its kind
  /// bring; may refuse it.
  virtual bool start(const Transfer &transfer, const Held &held,
                     std::string &message) {
    return true;
  }
  /// What arrives of tensor `index`, of which the flagged segments are handed
  /// over.
  virtual TensorRef deliver(const Transfer &from, const Transfer &to,
                            size_t index) {
    return to.makeReceived(index);
  }
  /// Whether tables have the sizes that the run will find; else some are made
  /// up, and nothing is required of them.
  virtual bool knowsTables() const { return false; }
  /// A transfer is done: what was sent is free.
  virtual void wait(const Transfer &transfer) {}
  /// What goes in an all-to-all from one rank to another, or stays on one, of
  /// tensor `index`, is there: a part of what is received already.
  virtual void exchange(const Transfer &from, const Transfer &to,
                        size_t index) {}
};

/// The heads of the rank at a place of an all-to-all, of those of what goes and
/// of what it becomes.
burst_heads headsInBetween(ring::TransferOpInterface start, const Tensor &sent,
                           const Tensor &received, int64_t place);

/// Is told what ranks do, whatever a Semantics makes of it.
class Listener {
public:
  virtual ~Listener() = default;
  /// A rank that is run alone is at its beginning.
  virtual void begins(int64_t rank) {}
  /// Pairs of segments come together, of slice `index`, which `keyOwner` owns.
  virtual void meets(const AttendInputs &inputs, size_t index,
                     int64_t keyOwner) {}
  virtual void starts(const Transfer &transfer) {}
  /// A rank has waited for a transfer, with all its legs.
  virtual void waits(const Transfer &transfer) {}
  /// Tensor `index` is handed over.
  virtual void delivers(const Transfer &from, const Transfer &to,
                        size_t index) {}
};

/// The program of a rank, flattened once, run as often as wanted.
class Simulation {
public:
  /// Null, with errors emitted, where the function cannot be run, or has more
  /// ranks.
  static std::unique_ptr<Simulation>
  create(mlir::func::FuncOp program, int64_t mostRanks = maxSimulatedRanks);
  ~Simulation();

  int64_t numRanks() const;
  mlir::func::FuncOp getFunction() const;

  /// Runs all ranks; `arguments[r]` are those of rank r. False where the
  /// schedule fails, see getCounterexample.
  bool run(Semantics &semantics, std::vector<std::vector<Argument>> arguments,
           Listener *listener = nullptr);

  /// Runs one rank after the other, of a program that is proved: what arrives
  /// is what a rank's own transfers receive, and nobody waits. Not for a
  /// Semantics that looks at what is delivered; without a listener, nor for one
  /// that looks at the operands of steps. Where all ranks hold as much, results
  /// are those of the first.
  bool runAlone(Semantics &semantics, llvm::ArrayRef<Argument> globals,
                Listener *listener = nullptr);

  const Counterexample &getCounterexample() const;
  const std::vector<Traffic> &getTraffic() const;
  /// The results of each rank.
  const std::vector<std::vector<TensorRef>> &getResults() const;
  /// Forgets what the last run left, before arguments are made anew.
  void reset();

private:
  class Impl;
  explicit Simulation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SIMULATION_H
