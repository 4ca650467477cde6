//===- Files.h - files that are whole or not there --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_SUPPORT_FILES_H
#define BURST_SUPPORT_FILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <utility>

namespace burst {

/// Writes `bytes` under a temporary name beside `path`, which it then replaces.
/// A link stays, and what it leads to is replaced; to a device or a pipe they
/// are written. Errors name the path, and leave no file behind.
llvm::Error writeFile(llvm::StringRef bytes, llvm::StringRef path);

/// The whole text of a program, "-" for the standard input: a file, or what
/// comes through a pipe, of at most 1 GiB. Of devices only /dev/stdin is read,
/// others may have no end. Errors name the path.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInput(llvm::StringRef path);

/// What is there, at the end of links, and is written to instead of being
/// replaced: a device or a pipe.
bool isSpecial(llvm::StringRef path);

/// A file that is removed again unless it is kept.
/// (llvm::sys::fs::TempFile handles signals, which are the host's.)
class TemporaryFile {
public:
  /// Beside the one that it shall replace. A link stays, and the file it leads
  /// to is replaced.
  static llvm::Expected<TemporaryFile> beside(llvm::StringRef path,
                                              unsigned mode);
  /// In the folder for temporary files, which an error names.
  static llvm::Expected<TemporaryFile> create(llvm::StringRef stem,
                                              llvm::StringRef suffix);

  TemporaryFile(TemporaryFile &&other)
      : path(std::move(other.path)), name(std::exchange(other.name, "")),
        descriptor(other.descriptor) {}
  ~TemporaryFile();

  const std::string &getName() const { return name; }

  llvm::Error write(llvm::StringRef bytes);
  /// Replaces the file that this one was made for.
  llvm::Error keep();

private:
  TemporaryFile(llvm::StringRef path, llvm::StringRef name, int descriptor);
  void forget();

  std::string path, name;
  int descriptor;
};

/// For programs: temporary files that are there when a signal such as SIGINT
/// ends the process are removed then. Not for libraries, whose host has the
/// signals.
void removeTemporaryFilesOnSignals();

} // namespace burst

#endif // BURST_SUPPORT_FILES_H
