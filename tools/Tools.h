//===- Tools.h - the programs of the one binary -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// They are one binary, which holds LLVM once, under several names. Each is a
// function that is called as main, after llvm::InitLLVM; its options are made
// when it is called.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_TOOLS_TOOLS_H
#define BURST_TOOLS_TOOLS_H

namespace burst {

int compileMain(int argc, char **argv);
int lspServerMain(int argc, char **argv);
int optMain(int argc, char **argv);
int runMain(int argc, char **argv);
int translateMain(int argc, char **argv);

} // namespace burst

#endif // BURST_TOOLS_TOOLS_H
