//===- Tune.cpp - shapes for a processor, by measuring --------------------===//
//
// Changes one thing at a time and keeps what is faster. What it prints goes to
// codegen/cpu/Tuned.inc, in place of the lines of the processor that are there.
//
//===----------------------------------------------------------------------===//
#include "bench/Bound.h"

#include "jit/Processor.h"

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
static cl::opt<int64_t> sequence("sequence", cl::desc("Positions (2048)"),
                                 cl::init(2048), cl::cat(category));
static cl::opt<int64_t> repeat("repeat",
                               cl::desc("Runs of each program, of which the "
                                        "one of fewest cycles counts (3)"),
                               cl::init(3), cl::cat(category));
static cl::opt<bool>
    keepRegisters("keep-registers",
                  cl::desc("Search tiles alone, with the register tile and the "
                           "unrolling that the processor has"),
                  cl::cat(category));

/// What is slower by less than this is not slower: what there is stays.
static constexpr double margin = 0.01;

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

/// Attention of one head, causal: it has full and partial tiles.
struct Problem {
  std::string pass = "forward", type = "f32";
  int64_t dim = 128;

  std::string text() const;
  double flops() const {
    auto pairs = static_cast<double>(sequence * sequence) / 2;
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
  void tuneTiles(const Problem &problem);

private:
  /// Useful operations per cycle.
  double speed(const cpu::Target &of, const Problem &problem);
  /// Measures a change, and keeps it where it is faster.
  void attempt(const Problem &problem, llvm::function_ref<void(cpu::Target &)>);
  void begin(const Problem &problem);

  Counter counter; // before the threads
  burst_device *device = nullptr;
  cpu::Target target; ///< the best so far
  double best = 0, before = 0;
};

} // namespace

std::string Problem::text() const {
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
        "      mask causal sequence <@cp, contiguous> strategy <ring_kv>\n"
        "      : ({0}, {0}, {0}, {0}, {1}, {0}) -> ({0}, {0}, {0})\n"
        "  return %dq, %dk, %dv : {0}, {0}, {0}\n"
        "}\n",
        tensor, rows);
  return llvm::formatv(
      "shard.grid @cp(shape = 1)\n"
      "func.func @attention(%q: {0}, %k: {0}, %v: {0}) -> ({0}, {1}) {{\n"
      "  %o, %lse = burst.attention %q, %k, %v mask causal\n"
      "      sequence <@cp, contiguous> : ({0}, {0}, {0}) -> ({0}, {1})\n"
      "  return %o, %lse : {0}, {1}\n"
      "}\n",
      tensor, rows);
}

double Tuner::speed(const cpu::Target &of, const Problem &problem) {
  Bound program(problem.text(), "attention", of);
  program.bind(sequence, device);
  program.run();
  double least = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < repeat; ++i) {
    double begin = counter.now();
    program.run();
    least = std::min(least, counter.now() - begin);
  }
  return problem.flops() / least;
}

void Tuner::begin(const Problem &problem) {
  best = before = speed(target, problem);
  llvm::errs() << llvm::formatv("{0}: {1:F2} flop per {2} with {3}\n",
                                problem.name(), best, counter.unit(),
                                target.str());
}

void Tuner::attempt(const Problem &problem,
                    llvm::function_ref<void(cpu::Target &)> change) {
  cpu::Target other = target;
  change(other);
  double found = speed(other, problem);
  llvm::errs() << llvm::formatv(
      "  {0:F2}{1}: {2} x {3} registers, {4} steps, {5} exponentials, {6} "
      "weights, tiles {7} x {8}\n",
      found, found > best * (1 + margin) ? " *" : "", other.microRows,
      other.panelBytes * 8 / other.vectorBits, other.steps, other.exponentials,
      other.weights, other.rows, other.columns);
  if (found > best * (1 + margin)) {
    best = found;
    target = other;
  }
}

//===----------------------------------------------------------------------===//
// Searching
//===----------------------------------------------------------------------===//

/// The register tile and what is unrolled, which all types and head dims share.
void Tuner::tuneRegisters() {
  Problem forward, backward;
  backward.pass = "backward";
  target.rows = target.columns = 0;
  begin(forward);
  int64_t vectorBytes = target.vectorBits / 8;
  for (int64_t vectors = 1; vectors <= 4; ++vectors)
    // Two beside the sums: a vector of the right operand, and one of the left.
    for (int64_t rows = (target.registers - 2) / vectors;
         rows * vectors * 2 >= target.registers; --rows)
      attempt(forward, [&](cpu::Target &other) {
        other.microRows = rows;
        other.panelBytes = vectors * vectorBytes;
      });
  for (int64_t count : {1, 2, 4})
    attempt(forward, [&](cpu::Target &other) { other.steps = count; });
  for (int64_t count : {1, 2, 4, 8})
    attempt(forward, [&](cpu::Target &other) { other.exponentials = count; });
  double found = best, old = before;
  begin(backward);
  for (int64_t count : {1, 2, 4, 8})
    attempt(backward, [&](cpu::Target &other) { other.weights = count; });
  llvm::outs() << llvm::formatv(
      "// {0:F2} flop per {1}, {2:F2} before; backward {3:F2}, {4:F2} before\n"
      "REGISTERS(\"{5}\", {6}, {7}, {8}, {9}, {10}, {11})\n",
      found, counter.unit(), old, best, before, target.processor,
      target.vectorBits, target.microRows, target.panelBytes / vectorBytes,
      target.steps, target.exponentials, target.weights);
}

/// Rows and columns, each as often as the other has changed.
void Tuner::tuneTiles(const Problem &problem) {
  Lowered lowered(problem.text(), "attention");
  target.rows = target.columns = 0;
  target = target.suiting(lowered.program);
  begin(problem);
  for (bool changed = true; changed;) {
    int64_t rows = target.rows, columns = target.columns;
    for (int64_t size : {32, 64, 96, 128, 192, 256, 384, 512})
      if (size != columns)
        attempt(problem, [&](cpu::Target &other) { other.columns = size; });
    changed = target.columns != columns;
    for (int64_t size : {24, 48, 72, 96, 128, 192, 256, 384}) {
      auto whole = static_cast<int64_t>(llvm::alignTo(size, target.microRows));
      if (whole != rows)
        attempt(problem, [&](cpu::Target &other) { other.rows = whole; });
    }
    changed &= target.rows != rows;
  }
  llvm::outs() << llvm::formatv(
      "TILES(\"{0}\", {1}, \"{2}\", \"{3}\", {4}, {5}, {6}) // {7:F2}, {8:F2} "
      "before\n",
      target.processor, target.vectorBits, problem.pass, problem.type,
      problem.dim, target.rows, target.columns, best, before);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Searches register tiles, unrolling and tiles "
                              "for a processor, and prints "
                              "them as lines of codegen/cpu/Tuned.inc\n");
  if (sequence < 1 || repeat < 1)
    fail("--sequence and --repeat take numbers from 1 on");
  std::string error;
  FailureOr<cpu::Target> target =
      cpu::Target::named(/*triple=*/"", processor, /*features=*/"", error);
  if (failed(target))
    fail(error);
  if (std::string missing = jit::missingFeature(*target); !missing.empty())
    fail("--target-cpu: " + target->processor + " has " + missing +
         ", which this machine lacks");
  // Where nothing is said: all there are.
  SmallVector<std::string> allTypes{"f32", "f64"},
      allPasses{"forward", "backward"};
  if (target->pairs)
    allTypes.push_back("bf16");
  SmallVector<int64_t> allDims{64, 128, 256};
  if (!types.empty())
    allTypes.assign(types.begin(), types.end());
  if (!dims.empty())
    allDims.assign(dims.begin(), dims.end());
  if (!passes.empty())
    allPasses.assign(passes.begin(), passes.end());
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
        // Gradients are not of pairs.
        if (pass == "forward" || type != "bf16")
          tuner.tuneTiles({pass, type, dim});
  return 0;
}
