//===- Peak.h - what the processor can do at most ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_BENCH_PEAK_H
#define BURST_BENCH_PEAK_H

#include <cstdint>
#include <string>

namespace burst::bench {

/// Floating-point operations per second of `threads` threads, each pinned to a
/// processor, that do nothing but multiply and add numbers of `type` in
/// registers, for about `seconds`. bf16 without an instruction for its products
/// is computed as f32.
double peakOf(const std::string &type, int64_t threads, double seconds);

/// Bytes per second of `threads` threads, each pinned to a processor, that do
/// nothing but read `wanted` bytes of memory once, each its part.
double readingOf(double wanted, int64_t threads);

/// Whether the processor has dot products of bf16, AVX512-BF16.
bool hasDot();

} // namespace burst::bench

#endif // BURST_BENCH_PEAK_H
