//===- Bound.h - compiled programs on tensors -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_BOUND_H
#define BURST_BENCH_BOUND_H

#include "jit/Without.h"
#include "passes/Passes.h"
#include "passes/Simulation/Simulation.h"
#include "tools/harness/Compiled.h"

namespace burst::bench {

/// Ends the program with a message.
[[noreturn]] void fail(const llvm::Twine &message);
void check(burst_error *error);

/// Seconds of a clock, and of all threads on processors: others' programs do
/// not count there.
double now();
double cpuNow();

/// All dialects that programs use.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// The program of a rank from a module's text.
struct Lowered {
  /// Where there is none, `refusal` says why, or the whole tool ends.
  Lowered(const std::string &text, const std::string &entry,
          const jit::Without &without = {}, std::string *refusal = nullptr);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp program;

  /// What each rank sends and holds. Sizes are static.
  std::vector<Traffic> plan();
  /// Bytes that each rank holds at most: tensors, states, received slices, and
  /// operands that kernels for `target` pack.
  std::vector<int64_t> peaks(const cpu::Target &target);
};

struct Seconds {
  double compile = 0, lower = 0, processor = 0;
};

/// A compiled program, its shards, and a thread per rank.
class Bound {
public:
  Bound(const std::string &text, const std::string &entry,
        const cpu::Target &target);
  Bound(Lowered &lowered, const cpu::Target &target);
  explicit Bound(ProgramRef compiled) : program(std::move(compiled)) {}
  ~Bound();
  /// `ids` are the values of a parameter of i32.
  void bind(int64_t sequence, burst_device *device,
            llvm::ArrayRef<int32_t> ids = {});
  /// Makes transfers take time, without work of a processor.
  void delay(double latencySeconds, double bytesPerSecond);
  /// Seconds of one run of all ranks.
  double run();
  /// Runs one rank of several that may be processes.
  burst_error *runRank(int64_t rank, burst_device *onDevice,
                       burst_transport *transport);
  int64_t numRanks() const { return burst_program_num_ranks(program.get()); }

  /// The same as Lowered::peaks, counted in the last run.
  std::vector<int64_t> peaks() const;

  Seconds seconds;
  std::vector<burst_counters> counters;

private:
  void compile(Lowered &lowered, const cpu::Target &target);
  void unbind();

  ProgramRef program;
  burst_device *device = nullptr;
  std::vector<burst_transport *> transports;
  /// Per rank, the bytes and the tensors on them.
  std::vector<std::vector<std::vector<std::byte>>> memory;
  std::vector<std::vector<burst_tensor>> values;
  std::vector<int64_t> extents;
};

/// A pool of threads, each pinned to a processor unless it is said otherwise.
struct Device {
  explicit Device(int64_t threads, bool isPinned = true);
  ~Device() { burst_device_destroy(handle); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  burst_device *handle = nullptr;
};

} // namespace burst::bench

#endif // BURST_BENCH_BOUND_H
