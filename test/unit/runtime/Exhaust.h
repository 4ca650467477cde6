//===- Exhaust.h - What happens where memory is out -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_RUNTIME_EXHAUST_H
#define BURST_TEST_UNIT_RUNTIME_EXHAUST_H

#include "burst/burst.h"

#include <functional>

namespace burst::test {

/// Calls what uses the runtime over and over: the n-th time, the n-th
/// allocation fails, and then all from the n-th on, until there are no n. Each
/// call must succeed or return the error of memory that is out (or of a thread
/// that cannot be made), and leave nothing behind.
void exhaust(const std::function<burst_error *()> &call);

} // namespace burst::test

#endif // BURST_TEST_UNIT_RUNTIME_EXHAUST_H
