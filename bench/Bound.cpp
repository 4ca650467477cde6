//===- Bound.cpp - compiled programs on tensors ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Bound.h"

#include "codegen/cpu/Memory.h"
#include "jit/Frontend.h"
#include "passes/Simulation/Prove/Audit.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <chrono>
#include <cstdlib>
#include <thread>

using namespace mlir;
using namespace burst;
using namespace burst::bench;

void burst::bench::fail(const llvm::Twine &message) {
  llvm::errs() << program_invocation_short_name << ": " << message << '\n';
  std::exit(1);
}

void burst::bench::check(burst_error *error) {
  if (error)
    fail(burst_error_message(error));
}

double burst::bench::now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double burst::bench::cpuNow() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

std::unique_ptr<MLIRContext> burst::bench::makeContext() {
  DialectRegistry registry;
  jit::registerDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  return context;
}

Lowered::Lowered(const std::string &text, const std::string &entry,
                 const jit::Without &without, std::string *refusal)
    : context(makeContext()) {
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    if (!refusal || diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    if (refusal->empty())
      *refusal = diagnostic.str();
    return success();
  });
  module =
      parseSourceString<ModuleOp>(text, ParserConfig(context.get()), "bench");
  PassManager pm(context.get());
  RingPipelineOptions options;
  without.applyTo(options);
  buildRingPipeline(pm, options);
  if (!module || failed(pm.run(*module))) {
    if (refusal && !refusal->empty())
      return;
    fail("cannot lower:\n" + text);
  }
  program = module->lookupSymbol<func::FuncOp>(entry);
}

std::vector<Traffic> Lowered::plan() {
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  std::vector<Traffic> traffic;
  if (!simulation || failed(globals) ||
      burst::plan(*simulation, *globals, traffic))
    fail("cannot plan @" + program.getName());
  return traffic;
}

std::vector<int64_t> Lowered::peaks(const cpu::Target &target) {
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  std::vector<Traffic> traffic;
  std::vector<int64_t> peaks;
  if (!simulation || failed(globals) ||
      burst::plan(*simulation, *globals, traffic) ||
      cpu::planPacking(*simulation, *globals, target, peaks))
    fail("cannot plan @" + program.getName());
  for (auto [peak, held] : llvm::zip_equal(peaks, traffic))
    peak += held.peakBytes;
  return peaks;
}

Bound::Bound(const std::string &text, const std::string &entry,
             const cpu::Target &target) {
  double begin = now(), cpuBegin = cpuNow();
  Lowered lowered(text, entry);
  seconds.lower = now() - begin;
  compile(lowered, target);
  seconds.compile = now() - begin;
  seconds.processor = cpuNow() - cpuBegin;
}

Bound::Bound(Lowered &lowered, const cpu::Target &target) {
  compile(lowered, target);
}

void Bound::compile(Lowered &lowered, const cpu::Target &target) {
  FailureOr<ProgramRef> found = burst::compile(lowered.program, target);
  if (failed(found))
    fail("cannot compile @" + lowered.program.getName());
  program = std::move(*found);
}

Bound::~Bound() { unbind(); }

void Bound::unbind() {
  for (burst_transport *transport : transports)
    burst_transport_destroy(transport);
  transports.clear();
}

/// Numbers between -1 and 1 of no pattern.
static void fill(std::vector<std::byte> &bytes, int32_t type, uint64_t seed) {
  size_t size = burst_type_bytes(type);
  uint64_t state = seed * 2654435761u + 1;
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto value = static_cast<float>(
        static_cast<double>(static_cast<int64_t>(state)) / 9.3e18);
    if (type == BURST_F64) {
      double wide = value;
      std::memcpy(&bytes[i], &wide, 8);
    } else if (type == BURST_F32) {
      std::memcpy(&bytes[i], &value, 4);
    } else if (type == BURST_BF16) {
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      auto half = static_cast<uint16_t>(bits >> 16);
      std::memcpy(&bytes[i], &half, 2);
    } else {
      fail("the benchmark has no numbers of this type");
    }
  }
}

void Bound::bind(int64_t sequence, burst_device *onDevice,
                 ArrayRef<int32_t> ids) {
  unbind();
  device = onDevice;
  int64_t ranks = burst_program_num_ranks(program.get());
  int64_t count = burst_program_num_parameters(program.get());
  memory.assign(ranks, {});
  values.assign(ranks, {});
  extents.assign(1, sequence);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    memory[rank].reserve(count);
    for (int64_t p = 0; p < count; ++p) {
      const burst_parameter *parameter =
          burst_program_parameter(program.get(), p);
      burst_tensor tensor{};
      tensor.type = parameter->type;
      tensor.rank = parameter->rank;
      if (parameter->kind == BURST_EXTENT) {
        tensor.data = extents.data();
        values[rank].push_back(tensor);
        memory[rank].emplace_back();
        continue;
      }
      int64_t elements = 1;
      for (int32_t d = parameter->rank; d-- > 0;) {
        int64_t size = parameter->sizes[d];
        if (d == parameter->shard_dim)
          check(burst_program_local_size(
              program.get(), p, rank,
              parameter->extent < 0 ? sequence : parameter->extent, &size));
        tensor.sizes[d] = size;
        tensor.strides[d] = elements;
        elements *= size;
      }
      std::vector<std::byte> &bytes = memory[rank].emplace_back(
          elements * burst_type_bytes(parameter->type));
      if (parameter->type == BURST_I32 && bytes.size() == 4 * ids.size())
        std::memcpy(bytes.data(), ids.data(), bytes.size());
      else if (!parameter->is_result)
        fill(bytes, parameter->type, rank * count + p);
      tensor.data = bytes.data();
      values[rank].push_back(tensor);
    }
  }
  counters.assign(ranks, {});
  delay(0, 0);
}

void Bound::delay(double latencySeconds, double bytesPerSecond) {
  unbind();
  burst_local_config config{};
  config.size = sizeof(config);
  config.num_ranks = burst_program_num_ranks(program.get());
  config.latency_seconds = latencySeconds;
  config.bytes_per_second = bytesPerSecond;
  transports.resize(config.num_ranks);
  check(burst_transport_create_local(&config, transports.data()));
}

burst_error *Bound::runRank(int64_t rank, burst_device *onDevice,
                            burst_transport *transport) {
  counters[rank] = {};
  counters[rank].size = sizeof(burst_counters);
  burst_run_config config{};
  config.size = sizeof(config);
  config.rank = rank;
  config.device = onDevice;
  config.transport = transport;
  return burst_run(program.get(), &config, values[rank].data(),
                   static_cast<int64_t>(values[rank].size()), &counters[rank]);
}

double Bound::run() {
  int64_t ranks = numRanks();
  auto runThread = [&](int64_t rank) {
    check(runRank(rank, device, transports[rank]));
  };
  double begin = now();
  std::vector<std::thread> others;
  for (int64_t rank = 1; rank < ranks; ++rank)
    others.emplace_back(runThread, rank);
  runThread(0);
  for (std::thread &other : others)
    other.join();
  return now() - begin;
}

std::vector<int64_t> Bound::peaks() const {
  std::vector<int64_t> peaks;
  peaks.reserve(counters.size());
  for (const burst_counters &rank : counters)
    peaks.push_back(rank.tensor_bytes + rank.peak_bytes[BURST_MEMORY_STATE] +
                    rank.peak_bytes[BURST_MEMORY_SLICE] +
                    rank.peak_bytes[BURST_MEMORY_PACKING]);
  return peaks;
}

Device::Device(int64_t threads, bool isPinned) {
  std::vector<int64_t> cpus(threads);
  for (int64_t i = 0; i < threads; ++i)
    cpus[i] = i;
  burst_device_config config{};
  config.size = sizeof(config);
  config.threads = threads;
  config.num_cpus = isPinned ? threads : 0;
  config.cpus = cpus.data();
  check(burst_device_create_cpu(&config, &handle));
}
