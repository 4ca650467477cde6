//===- LoadsAndStores.cpp - ld, st, atom, red -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Lanewise.h"

namespace burst::emulator {

namespace {

/// Flags beside wideAddress.
enum : uint8_t {
  isStrongAccess = 2, // relaxed, volatile, or what orders
  orders = 4,         // acquire or release
  extendsSign = 8,
  wideRegisters = 16,
  returnsOld = 32,
  acquires = 64,
  releases = 128,
};

std::optional<Space> takeSpace(Decoder &d) {
  if (d.take("global"))
    return Space::Global;
  if (d.take("shared") || d.take("shared::cta"))
    return Space::Shared;
  if (d.take("local"))
    return Space::Local;
  if (d.take("param"))
    return Space::Param;
  return Space::Generic;
}

std::string_view name(Space space) {
  switch (space) {
  case Space::Global:
    return ".global";
  case Space::Shared:
    return ".shared";
  case Space::Local:
    return ".local";
  case Space::Param:
    return ".param";
  case Space::Generic:
    return "";
  }
  return "";
}

void load(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  std::array<uint32_t, 32> addresses{};
  auto bytes = uint32_t(i.bytes * i.list.size());
  forEachLane(lanes, [&](unsigned lane) {
    Access access{i.space, addressIn(warp, i, lane), bytes, AccessKind::Read};
    if (i.flags & isStrongAccess)
      access.kind = AccessKind::Atomic;
    addresses[lane] = uint32_t(access.address);
    const uint8_t *data =
        machine.failed ? nullptr : machine.access(warp, lane, access);
    if (!data)
      return;
    for (uint32_t to : i.list) {
      uint64_t value = 0;
      memcpy(&value, data, i.bytes);
      data += i.bytes;
      if (i.flags & extendsSign) {
        unsigned shift = 64 - 8U * i.bytes;
        value = uint64_t(int64_t(value << shift) >> shift);
      }
      if (i.flags & wideRegisters)
        warp.at<uint64_t>(to)[lane] = value;
      else
        warp.at<uint32_t>(to)[lane] = uint32_t(value);
    }
    if (i.flags & isStrongAccess)
      machine.acquire(warp, lane, machine.synchronisation(warp, access),
                      i.flags & orders);
  });
  if (i.space == Space::Shared)
    machine.countBanks(warp, lanes, addresses, bytes);
}

void store(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  std::array<uint32_t, 32> addresses{};
  auto bytes = uint32_t(i.bytes * i.list.size());
  forEachLane(lanes, [&](unsigned lane) {
    Access access{i.space, addressIn(warp, i, lane), bytes, AccessKind::Write};
    if (i.flags & isStrongAccess)
      access.kind = AccessKind::StrongWrite;
    addresses[lane] = uint32_t(access.address);
    uint8_t *data =
        machine.failed ? nullptr : machine.access(warp, lane, access);
    if (!data)
      return;
    for (uint32_t from : i.list) {
      uint64_t value = i.flags & wideRegisters ? warp.at<uint64_t>(from)[lane]
                                               : warp.at<uint32_t>(from)[lane];
      memcpy(data, &value, i.bytes);
      data += i.bytes;
    }
    if (i.flags & isStrongAccess)
      machine.release(warp, lane, machine.synchronisation(warp, access),
                      i.flags & orders,
                      /*replaces=*/true);
  });
  if (i.space == Space::Shared)
    machine.countBanks(warp, lanes, addresses, bytes);
}

template <bool IsLoad>
bool loadOrStore(Decoder &d) {
  Instruction &i = d.instruction;
  i.space = *takeSpace(d);
  d.setOpcode(std::string(IsLoad ? "ld" : "st") + std::string(name(i.space)));
  if (d.take(IsLoad ? "acquire" : "release"))
    i.flags |= isStrongAccess | orders;
  else if (d.take("relaxed") || d.take("volatile"))
    i.flags |= isStrongAccess;
  else
    d.take("weak");
  if (i.flags & isStrongAccess)
    d.takeOneOf({"cta", "cluster", "gpu", "sys"});
  // Hints to caches say nothing about values.
  if (IsLoad) {
    d.take("nc");
    d.takeOneOf({"ca", "cg", "cs", "lu", "cv"});
    d.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
  } else {
    d.takeOneOf({"wb", "cg", "cs", "wt"});
  }
  d.takeOneOf({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
               "L1::evict_last", "L1::no_allocate"});
  size_t count = d.take("v2") ? 2 : d.take("v4") ? 4 : 1;
  auto type = d.takeType();
  if (!type || *type == Type::Pred || d.operandCount() != 2)
    return false;
  i.bytes = uint8_t(sizeOf(*type));
  if (isSigned(*type) && IsLoad)
    i.flags |= extendsSign;
  d.address(IsLoad ? 1 : 0);
  const ptx::Operand &values = d.operand(IsLoad ? 0 : 1);
  bool isList = values.kind == ptx::Operand::Kind::List;
  if ((isList ? values.list.size() : 1) != count)
    return false;
  bool wide = false;
  for (size_t part = 0; part < count; ++part) {
    const ptx::Operand &value = isList ? values.list[part] : values;
    wide |= sizeOf(*type) == 8 || d.isWide(value);
    i.list.push_back(IsLoad ? d.destination(value, *type, /*wider=*/true)
                            : d.source(value, *type, /*wider=*/true));
  }
  if (wide)
    i.flags |= wideRegisters;
  i.run = IsLoad ? &load : &store;
  return true;
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

template <auto F, class T>
void atomic(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  forEachLane(lanes, [&](unsigned lane) {
    Access access{i.space, addressIn(warp, i, lane), sizeof(T),
                  AccessKind::Atomic};
    uint8_t *data =
        machine.failed ? nullptr : machine.access(warp, lane, access);
    if (!data)
      return;
    T old;
    memcpy(&old, data, sizeof(T));
    T operand = get<T>(warp, i.b, lane);
    T third = i.c == none ? T{} : get<T>(warp, i.c, lane);
    T result = F(old, operand, third);
    memcpy(data, &result, sizeof(T));
    if (i.flags & returnsOld)
      warp.at<Slot<T>>(i.d)[lane] = pack<T>(old);
    Synchronisation &location = machine.synchronisation(warp, access);
    machine.acquire(warp, lane, location, i.flags & acquires);
    machine.release(warp, lane, location, i.flags & releases,
                    /*replaces=*/false);
  });
}

template <auto F, class... Ts>
Run atomicFor(Type type) {
  return forType<Ts...>(type, []<class T>() -> Run { return &atomic<F, T>; });
}

constexpr auto added = [](auto a, auto b, auto) {
  using T = decltype(a);
  if constexpr (std::is_floating_point_v<T>)
    return T(a + b);
  else if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else {
    using H = decltype(a.low);
    return T{H::from(double(float(a.low)) + double(float(b.low))),
             H::from(double(float(a.high)) + double(float(b.high)))};
  }
};
constexpr auto least = [](auto a, auto b, auto) { return std::min(a, b); };
constexpr auto most = [](auto a, auto b, auto) { return std::max(a, b); };
constexpr auto both = [](auto a, auto b, auto) { return decltype(a)(a & b); };
constexpr auto either = [](auto a, auto b, auto) { return decltype(a)(a | b); };
constexpr auto differing = [](auto a, auto b, auto) {
  return decltype(a)(a ^ b);
};
constexpr auto exchanged = [](auto, auto b, auto) { return b; };
constexpr auto compared = [](auto a, auto b, auto c) { return a == b ? c : a; };
constexpr auto increased = [](auto a, auto b, auto) {
  return a >= b ? 0 : a + 1;
};
constexpr auto decreased = [](auto a, auto b, auto) {
  return a == 0 || a > b ? b : a - 1;
};

template <bool Returns>
bool atomicOf(Decoder &d) {
  Instruction &i = d.instruction;
  i.space = *takeSpace(d);
  d.setOpcode((Returns ? "atom" : "red") + std::string(name(i.space)));
  if (d.take("acq_rel"))
    i.flags |= acquires | releases;
  else if (d.take("acquire"))
    i.flags |= acquires;
  else if (d.take("release"))
    i.flags |= releases;
  else
    d.take("relaxed");
  d.takeOneOf({"cta", "cluster", "gpu", "sys"});
  int which = d.takeOneOf(
      {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  d.take("noftz");
  auto type = d.takeType();
  if (!type || which < 0)
    return false;
  switch (which) {
  case 0:
    i.run = atomicFor<added, uint32_t, int32_t, uint64_t, float, double,
                      Two<F16>, Two<BF16>>(*type);
    break;
  case 1:
    i.run = atomicFor<least, uint32_t, int32_t, uint64_t, int64_t>(*type);
    break;
  case 2:
    i.run = atomicFor<most, uint32_t, int32_t, uint64_t, int64_t>(*type);
    break;
  case 3:
    i.run = atomicFor<both, uint32_t, uint64_t>(*type);
    break;
  case 4:
    i.run = atomicFor<either, uint32_t, uint64_t>(*type);
    break;
  case 5:
    i.run = atomicFor<differing, uint32_t, uint64_t>(*type);
    break;
  case 6:
    i.run = atomicFor<exchanged, uint32_t, uint64_t>(*type);
    break;
  case 7:
    i.run = atomicFor<compared, uint32_t, uint64_t>(*type);
    break;
  case 8:
    i.run = atomicFor<increased, uint32_t>(*type);
    break;
  default:
    i.run = atomicFor<decreased, uint32_t>(*type);
    break;
  }
  size_t first = Returns ? 1 : 0, wanted = first + (which == 7 ? 3 : 2);
  if (!i.run || d.operandCount() != wanted)
    return false;
  if (Returns) {
    i.d = d.destination(0, *type);
    i.flags |= returnsOld;
  }
  d.address(first);
  i.b = d.source(first + 1, *type);
  if (which == 7)
    i.c = d.source(first + 2, *type);
  return true;
}

} // namespace

//===----------------------------------------------------------------------===//
// What strong accesses order
//===----------------------------------------------------------------------===//

Synchronisation &Machine::synchronisation(Warp &warp, const Access &access) {
  uint64_t address = access.address;
  bool isShared = access.space == Space::Shared;
  if (access.space == Space::Generic && address >= sharedWindow) {
    isShared = true;
    address -= sharedWindow;
  }
  return isShared ? warp.block.atomics[uint32_t(address)] : atomics[address];
}

void Machine::acquire(Warp &warp, unsigned lane, const Synchronisation &from,
                      bool now) {
  if (from.clock.empty())
    return;
  Thread &thread = warp.block.threads[warp.thread(lane)];
  if (!now && !thread.acquired)
    thread.acquired = std::make_unique<Clock>();
  (now ? thread.clock : *thread.acquired)
      .join(from.clock, from.block, warp.block.index);
}

void Machine::release(Warp &warp, unsigned lane, Synchronisation &to, bool now,
                      bool replaces) {
  Thread &thread = warp.block.threads[warp.thread(lane)];
  if (replaces || to.clock.empty()) {
    to.clock = Clock();
    to.block = warp.block.index;
  }
  if (now || thread.released)
    to.clock.join(now ? thread.clock : *thread.released, warp.block.index,
                  to.block);
  if (now)
    ++thread.clock.own[warp.thread(lane)];
}

void Machine::fence(Warp &warp, unsigned lane) {
  Thread &thread = warp.block.threads[warp.thread(lane)];
  if (thread.acquired) {
    thread.clock.join(*thread.acquired, warp.block.index, warp.block.index);
    thread.acquired.reset();
  }
  if (!thread.released)
    thread.released = std::make_unique<Clock>();
  thread.released->assign(thread.clock);
  ++thread.clock.own[warp.thread(lane)];
}

void addLoadsAndStores(Table &table) {
  table["ld"] = &loadOrStore<true>;
  table["ldu"] = &loadOrStore<true>;
  table["st"] = &loadOrStore<false>;
  table["atom"] = &atomicOf<true>;
  table["red"] = &atomicOf<false>;
}

} // namespace burst::emulator
