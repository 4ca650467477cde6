//===- Shadow.h - Which accesses are ordered ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Happens-before by vector clocks. An agent is a thread or what works for it
// asynchronously (its copies). A clock knows of each agent of its own block how
// much of it is ordered before; of other blocks it knows what was acquired from
// them, which is nothing in most kernels.
//
// A cell shadows 4 bytes: the last write, and the reads since (FastTrack keeps
// one where they are ordered; here the list grows only where they are not).
// Accesses conflict where their byte masks meet.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_EMULATOR_SHADOW_H
#define BURST_TEST_EMULATOR_SHADOW_H

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace burst::emulator {

struct Clock {
  std::vector<uint32_t> own; // by agent of the block
  std::unique_ptr<std::map<uint32_t, std::vector<uint32_t>>> others; // by block

  void join(const Clock &clock, uint32_t clockBlock, uint32_t block);
  void assign(const Clock &clock);
  bool empty() const { return own.empty(); }
};

/// Strong accesses do not race with each other.
enum class AccessKind : uint8_t { Read, Write, StrongWrite, Atomic };
inline bool isStrong(AccessKind kind) {
  return kind >= AccessKind::StrongWrite;
}

/// An access as a cell remembers it.
struct Epoch {
  uint32_t block = 0;
  uint16_t agent = 0;
  uint8_t mask = 0; // of bytes; 0 means no access
  AccessKind kind = AccessKind::Read;
  uint32_t clock = 0;
  uint32_t pc = 0;
};

struct Cell {
  Epoch write, read;
  uint32_t more = 0;   // list of further unordered accesses, 0 for none
  uint8_t written = 0; // mask of bytes that are initialised
};

class Shadow {
public:
  explicit Shadow(size_t bytes = 0) : cells((bytes + 3) / 4), lists(1) {}
  std::vector<Cell> cells;

  /// Records the access in the cell. Returns the earlier access that it races
  /// with, or null. The clock is that of the accessing thread, in its block.
  const Epoch *access(Cell &cell, const Epoch &epoch, const Clock &clock) {
    // The usual cell: at most one write and one read, which this access follows
    // and covers. What an atomic access follows must stay: the next one may
    // not.
    if (cell.more == 0) {
      if (conflicts(cell.write, epoch, clock))
        return &cell.write;
      if (epoch.kind == AccessKind::Read) {
        if (replaces(cell.read, epoch, clock)) {
          cell.read = epoch;
          return nullptr;
        }
      } else {
        if (conflicts(cell.read, epoch, clock))
          return &cell.read;
        bool keeps = isStrong(epoch.kind);
        if (replaces(cell.write, epoch, clock) &&
            (keeps ? cell.write.mask == 0 || isStrong(cell.write.kind)
                   : replaces(cell.read, epoch, clock))) {
          cell.write = epoch;
          if (!keeps)
            cell.read.mask = 0;
          return nullptr;
        }
      }
    }
    return accessMany(cell, epoch, clock);
  }

private:
  std::vector<std::vector<Epoch>> lists; // the first is unused
  std::vector<uint32_t> unused;

  static bool ordered(const Epoch &before, const Epoch &now,
                      const Clock &clock) {
    if (before.mask == 0)
      return true;
    if (before.block == now.block)
      return clock.own[before.agent] >= before.clock;
    if (!clock.others)
      return false;
    auto found = clock.others->find(before.block);
    return found != clock.others->end() &&
           found->second[before.agent] >= before.clock;
  }
  static bool conflicts(const Epoch &before, const Epoch &now,
                        const Clock &clock) {
    if ((before.mask & now.mask) == 0 ||
        (before.kind == AccessKind::Read && now.kind == AccessKind::Read) ||
        (isStrong(before.kind) && isStrong(now.kind)))
      return false;
    return !ordered(before, now, clock);
  }
  static bool replaces(const Epoch &before, const Epoch &now,
                       const Clock &clock) {
    return (before.mask & ~now.mask) == 0 && ordered(before, now, clock);
  }
  const Epoch *accessMany(Cell &cell, const Epoch &epoch, const Clock &clock);
};

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_SHADOW_H
