//===- RankTransfers.cpp - the transfers of a rank ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Buffers/Slots.h"
#include "passes/Simulation/Ranks.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace burst;

std::optional<Made> Transfer::share() const {
  int number = tensors.front()->argument;
  if (number >= -1)
    return std::nullopt;
  Made made = whatIsMade(number).second;
  switch (made) {
  case Made::Delta:
  case Made::Out:
  case Made::Lse:
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
  if (!share())
    return TransferKind::Slice;
  return receivedOwner == rank ? TransferKind::Home : TransferKind::Onward;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// A transfer that a loop carries into its first turn has the buffer of that of
/// the loop.
static int64_t slotsOf(ring::StartOp start) {
  if (llvm::any_of(start.getToken().getUsers(), llvm::IsaPred<scf::ForOp>))
    return 0;
  return numSlots(start);
}

const StartSite &Simulation::Impl::siteOf(ring::StartOp op,
                                          const ExternalCall &call) {
  std::unique_ptr<const StartSite> &known = sites[call.site].start;
  if (known)
    return *known;
  auto site = std::make_unique<StartSite>(op);
  site->deal = op.getLayout().getDeal();
  site->dims = op.getDims();
  site->channel = &channels[op.getChannel().getIndex()];
  site->channel->resize(parts);
  auto grid = function->getAttrOfType<FlatSymbolRefAttr>(ring::gridAttr);
  site->isOnGrid = op.getChannel().getGrid().getValue() == grid.getValue();
  site->slots = slotsOf(op);
  site->tensors = op.getTensors().size();
  site->owner = op.getOwnerMutable().getOperandNumber();
  site->extent = op.getExtentMutable().getOperandNumber();
  site->to = op.getToMutable().getOperandNumber();
  site->receivedOwner = op.getReceivedOwnerMutable().getOperandNumber();
  site->from = op.getFromMutable().getOperandNumber();
  known = std::move(site);
  return *known;
}

/// Peers, owners and segments. False where they are none.
bool Simulation::Impl::Rank::describeTransfer(const StartSite &site,
                                              const ExternalCall &call,
                                              Transfer &transfer) {
  ring::StartOp op = site.op;
  transfer.op = op;
  transfer.start = op;
  transfer.rank = index;
  transfer.hop = hop;
  transfer.deal = site.deal;
  transfer.dims = site.dims;
  transfer.owner = call.index(site.owner);
  transfer.extent = call.index(site.extent);
  transfer.to = call.index(site.to);
  transfer.from = call.index(site.from);
  transfer.receivedOwner = call.index(site.receivedOwner);
  if (!isRank(op, "owner", transfer.owner) ||
      !isRank(op, "target", transfer.to) ||
      !isRank(op, "source", transfer.from) ||
      !isRank(op, "owner of what is received", transfer.receivedOwner) ||
      !(site.isOnGrid || isOnGrid(op, op.getChannel().getGrid().getValue())))
    return false;
  const Share &own = impl.shares.of(site.deal, transfer.extent, transfer.owner);
  transfer.sendMask = own.mask;
  if (!selectSegments(call, site.segments, transfer.owner, transfer.sendMask))
    return false;
  transfer.sentCount = own.countOf(transfer.sendMask);
  const Share &other =
      impl.shares.of(site.deal, transfer.extent, transfer.receivedOwner);
  transfer.receiveMask = other.mask;
  if (!selectSegments(call, site.segments, transfer.receivedOwner,
                      transfer.receiveMask))
    return false;
  transfer.receivedCount = other.countOf(transfer.receiveMask);
  transfer.shardCount = other.count;
  return true;
}

/// What is sent, and the memory for what is received.
bool Simulation::Impl::Rank::takeTensors(const StartSite &site,
                                         const ExternalCall &call,
                                         Transfer &transfer) {
  bool isNewSlot = ++turns[call.site] <= site.slots;
  int64_t count =
      impl.shares.of(site.deal, transfer.extent, transfer.owner).count;
  for (unsigned i = 0; i < site.tensors; ++i) {
    const Tensor &tensor = *call.peek<Tensor>(i);
    int64_t dim = site.dims[i];
    if (tensor.shape[dim] != count) {
      fail(site.op, "sends a tensor of " + Twine(tensor.shape[dim]) +
                        " positions as the shard of " + Twine(transfer.owner) +
                        ", which has " + Twine(count));
      return false;
    }
    if (isNewSlot) { // as large as the largest shard
      auto shape = tensor.shape;
      shape[dim] = impl.shares.largest(site.deal, transfer.extent);
      hold(shape, tensor.element);
    }
    transfer.tensors.push_back(call.take<Tensor>(i));
  }
  transfer.received.resize(site.tensors);
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
} // namespace

Step Simulation::Impl::Rank::runStart(ring::StartOp op,
                                      const ExternalCall &call) {
  const StartSite &site = impl.siteOf(op, call);
  auto shared = std::make_shared<Transfer>();
  Transfer &transfer = *shared;
  if (!describeTransfer(site, call, transfer) ||
      !takeTensors(site, call, transfer))
    return Step::Failed;
  Impl::Gauges gauges = impl.gaugesOf(transfer, *site.channel);
  if (transfer.receiveMask != 0)
    transfer.slice = std::make_shared<HeldSlice>(gauges.all, gauges.ofChannel);
  ++impl.traffic[index].hops;
  open.push_back(shared);
  call.give(0, std::move(shared));
  if (impl.listener)
    impl.listener->starts(transfer);
  std::string message;
  if (!impl.semantics->start(
          transfer, {gauges.all->held, gauges.ofChannel->held}, message))
    return fail(op, message);
  transfer.sent = transfer.sendMask == 0;
  transfer.arrived = transfer.receiveMask == 0;
  if (transfer.isDone()) // It has nobody to meet.
    return Step::Done;
  (*site.channel)[index].push(transfer);
  return impl.advance(index, *site.channel) ? Step::Done : Step::Failed;
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
  impl.semantics->wait(*transfer);
  for (auto [i, received] : llvm::enumerate(transfer->received)) {
    if (!received) // Nothing of it was sent.
      received = transfer->makeReceived(i);
    call.give(i, std::move(received));
  }
  // What was sent may be reused, what was received is the program's now.
  transfer->tensors.clear();
  transfer->received.clear();
  transfer->slice.reset();
  open.erase(llvm::find_if(
      open, [&](const auto &other) { return other.get() == transfer; }));
  ++hop;
  return Step::Done;
}

Step Simulation::Impl::Rank::runExchange(ring::ExchangeOp op,
                                         const ExternalCall &call) {
  if (!exchange && !startExchange(op, call))
    return Step::Failed;
  if (!exchange->isDone())
    return Step::Blocked;
  call.give(0, exchange->received.front());
  exchange.reset();
  ++hop;
  return Step::Done;
}

bool Simulation::Impl::Rank::startExchange(ring::ExchangeOp op,
                                           const ExternalCall &call) {
  auto refuse = [&](const Twine &message) {
    fail(op, message);
    return false;
  };
  if (!isOnGrid(op, op.getChannel().getGrid().getValue()))
    return false;
  if (call.index(1) != index)
    return refuse("takes part as rank " + Twine(call.index(1)));
  TensorRef input = call.share<Tensor>(0);
  ring::ShardAttr source = op.getSource(), target = op.getTarget();
  Deal from = source.getLayout().getDeal(), to = target.getLayout().getDeal();
  int64_t held = from.count(index, source.getExtent());
  if (input->shape[source.getDim()] != held)
    return refuse("gives a shard of " + Twine(input->shape[source.getDim()]) +
                  " positions, its layout says " + Twine(held));
  auto shape = input->shape;
  shape[source.getDim()] = source.getExtent();
  if (shape[target.getDim()] != target.getExtent())
    return refuse("deals " + Twine(target.getExtent()) +
                  " positions anew, there are " +
                  Twine(shape[target.getDim()]));
  shape[target.getDim()] = to.count(index, target.getExtent());
  auto output = std::make_shared<Tensor>(shape, input->element);
  hold(*output);
  output->argument = input->argument;
  output->owner = index;
  output->sharding = {to, target.getDim(), target.getExtent()};
  exchange = std::make_shared<Transfer>();
  exchange->op = op;
  exchange->rank = exchange->owner = index;
  exchange->hop = hop;
  exchange->extent = source.getExtent();
  exchange->sendMask = impl.shares.of(from, source.getExtent(), index).mask;
  exchange->received.push_back(std::move(output));
  exchange->tensors.push_back(std::move(input));
  ++impl.traffic[index].hops;
  Channel &channel = impl.channels[op.getChannel().getIndex()];
  channel.resize(impl.parts);
  Impl::Gauges gauges = impl.gaugesOf(*exchange, channel);
  std::string message;
  if (!impl.semantics->start(
          *exchange, {gauges.all->held, gauges.ofChannel->held}, message))
    return refuse(message);
  channel[index].push(*exchange);
  return impl.advance(index, channel);
}
