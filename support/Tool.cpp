//===- Tool.cpp - what all programs of burst begin with -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Tool.h"
#include "runtime/include/burst/version.h"
#include "support/Files.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstring>
#include <tuple>
#include <unistd.h>

/// Allocates nothing.
static void say(const char *text) {
  std::ignore = write(STDERR_FILENO, text, std::strlen(text));
}

static void endWithoutMemory(void *name, const char *, bool) {
  say(static_cast<const char *>(name));
  say(": out of memory: use smaller sizes\n");
  llvm::sys::RunInterruptHandlers(); // removes temporary files
  _exit(1);
}

void burst::printVersion(llvm::raw_ostream &os) {
  os << "burst " BURST_VERSION " (LLVM " LLVM_VERSION_STRING ")\n";
}

void burst::setVersion() { llvm::cl::SetVersionPrinter(printVersion); }

void burst::prepareTool(const char *name) {
  setVersion();
  removeTemporaryFilesOnSignals();
  std::signal(SIGXFSZ, SIG_IGN); // writing says so, with the path
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(endWithoutMemory,
                                        const_cast<char *>(name));
}
