//===- Compile.cpp - ring programs to object files ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Compile.h"
#include "dialect/Ring/Ring.h"

#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;
using namespace burst::host;

static LogicalResult runPhase(ModuleOp module, const Target &target,
                              void (*build)(OpPassManager &, const Target &)) {
  auto pm = PassManager::on<ModuleOp>(module.getContext());
  pm.enableVerifier(
#ifdef NDEBUG
      false
#else
      true
#endif
  );
  build(pm, target);
  return pm.run(module);
}

FailureOr<Objects> burst::cpu::compileToObjects(ModuleOp module,
                                                StringRef entry,
                                                const Target &given,
                                                Parts parts, const Dump &dump) {
  if (failed(isolate(module, entry)))
    return failure();
  Target target = given.suiting(module.lookupSymbol<func::FuncOp>(entry));
  std::string text = print(module);
  if (failed(dump(module, "1-ring.mlir", text)) ||
      failed(runPhase(module, target, buildBufferPipeline)))
    return failure();
  FailureOr<Image> image = describe(module.lookupSymbol<func::FuncOp>(entry));
  if (failed(image))
    return failure();
  image->target = target.str();
  image->features = llvm::join(target.required(), ",");
  // Ranks may have different processors, but what is left out is the same.
  image->hash = llvm::xxh3_64bits(
      target.localTiling ? text : text + "// without local tiling\n");
  if (failed(dump(module, "2-tile.mlir",
                  dump.directory.empty() ? "" : print(module))))
    return failure();
  return compileTiles(module, *image, target, parts, dump);
}

FailureOr<Objects> burst::cpu::compileTiles(ModuleOp module, const Image &image,
                                            const Target &target, Parts parts,
                                            const Dump &dump) {
  if (failed(runPhase(module, target, buildLLVMPipeline)) ||
      failed(dump(module, "3-llvm.mlir",
                  dump.directory.empty() ? "" : print(module))))
    return failure();
  return emitObjects(module, image, target, parts, dump);
}
