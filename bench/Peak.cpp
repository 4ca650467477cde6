//===- Peak.cpp - what the processor can do at most -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Peak.h"

#include <array>
#include <bit>
#include <cmath>
#include <ctime>
#include <numeric>
#include <sched.h>
#include <thread>
#include <vector>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace {

/// As wide as a register of the processor this is compiled for.
#if defined(__AVX512F__)
constexpr int bytes = 64;
#elif defined(__AVX__)
constexpr int bytes = 32;
#else
constexpr int bytes = 16;
#endif

/// Sums that do not wait for each other: latency times throughput of any
/// processor, and fewer than its registers.
constexpr int sums = 12;

/// Of this thread: others' programs do not count.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

/// `step` adds to a register with `operations` operations.
template <typename Vector, typename Step>
double measure(double seconds, double operations, Step step) {
  std::array<Vector, sums> sum{};
  double begin = now();
  double passed = 0, rounds = 0;
  while (passed < seconds) {
    for (int i = 0; i < 1000000; ++i)
      for (Vector &s : sum) {
        s = step(s);
        asm volatile("" : "+x"(s)); // keep the loop as it is
      }
    rounds += 1e6;
    passed = now() - begin;
  }
  return rounds * sums * operations / passed;
}

template <typename T>
double measureSums(double seconds) {
  using Vector __attribute__((vector_size(bytes))) = T;
  constexpr int lanes = bytes / sizeof(T);
  Vector factor, term;
  for (int i = 0; i < lanes; ++i) {
    factor[i] = T(0.999);
    term[i] = T(1e-9);
  }
  return measure<Vector>(seconds, 2 * lanes,
                         [&](Vector s) { return s * factor + term; });
}

double measureDots(double seconds) {
#ifdef __AVX512BF16__
  // Pairs of numbers, each of them 2^-60.
  auto factor = std::bit_cast<__m512bh>(_mm512_set1_epi16(0x2180));
  return measure<__m512>(seconds, 2 * 32, [&](__m512 s) {
    return _mm512_dpbf16_ps(s, factor, factor);
  });
#else
  return measureSums<float>(seconds);
#endif
}

} // namespace

bool burst::bench::hasDot() {
#ifdef __AVX512BF16__
  return true;
#else
  return false;
#endif
}

double burst::bench::peakOf(const std::string &type, int64_t threads,
                            double seconds) {
  auto *peak = type == "f64"    ? measureSums<double>
               : type == "bf16" ? measureDots
                                : measureSums<float>;
  std::vector<double> rates(threads);
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int64_t i = 0; i < threads; ++i)
    workers.emplace_back([&, i] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(i, &set);
      sched_setaffinity(0, sizeof(set), &set);
      rates[i] = peak(seconds);
    });
  for (std::thread &worker : workers)
    worker.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}
