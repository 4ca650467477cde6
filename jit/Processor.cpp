//===- Processor.cpp - what code is compiled for --------------------------===//
#include "jit/Processor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace burst;

static std::unique_ptr<llvm::MCSubtargetInfo>
describe(const cpu::Target &target) {
  llvm::Triple triple(target.triple);
  std::string error;
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      found->createMCSubtargetInfo(triple, target.processor, target.features));
}

/// LLVM drops what it does not know, with a warning on the standard error.
static bool checkFeatures(const llvm::MCSubtargetInfo &known,
                          StringRef features, std::string &error) {
  for (StringRef feature : llvm::split(features, ',')) {
    StringRef name = feature;
    bool isSigned = name.consume_front("+") || name.consume_front("-");
    if (!isSigned) {
      error = ("feature '" + feature + "', wanted +name or -name").str();
      return false;
    }
    if (llvm::none_of(known.getAllProcessorFeatures(),
                      [&](const auto &entry) { return name == entry.Key; })) {
      error = ("unknown feature '" + name + "' for " +
               known.getTargetTriple().str())
                  .str();
      return false;
    }
  }
  return true;
}

FailureOr<cpu::Target> jit::findProcessor(StringRef processor,
                                          StringRef features,
                                          std::string &error) {
  // Asking takes longer than a program in a cache.
  static const cpu::Target target = cpu::Target::host();
  if (processor.empty() && features.empty())
    return target;
  std::unique_ptr<llvm::MCSubtargetInfo> host = describe(target);
  if (!processor.empty() && !host->isCPUStringValid(processor)) {
    error =
        ("unknown processor '" + processor + "' for " + target.triple).str();
    return failure();
  }
  if (!features.empty() && !checkFeatures(*host, features, error))
    return failure();
  std::string all = processor.empty() ? target.features : "";
  if (!features.empty())
    all += (all.empty() ? "" : ",") + features.str();
  return cpu::Target::named(
      processor.empty() ? StringRef(target.processor) : processor, all, error);
}

FailureOr<jit::Target> jit::findTarget(StringRef name, StringRef architectures,
                                       StringRef processor, StringRef features,
                                       std::string &error) {
  if (name != "cpu" && name != "cuda") {
    error = ("target '" + name + "', there are: cpu, cuda").str();
    return failure();
  }
  if (name == "cpu" && !architectures.empty()) {
    error = ("architecture '" + architectures +
             "' is of a GPU, and the target is cpu")
                .str();
    return failure();
  }
  FailureOr<cpu::Target> host = findProcessor(processor, features, error);
  if (failed(host))
    return failure();
  if (name == "cpu")
    return Target(*host);
  if (architectures.empty())
    return Target(*host, cuda::Target::here());
  FailureOr<cuda::Target> gpu = cuda::Target::named(architectures, error);
  if (failed(gpu))
    return failure();
  Target target(*host);
  target.gpu = std::move(*gpu);
  return target;
}

std::string jit::missingFeature(const cpu::Target &target) {
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget = describe(target);
  for (const auto &[name, isHere] : llvm::sys::getHostCPUFeatures())
    if (!isHere && subtarget->checkFeatures(("+" + name).str()))
      return name.str();
  return "";
}
