//===- Runner.cpp - what burst-run does -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/burst-run/Runner.h"

#include "codegen/cpu/Memory.h"
#include "jit/Processor.h"
#include "jit/Without.h"
#include "passes/Explain/Table.h"
#include "passes/Passes.h"
#include "passes/Plan.h"
#include "passes/Simulation/Interpret/Interpreter.h"
#include "passes/Simulation/Prove/Audit.h"
#include "tools/burst-run/Progress.h"
#include "tools/burst-run/Replay.h"
#include "tools/harness/Compiled.h"
#include "tools/harness/Problem.h"
#include "tools/harness/Ranks.h"
#include "tools/harness/Tensors.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace burst;

namespace {

/// How one result compares with the oracle.
struct Check {
  std::string name;
  oracle::Deviation deviation;
};

class Runner {
public:
  explicit Runner(const RunOptions &options) : options(options) {
    DialectRegistry registry;
    jit::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    // The location says where; the op of a lowered program says little.
    context.printOpOnDiagnostic(false);
  }

  int run();
  /// The functions of the file that are to be run behind this one.
  ArrayRef<std::string> otherEntries() const { return others; }

private:
  bool phase(StringRef name, function_ref<bool()> body);
  bool fail(const Twine &message) {
    llvm::errs() << ("burst-run: " + message + "\n").str(); // not in pieces
    return false;
  }

  bool readWithout();
  bool parse();
  bool checkFunction();
  bool checkSizes();
  void returnForward();
  bool lower();
  bool bind();
  bool proveSchedule();
  bool interpret();
  bool dump();
  bool compile();
  bool execute();
  bool checkResults();
  bool checkForward(AttentionOp op, const Values &values);
  bool checkBackward(AttentionBackwardOp op, const Values &values);
  std::vector<oracle::Row> rowsToCheck(const oracle::Sizes &sizes);
  std::optional<unsigned> resultOf(Value value);
  bool write();
  /// Whether the function is the program of a rank as it stands in the file.
  bool isLowered() { return function->hasAttr(ring::gridAttr); }

  void print();
  void printJson();
  llvm::json::Object resultsJson();
  /// A check that has compared nothing has not passed.
  bool passed() const {
    auto isWrong = [](const Check &check) {
      return check.deviation.failed != 0;
    };
    auto isKnown = [](const Check &check) {
      return check.deviation.isCompared();
    };
    return checks.empty() ||
           (llvm::none_of(checks, isWrong) && llvm::any_of(checks, isKnown));
  }

  const RunOptions &options;
  MLIRContext context;
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics{sources, &context};

  jit::Without without;
  OwningOpRef<ModuleOp> source, lowered;
  std::vector<std::string> others;
  func::FuncOp function, program; ///< over global tensors, and of a rank
  size_t numReturned = 0;         ///< results as they stand in the file
  std::unique_ptr<Simulation> simulation;
  std::vector<Argument> globals;
  ScheduleProof proof;
  ProgramRef code;
  cpu::Target processor;                ///< that it was compiled for
  std::vector<burst_counters> counters; ///< of a compiled run, by rank
  std::vector<int64_t> sent, peaks;     ///< bytes, by rank
  std::vector<int64_t> plannedPacking;  ///< bytes of a compiled run, by rank
  std::vector<TensorRef> results;
  std::vector<Check> checks;
  std::vector<std::pair<std::string, double>> seconds;
};

} // namespace

bool Runner::phase(StringRef name, function_ref<bool()> body) {
  auto begin = std::chrono::steady_clock::now();
  bool ok = body();
  std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  seconds.push_back({name.str(), passed.count()});
  return ok;
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

bool Runner::readWithout() {
  StringRef whyTiled = "";
  if (options.interpret)
    whyTiled = "which is of kernels, and --interpret compiles none";
  else if (options.gpu)
    whyTiled = jit::whyTiledOnGpus;
  std::string error;
  auto found = jit::readWithout(options.without, whyTiled, error);
  if (failed(found))
    return fail("--without: " + error);
  without = *found;
  return true;
}

bool Runner::parse() {
  std::string error;
  source = jit::parseFile(options.file, sources, context, error);
  if (!source)
    return error.empty() ? false : fail(error);
  SmallVector<func::FuncOp> entries = jit::findEntries(*source);
  if (options.entry.empty() && entries.size() > 1 && options.mayBeSeveral()) {
    function = entries.front();
    for (func::FuncOp other : ArrayRef(entries).drop_front())
      others.push_back(other.getName().str());
  } else {
    function = jit::findEntry(*source, options.entry, "--entry", error);
  }
  if (!function)
    return fail(options.file + ": " + error);
  if (failed(without.check(function)) || !checkFunction())
    return false;
  numReturned = function.getNumResults();
  if (options.checkRows)
    returnForward();
  return true;
}

/// Also returns what backward passes take of forward passes. Without that the
/// oracle would have to allow for all that its own out and lse could have been
/// rounded to, which is more than many gradients of tables are.
void Runner::returnForward() {
  Operation *ret = function.getBody().front().getTerminator();
  auto add = [&](Value value) {
    if (isa<BlockArgument>(value) ||
        llvm::is_contained(ret->getOperands(), value))
      return;
    unsigned index = function.getNumResults();
    (void)function.insertResult(index, value.getType(), {});
    ret->insertOperands(index, value);
  };
  function.walk([&](AttentionBackwardOp op) {
    add(op.getOut());
    add(op.getLse());
  });
}

bool Runner::checkFunction() {
  if (options.checkRows && isLowered())
    return fail("--check needs the attention over global tensors, and @" +
                function.getName() + " is the program of a rank already");
  // A name may also be that which a value without one gets.
  auto differ = [&](StringRef what, unsigned count, auto nameOf) {
    std::set<std::string> names;
    for (unsigned index = 0; index < count; ++index)
      if (!names.insert(nameOf(function, index)).second)
        return fail("two " + what + " of @" + function.getName() +
                    " are named '" + nameOf(function, index) + "'");
    return true;
  };
  return differ("arguments", function.getNumArguments(), argumentNameOf) &&
         differ("results", function.getNumResults(), resultNameOf) &&
         checkSizes();
}

/// How many arguments burst-partition adds to a function for the lengths that
/// its types leave open, or has added.
static size_t countLengths(func::FuncOp function) {
  size_t count = 0;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    count += function.getArgAttr(index, ring::extentAttr) != nullptr;
  llvm::SmallDenseSet<Value> open; // the first tensor of each length
  function.walk([&](AttentionInterface op) {
    AttentionSizes sizes = op.getSizes();
    SmallVector<Sharded> sharded = op.getSharded();
    for (bool ofKeys : {false, true}) {
      auto *first = llvm::find_if(sharded, [&](const Sharded &d) {
        return d.isOfKeys == ofKeys && d.tensor.getDefiningOp() != op;
      });
      if (ShapedType::isDynamic(ofKeys ? sizes.keys : sizes.queries))
        open.insert(first->tensor);
    }
  });
  return count + open.size();
}

/// Whether a tensor that is sharded, or that attention takes, has one.
static bool hasDynamicBatch(func::FuncOp function) {
  auto isOpen = [](Type type) {
    return cast<RankedTensorType>(type).isDynamicDim(0);
  };
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (function.getArgAttr(index, ring::shardAttr) && isOpen(type))
      return true;
  WalkResult result = function.walk([&](AttentionInterface op) {
    bool found = llvm::any_of(op.getSharded(), [&](const Sharded &sharded) {
      return isOpen(sharded.tensor.getType());
    });
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Before anything that takes long.
bool Runner::checkSizes() {
  return !options.in.empty() ||
         (succeeded(checkLengths(function, countLengths(function),
                                 options.extents, "--extents")) &&
          succeeded(checkBatch(function, hasDynamicBatch(function),
                               options.batch, "--batch")));
}

/// The program of a rank is run as it is: whoever left an optimisation out
/// wants to see what that costs.
bool Runner::lower() {
  lowered = cast<ModuleOp>(source.get()->clone());
  PassManager pm(&context);
  RingPipelineOptions passes;
  without.applyTo(passes);
  if (!isLowered())
    buildRingPipeline(pm, passes);
  if (failed(pm.run(*lowered)))
    return false;
  program = lowered->lookupSymbol<func::FuncOp>(function.getName());
  simulation = Simulation::create(program);
  return simulation != nullptr;
}

bool Runner::bind() {
  std::optional<data::Archive> archive;
  if (!options.in.empty()) {
    std::string error;
    archive = data::read(options.in, error);
    if (!archive)
      return fail(error);
  }
  const data::Tensors *given = archive ? &archive->tensors : nullptr;
  Sizes sizes{options.batch, SmallVector<int64_t>(options.extents.begin(),
                                                  options.extents.end())};
  auto found = makeGlobals(program, given, options.seed, sizes);
  if (failed(found))
    return false;
  globals = std::move(*found);
  // What is made up of a backward pass has to fit together.
  return succeeded(giveForward(function, globals, given));
}

bool Runner::proveSchedule() {
  std::optional<Table> table;
  bool isFirst = !options.ranks || options.ranks->rank() == 0;
  if (int64_t ranks = options.explainRanks.value_or(-1); ranks >= 0 && isFirst)
    table.emplace(program, ranks == 0 ? Table::defaultRanks(program) : ranks,
                  llvm::outs());
  ProofOptions allowed;
  if (isLowered() || without.dropping)
    allowed = allowWaste;
  if (failed(burst::proveSchedule(program, proof::proveForAll(program, allowed),
                                  globals,
                                  {allowed,
                                   /*wantsTraffic=*/true, simulation.get(),
                                   table ? table->listener() : nullptr},
                                  proof)))
    return false;
  if (table) {
    table->print(proof, "--explain");
    llvm::outs() << "\n";
  }
  return true;
}

bool Runner::interpret() {
  int64_t attends = 0;
  program.walk([&](ring::AttendOp) { attends = simulation->numRanks(); });
  attends *= simulation->numRanks();
  Progress progress("attends");
  int64_t done = 0;
  Interpreter interpreter([&] { progress.update(++done, attends); });
  simulation->reset();
  auto shards = shardGlobals(*simulation, globals, ShardData::Copy);
  if (!simulation->run(interpreter, std::move(shards))) {
    report(program, simulation->getCounterexample());
    return false;
  }
  for (const Traffic &traffic : simulation->getTraffic()) {
    sent.push_back(traffic.totalBytes());
    peaks.push_back(traffic.peakBytes);
  }
  for (unsigned index = 0; index < program.getNumResults(); ++index)
    results.push_back(gatherResult(*simulation, index));
  return true;
}

/// Before anything can go wrong with what is dumped.
bool Runner::dump() {
  if (options.dumpDirectory.empty())
    return true;
  std::string error = writeReplay(
      options, sources.getMemoryBuffer(sources.getMainFileID())->getBuffer());
  return error.empty() || fail(error);
}

bool Runner::compile() {
  std::string error;
  FailureOr<jit::Target> target =
      jit::findTarget({options.gpu ? "cuda" : "cpu", options.architectures,
                       /*triple=*/"", options.processor, options.features},
                      error);
  if (failed(target))
    return fail(error);
  // Found out before the time is spent.
  if (std::string missing = jit::missingFeature(target->host); !missing.empty())
    return fail("--target-cpu: " + target->host.processor + " has " + missing +
                ", which this machine lacks");
  without.applyTo(*target);
  processor = target->host;
  auto found =
      burst::compile(program, *target, host::Dump{options.dumpDirectory});
  if (failed(found))
    return false;
  code = std::move(*found);
  return true;
}

bool Runner::execute() {
  // The proof has run the program without data: it knows the results' shapes.
  for (unsigned index = 0; index < program.getNumResults(); ++index)
    results.push_back(gatherResult(*simulation, index));
  if (auto error =
          burst::run(code.get(), globals, results,
                     {options.threads, options.deadline,
                      /*checked=*/false, options.trace, options.latency,
                      options.bandwidth, options.gpu.value_or(0),
                      options.ranks ? options.ranks->device() : nullptr,
                      options.ranks ? options.ranks->transport() : nullptr},
                     counters))
    return fail(*error);
  // Kernels of GPUs load their operands themselves.
  plannedPacking.assign(simulation->numRanks(), 0);
  if (!options.gpu &&
      cpu::planPacking(*simulation, globals, processor, plannedPacking))
    return fail("the schedule was proved, but cannot be planned");
  for (const burst_counters &rank : counters) {
    sent.push_back(rank.bytes_sent);
    peaks.push_back(rank.tensor_bytes + rank.peak_bytes[BURST_MEMORY_STATE] +
                    rank.peak_bytes[BURST_MEMORY_SLICE]);
  }
  return true;
}

std::vector<oracle::Row> Runner::rowsToCheck(const oracle::Sizes &sizes) {
  return *options.checkRows < 0
             ? oracle::allRows(sizes)
             : oracle::sampleRows(sizes, *options.checkRows, options.seed);
}

/// The number of the result that a value is returned as.
std::optional<unsigned> Runner::resultOf(Value value) {
  Operation *ret = function.getBody().front().getTerminator();
  for (auto [index, operand] : llvm::enumerate(ret->getOperands()))
    if (operand == value)
      return index;
  return std::nullopt;
}

bool Runner::checkForward(AttentionOp op, const Values &values) {
  FailureOr<oracle::Problem> problem = makeProblem(op, values);
  if (failed(problem))
    return false;
  Progress progress("oracle rows");
  oracle::Options oracleOptions;
  oracleOptions.progress = [&](int64_t done, int64_t all) {
    progress.update(done, all);
  };
  oracle::Result expected =
      oracle::evaluate(*problem, rowsToCheck(problem->sizes), oracleOptions);
  auto out = resultOf(op.getOut()), lse = resultOf(op.getLse());
  std::vector<double> nothing(expected.sizes.outElements());
  std::optional<unsigned> maxScores;
  if (op.getMaxScores())
    maxScores = resultOf(op.getMaxScores());
  auto rowsOf = [&](std::optional<unsigned> result) {
    return result ? std::span<const double>(results[*result]->floats)
                  : std::span<const double>();
  };
  oracle::Verdict verdict = oracle::compare(
      expected, out ? results[*out]->floats : nothing, rowsOf(lse),
      toleranceOf(op.getQuery().getType().getElementType()), rowsOf(maxScores));
  if (out)
    checks.push_back({resultNameOf(function, *out), verdict.out});
  if (lse)
    checks.push_back({resultNameOf(function, *lse), verdict.lse});
  if (maxScores)
    checks.push_back({resultNameOf(function, *maxScores), verdict.maxScores});
  return true;
}

bool Runner::checkBackward(AttentionBackwardOp op, const Values &values) {
  FailureOr<oracle::BackwardProblem> problem = makeProblem(op, values);
  if (failed(problem))
    return false;
  Progress progress("oracle rows of gradients");
  oracle::Options oracleOptions;
  oracleOptions.progress = [&](int64_t done, int64_t all) {
    progress.update(done, all);
  };
  const oracle::Sizes &sizes = problem->forward.sizes;
  oracle::Gradients expected =
      oracle::evaluate(*problem, rowsToCheck(sizes),
                       rowsToCheck(oracle::ofKeys(sizes)), oracleOptions);
  for (auto [value, gradient] :
       llvm::zip_equal(op.getResults(), expected.all()))
    if (auto index = resultOf(value))
      checks.push_back(
          {resultNameOf(function, *index),
           oracle::compare(
               *gradient, results[*index]->floats,
               toleranceOf(op.getQuery().getType().getElementType()))});
  return true;
}

bool Runner::checkResults() {
  Values values = valuesOf(function, globals, results);
  bool ok = true;
  function.walk([&](AttentionOp op) { ok &= checkForward(op, values); });
  function.walk(
      [&](AttentionBackwardOp op) { ok &= checkBackward(op, values); });
  return ok;
}

bool Runner::write() {
  data::Tensors tensors;
  for (auto [index, result] :
       llvm::enumerate(ArrayRef(results).take_front(numReturned)))
    tensors.emplace(resultNameOf(function, index), toData(*result));
  std::string error;
  if (!data::write(options.out, tensors, {}, error))
    return fail(error);
  return true;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

static void printCheck(StringRef name, const oracle::Deviation &d) {
  llvm::outs() << llvm::formatv(
      "{0}: largest error {1:e2}, worst error/bound {2:f3} at row ({3}, {4}, "
      "{5}), {6} elements",
      name, d.largestError, d.worstRatio, d.row.b, d.row.h, d.row.i, d.checked);
  if (d.bothNaN != 0)
    llvm::outs() << llvm::formatv(" ({0} NaN, as expected)", d.bothNaN);
  if (d.undetermined != 0)
    llvm::outs() << llvm::formatv(
        ", {0} not compared, since rounding decides what they are",
        d.undetermined);
  const char *verdict = "ok";
  if (d.failed != 0)
    verdict = "WRONG";
  else if (!d.isCompared())
    verdict = "NOT COMPARED";
  llvm::outs() << ": " << verdict << "\n";
  if (d.failed != 0)
    llvm::outs() << llvm::formatv(
        "  {0} elements beyond their bound; the worst is {1}, expected {2}, "
        "bound {3:e2}\n",
        d.failed, d.actual, d.expected, d.bound);
}

void Runner::print() {
  int64_t all = std::accumulate(sent.begin(), sent.end(), int64_t{0});
  int64_t peak = *llvm::max_element(peaks);
  llvm::outs() << llvm::formatv(
      "@{0} on {1} ranks: {2} bytes sent, at most {3} bytes held by a rank\n",
      function.getName(), simulation->numRanks(), all, peak);
  llvm::outs() << llvm::formatv(
      "schedule proved {0}: {1} pairs of segments computed once, {2} "
      "dropped\n",
      proofText(proof.proved), proof.computed, proof.dropped);
  for (const Check &check : checks)
    printCheck(check.name, check.deviation);
  if (!options.checkRows)
    llvm::outs() << "not compared with the oracle: --check does\n";
}

/// JSON has no infinities.
static llvm::json::Value number(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

llvm::json::Object Runner::resultsJson() {
  llvm::json::Object object;
  for (auto [index, result] : llvm::enumerate(results)) {
    llvm::json::Object entry;
    llvm::json::Array shape(result->shape);
    entry["shape"] = std::move(shape);
    object[resultNameOf(function, index)] = std::move(entry);
  }
  for (const Check &check : checks) {
    llvm::json::Object &entry = *object[check.name].getAsObject();
    entry["max_abs_error"] = number(check.deviation.largestError);
    entry["worst_error_over_bound"] = number(check.deviation.worstRatio);
    entry["elements_checked"] = check.deviation.checked;
    entry["elements_not_determined"] = check.deviation.undetermined;
    entry["elements_nan"] = check.deviation.bothNaN;
    if (check.deviation.isCompared())
      entry["pass"] = check.deviation.failed == 0;
    else
      entry["pass"] = nullptr;
  }
  return object;
}

void Runner::printJson() {
  llvm::json::Array planned, plannedPeaks;
  for (const Traffic &traffic : proof.traffic) {
    planned.push_back(traffic.totalBytes());
    plannedPeaks.push_back(traffic.peakBytes);
  }
  llvm::json::Array plannedByAxis;
  for (const Traffic &traffic : proof.traffic)
    plannedByAxis.push_back(llvm::json::Array(traffic.sentByAxis));
  llvm::json::Object times;
  for (const auto &[name, value] : seconds)
    times[name] = value;
  llvm::json::Object object{
      {"program", function.getName()},
      {"ranks", simulation->numRanks()},
      {"results", resultsJson()},
      {"bytes_sent", llvm::json::Array(sent)},
      {"bytes_planned", std::move(planned)},
      {"peak_bytes", llvm::json::Array(peaks)},
      {"peak_bytes_planned", std::move(plannedPeaks)},
      {"packing_bytes_planned",
       plannedPacking.empty() ? 0 : *llvm::max_element(plannedPacking)},
      {"pairs_computed", proof.computed},
      {"pairs_dropped", proof.dropped},
      {"proved", proofText(proof.proved)},
      {"seconds", std::move(times)},
  };
  if (!axesOfSeveral(program).empty())
    object["bytes_planned_by_axis"] = std::move(plannedByAxis);
  if (options.checkRows)
    object["pass"] = passed();
  llvm::outs() << llvm::formatv("{0:2}\n",
                                llvm::json::Value(std::move(object)));
}

int Runner::run() {
  bool ok = readWithout() && phase("parse", [&] { return parse(); }) &&
            dump() && phase("lower", [&] { return lower(); }) &&
            phase("bind", [&] { return bind(); }) &&
            phase("prove", [&] { return proveSchedule(); }) &&
            (options.interpret ? phase("interpret", [&] { return interpret(); })
                               : phase("compile", [&] { return compile(); }) &&
                                     phase("run", [&] { return execute(); }));
  // Rank 0 has the results of all.
  if (ok && options.ranks && options.ranks->rank() != 0)
    return 0;
  if (ok && options.checkRows)
    ok = phase("check", [&] { return checkResults(); });
  if (ok && !options.out.empty())
    ok = phase("write", [&] { return write(); });
  if (!ok)
    return 1;
  options.json ? printJson() : print();
  for (size_t rank = 0; rank < sent.size(); ++rank)
    if (sent[rank] != proof.traffic[rank].totalBytes()) {
      fail("rank " + Twine(rank) + " sent " + Twine(sent[rank]) +
           " bytes, planned were " + Twine(proof.traffic[rank].totalBytes()));
      return 1;
    }
  for (auto [rank, counted] : llvm::enumerate(counters))
    if (counted.peak_bytes[BURST_MEMORY_PACKING] != plannedPacking[rank]) {
      fail("rank " + Twine(rank) + " packed " +
           Twine(counted.peak_bytes[BURST_MEMORY_PACKING]) +
           " bytes, planned were " + Twine(plannedPacking[rank]));
      return 1;
    }
  for (size_t rank = 0; rank < peaks.size(); ++rank)
    if (peaks[rank] != proof.traffic[rank].peakBytes) {
      fail("rank " + Twine(rank) + " held " + Twine(peaks[rank]) +
           " bytes, planned were " + Twine(proof.traffic[rank].peakBytes));
      return 1;
    }
  return passed() ? 0 : 1;
}

int burst::run(const RunOptions &options) {
  Runner first(options);
  int status = first.run();
  RunOptions other = options;
  for (const std::string &entry : first.otherEntries()) {
    if (status != 0)
      break;
    other.entry = entry;
    status = Runner(other).run();
  }
  return status;
}
