//===- Simulate.cpp - how long programs would take ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/Report.h"
#include "passes/Explain/Explain.h"
#include "passes/Proof/Prove.h"
#include "passes/Strategies/Choice.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst {
#define GEN_PASS_DEF_SIMULATEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// One way to compute the attentions of a module.
struct Variant {
  StrategyAttr pin;               ///< null: what is chosen
  std::optional<Order> order;     ///< none: as it is
  SmallVector<int64_t> placement; ///< of axes; empty: as it is

  std::string name() const;
};

class SimulatePass : public burst::impl::SimulatePassBase<SimulatePass> {
public:
  using Base::Base;
  SimulatePass(const SimulatePassOptions &options, raw_ostream &os)
      : Base(options), os(&os) {}

  void runOnOperation() override {
    if (failed(simulate()))
      signalPassFailure();
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager pm(ModuleOp::getOperationName());
    buildRingPipeline(pm, {});
    pm.getDependentDialects(registry);
    registry.insert<DLTIDialect>();
  }

private:
  LogicalResult simulate();
  LogicalResult checkOptions();
  LogicalResult timeAll(ModuleOp module, std::vector<Timed> &all);
  FailureOr<Timed> time(func::FuncOp program);
  void configure(RingPipelineOptions &options) const;
  LogicalResult lower(ModuleOp module);
  void print(ArrayRef<Timed> all);
  LogicalResult compareVariants(ModuleOp module);
  LogicalResult variantsOf(ModuleOp module, std::vector<Variant> &variants);
  FailureOr<std::vector<SmallVector<int64_t>>> placementsOf(ModuleOp module);
  std::string timeVariant(ModuleOp module, const Variant &variant,
                          std::vector<Timed> &all);
  bool compares(StringRef what) const {
    return llvm::is_contained(compare, what.str());
  }
  bool draws() const { return format == "trace" || format == "svg"; }

  raw_ostream *os = &llvm::outs();
};

} // namespace

std::string Variant::name() const {
  std::string text = pin ? pin.getText() : std::string("chosen");
  if (order)
    text += ", " + std::string(stringifyOrder(*order));
  if (!placement.empty())
    text += llvm::formatv(", placed [{0:$[, ]}]",
                          llvm::make_range(placement.begin(), placement.end()));
  return text;
}

LogicalResult SimulatePass::checkOptions() {
  Location loc = getOperation().getLoc();
  if (!llvm::is_contained({"text", "json", "trace", "svg"}, StringRef(format)))
    return emitError(loc, "burst-simulate prints text, json, trace or svg, got "
                          "format=")
           << StringRef(format);
  if (maxRanks < 1)
    return emitError(loc, "burst-simulate shows at least 1 rank, got "
                          "max-ranks=")
           << static_cast<int64_t>(maxRanks);
  if (maxRanks != SimulatePassOptions().maxRanks && !draws())
    return emitError(loc, "burst-simulate shows ranks in a trace or svg, got "
                          "max-ranks=")
           << static_cast<int64_t>(maxRanks)
           << " with format=" << StringRef(format);
  for (const std::string &what : compare)
    if (what != "strategies" && what != "orders" && what != "placements")
      return emitError(loc, "burst-simulate compares strategies, orders and "
                            "placements, got compare=")
             << what;
  if (!compare.empty() && draws())
    return emitError(loc, "burst-simulate compares in text or json, got "
                          "format=")
           << StringRef(format);
  return success();
}

LogicalResult SimulatePass::simulate() {
  if (failed(checkOptions()))
    return failure();
  OwningOpRef<ModuleOp> copy = getOperation().clone();
  ModuleOp module = *copy;
  if (failed(describeMachineOf(module, machine)))
    return failure();
  bool isLowered = true;
  module.walk([&](AttentionInterface) { isLowered = false; });
  bool hasPrograms =
      llvm::any_of(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
        return function->hasAttr(ring::gridAttr);
      });
  if (isLowered && !hasPrograms)
    return emitError(module.getLoc(),
                     "has no program of a rank, nor burst.attention");
  if (isLowered && !compare.empty())
    return emitError(module.getLoc(), "is lowered to programs of ranks, of "
                                      "which nothing is left to compare");
  if (isLowered && !(drop && overlap))
    return emitError(module.getLoc(), "burst-simulate with ")
           << (drop ? "overlap" : "drop")
           << "=false lowers burst.attention, got programs of ranks, which "
              "have a schedule";
  if (!compare.empty())
    return compareVariants(module);
  std::vector<Timed> all;
  if ((!isLowered && failed(lower(module))) || failed(timeAll(module, all)))
    return failure();
  print(all);
  return success();
}

/// Without a proof: programs are proved before they are timed.
void SimulatePass::configure(RingPipelineOptions &options) const {
  options.verify = false;
  options.drop = drop;
  options.overlap = overlap;
}

LogicalResult SimulatePass::lower(ModuleOp module) {
  PassManager passes(&getContext());
  RingPipelineOptions options;
  configure(options);
  buildRingPipeline(passes, options);
  return passes.run(module);
}

FailureOr<Timed> SimulatePass::time(func::FuncOp program) {
  if (!isStatic(program))
    return emitError(program.getLoc(),
                     "has sizes or tables that are known at run time only, so "
                     "nothing can be said of its time; make them static");
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  if (failed(globals))
    return failure();
  ScheduleProof proof;
  proof::Verdict verdict = proof::proveForAll(program, allowWaste);
  if (failed(proveSchedule(program, verdict, *globals, {allowWaste}, proof)))
    return failure();
  FailureOr<Machine> machine =
      readMachine(program->getParentOfType<ModuleOp>(), ring::gridOf(program));
  if (failed(machine))
    return failure();
  return timeProgram(program, *globals, *machine,
                     draws() ? static_cast<int64_t>(maxRanks) : 0);
}

LogicalResult SimulatePass::timeAll(ModuleOp module, std::vector<Timed> &all) {
  for (auto program : module.getOps<func::FuncOp>()) {
    if (!program->hasAttr(ring::gridAttr))
      continue;
    FailureOr<Timed> timed = time(program);
    if (failed(timed))
      return failure();
    all.push_back(std::move(*timed));
  }
  return success();
}

void SimulatePass::print(ArrayRef<Timed> all) {
  if (format == "trace") {
    *os << llvm::json::Value(toTrace(all)) << "\n";
    return;
  }
  if (format == "svg")
    return drawTimeline(all, *os);
  for (const Timed &timed : all) {
    if (format == "json")
      *os << llvm::formatv("{0:2}\n", llvm::json::Value(toJson(timed)));
    else
      burst::print(timed, *os);
  }
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// The grids whose ranks compute attentions.
static SmallVector<shard::GridOp> gridsOf(ModuleOp module) {
  SetVector<shard::GridOp> grids;
  module.walk([&](AttentionInterface op) {
    if (std::optional<SequenceAttr> sequence = op.getSequence())
      grids.insert(lookupGrid(op, sequence->getGrid()));
  });
  return grids.takeVector();
}

/// All ways to lay out the axes of the module's grids over nodes: an axis of
/// one rank stays where it is.
FailureOr<std::vector<SmallVector<int64_t>>>
SimulatePass::placementsOf(ModuleOp module) {
  std::vector<SmallVector<int64_t>> placements;
  SmallVector<shard::GridOp> grids = gridsOf(module);
  auto refuse = [&](const Twine &why) {
    return emitError(module.getLoc(),
                     "burst-simulate cannot compare placements: " + why);
  };
  for (shard::GridOp grid : grids)
    if (!llvm::equal(grid.getShape(), grids.front().getShape()))
      return refuse("the grids differ in their shapes");
  if (grids.empty())
    return refuse("no attention is on a grid");
  FailureOr<Machine> machine = readMachine(module, grids.front());
  if (failed(machine))
    return failure();
  if (!machine->nodes.areDescribed())
    return refuse("the machine describes no nodes, see burst.node");
  if (ShapedType::getNumElements(grids.front().getShape()) <=
      static_cast<int64_t>(machine->nodes.size))
    return std::vector<SmallVector<int64_t>>(1); // in a node all are alike
  SmallVector<int64_t> wide;
  for (auto [axis, size] : llvm::enumerate(grids.front().getShape()))
    if (size > 1)
      wide.push_back(static_cast<int64_t>(axis));
  constexpr size_t mostAxes = 4; // of which there are 24
  if (wide.size() > mostAxes)
    return refuse("@" + grids.front().getSymName() + " has " +
                  Twine(wide.size()) +
                  " axes of several ranks, wanted at most " + Twine(mostAxes));
  SmallVector<int64_t> order = wide;
  do {
    auto placement = llvm::to_vector(llvm::seq(grids.front().getRank()));
    for (auto [from, to] : llvm::zip_equal(order, wide))
      placement[to] = from;
    placements.push_back(placement);
  } while (std::next_permutation(order.begin(), order.end()));
  return placements;
}

/// What strategies can be had, in which orders and placements.
LogicalResult SimulatePass::variantsOf(ModuleOp module,
                                       std::vector<Variant> &variants) {
  std::vector<StrategyAttr> pins;
  if (compares("strategies")) {
    for (auto function : module.getOps<func::FuncOp>()) {
      SmallVector<AttentionInterface> attentions = attentionsOf(function);
      if (attentions.empty())
        continue;
      auto choices = weighStrategies(attentions);
      if (failed(choices))
        return failure();
      for (const Choice &choice : *choices)
        for (const Candidate &candidate : choice.candidates)
          if (!llvm::is_contained(pins, candidate.pin))
            pins.push_back(candidate.pin);
    }
  } else {
    pins.push_back({});
  }
  std::vector<std::optional<Order>> orders{std::nullopt};
  if (compares("orders"))
    orders = {Order::Contiguous, Order::Zigzag, Order::Striped};
  std::vector<SmallVector<int64_t>> placements(1);
  if (compares("placements")) {
    auto found = placementsOf(module);
    if (failed(found))
      return failure();
    placements = std::move(*found);
  }
  for (StrategyAttr pin : pins)
    for (std::optional<Order> order : orders)
      for (const SmallVector<int64_t> &placement : placements)
        variants.push_back({pin, order, placement});
  return success();
}

/// Empty, or why it cannot be had.
std::string SimulatePass::timeVariant(ModuleOp module, const Variant &variant,
                                      std::vector<Timed> &all) {
  std::string reason;
  ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && reason.empty())
      reason = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> copy = module.clone();
  if (!variant.placement.empty())
    for (shard::GridOp grid : gridsOf(*copy))
      describePlacement(*copy, grid, variant.placement);
  copy->walk([&](AttentionInterface op) {
    if (variant.pin)
      op->setAttr("strategy", variant.pin);
    SequenceAttr sequence = op.getSequence().value_or(SequenceAttr());
    if (variant.order && sequence)
      op->setAttr("sequence",
                  SequenceAttr::get(&getContext(), sequence.getGrid(),
                                    sequence.getAxes(), *variant.order,
                                    /*block=*/1));
  });
  PassManager passes(&getContext());
  RingPipelineOptions options;
  configure(options);
  buildSchedulePipeline(passes, options);
  if (succeeded(passes.run(*copy)) && succeeded(timeAll(*copy, all)))
    return "";
  all.clear();
  return reason.empty() ? "cannot be had" : reason;
}

LogicalResult SimulatePass::compareVariants(ModuleOp module) {
  PassManager expand(&getContext());
  buildExpandPipeline(expand);
  std::vector<Variant> variants;
  if (failed(expand.run(module)) || failed(variantsOf(module, variants)))
    return failure();
  std::map<std::string, std::vector<std::pair<std::string, Timed>>> rows;
  std::vector<std::pair<std::string, std::string>> refused;
  for (const Variant &variant : variants) {
    std::vector<Timed> all;
    std::string reason = timeVariant(module, variant, all);
    if (!reason.empty())
      refused.push_back({variant.name(), reason});
    for (Timed &timed : all)
      rows[timed.name].push_back({variant.name(), std::move(timed)});
  }
  for (const auto &[name, found] : rows) {
    if (format == "json") {
      for (const auto &[variant, timed] : found) {
        llvm::json::Object object = toJson(timed);
        object["variant"] = variant;
        *os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
      }
      continue;
    }
    *os << "program @" << name << ", " << found.front().second.ranks
        << " ranks\n";
    printTable(found, *os);
  }
  for (const auto &[variant, reason] : refused) {
    if (format == "json")
      *os << llvm::formatv(
          "{0:2}\n", llvm::json::Value(llvm::json::Object{{"variant", variant},
                                                          {"reason", reason}}));
    else
      *os << "x " << variant << ": " << reason << "\n";
  }
  return success();
}

std::unique_ptr<Pass>
burst::createSimulatePass(const SimulatePassOptions &options, raw_ostream &os) {
  return std::make_unique<SimulatePass>(options, os);
}
