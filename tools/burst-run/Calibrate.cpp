//===- Calibrate.cpp - what this machine can do ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank is a thread of this process, as everywhere in burst-run, and has the
// device for itself while its kernels are measured.
//
//===----------------------------------------------------------------------===//
#include "tools/burst-run/Calibrate.h"

#include "jit/Frontend.h"
#include "passes/Cost/Cost.h"
#include "passes/Passes.h"
#include "support/Files.h"
#include "tools/harness/Compiled.h"

#include "burst/program.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <cmath>

using namespace mlir;
using namespace burst;

static int fail(const Twine &message) {
  llvm::errs() << "burst-run: " << message << '\n';
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

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// What one rank's attention achieves: full, f32, 8 heads of 128.
static std::optional<std::string> measureFlops(const RunOptions &options,
                                               double &flops) {
  constexpr int64_t positions = 1024, heads = 8, dim = 128;
  constexpr double operations = 4.0 * heads * positions * positions * dim;
  std::string text = llvm::formatv(
      "shard.grid @one(shape = 1)\n"
      "!x = tensor<1x{0}x{1}x{2}xf32>\n!l = tensor<1x{1}x{0}xf32>\n"
      "func.func @attention(%q: !x, %k: !x, %v: !x) -> (!x, !l) {{\n"
      "  %o, %lse = burst.attention %q, %k, %v sequence <@one, contiguous>\n"
      "      : (!x, !x, !x) -> (!x, !l)\n"
      "  return %o, %lse : !x, !l\n"
      "}\n",
      positions, heads, dim);
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
  std::vector<double> rates;
  std::vector<burst_counters> counters;
  constexpr int repeat = 9;
  rates.reserve(repeat);
  // The first run touches memory for the first time.
  for (int i = 0; i <= repeat; ++i) {
    if (auto error = runAll(program->get(), views, howToRun(options), counters))
      return error;
    if (i > 0)
      rates.push_back(operations / counters[0].compute_seconds);
  }
  flops = median(rates);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

namespace {
/// A tensor of one dimension as a program gets it, see burst_image.
template <typename T>
struct Vector {
  T *base, *data;
  int64_t offset, size, stride;
};
} // namespace

/// The program of both ranks: sends a message to the other one and receives its
/// message, as a hop of a ring does, and writes how long each time took.
static void exchange(burst_rank *rank, const burst_table *table,
                     void *const *values) {
  auto &message = *static_cast<const Vector<char> *>(values[0]);
  auto &seconds = *static_cast<const Vector<double> *>(values[1]);
  auto *received = static_cast<char *>(
      table->allocate(rank, message.size, BURST_MEMORY_SLICE));
  int64_t other = 1 - table->index(rank);
  auto pieceOf = [&](char *data) {
    return burst_piece{data, 1, {1, 1, 1, message.size}, {0, 0, 0, 1}};
  };
  burst_piece out = pieceOf(message.data), in = pieceOf(received);
  for (int64_t i = 0; i < seconds.size; ++i) {
    auto begin = std::chrono::steady_clock::now();
    const burst_message messages[] = {{other, /*receives=*/0, 1, &out},
                                      {other, /*receives=*/1, 1, &in}};
    const burst_messages list = {2, BURST_POINT_TO_POINT, messages, {}};
    table->wait(rank, table->start(rank, 0, &list));
    seconds.data[i] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }
  table->release(rank, received);
}

/// Nothing is sharded.
static void segments(int32_t, int64_t, int64_t, burst_segment *) {}

/// The median time of `count` hops of two ranks with messages of `bytes`.
static std::optional<std::string> timeHops(const RunOptions &options,
                                           int64_t bytes, int64_t count,
                                           double &seconds) {
  static constexpr int64_t open[] = {-1};
  static constexpr burst_parameter parameters[] = {
      {"message", BURST_TENSOR, BURST_I8, 1, 0, open, -1, 0, -1, -1, 0, 0, 0,
       nullptr},
      {"seconds", BURST_TENSOR, BURST_F64, 1, 1, open, -1, 0, -1, -1, 0, 0, 0,
       nullptr}};
  static constexpr burst_image image = {sizeof(burst_image),
                                        BURST_ABI_VERSION,
                                        "exchange",
                                        "any",
                                        /*num_ranks=*/2,
                                        /*num_parameters=*/2,
                                        /*num_arguments=*/1,
                                        parameters,
                                        segments,
                                        exchange,
                                        /*hash=*/1,
                                        0,
                                        0,
                                        nullptr,
                                        /*features=*/nullptr,
                                        BURST_VERSION_MAJOR,
                                        BURST_VERSION_MINOR,
                                        0,
                                        nullptr};
  burst_program *loaded = nullptr;
  if (burst_error *error =
          burst_program_from_image(&image, nullptr, nullptr, &loaded)) {
    std::string message = burst_error_message(error);
    burst_error_destroy(error);
    return message;
  }
  ProgramRef program(loaded);
  data::Tensor message = data::Tensor::zeros(data::DType::I8, {bytes});
  // The first hops touch memory for the first time.
  constexpr int64_t warm = 2;
  data::Tensor times = data::Tensor::zeros(data::DType::F64, {warm + count});
  burst_tensor views[] = {viewOf(message, BURST_I8), viewOf(times, BURST_F64)};
  std::vector<burst_counters> counters;
  if (auto error = runAll(program.get(), views, howToRun(options), counters))
    return error;
  std::vector<double> hops;
  hops.reserve(count);
  for (int64_t i = warm; i < warm + count; ++i)
    hops.push_back(times.get(i));
  seconds = median(hops);
  return std::nullopt;
}

/// As often as half a second allows.
static std::optional<std::string> timeHops(const RunOptions &options,
                                           int64_t bytes, double &seconds) {
  if (auto error = timeHops(options, bytes, 1, seconds))
    return error;
  auto count = static_cast<int64_t>(0.5 / std::max(seconds, 1e-9));
  return timeHops(options, bytes, std::clamp<int64_t>(count, 3, 1001), seconds);
}

/// The line through the times of a small and of a large message.
static std::optional<std::string> measureLink(const RunOptions &options,
                                              Hardware &hardware) {
  constexpr int64_t smallBytes = 64, largeBytes = int64_t{8} << 20;
  double small, large;
  if (auto error = timeHops(options, smallBytes, small))
    return error;
  if (auto error = timeHops(options, largeBytes, large))
    return error;
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

static std::string describe(const RunOptions &options,
                            const Hardware &hardware) {
  std::string threads = options.threads != 0
                            ? " --threads=" + std::to_string(options.threads)
                            : "";
  return llvm::formatv("// By burst-run --calibrate{1}: {0}\n"
                       "#machine = #dlti.target_system_spec<\n"
                       "  \"burst\" = #dlti.target_device_spec<\n"
                       "    \"burst.bandwidth\" = {2:e3} : f64,\n"
                       "    \"burst.latency\" = {3:e3} : f64,\n"
                       "    \"burst.flops\" = {4:e3} : f64>>\n",
                       cpu::Target::host().str(), threads, hardware.bandwidth,
                       hardware.latency, hardware.flops);
}

int burst::calibrate(const RunOptions &options, const std::string &path) {
  Hardware hardware;
  if (auto error = measureFlops(options, hardware.flops))
    return fail("--calibrate: " + *error);
  if (auto error = measureLink(options, hardware))
    return fail("--calibrate: " + *error);
  std::string text = describe(options, hardware);
  if (path == "-")
    llvm::outs() << text;
  else if (llvm::Error error = writeFile(text, path))
    return fail("--calibrate: " + llvm::toString(std::move(error)));
  return 0;
}
