//===- Peak.cpp - what the processor can do at most -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Peak.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
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

/// Runs `body` on threads of their own, each pinned to the processor of its
/// number.
static void onThreads(int64_t threads,
                      const std::function<void(int64_t thread)> &body) {
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int64_t i = 0; i < threads; ++i)
    workers.emplace_back([&, i] {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(i, &set);
      sched_setaffinity(0, sizeof(set), &set);
      body(i);
    });
  for (std::thread &worker : workers)
    worker.join();
}

double burst::bench::peakOf(const std::string &type, int64_t threads,
                            double seconds) {
  auto *peak = type == "f64"    ? measureSums<double>
               : type == "bf16" ? measureDots
                                : measureSums<float>;
  std::vector<double> rates(threads);
  onThreads(threads, [&](int64_t i) { rates[i] = peak(seconds); });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

/// Four vectors at a time, as memory lies.
static void read(const std::byte *data, int64_t size) {
  using Vector __attribute__((vector_size(bytes))) = int64_t;
  Vector folded[4] = {};
  constexpr int64_t step = bytes;
  for (int64_t at = 0; at + 4 * step <= size; at += 4 * step)
    for (int64_t n = 0; n < 4; ++n) {
      Vector next;
      std::memcpy(&next, data + at + n * step, bytes);
      folded[n] ^= next;
    }
  for (Vector &all : folded)
    asm volatile("" ::"x"(all));
}

double burst::bench::readingOf(double wanted, int64_t threads) {
  int64_t part = static_cast<int64_t>(wanted) / threads;
  static std::vector<std::vector<std::byte>> memory;
  memory.resize(threads);
  std::barrier together(threads);
  std::vector<double> begun(threads), ended(threads);
  auto clock = [] {
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  onThreads(threads, [&](int64_t i) {
    // Other contents than zeros: pages that nobody wrote to are one page.
    if (memory[i].size() != static_cast<size_t>(part))
      memory[i].assign(part, std::byte{1});
    together.arrive_and_wait();
    begun[i] = clock();
    read(memory[i].data(), part);
    ended[i] = clock();
  });
  return static_cast<double>(part * threads) /
         (*std::ranges::max_element(ended) - *std::ranges::min_element(begun));
}
