//===- Tune.cpp - shapes for a processor, by measuring --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Changes one thing at a time and keeps what is faster, in runs that alternate
// with those of the best so far: even the cycles of a run change on a machine
// that is shared, with what others leave in the caches. What it prints goes to
// codegen/cpu/Tuned.inc, in place of the lines of the processor that are there.
//
//===----------------------------------------------------------------------===//
#include "bench/Bound.h"

#include "jit/Processor.h"
#include "support/Tool.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace mlir;
using namespace burst;
using namespace burst::bench;
namespace cl = llvm::cl;

static cl::OptionCategory category("burst-tune options");
static cl::opt<std::string>
    processor("target-cpu",
              cl::desc("Processor, by LLVM's name, which this machine can "
                       "follow (this machine's)"),
              cl::value_desc("name"), cl::cat(category));
static cl::list<std::string> types(
    "types", cl::CommaSeparated,
    cl::desc("Types of packed operands: f32, which 16 bits become "
             "too, f64, and bf16 of processors that multiply pairs (all)"),
    cl::value_desc("f32,bf16"), cl::cat(category));
static cl::list<int64_t> dims("dims", cl::CommaSeparated,
                              cl::desc("Head dims (64,128,256)"),
                              cl::value_desc("64,128"), cl::cat(category));
static cl::list<std::string> passes("passes", cl::CommaSeparated,
                                    cl::desc("(forward,backward)"),
                                    cl::value_desc("forward"),
                                    cl::cat(category));
static cl::list<int64_t>
    rows("rows", cl::CommaSeparated,
         cl::desc("Queries of a tile to try, which are rounded up to register "
                  "tiles (24,48,72,96,128,192,256,384)"),
         cl::value_desc("48,96"), cl::cat(category));
static cl::list<int64_t>
    columns("columns", cl::CommaSeparated,
            cl::desc("Keys of a tile to try (32,64,96,128,192,256,384,512)"),
            cl::value_desc("64,128"), cl::cat(category));
/// A multiple of most sizes that are tried, so that none is better for that.
static cl::opt<int64_t> sequence("sequence", cl::desc("Positions (2304)"),
                                 cl::init(2304), cl::cat(category));
static cl::opt<int64_t> repeat("repeat",
                               cl::desc("Runs of each program; the median "
                                        "counts (5)"),
                               cl::init(5), cl::cat(category));
static cl::opt<bool>
    keepRegisters("keep-registers",
                  cl::desc("Search tiles alone, with the register tile and the "
                           "unrolling that the processor has"),
                  cl::cat(category));

/// What an option lists, or all there are.
template <typename T>
static SmallVector<T> listOf(const cl::list<T> &option, ArrayRef<T> all) {
  return option.empty() ? SmallVector<T>(all)
                        : SmallVector<T>(option.begin(), option.end());
}

/// What is slower by less than this is not slower: what there is stays.
static constexpr double margin = 0.02;

//===----------------------------------------------------------------------===//
// Measuring
//===----------------------------------------------------------------------===//

namespace {

/// Cycles of all threads that are made later, outside of the kernel; others'
/// programs do not count there. Where the system does not count them,
/// nanoseconds on processors.
class Counter {
public:
  Counter() {
    perf_event_attr attributes{};
    attributes.size = sizeof(attributes);
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_CPU_CYCLES;
    attributes.inherit = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    file = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1,
                                    PERF_FLAG_FD_CLOEXEC));
    if (file >= 0 && !read()) {
      close(file);
      file = -1;
    }
  }
  ~Counter() {
    if (file >= 0)
      close(file);
  }
  Counter(const Counter &) = delete;
  Counter &operator=(const Counter &) = delete;

  const char *unit() const { return file >= 0 ? "cycle" : "ns"; }
  double now() const {
    return file >= 0 ? static_cast<double>(*read()) : 1e9 * cpuNow();
  }

private:
  std::optional<uint64_t> read() const {
    uint64_t count = 0;
    if (::read(file, &count, sizeof(count)) != sizeof(count))
      return std::nullopt;
    return count;
  }
  int file;
};

/// Attention of one head, of all pairs and causal: tiles may suit one of both.
struct Problem {
  std::string pass = "forward", type = "f32";
  int64_t dim = 128;

  std::string text(bool isCausal) const;
  /// Useful operations of both.
  double flops() const {
    auto pairs = 1.5 * static_cast<double>(sequence * sequence);
    return (pass == "forward" ? 4.0 : 10.0) * pairs * static_cast<double>(dim);
  }
  std::string name() const {
    return llvm::formatv("{0} {1} D={2}", pass, type, dim);
  }
};

/// Measures shapes on problems.
class Tuner {
public:
  explicit Tuner(cpu::Target target) : target(std::move(target)) {
    burst_device_config config{};
    config.size = sizeof(config);
    config.threads = 1;
    check(burst_device_create_cpu(&config, &device));
  }
  ~Tuner() { burst_device_destroy(device); }
  Tuner(const Tuner &) = delete;
  Tuner &operator=(const Tuner &) = delete;

  void tuneRegisters();
  void tuneTiles(const Problem &of);

private:
  using Programs = SmallVector<std::unique_ptr<Bound>>;

  Programs compile(const cpu::Target &of) const;
  /// Cycles of a run of each.
  double cycles(const Programs &of) const;
  /// How many times as fast as the best so far another program is, and both
  /// speeds.
  double compare(const Programs &other);
  void begin(const Problem &of);
  /// Measures a change, and keeps it where it is faster.
  void attempt(llvm::function_ref<void(cpu::Target &)> change);
  /// What a line says of its numbers.
  std::string note() const;

  Counter counter; // before the threads
  burst_device *device = nullptr;
  cpu::Target target; ///< the best so far
  Problem problem;    ///< what it is measured on
  Programs best;
  double speed = 0; ///< useful operations per cycle
  double gain = 1;  ///< times the speed of what there was before
};

} // namespace

std::string Problem::text(bool isCausal) const {
  const char *mask = isCausal ? "mask causal" : "";
  std::string tensor =
      llvm::formatv("tensor<1x{0}x1x{1}x{2}>", sequence, dim, type);
  std::string rows = llvm::formatv("tensor<1x1x{0}x{1}>", sequence,
                                   type == "f64" ? "f64" : "f32");
  if (pass == "backward")
    return llvm::formatv(
        "shard.grid @cp(shape = 1)\n"
        "func.func @attention(%q: {0}, %k: {0}, %v: {0}, %o: {0}, %lse: {1}, "
        "%do: {0}) -> ({0}, {0}, {0}) {{\n"
        "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do\n"
        "      {2} sequence <@cp, contiguous> strategy <ring_kv>\n"
        "      : ({0}, {0}, {0}, {0}, {1}, {0}) -> ({0}, {0}, {0})\n"
        "  return %dq, %dk, %dv : {0}, {0}, {0}\n"
        "}\n",
        tensor, rows, mask);
  return llvm::formatv(
      "shard.grid @cp(shape = 1)\n"
      "func.func @attention(%q: {0}, %k: {0}, %v: {0}) -> ({0}, {1}) {{\n"
      "  %o, %lse = burst.attention %q, %k, %v {2}\n"
      "      sequence <@cp, contiguous> : ({0}, {0}, {0}) -> ({0}, {1})\n"
      "  return %o, %lse : {0}, {1}\n"
      "}\n",
      tensor, rows, mask);
}

Tuner::Programs Tuner::compile(const cpu::Target &of) const {
  Programs programs;
  for (bool isCausal : {false, true}) {
    programs.push_back(
        std::make_unique<Bound>(problem.text(isCausal), "attention", of));
    programs.back()->bind(sequence, device);
    programs.back()->run();
  }
  return programs;
}

double Tuner::cycles(const Programs &of) const {
  double begin = counter.now();
  for (const std::unique_ptr<Bound> &program : of)
    program->run();
  return counter.now() - begin;
}

double Tuner::compare(const Programs &other) {
  SmallVector<double> ratios;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < repeat; ++i) {
    double found = cycles(other);
    ratios.push_back(cycles(best) / found);
    least = std::min(least, found);
  }
  llvm::sort(ratios);
  speed = problem.flops() / least;
  return ratios[ratios.size() / 2];
}

void Tuner::begin(const Problem &of) {
  problem = of;
  best = compile(target);
  gain = 1;
  compare(best);
  llvm::errs() << llvm::formatv("{0}: {1:F2} flop per {2}, {3}\n",
                                problem.name(), speed, counter.unit(),
                                target.str());
}

void Tuner::attempt(llvm::function_ref<void(cpu::Target &)> change) {
  cpu::Target other = target;
  change(other);
  Programs programs = compile(other);
  double before = speed, ratio = compare(programs);
  // Three times, so that a moment of luck does not count.
  bool isFaster = ratio > 1 + margin;
  for (int again = 0; again < 2 && isFaster; ++again)
    isFaster = compare(programs) > 1 + margin;
  llvm::errs() << llvm::formatv(
      "  {0:F3}{1}: {2} x {3} registers, {4} steps, {5} exponentials, {6} "
      "weights, tiles {7} x {8}\n",
      ratio, isFaster ? " *" : "", other.microRows, other.microVectors,
      other.steps, other.exponentials, other.weights, other.rows,
      other.columns);
  if (!isFaster) {
    speed = before;
    return;
  }
  gain *= ratio;
  target = other;
  best = std::move(programs);
}

std::string Tuner::note() const {
  return llvm::formatv("{0:F1} flop per {1}, {2:F2} times what was there",
                       speed, counter.unit(), gain);
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// The register tile and what is unrolled, which all types and head dims share.
void Tuner::tuneRegisters() {
  target.rows = target.columns = 0;
  begin({"forward", "f32", 128});
  for (int64_t vectors = 1; vectors <= 4; ++vectors)
    // Two beside the sums: a vector of the right operand, and one of the left.
    for (int64_t rows = (target.registers - 2) / vectors;
         rows * vectors * 2 >= target.registers; --rows)
      attempt([&](cpu::Target &other) {
        other.microRows = rows;
        other.microVectors = vectors;
      });
  for (int64_t count : {1, 2, 4})
    attempt([&](cpu::Target &other) { other.steps = count; });
  for (int64_t count : {1, 2, 4, 8})
    attempt([&](cpu::Target &other) { other.exponentials = count; });
  std::string forward = note();
  begin({"backward", "f32", 128});
  for (int64_t count : {1, 2, 4, 8})
    attempt([&](cpu::Target &other) { other.weights = count; });
  llvm::outs() << llvm::formatv(
      "// {0}; backward {1}\n"
      "REGISTERS(\"{2}\", {3}, {4}, {5}, {6}, {7}, {8})\n",
      forward, note(), target.processor, target.vectorBits, target.microRows,
      target.microVectors, target.steps, target.exponentials, target.weights);
}

/// Columns and rows, each again when the other has changed.
void Tuner::tuneTiles(const Problem &of) {
  Lowered lowered(of.text(/*isCausal=*/false), "attention");
  target.rows = target.columns = 0;
  target = target.suiting(lowered.program);
  begin(of);
  for (bool changed = true; changed;) {
    const cpu::Target tried = target;
    for (int64_t size :
         listOf<int64_t>(columns, {32, 64, 96, 128, 192, 256, 384, 512}))
      if (size != tried.columns)
        attempt([&](cpu::Target &other) { other.columns = size; });
    changed = target.columns != tried.columns;
    for (int64_t size :
         listOf<int64_t>(rows, {24, 48, 72, 96, 128, 192, 256, 384})) {
      auto whole = static_cast<int64_t>(llvm::alignTo(size, target.microRows));
      if (whole != tried.rows)
        attempt([&](cpu::Target &other) { other.rows = whole; });
    }
    changed &= target.rows != tried.rows;
  }
  llvm::outs() << llvm::formatv(
      "TILES(\"{0}\", {1}, \"{2}\", \"{3}\", {4}, {5}, {6}) // {7}\n",
      target.processor, target.vectorBits, of.pass, of.type, of.dim,
      target.rows, target.columns, note());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  prepareTool("burst-tune");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Searches register tiles, unrolling and tiles "
                              "for a processor, and prints "
                              "them as lines of codegen/cpu/Tuned.inc\n");
  if (sequence < 1 || repeat < 1)
    fail("--sequence and --repeat take numbers from 1 on, got: " +
         llvm::Twine(std::min<int64_t>(sequence, repeat)));
  std::string error;
  FailureOr<cpu::Target> target =
      cpu::Target::named(/*triple=*/"", processor, /*features=*/"", error);
  if (failed(target))
    fail(error);
  if (std::string missing = jit::missingFeature(*target); !missing.empty())
    fail("--target-cpu: " + target->processor + " has " + missing +
         ", which this machine lacks");
  SmallVector<std::string> allTypes =
      listOf<std::string>(types, {"f32", "f64"});
  if (types.empty() && target->pairs)
    allTypes.push_back("bf16");
  SmallVector<std::string> allPasses =
      listOf<std::string>(passes, {"forward", "backward"});
  SmallVector<int64_t> allDims = listOf<int64_t>(dims, {64, 128, 256});
  for (int64_t size : llvm::concat<const int64_t>(rows, columns))
    if (size < 1)
      fail("--rows and --columns take numbers from 1 on, got: " +
           llvm::Twine(size));
  for (const std::string &pass : allPasses)
    if (pass != "forward" && pass != "backward")
      fail("--passes takes forward and backward, got: " + pass);
  for (const std::string &type : allTypes)
    if (type != "f64" && type != "f32" && (type != "bf16" || !target->pairs))
      fail("--types takes f64, f32 and, of processors that multiply pairs, "
           "bf16, got: " +
           type);
  for (int64_t dim : allDims)
    if (dim < 1 || dim > 256)
      fail("--dims takes numbers from 1 to 256, got: " + llvm::Twine(dim));
  llvm::sort(allDims);
  Tuner tuner(*target);
  if (!keepRegisters)
    tuner.tuneRegisters();
  for (const std::string &pass : allPasses)
    for (const std::string &type : allTypes)
      for (int64_t dim : allDims)
        tuner.tuneTiles({pass, type, dim});
  return 0;
}
