//===- Sanitizers.h - Fewer tests where each takes long -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_UNIT_SANITIZERS_H
#define BURST_TEST_UNIT_SANITIZERS_H

#include <cstddef>
#include <utility>
#include <vector>

namespace burst::test {

/// Built with the sanitizer of addresses or of threads, which takes five to
/// ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool isSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool isSanitized = true;
#else
inline constexpr bool isSanitized = false;
#endif
#else
inline constexpr bool isSanitized = false;
#endif

/// Of a list of tests that all run the same code of ours: one in three where
/// sanitized, which finds what a sanitizer can.
template <class T>
std::vector<T> sampleOf(std::vector<T> all) {
  constexpr size_t step = isSanitized ? 3 : 1;
  std::vector<T> some;
  for (size_t i = 0; i < all.size(); i += step)
    some.push_back(std::move(all[i]));
  return some;
}

} // namespace burst::test

#endif // BURST_TEST_UNIT_SANITIZERS_H
