//===- ExpandFloats.cpp - functions and conversions processors lack -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace burst::cpu {
#define GEN_PASS_DEF_EXPANDFLOATSPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;

namespace {
struct ExpandFloats : burst::cpu::impl::ExpandFloatsPassBase<ExpandFloats> {
  void runOnOperation() override {
    // Arithmetic of bf16 is that of f32, rounded.
    auto bf16 = BFloat16Type::get(&getContext());
    TypeConverter inF32;
    arith::populateEmulateUnsupportedFloatsConversions(
        inF32, bf16, Float32Type::get(&getContext()));
    RewritePatternSet arithmetic(&getContext());
    arith::populateEmulateUnsupportedFloatsPatterns(arithmetic, inF32);
    ConversionTarget target(getContext());
    arith::populateEmulateUnsupportedFloatsLegality(target, inF32);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(arithmetic))))
      return signalPassFailure();

    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateExpandBFloat16Patterns(patterns);
    // Upstream's polynomials are for f32 and accurate to a few units in the
    // last place. What has none goes to libm, number by number.
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return name == math::ExpOp::getOperationName() ||
             name == math::TanhOp::getOperationName() ||
             name == math::ErfOp::getOperationName();
    });
    // None makes what another one expands.
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
