//===- Peak.cpp - what the processor can do at most -----------------------===//
#include "bench/Peak.h"

#include <array>
#include <cmath>
#include <ctime>
#include <numeric>
#include <sched.h>
#include <thread>
#include <vector>

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

template <typename T>
double measure(double seconds) {
  using Vector __attribute__((vector_size(bytes))) = T;
  std::array<Vector, sums> sum{};
  Vector factor, term;
  for (size_t i = 0; i < bytes / sizeof(T); ++i) {
    factor[i] = T(0.999);
    term[i] = T(1e-9);
  }
  // Of this thread: others' programs do not count.
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           1e-9 * static_cast<double>(time.tv_nsec);
  };
  double begin = now();
  double passed = 0, rounds = 0;
  while (passed < seconds) {
    for (int i = 0; i < 1000000; ++i)
      for (Vector &s : sum) {
        s = s * factor + term;
        asm volatile("" : "+x"(s)); // keep the loop as it is
      }
    rounds += 1e6;
    passed = now() - begin;
  }
  constexpr size_t operations = bytes / sizeof(T) * sums * 2;
  return rounds * operations / passed;
}

} // namespace

double burst::bench::peakF32(double seconds) { return measure<float>(seconds); }
double burst::bench::peakF64(double seconds) {
  return measure<double>(seconds);
}

double burst::bench::peakOf(double (*peak)(double), int64_t threads,
                            double seconds) {
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
