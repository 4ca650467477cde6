//===- Ranks.h - the ranks of a simulation ----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a Simulation is made of: the ranks, each with its frame and the ops that
// leave scalar code (Rank.cpp, RankTransfers.cpp), and the queues in which
// their transfers meet (Matching.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_RANKS_H
#define BURST_PASSES_SIMULATION_RANKS_H

#include "passes/Buffers/Reuse.h"
#include "passes/Simulation/SimulatedOp.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace burst {

/// A function the program calls, and what it gave for which arguments: it
/// cannot depend on the rank, so all ranks share its results.
struct Callee {
  Program program;
  struct Memory {
    std::vector<Scalar> scalars;
    std::vector<Object> objects;
    Frame frame;
  };
  std::vector<Memory> calls;
};

using TransferRef = std::shared_ptr<Transfer>;

/// Transfers of a rank on a channel that are not done, in the order in which
/// they were started. The rank owns them.
struct TransferQueue {
  Transfer *head = nullptr, *last = nullptr;
  /// What transfers have brought and is held, by kind; null where none did.
  std::array<GaugeRef, numTransferKinds> held;

  bool isEmpty() const { return !head; }
  void push(Transfer &transfer) {
    (head ? last->behind : head) = &transfer;
    last = &transfer;
  }
  void pop() { head = head->behind; }
};

/// By rank.
using Channel = std::vector<TransferQueue>;

/// What `ring.init`, `zero` and `scores` make in memory.
struct FreshMemory {
  bool isCarried = false; ///< by what a loop carries, in so many slots
  int64_t slots = 0;
  size_t copies = 1; ///< several that begin alike are several in memory
};

/// What a transfer says that is the same on all ranks and in all hops.
struct StartSite {
  explicit StartSite(ring::TransferOpInterface op)
      : op(op), segments(op.getSegmentsMutable(), op.getTurnMutable()) {}

  ring::TransferOpInterface op;
  Layout layout; ///< of the shards that travel
  /// Whether it gathers; whether shards go out of tensors that are gathered;
  /// whether it is an all-to-all.
  bool gathers, isOfGathered, isAllToAll;
  llvm::ArrayRef<int64_t> dims;
  Channel *channel;
  RankGroup group; ///< who meet on it
  bool isOnGrid;
  int64_t slots; ///< into which it receives in turn
  unsigned numTensors;
  unsigned tensors, owner, extent, to, receivedOwner, from; ///< operands
  SegmentFlags segments;
};

/// What an attend says that is the same on all ranks and in all hops, and which
/// of its operands are which.
struct AttendSite {
  AttendInputs inputs; ///< layouts are those of parts
  bool gathersQueries, gathersKeys;
  unsigned query, queryOwner, queryExtent, keyOwner, keyExtent;
  std::optional<unsigned> offsets; ///< the first of four
  std::optional<unsigned> pairs;   ///< a table
  mlir::OperandRange maskCaptures, scoreCaptures;
};

/// An op that leaves scalar code: what is the same on all ranks and in all
/// hops, once it was asked for.
struct Site {
  SimulatedOpInterface step;  ///< null for what ranks do themselves
  bool reusesBuffers = false; ///< whether it makes something in others' buffers
  bool isKnown = false;       ///< whether it was asked for
  std::unique_ptr<const StartSite> start;
  std::unique_ptr<const AttendSite> attend;
  std::optional<FreshMemory> memory;
};

/// What the first rank did that all do alike.
struct Trace {
  struct Start {
    const StartSite *site;
    int64_t extent;
    /// By tensor, the argument, or what is made for it, and the bytes of a
    /// position.
    llvm::SmallVector<std::pair<int, int64_t>, 4> tensors;
    bool isSlice; ///< of which the peak is counted
  };
  std::vector<Start> starts;
  /// In their order: the number of a start, or its complement where all that it
  /// brought is gone.
  std::vector<int64_t> events;
};

class Simulation::Impl {
public:
  explicit Impl(mlir::func::FuncOp function, Program program)
      : function(function), program(std::move(program)),
        ranksInAll(ring::numRanks(function)),
        sharding(ring::shardingOf(function)), parts(sharding.sequence.size),
        reused(findReusedBuffers(function)), shards(parts) {
    for (int64_t axis : llvm::seq(ring::gridOf(function).getRank()))
      strides.push_back(ring::groupOf(function, axis).stride);
    hasGathers = function
                     .walk([](ring::TransferOpInterface op) {
                       return op.isGather() || op.isAllToAll()
                                  ? mlir::WalkResult::interrupt()
                                  : mlir::WalkResult::advance();
                     })
                     .wasInterrupted();
  }

  bool runAlone(llvm::ArrayRef<Argument> globals);
  void countTraffic();
  bool run(std::vector<std::vector<Argument>> arguments);
  void reset();
  llvm::LogicalResult compileCallees();

  mlir::func::FuncOp function;
  Program program;
  int64_t ranksInAll; ///< of the grid
  ring::Sharding sharding;
  int64_t parts; ///< over which the sequence is sharded
  /// See findReusedBuffers.
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> reused;
  bool hasGathers; ///< whether transfers are with all ranks
  std::map<mlir::Operation *, Callee> callees; ///< by func.call
  /// Whether ranks run one after the other and meet nobody.
  bool isAlone = false;
  /// Where the rank that is run alone writes down what it does.
  std::shared_ptr<Trace> trace;
  Semantics *semantics = nullptr;
  Listener *listener = nullptr;
  Counterexample failure;
  std::vector<Traffic> traffic;
  std::vector<std::vector<TensorRef>> results;

private:
  struct Rank;
  class Together;

  /// What a rank holds of the kind of a transfer, on all channels and on its
  /// own.
  struct Gauges {
    const GaugeRef &all, &ofChannel;
  };
  Gauges gaugesOf(const Transfer &transfer, Channel &channel) {
    auto kind = static_cast<size_t>(transfer.kind());
    GaugeRef &ofChannel = channel[transfer.rank].held[kind];
    if (!ofChannel)
      ofChannel = std::make_shared<Gauge>();
    return {slices[transfer.rank][kind], ofChannel};
  }
  void countBytes(int64_t rank, int argument, int64_t bytes);
  void countSent(Transfer &transfer, int64_t to, size_t index, int64_t bytes);
  size_t axisBetween(int64_t rank, int64_t to) const;
  const FreshMemory &memoryOf(const ExternalCall &call);
  const StartSite &siteOf(ring::TransferOpInterface op,
                          const ExternalCall &call);

  void bindFrame(Frame &frame, llvm::ArrayRef<Argument> arguments);
  void bind(Rank &rank, llvm::ArrayRef<Argument> arguments);
  bool runRankAlone(Rank &rank, llvm::ArrayRef<Argument> globals);
  bool areAlike(llvm::ArrayRef<Argument> globals);
  bool countTogether(llvm::ArrayRef<Argument> globals);
  void end(Rank &rank);
  bool resume(Rank &rank, bool &moved);

  bool refuse(const Transfer &transfer, const llvm::Twine &message);
  bool advance(int64_t rank, Channel &queue);
  void takeAlone(Transfer &transfer);
  bool checkMatch(const Transfer &from, const Transfer &to, size_t index,
                  int64_t sent);
  bool match(Transfer &from, Transfer &to);
  bool matchAllToAll(Transfer &from, Transfer &to);
  bool checkEnd();
  std::string describeRank(int64_t rank, int64_t channel);
  bool reportDeadlock();

  int64_t positionBytes(const Tensor &tensor, int64_t dim);

  ShardTable shards;
  /// The element type that was asked for last, and its bytes.
  std::pair<mlir::Type, int64_t> lastElement;
  std::vector<Site> sites; ///< by ExternalCall::site
  std::vector<std::unique_ptr<Rank>> ranks;
  std::map<int64_t, Channel> channels;
  /// What was received and is held on all channels, by rank and kind.
  std::vector<std::array<GaugeRef, numTransferKinds>> slices;
  /// By rank, what it sent of each tensor: of few.
  std::vector<llvm::SmallVector<std::pair<int, int64_t>, 4>> sent;
  /// By axis of the grid, how far apart its neighbors are.
  llvm::SmallVector<int64_t> strides;
};

/// One rank: its frame, and the ops that leave it.
struct Simulation::Impl::Rank final : Environment, SimulatedRank {
  Rank(Impl &impl, int64_t index)
      : SimulatedRank(index, impl.sharding.sequence), impl(impl),
        frame(impl.program.makeFrame()), turns(impl.program.numSites()) {}

  Step execute(const ExternalCall &call) override;
  bool executeTogether(const ExternalCall &, const LaneValues &) override {
    return false;
  }
  Step call(const ExternalCall &call) override;
  void fault(mlir::Location loc, const llvm::Twine &message) override;
  int64_t numOwners() const override { return parts; }

  Semantics &semantics() override { return *impl.semantics; }
  bool onlyCounts() const override { return impl.isAlone && !impl.listener; }
  Step fail(mlir::Operation *op, const llvm::Twine &message) override;
  const Shard &shardOf(const Layout &layout, int64_t extent,
                       int64_t owner) override {
    return impl.shards.of(layout, extent, owner);
  }
  void hold(const Tensor &tensor) override {
    hold(tensor.shape, tensor.element);
  }
  void hold(llvm::ArrayRef<int64_t> shape, mlir::Type element) {
    if (!reusesBuffers)
      impl.traffic[index].peakBytes += bytesOf(shape, element);
  }
  void holdFresh(const ExternalCall &call,
                 llvm::ArrayRef<TensorRef> tensors) override;
  bool readInputs(ring::AttendLikeOpInterface op, const ExternalCall &call,
                  const GatheredPart &part, AttendInputs &inputs) override;
  void announce(const AttendInputs &inputs, size_t slice,
                int64_t owner) override {
    if (impl.listener)
      impl.listener->meets(inputs, slice, owner);
  }

  Step runOther(const ExternalCall &call);
  Step runSegment(ring::SegmentOp op, const ExternalCall &call);
  Step runPlaces(mlir::Operation *op, llvm::ArrayRef<int16_t> axes,
                 llvm::StringRef grid, const ExternalCall &call);
  Step runRequire(ring::RequireOp op, const ExternalCall &call);
  bool selectPairs(const AttendSite &site, const ExternalCall &call,
                   const GatheredPart &part, AttendInputs &inputs);
  Step runStart(ring::TransferOpInterface op, const ExternalCall &call);
  void describeSite(const StartSite &site, const ExternalCall &call,
                    Transfer &transfer) const;
  bool isPeer(const StartSite &site, llvm::StringRef what, int64_t value);
  bool describeStart(const StartSite &site, const ExternalCall &call,
                     Transfer &transfer);
  bool describeTransfer(const StartSite &site, const ExternalCall &call,
                        int64_t turn, Transfer &transfer);
  bool takeTensors(const StartSite &site, const ExternalCall &call,
                   Transfer &transfer);
  bool fitsReceived(const StartSite &site, const Transfer &transfer,
                    unsigned number, const Tensor &tensor);
  TensorRef shardOfGathered(const StartSite &site, const TensorRef &gathered,
                            int64_t owner);
  bool begin(const StartSite &site, Transfer &transfer,
             const std::shared_ptr<void> &held);
  std::shared_ptr<void> traceSlice(const StartSite &site,
                                   const Transfer &transfer,
                                   std::shared_ptr<void> held);
  bool startGather(const StartSite &site, const ExternalCall &call,
                   Transfer &gather);
  TensorRef gathered(const Transfer &gather, size_t index);
  bool isOfShards(const ExternalCall &call);
  Step runWait(ring::WaitOp op, const ExternalCall &call);
  TransferRef makeLeg(const StartSite &site, const Transfer &all,
                      int64_t distance);
  bool startAllToAll(const StartSite &site, const ExternalCall &call,
                     Transfer &all);
  TensorRef exchanged(const StartSite &site, const ExternalCall &call,
                      unsigned index, Transfer &all);
  bool isOnGrid(mlir::Operation *op, llvm::StringRef grid);

  Impl &impl;
  Frame frame;
  bool isDone = false;
  bool reusesBuffers =
      false; ///< whether the op makes what it makes in memory of others
  /// By site, how often a transfer was started, or a gradient begun: see
  /// numSlots.
  std::vector<int64_t> turns;
  /// Started and not waited for.
  std::vector<TransferRef> open;
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_RANKS_H
