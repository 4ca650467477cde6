//===- Phases.cpp - what compilations have in common ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/Phases.h"
#include "dialect/Ring/Ring.h"
#include "support/Files.h"

#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace burst;
using namespace burst::host;

LogicalResult Dump::operator()(Operation *op, StringRef name,
                               StringRef text) const {
  if (directory.empty())
    return success();
  SmallString<128> path(directory);
  llvm::sys::path::append(path, name);
  if (std::error_code error = llvm::sys::fs::create_directories(directory))
    return op->emitError() << path << ": cannot write: " << error.message();
  if (llvm::Error error = writeFile(text, path))
    return op->emitError() << llvm::toString(std::move(error));
  return success();
}

std::string burst::host::print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

LogicalResult burst::host::isolate(ModuleOp module, StringRef entry) {
  auto program = module.lookupSymbol<func::FuncOp>(entry);
  if (!program || !program->hasAttr(ring::gridAttr))
    return module.emitError("has no ring program '") << entry << "'";
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function->hasAttr(ring::gridAttr) && function != program)
      function.erase();
  return success();
}

void burst::host::buildTilePipeline(OpPassManager &pm,
                                    const LowerToTilePassOptions &options) {
  // Inline as it stands: reads of a table that was computed once must not turn
  // into the computation.
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  pm.addPass(createSymbolDCEPass());
  pm.addPass(createBufferizePass());
  pm.addPass(createLowerToTilePass(options));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}
