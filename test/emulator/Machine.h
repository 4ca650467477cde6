//===- Machine.h - Blocks, warps and decoded instructions -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel is decoded once into instructions that hold a function and offsets
// into the registers. Registers belong to a warp: one register is 32 slots, of
// 4 bytes, or of 8 for 64-bit types; a predicate is one word, a bit for each
// lane. Constants, addresses of variables and special registers are registers
// that are filled before the first instruction, so that an operand is always an
// offset.
//
// A warp runs the lanes at its smallest program counter together. A collective
// waits until all lanes that it names are at it; where they cannot come it is a
// divergence. Warps run in turn, for a quantum of instructions each.
//
// Opcodes live in files of their own: each has a function that adds its
// decoders to the table (Decode.cpp lists them).
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_EMULATOR_MACHINE_H
#define BURST_TEST_EMULATOR_MACHINE_H

#include "test/emulator/Emulator.h"
#include "test/emulator/Shadow.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <random>

namespace burst::emulator {

class Machine;
struct Block;
struct Warp;
struct Instruction;

using Lanes = uint32_t; // a bit for each lane of a warp
using Run = void (*)(Warp &, const Instruction &, Lanes);

inline constexpr uint32_t none = ~0U;

enum class Space : uint8_t { Generic, Global, Shared, Local, Param };

struct Instruction {
  Run run = nullptr;
  // Offsets of registers into the registers of a warp; their meaning is the
  // opcode's.
  uint32_t d = none, a = none, b = none, c = none, e = none;
  uint32_t guard = none;
  Lanes guardFlip = 0; // all ones for @!p
  int64_t value = 0;   // an offset, a branch target, a count
  Space space = Space::Generic;
  uint8_t bytes = 0;          // of one element
  uint8_t flags = 0;          // the opcode's own
  std::vector<uint32_t> list; // further registers
};

/// What Failure and Counters say of an instruction.
struct SourceLine {
  unsigned line = 0, sourceLine = 0;
  std::string text;
  std::string opcode; // with the space of a load or store
};

/// A register that is filled before the kernel starts.
struct Preset {
  enum class Kind : uint8_t {
    Value,
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    Laneid,
    Warpid,
    Nwarpid,
    LanemaskEq,
    LanemaskLt,
    LanemaskLe,
    LanemaskGt,
    LanemaskGe,
    DynamicSharedSize,
    TotalSharedSize,
  };
  Kind kind = Kind::Value;
  uint32_t offset = 0;
  bool isWide = false;
  uint64_t value = 0;
};

struct Program {
  std::string name;
  std::vector<Instruction> code;
  std::vector<SourceLine> source; // for each instruction
  std::vector<Preset> presets;
  uint32_t registerBytes = 0;
  std::vector<std::pair<unsigned, unsigned>> parameters; // offset, size
  uint32_t staticShared = 0; // offset at which dynamic shared memory begins
  uint32_t localBytes = 0;
  bool hasBulk = false; // bulk copies, mbarriers or wgmma
};

// Shared memory begins here, as on devices where the system keeps the first
// kilobyte of a block: an address of 0 is a fault.
inline constexpr uint32_t sharedBase = 1024;
// Where generic addresses show the memory of a block, of a thread and the
// parameters.
inline constexpr uint64_t sharedWindow = 1ULL << 56;
inline constexpr uint64_t localWindow = 1ULL << 57;
inline constexpr uint64_t paramWindow = 1ULL << 58;

/// The slot that holds a T.
template <class T>
using Slot = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
template <class T>
T unpack(Slot<T> slot) {
  return std::bit_cast<T>(BitsOf<T>(slot));
}
template <class T>
Slot<T> pack(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

/// An asynchronous copy of up to 16 bytes that has not landed.
struct Copy {
  const uint8_t *from = nullptr;
  uint8_t *to = nullptr;
  uint8_t bytes = 0, taken = 0; // the rest is zeros
  void land() {
    if (taken)
      memcpy(to, from, taken);
    memset(to + taken, 0, bytes - taken);
  }
};

/// The copies of one thread, by group; the last is open.
struct Copies {
  std::deque<std::vector<Copy>> groups;
  uint32_t done = 0; // groups that a wait has covered
};

/// What a thread knows, and what its fences make of it.
struct Thread {
  Clock clock;
  // Released by a relaxed write after a fence; acquired at the next fence.
  std::unique_ptr<Clock> released, acquired;
  Copies copies;
  Copies bulkStores;
  std::vector<uint32_t> proxyFences; // clocks of fence.proxy.async
};

/// The clock that a location passes from releases to acquires.
struct Synchronisation {
  Clock clock;
  uint32_t block = 0;
};

struct Barrier {
  uint32_t expected = 0, arrived = 0;
  uint32_t pc = 0; // of the first arrival
  Clock clock;
  std::vector<std::pair<Warp *, Lanes>> waiting;
};

/// A mbarrier. Each phase ends when all arrivals and all announced bytes have
/// come; what arrivals and copies released, a wait for the phase acquires.
struct Mbarrier {
  uint32_t count = 0, pending = 0, phase = 0;
  int64_t bytes = 0;   // announced and not yet landed
  uint32_t issued = 0; // bulk copies, which land in order
  uint16_t agent = 0;
  Clock accumulated, released;
  std::vector<std::pair<Warp *, Lanes>> waiting;
};

/// A bulk copy to shared memory that has not landed.
struct BulkCopy {
  Block *block = nullptr;
  uint32_t barrier = 0; // its address
  uint32_t bytes = 0, sequence = 0;
  std::vector<Copy> parts;
};

/// A warp's share of a wgmma.
struct WarpgroupProduct {
  const Instruction *instruction = nullptr;
  uint64_t a = 0, b = 0; // descriptors
  bool accumulates = false;
};

struct Warp {
  Machine &machine;
  Block &block;
  const Program &program;
  uint32_t index = 0;
  Lanes all = 0;        // lanes that exist
  Lanes live = 0;       // lanes that have not returned
  Lanes blocked = 0;    // at a barrier
  Lanes collecting = 0; // at a collective that lacks lanes
  Lanes active = 0;     // the lanes that run, at pc
  uint32_t pc = 0;
  Lanes others = 0;     // that could run as well
  uint32_t next = none; // the smallest pc of those beyond pc
  uint32_t turns = 0;   // backward branches of the same group
  bool queued = false;  // in the machine's queue
  std::array<uint32_t, 32> lanePc{};
  std::array<uint32_t, 32> arrivedPc{}; // where a blocked lane waits
  std::vector<uint8_t> registers;
  std::vector<uint8_t> local; // localBytes for each lane
  // Groups of wgmma, the last of them open; what a wait has covered.
  std::deque<std::vector<WarpgroupProduct>> products{1};
  uint32_t productsDone = 0;
  bool productsFenced = false;

  Warp(Machine &machine, Block &block, const Program &program)
      : machine(machine), block(block), program(program) {}

  template <class S>
  S *at(uint32_t offset) {
    return reinterpret_cast<S *>(registers.data() + offset);
  }
  Lanes &predicate(uint32_t offset) { return *at<Lanes>(offset); }
  uint32_t thread(unsigned lane) const { return index * 32 + lane; }
  const Instruction &current() const;
  uint32_t currentPc() const { return pc - 1; }

  /// Runs instructions until the quantum ends, or no lane can run.
  void run(uint64_t &steps);
  /// Chooses the lanes that run next. Call after any change of who can run.
  void regroup(bool rotate = false);
  /// Ends the active group: each of its lanes is at the current pc.
  void split();
  /// Whether all lanes of the mask are at this instruction now, and the lanes
  /// to run it for. If not, the given lanes wait for the others.
  bool gather(Lanes &lanes, Lanes mask);
  /// Like gather for an instruction that all lanes of the warp must reach.
  bool gatherAll(Lanes &lanes) { return gather(lanes, all); }
  void jump(Lanes lanes, uint32_t target);
  void finish(Lanes lanes);
  /// Blocks lanes until unblock; they go on after the current instruction.
  void park(Lanes lanes);
  void unblock(Lanes lanes);
};

struct Block {
  Dim3 id;
  uint32_t index = 0;          // in the grid
  std::vector<uint8_t> shared; // from sharedBase
  Shadow shadow;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Thread> threads;
  std::array<Barrier, 16> barriers;
  std::map<uint32_t, Synchronisation> atomics; // by shared address
  std::map<uint32_t, Mbarrier> mbarriers;      // by shared address
  uint32_t liveThreads = 0;
};

/// One access of one lane.
struct Access {
  Space space = Space::Generic;
  uint64_t address = 0;
  uint32_t bytes = 0;
  AccessKind kind = AccessKind::Read;
  uint32_t alignment = 0;     // of the address, or 0 for that of bytes
  bool isAsyncProxy = false;  // must be fenced from what threads wrote
  bool takesAnything = false; // reads what nobody wrote, too: it is 0xff
};

class Machine {
public:
  Machine(const Program &program, Dim3 grid, Dim3 blockSize, size_t sharedBytes,
          const Arguments &arguments, Memory &memory, const Options &options);
  Outcome run();

  const Program &program;
  const Dim3 grid, blockSize;
  const uint32_t threadsPerBlock;
  const uint32_t sharedBytes; // static and dynamic, with sharedBase
  const Arguments &arguments;
  Memory &memory;
  const Options &options;
  std::mt19937_64 random;
  Outcome outcome;
  bool failed = false;
  std::vector<uint64_t> executed;  // by instruction
  std::vector<uint64_t> conflicts; // extra passes, by instruction

  /// Agents of a block: its threads, then the copies of each. Where the program
  /// has bulk copies, further the bulk stores of each thread, the wgmma of each
  /// warp and the bulk copies to each mbarrier.
  static constexpr uint32_t mbarrierLimit = 64;
  uint32_t agents() const {
    return program.hasBulk ? 3 * threadsPerBlock + warps() + mbarrierLimit
                           : 2 * threadsPerBlock;
  }
  uint32_t warps() const { return (threadsPerBlock + 31) / 32; }
  uint32_t copyAgent(uint32_t thread) const { return threadsPerBlock + thread; }
  uint32_t bulkAgent(uint32_t thread) const {
    return 2 * threadsPerBlock + thread;
  }
  uint32_t warpAgent(uint32_t warp) const { return 3 * threadsPerBlock + warp; }
  uint32_t mbarrierAgent(uint32_t index) const {
    return 3 * threadsPerBlock + warps() + index;
  }

  /// Says that the current instruction of the warp failed, in a lane.
  Failure &fail(FailureKind kind, Warp &warp, unsigned lane,
                std::string message);
  Failure &failAt(FailureKind kind, Warp &warp, unsigned lane, uint32_t pc,
                  std::string message);
  Place place(const Block &block, uint32_t thread, uint32_t pc) const;

  /// Checks and records an access; returns where the bytes lie, or null after a
  /// failure.
  uint8_t *access(Warp &warp, unsigned lane, Access access);
  /// The same in two halves, for accesses that happen later or by other agents:
  /// where the bytes lie, in bounds and aligned ...
  uint8_t *resolve(Warp &warp, unsigned lane, Access &access,
                   Memory::Buffer *&buffer);
  /// ... and their order and initialisation.
  bool check(Warp &warp, unsigned lane, const Access &access,
             Memory::Buffer *buffer, const Epoch &epoch, const Clock &clock);
  Shadow &shadowOf(const Memory::Buffer &buffer);
  Touched &touchedOf(const Memory::Buffer &buffer);

  void arrive(Warp &warp, Lanes lanes, uint32_t id, uint32_t expected,
              bool waits);
  /// Counts the passes of a shared access over the banks: lanes in groups of
  /// `together`, each at its address.
  void countBanks(Warp &warp, Lanes lanes,
                  const std::array<uint32_t, 32> &addresses, unsigned bytes);

  /// What an atomic access passes on: from the location to the thread, and
  /// back.
  void acquire(Warp &warp, unsigned lane, const Synchronisation &from,
               bool now);
  void release(Warp &warp, unsigned lane, Synchronisation &to, bool now,
               bool replaces);
  void fence(Warp &warp, unsigned lane);
  Synchronisation &synchronisation(Warp &warp, const Access &access);

  /// Completes groups of copies of a thread until so many are left.
  void waitForCopies(Warp &warp, unsigned lane, size_t pending);

  /// Bulk copies, in the order of their issue: see BulkCopies.cpp.
  std::deque<BulkCopy> bulkCopies;
  /// Lands the oldest bulk copy of one of the barriers.
  void landBulkCopy(size_t index);
  /// Ends the phase if nothing is missing.
  void complete(Block &block, Mbarrier &barrier);
  /// Whether what a thread wrote is visible to asynchronous accesses; the clock
  /// is that of the reader.
  static bool isFenced(const Block &block, const Epoch &write,
                       const Clock &clock);

  void makeReady(Warp &warp);

private:
  std::map<uint32_t, std::unique_ptr<Block>> resident;
  std::vector<Warp *> ready;
  size_t readyFront = 0;
  std::map<uint64_t, Shadow> shadows; // of global buffers, by base
  uint64_t lastBase = 0;
  Shadow *lastShadow = nullptr;
  Memory::Buffer *lastBuffer = nullptr;
  std::map<uint64_t, Touched> touched; // by base
  Touched *lastTouched = nullptr;
  uint32_t nextBlock = 0;

  void start(uint32_t index);
  Warp *take();
  void deadlock();
  void report();

  std::map<uint64_t, Synchronisation> atomics; // by global address
};

inline const Instruction &Warp::current() const {
  return program.code[currentPc()];
}

/// Calls body(lane) for each lane of the mask.
template <class Body>
void forEachLane(Lanes lanes, Body body) {
  for (; lanes; lanes &= lanes - 1)
    body(unsigned(std::countr_zero(lanes)));
}

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_MACHINE_H
