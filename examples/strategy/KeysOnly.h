//===- KeysOnly.h - a strategy, as the how-to shows it ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_EXAMPLES_STRATEGY_KEYSONLY_H
#define BURST_EXAMPLES_STRATEGY_KEYSONLY_H

#include "passes/Strategies/Strategy.h"

namespace burst {

/// `keys_only`: a ring of keys and values, for a forward pass.
const Strategy *getKeysOnly();

} // namespace burst

#endif // BURST_EXAMPLES_STRATEGY_KEYSONLY_H
