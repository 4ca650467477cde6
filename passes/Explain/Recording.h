//===- Recording.h - what ranks do, hop by hop ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_EXPLAIN_RECORDING_H
#define BURST_PASSES_EXPLAIN_RECORDING_H

#include "passes/Simulation/Prove/Audit.h"

namespace burst {

/// What a rank computes of a slice.
struct Computed {
  int64_t owner = 0;
  int64_t rows = 0, columns = 0; ///< segments of queries, of keys
  bool isBackward = false;       ///< whether it makes gradients
  /// Row by row, whether what is computed is full, partial or nothing.
  std::vector<PairClass> pairs;
};

/// A slice, the state of its queries, or gradients by it; or a part of an
/// all-to-all.
enum class MessageKind : uint8_t { Slice, State, Gradient, Exchange };

/// What a rank sends in one transfer.
struct Message {
  int64_t to = 0, owner = 0, bytes = 0;
  MessageKind kind = MessageKind::Slice;
  std::string segments; ///< which of them, as letters, where there are several
};

/// What a rank does in a hop.
struct Cell {
  std::vector<Computed> blocks;
  std::vector<Message> messages;
};

/// Notes what the first ranks compute and send in each hop. A slice is sent in
/// the hop in which it is computed, whichever comes first; a state and
/// gradients in the one that computed last before.
class Recorder : public Listener {
public:
  Recorder(int64_t shown, const RankGroup &sequence)
      : sequence(sequence), noted(shown), last(shown) {}

  void meets(const AttendInputs &inputs, size_t index,
             int64_t keyOwner) override;
  void starts(const Transfer &transfer) override;
  void delivers(const Transfer &from, const Transfer &to,
                size_t index) override;

  /// By rank, by hop.
  std::vector<std::vector<Cell>> cells() const;

private:
  bool isShown(int64_t rank) const {
    return rank < static_cast<int64_t>(noted.size());
  }
  RankGroup sequence; ///< who share one
  /// By rank, by how many transfers it had waited for.
  std::vector<std::map<int64_t, Cell>> noted;
  std::vector<int64_t> last; ///< where each rank has computed last
  /// Of states and gradients, where their rank had computed last.
  std::map<const Transfer *, int64_t> hops;
  Classifier classifier;
};

/// Whether an op makes gradients, as those of backward passes do.
bool isBackward(mlir::Operation *op);

/// What stands in front of the owner: "", "s", "d" or "x".
llvm::StringRef prefixOf(MessageKind kind);

/// Bytes with a unit: "512 B", "1.5 KiB".
std::string bytesText(int64_t bytes);

/// Lines of a table, whose columns are as wide as their longest cell.
void printAligned(llvm::ArrayRef<llvm::SmallVector<std::string>> rows,
                  llvm::raw_ostream &os);

} // namespace burst

#endif // BURST_PASSES_EXPLAIN_RECORDING_H
