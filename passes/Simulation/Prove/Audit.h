//===- Audit.h - schedules without data, and their proof --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_PROVE_AUDIT_H
#define BURST_PASSES_SIMULATION_PROVE_AUDIT_H

#include "passes/Simulation/Binding.h"
#include "passes/Simulation/Prove/PairSet.h"

namespace burst {

/// Runs a schedule without data: shapes, owners and sizes only.
class Bookkeeper : public Semantics {
public:
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
};

/// What the mask says of a pair of segments.
enum class PairClass : uint8_t { Empty, Partial, Full };

/// Query heads that follow one another, by the numbers that masks see.
struct HeadRange {
  int64_t begin, end;

  int64_t count() const { return end - begin; }
};

/// Asks the bounds of attends about pairs of segments, and remembers.
class Classifier {
public:
  /// The class of segment `a` of the inputs's queries and segment `b` of
  /// `owner`. Without a mask everything is needed; with a mask but without
  /// bounds everything may be.
  PairClass classify(const AttendInputs &inputs, int64_t owner, int64_t a,
                     int64_t b) {
    return classify(inputs, inputs.queryOwner, owner, a, b);
  }
  /// The same for the queries of `queryOwner`.
  PairClass classify(const AttendInputs &inputs, int64_t queryOwner,
                     int64_t owner, int64_t a, int64_t b);

  /// The class of any queries and keys in some heads, which is not remembered.
  PairClass classify(const AttendInputs &inputs, HeadRange heads,
                     const Segment &queries, const Segment &keys) {
    return compute(entryOf(inputs), inputs, heads, queries, keys);
  }

  /// From the first to the last of a rank's heads of which the mask may keep
  /// some, and not what the rank only has room for.
  HeadRange attendedHeads(const AttendInputs &inputs);

  /// Asks about all keys that the queries of `queryOwner` may meet at once.
  void classifyRow(const AttendInputs &inputs, int64_t queryOwner);

  /// The pairs of segments of `queryOwner` and `owner` that are not empty.
  PairMask needed(const AttendInputs &inputs, int64_t queryOwner,
                  int64_t owner);

  /// Why heads that rank number `place` of all that differ in heads only has
  /// room for may be attended; empty where the bounds rule them out.
  std::string checkRoom(const AttendInputs &inputs,
                        const ExchangedHeads &queries, int64_t members,
                        int64_t place);

private:
  struct Entry {
    std::optional<RegionEvaluator> bounds;
    /// By owner of the queries, of the keys: two bits for each pair of their
    /// segments, 0 where it was not asked for.
    std::vector<uint8_t> known;
    int64_t keyOwners = 0, numA = 0, numB = 0; ///< numbers of segments
    /// Of all owners of keys, where a row was asked for.
    std::vector<Segment> keys;
    std::vector<Scalar> keyBegins, keyEnds;
    std::map<int64_t, HeadRange> attended; ///< by the first head of a rank
  };
  Entry &entryOf(const AttendInputs &inputs);
  PairClass compute(Entry &entry, const AttendInputs &inputs, HeadRange heads,
                    const Segment &q, const Segment &k);

  std::map<mlir::Operation *, Entry> entries;
  mlir::Operation *lastOp = nullptr; ///< asked about, and its entry
  Entry *last = nullptr;
};

/// What a schedule may do though it could do without.
struct ProofOptions {
  /// Pairs that the mask rules out may be computed.
  bool allowEmpty = false;
  /// Segments may arrive where nobody reads them or sends them on.
  bool allowNeedless = false;
};

/// Both, where nothing is asked but whether a schedule is right.
inline constexpr ProofOptions allowWaste{/*allowEmpty=*/true,
                                         /*allowNeedless=*/true};

/// What a proof counted.
struct Proof {
  int64_t computed = 0; ///< pairs of segments that were computed
  int64_t dropped = 0;  ///< pairs that the mask rules out, and were not
  int64_t wasted = 0;   ///< pairs that it rules out, and were computed
  std::vector<Traffic> traffic;
};

/// Proves the schedule of a program for the sizes and tables of `globals`, see
/// the pass `ring-verify`; the counterexample where it cannot be.
std::optional<Counterexample> prove(Simulation &simulation,
                                    llvm::ArrayRef<Argument> globals,
                                    const ProofOptions &options, Proof &proof,
                                    Listener *listener = nullptr);

/// What each rank sends and holds; the counterexample where the schedule cannot
/// be run. Of a program that `isProved`, each rank is run alone.
std::optional<Counterexample> plan(Simulation &simulation,
                                   llvm::ArrayRef<Argument> globals,
                                   std::vector<Traffic> &traffic,
                                   bool isProved = false,
                                   Listener *listener = nullptr);

/// Emits "schedule refused: rank r, hop h: ..." at the counterexample's op.
void report(mlir::func::FuncOp program, const Counterexample &counterexample);

} // namespace burst

#endif // BURST_PASSES_SIMULATION_PROVE_AUDIT_H
