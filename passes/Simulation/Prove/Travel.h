//===- Travel.h - whether what arrives is read ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each segment that arrives at a rank is read there, or sent on. That is all
// that has to be asked for nothing to travel in vain: where a segment is sent
// on it arrives again, and the last one of its way is read.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_PASSES_SIMULATION_PROVE_TRAVEL_H
#define BURST_PASSES_SIMULATION_PROVE_TRAVEL_H

#include "passes/Simulation/Simulation.h"

#include "llvm/ADT/STLExtras.h"

namespace burst {

struct Arrival;

/// The segments that arrived for nobody: the first of them.
class Travel {
public:
  /// Nobody has read segments of tensor `number`, or sent them on.
  void noteUnread(const Arrival &arrival, size_t number, uint64_t segments);
  /// Segments of a partial result came to their owner, and no rank has computed
  /// anything for them.
  void noteEmpty(const Transfer &from, const Transfer &to, size_t number,
                 uint64_t segments);
  const std::optional<Counterexample> &getFirst() const { return first; }

private:
  bool isFirst(int64_t rank, int64_t hop, size_t number) const;
  void note(int64_t rank, int64_t hop, size_t number,
            ring::TransferOpInterface start, std::string message);

  std::optional<Counterexample> first;
  size_t firstNumber = 0;
};

/// What a transfer brought to a rank. It is the slice of its tensors: gone when
/// the last of them is.
struct Arrival {
  Arrival(std::shared_ptr<Travel> travel, const Transfer &transfer,
          bool isAsked)
      : travel(std::move(travel)), held(transfer.slice), start(transfer.start),
        rank(transfer.rank), hop(transfer.hop), owner(transfer.receivedOwner),
        isPartial(transfer.partial().has_value()),
        unread(transfer.tensors.size(), isAsked ? transfer.receiveMask : 0) {}
  ~Arrival() {
    for (auto [number, segments] : llvm::enumerate(unread))
      if (segments != 0)
        travel->noteUnread(*this, number, segments);
  }
  Arrival(const Arrival &) = delete;
  Arrival &operator=(const Arrival &) = delete;

  std::shared_ptr<Travel> travel;
  std::shared_ptr<void> held;
  ring::TransferOpInterface start;
  int64_t rank, hop, owner;
  bool isPartial;
  llvm::SmallVector<const Tensor *, 5> tensors;
  llvm::SmallVector<uint64_t, 5> unread; ///< segments of each
};

} // namespace burst

#endif // BURST_PASSES_SIMULATION_PROVE_TRAVEL_H
