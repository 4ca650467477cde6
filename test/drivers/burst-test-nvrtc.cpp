//===- burst-test-nvrtc.cpp - compiles files of CUDA C++, for tests -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/CompileLog.h"
#include "codegen/cuda/Compiler.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace burst::cuda;

static cl::OptionCategory category("burst-test-nvrtc options");
static cl::list<std::string> inputs(cl::Positional, cl::OneOrMore,
                                    cl::desc("FILE.cu..."), cl::cat(category));
static cl::opt<std::string>
    architecture("arch", cl::desc("What to compile for, as NVRTC spells it"),
                 cl::value_desc("sm_90a"), cl::init("sm_90a"),
                 cl::cat(category));
static cl::list<std::string> options("option",
                                     cl::desc("A further option of NVRTC"),
                                     cl::value_desc("text"), cl::cat(category));
static cl::opt<bool> lineInfo("line-info",
                              cl::desc("Tell which line code comes from"),
                              cl::cat(category));
static cl::opt<std::string> ptx("ptx", cl::desc("Where to write the PTX"),
                                cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string> cubin("cubin", cl::desc("Where to write the cubin"),
                                  cl::value_desc("file"), cl::cat(category));

static bool fail(const llvm::Twine &message) {
  llvm::errs() << "burst-test-nvrtc: " << message << "\n";
  return false;
}

static bool fail(llvm::Error error) { return fail(toString(std::move(error))); }

static bool write(llvm::StringRef path, llvm::StringRef bytes) {
  if (path.empty())
    return true;
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return fail(path + ": " + error.message());
  stream << bytes;
  return true;
}

/// Prints what each function uses, and writes the files that were asked for.
static bool report(llvm::StringRef name, const Binary &binary) {
  CompileLog log = CompileLog::read(binary.log);
  llvm::outs() << name << " for " << architecture << "\n";
  for (const FunctionUse &use : log.functions)
    llvm::outs() << llvm::formatv(
        "  {0} {1}: {2} registers, {3} barriers, {4} bytes of shared memory, "
        "{5} bytes of stack, {6} bytes of spills stored, {7} bytes loaded\n",
        use.isKernel ? "kernel" : "function", use.name, use.registers,
        use.barriers, use.sharedBytes, use.stackBytes, use.spillStoreBytes,
        use.spillLoadBytes);
  for (const std::string &note : log.notes)
    llvm::outs() << "  " << note << "\n";
  return write(ptx, binary.ptx) && write(cubin, binary.cubin);
}

static bool run() {
  if (inputs.size() > 1 && !(ptx.empty() && cubin.empty()))
    return fail("several files: wanted one to be written");
  std::vector<Source> sources;
  sources.reserve(inputs.size());
  for (const std::string &input : inputs) {
    auto buffer = llvm::MemoryBuffer::getFile(input, /*IsText=*/true);
    if (!buffer)
      return fail(input + ": " + buffer.getError().message());
    sources.push_back({llvm::sys::path::filename(input).str(),
                       (*buffer)->getBuffer().str(), architecture, lineInfo,
                       options});
  }
  llvm::Expected<CacheConfig> config = CacheConfig::fromEnvironment();
  if (!config)
    return fail(config.takeError());
  llvm::Expected<std::unique_ptr<Compiler>> compiler =
      Compiler::create(std::move(*config));
  if (!compiler)
    return fail(compiler.takeError());
  bool good = true;
  std::vector<llvm::Expected<Binary>> binaries =
      (*compiler)->compileAll(sources);
  for (auto [source, binary] : llvm::zip_equal(sources, binaries))
    good = (binary ? report(source.name, *binary) : fail(binary.takeError())) &&
           good;
  return good;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "compiles files of CUDA C++, for tests\n");
  return run() ? 0 : 1;
}
