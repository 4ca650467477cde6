//===- Machine.cpp - Schedules warps, checks accesses ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Machine.h"

#include <fmt/format.h>

namespace burst::emulator {

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

// A group that branches back this often lets other lanes of its warp run: they
// may be what it waits for.
static constexpr uint32_t turnLimit = 1000;

void Warp::run(uint64_t &steps) {
  const Instruction *code = program.code.data();
  uint64_t *executed = machine.executed.data();
  while (steps) {
    if (pc >= next) {
      split();
      regroup();
      if (!active)
        return;
    }
    --steps;
    ++executed[pc];
    const Instruction &instruction = code[pc];
    Lanes lanes = active;
    if (instruction.guard != none)
      lanes &= predicate(instruction.guard) ^ instruction.guardFlip;
    ++pc;
    if (lanes)
      instruction.run(*this, instruction, lanes);
    if (machine.failed)
      return;
  }
}

void Warp::split() {
  forEachLane(active, [&](unsigned lane) { lanePc[lane] = pc; });
}

void Warp::regroup(bool rotate) {
  Lanes candidates = live & ~blocked & ~collecting;
  if (!candidates) {
    active = others = 0;
    next = 0;
    if (collecting && !blocked && !machine.failed) {
      unsigned lane = unsigned(std::countr_zero(collecting));
      Failure &failure =
          machine.failAt(FailureKind::Divergence, *this, lane, lanePc[lane],
                         "not all lanes that the instruction names reach it");
      // A lane that waits elsewhere, or else one that has returned.
      Lanes away = all & ~live;
      forEachLane(collecting, [&](unsigned l) {
        if (lanePc[l] != lanePc[lane])
          away = 1U << l;
      });
      if (away) {
        unsigned l = unsigned(std::countr_zero(away));
        failure.other = machine.place(block, thread(l), lanePc[l]);
        failure.other->what =
            live & away ? "a lane that waits" : "a lane that has returned";
      }
    }
    return;
  }
  uint32_t chosen = none;
  Lanes from =
      rotate && (candidates & ~active) ? candidates & ~active : candidates;
  forEachLane(from,
              [&](unsigned lane) { chosen = std::min(chosen, lanePc[lane]); });
  active = 0;
  next = none;
  forEachLane(candidates, [&](unsigned lane) {
    if (lanePc[lane] == chosen)
      active |= 1U << lane;
    else if (lanePc[lane] > chosen)
      next = std::min(next, lanePc[lane]);
  });
  others = candidates & ~active;
  pc = chosen;
}

bool Warp::gather(Lanes &lanes, Lanes mask) {
  if (lanes == mask)
    return true;
  uint32_t here = currentPc();
  if (lanes & ~mask) {
    machine.fail(
        FailureKind::Divergence, *this,
        unsigned(std::countr_zero(lanes & ~mask)),
        fmt::format(
            "a lane executes a collective whose mask {:#010x} does not name it",
            mask));
    return false;
  }
  Lanes arrived = lanes;
  forEachLane(collecting & mask, [&](unsigned lane) {
    if (lanePc[lane] == here)
      arrived |= 1U << lane;
  });
  if (arrived == mask) {
    Lanes earlier = mask & ~lanes;
    collecting &= ~earlier;
    forEachLane(earlier, [&](unsigned lane) { lanePc[lane] = pc; });
    others |= earlier;
    next =
        std::min(next, pc); // they join the group before its next instruction
    lanes = mask;
    return true;
  }
  split();
  forEachLane(lanes, [&](unsigned lane) { lanePc[lane] = here; });
  collecting |= lanes;
  regroup();
  return false;
}

void Warp::jump(Lanes lanes, uint32_t target) {
  if (lanes != active) {
    split();
    forEachLane(lanes, [&](unsigned lane) { lanePc[lane] = target; });
    regroup();
    return;
  }
  bool isBack = target < pc;
  pc = target;
  if (isBack && others && ++turns >= turnLimit) {
    turns = 0;
    split();
    regroup(/*rotate=*/true);
  }
}

void Warp::finish(Lanes lanes) {
  split();
  forEachLane(lanes, [&](unsigned lane) {
    lanePc[lane] = currentPc();
    machine.waitForCopies(*this, lane, 0);
    for (auto &group : block.threads[thread(lane)].bulkStores.groups)
      for (Copy &copy : group)
        copy.land();
  });
  if (products.size() > 1 || !products.back().empty())
    machine.fail(FailureKind::Protocol, *this,
                 unsigned(std::countr_zero(lanes)),
                 "the warp returns with wgmma that nothing has waited for");
  live &= ~lanes;
  block.liveThreads -= uint32_t(std::popcount(lanes));
  regroup();
}

void Warp::park(Lanes lanes) {
  split();
  forEachLane(lanes, [&](unsigned lane) { arrivedPc[lane] = currentPc(); });
  blocked |= lanes;
  regroup();
}

void Warp::unblock(Lanes lanes) {
  blocked &= ~lanes;
  split();
  regroup();
  machine.makeReady(*this);
}

//===----------------------------------------------------------------------===//
// Blocks and the schedule
//===----------------------------------------------------------------------===//

static Dim3 unravel(uint64_t index, Dim3 shape) {
  return {uint32_t(index % shape.x), uint32_t(index / shape.x % shape.y),
          uint32_t(index / shape.x / shape.y)};
}

Machine::Machine(const Program &program, Dim3 grid, Dim3 blockSize,
                 size_t sharedBytes, const Arguments &arguments, Memory &memory,
                 const Options &options)
    : program(program), grid(grid), blockSize(blockSize),
      threadsPerBlock(uint32_t(blockSize.volume())),
      sharedBytes(uint32_t(program.staticShared + sharedBytes)),
      arguments(arguments), memory(memory), options(options),
      random(options.seed), executed(program.code.size()),
      conflicts(program.code.size()) {}

static uint64_t presetValue(const Preset &preset, const Machine &machine,
                            const Warp &warp, unsigned lane) {
  uint32_t thread = warp.thread(lane);
  Dim3 tid = unravel(thread, machine.blockSize);
  const Dim3 &ctaid = warp.block.id;
  switch (preset.kind) {
  case Preset::Kind::Value:
    return preset.value;
  case Preset::Kind::TidX:
    return tid.x;
  case Preset::Kind::TidY:
    return tid.y;
  case Preset::Kind::TidZ:
    return tid.z;
  case Preset::Kind::NtidX:
    return machine.blockSize.x;
  case Preset::Kind::NtidY:
    return machine.blockSize.y;
  case Preset::Kind::NtidZ:
    return machine.blockSize.z;
  case Preset::Kind::CtaidX:
    return ctaid.x;
  case Preset::Kind::CtaidY:
    return ctaid.y;
  case Preset::Kind::CtaidZ:
    return ctaid.z;
  case Preset::Kind::NctaidX:
    return machine.grid.x;
  case Preset::Kind::NctaidY:
    return machine.grid.y;
  case Preset::Kind::NctaidZ:
    return machine.grid.z;
  case Preset::Kind::Laneid:
    return lane;
  case Preset::Kind::Warpid:
    return warp.index;
  case Preset::Kind::Nwarpid:
    return (machine.threadsPerBlock + 31) / 32;
  case Preset::Kind::LanemaskEq:
    return 1U << lane;
  case Preset::Kind::LanemaskLt:
    return (1U << lane) - 1;
  case Preset::Kind::LanemaskLe:
    return (2ULL << lane) - 1;
  case Preset::Kind::LanemaskGt:
    return uint32_t(~((2ULL << lane) - 1));
  case Preset::Kind::LanemaskGe:
    return ~((1U << lane) - 1);
  case Preset::Kind::DynamicSharedSize:
    return machine.sharedBytes - machine.program.staticShared;
  case Preset::Kind::TotalSharedSize:
    return machine.sharedBytes - sharedBase;
  }
  return 0;
}

void Machine::start(uint32_t index) {
  auto block = std::make_unique<Block>();
  block->id = unravel(index, grid);
  block->index = index;
  block->shared.assign(sharedBytes - sharedBase, 0xff);
  block->shadow = Shadow(sharedBytes - sharedBase);
  block->threads.resize(threadsPerBlock);
  block->liveThreads = threadsPerBlock;
  for (uint32_t thread = 0; thread < threadsPerBlock; ++thread) {
    std::vector<uint32_t> &own = block->threads[thread].clock.own;
    own.resize(agents());
    own[thread] = 1;
    block->threads[thread].copies.groups.emplace_back();
    block->threads[thread].bulkStores.groups.emplace_back();
  }
  for (uint32_t first = 0; first < threadsPerBlock; first += 32) {
    auto &warp = block->warps.emplace_back(
        std::make_unique<Warp>(*this, *block, program));
    warp->index = first / 32;
    uint32_t lanes = std::min(32U, threadsPerBlock - first);
    warp->all = warp->live = warp->active =
        lanes == 32 ? ~0U : (1U << lanes) - 1;
    warp->registers.resize(program.registerBytes);
    warp->local.resize(size_t(32) * program.localBytes);
    for (const Preset &preset : program.presets) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        uint64_t value = presetValue(preset, *this, *warp, lane);
        if (preset.isWide)
          warp->at<uint64_t>(preset.offset)[lane] = value;
        else
          warp->at<uint32_t>(preset.offset)[lane] = uint32_t(value);
      }
    }
    makeReady(*warp);
  }
  resident[index] = std::move(block);
}

void Machine::makeReady(Warp &warp) {
  if (!warp.queued)
    ready.push_back(&warp);
  warp.queued = true;
}

Warp *Machine::take() {
  if (readyFront == ready.size())
    return nullptr;
  if (options.seed) // any of the queue
    std::swap(ready[readyFront],
              ready[readyFront + random() % (ready.size() - readyFront)]);
  Warp *warp = ready[readyFront++];
  if (readyFront > 1024) {
    ready.erase(ready.begin(), ready.begin() + ptrdiff_t(readyFront));
    readyFront = 0;
  }
  return warp; // queued while it runs: what it unblocks may be itself
}

Outcome Machine::run() {
  uint64_t blocks = grid.volume(), left = options.budget;
  while (!failed) {
    while (nextBlock < blocks &&
           resident.size() < std::max(1U, options.residentBlocks))
      start(nextBlock++);
    Warp *warp = take();
    if (!bulkCopies.empty() &&
        (!warp || (options.lateness == Lateness::Random && random() % 4 == 0)))
      landBulkCopy(options.lateness == Lateness::Random
                       ? random() % bulkCopies.size()
                       : 0);
    if (!warp)
      warp = take();
    if (!warp) {
      if (!bulkCopies.empty())
        continue;
      if (!resident.empty())
        deadlock();
      break;
    }
    uint64_t quantum = std::max(1U, options.quantum);
    if (options.seed)
      quantum = random() % quantum + 1;
    uint64_t steps = std::min(quantum, left), given = steps;
    warp->run(steps);
    warp->queued = false;
    left -= given - steps;
    if (failed)
      break;
    if (!warp->live) {
      if (warp->block.liveThreads == 0)
        resident.erase(warp->block.index);
    } else if (warp->active) {
      if (left == 0) {
        unsigned lane = unsigned(std::countr_zero(warp->active));
        failAt(FailureKind::Budget, *warp, lane, warp->pc,
               fmt::format(
                   "the kernel has executed {} instructions without an end",
                   options.budget));
      }
      makeReady(*warp);
    }
  }
  report();
  return std::move(outcome);
}

void Machine::deadlock() {
  for (const auto &[index, block] : resident) {
    for (const auto &warp : block->warps) {
      if (warp->collecting) {
        unsigned lane = unsigned(std::countr_zero(warp->collecting));
        Failure &failure =
            failAt(FailureKind::Divergence, *warp, lane, warp->lanePc[lane],
                   "not all lanes that the instruction names reach it");
        if (warp->blocked) {
          unsigned away = unsigned(std::countr_zero(warp->blocked));
          failure.other =
              place(*block, warp->thread(away), warp->arrivedPc[away]);
          failure.other->what = "a lane that waits";
        }
        return;
      }
    }
  }
  for (const auto &[index, block] : resident) {
    std::string message = "no thread can go on:";
    Warp *first = nullptr;
    for (size_t id = 0; id < block->barriers.size(); ++id) {
      const Barrier &barrier = block->barriers[id];
      if (!barrier.arrived)
        continue;
      for (const auto &[address, barrier] : block->mbarriers) {
        if (barrier.waiting.empty())
          continue;
        message +=
            fmt::format(" the mbarrier at {:#x} lacks {} arrivals and {} bytes "
                        "of phase {};",
                        address, barrier.pending, barrier.bytes, barrier.phase);
        if (!first)
          first = barrier.waiting[0].first;
      }
      message += fmt::format(
          " barrier {} has {} of {} arrivals, the first at line {};", id,
          barrier.arrived, barrier.expected, program.source[barrier.pc].line);
      if (!first && !barrier.waiting.empty())
        first = barrier.waiting[0].first;
    }
    if (!first)
      first = block->warps[0].get();
    message +=
        fmt::format(" {} of {} threads have returned",
                    threadsPerBlock - block->liveThreads, threadsPerBlock);
    unsigned lane =
        first->blocked ? unsigned(std::countr_zero(first->blocked)) : 0;
    failAt(FailureKind::Deadlock, *first, lane, first->arrivedPc[lane],
           message);
    return;
  }
}

void Machine::report() {
  for (auto &[base, of] : touched)
    outcome.touched.push_back(std::move(of));
  Counters &counters = outcome.counters;
  for (size_t pc = 0; pc < executed.size(); ++pc) {
    if (!executed[pc])
      continue;
    const SourceLine &source = program.source[pc];
    counters.instructions += executed[pc];
    counters.byOpcode[source.opcode] += executed[pc];
    if (conflicts[pc]) {
      counters.bankConflicts += conflicts[pc];
      counters.conflicts.push_back({source.line, source.sourceLine, source.text,
                                    executed[pc], conflicts[pc]});
    }
  }
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

Place Machine::place(const Block &block, uint32_t thread, uint32_t pc) const {
  const SourceLine &source = program.source[pc];
  return {block.id, unravel(thread, blockSize), source.line, source.sourceLine,
          ""};
}

Failure &Machine::fail(FailureKind kind, Warp &warp, unsigned lane,
                       std::string message) {
  return failAt(kind, warp, lane, warp.currentPc(), std::move(message));
}

Failure &Machine::failAt(FailureKind kind, Warp &warp, unsigned lane,
                         uint32_t pc, std::string message) {
  failed = true;
  Failure &failure = outcome.failure.emplace();
  failure.kind = kind;
  failure.message = std::move(message);
  failure.place = place(warp.block, warp.thread(lane), pc);
  failure.text = program.source[pc].text;
  return failure;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Shadow &Machine::shadowOf(const Memory::Buffer &buffer) {
  if (lastShadow && lastBase == buffer.base)
    return *lastShadow;
  auto [found, isNew] = shadows.try_emplace(buffer.base);
  if (isNew)
    found->second = Shadow(buffer.size);
  lastBase = buffer.base;
  lastShadow = &found->second;
  return *lastShadow;
}

Touched &Machine::touchedOf(const Memory::Buffer &buffer) {
  if (lastTouched && lastTouched->base == buffer.base)
    return *lastTouched;
  lastTouched = &touched[buffer.base];
  lastTouched->base = buffer.base;
  lastTouched->masks.resize((buffer.size + 3) / 4);
  return *lastTouched;
}

static std::string_view verb(AccessKind kind) {
  switch (kind) {
  case AccessKind::Read:
    return "read";
  case AccessKind::Write:
    return "write";
  case AccessKind::StrongWrite:
    return "strong write";
  case AccessKind::Atomic:
    return "atomic access";
  }
  return "";
}

uint8_t *Machine::resolve(Warp &warp, unsigned lane, Access &access,
                          Memory::Buffer *&buffer) {
  buffer = nullptr;
  if (access.space == Space::Generic) {
    for (auto [window, space] : {std::pair(paramWindow, Space::Param),
                                 std::pair(localWindow, Space::Local),
                                 std::pair(sharedWindow, Space::Shared)}) {
      if (access.address >= window) {
        access.address -= window;
        access.space = space;
        break;
      }
    }
    if (access.space == Space::Generic)
      access.space = Space::Global;
  }
  auto outside = [&](std::string_view where, uint64_t at,
                     uint64_t size) -> Failure & {
    Failure &failure = fail(
        FailureKind::OutOfBounds, warp, lane,
        fmt::format("{} of {} bytes at {} of {}, which has {}",
                    verb(access.kind), access.bytes, int64_t(at), where, size));
    failure.buffer = std::string(where);
    failure.address = at;
    return failure;
  };
  if (uint32_t alignment = access.alignment ? access.alignment : access.bytes;
      access.address % alignment != 0) {
    Failure &failure =
        fail(FailureKind::Misaligned, warp, lane,
             fmt::format("{} of {} bytes at address {:#x}, no multiple of {}",
                         verb(access.kind), access.bytes, access.address,
                         alignment));
    failure.address = access.address;
    return nullptr;
  }
  switch (access.space) {
  case Space::Shared:
    if (access.address < sharedBase || access.address > sharedBytes ||
        access.bytes > sharedBytes - access.address) {
      outside("shared memory", access.address - sharedBase,
              sharedBytes - sharedBase);
      return nullptr;
    }
    return warp.block.shared.data() + (access.address - sharedBase);
  case Space::Local:
    if (access.address > program.localBytes ||
        access.bytes > program.localBytes - access.address) {
      outside("local memory", access.address, program.localBytes);
      return nullptr;
    }
    return warp.local.data() + size_t(lane) * program.localBytes +
           access.address;
  case Space::Param:
    if (access.address > arguments.data.size() ||
        access.bytes > arguments.data.size() - access.address ||
        access.kind != AccessKind::Read) {
      outside("the parameters", access.address, arguments.data.size());
      return nullptr;
    }
    return const_cast<uint8_t *>(arguments.data.data()) + access.address;
  default:
    break;
  }
  if (!lastBuffer || access.address - lastBuffer->base >= lastBuffer->size)
    lastBuffer = memory.find(access.address);
  buffer = lastBuffer;
  if (!buffer) {
    fail(FailureKind::OutOfBounds, warp, lane,
         fmt::format("{} of {} bytes at address {:#x}, which lies in no buffer",
                     verb(access.kind), access.bytes, access.address))
        .address = access.address;
    return nullptr;
  }
  uint64_t at = access.address - buffer->base;
  if (access.bytes > buffer->size - std::min<uint64_t>(at, buffer->size)) {
    outside(buffer->name, at, buffer->size);
    return nullptr;
  }
  if (buffer->access == Memory::Access::ReadOnly &&
      access.kind != AccessKind::Read) {
    Failure &failure = fail(FailureKind::ReadOnly, warp, lane,
                            fmt::format("{} to {}, which is read-only",
                                        verb(access.kind), buffer->name));
    failure.buffer = buffer->name;
    failure.address = at;
    return nullptr;
  }
  return buffer->data.data() + at;
}

bool Machine::check(Warp &warp, unsigned lane, const Access &access,
                    Memory::Buffer *buffer, const Epoch &epoch,
                    const Clock &clock) {
  if (access.space != Space::Shared && access.space != Space::Global)
    return true;
  bool isShared = access.space == Space::Shared;
  uint64_t at =
      isShared ? access.address - sharedBase : access.address - buffer->base;
  bool orders = options.races &&
                (isShared || buffer->access == Memory::Access::ReadWrite);
  Shadow *shadow = isShared ? &warp.block.shadow
                   : orders ? &shadowOf(*buffer)
                            : nullptr;
  uint8_t *masks = !isShared && options.footprint
                       ? touchedOf(*buffer).masks.data()
                       : nullptr;
  for (uint64_t from = at; from < at + access.bytes;) {
    uint64_t index = from / 4,
             to = std::min<uint64_t>(index * 4 + 4, at + access.bytes);
    auto mask = uint8_t((1U << (to - index * 4)) - (1U << (from - index * 4)));
    if (orders) {
      Epoch now = epoch;
      now.mask = mask;
      now.kind = access.kind;
      if (const Epoch *before =
              shadow->access(shadow->cells[index], now, clock)) {
        Failure &failure = fail(
            FailureKind::Race, warp, lane,
            fmt::format("{}{} is not ordered with an earlier {}",
                        epoch.agent >= threadsPerBlock ? "asynchronous " : "",
                        verb(access.kind), verb(before->kind)));
        failure.buffer = isShared ? "shared memory" : buffer->name;
        failure.address = index * 4;
        uint32_t thread = before->agent < 3 * threadsPerBlock
                              ? before->agent % threadsPerBlock
                          : before->agent < mbarrierAgent(0)
                              ? (before->agent - warpAgent(0)) * 32
                              : 0;
        Block identity;
        identity.id = unravel(before->block, grid);
        failure.other = place(identity, thread, before->pc);
        failure.other->what = fmt::format(
            "{}{}", before->agent >= threadsPerBlock ? "asynchronous " : "",
            verb(before->kind));
        return false;
      }
    }
    if (access.isAsyncProxy && isShared && orders &&
        access.kind == AccessKind::Read &&
        !isFenced(warp.block, shadow->cells[index].write, clock)) {
      Failure &failure = fail(
          FailureKind::Protocol, warp, lane,
          "asynchronous read of what a thread wrote without fence.proxy.async");
      failure.buffer = "shared memory";
      failure.address = index * 4;
      const Epoch &write = shadow->cells[index].write;
      failure.other = place(warp.block, write.agent, write.pc);
      failure.other->what = "write";
      return false;
    }
    uint8_t &written =
        isShared ? shadow->cells[index].written : buffer->written[index];
    bool reads =
        access.kind == AccessKind::Read || access.kind == AccessKind::Atomic;
    if (masks)
      masks[index] |=
          uint8_t((reads ? mask : 0) |
                  (access.kind != AccessKind::Read ? mask << 4 : 0));
    if (reads && (written & mask) != mask && !access.takesAnything) {
      Failure &failure =
          fail(FailureKind::Uninitialised, warp, lane,
               fmt::format("{} of bytes that nothing has written",
                           verb(access.kind)));
      failure.buffer = isShared ? "shared memory" : buffer->name;
      failure.address = index * 4;
      return false;
    }
    if (access.kind != AccessKind::Read)
      written |= mask;
    from = to;
  }
  (access.kind == AccessKind::Read
       ? (isShared ? outcome.counters.sharedRead : outcome.counters.globalRead)
       : (isShared ? outcome.counters.sharedWritten
                   : outcome.counters.globalWritten)) += access.bytes;
  return true;
}

uint8_t *Machine::access(Warp &warp, unsigned lane, Access access) {
  Memory::Buffer *buffer;
  uint8_t *data = resolve(warp, lane, access, buffer);
  if (!data)
    return nullptr;
  uint32_t thread = warp.thread(lane);
  const Clock &clock = warp.block.threads[thread].clock;
  Epoch epoch{warp.block.index, uint16_t(thread),  0,
              access.kind,      clock.own[thread], warp.currentPc()};
  return check(warp, lane, access, buffer, epoch, clock) ? data : nullptr;
}

void Machine::countBanks(Warp &warp, Lanes lanes,
                         const std::array<uint32_t, 32> &addresses,
                         unsigned bytes) {
  unsigned together = bytes <= 4 ? 32 : 128 / bytes;
  uint64_t extra = 0;
  for (unsigned first = 0; first < 32; first += together) {
    std::array<uint8_t, 32> counts{};
    std::array<std::array<uint32_t, 32>, 32> words;
    unsigned passes = 0;
    for (unsigned lane = first; lane < first + together; ++lane) {
      if (!(lanes >> lane & 1))
        continue;
      uint32_t from = addresses[lane] / 4,
               to = (addresses[lane] + bytes + 3) / 4;
      for (uint32_t word = from; word < to; ++word) {
        unsigned bank = word % 32;
        auto *end = words[bank].data() + counts[bank];
        if (std::find(words[bank].data(), end, word) != end)
          continue;
        *end = word;
        passes = std::max<unsigned>(passes, ++counts[bank]);
      }
    }
    extra += passes > 1 ? passes - 1 : 0;
  }
  conflicts[warp.currentPc()] += extra;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Machine::arrive(Warp &warp, Lanes lanes, uint32_t id, uint32_t expected,
                     bool waits) {
  unsigned lane = unsigned(std::countr_zero(lanes));
  Block &block = warp.block;
  if (id >= block.barriers.size()) {
    fail(FailureKind::Barrier, warp, lane,
         fmt::format("there is no barrier {}", id));
    return;
  }
  if (expected % 32 || expected > (threadsPerBlock + 31) / 32 * 32) {
    fail(FailureKind::Barrier, warp, lane,
         fmt::format("barrier {} for {} threads, of {} threads in warps of 32",
                     id, expected, threadsPerBlock));
    return;
  }
  if (expected == 0)
    expected = threadsPerBlock;
  Barrier &barrier = block.barriers[id];
  if (barrier.arrived == 0) {
    barrier.expected = expected;
    barrier.pc = warp.currentPc();
  }
  barrier.arrived += uint32_t(std::popcount(lanes));
  if (barrier.expected != expected || barrier.arrived > barrier.expected) {
    Failure &failure = fail(
        FailureKind::Barrier, warp, lane,
        fmt::format(
            "arrival {} at barrier {} for {} threads, which was begun for {}",
            barrier.arrived, id, expected, barrier.expected));
    failure.other = place(block, 0, barrier.pc);
    failure.other->what = "the first arrival";
    return;
  }
  forEachLane(lanes, [&](unsigned l) {
    Clock &clock = block.threads[warp.thread(l)].clock;
    barrier.clock.join(clock, block.index, block.index);
    ++clock.own[warp.thread(l)];
  });
  if (waits) {
    barrier.waiting.emplace_back(&warp, lanes);
    warp.park(lanes);
  }
  if (barrier.arrived < barrier.expected)
    return;
  Barrier complete = std::move(barrier);
  barrier = Barrier();
  for (auto [waiting, waitingLanes] : complete.waiting) {
    forEachLane(waitingLanes, [&, w = waiting](unsigned l) {
      uint32_t thread = w->thread(l);
      Clock &clock = block.threads[thread].clock;
      uint32_t own = clock.own[thread];
      clock.assign(complete.clock);
      clock.own[thread] = own;
    });
    waiting->unblock(waitingLanes);
  }
}

} // namespace burst::emulator
