//===- BulkCopies.cpp - cp.async.bulk -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A bulk copy to shared memory writes as the agent of its mbarrier and lands
// when nothing else can run (or earlier, as Options::lateness says); copies to
// one mbarrier land in order. One from shared memory moves at the wait for its
// group.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Decode.h"

#include <fmt/format.h>

namespace burst::emulator {

namespace {

enum : uint8_t { toShared = 1, isTensor = 2 };

uint64_t valueOf(Warp &warp, uint32_t offset, bool isWide, unsigned lane) {
  return isWide ? warp.at<uint64_t>(offset)[lane]
                : warp.at<uint32_t>(offset)[lane];
}

/// One copy of one thread, while it is taken apart.
struct Transfer {
  Warp &warp;
  unsigned lane;
  bool loads;
  Epoch epoch;
  const Clock &clock;
  std::vector<Copy> parts = {};
  // A box has the size of its map: what lies behind the rows that are wanted
  // comes along, whether anyone wrote it or not. As numbers it is NaNs, which
  // show in a result that uses them.
  bool ofBox = false;

  /// Adds bytes between global and shared memory; 0 of them are in the tensor:
  /// then a load writes zeros.
  bool add(uint64_t global, uint64_t shared, uint32_t bytes, uint32_t taken) {
    Machine &machine = warp.machine;
    Memory::Buffer *buffer;
    const uint8_t *data = nullptr;
    if (taken) {
      Access access{Space::Global, global, taken,
                    loads ? AccessKind::Read : AccessKind::Write, 1};
      access.takesAnything = loads && ofBox;
      data = machine.resolve(warp, lane, access, buffer);
      if (!data || !machine.check(warp, lane, access, buffer, epoch, clock))
        return false;
    }
    if (!loads && !taken)
      return true;
    Access access{Space::Shared,
                  shared,
                  loads ? bytes : taken,
                  loads ? AccessKind::Write : AccessKind::Read,
                  1,
                  true};
    uint8_t *at = machine.resolve(warp, lane, access, buffer);
    if (!at || !machine.check(warp, lane, access, buffer, epoch, clock))
      return false;
    Copy copy;
    copy.from = loads ? data : at;
    copy.to = loads ? at : const_cast<uint8_t *>(data);
    copy.bytes = uint8_t(loads ? bytes : taken);
    copy.taken = uint8_t(taken);
    parts.push_back(copy);
    return true;
  }

  bool addRange(uint64_t global, uint64_t shared, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += 16)
      if (!add(global + at, shared + at, 16, 16))
        return false;
    return true;
  }

  bool addBox(const TensorMap &map, const std::array<int64_t, 5> &start,
              uint64_t shared) {
    ofBox = true;
    const uint32_t element = map.elementBytes, rowBytes = map.box[0] * element;
    uint64_t rows = 1;
    for (unsigned d = 1; d < map.rank; ++d)
      rows *= map.box[d];
    for (uint64_t row = 0; row < rows; ++row) {
      uint64_t rest = row, global = map.address;
      bool inside = true;
      for (unsigned d = 1; d < map.rank; ++d) {
        int64_t at = start[d] + int64_t(rest % map.box[d]);
        rest /= map.box[d];
        inside &= at >= 0 && at < int64_t(map.sizes[d]);
        global += uint64_t(at) * map.strides[d - 1];
      }
      for (uint32_t unit = 0; unit < rowBytes; unit += 16) {
        uint64_t to = shared + row * rowBytes + unit;
        to ^= map.swizzle ? to >> 3 & (0x10U << map.swizzle) - 0x10U : 0;
        int64_t first = start[0] + int64_t(unit / element),
                count = 16 / element;
        auto within = [&](int64_t at) {
          return inside && at >= 0 && at < int64_t(map.sizes[0]);
        };
        if (within(first) == within(first + count - 1)) {
          if (!add(global + uint64_t(first) * element, to, 16,
                   within(first) ? 16 : 0))
            return false;
          continue;
        }
        for (int64_t e = 0; e < count; ++e)
          if (!add(global + uint64_t(first + e) * element,
                   to + uint64_t(e) * element, element,
                   within(first + e) ? element : 0))
            return false;
      }
    }
    return true;
  }
};

void copyBulk(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  Block &block = warp.block;
  bool loads = i.flags & toShared;
  // list: the offsets of the address in a and in b, whether those registers
  // have 64 bits, the register of the mbarrier; then the coordinates.
  forEachLane(lanes, [&](unsigned lane) {
    if (machine.failed)
      return;
    uint32_t index = warp.thread(lane);
    Thread &thread = block.threads[index];
    uint64_t shared = valueOf(warp, i.a, i.list[0], lane) + uint64_t(i.value),
             global = valueOf(warp, i.b, i.list[1], lane);
    Mbarrier *barrier = nullptr;
    uint32_t barrierAddress = 0;
    if (loads) {
      barrierAddress = uint32_t(valueOf(warp, i.c, i.list[2], lane));
      auto found = block.mbarriers.find(barrierAddress);
      if (!machine.access(
              warp, lane,
              {Space::Shared, barrierAddress, 8, AccessKind::Atomic}))
        return;
      if (found == block.mbarriers.end()) {
        machine.fail(FailureKind::Protocol, warp, lane,
                     "there is no mbarrier at this address");
        return;
      }
      barrier = &found->second;
    }
    Transfer transfer{
        warp, lane, loads,
        Epoch{block.index,
              uint16_t(loads ? barrier->agent : machine.bulkAgent(index)), 0,
              AccessKind::Read,
              loads ? barrier->issued + 1
                    : thread.bulkStores.done +
                          uint32_t(thread.bulkStores.groups.size()),
              warp.currentPc()},
        thread.clock};
    uint32_t bytes = 0;
    if (i.flags & isTensor) {
      Access access{Space::Generic, global, sizeof(TensorMap), AccessKind::Read,
                    64};
      Memory::Buffer *buffer;
      const uint8_t *data = machine.resolve(warp, lane, access, buffer);
      TensorMap map;
      if (data)
        memcpy(&map, data, sizeof(map));
      if (!data)
        return;
      if (map.magic != TensorMap::mark || map.rank != i.list.size() - 3) {
        machine.fail(FailureKind::Protocol, warp, lane,
                     "no tensor map of this rank at the address");
        return;
      }
      if (shared % 128) {
        machine.fail(FailureKind::Misaligned, warp, lane,
                     "a box must lie at a multiple of 128");
        return;
      }
      bytes = map.elementBytes;
      std::array<int64_t, 5> start{};
      for (unsigned d = 0; d < map.rank; ++d) {
        bytes *= map.box[d];
        start[d] = int32_t(warp.at<uint32_t>(i.list[3 + d])[lane]);
      }
      if (!transfer.addBox(map, start, shared))
        return;
    } else {
      bytes = warp.at<uint32_t>(i.e)[lane];
      if (bytes % 16 || shared % 16 || global % 16) {
        machine.fail(
            FailureKind::Misaligned, warp, lane,
            "a bulk copy has addresses and a length that are multiples of 16");
        return;
      }
      if (!transfer.addRange(global, shared, bytes))
        return;
    }
    if (!loads) {
      for (const Copy &part : transfer.parts)
        thread.bulkStores.groups.back().push_back(part);
      return;
    }
    ++barrier->issued;
    machine.bulkCopies.push_back({&block, barrierAddress, bytes,
                                  barrier->issued, std::move(transfer.parts)});
    if (machine.options.lateness == Lateness::Early)
      machine.landBulkCopy(machine.bulkCopies.size() - 1);
  });
}

void commit(Warp &warp, const Instruction &, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    warp.block.threads[warp.thread(lane)].bulkStores.groups.emplace_back();
  });
}

/// The wait that lets the thread reuse shared memory does not order what was
/// written; neither does the machine tell the two apart.
void waitForStores(Warp &warp, const Instruction &i, Lanes lanes) {
  forEachLane(lanes, [&](unsigned lane) {
    uint32_t index = warp.thread(lane);
    Thread &thread = warp.block.threads[index];
    Copies &stores = thread.bulkStores;
    while (stores.groups.size() > size_t(i.value) + 1) {
      for (Copy &copy : stores.groups.front())
        copy.land();
      stores.groups.pop_front();
      ++stores.done;
    }
    thread.clock.own[warp.machine.bulkAgent(index)] = stores.done;
  });
}

} // namespace

bool decodeBulkCopy(Decoder &d) {
  Instruction &i = d.instruction;
  d.setOpcode("cp.async.bulk");
  if (d.take("commit_group")) {
    d.setOpcode("cp.async.bulk.commit_group");
    i.run = &commit;
    return d.operandCount() == 0;
  }
  if (d.take("wait_group")) {
    d.setOpcode("cp.async.bulk.wait_group");
    d.take("read");
    auto pending = d.constant(0);
    i.value = pending.value_or(0);
    i.run = &waitForStores;
    return pending && d.operandCount() == 1;
  }
  bool tensor = d.take("tensor");
  int rank = tensor ? d.takeOneOf({"1d", "2d", "3d", "4d", "5d"}) + 1 : 0;
  bool loads = d.take("mbarrier::complete_tx::bytes");
  if ((tensor && !rank) || !d.take("global") ||
      !(d.take("shared::cta") || (loads && d.take("shared::cluster"))))
    return false;
  if (tensor)
    d.take("tile");
  if (!loads && !d.take("bulk_group"))
    return false;
  i.flags = uint8_t((loads ? toShared : 0) | (tensor ? isTensor : 0));
  const ptx::Operand &globalOperand = d.operand(loads ? 1 : 0);
  Decoder::Address shared = d.address(d.operand(loads ? 0 : 1)), global,
                   barrier;
  i.a = shared.base;
  i.value = shared.offset;
  if (tensor) {
    ptx::Operand map = globalOperand;
    if (map.list.size() != 2 || map.list[1].list.size() != size_t(rank))
      return false;
    map.list.pop_back();
    global = d.address(map);
  } else {
    global = d.address(globalOperand);
    i.e = d.source(2, Type::U32);
  }
  i.b = global.base;
  size_t count = tensor ? 2 : 3;
  if (loads)
    barrier = d.address(d.operand(count++));
  i.c = barrier.base;
  if (global.offset || barrier.offset || d.operandCount() != count)
    return false;
  i.list = {shared.isWide, global.isWide, barrier.isWide};
  for (int dim = 0; dim < rank; ++dim)
    i.list.push_back(
        d.source(globalOperand.list[1].list[size_t(dim)], Type::B32));
  i.run = &copyBulk;
  return true;
}

void Machine::landBulkCopy(size_t index) {
  // Of its barrier's copies the oldest.
  for (size_t older = 0; older < index; ++older) {
    if (bulkCopies[older].block == bulkCopies[index].block &&
        bulkCopies[older].barrier == bulkCopies[index].barrier) {
      index = older;
      break;
    }
  }
  BulkCopy copy = std::move(bulkCopies[index]);
  bulkCopies.erase(bulkCopies.begin() + ptrdiff_t(index));
  for (Copy &part : copy.parts)
    part.land();
  Mbarrier &barrier = copy.block->mbarriers[copy.barrier];
  barrier.bytes -= copy.bytes;
  barrier.accumulated.own.resize(
      std::max<size_t>(barrier.accumulated.own.size(), agents()));
  barrier.accumulated.own[barrier.agent] = copy.sequence;
  complete(*copy.block, barrier);
}

} // namespace burst::emulator
