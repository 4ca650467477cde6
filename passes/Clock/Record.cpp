//===- Record.cpp - what ranks do, with what it costs ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/Clock.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace burst;

namespace {

/// What all ranks do, and which of them is run.
struct Log {
  Recorded recorded;
  int64_t rank = 0;

  void push(const RankEvent &event) { recorded.ranks[rank].push_back(event); }
  void compute(StringRef step, double seconds);
};

/// Writes down what a rank starts and waits for.
class TransferRecorder final : public Listener {
public:
  TransferRecorder(const Machine &machine, Log &log)
      : costs(machine.kernels), log(log) {}

private:
  void begins(int64_t rank) override {
    log.rank = rank;
    numStarts = 0;
    started.clear();
  }
  void starts(const Transfer &transfer) override;
  void waits(const Transfer &transfer) override;

  /// A transfer that is started and not waited for.
  struct Started {
    int32_t number;
    double received; ///< bytes
  };

  KernelCosts costs;
  Log &log;
  int32_t numStarts = 0;
  llvm::DenseMap<const Transfer *, Started> started;
};

/// Writes down what a rank computes.
class StepRecorder final : public Bookkeeper {
public:
  StepRecorder(const Machine &machine, Log &log)
      : costs(machine.kernels), log(log) {}

private:
  State init(RankedTensorType o, const Tensor &query) override {
    State state = Bookkeeper::init(o, query);
    compute("init", bytesOf({state.o, state.m, state.l}));
    return state;
  }
  bool attend(Attend &attend, State &result, std::string &message) override;
  bool attendGrad(AttendGrad &attend, std::string &message) override;
  bool merge(Merge &merge, std::string &message) override {
    compute("merge", 3 * bytesOf({merge.into.o, merge.into.m, merge.into.l}));
    return Bookkeeper::merge(merge, message);
  }
  bool finalize(Finalize &finalize, std::string &message) override {
    State &state = finalize.state;
    double before = bytesOf({state.o, state.m, state.l});
    if (!Bookkeeper::finalize(finalize, message))
      return false;
    if (!endsInAttend)
      compute("finalize", before + bytesOf({finalize.out, finalize.lse}));
    endsInAttend = false;
    return true;
  }
  bool score(Score &score, std::string &message) override {
    if (log.rank != rankOfScores)
      keptPairs = allPairs = 0;
    rankOfScores = log.rank;
    keptPairs += costs.keptPairs(score, score.keyOwner);
    allPairs += pairsOf(*score.scores, *score.key);
    stored("score", *score.scores, *score.key, /*products=*/1);
    return Bookkeeper::score(score, message);
  }
  bool softmax(TensorRef &scores, State &state, std::string &message) override {
    compute("softmax", 2 * bytesOf({scores}));
    return Bookkeeper::softmax(scores, state, message);
  }
  bool weigh(Weigh &weigh, std::string &message) override {
    stored("weigh", *weigh.weights, *weigh.value, /*products=*/1);
    return Bookkeeper::weigh(weigh, message);
  }
  bool probabilities(TensorRef &scores, const TensorRef &lse,
                     std::string &message) override {
    compute("probabilities", 2 * bytesOf({scores}) + bytesOf({lse}));
    return Bookkeeper::probabilities(scores, lse, message);
  }
  bool weighGrad(WeighGrad &weigh, std::string &message) override {
    stored("weigh_grad", *weigh.weights, *weigh.value, /*products=*/2);
    return Bookkeeper::weighGrad(weigh, message);
  }
  bool scoreGrad(ScoreGrad &score, std::string &message) override {
    stored("score_grad", *score.weights, *score.key, /*products=*/2);
    return Bookkeeper::scoreGrad(score, message);
  }
  TensorRef zero(Type element, const Tensor &like) override {
    TensorRef zero = Bookkeeper::zero(element, like);
    compute("zero", bytesOf({zero}));
    return zero;
  }
  bool delta(Type element, const TensorRef &out, const TensorRef &outGrad,
             const TensorRef &lseGrad, TensorRef &result,
             std::string &message) override {
    if (!Bookkeeper::delta(element, out, outGrad, lseGrad, result, message))
      return false;
    compute("delta", bytesOf({out, outGrad, lseGrad, result}));
    return true;
  }
  bool add(Sum &sum, std::string &message) override {
    compute("add", 3 * bytesOf({sum.a}));
    return Bookkeeper::add(sum, message);
  }
  bool round(Type element, int64_t heads, const TensorRef &gradient,
             TensorRef &result, std::string &message) override {
    if (!Bookkeeper::round(element, heads, gradient, result, message))
      return false;
    compute("round", bytesOf({gradient, result}));
    return true;
  }

  static double bytesOf(ArrayRef<TensorRef> tensors) {
    double sum = 0;
    for (const TensorRef &tensor : tensors)
      sum += tensor ? static_cast<double>(tensor->bytes()) : 0;
    return sum;
  }

  void compute(StringRef step, double bytes) {
    log.compute(step, costs.seconds(bytes));
  }
  void foldEnds(ring::AttendOp op, int64_t numShards);
  void addWork(StringRef step, const AttendInputs &inputs,
               const AttendWork &work, bool isBackward, bool isLast);
  static double pairsOf(const Tensor &weights, const Tensor &slice);
  void stored(StringRef step, const Tensor &weights, const Tensor &slice,
              int products);

  KernelCosts costs;
  Log &log;
  /// Of an attend of several shards, what those before the last take.
  double secondsOfShards = 0;
  bool endsInAttend = false; ///< what is finalized next
  /// Of stored scores of a rank, those that its mask keeps, and all so far.
  int64_t rankOfScores = -1;
  double keptPairs = 0, allPairs = 0;
};

} // namespace

void Log::compute(StringRef step, double seconds) {
  auto found = llvm::find(recorded.steps, step);
  size_t number = std::distance(recorded.steps.begin(), found);
  if (found == recorded.steps.end())
    recorded.steps.push_back(step);
  RankEvent event;
  event.step = static_cast<uint8_t>(number);
  event.amount = static_cast<float>(seconds);
  push(event);
}

/// Of stored scores or weights, those that meet a slice.
double StepRecorder::pairsOf(const Tensor &weights, const Tensor &slice) {
  double pairs = static_cast<double>(slice.shape[1]);
  for (int64_t size : ArrayRef(weights.shape).take_front(3))
    pairs *= static_cast<double>(size);
  return pairs;
}

/// Products of stored scores or weights with a slice of keys or values. Of the
/// former the part that meets the slice is read or written once for each.
void StepRecorder::stored(StringRef step, const Tensor &weights,
                          const Tensor &slice, int products) {
  double pairs = pairsOf(weights, slice);
  double operations = 2.0 * products * static_cast<double>(slice.shape[3]);
  double bytes =
      pairs * products * weights.element.getIntOrFloatBitWidth() / CHAR_BIT;
  log.compute(step, costs.seconds(pairs, operations, bytes, slice.element,
                                  slice.shape[3]));
  if (allPairs != 0)
    log.recorded.operations[log.rank] +=
        pairs * operations * keptPairs / allPairs;
}

/// What an attend begins from nothing, or ends in results, it does itself.
void StepRecorder::foldEnds(ring::AttendOp op, int64_t numShards) {
  std::vector<RankEvent> &events = log.recorded.ranks[log.rank];
  for (; op.isFirst() && numShards > 0 && !events.empty(); --numShards)
    if (const RankEvent &last = events.back();
        last.kind == RankEvent::Kind::Compute &&
        log.recorded.steps[last.step] == "init")
      events.pop_back();
  endsInAttend = op.isLast();
}

/// Adds the work of some shards; all of them are one kernel.
void StepRecorder::addWork(StringRef step, const AttendInputs &inputs,
                           const AttendWork &work, bool isBackward,
                           bool isLast) {
  if (work.tiles.computed() != 0) {
    const Tensor &query = *inputs.query;
    secondsOfShards +=
        costs.seconds(work, query.element, query.shape[3], isBackward);
    log.recorded.operations[log.rank] += work.usefulOperations();
  }
  if (isLast && secondsOfShards != 0) {
    log.compute(step, costs.launch() + secondsOfShards);
    secondsOfShards = 0;
  }
}

bool StepRecorder::attend(Attend &attend, State &result, std::string &message) {
  if (attend.queryShard == 0)
    foldEnds(cast<ring::AttendOp>(attend.at), attend.numQueryShards);
  addWork("attend", attend, costs.workOf(attend), /*isBackward=*/false,
          attend.isLastShard());
  return Bookkeeper::attend(attend, result, message);
}

bool StepRecorder::attendGrad(AttendGrad &attend, std::string &message) {
  addWork("attend_grad", attend, costs.workOf(attend), /*isBackward=*/true,
          attend.isLastShard());
  return Bookkeeper::attendGrad(attend, message);
}

/// Bytes of so many positions of what a transfer moves, or, of a leg of an
/// all-to-all, those that go.
static double bytesOf(const Transfer &transfer, int64_t count) {
  double sum = 0;
  for (auto [index, tensor] : llvm::enumerate(transfer.tensors)) {
    if (!transfer.legBytes.empty()) {
      sum += static_cast<double>(transfer.legBytes[index]);
      continue;
    }
    double ofPosition =
        static_cast<double>(tensor->element.getIntOrFloatBitWidth()) / CHAR_BIT;
    for (auto [d, size] : llvm::enumerate(tensor->shape))
      if (static_cast<int64_t>(d) != transfer.dims[index])
        ofPosition *= static_cast<double>(size);
    sum += ofPosition * static_cast<double>(count);
  }
  return sum;
}

void TransferRecorder::starts(const Transfer &transfer) {
  RankEvent event;
  event.kind = RankEvent::Kind::Start;
  if (transfer.sendMask != 0 && transfer.to != log.rank)
    event.to = static_cast<int32_t>(transfer.to);
  if (transfer.receiveMask != 0 && transfer.from != log.rank)
    event.from = static_cast<int32_t>(transfer.from);
  started[&transfer] = {
      numStarts++,
      event.from < 0 ? 0 : bytesOf(transfer, transfer.receivedCount)};
  if (event.to >= 0)
    event.amount = static_cast<float>(bytesOf(transfer, transfer.sentCount));
  ring::TransferOpInterface start = transfer.start;
  auto channel = static_cast<int64_t>(start.getChannel().getIndex());
  auto found = llvm::find(log.recorded.channels, channel);
  event.channel = static_cast<uint16_t>(found - log.recorded.channels.begin());
  if (found == log.recorded.channels.end())
    log.recorded.channels.push_back(channel);
  log.push(event);
}

void TransferRecorder::waits(const Transfer &transfer) {
  RankEvent event;
  event.kind = RankEvent::Kind::Wait;
  const Transfer *first =
      transfer.legs.empty() ? &transfer : transfer.legs.front().get();
  auto found = started.find(first);
  if (found == started.end()) // an all-to-all of one rank
    return;
  event.to = found->second.number;
  event.from =
      transfer.legs.empty() ? 1 : static_cast<int32_t>(transfer.legs.size());
  double received = 0;
  auto end = [&](const Transfer &ended) {
    if (auto found = started.find(&ended); found != started.end()) {
      received += found->second.received;
      started.erase(found);
    }
  };
  end(*first);
  for (const auto &leg : transfer.legs)
    end(*leg);
  log.push(event);
  if (double seconds = costs.secondsOfCopy(received); seconds != 0)
    log.compute("copy", seconds);
}

FailureOr<Recorded> burst::record(Simulation &simulation,
                                  ArrayRef<Argument> globals,
                                  const Machine &machine) {
  simulation.reset();
  Log log;
  log.recorded.ranks.resize(simulation.numRanks());
  log.recorded.operations.resize(simulation.numRanks());
  StepRecorder steps(machine, log);
  TransferRecorder transfers(machine, log);
  if (!simulation.runAlone(steps, globals, &transfers)) {
    report(simulation.getFunction(), simulation.getCounterexample());
    return failure();
  }
  log.recorded.traffic = simulation.getTraffic();
  return std::move(log.recorded);
}
