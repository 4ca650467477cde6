//===- Copies.cpp - cp.async ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy reads and writes as an agent of its own, at an unknown time between
// its issue and the wait that covers its group: of the issuing thread it
// follows what comes before the issue, and nothing but the wait follows it.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Decode.h"

namespace burst::emulator {

namespace {

enum : uint8_t { wideTarget = 1, wideSource = 2, ignoresSource = 4 };

void copy(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  Block &block = warp.block;
  std::array<uint32_t, 32> addresses{};
  forEachLane(lanes, [&](unsigned lane) {
    if (machine.failed)
      return;
    uint32_t index = warp.thread(lane);
    Thread &thread = block.threads[index];
    uint64_t to = (i.flags & wideTarget ? warp.at<uint64_t>(i.a)[lane]
                                        : warp.at<uint32_t>(i.a)[lane]) +
                  uint64_t(i.value),
             from = (i.flags & wideSource ? warp.at<uint64_t>(i.b)[lane]
                                          : warp.at<uint32_t>(i.b)[lane]) +
                    uint64_t(int64_t(int32_t(i.list[0])));
    addresses[lane] = uint32_t(to);
    uint32_t taken = i.bytes;
    if (i.flags & ignoresSource)
      taken = warp.predicate(i.c) >> lane & 1 ? 0 : taken;
    else if (i.c != none)
      taken = warp.at<uint32_t>(i.c)[lane];
    if (taken > i.bytes) {
      machine.fail(FailureKind::Protocol, warp, lane,
                   "copies more bytes than it writes");
      return;
    }
    Epoch epoch{block.index,
                uint16_t(machine.copyAgent(index)),
                0,
                AccessKind::Read,
                thread.copies.done + uint32_t(thread.copies.groups.size()),
                warp.currentPc()};
    Copy copy;
    copy.bytes = i.bytes;
    copy.taken = uint8_t(taken);
    Memory::Buffer *buffer;
    if (taken) {
      Access read{Space::Global, from, taken, AccessKind::Read, i.bytes};
      copy.from = machine.resolve(warp, lane, read, buffer);
      if (!copy.from ||
          !machine.check(warp, lane, read, buffer, epoch, thread.clock))
        return;
    }
    Access write{Space::Shared, to, i.bytes, AccessKind::Write};
    copy.to = machine.resolve(warp, lane, write, buffer);
    if (!copy.to ||
        !machine.check(warp, lane, write, buffer, epoch, thread.clock))
      return;
    std::vector<Copy> &open = thread.copies.groups.back();
    Lateness lateness = machine.options.lateness;
    bool now = lateness == Lateness::Early;
    if (lateness == Lateness::Random) {
      now = machine.random() % 4 == 0;
      if (!open.empty() &&
          machine.random() % 4 == 0) { // one of those before lands
        std::swap(open[machine.random() % open.size()], open.back());
        open.back().land();
        open.pop_back();
      }
    }
    if (now)
      copy.land();
    else
      open.push_back(copy);
  });
  if (!machine.failed)
    machine.countBanks(warp, lanes, addresses, i.bytes);
}

void commit(Warp &warp, const Instruction &, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    warp.block.threads[warp.thread(lane)].copies.groups.emplace_back();
  });
}

void wait(Warp &warp, const Instruction &i, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    warp.machine.waitForCopies(warp, lane, size_t(i.value));
  });
}

void waitAll(Warp &warp, const Instruction &i, Lanes lanes) {
  commit(warp, i, lanes);
  wait(warp, i, lanes);
}

bool cp(Decoder &d) {
  Instruction &i = d.instruction;
  if (!d.take("async"))
    return false;
  if (d.take("bulk"))
    return decodeBulkCopy(d);
  if (d.take("commit_group")) {
    d.setOpcode("cp.async.commit_group");
    i.run = &commit;
    return d.operandCount() == 0;
  }
  if (d.take("wait_group")) {
    d.setOpcode("cp.async.wait_group");
    i.run = &wait;
    auto pending = d.constant(0);
    i.value = pending.value_or(0);
    return pending && *pending >= 0 && d.operandCount() == 1;
  }
  if (d.take("wait_all")) {
    d.setOpcode("cp.async.wait_all");
    i.run = &waitAll;
    return d.operandCount() == 0;
  }
  d.setOpcode("cp.async");
  bool all = d.take("cg"); // past L1, for 16 bytes alone
  if (!all && !d.take("ca"))
    return false;
  if ((!d.take("shared") && !d.take("shared::cta")) || !d.take("global"))
    return false;
  d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
  auto bytes = d.constant(2);
  if (!bytes || (*bytes != 16 && (all || (*bytes != 4 && *bytes != 8))) ||
      d.operandCount() > 4)
    return false;
  i.bytes = uint8_t(*bytes);
  Decoder::Address to = d.address(d.operand(0)), from = d.address(d.operand(1));
  i.a = to.base;
  i.value = to.offset;
  i.b = from.base;
  i.list.push_back(uint32_t(from.offset));
  i.flags =
      uint8_t((to.isWide ? wideTarget : 0) | (from.isWide ? wideSource : 0));
  if (d.operandCount() == 4) {
    bool ignores = d.isPredicate(d.operand(3));
    i.c = d.source(3, ignores ? Type::Pred : Type::U32);
    i.flags |= ignores ? ignoresSource : 0;
  }
  i.run = &copy;
  return true;
}

} // namespace

void Machine::waitForCopies(Warp &warp, unsigned lane, size_t pending) {
  uint32_t index = warp.thread(lane);
  Thread &thread = warp.block.threads[index];
  Copies &copies = thread.copies;
  while (copies.groups.size() > pending + 1) {
    for (Copy &copy : copies.groups.front())
      copy.land();
    copies.groups.pop_front();
    ++copies.done;
  }
  thread.clock.own[copyAgent(index)] = copies.done;
}

void addCopies(Table &table) { table["cp"] = &cp; }

} // namespace burst::emulator
