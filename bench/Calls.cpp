//===- Calls.cpp - what a call costs beside its kernels -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program is called through the runtime as ever, but each of its launches
// runs a kernel that keeps the time around the true one. What a launch computes
// takes as long as the thread that computed most of it did so; what a call
// takes beyond the sum over its launches is its overhead.
//
//===----------------------------------------------------------------------===//
#include "bench/Calls.h"

#include "jit/Loader.h"

#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <map>
#include <thread>

using namespace mlir;
using namespace burst;
using namespace burst::bench;

//===----------------------------------------------------------------------===//
// A program that keeps the time of its kernels
//===----------------------------------------------------------------------===//

namespace {

/// Images have no context: of the one program that runs.
struct Clocked {
  void (*run)(burst_rank *, const burst_table *, void *const *) = nullptr;
  const burst_table *table = nullptr;
  double computed = 0; ///< seconds, by kernels
  int64_t launches = 0;
};
Clocked clocked;

/// The arguments of a launch of the clock.
struct TimedLaunch {
  const burst_kernel *kernel;
  const void *arguments;
  std::vector<std::pair<std::thread::id, double>> tasks;
};

} // namespace

static void runClocked(const void *arguments, int64_t task) {
  TimedLaunch &launch = **static_cast<TimedLaunch *const *>(arguments);
  double begin = now();
  launch.kernel->run(launch.arguments, task);
  launch.tasks[task] = {std::this_thread::get_id(), now() - begin};
}

static void launchClocked(burst_rank *rank, const burst_kernel *kernel,
                          const void *arguments, int64_t tasks,
                          const int32_t *order, int64_t numUses,
                          const burst_use *uses) {
  TimedLaunch launch{kernel, arguments, {}};
  launch.tasks.resize(tasks);
  TimedLaunch *argument = &launch;
  burst_kernel clock{kernel->name, runClocked};
  clocked.table->launch(rank, &clock, static_cast<const void *>(&argument),
                        tasks, order, numUses, uses);
  std::map<std::thread::id, double> threads;
  double longest = 0;
  for (auto [thread, seconds] : launch.tasks)
    longest = std::max(longest, threads[thread] += seconds);
  clocked.computed += longest;
  ++clocked.launches;
}

static void runProgram(burst_rank *rank, const burst_table *table,
                       void *const *values) {
  burst_table own = *table;
  own.launch = launchClocked;
  clocked.table = table;
  clocked.run(rank, &own, values);
}

namespace {
/// What stands behind such a program.
struct LoadedImage {
  std::unique_ptr<jit::Code> code;
  burst_image image;
};
} // namespace

static ProgramRef compileClocked(const std::string &text,
                                 const cpu::Target &target) {
  Lowered lowered(text, "attention");
  auto objects = cpu::compileToObjects(*lowered.module, "attention", target,
                                       host::Parts::Several);
  if (failed(objects))
    fail("cannot compile:\n" + text);
  auto code = jit::load(std::move(*objects));
  if (!code)
    fail("cannot load: " + toString(code.takeError()));
  auto made = std::make_unique<LoadedImage>();
  made->code = std::move(*code);
  made->image = *made->code->image();
  clocked.run = made->image.run;
  made->image.run = runProgram;
  burst_program *program = nullptr;
  auto release = [](void *context) {
    delete static_cast<LoadedImage *>(context);
  };
  LoadedImage *context = made.release();
  check(burst_program_from_image(&context->image, release, context, &program));
  return ProgramRef(program);
}

//===----------------------------------------------------------------------===//
// Cells
//===----------------------------------------------------------------------===//

static constexpr int64_t sequence = 64, dim = 64;

static std::string text(int64_t heads) {
  return llvm::formatv(
      "shard.grid @cp(shape = 1)\n"
      "!t = tensor<1x?x{0}x{1}xf32>\n"
      "!l = tensor<1x{0}x?xf32>\n"
      "func.func @attention(%q: !t, %k: !t, %v: !t) -> (!t, !l) {{\n"
      "  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>\n"
      "      : (!t, !t, !t) -> (!t, !l)\n"
      "  return %o, %lse : !t, !l\n"
      "}\n",
      heads, dim);
}

/// Seconds beside the kernels and in them.
static std::pair<double, double> call(Bound &program) {
  clocked.computed = 0;
  clocked.launches = 0;
  double all = program.run();
  return {all - clocked.computed, clocked.computed};
}

static void measure(Table &table, const std::string &name, Bound &program) {
  for (int i = 0; i < 200; ++i)
    call(program);
  std::vector<double> overheads, kernels, paused;
  for (int i = 0; i < 2000; ++i) {
    auto [overhead, kernel] = call(program);
    overheads.push_back(1e6 * overhead);
    kernels.push_back(1e6 * kernel);
  }
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    paused.push_back(1e6 * call(program).first);
  }
  double overhead = median(overheads);
  table.add({name,
             {{"us beside kernels", overhead},
              {"us in kernels", median(kernels)},
              {"launches", static_cast<double>(clocked.launches)},
              {"us beside kernels after 1 ms", median(paused)}},
             verdict("20 us", overhead < 20)});
}

void burst::bench::measureCalls(Table &table, int64_t threads,
                                const cpu::Target &target,
                                const std::string &only) {
  for (int64_t heads : {1, 8})
    for (bool isPinned : {true, false}) {
      std::string name = llvm::formatv("call S={0} H={1} D={2}{3}", sequence,
                                       heads, dim, isPinned ? " pinned" : "");
      if (name.find(only) == std::string::npos)
        continue;
      Device device(threads, isPinned);
      Bound program(compileClocked(text(heads), target));
      program.bind(sequence, device.handle);
      measure(table, name, program);
      if (isPinned || heads > 1)
        continue;
      // One program, sizes as they come: nothing is compiled again.
      program.bind(2 * sequence, device.handle);
      table.add({name + ", then S=128", {{"us", 1e6 * program.run()}}, ""});
    }
}
