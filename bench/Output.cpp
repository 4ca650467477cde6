//===- Output.cpp - files that are whole or not there ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Output.h"
#include "support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace burst::bench;
namespace fs = llvm::sys::fs;

std::string burst::bench::checkOutput(const std::string &path) {
  if (path == "/dev/null")
    return "";
  fs::file_status status;
  if (!fs::status(path, status) && status.type() != fs::file_type::regular_file)
    return path + " is no regular file: it is not replaced";
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (!fs::is_directory(folder))
    return "no folder " + folder.str() + " for " + path;
  if (fs::access(folder, fs::AccessMode::Write))
    return "cannot write to folder " + folder.str();
  return "";
}

std::string burst::bench::writeOutput(const std::string &path,
                                      const std::string &text) {
  if (std::string error = checkOutput(path); !error.empty())
    return error;
  if (llvm::Error error = writeFile(text, path))
    return llvm::toString(std::move(error));
  return "";
}
