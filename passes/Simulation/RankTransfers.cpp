//===- RankTransfers.cpp - the transfers of a rank ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Buffers/Slots.h"
#include "passes/Simulation/Ranks.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/include/burst/internal/route.h"

using namespace mlir;
using namespace burst;

std::optional<Made> Transfer::partial() const {
  int number = tensors.front()->argument;
  if (number >= -1)
    return std::nullopt;
  Made made = whatIsMade(number).second;
  switch (made) {
  case Made::Delta:
  case Made::Out:
  case Made::Lse:
  case Made::MaxScores:
    return std::nullopt;
  case Made::Gradient:
  case Made::O:
  case Made::M:
  case Made::L:
    return made;
  }
  llvm_unreachable("unknown kind");
}

TransferKind Transfer::kind() const {
  if (!partial())
    return TransferKind::Slice;
  return ownersOf.placeOf(receivedOwner) == place ? TransferKind::ToOwner
                                                  : TransferKind::Onward;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// A transfer that a loop carries into its first turn has the buffer of that of
/// the loop; so has one that takes turns with it.
static int64_t slotsOf(ring::TransferOpInterface start) {
  if (llvm::any_of(start.getToken().getUsers(), llvm::IsaPred<scf::ForOp>))
    return 0;
  if (ring::TransferOpInterface inLoop = successorOf(start);
      inLoop && numSlots(inLoop) == 2)
    return 0;
  return numSlots(start);
}

const StartSite &Simulation::Impl::siteOf(ring::TransferOpInterface op,
                                          const ExternalCall &call) {
  std::unique_ptr<const StartSite> &known = sites[call.site].start;
  if (known)
    return *known;
  auto site = std::make_unique<StartSite>(op);
  site->layout = op.getLayout().ofPart().getValue();
  site->gathers = op.isGather();
  site->isOfGathered = op.getLayout().getAll();
  site->isAllToAll = op.isAllToAll();
  site->dims = op.getDims();
  site->channel = &channels[op.getChannel().getIndex()];
  site->channel->resize(ranksInAll);
  auto grid = function->getAttrOfType<FlatSymbolRefAttr>(ring::gridAttr);
  site->isOnGrid = op.getChannel().getGrid().getValue() == grid.getValue();
  site->group = ring::groupOf(function, op.getChannel().getAxes());
  site->slots = slotsOf(op);
  site->numTensors = op.getTensors().size();
  site->tensors = op.getTensors().getBeginOperandIndex();
  site->owner = op.getOwnerMutable().getOperandNumber();
  site->extent = op.getExtentMutable().getOperandNumber();
  if (op.getRoute() == ring::Route::Shift) {
    site->to = op.getToMutable()[0].getOperandNumber();
    site->receivedOwner = op.getReceivedOwnerMutable()[0].getOperandNumber();
    site->from = op.getFromMutable()[0].getOperandNumber();
  }
  known = std::move(site);
  return *known;
}

/// What the op says, and where the rank comes to it.
void Simulation::Impl::Rank::describeSite(const StartSite &site,
                                          const ExternalCall &call,
                                          Transfer &transfer) const {
  transfer.start = site.op;
  transfer.rank = index;
  transfer.place = site.group.placeOf(index);
  transfer.ownersOf = {
      site.group.size,
      std::max<int64_t>(1, site.group.stride / impl.sharding.sequence.stride)};
  transfer.hop = hop;
  transfer.layout = site.layout;
  transfer.dims = site.dims;
  transfer.owner = call.index(site.owner);
  transfer.extent = call.index(site.extent);
}

/// Whether `value` is a place on the channel.
bool Simulation::Impl::Rank::isPeer(const StartSite &site, StringRef what,
                                    int64_t value) {
  if (value >= 0 && value < site.group.size)
    return true;
  fail(site.op, "names rank " + Twine(value) + " as " + what + ", of " +
                    Twine(site.group.size) + " ranks");
  return false;
}

/// Owner and extent of what is sent. False where they are none.
bool Simulation::Impl::Rank::describeStart(const StartSite &site,
                                           const ExternalCall &call,
                                           Transfer &transfer) {
  ring::TransferOpInterface op = site.op;
  describeSite(site, call, transfer);
  const RankGroup &sequence = impl.sharding.sequence;
  if (site.isOnGrid && (site.gathers ? site.group != sequence
                                     : !site.group.isPartOf(sequence))) {
    fail(op, "sends on a channel of other axes than those over which the "
             "sequence is sharded");
    return false;
  }
  return isRank(op, "owner", transfer.owner) &&
         (site.isOnGrid || isOnGrid(op, op.getChannel().getGrid().getValue()));
}

/// Segments, of peers and owners that are known. False where these are none.
bool Simulation::Impl::Rank::describeTransfer(const StartSite &site,
                                              const ExternalCall &call,
                                              int64_t turn,
                                              Transfer &transfer) {
  ring::TransferOpInterface op = site.op;
  if (!isPeer(site, "target", transfer.to) ||
      !isPeer(site, "source", transfer.from) ||
      !isRank(op, "owner of what is received", transfer.receivedOwner))
    return false;
  transfer.to = site.group.member(index, transfer.to);
  transfer.from = site.group.member(index, transfer.from);
  const Shard &own =
      impl.shards.of(site.layout, transfer.extent, transfer.owner);
  transfer.sendMask = own.mask;
  if (!selectSegments(call, site.segments, transfer.owner, turn,
                      transfer.sendMask))
    return false;
  transfer.sentCount = own.countOf(transfer.sendMask);
  const Shard &other =
      impl.shards.of(site.layout, transfer.extent, transfer.receivedOwner);
  transfer.receiveMask = other.mask;
  if (!selectSegments(call, site.segments, transfer.receivedOwner, turn,
                      transfer.receiveMask))
    return false;
  transfer.receivedCount = other.countOf(transfer.receiveMask);
  transfer.shardCount = other.count;
  return true;
}

/// The shard of an owner, of a tensor that was gathered; null where it was not.
TensorRef Simulation::Impl::Rank::shardOfGathered(const StartSite &site,
                                                  const TensorRef &gathered,
                                                  int64_t owner) {
  if (!gathered->shards.empty())
    return gathered->shards[owner];
  fail(site.op, "sends the shard of " + Twine(owner) +
                    " of what is gathered, and is given that of one rank");
  return nullptr;
}

/// Whether what is received of a tensor has the sizes that its type says.
bool Simulation::Impl::Rank::fitsReceived(const StartSite &site,
                                          const Transfer &transfer,
                                          unsigned number,
                                          const Tensor &tensor) {
  ring::TransferOpInterface op = site.op;
  auto type =
      cast<RankedTensorType>(op.getToken().getType().getTypes()[number]);
  for (auto [d, size] : llvm::enumerate(type.getShape())) {
    int64_t wanted = tensor.shape[d];
    if (static_cast<int64_t>(d) == site.dims[number])
      wanted = site.gathers ? transfer.extent : transfer.shardCount;
    if (ShapedType::isDynamic(size) || size == wanted)
      continue;
    fail(op, "receives tensor " + Twine(number) + " of " + Twine(wanted) +
                 " positions along dimension " + Twine(d) + ", its type says " +
                 Twine(size));
    return false;
  }
  return true;
}

/// What is sent, and the memory for what is received.
bool Simulation::Impl::Rank::takeTensors(const StartSite &site,
                                         const ExternalCall &call,
                                         Transfer &transfer) {
  bool isNewSlot = ++turns[call.site] <= site.slots;
  int64_t count =
      impl.shards.of(site.layout, transfer.extent, transfer.owner).count;
  for (unsigned i = 0; i < site.numTensors; ++i) {
    TensorRef tensor = call.take<Tensor>(site.tensors + i);
    if (site.isOfGathered) {
      tensor = shardOfGathered(site, tensor, transfer.owner);
      if (!tensor)
        return false;
    }
    int64_t dim = site.dims[i];
    if (tensor->shape[dim] != count || !tensor->shards.empty()) {
      fail(site.op, "sends a tensor of " + Twine(tensor->shape[dim]) +
                        " positions as the shard of " + Twine(transfer.owner) +
                        ", which has " + Twine(count));
      return false;
    }
    // Others have the sizes of what is sent.
    if ((site.gathers || site.isOfGathered) &&
        !fitsReceived(site, transfer, i, *tensor))
      return false;
    if (isNewSlot) { // as large as the largest shard, or as all of them
      auto shape = tensor->shape;
      shape[dim] = site.gathers
                       ? transfer.extent
                       : impl.shards.largest(site.layout, transfer.extent);
      hold(shape, tensor->element);
    }
    transfer.tensors.push_back(std::move(tensor));
  }
  transfer.received.resize(site.numTensors);
  return true;
}

namespace {
/// Counts what a transfer brings until the last of its tensors is gone.
struct HeldSlice {
  HeldSlice(const GaugeRef &all, const GaugeRef &ofChannel)
      : all(all), ofChannel(ofChannel) {
    all->add(1);
    ofChannel->add(1);
  }
  ~HeldSlice() {
    all->add(-1);
    ofChannel->add(-1);
  }
  HeldSlice(const HeldSlice &) = delete;
  HeldSlice &operator=(const HeldSlice &) = delete;

  GaugeRef all, ofChannel;
};

/// Writes down when all that a transfer brings is gone.
struct TracedSlice {
  TracedSlice(std::shared_ptr<void> held, std::shared_ptr<Trace> trace,
              int64_t number)
      : held(std::move(held)), trace(std::move(trace)), number(number) {}
  ~TracedSlice() { trace->events.push_back(~number); }
  TracedSlice(const TracedSlice &) = delete;
  TracedSlice &operator=(const TracedSlice &) = delete;

  std::shared_ptr<void> held;
  std::shared_ptr<Trace> trace;
  int64_t number;
};
} // namespace

/// Writes down a start, and what it brings in the place of `held`, whether or
/// not it brings anything on this rank.
std::shared_ptr<void>
Simulation::Impl::Rank::traceSlice(const StartSite &site,
                                   const Transfer &transfer,
                                   std::shared_ptr<void> held) {
  Trace &trace = *impl.trace;
  auto number = static_cast<int64_t>(trace.starts.size());
  Trace::Start &start = trace.starts.emplace_back();
  start.site = &site;
  start.extent = transfer.extent;
  for (auto [tensor, dim] : llvm::zip_equal(transfer.tensors, transfer.dims))
    start.tensors.emplace_back(tensor->argument,
                               impl.positionBytes(*tensor, dim));
  start.isSlice = !transfer.partial();
  trace.events.push_back(number);
  return std::make_shared<TracedSlice>(std::move(held), impl.trace, number);
}

/// Starts a transfer whose peers, segments and tensors are known; what it
/// brings is held with the others that are `held`.
bool Simulation::Impl::Rank::begin(const StartSite &site, Transfer &transfer,
                                   const std::shared_ptr<void> &held) {
  if (transfer.receiveMask != 0 || impl.trace)
    transfer.slice = held;
  if (impl.listener)
    impl.listener->starts(transfer);
  std::string message;
  Held holds;
  if (!site.isAllToAll) { // of which all is for the program
    Impl::Gauges gauges = impl.gaugesOf(transfer, *site.channel);
    holds = {gauges.all->held, gauges.ofChannel->held};
  }
  if (!impl.semantics->start(transfer, holds, message)) {
    fail(site.op, message);
    return false;
  }
  transfer.sent = transfer.sendMask == 0;
  transfer.arrived = transfer.receiveMask == 0;
  if (transfer.isDone()) // It has nobody to meet.
    return true;
  if (impl.isAlone) {
    impl.takeAlone(transfer);
    return true;
  }
  (*site.channel)[index].push(transfer);
  return impl.advance(index, *site.channel);
}

/// Sends the own shard to the ranks ahead and takes those of the ranks behind,
/// by their distance.
bool Simulation::Impl::Rank::startGather(const StartSite &site,
                                         const ExternalCall &call,
                                         Transfer &gather) {
  if (gather.owner != place) {
    fail(site.op, "gathers the shard of " + Twine(gather.owner) +
                      " as that of this rank");
    return false;
  }
  // The own shard is copied by the flags, too.
  uint64_t own = impl.shards.of(site.layout, gather.extent, place).mask;
  uint64_t copied = own;
  if (!selectSegments(call, site.segments, place, /*turn=*/0, copied))
    return false;
  if (copied != own) {
    fail(site.op, "leaves out segments of the own shard, of which all flags "
                  "must be true");
    return false;
  }
  gather.sent = gather.arrived = true;
  // All that it brings is one slice, in one buffer.
  Impl::Gauges gauges = impl.gaugesOf(gather, *site.channel);
  auto held = std::make_shared<HeldSlice>(gauges.all, gauges.ofChannel);
  for (int64_t distance = 1; distance < parts; ++distance) {
    auto leg = std::make_shared<Transfer>(gather);
    leg->legs.clear();
    leg->to = burst_rank_ahead(place, distance, parts);
    leg->from = leg->receivedOwner = burst_rank_behind(place, distance, parts);
    gather.legs.push_back(leg);
    if (!describeTransfer(site, call, distance, *leg) ||
        !begin(site, *leg, held))
      return false;
  }
  return true;
}

/// What a gather has brought of tensor `index`.
TensorRef Simulation::Impl::Rank::gathered(const Transfer &gather,
                                           size_t index) {
  const TensorRef &own = gather.tensors[index];
  auto all = std::make_shared<Tensor>(own->shape, own->element);
  all->argument = own->argument;
  all->shape[gather.dims[index]] = gather.extent;
  all->shards.resize(parts);
  all->shards[gather.place] = own;
  for (const auto &leg : gather.legs) {
    TensorRef &received = leg->received[index];
    all->shards[leg->receivedOwner] =
        received ? std::move(received) : leg->makeReceived(index);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// All-to-alls
//===----------------------------------------------------------------------===//

bool burst::doHeadsMeet(ExchangedHeads queries, ExchangedHeads keys,
                        int64_t members) {
  if (queries.all <= 0 || keys.all <= 0)
    return true; // there are none, or it is unknown how many
  if (queries.ofRank <= 0 || keys.ofRank <= 0 || queries.all % keys.all != 0 ||
      queries.ofRank % keys.ofRank != 0)
    return false;
  int64_t shareOne = queries.all / keys.all;
  int64_t meetOne = queries.ofRank / keys.ofRank;
  for (int64_t place = 0; place < members; ++place) {
    burst_heads own = burst_heads_of(place, members, queries.all,
                                     queries.ofRank, queries.groups);
    burst_heads met =
        burst_heads_of(place, members, keys.all, keys.ofRank, keys.groups);
    for (int64_t head = 0; head < own.count; ++head)
      if (head / meetOne >= met.count ||
          met.first + head / meetOne != (own.first + head) / shareOne)
        return false;
  }
  return true;
}

burst_heads burst::headsInBetween(ring::TransferOpInterface start,
                                  const Tensor &sent, const Tensor &received,
                                  int64_t place) {
  // Those of a rank in between are never more than all of them.
  auto [most, all] = std::minmax(sent.shape[sent.headsDim()],
                                 received.shape[received.headsDim()]);
  return burst_heads_of(place, static_cast<int64_t>(start.getMembers()), all,
                        most, static_cast<int64_t>(start.getGroups()));
}

/// Whether what is brought of tensor `index` is no result yet.
static bool isRounded(ring::TransferOpInterface start, unsigned index) {
  return llvm::any_of(start.getToken().getUsers(), [&](Operation *user) {
    auto wait = dyn_cast<ring::WaitOp>(user);
    return wait && llvm::any_of(wait.getTensors()[index].getUsers(),
                                llvm::IsaPred<ring::RoundOp>);
  });
}

/// What an all-to-all brings of tensor `index`, which it takes; null where that
/// is not what it says.
TensorRef Simulation::Impl::Rank::exchanged(const StartSite &site,
                                            const ExternalCall &call,
                                            unsigned index, Transfer &all) {
  ring::TransferOpInterface op = site.op;
  bool toHeads = op.getRoute() == ring::Route::ToHeads;
  TensorRef tensor = call.take<Tensor>(site.tensors + index);
  int64_t dim = site.dims[index];
  int64_t count = all.layout.count(all.owner, all.extent);
  if (tensor->shape[dim] != count || !tensor->shards.empty()) {
    fail(op, "sends a tensor of " + Twine(tensor->shape[dim]) +
                 " positions as the shard of " + Twine(all.owner) +
                 ", which has " + Twine(count));
    return nullptr;
  }
  Layout layout = op.getReceivedLayout().getValue();
  auto type = cast<RankedTensorType>(op.getToken().getType().getTypes()[index]);
  auto shape = tensor->shape;
  // Those of both sides are static where a program was verified.
  int64_t &heads = shape[ring::headsDimOf(type)];
  int64_t said = type.getDimSize(ring::headsDimOf(type));
  if (ShapedType::isDynamic(said) || heads == 0) {
    fail(op,
         "exchanges " + Twine(heads) + " heads, its type says " + Twine(said));
    return nullptr;
  }
  heads = said;
  int64_t rows = layout.count(all.receivedOwner, all.extent);
  // A slot is as large as the largest shard, a result as that of this rank.
  bool isSlot = toHeads || isRounded(op, index);
  shape[dim] = isSlot ? layout.largest(all.extent) : rows;
  hold(shape, tensor->element);
  shape[dim] = rows;
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (!ShapedType::isDynamic(size) && size != shape[d]) {
      fail(op, "receives tensor " + Twine(index) + " of " + Twine(shape[d]) +
                   " positions along dimension " + Twine(d) +
                   ", its type says " + Twine(size));
      return nullptr;
    }
  auto received = std::make_shared<Tensor>(shape, tensor->element);
  received->argument = tensor->argument;
  received->owner = all.receivedOwner;
  received->sharding = {layout, dim, all.extent};
  if (!toHeads)
    received->inside = tensor;
  all.tensors.push_back(std::move(tensor));
  return received;
}

/// What goes to the rank so far ahead, and comes from the one behind: of a
/// shard, its part of the heads; of the heads, its shard.
TransferRef Simulation::Impl::Rank::makeLeg(const StartSite &site,
                                            const Transfer &all,
                                            int64_t distance) {
  ring::TransferOpInterface op = site.op;
  auto members = static_cast<int64_t>(op.getMembers());
  bool toHeads = op.getRoute() == ring::Route::ToHeads;
  int64_t to = burst_rank_ahead(all.place, distance, members);
  int64_t from = burst_rank_behind(all.place, distance, members);
  auto leg = std::make_shared<Transfer>(all);
  leg->legs.clear();
  leg->to = site.group.member(index, to);
  leg->from = site.group.member(index, from);
  // The positions of the shard of a member; of what comes, the sender's or own.
  int64_t first = impl.sharding.whole.placeOf(index) - all.place;
  auto countOf = [&](int64_t place) {
    return site.layout.count(first + place, all.extent);
  };
  // Of the tensors, the heads of the rank that has them in between.
  auto bytesOf = [&](const Tensor &tensor, const Tensor &other, int64_t dim,
                     int64_t place) {
    int64_t heads = headsInBetween(op, tensor, other, place).count;
    return impl.positionBytes(tensor, dim) / tensor.shape[tensor.headsDim()] *
           heads;
  };
  bool hasHeads = false;
  for (auto [tensor, received, dim] :
       llvm::zip_equal(all.tensors, all.received, all.dims)) {
    leg->legBytes.push_back(
        bytesOf(*tensor, *received, dim, toHeads ? to : all.place) *
        countOf(toHeads ? all.place : to));
    hasHeads |=
        received->size() != 0 &&
        bytesOf(*received, *tensor, dim, toHeads ? all.place : from) != 0;
  }
  for (auto [s, segment] :
       llvm::enumerate(all.layout.segments(all.owner, all.extent)))
    leg->sendMask |= static_cast<uint64_t>(segment.count != 0) << s;
  if (llvm::all_of(leg->legBytes, [](int64_t bytes) { return bytes == 0; }))
    leg->sendMask = 0;
  bool comes = countOf(toHeads ? from : all.place) != 0 && hasHeads;
  leg->receiveMask = comes ? 1 : 0;
  return leg;
}

/// Sends each rank its part of what this one has, by their distance.
bool Simulation::Impl::Rank::startAllToAll(const StartSite &site,
                                           const ExternalCall &call,
                                           Transfer &all) {
  ring::TransferOpInterface op = site.op;
  describeSite(site, call, all);
  int64_t own = impl.sharding.whole.placeOf(index);
  if (!isOnGrid(op, op.getChannel().getGrid().getValue()))
    return false;
  if (all.owner != own) {
    fail(op, "exchanges the shard of " + Twine(all.owner) +
                 " as that of rank " + Twine(own));
    return false;
  }
  auto members = static_cast<int64_t>(op.getMembers());
  bool toHeads = op.getRoute() == ring::Route::ToHeads;
  all.layout = op.getSentLayout().getValue();
  all.owner = toHeads ? own : own / members;
  all.receivedOwner = toHeads ? own / members : own;
  for (unsigned i = 0; i < site.numTensors; ++i) {
    all.received.push_back(exchanged(site, call, i, all));
    if (!all.received.back())
      return false;
  }
  for (size_t i = 0; i < all.tensors.size(); ++i)
    impl.semantics->exchange(all, all, i);
  for (int64_t distance = 1; distance < members; ++distance) {
    all.legs.push_back(makeLeg(site, all, distance));
    if (!begin(site, *all.legs.back(), /*held=*/nullptr))
      return false;
  }
  all.sent = all.arrived = true; // but for the legs
  return true;
}

Step Simulation::Impl::Rank::runStart(ring::TransferOpInterface op,
                                      const ExternalCall &call) {
  const StartSite &site = impl.siteOf(op, call);
  auto shared = std::make_shared<Transfer>();
  Transfer &transfer = *shared;
  if (site.isAllToAll) {
    ++impl.traffic[index].hops;
    open.push_back(shared);
    call.give(0, shared);
    return startAllToAll(site, call, transfer) ? Step::Done : Step::Failed;
  }
  if (!describeStart(site, call, transfer))
    return Step::Failed;
  if (!site.gathers) {
    transfer.to = call.index(site.to);
    transfer.from = call.index(site.from);
    transfer.receivedOwner = call.index(site.receivedOwner);
    if (!describeTransfer(
            site, call,
            site.segments.turn ? call.index(*site.segments.turn) : 0, transfer))
      return Step::Failed;
  }
  if (!takeTensors(site, call, transfer))
    return Step::Failed;
  ++impl.traffic[index].hops;
  open.push_back(shared);
  call.give(0, std::move(shared));
  if (site.gathers)
    return startGather(site, call, transfer) ? Step::Done : Step::Failed;
  std::shared_ptr<void> held;
  if (transfer.receiveMask != 0) {
    Impl::Gauges gauges = impl.gaugesOf(transfer, *site.channel);
    held = std::make_shared<HeldSlice>(gauges.all, gauges.ofChannel);
  }
  if (impl.trace)
    held = traceSlice(site, transfer, std::move(held));
  return begin(site, transfer, held) ? Step::Done : Step::Failed;
}

Step Simulation::Impl::Rank::runWait(ring::WaitOp op,
                                     const ExternalCall &call) {
  auto *transfer = call.peek<Transfer>(0);
  if (!transfer || transfer->waited)
    return fail(op, "waits again for a transfer that it has waited for");
  if (transfer->rank != index)
    return fail(op, "waits for a transfer of another rank");
  if (!transfer->isDone())
    return Step::Blocked;
  transfer->waited = true;
  if (impl.listener)
    impl.listener->waits(*transfer);
  bool isGather = transfer->start.isGather();
  if (transfer->start.getRoute() == ring::Route::Shift)
    impl.semantics->wait(*transfer);
  for (const auto &leg : transfer->legs)
    impl.semantics->wait(*leg);
  for (auto [i, received] : llvm::enumerate(transfer->received)) {
    if (isGather)
      received = gathered(*transfer, i);
    if (!received) // Nothing of it was sent.
      received = transfer->makeReceived(i);
    call.give(i, std::move(received));
  }
  // What was sent may be reused, what was received is the program's now.
  transfer->tensors.clear();
  transfer->received.clear();
  transfer->slice.reset();
  transfer->legs.clear();
  open.erase(llvm::find_if(
      open, [&](const auto &other) { return other.get() == transfer; }));
  ++hop;
  return Step::Done;
}
