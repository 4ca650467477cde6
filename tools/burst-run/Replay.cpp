//===- Replay.cpp - runs that can be repeated -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/burst-run/Replay.h"

#include "support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

using namespace burst;

/// A word of the shell.
static std::string quote(llvm::StringRef text) {
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

static std::string scriptOf(const RunOptions &options) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#!/bin/sh\n"
         "# Repeats the run that wrote this directory; takes more options. "
         "BURST_RUN may\n# name another burst-run.\n"
         "here=$(cd \"$(dirname \"$0\")\" && pwd)\n"
         "exec \"${BURST_RUN:-"
      << options.tool << "}\" \"$here\"/input.mlir \\\n  --seed "
      << options.seed;
  if (!options.entry.empty())
    out << " --entry " << quote(options.entry);
  if (!options.in.empty())
    out << " --in \"$here\"/input.safetensors";
  if (!options.extents.empty()) {
    llvm::ListSeparator comma(",");
    out << " --extents ";
    for (int64_t extent : options.extents)
      out << comma << extent;
  }
  if (options.batch)
    out << " --batch " << *options.batch;
  if (options.checkRows)
    out << (*options.checkRows < 0
                ? std::string(" --check")
                : llvm::formatv(" --check=rows:{0}", *options.checkRows).str());
  if (options.explainRanks)
    out << (*options.explainRanks == 0
                ? std::string(" --explain")
                : llvm::formatv(" --explain={0}", *options.explainRanks).str());
  if (options.gpu)
    out << " --device cuda:" << *options.gpu;
  if (!options.architectures.empty())
    out << " --arch " << options.architectures;
  if (!options.processor.empty())
    out << " --target-cpu " << quote(options.processor);
  if (!options.features.empty())
    out << " --features " << quote(options.features);
  if (!options.without.empty())
    out << " --without " << options.without;
  if (options.threads)
    out << " --threads " << options.threads;
  for (auto [name, value] : {std::pair("deadline", options.deadline),
                             {"latency", options.latency},
                             {"bandwidth", options.bandwidth}})
    if (value != 0) // exactly, or it would be another run
      out << " --" << name << " " << llvm::format("%.17g", value);
  if (options.json)
    out << " --json";
  out << " \"$@\"\n";
  return text;
}

std::string burst::writeReplay(const RunOptions &options,
                               llvm::StringRef module) {
  llvm::StringRef directory = options.dumpDirectory;
  auto pathOf = [&](llvm::StringRef name) {
    llvm::SmallString<128> path(directory);
    llvm::sys::path::append(path, name);
    return path;
  };
  if (std::error_code code = llvm::sys::fs::create_directories(directory))
    return ("--dump-dir " + directory + ": " + code.message()).str();
  if (!options.in.empty())
    if (std::error_code code =
            llvm::sys::fs::copy_file(options.in, pathOf("input.safetensors")))
      return options.in + ": cannot be copied to " + directory.str() + ": " +
             code.message();
  std::string script = scriptOf(options);
  for (auto [name, text] :
       {std::pair<llvm::StringRef, llvm::StringRef>("input.mlir", module),
        {"replay.sh", script}})
    if (llvm::Error error = writeFile(text, pathOf(name)))
      return toString(std::move(error));
  if (chmod(pathOf("replay.sh").c_str(), 0755))
    return pathOf("replay.sh").str().str() + ": " + std::strerror(errno);
  return "";
}
