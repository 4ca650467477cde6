//===- Request.cpp - what a caller wants compiled -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Request.h"

#include "jit/Cache.h"
#include "jit/Diagnostics.h"
#include "jit/Library.h"
#include "jit/Processor.h"
#include "jit/RuntimeErrors.h"
#include "jit/SharedObject.h"
#include "jit/Without.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace burst;

static burst_error *invalid(const std::string &message) {
  return jit::makeError(BURST_INVALID_ARGUMENT,
                        "burst_compile_config: " + message);
}

static burst_error *readTarget(const jit::Request &request, jit::Target &target,
                               jit::Without &without) {
  std::string error;
  auto found =
      jit::findTarget({request.target, request.architectures,
                       /*triple=*/"", request.processor, request.features},
                      error);
  if (failed(found))
    return invalid(error);
  target = *found;
  auto leftOut = jit::readWithout(request.without,
                                  target.gpu ? jit::whyTiledOnGpus : "", error);
  if (failed(leftOut))
    return invalid(error);
  without = *leftOut;
  return nullptr;
}

/// What decides the code, and nothing else.
static std::string keyOf(const jit::Request &request, const jit::Target &target,
                         const jit::Without &without) {
  std::string key, gpu = target.gpu ? target.gpu->str() : "no GPU";
  std::string leftOut = without.str();
  for (StringRef part :
       {StringRef(request.text), StringRef(request.entry),
        StringRef(target.host.processor), StringRef(target.host.features),
        StringRef(gpu), StringRef(leftOut), StringRef(request.dumpDirectory)}) {
    key += part;
    key += '\0';
  }
  return key;
}

static burst_error *makeDumpDirectory(const std::string &directory) {
  if (directory.empty())
    return nullptr;
  std::error_code code = llvm::sys::fs::create_directories(directory);
  return code ? jit::makeError(BURST_SYSTEM,
                               "burst_compile_config: dump_directory '" +
                                   directory + "': " + code.message())
              : nullptr;
}

static burst_error *compileFor(const jit::Request &request,
                               const jit::Target &target,
                               const jit::Without &without,
                               jit::Compiled &compiled) {
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
  auto found = jit::compile(entry, target, without, host::Parts::Several,
                            host::Dump{request.dumpDirectory});
  if (failed(found))
    return fail();
  compiled = std::move(*found);
  return nullptr;
}

/// Code of another processor would end the process where it is run.
static burst_error *checkHost(const cpu::Target &target) {
  std::string feature = jit::missingFeature(target);
  if (feature.empty())
    return nullptr;
  return invalid("processor " + target.processor + " with " + feature +
                 ", which this machine lacks");
}

burst_error *jit::compile(const Request &request, burst_program **program) {
  Target target = cpu::Target();
  Without without;
  burst_error *error = readTarget(request, target, without);
  if (!error)
    error = makeDumpDirectory(request.dumpDirectory);
  if (error)
    return error;
  auto make = [&](burst_program **made) -> burst_error * {
    if (burst_error *error = checkHost(target.host))
      return error;
    Compiled compiled;
    if (burst_error *error = compileFor(request, target, without, compiled))
      return error;
    return install(std::move(compiled), made);
  };
  return request.cache ? request.cache->get(keyOf(request, target, without),
                                            make, program)
                       : make(program);
}

burst_error *jit::compileToFile(const Request &request, const char *path) {
  Target target = cpu::Target();
  Without without;
  Compiled compiled;
  burst_error *error = readTarget(request, target, without);
  if (!error)
    error = makeDumpDirectory(request.dumpDirectory);
  if (!error)
    error = compileFor(request, target, without, compiled);
  if (error)
    return error;
  if (llvm::Error error = linkFile(compiled.objects, /*linker=*/"", path))
    return makeError(BURST_SYSTEM, toString(std::move(error)));
  return nullptr;
}
