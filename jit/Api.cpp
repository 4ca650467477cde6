//===- Api.cpp - the compile half of burst/burst.h ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The boundary between C and C++. Alone with what it is made of before the
// compiler begins (Attention.cpp, AttentionNames.cpp), it is compiled with
// exceptions: what is thrown for want of memory ends here as an error. LLVM is
// built without, and its frames would be left as they are: past the begin of
// the compiler, an exception ends the process.
//
//===----------------------------------------------------------------------===//
#include "jit/Attention.h"
#include "jit/Cache.h"
#include "jit/Library.h"
#include "jit/Request.h"
#include "jit/RuntimeErrors.h"

#include "burst/internal/config.h"
#include "burst/internal/handle.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

using namespace burst;

namespace {

/// What `body` says, or that there was no memory.
template <typename Body>
burst_error *withoutExceptions(const char *function, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return burst_error_create(BURST_OUT_OF_MEMORY, "", "%s: out of memory",
                              function);
  }
}

template <typename Body>
burst_error *inCompiler(Body body) noexcept {
  return body();
}

// What MLIR says of places in a text counts in 32 bits.
constexpr size_t longestText = size_t{1} << 30;

burst_error *checkLength(const char *function, size_t length) {
  if (length <= longestText)
    return nullptr;
  return burst_error_create(BURST_INVALID_ARGUMENT, "",
                            "%s: length: %zu bytes, wanted at most %zu",
                            function, length, longestText);
}

std::string stringOf(const char *value, const char *standard = "") {
  return value ? value : standard;
}

/// `name` is that of the text, unless the config has one.
burst_error *readRequest(std::string text, const char *name,
                         const burst_compile_config *config,
                         jit::Request &request) {
  burst_compile_config known;
  if (burst_error *error =
          burst_config_read("burst_compile_config", &known, sizeof(known),
                            config, sizeof(known.size)))
    return error;
  BURST_CHECK(known.cache, BURST_KIND_CACHE);
  if (known.entry && !*known.entry)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "burst_compile_config: entry: empty, wanted the "
                              "name of a function, or NULL for the only one");
  request.text = std::move(text);
  request.name = stringOf(known.name, name);
  request.entry = stringOf(known.entry);
  request.dumpDirectory = stringOf(known.dump_directory);
  request.target = stringOf(known.target, "cpu");
  request.architectures = stringOf(known.architectures);
  request.processor = stringOf(known.processor);
  request.features = stringOf(known.features);
  request.without = stringOf(known.without);
  request.cache = known.cache;
  return nullptr;
}

burst_error *compileText(std::string text, const char *name,
                         const burst_compile_config *config,
                         burst_program **program) {
  jit::Request request;
  if (burst_error *error = readRequest(std::move(text), name, config, request))
    return error;
  return inCompiler([&] { return jit::compile(request, program); });
}

burst_error *readText(const burst_attention *attention, burst_attention &known,
                      std::string &text) {
  if (burst_error *error =
          burst_config_read("burst_attention", &known, sizeof(known), attention,
                            BURST_COVERS(burst_attention, head_dim)))
    return error;
  std::string wrong;
  text = jit::attentionText(known, wrong);
  if (wrong.empty())
    return nullptr;
  return burst_error_create(BURST_INVALID_ARGUMENT, "", "burst_attention: %s",
                            wrong.c_str());
}

/// A copy that the caller destroys with burst_text_destroy.
burst_error *give(const std::string &written, char **text) {
  *text = static_cast<char *>(std::malloc(written.size() + 1));
  if (!*text)
    return burst_error_no_memory(written.size() + 1);
  std::memcpy(*text, written.c_str(), written.size() + 1);
  return nullptr;
}

/// What the compiler refuses of a field, such as the parameters of a mask, is
/// told as an error of the field: the caller has not seen the module.
burst_error *nameField(burst_error *error, const burst_attention &attention,
                       const std::string &text) {
  std::unique_ptr<burst_error, decltype(&burst_error_destroy)> owned(
      error, burst_error_destroy);
  if (!error)
    return nullptr;
  std::string location = burst_error_location(error);
  std::string field = jit::fieldAt(attention, text, location);
  if (field.empty())
    return owned.release();
  // Behind the location and ": ".
  const char *message = burst_error_message(error) + location.size() + 2;
  return burst_error_create(BURST_INVALID_ARGUMENT, location.c_str(),
                            "burst_attention: %s: %s", field.c_str(), message);
}

} // namespace

//===----------------------------------------------------------------------===//
// Functions of burst.h
//===----------------------------------------------------------------------===//

burst_error *burst_cache_create(burst_cache **cache) {
  BURST_REQUIRE(cache);
  void *memory = std::malloc(sizeof(burst_cache));
  *cache = memory ? new (memory) burst_cache : nullptr;
  return memory ? nullptr : burst_error_no_memory(sizeof(burst_cache));
}

void burst_cache_destroy(burst_cache *cache) {
  BURST_CHECK(cache, BURST_KIND_CACHE);
  if (!cache)
    return;
  cache->~burst_cache();
  burst_handle_end(reinterpret_cast<burst_handle *>(cache));
  burst_handle_free(cache);
}

int64_t burst_cache_size(burst_cache *cache) {
  BURST_CHECK(cache, BURST_KIND_CACHE);
  return cache ? cache->size() : 0;
}

int64_t burst_cache_hits(burst_cache *cache) {
  BURST_CHECK(cache, BURST_KIND_CACHE);
  return cache ? cache->hits() : 0;
}

burst_error *burst_compile_text(const char *text, size_t length,
                                const burst_compile_config *config,
                                burst_program **program) {
  BURST_REQUIRE(program);
  *program = nullptr;
  BURST_REQUIRE(text);
  if (burst_error *error = checkLength(__func__, length))
    return error;
  return withoutExceptions(__func__, [&] {
    return compileText({text, length}, "text", config, program);
  });
}

burst_error *burst_compile_to_file(const char *text, size_t length,
                                   const burst_compile_config *config,
                                   const char *path) {
  BURST_REQUIRE(text);
  BURST_REQUIRE(path);
  if (burst_error *error = checkLength(__func__, length))
    return error;
  if (!*path)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "burst_compile_to_file: path: empty, wanted that "
                              "of a file to write");
  return withoutExceptions(__func__, [&]() -> burst_error * {
    jit::Request request;
    if (burst_error *error =
            readRequest({text, length}, "text", config, request))
      return error;
    if (request.cache)
      return burst_error_create(BURST_INVALID_ARGUMENT, "",
                                "burst_compile_config: a cache, wanted none: a "
                                "file is always compiled");
    return inCompiler([&] { return jit::compileToFile(request, path); });
  });
}

burst_error *burst_compile_attention(const burst_attention *attention,
                                     const burst_compile_config *config,
                                     burst_program **program) {
  BURST_REQUIRE(program);
  *program = nullptr;
  return withoutExceptions(__func__, [&]() -> burst_error * {
    burst_attention known;
    std::string text;
    if (burst_error *error = readText(attention, known, text))
      return error;
    return nameField(compileText(text, "burst_attention_text", config, program),
                     known, text);
  });
}

burst_error *burst_attention_text(const burst_attention *attention,
                                  char **text) {
  BURST_REQUIRE(text);
  *text = nullptr;
  return withoutExceptions(__func__, [&]() -> burst_error * {
    burst_attention known;
    std::string written;
    if (burst_error *error = readText(attention, known, written))
      return error;
    return give(written, text);
  });
}

burst_error *burst_explain_text(const char *text, size_t length,
                                const burst_explain_config *config,
                                char **told) {
  BURST_REQUIRE(text);
  BURST_REQUIRE(told);
  *told = nullptr;
  if (burst_error *error = checkLength(__func__, length))
    return error;
  return withoutExceptions(__func__, [&]() -> burst_error * {
    burst_explain_config known;
    if (burst_error *error =
            burst_config_read("burst_explain_config", &known, sizeof(known),
                              config, sizeof(known.size)))
      return error;
    if (known.what < BURST_EXPLAIN_TABLE ||
        known.what > BURST_EXPLAIN_COMPARISON)
      return burst_error_create(
          BURST_INVALID_ARGUMENT, "",
          "burst_explain_config: what: %" PRId64
          ", wanted BURST_EXPLAIN_TABLE, _PLAN, _SVG, _TIME, _TIME_JSON, "
          "_TIMELINE, _TIMELINE_SVG or _COMPARISON",
          known.what);
    bool showsRanks = known.what == BURST_EXPLAIN_TABLE ||
                      known.what == BURST_EXPLAIN_SVG ||
                      known.what == BURST_EXPLAIN_TIMELINE ||
                      known.what == BURST_EXPLAIN_TIMELINE_SVG;
    if (!showsRanks && known.max_ranks != 0)
      return burst_error_create(BURST_INVALID_ARGUMENT, "",
                                "burst_explain_config: max_ranks: %" PRId64
                                ", wanted 0: %s has all ranks",
                                known.max_ranks,
                                known.what == BURST_EXPLAIN_PLAN ? "a plan"
                                                                 : "a time");
    if (known.max_ranks < 0)
      return burst_error_create(BURST_INVALID_ARGUMENT, "",
                                "burst_explain_config: max_ranks: %" PRId64
                                ", wanted at least 1, or 0",
                                known.max_ranks);
    jit::ExplainRequest request{std::string(text, length),
                                stringOf(known.name, "text"),
                                stringOf(known.without),
                                stringOf(known.machine),
                                known.what == BURST_EXPLAIN_COMPARISON
                                    ? stringOf(known.compare, "strategies")
                                    : stringOf(known.compare),
                                known.what,
                                known.max_ranks};
    std::string written;
    if (burst_error *error =
            inCompiler([&] { return jit::explain(request, written); }))
      return error;
    return give(written, told);
  });
}

void burst_text_destroy(char *text) { std::free(text); }

burst_proof burst_program_proof(const burst_program *program) {
  return jit::proofOf(program);
}

burst_error *burst_program_prove(burst_program *program,
                                 const burst_tensor *globals, int64_t count) {
  BURST_REQUIRE_HANDLE(program, BURST_KIND_PROGRAM);
  if (count > 0)
    BURST_REQUIRE(globals);
  int64_t wanted = burst_program_num_arguments(program);
  if (count != wanted)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "%s: %" PRId64 " arguments, wanted %" PRId64,
                              burst_program_name(program), count, wanted);
  return inCompiler([&] {
    return jit::prove(program, {globals, static_cast<size_t>(count)});
  });
}
