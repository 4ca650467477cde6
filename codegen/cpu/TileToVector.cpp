//===- TileToVector.cpp - tile ops as loops over vectors ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Vectorizer.h"

#include "llvm/ADT/TypeSwitch.h"

namespace burst::cpu {
#define GEN_PASS_DEF_TILETOVECTORPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

namespace {
struct TileToVector : burst::cpu::impl::TileToVectorPassBase<TileToVector> {
  using TileToVectorPassBase::TileToVectorPassBase;

  LogicalResult check(Operation *op) {
    if (isa<tile::MapOp, tile::MapGradientOp, tile::WeightsOp,
            tile::DifferentialsOp>(op) &&
        op->hasAttr("transposed"))
      return op->emitOpError("of transposed scores is for GPUs");
    for (Value operand : op->getOperands()) {
      // Tables that a map captures have any shape.
      if (auto map = dyn_cast<tile::MapOp>(op); map && operand != map.getS())
        continue;
      if (auto map = dyn_cast<tile::MapGradientOp>(op);
          map && operand != map.getW())
        continue;
      // The left operand of a product is read number by number.
      if (auto product = dyn_cast<tile::MultiplyOp>(op);
          product &&
          (operand == product.getA() || operand == product.getSeen()))
        continue;
      auto type = dyn_cast<MemRefType>(operand.getType());
      if (!type || !type.getElementType().isFloat() || isa<tile::LaunchOp>(op))
        continue;
      bool isTile =
          isa<tile::MultiplyOp, tile::MapOp, tile::RowMaxOp,
              tile::ExponentialsOp, tile::RescaleOp, tile::AddOp,
              tile::RowDotOp, tile::MergeOp, tile::NormalizeOp,
              tile::MaxScoreOp, tile::WeightsOp, tile::DifferentialsOp,
              tile::RoundOp, tile::MapGradientOp, tile::IsFiniteOp>(op) &&
          type.getRank() >= 2;
      // Pairs, and other numbers of 16 bits, go with vectors of f32. Pairs are
      // the last dimension where these are not of the depth.
      bool isPairs = type.getElementType().isBF16();
      int64_t lanes =
          vectorBits /
          std::max<int64_t>(type.getElementType().getIntOrFloatBitWidth(), 32);
      int64_t width =
          type.getDimSize(isPairs && type.getRank() > 2 ? type.getRank() - 2
                                                        : type.getRank() - 1);
      if (isTile && width % lanes != 0)
        return op->emitOpError("works on rows of whole vectors of ")
               << lanes << ", got: " << type;
    }
    return success();
  }

  static constexpr int64_t maxPanelBytes = 1 << 16;
  /// Of what is unrolled.
  static bool isCount(int64_t number) { return number >= 1 && number <= 64; }

  void runOnOperation() override {
    if (!getOperation()->hasAttr(tile::kernelAttr) &&
        !getOperation()->hasAttr(outlinedAttr))
      return;
    if (!isVectorBits(vectorBits) || !isCount(microRows) ||
        !isCount(microVectors)) {
      getOperation().emitError("vectors have a power of two of bits, from 64 "
                               "to 2048, and register tiles 1 to 64 rows and "
                               "vectors, got: ")
          << vectorBits.getValue() << ", " << microRows.getValue() << " and "
          << microVectors.getValue();
      return signalPassFailure();
    }
    if (panelBytes < vectorBits / 8 || panelBytes % (vectorBits / 8) != 0 ||
        panelBytes > maxPanelBytes) {
      getOperation().emitError("panels are whole vectors wide, and 64 KiB at "
                               "most, got: ")
          << panelBytes.getValue() << " bytes and vectors of "
          << vectorBits.getValue() << " bits";
      return signalPassFailure();
    }
    if (dot && vectorBits != 256 && vectorBits != 512) {
      getOperation().emitError("instructions for pairs of bf16 have vectors of "
                               "256 or 512 bits, got: ")
          << vectorBits.getValue();
      return signalPassFailure();
    }
    if (!isCount(steps) || !isCount(maxima) || !isCount(exponentials) ||
        !isCount(weights)) {
      getOperation().emitError("1 to 64 are computed together, got "
                               "steps, maxima, exponentials and weights: ")
          << steps.getValue() << ", " << maxima.getValue() << ", "
          << exponentials.getValue() << " and " << weights.getValue();
      return signalPassFailure();
    }
    TileToVectorPassOptions options{
        vectorBits, microRows,    microVectors, panelBytes, steps,
        maxima,     exponentials, weights,      fma,        dot};
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<tile::TileDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (failed(check(op)))
        return signalPassFailure();
      OpBuilder builder(op);
      Vectorizer vectorizer(builder, op->getLoc(), options);
      llvm::TypeSwitch<Operation *>(op)
          .Case<tile::LoadOp, tile::StoreOp, tile::PackOp, tile::IsFiniteOp,
                tile::FillOp, tile::PositionsOp, tile::MultiplyOp, tile::MapOp,
                tile::RowMaxOp, tile::ExponentialsOp, tile::RescaleOp,
                tile::AddOp, tile::RowDotOp, tile::MergeOp, tile::NormalizeOp,
                tile::MaxScoreOp, tile::WeightsOp, tile::DifferentialsOp,
                tile::RoundOp, tile::MapGradientOp>([&](auto op) {
            vectorizer.lower(op);
            op.erase();
          });
    }
  }
};
} // namespace
