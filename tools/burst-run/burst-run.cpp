//===- burst-run.cpp - runs a sharded attention on this machine -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Files.h"
#include "support/NumberOption.h"
#include "support/Tool.h"
#include "tools/Tools.h"
#include "tools/burst-run/Bundle.h"
#include "tools/burst-run/Calibrate.h"
#include "tools/burst-run/Runner.h"
#include "tools/harness/Ranks.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <functional>

namespace cl = llvm::cl;

namespace {
/// Made when the program runs: another one in the same binary has options of
/// the same names.
struct Options {
  cl::OptionCategory category{"burst-run options"};
  cl::list<std::string> inputs{
      cl::Positional, cl::desc("FILE.mlir ('-' for stdin) or FILE.so, ..."),
      cl::cat(category)};
  cl::opt<std::string> entry{
      "entry",
      cl::desc("The function to run; without it all of a file are run, "
               "one after the other"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> in{
      "in",
      cl::desc(
          "Global tensors to run on, by the burst.name of the arguments, "
          "else arg0, arg1, ...; those that it does not have are seeded. "
          "Of several files: a folder, which has FILE.safetensors of those "
          "that are not seeded"),
      cl::value_desc("file.safetensors"), cl::cat(category)};
  cl::opt<std::string> out{
      "out",
      cl::desc("Where to write the global results, by burst.name, else "
               "result0, result1, ...; of several files: a folder, which gets "
               "FILE.safetensors of each"),
      cl::value_desc("file.safetensors"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed",
                         cl::desc("Seed of tensors that --in does not have"),
                         cl::init(0), cl::cat(category)};
  cl::opt<std::string> check{
      "check", cl::ValueOptional,
      cl::desc("Compare with the fp64 oracle: all rows, or N of them"),
      cl::value_desc("rows:N"), cl::cat(category)};
  cl::opt<std::string> explain{
      "explain", cl::ValueOptional,
      cl::desc("Show hop by hop what the ranks compute and send, as "
               "burst-explain does: 16 of them, or N; of more than 64 a "
               "summary"),
      cl::value_desc("N"), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print one JSON object for each file"),
                     cl::cat(category)};
  cl::list<int64_t> extents{
      "extents", cl::CommaSeparated,
      cl::desc("Without --in: the dynamic sequence lengths, in order"),
      cl::value_desc("Sq,Sk"), cl::cat(category)};
  cl::opt<int64_t> batch{
      "batch", cl::desc("Without --in: the batch size, where dynamic (1)"),
      cl::cat(category)};
  cl::opt<bool> interpret{
      "interpret",
      cl::desc("Evaluate the schedule in fp64 instead of compiling it"),
      cl::cat(category)};
  cl::opt<std::string> device{
      "device",
      cl::desc("What runs the kernels: this processor (cpu), or a GPU by its "
               "number (0), which all ranks share (cpu). With "
               "--transport=nccl|ipc: the GPU of this process (that of its "
               "number among the ranks of its machine)"),
      cl::value_desc("cpu|cuda[:N]"), cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> architectures{
      "arch",
      cl::desc("GPUs to compile for, as in burst-compile (sm_80, "
               "and those found here)"),
      cl::value_desc("sm_80,sm_90"), cl::cat(category)};
  cl::opt<std::string> processor{
      "target-cpu",
      cl::desc(
          "Processor to compile for, by LLVM's name, which this machine can "
          "follow; left out: this machine's"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> features{"features",
                                cl::desc("Features on top of the processor's"),
                                cl::value_desc("+a,-b"), cl::cat(category)};
  cl::opt<std::string> without{
      "without",
      cl::desc("Optimisations to leave out, to measure what they save: "
               "overlap, dropping, local_tiling"),
      cl::value_desc("names"), cl::cat(category)};
  burst::NumberOption deadline{
      "deadline", cl::desc("Give up where a rank waits longer (600)"),
      cl::value_desc("seconds"), cl::cat(category)};
  burst::NumberOption latency{
      "latency",
      cl::desc("Let every transfer take this long, and the time of its "
               "bytes (0)"),
      cl::value_desc("seconds"), cl::cat(category)};
  burst::NumberOption bandwidth{
      "bandwidth",
      cl::desc("Bytes per second that a rank sends, and receives (no limit)"),
      cl::value_desc("number"), cl::cat(category)};
  cl::opt<std::string> transport{
      "transport",
      cl::desc(
          "Be one rank of those that a launcher has started, over mpi "
          "(mpirun, srun) or tcp (the same, torchrun, or BURST_RANK, "
          "BURST_NUM_RANKS and BURST_ADDRESS); on GPUs, which meet as over "
          "tcp, nccl or, within a machine, ipc. Rank 0 gathers and checks. "
          "Left out: all ranks are threads"),
      cl::value_desc("mpi|tcp|nccl|ipc"), cl::cat(category)};
  cl::opt<std::string> trace{
      "trace", cl::desc("Where to write a trace, for Chrome or Perfetto"),
      cl::value_desc("file.json"), cl::cat(category)};
  cl::opt<std::string> calibrateOption{
      "calibrate", cl::ValueOptional,
      cl::desc("Run no file, but measure this machine and write what "
               "burst-choose-strategy reads of it, to the standard output or a "
               "file"),
      cl::value_desc("file.mlir"), cl::cat(category)};
  cl::opt<std::string> grid{
      "grid",
      cl::desc("With --calibrate: the ranks are those of a grid of this name, "
               "whose axes are measured, each as a ring of all its ranks"),
      cl::value_desc("mesh=2x4"), cl::cat(category)};
  cl::opt<std::string> dump{
      "dump-dir",
      cl::desc("Where to write the IR of each phase, the object, the input "
               "and replay.sh, which runs it again"),
      cl::value_desc("directory"), cl::cat(category)};
};
} // namespace

static Options &flags() {
  static Options options;
  return options;
}

/// libLLVM.so, where tools are linked to it, has an option of this name, which
/// must go before this one is made.
static cl::opt<int64_t> &threads() {
  static auto option = [] {
    if (cl::Option *other = cl::getRegisteredOptions().lookup("threads"))
      other->removeArgument();
    return std::make_unique<cl::opt<int64_t>>(
        "threads", cl::desc("Threads of compiled kernels (all processors)"),
        cl::cat(flags().category));
  }();
  return *option;
}

/// `--check` (all rows, -1) or `--check=rows:N`; false where it is neither.
static bool parseCheck(std::optional<int64_t> &rows) {
  if (flags().check.getNumOccurrences() == 0)
    return true;
  llvm::StringRef text = flags().check;
  if (text.empty()) {
    rows = -1;
    return true;
  }
  int64_t count;
  if (!text.consume_front("rows:") || text.getAsInteger(10, count) || count < 1)
    return false;
  rows = count;
  return true;
}

/// `--explain` (as many ranks as burst-explain shows, 0) or `--explain=N`;
/// false where it is neither.
static bool parseExplain(std::optional<int64_t> &ranks) {
  if (flags().explain.getNumOccurrences() == 0)
    return true;
  int64_t count = 0;
  llvm::StringRef text = flags().explain;
  if (!text.empty() && (text.getAsInteger(10, count) || count < 1))
    return false;
  ranks = count;
  return true;
}

/// `cpu`, `cuda` or `cuda:N`; false where it is none of these.
static bool parseDevice(std::optional<int64_t> &gpu) {
  llvm::StringRef text = flags().device;
  if (text == "cpu")
    return true;
  gpu = 0;
  if (!text.consume_front("cuda"))
    return false;
  return text.empty() ||
         (text.consume_front(":") && !text.getAsInteger(10, *gpu) && *gpu >= 0);
}

static bool fail(const llvm::Twine &message) {
  llvm::errs() << ("burst-run: " + message + "\n").str(); // not in pieces
  return false;
}

/// The first of options that the command line has, or null.
static const cl::Option *firstGiven(
    std::initializer_list<std::reference_wrapper<const cl::Option>> options) {
  for (const cl::Option &option : options)
    if (option.getNumOccurrences() != 0)
      return &option;
  return nullptr;
}

/// Whether the file of an option can be written: found now, and not when all
/// has been computed.
static bool checkFolder(const cl::opt<std::string> &option) {
  namespace fs = llvm::sys::fs;
  llvm::StringRef path = option.getValue();
  fs::file_status status;
  bool isThere = !path.empty() && !fs::status(path, status);
  if (isThere && status.type() == fs::file_type::directory_file)
    return fail("--" + option.ArgStr + "=" + path +
                ": found a directory, wanted a file to write");
  if (path.empty() || (isThere && status.type() != fs::file_type::regular_file))
    return true; // a pipe, or an error for who opens it
  llvm::SmallString<128> real(path);
  if (isThere && fs::real_path(path, real))
    return true;
  llvm::StringRef folder = llvm::sys::path::parent_path(real);
  if (folder.empty())
    folder = ".";
  if (!fs::is_directory(folder))
    return fail("--" + option.ArgStr + "=" + path + ": no folder " + folder);
  if (fs::access(folder, fs::AccessMode::Write))
    return fail("--" + option.ArgStr + "=" + path +
                ": cannot write to folder " + folder);
  return true;
}

/// The file that an option's path leads to, which need not be there.
static std::string fileOf(llvm::StringRef path) {
  namespace fs = llvm::sys::fs;
  llvm::SmallString<128> file, folder;
  if (!fs::real_path(path, file))
    return file.str().str();
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  if (fs::real_path(parent.empty() ? "." : parent, folder))
    return path.str();
  llvm::sys::path::append(folder, llvm::sys::path::filename(path));
  return folder.str().str();
}

/// Of two things written to one file, the later would replace the other.
static bool checkApart(const cl::opt<std::string> &one,
                       const cl::opt<std::string> &other) {
  if (one.empty() || other.empty() || burst::isSpecial(one) ||
      fileOf(one) != fileOf(other))
    return true;
  return fail("--" + one.ArgStr + " and --" + other.ArgStr +
              " name one file, " + other + ": wanted two");
}

/// What --grid says, if it is given and says something.
static std::optional<burst::CalibratedGrid> calibratedGrid() {
  return burst::CalibratedGrid::parse(flags().grid);
}

/// Ranks that are processes are those of a grid.
static bool checkGrid() {
  bool isGiven = flags().grid.getNumOccurrences() != 0;
  std::optional<burst::CalibratedGrid> grid = calibratedGrid();
  if (isGiven && !grid)
    return fail("--grid takes a name and the sizes of at most 8 axes, as in "
                "mesh=2x4, got: " +
                flags().grid);
  constexpr int64_t maxThreads = 64;
  bool areThreads = flags().transport.empty();
  if (burst::Ranks::isOfGpus(flags().transport))
    return fail("--calibrate measures this processor, and --transport=" +
                flags().transport + " is of GPUs");
  if (!areThreads && !isGiven)
    return fail("--calibrate over --transport wants a --grid of its ranks");
  if (grid && areThreads && grid->numRanks() > maxThreads)
    return fail("--grid=" + flags().grid + " has " +
                llvm::Twine(grid->numRanks()) + " ranks, wanted at most " +
                llvm::Twine(maxThreads) + " where these are threads");
  return !grid || grid->numRanks() > 1 ||
         fail("--grid=" + flags().grid + " has one rank, wanted several");
}

/// A calibration runs programs of its own, on the device and the transport that
/// the options describe.
static bool checkFile() {
  bool calibrates = flags().calibrateOption.getNumOccurrences() != 0;
  bool hasFile = !flags().inputs.empty();
  if (!calibrates && !hasFile)
    return fail("takes a file, FILE.mlir or FILE.so, got none");
  if (!calibrates)
    return flags().grid.empty() ||
           fail("--grid is for --calibrate; the grid of a file is in it");
  if (flags().calibrateOption != "-" && !checkFolder(flags().calibrateOption))
    return false;
  if (!checkGrid())
    return false;
  if (hasFile)
    return fail("--calibrate runs no file, got: " + flags().inputs.front());
  if (const cl::Option *option = firstGiven(
          {flags().entry, flags().in, flags().out, flags().seed, flags().check,
           flags().explain, flags().json, flags().extents, flags().batch,
           flags().interpret, flags().trace, flags().dump, flags().device,
           flags().architectures, flags().processor, flags().features,
           flags().without}))
    return fail("--" + option->ArgStr +
                " is for a program, and --calibrate runs none");
  return true;
}

/// The tensors of one of several files: of its name, in a folder.
static std::string tensorsOf(llvm::StringRef file, llvm::StringRef folder) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, llvm::sys::path::stem(file) + ".safetensors");
  return path.str().str();
}

static bool checkSeveralFiles() {
  namespace fs = llvm::sys::fs;
  const auto &files = flags().inputs;
  if (const cl::Option *option =
          firstGiven({flags().entry, flags().extents, flags().batch,
                      flags().trace, flags().dump}))
    return fail("--" + option->ArgStr + " is for one file, got " +
                llvm::Twine(files.size()));
  for (const auto *option : {&flags().in, &flags().out}) {
    if (option->empty())
      continue;
    if (!fs::is_directory(option->getValue()))
      return fail("--" + option->ArgStr + "=" + option->getValue() +
                  ": no folder, wanted one, with tensors of each of " +
                  llvm::Twine(files.size()) + " files");
    llvm::StringMap<llvm::StringRef> named;
    for (llvm::StringRef file : files)
      if (auto [known, isNew] =
              named.try_emplace(llvm::sys::path::stem(file), file);
          !isNew)
        return fail("--" + option->ArgStr + "=" + option->getValue() + ": " +
                    known->second + " and " + file + " would both have " +
                    known->first() + ".safetensors: wanted two names");
  }
  if (!flags().out.empty() &&
      fs::access(flags().out.getValue(), fs::AccessMode::Write))
    return fail("--out=" + flags().out + ": cannot write to the folder");
  return true;
}

static bool checkTransport() {
  const std::string &name = flags().transport;
  if (flags().transport.getNumOccurrences() == 0)
    return true;
  if (!burst::Ranks::isTransport(name))
    return fail("--transport takes mpi, tcp, nccl or ipc, got: " + name);
  const cl::Option *option = firstGiven(
      {flags().latency, flags().bandwidth, flags().dump, flags().trace});
  if (!option && !burst::Ranks::isOfGpus(name))
    option = firstGiven({flags().device});
  return !option ||
         fail("--" + option->ArgStr +
              " is for ranks that are threads, and --transport is " + name);
}

static bool checkOptions(burst::RunOptions &options) {
  if (!checkFile())
    return false;
  for (const auto *option :
       {&flags().entry, &flags().in, &flags().out, &flags().trace,
        &flags().dump, &flags().architectures, &flags().processor,
        &flags().features, &flags().without})
    if (option->getNumOccurrences() != 0 && option->empty())
      return fail("--" + option->ArgStr + " takes a name, got nothing");
  bool hasSeveral = flags().inputs.size() > 1;
  if (hasSeveral ? !checkSeveralFiles()
                 : !checkFolder(flags().out) || !checkFolder(flags().trace) ||
                       !checkApart(flags().out, flags().trace))
    return false;
  if (!flags().in.empty() && (!options.extents.empty() || options.batch))
    return fail("--extents and --batch are for tensors that are made up, those "
                "of --in have sizes");
  if (!parseCheck(options.checkRows))
    return fail("--check takes nothing or rows:N with N > 0, got: " +
                flags().check);
  if (!parseExplain(options.explainRanks))
    return fail("--explain takes nothing or a number of ranks from 1, got: " +
                flags().explain);
  if (options.explainRanks && options.json)
    return fail("--explain prints a table, and --json one object");
  if (threads().getNumOccurrences() != 0 && threads() < 1)
    return fail("--threads takes a number from 1, got: " +
                llvm::Twine(threads()));
  bool ends = std::isfinite(flags().deadline) && flags().deadline > 0;
  if (flags().deadline.getNumOccurrences() != 0 && !ends)
    return fail("--deadline takes seconds above 0, got: " +
                llvm::formatv("{0}", flags().deadline.getValue()).str());
  if (!std::isfinite(flags().latency) || flags().latency < 0)
    return fail("--latency takes seconds from 0, got: " +
                llvm::formatv("{0}", flags().latency.getValue()).str());
  bool flows = std::isfinite(flags().bandwidth) && flags().bandwidth > 0;
  if (flags().bandwidth.getNumOccurrences() != 0 && !flows)
    return fail("--bandwidth takes bytes per second above 0, got: " +
                llvm::formatv("{0}", flags().bandwidth.getValue()).str());
  if (!checkTransport())
    return false;
  if (!parseDevice(options.gpu))
    return fail("--device takes cpu, cuda or cuda:N, got: " + flags().device);
  bool isOfGpus = burst::Ranks::isOfGpus(flags().transport);
  if (isOfGpus && flags().device.getNumOccurrences() != 0 && !options.gpu)
    return fail("--transport=" + flags().transport +
                " is between GPUs, and --device is " + flags().device +
                ": take tcp or mpi");
  bool isOnGpu = options.gpu || isOfGpus;
  if (!isOnGpu && !flags().architectures.empty())
    return fail("--arch is for GPUs, and --device is not cuda");
  if (isOnGpu && threads().getNumOccurrences() != 0)
    return fail("--threads is for kernels of processors, and " +
                (options.gpu ? "--device is " + flags().device
                             : "--transport is " + flags().transport));
  if (flags().interpret)
    if (const cl::Option *option = firstGiven(
            {threads(), flags().deadline, flags().transport, flags().latency,
             flags().bandwidth, flags().trace, flags().dump, flags().device,
             flags().architectures, flags().processor, flags().features}))
      return fail("--" + option->ArgStr +
                  " is for compiled programs, and --interpret compiles none");
  return true;
}

static int runFile(const burst::RunOptions &options) {
  int status = burst::isBundle(options.file) ? burst::runBundle(options)
                                             : burst::run(options);
  return options.ranks ? options.ranks->share(status) : status;
}

/// One after the other, up to the first that fails.
static int runFiles(burst::RunOptions &options) {
  size_t count = flags().inputs.size();
  for (size_t number = 0; number < count; ++number) {
    options.file = flags().inputs[number];
    if (count > 1 && !flags().out.empty())
      options.out = tensorsOf(options.file, flags().out);
    if (count > 1 && !flags().in.empty()) {
      options.in = tensorsOf(options.file, flags().in);
      if (!llvm::sys::fs::exists(options.in))
        options.in.clear();
    }
    int status = runFile(options);
    if (status != 0 && count > 1)
      fail("stopped at " + options.file + ", number " +
           llvm::Twine(number + 1) + " of " + llvm::Twine(count) + " files");
    if (status != 0)
      return status;
  }
  return 0;
}

/// Ranks that are processes exit alike.
static int runCalibration(const burst::RunOptions &options) {
  std::optional<burst::CalibratedGrid> grid = calibratedGrid();
  int status = 0;
  if (options.ranks && options.ranks->numRanks() != grid->numRanks()) {
    fail("--grid=" + flags().grid + " has " + llvm::Twine(grid->numRanks()) +
         " ranks, and " + llvm::Twine(options.ranks->numRanks()) +
         " were started");
    status = 1;
  } else {
    status = burst::calibrate(options, grid,
                              flags().calibrateOption.empty()
                                  ? "-"
                                  : flags().calibrateOption.getValue());
  }
  return options.ranks ? options.ranks->share(status) : status;
}

int burst::runMain(int argc, char **argv) {
  burst::prepareTool("burst-run");
  (void)threads(); // registers it
  cl::HideUnrelatedOptions(flags().category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Runs a sharded attention for all ranks in this "
                              "process, and checks it; or measures this "
                              "machine\n\n"
                              "FILE.so is what burst-compile made, whatever "
                              "its name; several files run one after the "
                              "other, up to the first that fails\n");
  burst::RunOptions options;
  llvm::SmallString<128> tool(llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&checkOptions)));
  llvm::sys::path::remove_filename(tool);
  llvm::sys::path::append(tool, "burst-run");
  options.tool = tool.str();
  options.entry = flags().entry;
  options.in = flags().in;
  options.out = flags().out;
  options.seed = flags().seed;
  options.json = flags().json;
  options.extents.assign(flags().extents.begin(), flags().extents.end());
  if (flags().batch.getNumOccurrences() != 0)
    options.batch = flags().batch;
  options.interpret = flags().interpret;
  options.threads = threads();
  options.deadline = flags().deadline;
  options.latency = flags().latency;
  options.bandwidth = flags().bandwidth;
  options.trace = flags().trace;
  options.dumpDirectory = flags().dump;
  options.architectures = flags().architectures;
  options.processor = flags().processor;
  options.features = flags().features;
  options.without = flags().without;
  if (!checkOptions(options))
    return 1;
  std::unique_ptr<burst::Ranks> ranks;
  if (!flags().transport.empty()) {
    std::string error;
    ranks = burst::Ranks::connect(flags().transport, options.gpu, error);
    if (!ranks->isConnected()) {
      fail("--transport=" + flags().transport + ": " + error);
      return 1;
    }
    options.ranks = ranks.get();
    options.gpu = ranks->gpu();
  }
  if (flags().calibrateOption.getNumOccurrences() != 0)
    return runCalibration(options);
  return runFiles(options);
}
