//===- Processor.cpp - what code is compiled for --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Processor.h"

#include "burst/internal/processor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace burst;

FailureOr<jit::Target> jit::findTarget(const TargetOptions &options,
                                       std::string &error) {
  if (options.kind != "cpu" && options.kind != "cuda") {
    error = "target '" + options.kind + "', there are: cpu, cuda";
    return failure();
  }
  if (options.kind == "cpu" && !options.architectures.empty()) {
    error = "architecture '" + options.architectures +
            "' is of a GPU, and the target is cpu";
    return failure();
  }
  FailureOr<cpu::Target> host = cpu::Target::named(
      options.triple, options.processor, options.features, error);
  if (failed(host))
    return failure();
  if (options.kind == "cpu")
    return Target(*host);
  if (options.architectures.empty())
    return Target(*host, cuda::Target::here());
  FailureOr<cuda::Target> gpu =
      cuda::Target::named(options.architectures, error);
  if (failed(gpu))
    return failure();
  Target target(*host);
  target.gpu = std::move(*gpu);
  return target;
}

std::string jit::missingFeature(const cpu::Target &target) {
  if (!target.isNative())
    return llvm::Triple(target.triple).getArchName().str();
  std::vector<std::string> missing = target.required();
  llvm::erase_if(missing, [&](const std::string &name) {
    return burst_processor_has(name.data(), name.size()) == 1;
  });
  return llvm::join(missing, ", ");
}
