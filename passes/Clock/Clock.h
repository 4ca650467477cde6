//===- Clock.h - when ranks compute and wait --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a tensor means for time: a discrete-event run of the programs of all
// ranks on a machine. What each rank does, in which order, is written down by
// the simulation of its program (Recorder), kernels by what they cost on the
// machine (KernelCosts). Then all ranks run at once (runClock): a rank computes
// one thing after the other, and goes on where it starts a transfer; the
// transfers of a channel run on a rank in the order in which it started them,
// each when sender and receiver have both come to it; what is under way on a
// link shares its bandwidth.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_CLOCK_CLOCK_H
#define BURST_PASSES_CLOCK_CLOCK_H

#include "passes/Clock/KernelCosts.h"

#include <array>
#include <numeric>

namespace burst {

/// What a rank does next.
struct RankEvent {
  enum class Kind : uint8_t { Compute, Start, Wait };
  Kind kind = Kind::Compute;
  uint8_t step = 0;     ///< that is computed, a number of `Recorded::steps`
  uint16_t channel = 0; ///< of a transfer, a number of `Recorded::channels`
  /// Of a transfer, the ranks to which it sends and from which it receives; -1
  /// where it does not. Of a wait, the number of the first transfer that it is
  /// for, of those that its rank starts, and how many follow each other.
  int32_t to = -1, from = -1;
  float amount = 0; ///< seconds with all processors, or bytes that are sent
};

/// What all ranks do.
struct Recorded {
  std::vector<std::vector<RankEvent>> ranks;
  std::vector<llvm::StringRef> steps; ///< mnemonics of ops
  std::vector<int64_t> channels;
  /// Operations of a rank's attends: for pairs that the mask keeps.
  std::vector<double> operations;
  std::vector<Traffic> traffic;
};

/// Writes down what the ranks of a program do, which is proved for the sizes
/// and tables of `globals`.
mlir::FailureOr<Recorded> record(Simulation &simulation,
                                 llvm::ArrayRef<Argument> globals,
                                 const Machine &machine);

/// Seconds that a rank waits for transfers.
struct Waiting {
  double peer = 0;      ///< until who sends has come to the transfer
  double bandwidth = 0; ///< while bytes are under way, or wait for others
  double latency = 0;

  double seconds() const { return peer + bandwidth + latency; }
};

/// What leads to a moment of a rank, one behind the other: its own steps, or
/// those of a peer and a transfer from it, whichever were later.
struct Path {
  static constexpr size_t maxAxes = 8; ///< of a grid
  double compute = 0;
  std::array<double, maxAxes> bandwidth{}, latency{}; ///< by axis

  double ofBandwidth() const {
    return std::accumulate(bandwidth.begin(), bandwidth.end(), 0.0);
  }
  double ofLatency() const {
    return std::accumulate(latency.begin(), latency.end(), 0.0);
  }
};

/// A stretch of time of a rank.
struct Span {
  int64_t rank = 0;
  double begin = 0, end = 0;
  /// A step, else a transfer to a rank on a channel, or -1.
  int step = -1, channel = -1;
  int64_t to = -1;
  double bytes = 0;
};

/// When ranks did what they do.
struct Clocked {
  struct Rank {
    double end = 0, compute = 0;
    llvm::SmallVector<Waiting, 2> waits; ///< by axis of the grid
    /// By axis, bytes per second of the narrowest link over which it receives.
    llvm::SmallVector<double, 2> narrowest;
    Path path; ///< to its end
    Waiting waiting() const;
  };
  std::vector<Rank> ranks;
  std::vector<Span> spans; ///< of the ranks that were asked for

  /// The rank that ends last.
  int64_t last() const;
  double seconds() const { return ranks[last()].end; }
};

/// Runs the ranks of a grid; of those that do the same at the same time
/// (Symmetry), one. Of the first `shown` ranks spans are kept.
Clocked runClock(const Recorded &recorded, const Machine &machine,
                 mlir::func::FuncOp program, int64_t shown = 0,
                 bool findsSymmetry = true);

} // namespace burst

#endif // BURST_PASSES_CLOCK_CLOCK_H
