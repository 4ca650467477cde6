//===- Tool.h - what all programs of burst begin with -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_SUPPORT_TOOL_H
#define BURST_SUPPORT_TOOL_H

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace burst {

/// The versions of burst and of LLVM, in a line.
void printVersion(llvm::raw_ostream &os);

/// `--version` tells that of burst, and of LLVM. Before options are parsed.
void setVersion();

/// What setVersion does. Where memory is out, a program ends with status 1 and
/// a message that begins with its name. Where a signal such as SIGINT ends it,
/// its temporary files are removed. A file that gets larger than it may be is
/// an error of the writer. After llvm::InitLLVM; `name` must live as long as
/// the program.
void prepareTool(const char *name);

} // namespace burst

#endif // BURST_SUPPORT_TOOL_H
