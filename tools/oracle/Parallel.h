//===- Parallel.h - What evaluations are made of ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TOOLS_ORACLE_PARALLEL_H
#define BURST_TOOLS_ORACLE_PARALLEL_H

#include <cstddef>
#include <functional>

namespace burst::oracle {

/// A sum that keeps what the additions round away.
class CompensatedSum {
public:
  void add(double x) {
    double next = sum + x, added = next - sum;
    lost += (sum - (next - added)) + (x - added);
    sum = next;
  }
  double get() const { return sum + lost; }

private:
  double sum = 0, lost = 0;
};

/// Calls `task` with every number below `count`, from several threads; 0: as
/// many as the machine has.
void inParallel(size_t count, unsigned threads,
                const std::function<void(size_t)> &task);

} // namespace burst::oracle

#endif // BURST_TOOLS_ORACLE_PARALLEL_H
