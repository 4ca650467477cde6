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
/// Rounds f64 to 16 bits by way of an f32 whose last bit stands for all that
/// the f32 cannot hold (rounding to odd), so that the result is rounded once
/// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
/// LLVM would call `__truncdfbf2`, which libgcc has only from version 13 on.
struct RoundToOdd : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value wide = op.getIn();
    if (!getElementTypeOrSelf(wide.getType()).isF64() ||
        getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth() != 16)
      return failure();
    Location loc = op.getLoc();
    auto like = [&](Type element) {
      auto shaped = dyn_cast<ShapedType>(wide.getType());
      return shaped ? Type(shaped.clone(element)) : element;
    };
    Type i32 = like(rewriter.getI32Type()), f32 = like(rewriter.getF32Type());
    Value near = arith::TruncFOp::create(rewriter, loc, f32, wide);
    Value again = arith::ExtFOp::create(rewriter, loc, wide.getType(), near);
    auto isCut = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::ONE,
                                       again, wide);
    auto isAway =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGT,
                              math::AbsFOp::create(rewriter, loc, again),
                              math::AbsFOp::create(rewriter, loc, wide));
    // Toward zero, the magnitude is one less.
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, near);
    bits = arith::SubIOp::create(
        rewriter, loc, bits,
        arith::ExtUIOp::create(rewriter, loc, i32, isAway));
    bits = arith::OrIOp::create(
        rewriter, loc, bits, arith::ExtUIOp::create(rewriter, loc, i32, isCut));
    Value odd = arith::BitcastOp::create(rewriter, loc, f32, bits);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), odd);
    return success();
  }
};

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

    RewritePatternSet truncation(&getContext());
    truncation.add<RoundToOdd>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(truncation));

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
