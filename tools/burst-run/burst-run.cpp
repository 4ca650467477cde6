//===- burst-run.cpp - runs a sharded attention on this machine -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Files.h"
#include "support/NumberOption.h"
#include "support/Tool.h"
#include "tools/burst-run/Bundle.h"
#include "tools/burst-run/Calibrate.h"
#include "tools/burst-run/Runner.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <functional>

namespace cl = llvm::cl;

static cl::OptionCategory category("burst-run options");
static cl::opt<std::string>
    input(cl::Positional, cl::desc("FILE.mlir ('-' for stdin), or FILE.so"),
          cl::cat(category));
static cl::opt<std::string>
    entry("entry", cl::desc("The function to run, where there are several"),
          cl::value_desc("name"), cl::cat(category));
static cl::opt<std::string>
    in("in",
       cl::desc("Global tensors to run on, by the burst.name of the arguments, "
                "else arg0, arg1, ...; without it, seeded ones"),
       cl::value_desc("file.safetensors"), cl::cat(category));
static cl::opt<std::string>
    out("out",
        cl::desc("Where to write the global results, by burst.name, else "
                 "result0, result1, ..."),
        cl::value_desc("file.safetensors"), cl::cat(category));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of tensors without --in"),
                              cl::init(0), cl::cat(category));
static cl::opt<std::string>
    check("check", cl::ValueOptional,
          cl::desc("Compare with the fp64 oracle: all rows, or N of them"),
          cl::value_desc("rows:N"), cl::cat(category));
static cl::opt<bool> json("json", cl::desc("Print one JSON object"),
                          cl::cat(category));
static cl::list<int64_t>
    extents("extents", cl::CommaSeparated,
            cl::desc("Without --in: the dynamic sequence lengths, in order"),
            cl::value_desc("Sq,Sk"), cl::cat(category));
static cl::opt<int64_t>
    batch("batch", cl::desc("Without --in: the batch size, where dynamic (1)"),
          cl::cat(category));

static cl::opt<bool>
    interpret("interpret",
              cl::desc("Evaluate the schedule in fp64 instead of compiling it"),
              cl::cat(category));
/// libLLVM.so, where tools are linked to it, has an option of this name, which
/// must go before this one is made.
static cl::opt<int64_t> &threads() {
  static auto option = [] {
    if (cl::Option *other = cl::getRegisteredOptions().lookup("threads"))
      other->removeArgument();
    return std::make_unique<cl::opt<int64_t>>(
        "threads", cl::desc("Threads of compiled kernels (all processors)"),
        cl::cat(category));
  }();
  return *option;
}

static cl::opt<std::string> device(
    "device",
    cl::desc("What runs the kernels: this processor (cpu), or a GPU by its "
             "number (0), which all ranks share (cpu)"),
    cl::value_desc("cpu|cuda[:N]"), cl::init("cpu"), cl::cat(category));
static cl::opt<std::string>
    architectures("arch",
                  cl::desc("GPUs to compile for, as in burst-compile (sm_80, "
                           "and those found here)"),
                  cl::value_desc("sm_80,sm_90"), cl::cat(category));
static cl::opt<std::string> processor(
    "target-cpu",
    cl::desc("Processor to compile for, by LLVM's name, which this machine can "
             "follow; left out: this machine's"),
    cl::value_desc("name"), cl::cat(category));
static cl::opt<std::string>
    features("features", cl::desc("Features on top of the processor's"),
             cl::value_desc("+a,-b"), cl::cat(category));
static burst::NumberOption
    deadline("deadline", cl::desc("Give up where a rank waits longer (600)"),
             cl::value_desc("seconds"), cl::cat(category));
static burst::NumberOption
    latency("latency",
            cl::desc("Let every transfer take this long, and the time of its "
                     "bytes (0)"),
            cl::value_desc("seconds"), cl::cat(category));
static burst::NumberOption
    bandwidth("bandwidth",
              cl::desc("Bytes per second between two ranks (no limit)"),
              cl::value_desc("number"), cl::cat(category));
static cl::opt<std::string>
    trace("trace", cl::desc("Where to write a trace, for Chrome or Perfetto"),
          cl::value_desc("file.json"), cl::cat(category));
static cl::opt<std::string> calibrateOption(
    "calibrate", cl::ValueOptional,
    cl::desc("Run no file, but measure this machine and write what "
             "burst-choose-strategy reads of it, to the standard output or a "
             "file"),
    cl::value_desc("file.mlir"), cl::cat(category));
static cl::opt<std::string>
    dump("dump-dir",
         cl::desc("Where to write the IR of each phase, the object, the input "
                  "and replay.sh, which runs it again"),
         cl::value_desc("directory"), cl::cat(category));

/// `--check` (all rows, -1) or `--check=rows:N`; false where it is neither.
static bool parseCheck(std::optional<int64_t> &rows) {
  if (check.getNumOccurrences() == 0)
    return true;
  llvm::StringRef text = check;
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

/// `cpu`, `cuda` or `cuda:N`; false where it is none of these.
static bool parseDevice(std::optional<int64_t> &gpu) {
  llvm::StringRef text = device;
  if (text == "cpu")
    return true;
  gpu = 0;
  if (!text.consume_front("cuda"))
    return false;
  return text.empty() ||
         (text.consume_front(":") && !text.getAsInteger(10, *gpu) && *gpu >= 0);
}

static bool fail(const llvm::Twine &message) {
  llvm::errs() << "burst-run: " << message << "\n";
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

/// A calibration runs programs of its own, on the device and the transport that
/// the options describe.
static bool checkFile() {
  bool calibrates = calibrateOption.getNumOccurrences() != 0;
  bool hasFile = input.getNumOccurrences() != 0;
  if (!calibrates && !hasFile)
    return fail("takes a file, FILE.mlir or FILE.so, got none");
  if (!calibrates)
    return true;
  if (calibrateOption != "-" && !checkFolder(calibrateOption))
    return false;
  if (hasFile)
    return fail("--calibrate runs no file, got: " + input);
  if (const cl::Option *option = firstGiven(
          {entry, in, out, seed, check, json, extents, batch, interpret, trace,
           dump, device, architectures, processor, features}))
    return fail("--" + option->ArgStr +
                " is for a program, and --calibrate runs none");
  return true;
}

static bool checkOptions(burst::RunOptions &options) {
  if (!checkFile())
    return false;
  for (const auto *option : {&entry, &in, &out, &trace, &dump, &architectures,
                             &processor, &features})
    if (option->getNumOccurrences() != 0 && option->empty())
      return fail("--" + option->ArgStr + " takes a name, got nothing");
  if (!checkFolder(out) || !checkFolder(trace) || !checkApart(out, trace))
    return false;
  if (!in.empty() && (!options.extents.empty() || options.batch))
    return fail("--extents and --batch are for tensors that are made up, those "
                "of --in have sizes");
  if (!parseCheck(options.checkRows))
    return fail("--check takes nothing or rows:N with N > 0, got: " + check);
  if (threads().getNumOccurrences() != 0 && threads() < 1)
    return fail("--threads takes a number from 1, got: " +
                llvm::Twine(threads()));
  bool ends = std::isfinite(deadline) && deadline > 0;
  if (deadline.getNumOccurrences() != 0 && !ends)
    return fail("--deadline takes seconds above 0, got: " +
                llvm::formatv("{0}", deadline.getValue()).str());
  if (!std::isfinite(latency) || latency < 0)
    return fail("--latency takes seconds from 0, got: " +
                llvm::formatv("{0}", latency.getValue()).str());
  bool flows = std::isfinite(bandwidth) && bandwidth > 0;
  if (bandwidth.getNumOccurrences() != 0 && !flows)
    return fail("--bandwidth takes bytes per second above 0, got: " +
                llvm::formatv("{0}", bandwidth.getValue()).str());
  if (!parseDevice(options.gpu))
    return fail("--device takes cpu, cuda or cuda:N, got: " + device);
  if (!options.gpu && !architectures.empty())
    return fail("--arch is for GPUs, and --device is not cuda");
  if (options.gpu && threads().getNumOccurrences() != 0)
    return fail("--threads is for kernels of processors, and --device is " +
                device);
  if (interpret)
    if (const cl::Option *option =
            firstGiven({threads(), deadline, latency, bandwidth, trace, dump,
                        device, architectures, processor, features}))
      return fail("--" + option->ArgStr +
                  " is for compiled programs, and --interpret compiles none");
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  burst::prepareTool("burst-run");
  (void)threads(); // registers it
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Runs a sharded attention for all ranks in this "
                              "process, and checks it; or measures this "
                              "machine\n\n"
                              "FILE.so is what burst-compile made, whatever "
                              "its name\n");
  burst::RunOptions options;
  options.tool = llvm::sys::fs::getMainExecutable(
      argv[0], reinterpret_cast<void *>(&checkOptions));
  options.file = input;
  options.entry = entry;
  options.in = in;
  options.out = out;
  options.seed = seed;
  options.json = json;
  options.extents.assign(extents.begin(), extents.end());
  if (batch.getNumOccurrences() != 0)
    options.batch = batch;
  options.interpret = interpret;
  options.threads = threads();
  options.deadline = deadline;
  options.latency = latency;
  options.bandwidth = bandwidth;
  options.trace = trace;
  options.dumpDirectory = dump;
  options.architectures = architectures;
  options.processor = processor;
  options.features = features;
  if (!checkOptions(options))
    return 1;
  if (calibrateOption.getNumOccurrences() != 0)
    return burst::calibrate(
        options, calibrateOption.empty() ? "-" : calibrateOption.getValue());
  return burst::isBundle(options.file) ? burst::runBundle(options)
                                       : burst::run(options);
}
