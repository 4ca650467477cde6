//===- LowerToTile.cpp - kernels over tiles, and their launches -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Tile/Lowering.h"

namespace burst {
#define GEN_PASS_DEF_LOWERTOTILEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;
using namespace burst::tiling;

namespace {
struct LowerToTile : burst::impl::LowerToTilePassBase<LowerToTile> {
  using LowerToTilePassBase::LowerToTilePassBase;

  LogicalResult verifyCta(CtaShape cta) {
    if (cta.warps >= 1 && cta.warps <= 32 && cta.rows > 0 &&
        cta.rows % (16 * cta.warps) == 0 && cta.columns > 0 &&
        cta.columns % 16 == 0)
      return success();
    return getOperation().emitError(
               "a CTA has up to 32 warps, 16 rows for each or a "
               "multiple, and columns in sixteens, got: ")
           << cta.warps << " warps, " << cta.rows << " rows, " << cta.columns
           << " columns";
  }

  void runOnOperation() override {
    constexpr int64_t most = 1 << 16;
    if (rows < 1 || columns < 1 || panelBytes < 8 || panelBytes % 8 != 0 ||
        keyPanelBytes < 0 || keyPanelBytes % 8 != 0 || rows > most ||
        columns > most || panelBytes > most || keyPanelBytes > most) {
      getOperation().emitError("tiles need rows and columns, and panels a "
                               "multiple of 8 bytes, none more than 65536, "
                               "got: ")
          << rows.getValue() << ", " << columns.getValue() << ", "
          << panelBytes.getValue() << ", " << keyPanelBytes.getValue();
      return signalPassFailure();
    }
    if (strip < 1) {
      getOperation().emitError("strips need rows, got: ") << strip.getValue();
      return signalPassFailure();
    }
    if (warps != 0 && failed(verifyCta({rows, columns, warps})))
      return signalPassFailure();
    if (warps != 0 && !localTiling) {
      getOperation().emitError("a CTA keeps no more than tiles of "
                               "scores: local-tiling=false is for CPUs");
      return signalPassFailure();
    }
    for (ArrayRef<int64_t> sizes :
         {ArrayRef<int64_t>(queryGradients), ArrayRef<int64_t>(keyGradients)}) {
      if (!sizes.empty() && sizes.size() != 3) {
        getOperation().emitError("query-gradients and key-gradients are rows, "
                                 "columns and warps, got: ")
            << sizes.size() << " numbers";
        return signalPassFailure();
      }
      if (!sizes.empty() && failed(verifyCta({sizes[0], sizes[1], sizes[2]})))
        return signalPassFailure();
    }
    LowerToTilePassOptions options;
    options.rows = rows;
    options.columns = columns;
    options.panelBytes = panelBytes;
    options.keyPanelBytes = keyPanelBytes;
    options.strip = strip;
    options.pairs = pairs;
    options.warps = warps;
    options.localTiling = localTiling;
    options.queryGradients.assign(queryGradients.begin(), queryGradients.end());
    options.keyGradients.assign(keyGradients.begin(), keyGradients.end());
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr))
        programs.push_back(function);
    for (func::FuncOp program : programs) {
      LowerToTilePassOptions own = options;
      if (auto shape =
              program->getAttrOfType<DenseI64ArrayAttr>(tile::shapeAttr)) {
        own.rows = shape[0];
        own.columns = shape[1];
        if (warps != 0 && failed(verifyCta({own.rows, own.columns, warps})))
          return signalPassFailure();
      }
      if (failed(Lowering(program, own).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
