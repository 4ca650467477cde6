//===- Target.cpp - processors and the shapes that suit them --------------===//
#include "codegen/cpu/Compile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

/// The register tile: two vectors wide, and as high as registers allow with two
/// left for the right operand and one for the left.
static void chooseShapes(Target &target, bool has32Registers) {
  target.panelBytes = 2 * target.vectorBits / 8;
  target.microRows = has32Registers ? 14 : 6;
  target.rows = has32Registers ? 112 : 96;
  target.columns = 128;
}

FailureOr<Target> Target::named(StringRef processor, StringRef features,
                                std::string &error) {
  initializeTargets();
  Target target;
  target.triple = llvm::sys::getProcessTriple();
  target.processor = processor.str();
  target.features = features.str();
  llvm::Triple triple(target.triple);
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return failure();
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      found->createMCSubtargetInfo(triple, processor, features));
  if (!subtarget || !subtarget->isCPUStringValid(processor)) {
    error =
        ("unknown processor '" + processor + "' for " + target.triple).str();
    return failure();
  }
  auto has = [&](StringRef feature) {
    return subtarget->checkFeatures(("+" + feature).str());
  };
  if (triple.getArch() == llvm::Triple::x86_64 && !has("64bit")) {
    error = ("processor '" + processor + "' without feature '64bit', wanted " +
             "one for " + target.triple)
                .str();
    return failure();
  }
  if (triple.isX86()) {
    bool wide =
        has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
    target.vectorBits = wide ? 512 : has("avx2") ? 256 : 128;
    target.fma = wide || has("fma");
    target.dot = wide && has("avx512bf16");
    target.pairs = target.dot;
    chooseShapes(target, wide);
  } else {
    // aarch64: 32 registers of 128 bits, always with fma.
    target.vectorBits = 128;
    target.fma = triple.isAArch64();
    chooseShapes(target, triple.isAArch64());
  }
  return target;
}

Target Target::host() {
  std::string features;
  for (const auto &[name, isThere] : llvm::sys::getHostCPUFeatures())
    features += (features.empty() ? "" : ",") +
                std::string(isThere ? "+" : "-") + name.str();
  std::string error;
  FailureOr<Target> target =
      named(llvm::sys::getHostCPUName(), features, error);
  if (succeeded(target))
    return *target;
  // A processor younger than LLVM.
  return *named("generic", features, error);
}

std::string Target::str() const {
  return llvm::formatv(
      "{0}, vectors of {1} bits{2}{3}, register tile {4} rows, "
      "tiles {5} x {6}",
      processor, vectorBits, fma ? " with fma" : "",
      dot     ? ", dot products of bf16"
      : pairs ? ", pairs of bf16"
              : "",
      microRows, rows, columns);
}
