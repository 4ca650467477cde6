//===- Processor.c - What this processor can do ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By the numbers of the manuals: a compiler's own names for them differ from
// LLVM's, and from version to version.
//
//===----------------------------------------------------------------------===//
#include "burst/internal/processor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

// What the system saves of registers when it switches threads.
enum { ANY = 0, YMM = 0x6, ZMM = 0xe6, EGPR = 0x80000 };

enum { EAX, EBX, ECX, EDX };

static const struct {
  const char *name;
  uint32_t leaf, subleaf;
  int word, bit;
  uint32_t state;
} features[] = {
    {"sse3", 1, 0, ECX, 0, ANY},
    {"ssse3", 1, 0, ECX, 9, ANY},
    {"fma", 1, 0, ECX, 12, YMM},
    {"sse4.1", 1, 0, ECX, 19, ANY},
    {"sse4.2", 1, 0, ECX, 20, ANY},
    {"movbe", 1, 0, ECX, 22, ANY},
    {"popcnt", 1, 0, ECX, 23, ANY},
    {"avx", 1, 0, ECX, 28, YMM},
    {"f16c", 1, 0, ECX, 29, YMM},
    {"bmi", 7, 0, EBX, 3, ANY},
    {"avx2", 7, 0, EBX, 5, YMM},
    {"bmi2", 7, 0, EBX, 8, ANY},
    {"avx512f", 7, 0, EBX, 16, ZMM},
    {"avx512dq", 7, 0, EBX, 17, ZMM},
    {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"avx512cd", 7, 0, EBX, 28, ZMM},
    {"avx512bw", 7, 0, EBX, 30, ZMM},
    {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM},
    {"gfni", 7, 0, ECX, 8, ANY},
    {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM},
    {"avx512fp16", 7, 0, EDX, 23, ZMM},
    {"avxvnni", 7, 1, EAX, 4, YMM},
    {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"avxifma", 7, 1, EAX, 23, YMM},
    {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"avx10.1", 7, 1, EDX, 19, ZMM},
    {"avx10.2", 0x24, 0, EBX, 1, ZMM}, // the version, 2 or later
    {"egpr", 7, 1, EDX, 21, EGPR},
    {"lzcnt", 0x80000001, 0, ECX, 5, ANY},
    {"sse4a", 0x80000001, 0, ECX, 6, ANY},
    {"xop", 0x80000001, 0, ECX, 11, YMM},
    {"fma4", 0x80000001, 0, ECX, 16, YMM},
    {"tbm", 0x80000001, 0, ECX, 21, ANY},
};

static uint32_t saved_state(void) {
  uint32_t words[4];
  const uint32_t osxsave = 1u << 27;
  if (!__get_cpuid(1, &words[EAX], &words[EBX], &words[ECX], &words[EDX]) ||
      !(words[ECX] & osxsave))
    return 0;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static bool is_there(size_t feature) {
  uint32_t words[4], state = features[feature].state;
  return __get_cpuid_count(features[feature].leaf, features[feature].subleaf,
                           &words[EAX], &words[EBX], &words[ECX],
                           &words[EDX]) &&
         (words[features[feature].word] >> features[feature].bit & 1) &&
         (state == ANY || (saved_state() & state) == state);
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

// Bits of <asm/hwcap.h>, of which older ones lack some.
static const struct {
  const char *name;
  unsigned long vector; // AT_HWCAP or AT_HWCAP2
  int bit;
} features[] = {
    {"crc", AT_HWCAP, 7},       {"lse", AT_HWCAP, 8},
    {"fullfp16", AT_HWCAP, 10}, {"rdm", AT_HWCAP, 12},
    {"jsconv", AT_HWCAP, 13},   {"complxnum", AT_HWCAP, 14},
    {"rcpc", AT_HWCAP, 15},     {"dotprod", AT_HWCAP, 20},
    {"sve", AT_HWCAP, 22},      {"fp16fml", AT_HWCAP, 23},
    {"flagm", AT_HWCAP, 27},    {"sve2", AT_HWCAP2, 1},
    {"altnzcv", AT_HWCAP2, 7},  {"fptoint", AT_HWCAP2, 8},
    {"i8mm", AT_HWCAP2, 13},    {"bf16", AT_HWCAP2, 14},
    {"sme", AT_HWCAP2, 23},     {"cssc", AT_HWCAP2, 34},
    {"sve2p1", AT_HWCAP2, 36},  {"mops", AT_HWCAP2, 43},
};

static bool is_there(size_t feature) {
  return getauxval(features[feature].vector) >> features[feature].bit & 1;
}
#endif

int burst_processor_has(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof(features) / sizeof(*features); ++i)
    if (strlen(features[i].name) == length &&
        memcmp(features[i].name, name, length) == 0)
      return is_there(i);
  return -1;
}
