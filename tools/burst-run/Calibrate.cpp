//===- Calibrate.cpp - what this machine can do ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank has the device for itself while its kernels are measured; ranks that
// are processes measure at the same time, since they share processors in a run,
// too.
//
//===----------------------------------------------------------------------===//
#include "tools/burst-run/Calibrate.h"

#include "jit/Frontend.h"
#include "passes/Cost/Cost.h"
#include "passes/Passes.h"
#include "support/Files.h"
#include "tools/harness/Hops.h"
#include "tools/harness/Ranks.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

using namespace mlir;
using namespace burst;

static int failCalibration(const Twine &message) {
  llvm::errs() << "burst-run: --calibrate: " << message << '\n';
  return 1;
}

static double median(std::vector<double> values) {
  llvm::sort(values);
  return values[values.size() / 2];
}

static CompiledRun howToRun(const RunOptions &options) {
  return {options.threads, options.deadline, /*checked=*/false,
          /*trace=*/"",    options.latency,  options.bandwidth};
}

/// The same, of ranks that exchange something.
static CompiledRun howToExchange(const RunOptions &options) {
  CompiledRun run = howToRun(options);
  run.transport = options.ranks ? options.ranks->transport() : nullptr;
  return run;
}

int64_t CalibratedGrid::numRanks() const {
  return ShapedType::getNumElements(shape);
}

std::optional<CalibratedGrid> CalibratedGrid::parse(StringRef text) {
  CalibratedGrid grid;
  auto [name, shape] = text.split('=');
  grid.name = name;
  SmallVector<StringRef> sizes;
  shape.split(sizes, 'x');
  for (StringRef size : sizes) {
    uint16_t number = 0;
    if (size.getAsInteger(10, number) || number == 0)
      return std::nullopt;
    grid.shape.push_back(number);
  }
  constexpr size_t maxAxes = 8;
  auto isOfName = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (name.empty() || !llvm::all_of(name, isOfName) ||
      grid.shape.size() > maxAxes)
    return std::nullopt;
  return grid;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// The attention that is measured, of one rank: full, f32, 8 heads of 128.
static constexpr int64_t positions = 1024, heads = 8, dim = 128;
static constexpr double pairs =
    static_cast<double>(heads) * positions * positions;
static constexpr double operations = 4.0 * pairs * dim;

/// How long it takes by a strategy, in the median.
static std::optional<std::string> measureAttention(const RunOptions &options,
                                                   StringRef strategy,
                                                   double &seconds) {
  std::string text = llvm::formatv(
      "shard.grid @one(shape = 1)\n"
      "!x = tensor<1x{0}x{1}x{2}xf32>\n!l = tensor<1x{1}x{0}xf32>\n"
      "func.func @attention(%q: !x, %k: !x, %v: !x) -> (!x, !l) {{\n"
      "  %o, %lse = burst.attention %q, %k, %v sequence <@one, contiguous>\n"
      "      strategy <{3}> : (!x, !x, !x) -> (!x, !l)\n"
      "  return %o, %lse : !x, !l\n"
      "}\n",
      positions, heads, dim, strategy);
  DialectRegistry registry;
  jit::registerDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context), "calibrate");
  PassManager pm(&context);
  buildRingPipeline(pm, {});
  if (!module || failed(pm.run(*module)))
    return "cannot lower the attention that is measured";
  FailureOr<ProgramRef> program = compile(
      module->lookupSymbol<func::FuncOp>("attention"), cpu::Target::host());
  if (failed(program))
    return "cannot compile the attention that is measured";

  std::vector<data::Tensor> storage;
  std::vector<burst_tensor> views;
  int64_t count = burst_program_num_parameters(program->get());
  storage.reserve(count);
  views.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    const burst_parameter *parameter =
        burst_program_parameter(program->get(), i);
    storage.push_back(data::Tensor::zeros(
        data::DType::F32,
        {parameter->sizes, parameter->sizes + parameter->rank}));
    for (size_t e = 0; e < storage.back().numel(); ++e)
      storage.back().set(e, std::sin(static_cast<double>(e)));
    views.push_back(viewOf(storage.back(), parameter->type));
  }
  std::vector<double> samples;
  std::vector<burst_counters> counters;
  constexpr int repeat = 9;
  samples.reserve(repeat);
  // The first run touches memory for the first time.
  for (int i = 0; i <= repeat; ++i) {
    if (auto error = runAll(program->get(), views, howToRun(options), counters))
      return error;
    if (i > 0)
      samples.push_back(counters[0].compute_seconds);
  }
  seconds = median(samples);
  return std::nullopt;
}

/// Operations per second of an attention, and of products with stored scores,
/// beside which a softmax reads and writes all of them.
static std::optional<std::string> measureFlops(const RunOptions &options,
                                               double memoryBandwidth,
                                               double &flops, double &stored) {
  double ofAttention = 0, ofStored = 0;
  if (auto error = measureAttention(options, "ring_kv", ofAttention))
    return error;
  if (auto error = measureAttention(options, "ring_scores", ofStored))
    return error;
  flops = operations / ofAttention;
  // No more than half, however slow the memory was meanwhile.
  double softmax =
      std::min(2 * pairs * sizeof(float) / memoryBandwidth, ofStored / 2);
  stored = operations / (ofStored - softmax);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Bytes per second that all threads of a rank copy, from and to memory that no
/// cache holds.
static double measureCopies(const RunOptions &options) {
  constexpr size_t bytes = size_t{32} << 20;
  constexpr int repeat = 9;
  size_t threads = options.threads != 0 ? options.threads
                                        : std::thread::hardware_concurrency();
  std::vector<double> seconds(repeat);
  std::vector<std::vector<char>> memory;
  memory.reserve(2 * threads);
  for (size_t i = 0; i < 2 * threads; ++i)
    memory.emplace_back(bytes, static_cast<char>(i));
  for (double &each : seconds) {
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    workers.reserve(threads);
    for (size_t i = 0; i < threads; ++i)
      workers.emplace_back([&memory, i] {
        std::memcpy(memory[2 * i].data(), memory[2 * i + 1].data(), bytes);
      });
    for (std::thread &worker : workers)
      worker.join();
    each =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }
  return static_cast<double>(bytes * threads) / median(seconds);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// As often as half a second allows. Of processes rank 0 alone gets the times:
/// they do it as often as they have agreed on.
static std::optional<std::string> timeHops(const RunOptions &options,
                                           const AxisLinks &axis, int64_t bytes,
                                           double &seconds) {
  if (options.ranks)
    return burst::timeHops(axis, bytes, /*count=*/bytes < 4096 ? 201 : 11,
                           howToExchange(options), seconds);
  CompiledRun how = howToExchange(options);
  if (auto error = burst::timeHops(axis, bytes, 1, how, seconds))
    return error;
  auto count = static_cast<int64_t>(0.5 / std::max(seconds, 1e-9));
  return burst::timeHops(axis, bytes, std::clamp<int64_t>(count, 3, 1001), how,
                         seconds);
}

/// The line through the times of a small and of a large message.
static std::optional<std::string> measureLink(const RunOptions &options,
                                              const AxisLinks &axis,
                                              Hardware &hardware) {
  constexpr int64_t smallBytes = 64, largeBytes = int64_t{8} << 20;
  double small, large;
  if (auto error = timeHops(options, axis, smallBytes, small))
    return error;
  if (auto error = timeHops(options, axis, largeBytes, large))
    return error;
  if (options.ranks && options.ranks->rank() != 0)
    return std::nullopt;
  if (large <= small)
    return llvm::formatv("cannot tell the bandwidth: {0} bytes took {1:e3} s "
                         "and {2} bytes {3:e3} s; is the machine busy?",
                         smallBytes, small, largeBytes, large)
        .str();
  hardware.bandwidth =
      static_cast<double>(largeBytes - smallBytes) / (large - small);
  hardware.latency = std::max(
      small - static_cast<double>(smallBytes) / hardware.bandwidth, 0.0);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The description
//===----------------------------------------------------------------------===//

static std::string describeLink(const Hardware &link) {
  return llvm::formatv("    \"burst.bandwidth\" = {0:e3} : f64,\n"
                       "    \"burst.latency\" = {1:e3} : f64",
                       link.bandwidth, link.latency);
}

/// How kernels on this processor compute, in f32: operands are packed first,
/// and strips of rows skip panels of keys that a mask hides. Ranks that are
/// threads share the device that was measured, and copy what they receive.
static std::string describeKernels(const RunOptions &options, double copies,
                                   double stored) {
  int64_t side = cpu::Target::host().maskedSide(sizeof(float));
  std::string text =
      llvm::formatv("    \"burst.flops_stored\" = {2:e3} : f64,\n"
                    "    \"burst.tile\" = {0:f1} : f64,\n"
                    "    \"burst.staged\" = 2.0 : f64,\n"
                    "    \"burst.memory_bandwidth\" = {1:e3} : f64",
                    static_cast<double>(side), 2 * copies, stored);
  if (!options.ranks)
    text += llvm::formatv(",\n    \"burst.copy_bandwidth\" = {0:e3} : f64,\n"
                          "    \"burst.devices\" = 1.0 : f64",
                          copies);
  return text;
}

/// With the links of the axes of a grid.
static std::string describe(const RunOptions &options,
                            const std::optional<CalibratedGrid> &grid,
                            const Hardware &hardware, double copies,
                            double stored,
                            ArrayRef<std::optional<Hardware>> links) {
  std::string how;
  if (options.threads != 0)
    how += " --threads=" + std::to_string(options.threads);
  if (grid)
    how += " --grid=" + grid->name + "=" +
           llvm::join(llvm::map_range(
                          grid->shape,
                          [](int64_t size) { return std::to_string(size); }),
                      "x");
  std::string text =
      llvm::formatv("// By burst-run --calibrate{1}: {0}\n"
                    "#machine = #dlti.target_system_spec<\n"
                    "  \"burst\" = #dlti.target_device_spec<\n{2},\n"
                    "    \"burst.flops\" = {3:e3} : f64,\n{4}>",
                    cpu::Target::host().str(), how, describeLink(hardware),
                    hardware.flops, describeKernels(options, copies, stored));
  for (auto [axis, link] : llvm::enumerate(links))
    if (link)
      text +=
          llvm::formatv(",\n  \"{0}.{1}\" = #dlti.target_device_spec<\n{2}>",
                        grid->name, axis, describeLink(*link));
  return text + ">\n";
}

/// The links of all axes that have several ranks, and in `hardware` the slower
/// of all in each respect; without a grid, of two ranks.
static std::optional<std::string>
measureLinks(const RunOptions &options,
             const std::optional<CalibratedGrid> &grid, Hardware &hardware,
             SmallVectorImpl<std::optional<Hardware>> &links) {
  if (!grid)
    return measureLink(options, {2, 2, 1}, hardware);
  int64_t stride = grid->numRanks();
  hardware.bandwidth = std::numeric_limits<double>::infinity();
  hardware.latency = 0;
  for (int64_t size : grid->shape) {
    stride /= size;
    links.emplace_back();
    if (size == 1)
      continue;
    Hardware &link = links.back().emplace();
    if (auto error =
            measureLink(options, {grid->numRanks(), size, stride}, link))
      return error;
    hardware.bandwidth = std::min(hardware.bandwidth, link.bandwidth);
    hardware.latency = std::max(hardware.latency, link.latency);
  }
  return std::nullopt;
}

int burst::calibrate(const RunOptions &options,
                     const std::optional<CalibratedGrid> &grid,
                     const std::string &path) {
  Hardware hardware;
  SmallVector<std::optional<Hardware>> links;
  double copies = measureCopies(options), stored = 0;
  if (auto error = measureFlops(options, 2 * copies, hardware.flops, stored))
    return failCalibration(*error);
  if (auto error = measureLinks(options, grid, hardware, links))
    return failCalibration(*error);
  if (options.ranks && options.ranks->rank() != 0)
    return 0;
  std::string text = describe(options, grid, hardware, copies, stored, links);
  if (path == "-")
    llvm::outs() << text;
  else if (llvm::Error error = writeFile(text, path))
    return failCalibration(llvm::toString(std::move(error)));
  return 0;
}
