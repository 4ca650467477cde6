//===- MemoryTest.cpp - no exception comes out of C -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets the n-th allocation of a call fail, for every n, each in a process of
// its own. Until the compiler begins, it must be an error; the compiler ends
// the process, as burst/burst.h says.
//
//===----------------------------------------------------------------------===//
#include "Problem.h"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

using namespace burst;
using namespace burst::test;

/// The allocation that fails, counted down; below it, none does.
static int64_t failing = 0;

static bool fails() { return failing > 0 && --failing == 0; }

// In the place of glibc's for all of the process.
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *malloc(size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
}

namespace {

enum class End { Success, Memory, Compiler };

/// How a call ends of which allocation `n` fails.
End endOf(const std::function<burst_error *()> &call, int64_t n) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    // What LLVM says when memory is out, and how exceptions end there.
    std::ignore = std::freopen("/dev/null", "w", stderr);
    failing = n;
    burst_error *error = call();
    bool happened = failing == 0;
    failing = 0;
    if (!happened)
      _exit(error ? 3 : 0);
    _exit(error && burst_error_code(error) == BURST_OUT_OF_MEMORY ? 1 : 2);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
    return End::Compiler;
  EXPECT_TRUE(WIFEXITED(status)) << "allocation " << n << ", status " << status;
  EXPECT_LT(WEXITSTATUS(status), 2) << "allocation " << n;
  return WEXITSTATUS(status) == 0 ? End::Success : End::Memory;
}

/// How many allocations may fail with an error until the call ends as `last`.
int64_t countUntil(End last, const std::function<burst_error *()> &call) {
  for (int64_t n = 1;; ++n) {
    End end = endOf(call, n);
    if (end == End::Memory)
      continue;
    EXPECT_EQ(int(end), int(last)) << "allocation " << n;
    return n - 1;
  }
}

const char *const moduleText =
    "a text that is longer than what needs no memory";

TEST(Memory, ofTexts) {
  burst_attention attention = smallAttention();
  attention.mask = "[documents, causal]";
  attention.score = "[softcap<30.0>, alibi, bias]";
  attention.strategy = "ring_q";
  char *text;
  EXPECT_GT(countUntil(End::Success,
                       [&] { return burst_attention_text(&attention, &text); }),
            20);
  burst_cache *cache;
  EXPECT_EQ(
      countUntil(End::Success, [&] { return burst_cache_create(&cache); }), 1);
}

TEST(Memory, ofCompilationsUntilTheCompilerBegins) {
  burst_attention attention = smallAttention();
  burst_program *program;
  auto config = api::make<burst_compile_config>();
  config.entry = config.processor = moduleText;
  EXPECT_GE(countUntil(End::Compiler,
                       [&] {
                         return burst_compile_text(moduleText,
                                                   std::strlen(moduleText),
                                                   &config, &program);
                       }),
            3);
  EXPECT_GE(countUntil(End::Compiler,
                       [&] {
                         return burst_compile_to_file(moduleText,
                                                      std::strlen(moduleText),
                                                      &config, "/dev/null/x");
                       }),
            3);
  EXPECT_GT(countUntil(End::Compiler,
                       [&] {
                         return burst_compile_attention(&attention, &config,
                                                        &program);
                       }),
            20);
}

} // namespace
