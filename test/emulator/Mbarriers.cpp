//===- Mbarriers.cpp - mbarrier, fence.proxy, setmaxnreg ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The eight bytes of a mbarrier are memory: its init writes them, and all else
// is an atomic access, so that a use that does not follow the init is a race.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Decode.h"

#include <fmt/format.h>

namespace burst::emulator {

namespace {

/// The barrier that a lane names, or null after a failure.
Mbarrier *barrierOf(Warp &warp, unsigned lane, uint64_t address) {
  Machine &machine = warp.machine;
  if (machine.failed ||
      !machine.access(warp, lane,
                      {Space::Shared, address, 8, AccessKind::Atomic}))
    return nullptr;
  auto found = warp.block.mbarriers.find(uint32_t(address));
  if (found != warp.block.mbarriers.end())
    return &found->second;
  machine.fail(FailureKind::Protocol, warp, lane,
               "there is no mbarrier at this address");
  return nullptr;
}

void initialise(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t address = addressIn(warp, i, lane);
    if (machine.failed ||
        !machine.access(warp, lane,
                        {Space::Shared, address, 8, AccessKind::Write}))
      return;
    auto [found, isNew] = warp.block.mbarriers.try_emplace(uint32_t(address));
    auto index = uint32_t(warp.block.mbarriers.size() - 1);
    if (!isNew || index >= Machine::mbarrierLimit) {
      machine.fail(FailureKind::Protocol, warp, lane,
                   isNew ? "more mbarriers than the machine has"
                         : "a mbarrier is initialised twice");
      return;
    }
    Mbarrier &barrier = found->second;
    barrier.count = barrier.pending = warp.at<uint32_t>(i.b)[lane];
    barrier.agent = uint16_t(machine.mbarrierAgent(index));
  });
}

enum : uint8_t { announces = 2, arrives = 4, waits = 8 };

void arrive(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  Block &block = warp.block;
  forEachLane(lanes, [&](unsigned lane) {
    Mbarrier *barrier = barrierOf(warp, lane, addressIn(warp, i, lane));
    if (!barrier)
      return;
    if (i.flags & announces)
      barrier->bytes += warp.at<uint32_t>(i.b)[lane];
    if (!(i.flags & arrives))
      return;
    uint32_t count = i.c == none ? 1 : warp.at<uint32_t>(i.c)[lane];
    if (count > barrier->pending) {
      machine.fail(FailureKind::Protocol, warp, lane,
                   fmt::format("{} arrivals at a mbarrier whose phase lacks {}",
                               count, barrier->pending));
      return;
    }
    uint32_t thread = warp.thread(lane);
    Clock &clock = block.threads[thread].clock;
    barrier->accumulated.join(clock, block.index, block.index);
    ++clock.own[thread];
    barrier->pending -= count;
    machine.complete(block, *barrier);
  });
}

void wait(Warp &warp, const Instruction &i, Lanes lanes) {
  Lanes done = 0, missing = 0;
  Block &block = warp.block;
  forEachLane(lanes, [&](unsigned lane) {
    Mbarrier *barrier = barrierOf(warp, lane, addressIn(warp, i, lane));
    if (!barrier)
      return;
    if ((barrier->phase & 1) != (warp.at<uint32_t>(i.b)[lane] & 1)) {
      done |= 1U << lane;
      block.threads[warp.thread(lane)].clock.join(barrier->released,
                                                  block.index, block.index);
    } else if (i.flags & waits) {
      missing |= 1U << lane;
      barrier->waiting.emplace_back(&warp, 1U << lane);
    }
  });
  Lanes &to = warp.predicate(i.d);
  to = (to & ~lanes) | done;
  if (!missing || warp.machine.failed)
    return;
  // What try_wait may do: it comes back when the phase has ended, and looks
  // again.
  uint32_t here = warp.currentPc();
  warp.park(missing);
  forEachLane(missing, [&](unsigned lane) { warp.lanePc[lane] = here; });
}

bool mbarrier(Decoder &d) {
  Instruction &i = d.instruction;
  d.take("cta");
  if ((!d.take("shared") && !d.take("shared::cta")) || !d.take("b64"))
    return false;
  if (d.take("init")) {
    d.address(0);
    i.b = d.source(1, Type::U32);
    i.run = &initialise;
    return d.operandCount() == 2;
  }
  bool test = d.take("test_wait");
  if (test || d.take("try_wait")) {
    if (!d.take("parity"))
      return false;
    d.take("acquire");
    i.flags = test ? 0 : waits;
    i.d = d.destination(0, Type::Pred);
    d.address(1);
    i.b = d.source(2, Type::U32);
    i.run = &wait;
    return d.operandCount() == 3 || (!test && d.operandCount() == 4);
  }
  bool arrival = d.take("arrive"), bytes = d.take("expect_tx");
  if (!arrival && !bytes)
    return false;
  d.takeOneOf({"release", "relaxed"});
  size_t first = arrival ? 1 : 0;
  if (arrival && d.operand(0).kind != ptx::Operand::Kind::Sink)
    return false; // the state of a phase is for waits without a parity
  i.flags = uint8_t((arrival ? arrives : 0) | (bytes ? announces : 0));
  d.address(first);
  if (bytes)
    i.b = d.source(first + 1, Type::U32);
  else if (d.operandCount() == 3)
    i.c = d.source(2, Type::U32);
  i.run = &arrive;
  return d.operandCount() == first + 1 + bytes ||
         (!bytes && d.operandCount() == 3);
}

bool setmaxnreg(Decoder &d) {
  d.instruction.run = [](Warp &warp, const Instruction &, Lanes lanes) {
    warp.gatherAll(lanes);
  };
  return (d.take("inc") || d.take("dec")) && d.take("sync") &&
         d.take("aligned") && d.take("u32") && d.constant(0) &&
         d.operandCount() == 1;
}

} // namespace

bool decodeProxyFence(Decoder &d) {
  d.instruction.run = [](Warp &warp, const Instruction &, Lanes lanes) {
    forEachLane(lanes, [&](unsigned lane) {
      uint32_t index = warp.thread(lane);
      Thread &thread = warp.block.threads[index];
      thread.proxyFences.push_back(thread.clock.own[index]++);
    });
  };
  d.setOpcode("fence.proxy");
  if (!d.take("async"))
    return false;
  d.takeOneOf({"shared::cta", "global", "shared::cluster"});
  return d.operandCount() == 0;
}

void Machine::complete(Block &block, Mbarrier &barrier) {
  if (barrier.pending || barrier.bytes)
    return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.released.assign(barrier.accumulated);
  auto waiting = std::move(barrier.waiting);
  barrier.waiting.clear();
  for (auto [warp, lanes] : waiting)
    warp->unblock(lanes);
}

bool Machine::isFenced(const Block &block, const Epoch &write,
                       const Clock &clock) {
  if (write.mask == 0 || write.agent >= block.threads.size())
    return true; // not written by a thread
  const std::vector<uint32_t> &fences = block.threads[write.agent].proxyFences;
  auto fence = std::lower_bound(fences.begin(), fences.end(), write.clock);
  return fence != fences.end() && *fence <= clock.own[write.agent];
}

void addMbarriers(Table &table) {
  table["mbarrier"] = &mbarrier;
  table["setmaxnreg"] = &setmaxnreg;
}

} // namespace burst::emulator
