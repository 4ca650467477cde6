//===- Cost.h - what strategies cost ----------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes and seconds of a ring, hop by hop, and the memory that it takes, before
// there is a program. Bytes are those of the program: the rules of what is
// dropped, and in which direction a ring goes, are those of ring-drop-empty.
// Seconds are a model's: a hop takes as long as the slower of its computation
// and its transfer (Liu et al., RingAttention, section 3, on overlap).
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_COST_COST_H
#define BURST_PASSES_COST_COST_H

#include "dialect/Burst/Burst.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <limits>
#include <optional>

namespace burst {

/// What goes from a rank to others.
struct Link {
  double bandwidth; ///< bytes per second that a rank sends
  double latency;   ///< seconds that a hop takes whatever its bytes
};

/// What a rank and its link can do. By default, an accelerator that achieves
/// 600 TFLOP/s behind a network card of 400 Gbit/s.
struct Hardware {
  double bandwidth = 50e9; ///< as in Link
  double latency = 10e-6;
  double flops = 600e12; ///< floating-point operations per second of a rank
  /// Bytes that a rank may hold; no limit where it is not given.
  double memory = std::numeric_limits<double>::infinity();
  /// Those of the outer and the inner ring of a nest, where each has its own;
  /// else they share the one link.
  std::optional<std::pair<Link, Link>> rings = std::nullopt;
};

/// What kernels compute: an attention, its gradients, or products with scores
/// that are stored, in both passes.
enum class Products : uint8_t { Forward, Backward, Stored };
inline constexpr size_t numProducts = 3;

/// How fast the kernels of a rank are. Rates are those of tiles of which the
/// mask keeps all, in operations per second.
struct Kernels {
  /// `burst.flops`, `burst.flops_backward` and `burst.flops_stored`, and of
  /// them those for an element type, and for a head dimension of it: "flops",
  /// "flops.bf16", "flops.bf16.64".
  llvm::StringMap<double> rates;
  double launch = 0;     ///< seconds of a kernel, whatever it does
  double processors = 1; ///< to each of which tasks are given
  double tile = 128;     ///< rows and columns that are computed at once
  /// Bytes per second that a rank reads and writes in memory.
  double memoryBandwidth = std::numeric_limits<double>::infinity();
  /// How many times what a kernel reads and writes is moved before or behind
  /// its products: 0 where that is hidden, 2 where operands are packed first.
  double staged = 0;
  /// Bytes per second at which ranks copy what they receive, with all
  /// processors; infinite where the network does.
  double copyBandwidth = std::numeric_limits<double>::infinity();
  double busy = 0; ///< the share of the processors that transfers take
  /// Those of a node, or of all ranks where no nodes are described, on each of
  /// which one rank computes at a time; infinite where each rank has its own.
  double devices = std::numeric_limits<double>::infinity();
  /// Operations per second that nothing exceeds; 0 where it is not known.
  double peak = 0;

  /// The rate for elements of a type and heads of a dimension: the one that
  /// says most. Where none is said of these products, that of a forward pass.
  double rate(mlir::Type element, int64_t headDim, Products products) const;
};

/// Ranks in a row that share a node, and its links to others.
struct Nodes {
  double size = 0;          ///< ranks of a node; 0 where none are described
  Link inside{400e9, 5e-6}; ///< from each rank to others of its node
  double cards = 0;         ///< of a node, to other nodes; 0: one for each rank
  /// Axes of the grid, from the one whose ranks are farthest apart to the one
  /// whose ranks follow each other; empty: in their order.
  llvm::SmallVector<int64_t, 2> placement = {};

  bool areDescribed() const { return size >= 1; }
};

/// A machine of which each axis of a grid may have links of its own. Links of
/// `whole` are those between nodes, where nodes are described.
struct Machine {
  Hardware whole;
  llvm::SmallVector<std::optional<Link>> axes; ///< null for those of the whole
  /// Of which of them the module says so, as of "grid.axis".
  llvm::SmallBitVector areAxesStated;
  Kernels kernels;
  Nodes nodes;

  /// How much of a device a rank has, of `ranks`, while all of them compute.
  double deviceShare(int64_t ranks) const;
  /// What ranks have that send along all of these axes: the slowest of their
  /// links. Of two axes these are those of the rings of a nest.
  Hardware along(llvm::ArrayRef<int64_t> wanted) const;
};

/// Ranks along an axis of a grid, where they are placed as `nodes` says:
/// `stride` places apart.
RankGroup placedGroup(const Nodes &nodes, mlir::shard::GridOp grid,
                      int64_t axis);

/// Describes in `module` the placement of the ranks of `grid`, in place of what
/// is said of it.
void describePlacement(mlir::ModuleOp module, mlir::shard::GridOp grid,
                       llvm::ArrayRef<int64_t> placement);

/// The machine that `#dlti.target_system_spec` of a module describes to ranks
/// on `grid`: the device of the grid's name, then the device "burst", then
/// defaults; for the links of an axis first the device "grid.axis", then those
/// of nodes. Emits an error where an entry is malformed.
llvm::FailureOr<Machine> readMachine(mlir::ModuleOp module,
                                     mlir::shard::GridOp grid);

/// Describes in `module` the machine that the module of `text` does, in place
/// of its own. Emits an error where that is none; `name` is what it is called.
llvm::LogicalResult describeMachine(mlir::ModuleOp module, llvm::StringRef text,
                                    llvm::StringRef name);
/// The same of a file; an empty path describes nothing.
llvm::LogicalResult describeMachineOf(mlir::ModuleOp module,
                                      llvm::StringRef path);

/// What travels: slices of keys or of queries, and what ranks add to for a
/// slice, which follows one hop behind and ends at the slice's owner. Bytes are
/// those of a position in all its heads, as doubles, which do not overflow.
struct Cargo {
  bool movesKeys = true;
  double slice = 0;
  double behind = 0;
  /// What ranks add to for a slice; of that, gradients that nobody wants stay
  /// where they are made.
  double made = 0;
};

/// What a mask keeps of a box: whether anything at all, and which share.
struct Kept {
  bool any = true;
  double share = 1;
};

/// An axis of a grid, by its number, and how many ranks are along it.
struct Axis {
  int64_t number, ranks;
};

/// Along which of `axes` a message goes between two places on them: the first
/// in which these differ, where the last axis counts fastest. So what leaves a
/// node goes along the axis of nodes, whatever else differs.
size_t axisBetween(llvm::ArrayRef<Axis> axes, int64_t from, int64_t to);

/// Of the messages of all places to all others, and of those to the place
/// ahead, the share that goes along an axis.
double shareOfPairs(llvm::ArrayRef<Axis> axes, size_t index);
double shareOfNeighbors(llvm::ArrayRef<Axis> axes, size_t index);

/// An attention on a ring.
class Workload {
public:
  /// Of positions [begin, end) of queries and of keys; empty boxes are asked
  /// about too.
  using Mask =
      llvm::function_ref<Kept(const Segment &queries, const Segment &keys)>;

  /// The sizes are static.
  Workload(const AttentionSizes &sizes, int64_t elementBytes,
           int64_t stateBytes, bool isBackward, const Layout &wanted,
           Mask mask);

  /// Operations for one query and one key, in all heads.
  double operationsOfPair() const;
  /// The pairs of a rank's queries and an owner's keys, or the other way round.
  double pairsOf(int64_t rank, int64_t owner, bool movesKeys) const;

  AttentionSizes sizes;
  int64_t elementBytes, stateBytes;
  bool isBackward;
  /// Which gradients the program uses: others are not sent.
  struct Wanted {
    bool query = true, key = true, value = true;
  } wanted;
  /// Whether a forward pass gives the largest scores: then its state is in
  /// memory, l in that of theirs.
  bool givesMaxScores = false;
  /// The grid's ranks, and the positions of the largest shards on it.
  Layout whole;
  int64_t queriesOfRank, keysOfRank;
  /// The layout, or on a large grid one to fewer ranks: there a step stands for
  /// `hopsOfStep` hops.
  Layout layout;
  double hopsOfStep = 1;
  /// The axes over which the sequence is sharded, those of several ranks: axis
  /// 0 where nothing else is said.
  llvm::SmallVector<Axis> axes;
  /// How many of the ranks the inner ring of a nest has, those of the last
  /// axis.
  int64_t innerRanks() const { return axes.empty() ? 1 : axes.back().ranks; }

  const Kept &kept(int64_t queryOwner, int64_t keyOwner, int64_t a,
                   int64_t b) const {
    int64_t segments = layout.numSegments();
    return table[((queryOwner * layout.parts + keyOwner) * segments + a) *
                     segments +
                 b];
  }

  /// Positions of a segment of what moves, keys or queries, and whether a rank
  /// needs it.
  int64_t positionsOf(int64_t owner, int64_t segment, bool movesKeys) const;
  bool needs(int64_t rank, int64_t owner, int64_t segment,
             bool movesKeys) const;

private:
  std::vector<Kept> table;
};

/// The largest ring that is looked at rank by rank.
inline constexpr int64_t maxExactRanks = 64;

/// What a strategy sends, stores and computes. Where sizes are static, the plan
/// of the program that it builds (Traffic, with the default options of
/// burst-to-ring) says the same, but for this:
///
/// - of a mask whose bounds read what is known at run time only, `bytes` are at
///   least those of the plan, as if nothing were dropped; on a grid of more
///   than maxExactRanks they are close to them, and what goes along which axis
///   is as if nothing were dropped;
/// - where shards are uneven, `buffers` are as if the rank held the largest of
///   queries and of keys. Masks change nothing: memory for what is dropped is
///   there. So they are where gradients are not wanted: at least those of the
///   plan.
struct Estimate {
  double bytes = 0;   ///< that a rank sends, on average
  double compute = 0; ///< seconds
  double hidden = 0;  ///< seconds of transfers behind which a rank computes
  double exposed = 0; ///< seconds of transfers that it waits for
  /// Bytes of memory that a rank needs beside the operands and the results of
  /// the attention: what transfers receive into, states and gradients that are
  /// no results, and what comes for them.
  double buffers = 0;
  /// Of `bytes` those along each axis of the grid, see axisBetween; of axes
  /// that are not there, none.
  llvm::SmallVector<double, 2> bytesByAxis = {};

  double bytesAlong(int64_t axis) const {
    return axis < static_cast<int64_t>(bytesByAxis.size()) ? bytesByAxis[axis]
                                                           : 0;
  }
  void addAlong(int64_t axis, double count);
  double seconds() const { return compute + exposed; }
  /// Both, one after the other.
  Estimate &operator+=(const Estimate &other);
};

/// What travels where keys do, or queries.
Cargo cargoOf(const Workload &workload, bool movesKeys);

/// The cost of a `ring.rotate`, and what it receives into.
Estimate estimateRotation(const Workload &workload, const Cargo &cargo,
                          const Hardware &hardware);

/// The same of one that is bidirectional: what goes either way shares the link.
Estimate estimateBidirectional(const Workload &workload, const Cargo &cargo,
                               const Hardware &hardware);

/// The same of a nest of two, of which inner ones have `innerRanks`. The outer
/// ring's transfers have the time of a whole inner ring, and what that leaves
/// of the link where they share one.
Estimate estimateNest(const Workload &workload, const Cargo &cargo,
                      const Hardware &hardware);

/// The same of one that is direct: what a rank needs of an owner, and what
/// returns of it, has the time of the attend in front.
Estimate estimateDirect(const Workload &workload, const Cargo &cargo,
                        const Hardware &hardware);

/// The cost of a `ring.gather` and of what returns to its owners, which nothing
/// hides: shards come at once, partial results one distance after the other.
Estimate estimateGathering(const Workload &workload, const Cargo &cargo,
                           const Hardware &hardware);

/// Bytes of what a rank computes with its own shards, beside results: forward
/// the softmax state, of which o is made in the memory of out where it is of
/// its type, m in that of lse, and l in that of the largest scores; backward
/// delta, and gradients that are rounded.
double ownBuffers(const Workload &workload);

/// Which takes the least time. The model knows it to a percent at best: of
/// those within that of the fastest, and with at most twice the buffers of the
/// smallest of these, which sends the fewest bytes. Where sizes are not known,
/// memory for them may not be there: at most so much counts for the others,
/// too.
size_t cheapest(llvm::ArrayRef<Estimate> estimates, bool areSizesKnown = true);

} // namespace burst

#endif // BURST_PASSES_COST_COST_H
