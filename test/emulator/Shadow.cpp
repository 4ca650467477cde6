//===- Shadow.cpp ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Shadow.h"

#include <algorithm>

namespace burst::emulator {

static void maximum(std::vector<uint32_t> &into,
                    const std::vector<uint32_t> &from) {
  if (into.size() < from.size())
    into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

void Clock::join(const Clock &clock, uint32_t clockBlock, uint32_t block) {
  auto other = [&](uint32_t of) -> std::vector<uint32_t> & {
    if (!others)
      others = std::make_unique<std::map<uint32_t, std::vector<uint32_t>>>();
    return (*others)[of];
  };
  if (!clock.own.empty())
    maximum(clockBlock == block ? own : other(clockBlock), clock.own);
  if (clock.others)
    for (const auto &[of, clocks] : *clock.others)
      maximum(of == block ? own : other(of), clocks);
}

void Clock::assign(const Clock &clock) {
  own = clock.own;
  others = clock.others
               ? std::make_unique<std::map<uint32_t, std::vector<uint32_t>>>(
                     *clock.others)
               : nullptr;
}

const Epoch *Shadow::accessMany(Cell &cell, const Epoch &epoch,
                                const Clock &clock) {
  if (cell.more == 0) {
    if (unused.empty()) {
      cell.more = uint32_t(lists.size());
      lists.emplace_back();
    } else {
      cell.more = unused.back();
      unused.pop_back();
    }
  }
  std::vector<Epoch> &list = lists[cell.more];
  for (Epoch *inlined : {&cell.write, &cell.read}) {
    if (inlined->mask)
      list.push_back(*inlined);
    inlined->mask = 0;
  }
  for (Epoch &before : list) {
    if (conflicts(before, epoch, clock)) {
      // The caller reports it and stops: the cell need not stay in order.
      cell.write = before;
      return &cell.write;
    }
  }
  // A read hides the ordered reads before it; a write, all that it covers and
  // that is ordered before it.
  std::erase_if(list, [&](const Epoch &before) {
    bool hidden = epoch.kind == AccessKind::Write
                      ? (before.mask & ~epoch.mask) == 0
                      : isStrong(before.kind) == isStrong(epoch.kind) &&
                            before.kind != AccessKind::Write &&
                            (before.mask & ~epoch.mask) == 0;
    return hidden && ordered(before, epoch, clock);
  });
  if (list.empty()) {
    (epoch.kind == AccessKind::Read ? cell.read : cell.write) = epoch;
    unused.push_back(cell.more);
    cell.more = 0;
    return nullptr;
  }
  list.push_back(epoch);
  return nullptr;
}

} // namespace burst::emulator
