//===- Baselines.cpp - what each optimisation saves -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Variants of one problem are run in turns. Each is run twice: with links as
// fast as memory, and with links of which the bytes of the variant with all
// optimisations take half of its time, so that it shows what hides.
//
//===----------------------------------------------------------------------===//
#include "bench/Baselines.h"
#include "passes/Strategies/Choice.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::bench;

namespace {

struct Model {
  const char *name;
  int64_t heads, keyHeads, dim;
};

/// What is left out of "all", or pinned.
struct Variant {
  std::string name;
  std::string strategy; ///< empty: the ring that costs less
  jit::Without without = {};
};

/// A problem, causal and in bf16, over ranks in zigzag order.
struct Problem {
  const Model &model;
  bool isBackward;
  int64_t sequence, ranks;

  std::string name() const {
    return llvm::formatv("baselines {0} {1}", model.name,
                         isBackward ? "backward" : "forward");
  }
  std::string text(const std::string &strategy) const;
};

/// A variant of a problem, and what was measured of it.
struct Trial {
  Trial(const Variant &variant, const Problem &problem, const Device &device,
        cpu::Target target);

  /// Seconds of a run. What it sent and held must be what was planned.
  double run();
  double bytes() const; ///< that a rank sends, on average
  int64_t peak() const; ///< bytes that a rank holds at most

  Variant variant;
  Lowered lowered;
  std::vector<Traffic> planned;
  Bound program;
  std::vector<double> fast, slow; ///< seconds
};

} // namespace

static constexpr Model models[] = {{"LLaMA-2-7B", 32, 32, 128},
                                   {"Llama-3-8B", 32, 8, 128}};

static const Variant variants[] = {
    {"all", ""},
    {"all-gather", "all_gather"},
    {"ring of keys and values", "ring_kv"},
    {"no overlap", "", {.overlap = true}},
    {"no dropping", "", {.dropping = true}},
    {"no global optimisation", "ring_scores"},
    {"no local tiling", "", {.localTiling = true}},
};

std::string Problem::text(const std::string &strategy) const {
  std::string shape = "tensor<1x{0}x{1}x{2}x{3}>";
  std::string q =
      llvm::formatv(shape.c_str(), sequence, model.heads, model.dim, "bf16");
  std::string k =
      llvm::formatv(shape.c_str(), sequence, model.keyHeads, model.dim, "bf16");
  std::string rows =
      llvm::formatv("tensor<1x{0}x{1}xf32>", model.heads, sequence);
  std::string pin =
      strategy.empty() ? "" : llvm::formatv("strategy <{0}>", strategy).str();
  std::string head =
      llvm::formatv("shard.grid @cp(shape = {0})\n!q = {1}\n!k = {2}\n!l = "
                    "{3}\n",
                    ranks, q, k, rows);
  std::string clauses =
      "\n      mask causal sequence <@cp, zigzag> " + pin + "\n      : ";
  if (isBackward)
    return head +
           "func.func @attention(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, "
           "%do: !q) -> (!q, !k, !k) {\n"
           "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, "
           "%do" +
           clauses +
           "(!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)\n"
           "  return %dq, %dk, %dv : !q, !k, !k\n}\n";
  return head +
         "func.func @attention(%q: !q, %k: !k, %v: !k) -> (!q, !l) {\n"
         "  %o, %lse = burst.attention %q, %k, %v" +
         clauses +
         "(!q, !k, !k) -> (!q, !l)\n"
         "  return %o, %lse : !q, !l\n}\n";
}

/// The ring that costs less, on the machine that burst-choose-strategy assumes.
static std::string cheaperRing(const Problem &problem) {
  std::unique_ptr<MLIRContext> context = makeContext();
  auto module = parseSourceString<ModuleOp>(
      problem.text(""), ParserConfig(context.get()), "bench");
  PassManager pm(context.get());
  pm.addNestedPass<func::FuncOp>(createExpandNamesPass());
  pm.addNestedPass<func::FuncOp>(createDeriveBoundsPass());
  if (!module || failed(pm.run(*module)))
    fail("cannot weigh strategies for " + problem.name());
  SmallVector<Estimate> costs;
  SmallVector<StringRef> names;
  module->walk([&](AttentionInterface op) {
    FailureOr<SmallVector<Choice>> choices = weighStrategies(op);
    if (failed(choices))
      fail("cannot weigh strategies for " + problem.name());
    for (const Candidate &candidate : choices->front().candidates)
      if (candidate.strategy->getName().starts_with("ring_") &&
          candidate.exchanged.axes.empty()) {
        names.push_back(candidate.strategy->getName());
        costs.push_back(candidate.cost);
      }
  });
  return names[cheapest(costs)].str();
}

static cpu::Target targetOf(const Variant &variant, cpu::Target processor) {
  jit::Target target(std::move(processor));
  variant.without.applyTo(target);
  return target.host;
}

Trial::Trial(const Variant &variant, const Problem &problem,
             const Device &device, cpu::Target target)
    : variant(variant),
      lowered(problem.text(variant.strategy), "attention", variant.without),
      planned(lowered.plan()),
      program(lowered, targetOf(variant, std::move(target))) {
  program.bind(problem.sequence, device.handle);
}

double Trial::run() {
  double seconds = program.run();
  for (auto [rank, counted] : llvm::enumerate(program.counters)) {
    int64_t held = counted.tensor_bytes +
                   counted.peak_bytes[BURST_MEMORY_STATE] +
                   counted.peak_bytes[BURST_MEMORY_SLICE];
    if (counted.bytes_sent != planned[rank].totalBytes() ||
        held != planned[rank].peakBytes)
      fail(llvm::formatv("{0}: rank {1} sent {2} bytes and held {3}, planned "
                         "were {4} and {5}",
                         variant.name, rank, counted.bytes_sent, held,
                         planned[rank].totalBytes(), planned[rank].peakBytes));
  }
  return seconds;
}

double Trial::bytes() const {
  double sum = 0;
  for (const Traffic &rank : planned)
    sum += static_cast<double>(rank.totalBytes());
  return sum / static_cast<double>(planned.size());
}

int64_t Trial::peak() const {
  int64_t most = 0;
  for (const burst_counters &rank : program.counters)
    most = std::max(most, rank.peak_total);
  return most;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static void print(Table &table, const Problem &problem, const Trial &trial,
                  const Trial &all) {
  constexpr double mega = 1 << 20;
  auto ratio = [&](std::vector<double> Trial::*times) {
    std::vector<double> ratios;
    for (auto [time, reference] : llvm::zip_equal(trial.*times, all.*times))
      ratios.push_back(time / reference);
    return median(ratios);
  };
  double bytes = trial.bytes() / mega;
  double peak = static_cast<double>(trial.peak()) / mega;
  double fast = 1e3 * median(trial.fast), slow = 1e3 * median(trial.slow);
  double fastRatio = ratio(&Trial::fast), slowRatio = ratio(&Trial::slow);
  llvm::outs() << llvm::formatv(
      "| {0} | {1} | {2} | {3:f2} | {4:f1} | {5:f0} | {6:f2} | {7:f0} | {8:f2} "
      "|\n",
      problem.model.name, problem.isBackward ? "backward" : "forward",
      trial.variant.name, bytes, peak, fast, fastRatio, slow, slowRatio);
  llvm::outs().flush();
  table.keep({problem.name() + ", " + trial.variant.name,
              {{"MiB sent per rank", bytes},
               {"peak MiB of a rank", peak},
               {"ms", fast},
               {"over all", fastRatio},
               {"ms, slow links", slow},
               {"over all, slow links", slowRatio}},
              ""});
}

static void measure(Table &table, const Problem &problem, const Device &device,
                    const cpu::Target &target, int64_t repeat) {
  std::string ring = cheaperRing(problem);
  std::vector<std::unique_ptr<Trial>> trials;
  for (Variant variant : variants) {
    if (trials.empty())
      variant.name += " (" + ring + ")";
    if (variant.strategy.empty())
      variant.strategy = ring;
    trials.push_back(std::make_unique<Trial>(variant, problem, device, target));
  }
  for (auto &trial : trials)
    trial->run();
  for (int64_t i = 0; i < repeat; ++i)
    for (auto &trial : trials)
      trial->fast.push_back(trial->run());
  const Trial &all = *trials.front();
  double bandwidth = 2 * all.bytes() / median(all.fast);
  for (auto &trial : trials)
    trial->program.delay(0, bandwidth);
  for (int64_t i = 0; i < repeat; ++i)
    for (auto &trial : trials)
      trial->slow.push_back(trial->run());
  for (auto &trial : trials)
    print(table, problem, *trial, all);
}

void burst::bench::measureBaselines(Table &table, const Device &device,
                                    const cpu::Target &target,
                                    const BaselineOptions &options) {
  bool isFirst = true;
  for (const Model &model : models)
    for (bool isBackward : {false, true}) {
      Problem problem{model, isBackward, options.sequence, options.ranks};
      if (!llvm::StringRef(problem.name()).contains(options.only))
        continue;
      if (isFirst)
        llvm::outs() << llvm::formatv(
            "\ncausal, bf16, B = 1, S = {0}, P = {1}; medians of {2} runs\n\n"
            "| model | direction | variant | MiB sent per rank | peak MiB of "
            "a rank | ms | over all | ms, slow links | over all |\n"
            "|---|---|---|---|---|---|---|---|---|\n",
            options.sequence, options.ranks, options.repeat);
      isFirst = false;
      measure(table, problem, device, target, options.repeat);
    }
}
