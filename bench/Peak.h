//===- Peak.h - what the processor can do at most ---------------*- C++ -*-===//
#ifndef BURST_BENCH_PEAK_H
#define BURST_BENCH_PEAK_H

#include <cstdint>

namespace burst::bench {

/// Floating-point operations per second of one thread that does nothing but
/// multiply and add in registers, for about `seconds`.
double peakF32(double seconds);
double peakF64(double seconds);

/// The same of `threads` threads together, each pinned to a processor.
double peakOf(double (*peak)(double), int64_t threads, double seconds);

} // namespace burst::bench

#endif // BURST_BENCH_PEAK_H
