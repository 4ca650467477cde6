//===- SimulatedOp.h - what an op does on a simulated rank ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_SIMULATEDOP_H
#define BURST_PASSES_SIMULATION_SIMULATEDOP_H

#include "passes/Simulation/Shards.h"
#include "passes/Simulation/Simulation.h"

#include "mlir/IR/DialectRegistry.h"

namespace burst {

/// Which operands of an op are a table of segments and the row of it; see
/// `ring.start`.
struct SegmentFlags {
  std::optional<unsigned> table, turn;

  SegmentFlags() = default;
  SegmentFlags(mlir::MutableOperandRange table, mlir::MutableOperandRange turn);
};

/// The segments of `owner` that are flagged for `turn`; none where the table
/// has no such row, or no data. A bit of each, all where all are alike.
std::optional<uint64_t> flaggedSegments(const Tensor &table, int64_t owner,
                                        int64_t turn);

/// What of an attend comes together: queries that are gathered do owner by
/// owner, and keys that are do together, or also one by one.
struct GatheredPart {
  int64_t queries = 0;         ///< whose, where they are gathered
  std::optional<int64_t> keys; ///< whose alone, where they are gathered
};

/// The rank that a step runs on, as the step sees it.
class SimulatedRank {
public:
  virtual ~SimulatedRank() = default;

  /// What tensors mean.
  virtual Semantics &semantics() = 0;
  /// Whether nothing is asked of the run but what is sent and held, of a
  /// program that is proved: its operands belong together, and tensors are only
  /// sizes.
  virtual bool onlyCounts() const = 0;
  /// The schedule fails at `op`.
  virtual Step fail(mlir::Operation *op, const llvm::Twine &message) = 0;
  /// What `owner` holds of a sequence. Valid until the next call.
  virtual const Shard &shardOf(const Layout &layout, int64_t extent,
                               int64_t owner) = 0;
  /// Memory for `tensor` is allocated; none is freed before the end.
  virtual void hold(const Tensor &tensor) = 0;
  /// Memory for what a step begins. By what a loop carries, buffers are made
  /// once for all its turns; several that begin alike are several in memory.
  virtual void holdFresh(const ExternalCall &call,
                         llvm::ArrayRef<TensorRef> tensors) = 0;
  /// Reads what an attend works on: everything of `inputs` but its slices.
  /// False where an owner is no rank.
  virtual bool readInputs(ring::AttendLikeOpInterface op,
                          const ExternalCall &call, const GatheredPart &part,
                          AttendInputs &inputs) = 0;
  /// Tells who listens of an attend with the slice `index` of `owner`.
  virtual void announce(const AttendInputs &inputs, size_t index,
                        int64_t owner) = 0;
  /// Keeps those of the segments in `mask`, of `owner`, of which the flag is
  /// true; all, where there are no flags. Fails where there is no such row.
  bool selectSegments(const ExternalCall &call, const SegmentFlags &flags,
                      int64_t owner, uint64_t &mask);
  /// The same of flags of which the turn is no operand.
  bool selectSegments(const ExternalCall &call, const SegmentFlags &flags,
                      int64_t owner, int64_t turn, uint64_t &mask);
  /// Of which owners `layout` has shards: of all where they are gathered, else
  /// of one.
  int64_t numShards(ring::LayoutAttr layout) const {
    return layout.getAll() ? parts : 1;
  }
  /// Fails where an operand is not gathered, though its layout says so, or the
  /// other way round, or where the owner of what is gathered is not 0.
  bool isGathered(mlir::Operation *op, const ExternalCall &call,
                  unsigned operand, bool wanted, int64_t owner);
  /// Fails where `value` is no place of these, as `what` of `op`.
  bool isRank(mlir::Operation *op, llvm::StringRef what, int64_t value);

  int64_t index; ///< of the rank, on the grid
  /// Its place among those over which the sequence is sharded, and how many
  /// these are.
  int64_t place, parts;
  int64_t hop = 0;

protected:
  SimulatedRank(int64_t index, const RankGroup &group)
      : index(index), place(group.placeOf(index)), parts(group.size) {}
};

/// Gives the steps of the ring dialect their SimulatedOpInterface.
void registerRingSimulation(mlir::DialectRegistry &registry);

} // namespace burst

#include "passes/Simulation/SimulatedOp.h.inc"

#endif // BURST_PASSES_SIMULATION_SIMULATEDOP_H
