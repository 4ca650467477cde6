//===- Require.h - What callers of the oracle owe it ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TOOLS_ORACLE_REQUIRE_H
#define BURST_TOOLS_ORACLE_REQUIRE_H

#include <cstdio>
#include <cstdlib>

namespace burst::oracle {

/// An assertion that release builds check as well: an oracle that read beyond
/// its tensors would be worse than none.
inline void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "oracle: %s\n", what);
  std::abort();
}

} // namespace burst::oracle

#endif // BURST_TOOLS_ORACLE_REQUIRE_H
