//===- burst-compile.cpp - writes programs that run without a compiler ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Frontend.h"
#include "jit/Processor.h"
#include "jit/SharedObject.h"
#include "jit/Without.h"
#include "support/Files.h"
#include "support/Tool.h"
#include "tools/Tools.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

namespace cl = llvm::cl;
using namespace mlir;
using namespace burst;

namespace {
enum class Emit : uint8_t { Shared, Object };
} // namespace

namespace {
/// Made when the program runs: another one in the same binary has options of
/// the same names.
struct Options {
  cl::OptionCategory category{"burst-compile options"};
  cl::opt<std::string> input{
      cl::Positional, cl::desc("FILE.mlir ('-' for stdin)"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("The file to write"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> entry{
      "entry", cl::desc("The function to compile, where there are several"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> target{
      "target", cl::desc("What to compile for, cpu or cuda (cpu)"),
      cl::value_desc("name"), cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> architectures{
      "arch",
      cl::desc("GPUs to make machine code for; PTX, for all later ones, of the "
               "first (sm_80, and those found here)"),
      cl::value_desc("sm_80,sm_90"), cl::cat(category)};
  cl::opt<std::string> triple{
      "target-triple",
      cl::desc("Architecture and system of the processor: x86_64 or "
               "aarch64, on linux; left out: this machine's"),
      cl::value_desc("aarch64-linux-gnu"), cl::cat(category)};
  cl::opt<std::string> processor{
      "target-cpu",
      cl::desc(
          "Processor, by LLVM's name, 'help' lists them; left out: that of "
          "this machine, or of another architecture one that all others can "
          "follow"),
      cl::value_desc("name"), cl::cat(category)};
  cl::opt<std::string> features{"features",
                                cl::desc("Features on top of the processor's"),
                                cl::value_desc("+a,-b"), cl::cat(category)};
  cl::opt<std::string> without{
      "without",
      cl::desc("Optimisations to leave out, to measure what they save: "
               "overlap, dropping, local_tiling"),
      cl::value_desc("names"), cl::cat(category)};
  cl::opt<Emit> emit{
      "emit", cl::desc("What to write"), cl::init(Emit::Shared),
      cl::values(clEnumValN(Emit::Shared, "shared",
                            "a shared object for burst-run and the runtime"),
                 clEnumValN(Emit::Object, "object",
                            "a relocatable object, to be linked with others")),
      cl::cat(category)};
  cl::opt<std::string> linker{
      "linker", cl::desc("The linker (ld.lld, ld or cc on the PATH)"),
      cl::value_desc("program"), cl::cat(category)};
  cl::opt<std::string> dump{
      "dump-dir",
      cl::desc("Where to write the IR of each phase and the object"),
      cl::value_desc("directory"), cl::cat(category)};
};
} // namespace

static Options &flags() {
  static Options options;
  return options;
}

static bool fail(const llvm::Twine &message) {
  llvm::errs() << "burst-compile: " << message << "\n";
  return false;
}

static bool checkOptions() {
  if (flags().input.getNumOccurrences() == 0)
    return fail("takes a file, FILE.mlir, got none");
  if (flags().output.getNumOccurrences() == 0)
    return fail("takes a file to write, -o FILE, got none");
  for (const auto *option :
       {&flags().output, &flags().entry, &flags().architectures,
        &flags().triple, &flags().processor, &flags().features,
        &flags().without, &flags().linker, &flags().dump})
    if (option->getNumOccurrences() != 0 && option->empty())
      return fail("-" + llvm::Twine(option == &flags().output ? "" : "-") +
                  option->ArgStr + " takes a name, got nothing");
  bool isObject = flags().emit == Emit::Object;
  if (flags().output == "-")
    return fail(llvm::Twine("-o - : ") + (isObject ? "an" : "a shared") +
                " object cannot be written to the standard output: name a "
                "file");
  if (isObject && !flags().linker.empty())
    return fail("--linker is of no use with --emit=object");
  return true;
}

static bool write(const host::Objects &objects, bool isNative) {
  auto link = isNative ? jit::linkFile : jit::crossLinkFile;
  llvm::Error error =
      flags().emit == Emit::Object
          ? writeFile(objects.front()->getBuffer(), flags().output)
          : link(objects, flags().linker, flags().output);
  return !error || fail(toString(std::move(error)));
}

static bool compile() {
  std::string error;
  FailureOr<jit::Target> machine =
      jit::findTarget({flags().target, flags().architectures, flags().triple,
                       flags().processor, flags().features},
                      error);
  if (failed(machine))
    return fail(error);
  auto without = jit::readWithout(
      flags().without, machine->gpu ? jit::whyTiledOnGpus : "", error);
  if (failed(without))
    return fail("--without: " + error);
  DialectRegistry registry;
  jit::registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  auto module = jit::parseFile(flags().input, sources, context, error);
  if (!module)
    return error.empty() ? false : fail(error);
  func::FuncOp function =
      jit::findEntry(*module, flags().entry, "--entry", error);
  if (!function)
    return fail(flags().input + ": " + error);
  host::Parts parts =
      flags().emit == Emit::Object ? host::Parts::One : host::Parts::Several;
  auto compiled = jit::compile(function, *machine, *without, parts,
                               host::Dump{flags().dump});
  if (failed(compiled))
    return false;
  if (!compiled->proved)
    llvm::errs() << "burst-compile: warning: the schedule is not proved, nor "
                    "can it be from the file that is written: sizes or tables "
                    "are known at run time only, and for every number of ranks "
                    "it is not: "
                 << compiled->reason << " (burst-run proves " << flags().input
                 << " for what it is given)\n";
  return write(compiled->objects, machine->host.isNative());
}

static bool listProcessors() {
  std::string error;
  auto names = cpu::Target::names(flags().triple, error);
  if (failed(names))
    return fail(error);
  for (const std::string &name : *names)
    llvm::outs() << name << "\n";
  return true;
}

int burst::compileMain(int argc, char **argv) {
  prepareTool("burst-compile");
  cl::HideUnrelatedOptions(flags().category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Compiles a sharded attention to a file that runs without a compiler\n");
  if (flags().processor == "help")
    return listProcessors() ? 0 : 1;
  return checkOptions() && compile() ? 0 : 1;
}
