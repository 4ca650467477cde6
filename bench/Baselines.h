//===- Baselines.h - what each optimisation saves ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_BASELINES_H
#define BURST_BENCH_BASELINES_H

#include "bench/Bound.h"
#include "bench/Table.h"

namespace burst::bench {

struct BaselineOptions {
  int64_t sequence, ranks, repeat;
  std::string only; ///< models and directions whose name contains it
};

/// Attention of LLaMA-2-7B and Llama-3-8B by the chosen strategy, and with each
/// optimisation left out: bytes, memory and time, as a table in Markdown.
void measureBaselines(Table &table, const Device &device,
                      const cpu::Target &target,
                      const BaselineOptions &options);

} // namespace burst::bench

#endif // BURST_BENCH_BASELINES_H
