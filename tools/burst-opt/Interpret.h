//===- Interpret.h - the pass ring-interpret --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_BURST_OPT_INTERPRET_H
#define BURST_TOOLS_BURST_OPT_INTERPRET_H

namespace burst {

/// Registers `ring-interpret`, which runs every rank's program of a module on
/// seeded tensors and prints a digest of each global result.
void registerInterpretPass();

} // namespace burst

#endif // BURST_TOOLS_BURST_OPT_INTERPRET_H
