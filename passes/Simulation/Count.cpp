//===- Count.cpp - what all ranks send, counted together ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where every rank holds as much as every other, the ranks of a program that is
// proved do the same with tensors of the same sizes. They differ in the owners
// and the turns that their transfers name, so in which segments travel. The
// first rank is run alone, and writes down when transfers start and when what
// they brought is gone; of the others only scalars are run, of many ranks at
// once, and of their transfers only flags are read.
//
//===----------------------------------------------------------------------===//
#include "passes/Simulation/Binding.h"
#include "passes/Simulation/Ranks.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;
using namespace burst;

namespace {

template <typename T>
using ByRank = std::array<T, LaneValues::width>;

/// What ranks sent and held.
struct Counts {
  llvm::SmallVector<std::pair<int, ByRank<int64_t>>, 4> sent; ///< by argument
  std::vector<ByRank<int64_t>> sentByAxis;
  ByRank<int64_t> messages{}, held{}, peak{};

  ByRank<int64_t> &sentOf(int argument) {
    for (auto &[known, sums] : sent)
      if (known == argument)
        return sums;
    return sent.emplace_back(argument, ByRank<int64_t>{}).second;
  }
};

} // namespace

/// Some ranks, from `first` on.
class Simulation::Impl::Together final : public Environment {
public:
  Together(Impl &impl, const Trace &trace, int64_t first)
      : impl(impl), trace(trace), first(first),
        count(std::min(LaneValues::width, impl.ranksInAll - first)) {
    counts.sentByAxis.resize(impl.strides.size());
  }

  /// False where they cannot be run so.
  bool run(ArrayRef<Argument> arguments);
  /// Adds what was counted to the traffic of the ranks.
  void record() const;

private:
  Step execute(const ExternalCall &) override { return Step::Failed; }
  bool executeTogether(const ExternalCall &call,
                       const LaneValues &lanes) override;
  Step call(const ExternalCall &call) override {
    return impl.ranks[first]->call(call);
  }
  void fault(Location, const Twine &) override {}
  int64_t numOwners() const override { return impl.parts; }
  bool start(const StartSite &site, const ExternalCall &call,
             const LaneValues &lanes);
  std::optional<uint64_t> selected(const StartSite &site,
                                   const ExternalCall &call, int64_t owner,
                                   int64_t turn);
  void endSlices();

  Impl &impl;
  const Trace &trace;
  int64_t first, count;
  Counts counts;
  size_t nextStart = 0, nextEvent = 0;
  /// By start, which ranks received something.
  std::vector<uint64_t> received;
};

/// The segments of `owner` that travel; none where there is no such row.
std::optional<uint64_t>
Simulation::Impl::Together::selected(const StartSite &site,
                                     const ExternalCall &call, int64_t owner,
                                     int64_t turn) {
  if (owner < 0 || owner >= impl.parts)
    return std::nullopt;
  const Shard &shard =
      impl.shards.of(site.layout, trace.starts[nextStart].extent, owner);
  if (!site.segments.table)
    return shard.mask;
  const auto *table = call.peek<Tensor>(*site.segments.table);
  if (!table)
    return std::nullopt;
  std::optional<uint64_t> flagged = flaggedSegments(*table, owner, turn);
  if (!flagged)
    return std::nullopt;
  return shard.mask & *flagged;
}

/// What is gone until the next transfer starts is held no more.
void Simulation::Impl::Together::endSlices() {
  for (; nextEvent < trace.events.size() && trace.events[nextEvent] < 0;
       ++nextEvent) {
    int64_t number = ~trace.events[nextEvent];
    if (trace.starts[number].isSlice)
      for (int64_t lane = 0; lane < count; ++lane)
        counts.held[lane] -= received[number] >> lane & 1;
  }
}

bool Simulation::Impl::Together::start(const StartSite &site,
                                       const ExternalCall &call,
                                       const LaneValues &lanes) {
  if (nextStart == trace.starts.size() || trace.starts[nextStart].site != &site)
    return false;
  const Trace::Start &start = trace.starts[nextStart];
  auto operand = [&](unsigned number) {
    return lanes.of(call.operands[number].number);
  };
  const Scalar *to = operand(site.to), *owner = operand(site.owner),
               *receivedOwner = operand(site.receivedOwner),
               *extent = operand(site.extent),
               *turn =
                   site.segments.turn ? operand(*site.segments.turn) : nullptr;
  endSlices();
  ++nextEvent;
  ByRank<int64_t> positions{};
  uint64_t arrives = 0;
  for (int64_t lane = 0; lane < count; ++lane) {
    int64_t row = turn ? turn[lane].i : 0;
    std::optional<uint64_t> sent = selected(site, call, owner[lane].i, row),
                            arrived = selected(site, call,
                                               receivedOwner[lane].i, row);
    if (!sent || !arrived || extent[lane].i != start.extent)
      return false;
    bool sends = *sent != 0 && to[lane].i != site.group.placeOf(first + lane);
    if (sends)
      positions[lane] = impl.shards.of(site.layout, start.extent, owner[lane].i)
                            .countOf(*sent);
    counts.messages[lane] += sends;
    arrives |= static_cast<uint64_t>(*arrived != 0) << lane;
  }
  int64_t bytesOfPosition = 0;
  for (auto [argument, bytes] : start.tensors) {
    ByRank<int64_t> &sums = counts.sentOf(argument);
    for (int64_t lane = 0; lane < count; ++lane)
      sums[lane] += bytes * positions[lane];
    bytesOfPosition += bytes;
  }
  for (int64_t lane = 0; lane < count; ++lane)
    if (positions[lane] != 0) {
      int64_t rank = first + lane;
      size_t axis = impl.axisBetween(rank, site.group.member(rank, to[lane].i));
      counts.sentByAxis[axis][lane] += bytesOfPosition * positions[lane];
    }
  received.push_back(arrives);
  if (start.isSlice)
    for (int64_t lane = 0; lane < count; ++lane) {
      counts.held[lane] += arrives >> lane & 1;
      counts.peak[lane] = std::max(counts.peak[lane], counts.held[lane]);
    }
  ++nextStart;
  return true;
}

bool Simulation::Impl::Together::executeTogether(const ExternalCall &call,
                                                 const LaneValues &lanes) {
  if (const auto &site = impl.sites[call.site].start)
    return start(*site, call, lanes);
  auto places = dyn_cast<shard::ProcessMultiIndexOp>(call.op);
  auto sizes = dyn_cast<shard::GridShapeOp>(call.op);
  ArrayRef<shard::GridAxis> axes = places  ? places.getAxes()
                                   : sizes ? sizes.getAxes()
                                           : ArrayRef<shard::GridAxis>();
  for (auto [number, slot] : llvm::enumerate(call.results)) {
    if (!slot.isScalar)
      continue;
    if (!places && !sizes)
      return false; // who knows on what it depends
    int64_t axis = axes.empty() ? static_cast<int64_t>(number) : axes[number];
    RankGroup group = ring::groupOf(impl.function, axis);
    Scalar *values = lanes.of(slot.number);
    for (int64_t lane = 0; lane < count; ++lane)
      values[lane].i = places ? group.placeOf(first + lane) : group.size;
  }
  return true;
}

bool Simulation::Impl::Together::run(ArrayRef<Argument> arguments) {
  Frame frame = impl.program.makeFrame();
  impl.bindFrame(frame, arguments);
  return impl.program.runTogether(frame, *this, count) &&
         nextStart == trace.starts.size();
}

void Simulation::Impl::Together::record() const {
  for (int64_t lane = 0; lane < count; ++lane) {
    int64_t rank = first + lane;
    for (const auto &[argument, sums] : counts.sent)
      if (sums[lane] != 0)
        impl.countBytes(rank, argument, sums[lane]);
    Traffic &traffic = impl.traffic[rank];
    for (auto [sum, sums] :
         llvm::zip_equal(traffic.sentByAxis, counts.sentByAxis))
      sum += sums[lane];
    traffic.messages = counts.messages[lane];
    traffic.hops = impl.traffic.front().hops;
    traffic.peakBytes = impl.traffic.front().peakBytes;
    impl.slices[rank][static_cast<size_t>(TransferKind::Slice)]->peak =
        counts.peak[lane];
    impl.results[rank] = impl.results.front(); // of the same sizes
  }
}

/// Whether all ranks have tensors of the same sizes, and gather none.
bool Simulation::Impl::areAlike(ArrayRef<Argument> globals) {
  for (auto [index, global] : llvm::enumerate(globals)) {
    auto shard =
        function.getArgAttrOfType<ring::ShardAttr>(index, ring::shardAttr);
    if (shard && !shard.getLayout().getValue().isEven(
                     global.table->shape[shard.getDim()]))
      return false;
  }
  return !hasGathers;
}

/// Counts for all ranks but the first, which has written down the trace. False
/// where nothing was counted.
bool Simulation::Impl::countTogether(ArrayRef<Argument> globals) {
  std::vector<Argument> arguments =
      shardGlobals(function, globals, /*rank=*/0, ShardData::Omit);
  std::vector<std::unique_ptr<Together>> all;
  for (int64_t first = 1; first < ranksInAll; first += LaneValues::width) {
    all.push_back(std::make_unique<Together>(*this, *trace, first));
    if (!all.back()->run(arguments))
      return false;
  }
  for (const auto &some : all)
    some->record();
  return true;
}
