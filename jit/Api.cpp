//===- Api.cpp - the compile half of burst/burst.h ------------------------===//
#include "jit/Attention.h"
#include "jit/Cache.h"
#include "jit/Diagnostics.h"
#include "jit/Library.h"
#include "jit/Processor.h"
#include "jit/RuntimeErrors.h"
#include "jit/SharedObject.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include <cstdlib>
#include <cstring>
#include <new>

using namespace mlir;
using namespace burst;

namespace {

/// A text, and how it is compiled; everything that was asked for was checked.
struct Request {
  std::string text, name, entry;
  jit::Target target = cpu::Target();
  cpu::Dump dump;
  burst_cache *cache = nullptr;

  /// What decides the code, and nothing else.
  std::string key() const {
    std::string key, gpu = target.gpu ? target.gpu->str() : "no GPU";
    for (StringRef part :
         {StringRef(text), StringRef(entry), StringRef(target.host.processor),
          StringRef(target.host.features), StringRef(gpu),
          StringRef(dump.directory)}) {
      key += part;
      key += '\0';
    }
    return key;
  }
};

burst_error *invalid(const std::string &message) {
  return jit::makeError(BURST_INVALID_ARGUMENT, message);
}

/// `name` is that of the text, unless the config has one.
burst_error *readRequest(StringRef text, const char *name,
                         const burst_compile_config *config, Request &request) {
  burst_compile_config known;
  if (burst_error *error =
          burst_config_read("burst_compile_config", &known, sizeof(known),
                            config, sizeof(known.size)))
    return error;
  auto stringOf = [](const char *value, const char *standard = "") {
    return std::string(value ? value : standard);
  };
  request.text = text.str();
  request.name = stringOf(known.name, name);
  request.entry = stringOf(known.entry);
  request.cache = known.cache;
  std::string error;
  auto target = jit::findTarget(
      {stringOf(known.target, "cpu"), stringOf(known.architectures),
       /*triple=*/"", stringOf(known.processor), stringOf(known.features)},
      error);
  if (failed(target))
    return invalid("burst_compile_config: " + error);
  request.target = *target;
  request.dump.directory = stringOf(known.dump_directory);
  if (known.dump_directory)
    if (std::error_code code =
            llvm::sys::fs::create_directories(known.dump_directory))
      return jit::makeError(
          BURST_SYSTEM, "burst_compile_config: dump_directory '" +
                            request.dump.directory + "': " + code.message());
  return nullptr;
}

burst_error *compile(const Request &request, jit::Compiled &compiled) {
  DialectRegistry dialects;
  jit::registerDialects(dialects);
  // A context of its own: compilations share nothing.
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
  jit::Diagnostics diagnostics(&context);
  auto fail = [&] {
    return jit::makeError(BURST_INVALID_PROGRAM,
                          diagnostics.empty() ? "cannot be compiled"
                                              : diagnostics.getText(),
                          diagnostics.getLocation());
  };
  auto module =
      parseSourceString<ModuleOp>(request.text, &context, request.name);
  if (!module)
    return fail();
  std::string error;
  func::FuncOp entry = jit::findEntry(*module, request.entry, "entry", error);
  if (!entry)
    return jit::makeError(BURST_INVALID_PROGRAM, error, request.name);
  auto found =
      jit::compile(entry, request.target, cpu::Parts::Several, request.dump);
  if (failed(found))
    return fail();
  compiled = std::move(*found);
  return nullptr;
}

/// Code of another processor would end the process where it is run.
burst_error *checkHost(const cpu::Target &target) {
  std::string feature = jit::missingFeature(target);
  if (feature.empty())
    return nullptr;
  return invalid("burst_compile_config: processor " + target.processor +
                 " with " + feature + ", which this machine lacks");
}

burst_error *compileText(StringRef text, const char *name,
                         const burst_compile_config *config,
                         burst_program **program) {
  Request request;
  if (burst_error *error = readRequest(text, name, config, request))
    return error;
  auto make = [&](burst_program **made) -> burst_error * {
    if (burst_error *error = checkHost(request.target.host))
      return error;
    jit::Compiled compiled;
    if (burst_error *error = compile(request, compiled))
      return error;
    return jit::install(std::move(compiled), made);
  };
  return request.cache ? request.cache->get(request.key(), make, program)
                       : make(program);
}

burst_error *readText(const burst_attention *attention, std::string &text) {
  burst_attention known;
  if (burst_error *error =
          burst_config_read("burst_attention", &known, sizeof(known), attention,
                            BURST_COVERS(burst_attention, head_dim)))
    return error;
  std::string wrong;
  text = jit::attentionText(known, wrong);
  return wrong.empty() ? nullptr : invalid("burst_attention: " + wrong);
}

} // namespace

//===----------------------------------------------------------------------===//
// Functions of burst.h
//===----------------------------------------------------------------------===//

burst_error *burst_cache_create(burst_cache **cache) {
  *cache = new (std::nothrow) burst_cache;
  return *cache ? nullptr : burst_error_no_memory(sizeof(burst_cache));
}

void burst_cache_destroy(burst_cache *cache) { delete cache; }

int64_t burst_cache_size(burst_cache *cache) { return cache->size(); }

int64_t burst_cache_hits(burst_cache *cache) { return cache->hits(); }

burst_error *burst_compile_text(const char *text, size_t length,
                                const burst_compile_config *config,
                                burst_program **program) {
  *program = nullptr;
  if (!text)
    return invalid("no text");
  return compileText({text, length}, "text", config, program);
}

burst_error *burst_compile_to_file(const char *text, size_t length,
                                   const burst_compile_config *config,
                                   const char *path) {
  if (!text)
    return invalid("no text");
  if (!path || !*path)
    return invalid("no path");
  Request request;
  if (burst_error *error = readRequest({text, length}, "text", config, request))
    return error;
  if (request.cache)
    return invalid("burst_compile_config: a cache, wanted none: a file is "
                   "always compiled");
  jit::Compiled compiled;
  if (burst_error *error = compile(request, compiled))
    return error;
  if (llvm::Error error = jit::linkFile(compiled.objects, /*linker=*/"", path))
    return jit::makeError(BURST_SYSTEM, toString(std::move(error)));
  return nullptr;
}

burst_error *burst_compile_attention(const burst_attention *attention,
                                     const burst_compile_config *config,
                                     burst_program **program) {
  *program = nullptr;
  std::string text;
  if (burst_error *error = readText(attention, text))
    return error;
  return compileText(text, "burst_attention_text", config, program);
}

burst_error *burst_attention_text(const burst_attention *attention,
                                  char **text) {
  *text = nullptr;
  std::string written;
  if (burst_error *error = readText(attention, written))
    return error;
  *text = static_cast<char *>(std::malloc(written.size() + 1));
  if (!*text)
    return burst_error_no_memory(written.size() + 1);
  std::memcpy(*text, written.c_str(), written.size() + 1);
  return nullptr;
}

void burst_text_destroy(char *text) { std::free(text); }

burst_error *burst_program_prove(burst_program *program,
                                 const burst_tensor *globals, int64_t count) {
  if (count < 0 || (count > 0 && !globals))
    return invalid("no arguments, or a negative number of them");
  return jit::prove(program, {globals, static_cast<size_t>(count)});
}
