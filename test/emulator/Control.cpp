//===- Control.cpp - Branches, barriers, fences, lanes that exchange ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Lanewise.h"

#include <fmt/format.h>

namespace burst::emulator {

namespace {

//===----------------------------------------------------------------------===//
// Branches
//===----------------------------------------------------------------------===//

bool bra(Decoder &d) {
  d.take("uni");
  Instruction &i = d.instruction;
  i.value = d.label(0);
  i.run = [](Warp &warp, const Instruction &i, Lanes lanes) {
    warp.jump(lanes, uint32_t(i.value));
  };
  return d.operandCount() == 1;
}

bool ret(Decoder &d) {
  d.take("uni");
  d.instruction.run = [](Warp &warp, const Instruction &, Lanes lanes) {
    warp.finish(lanes);
  };
  return d.operandCount() == 0;
}

bool trap(Decoder &d) {
  d.instruction.run = [](Warp &warp, const Instruction &, Lanes lanes) {
    warp.machine.fail(FailureKind::Trap, warp,
                      unsigned(std::countr_zero(lanes)), "the kernel trapped");
  };
  return d.operandCount() == 0;
}

bool nanosleep(Decoder &d) {
  d.instruction.run = [](Warp &, const Instruction &, Lanes) {};
  return d.take("u32") && d.operandCount() == 1;
}

//===----------------------------------------------------------------------===//
// Barriers and fences
//===----------------------------------------------------------------------===//

/// The value that a register has in all lanes of the mask.
std::optional<uint32_t> uniform(Warp &warp, uint32_t offset, Lanes lanes,
                                std::string_view what) {
  const auto *values = warp.at<uint32_t>(offset);
  uint32_t first = values[std::countr_zero(lanes)];
  std::optional<uint32_t> result = first;
  forEachLane(lanes, [&](unsigned lane) {
    if (values[lane] != first && result) {
      warp.machine.fail(
          FailureKind::Divergence, warp, lane,
          fmt::format("lanes of the warp differ in the {}: {} and {}", what,
                      first, values[lane]));
      result.reset();
    }
  });
  return result;
}

/// Flags of barrier: whether all lanes of the warp take part, whether they
/// wait.
enum : uint8_t { isAligned = 1, waits = 2 };

void barrier(Warp &warp, const Instruction &i, Lanes lanes) {
  if (i.flags & isAligned && !warp.gatherAll(lanes))
    return;
  auto id = uniform(warp, i.a, lanes, "barrier");
  auto expected =
      i.b == none ? std::optional(0U) : uniform(warp, i.b, lanes, "count");
  if (id && expected)
    warp.machine.arrive(warp, lanes, *id, *expected, i.flags & waits);
}

void syncWarp(Warp &warp, const Instruction &i, Lanes lanes) {
  auto mask = uniform(warp, i.a, lanes, "mask");
  if (!mask || !warp.gather(lanes, *mask & warp.all))
    return;
  Clock joined;
  Block &block = warp.block;
  forEachLane(lanes, [&](unsigned lane) {
    joined.join(block.threads[warp.thread(lane)].clock, block.index,
                block.index);
  });
  forEachLane(lanes, [&](unsigned lane) {
    Clock &clock = block.threads[warp.thread(lane)].clock;
    clock.assign(joined);
    ++clock.own[warp.thread(lane)];
  });
}

bool bar(Decoder &d) {
  Instruction &i = d.instruction;
  bool aligned = d.statement().opcode == "bar";
  d.take("cta");
  aligned |= d.take("aligned");
  if (d.take("warp")) {
    i.a = d.source(0, Type::B32);
    i.run = &syncWarp;
    d.setOpcode("bar.warp");
    return d.take("sync") && d.operandCount() == 1;
  }
  bool sync = d.take("sync");
  if (!sync && !d.take("arrive"))
    return false;
  i.flags = uint8_t((aligned ? isAligned : 0) | (sync ? waits : 0));
  i.a = d.source(0, Type::U32);
  if (d.operandCount() == 2)
    i.b = d.source(1, Type::U32);
  else if (!sync)
    return false; // an arrival says of how many
  i.run = &barrier;
  return d.operandCount() <= 2;
}

bool fence(Decoder &d) {
  bool isMembar = d.statement().opcode == "membar";
  d.instruction.run = [](Warp &warp, const Instruction &, Lanes lanes) {
    forEachLane(lanes, [&](unsigned lane) { warp.machine.fence(warp, lane); });
  };
  if (d.take("proxy")) // between accesses of threads and asynchronous ones
    return decodeProxyFence(d);
  if (d.take("mbarrier_init")) { // the clocks order it as well
    d.instruction.run = [](Warp &, const Instruction &, Lanes) {};
    return d.take("release") && d.take("cluster");
  }
  if (isMembar)
    return d.takeOneOf({"gl", "cta", "sys"}) >= 0;
  return d.takeOneOf({"acq_rel", "sc"}) >= 0 &&
         d.takeOneOf({"cta", "cluster", "gpu", "sys"}) >= 0;
}

//===----------------------------------------------------------------------===//
// Exchange between lanes
//===----------------------------------------------------------------------===//

// None of these orders memory: bar.warp.sync does.

enum : uint8_t { up, down, butterfly, index };

void shuffle(Warp &warp, const Instruction &i, Lanes lanes) {
  auto mask = uniform(warp, i.e, lanes, "mask");
  if (!mask || !warp.gather(lanes, *mask & warp.all))
    return;
  uint32_t values[32];
  memcpy(values, warp.at<uint32_t>(i.a), sizeof(values));
  Lanes inRange = 0;
  forEachLane(lanes, [&](unsigned lane) {
    uint32_t by = warp.at<uint32_t>(i.b)[lane] & 31,
             control = warp.at<uint32_t>(i.c)[lane];
    uint32_t clamp = control & 31, segment = control >> 8 & 31;
    uint32_t last = (lane & segment) | (clamp & ~segment), from = lane;
    bool is = false;
    switch (i.flags) {
    case up:
      from = lane - by;
      is = int(from) >= int(last);
      break;
    case down:
      from = lane + by;
      is = from <= last;
      break;
    case butterfly:
      from = lane ^ by;
      is = from <= last;
      break;
    default:
      from = (lane & segment) | (by & ~segment);
      is = from <= last;
      break;
    }
    if (!is)
      from = lane;
    else
      inRange |= 1U << lane;
    if (!(lanes >> from & 1) && !warp.machine.failed)
      warp.machine.fail(
          FailureKind::Divergence, warp, lane,
          fmt::format("reads lane {}, which takes no part", from));
    warp.at<uint32_t>(i.d)[lane] = values[from];
  });
  if (!i.list.empty()) {
    Lanes &to = warp.predicate(i.list[0]);
    to = (to & ~lanes) | inRange;
  }
}

bool shfl(Decoder &d) {
  Instruction &i = d.instruction;
  int mode = d.takeOneOf({"up", "down", "bfly", "idx"});
  if (!d.take("sync") || mode < 0 || !d.take("b32") || d.operandCount() != 5)
    return false;
  i.flags = uint8_t(mode);
  i.d = d.destination(0, Type::B32);
  if (!d.operand(0).second.empty()) {
    ptx::Operand second;
    second.name = d.operand(0).second;
    i.list.push_back(d.destination(second, Type::Pred));
  }
  i.a = d.source(1, Type::B32);
  i.b = d.source(2, Type::B32);
  i.c = d.source(3, Type::B32);
  i.e = d.source(4, Type::B32);
  i.run = &shuffle;
  return true;
}

enum : uint8_t { voteAll, voteAny, voteUniform, ballot };

void vote(Warp &warp, const Instruction &i, Lanes lanes) {
  auto mask = uniform(warp, i.b, lanes, "mask");
  if (!mask || !warp.gather(lanes, *mask & warp.all))
    return;
  Lanes yes = (warp.predicate(i.a) ^ Lanes(i.value)) & lanes;
  if (i.flags == ballot) {
    write<uint32_t>(warp, i.d, lanes, [&](unsigned) { return yes; });
    return;
  }
  bool result = i.flags == voteAll   ? yes == lanes
                : i.flags == voteAny ? yes != 0
                                     : yes == 0 || yes == lanes;
  Lanes &to = warp.predicate(i.d);
  to = (to & ~lanes) | (result ? lanes : 0);
}

bool voteOf(Decoder &d) {
  Instruction &i = d.instruction;
  int mode = d.takeOneOf({"all", "any", "uni", "ballot"});
  auto type = d.takeType();
  if (!d.take("sync") || mode < 0 || d.operandCount() != 3 ||
      type != (mode == ballot ? Type::B32 : Type::Pred))
    return false;
  i.flags = uint8_t(mode);
  i.d = d.destination(0, *type);
  i.a = d.source(1, Type::Pred);
  i.value = d.operand(1).negated ? -1 : 0;
  i.b = d.source(2, Type::B32);
  i.run = &vote;
  return true;
}

bool activemask(Decoder &d) {
  d.instruction.d = d.destination(0, Type::B32);
  d.instruction.run = [](Warp &warp, const Instruction &i, Lanes lanes) {
    write<uint32_t>(warp, i.d, lanes, [&](unsigned) { return lanes; });
  };
  return d.take("b32") && d.operandCount() == 1;
}

/// elect.sync d|p, mask: the lowest lane.
void elect(Warp &warp, const Instruction &i, Lanes lanes) {
  auto mask = uniform(warp, i.a, lanes, "mask");
  if (!mask || !warp.gather(lanes, *mask & warp.all))
    return;
  auto leader = unsigned(std::countr_zero(lanes));
  write<uint32_t>(warp, i.d, lanes, [&](unsigned) { return uint32_t(leader); });
  Lanes &to = warp.predicate(i.e);
  to = (to & ~lanes) | 1U << leader;
}

bool electOf(Decoder &d) {
  if (!d.take("sync") || d.operandCount() != 2 || d.operand(0).second.empty())
    return false;
  ptx::Operand second;
  second.name = d.operand(0).second;
  d.instruction.d = d.destination(0, Type::B32);
  d.instruction.e = d.destination(second, Type::Pred);
  d.instruction.a = d.source(1, Type::B32);
  d.instruction.run = &elect;
  return true;
}

/// redux.sync: one value of all lanes.
template <auto F, class T>
void reduce(Warp &warp, const Instruction &i, Lanes lanes) {
  auto mask = uniform(warp, i.b, lanes, "mask");
  if (!mask || !warp.gather(lanes, *mask & warp.all))
    return;
  std::optional<T> result;
  forEachLane(lanes, [&](unsigned lane) {
    T value = get<T>(warp, i.a, lane);
    result = result ? F(*result, value) : value;
  });
  write<T>(warp, i.d, lanes, [&](unsigned) { return *result; });
}

template <auto F>
Run reduction(Type type) {
  return type == Type::S32 ? &reduce<F, int32_t> : &reduce<F, uint32_t>;
}

bool redux(Decoder &d) {
  Instruction &i = d.instruction;
  int which = d.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  auto type = d.takeType();
  if (!d.take("sync") || which < 0 || d.operandCount() != 3 ||
      (type != Type::S32 && type != (which < 3 ? Type::U32 : Type::B32)))
    return false;
  constexpr auto plus = [](auto a, auto b) {
    return decltype(a)(uint32_t(a) + uint32_t(b));
  };
  constexpr auto least = [](auto a, auto b) { return std::min(a, b); };
  constexpr auto most = [](auto a, auto b) { return std::max(a, b); };
  constexpr auto both = [](auto a, auto b) { return decltype(a)(a & b); };
  constexpr auto either = [](auto a, auto b) { return decltype(a)(a | b); };
  constexpr auto one = [](auto a, auto b) { return decltype(a)(a ^ b); };
  switch (which) {
  case 0:
    i.run = reduction<plus>(*type);
    break;
  case 1:
    i.run = reduction<least>(*type);
    break;
  case 2:
    i.run = reduction<most>(*type);
    break;
  case 3:
    i.run = reduction<both>(*type);
    break;
  case 4:
    i.run = reduction<either>(*type);
    break;
  default:
    i.run = reduction<one>(*type);
    break;
  }
  i.d = d.destination(0, *type);
  i.a = d.source(1, *type);
  i.b = d.source(2, Type::B32);
  return true;
}

} // namespace

void addControl(Table &table) {
  table["bra"] = &bra;
  table["ret"] = table["exit"] = &ret;
  table["trap"] = &trap;
  table["nanosleep"] = &nanosleep;
  table["bar"] = table["barrier"] = &bar;
  table["membar"] = table["fence"] = &fence;
  table["shfl"] = &shfl;
  table["vote"] = &voteOf;
  table["activemask"] = &activemask;
  table["elect"] = &electOf;
  table["redux"] = &redux;
}

} // namespace burst::emulator
