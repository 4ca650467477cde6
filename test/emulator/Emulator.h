//===- Emulator.h - Runs PTX on the host ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executes the PTX text of a kernel on the host, thread by thread, and proves
// of that execution what a GPU would not tell: every access lies within its
// buffer, is aligned, reads what was written, and is ordered (in the sense of
// happens-before) with each access it conflicts with; every collective is
// reached by the lanes it names; every barrier completes.
//
//   Module module;
//   if (auto failure = module.parse(text)) ...
//   Memory memory;
//   uint64_t x = memory.allocate(bytes, "x");
//   memory.write(x, host, bytes);
//   Arguments args;
//   args.add(x).add(length);
//   Outcome outcome = module.launch("kernel", {grid}, {128}, shared, args,
//   memory);
//
// The machine is deterministic: the same options give the same schedule. Its
// clocks, memory model and collectives are described in Machine.h and Shadow.h.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_EMULATOR_EMULATOR_H
#define BURST_TEST_EMULATOR_EMULATOR_H

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace burst::emulator {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t volume() const { return uint64_t(x) * y * z; }
};

enum class FailureKind : uint8_t {
  Syntax,        // the text is not what this parser reads
  UnknownOpcode, // an opcode, or a modifier of one, that the machine lacks
  BadLaunch,     // no such kernel, arguments or sizes that do not fit
  OutOfBounds,
  Misaligned,
  Uninitialised, // a read of bytes that nothing has written
  ReadOnly,      // a write to a buffer that the host declared read-only
  Race,
  Divergence, // a collective that not all lanes it names reach together
  Barrier,    // a barrier used with two thread counts, or a bad count
  Deadlock,   // no thread can go on
  Budget,     // more instructions than Options::budget
  Arithmetic, // an integer division by zero
  Protocol,   // an asynchronous instruction used against its rules
  Trap,
};

std::string_view name(FailureKind kind);

/// One access to memory, or one place in the program: who, and where.
struct Place {
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
  unsigned line = 0;       // of the PTX text, from 1
  unsigned sourceLine = 0; // by .loc, or 0
  std::string what;        // "cp.async write", "read"
};

struct Failure {
  FailureKind kind = FailureKind::Syntax;
  std::string message; // a sentence without the place
  Place place;
  std::string text;                // the PTX statement
  std::string buffer;              // name of the memory, if one is concerned
  uint64_t address = 0;            // offset in that memory
  std::optional<Place> other = {}; // the access that it conflicts with
  std::string str() const;
};

/// Global memory: buffers at addresses that are the same in each run, poisoned
/// until written, with gaps in between that nothing may touch. Threads may make
/// and free buffers while others use theirs.
class Memory {
public:
  enum class Access : uint8_t { ReadWrite, ReadOnly };

  /// An address aligned as a GPU's allocations are, to 256 bytes.
  uint64_t allocate(size_t bytes, std::string name,
                    Access access = Access::ReadWrite);
  void free(uint64_t address);
  /// The range must lie within one buffer. Writing initialises.
  void write(uint64_t address, const void *data, size_t bytes);
  void read(uint64_t address, void *data, size_t bytes) const;
  bool initialised(uint64_t address, size_t bytes) const;

  template <class T>
  uint64_t add(const std::vector<T> &values, std::string name,
               Access access = Access::ReadWrite) {
    uint64_t address =
        allocate(values.size() * sizeof(T), std::move(name), access);
    write(address, values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> get(uint64_t address, size_t count) const {
    std::vector<T> values(count);
    read(address, values.data(), count * sizeof(T));
    return values;
  }

  struct Buffer {
    uint64_t base = 0;
    std::string name;
    Access access = Access::ReadWrite;
    size_t size = 0;
    std::vector<uint8_t> data;
    std::vector<uint8_t> written; // of each 4 bytes a mask
  };
  /// The buffer with this address in it, or null.
  Buffer *find(uint64_t address);
  const Buffer *find(uint64_t address) const;

private:
  mutable std::shared_mutex mutex;    // of the map and the next base
  std::map<uint64_t, Buffer> buffers; // by their base
  uint64_t nextBase = 0x7'0000'0000;
};

/// The parameters of a kernel, laid out as the driver does.
class Arguments {
public:
  template <class T>
  Arguments &add(const T &value, size_t alignment = sizeof(T)) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    size_t at = data.size();
    data.resize(at + sizeof(T));
    memcpy(data.data() + at, &value, sizeof(T));
    return *this;
  }
  std::vector<uint8_t> data;
};

/// What a kernel takes for a CUtensorMap: of 128 bytes, as that one.
struct alignas(64) TensorMap {
  static constexpr uint32_t mark = 0x70614d54;
  uint32_t magic = mark;
  uint8_t rank = 0, elementBytes = 2;
  uint8_t swizzle = 0; // 0 none, 1 of 32 bytes, 2 of 64, 3 of 128
  uint64_t address = 0;
  uint32_t sizes[5] = {1, 1, 1, 1, 1}; // the innermost first
  uint64_t strides[4] = {};            // in bytes, of all but the innermost
  uint16_t box[5] = {1, 1, 1, 1, 1};
  uint8_t unused[18] = {};
};
static_assert(sizeof(TensorMap) == 128);

/// When asynchronous copies move their data.
enum class Lateness : uint8_t {
  Late,   // at the instruction that waits for them
  Early,  // at the instruction that starts them
  Random, // somewhere between, by the seed
};

struct Options {
  uint64_t seed =
      0; // 0 runs the warps in turn; others in an order of their own
  Lateness lateness = Lateness::Late;
  unsigned quantum = 256;          // instructions of a warp before another's
  unsigned residentBlocks = 8;     // at one time
  uint64_t budget = 1'000'000'000; // instructions of all warps
  bool races = true;               // whether to order accesses
  bool footprint = false;          // whether to fill Outcome::touched
};

/// Bank conflicts of one instruction: the passes over shared memory beyond the
/// fewest that its width needs.
struct BankConflicts {
  unsigned line = 0, sourceLine = 0;
  std::string text;
  uint64_t accesses = 0; // by warps
  uint64_t extra = 0;
};

struct Counters {
  uint64_t instructions = 0;                  // of warps
  std::map<std::string, uint64_t> byOpcode;   // "add", "mma", "ld.global"
  uint64_t globalRead = 0, globalWritten = 0; // bytes
  uint64_t sharedRead = 0, sharedWritten = 0; // bytes
  uint64_t bankConflicts = 0;                 // sum of all extra passes
  std::vector<BankConflicts> conflicts;       // only lines that have some
  uint64_t count(const std::string &opcode) const {
    auto found = byOpcode.find(opcode);
    return found == byOpcode.end() ? 0 : found->second;
  }
};

/// What a launch touched of a buffer.
struct Touched {
  uint64_t base = 0;
  std::vector<uint8_t> masks; // of each 4 bytes: the bytes read, from bit 4 on
                              // the bytes written
};

struct Outcome {
  std::optional<Failure> failure;
  Counters counters;
  std::vector<Touched> touched; // by rising base
  bool ok() const { return !failure; }
};

struct Program;

/// What a launch must fit, of a kernel.
struct KernelShape {
  std::vector<std::pair<unsigned, unsigned>> parameters; // offset, size
  unsigned staticShared = 0;                             // bytes of a block
  unsigned local = 0;                                    // bytes of a thread
};

/// PTX text, decoded.
class Module {
public:
  Module();
  ~Module();
  Module(Module &&) noexcept;
  Module &operator=(Module &&) noexcept;

  /// Returns why the text cannot be run. Each instruction of each kernel is
  /// decoded: what the machine lacks is found here.
  std::optional<Failure> parse(std::string_view ptx);

  /// Of a kernel that the text has.
  std::optional<KernelShape> shape(const std::string &kernel) const;

  /// Runs the grid. What it wrote is in memory, also after a failure.
  Outcome launch(const std::string &kernel, Dim3 grid, Dim3 block,
                 size_t sharedBytes, const Arguments &arguments, Memory &memory,
                 const Options &options = {}) const;

private:
  std::map<std::string, std::unique_ptr<Program>> programs;
};

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_EMULATOR_H
