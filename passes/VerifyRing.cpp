//===- VerifyRing.cpp - proves schedules ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Simulation/Prove/Audit.h"

#include "mlir/IR/Remarks.h"

namespace burst {
#define GEN_PASS_DEF_VERIFYRINGPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {
struct VerifyRing : burst::impl::VerifyRingPassBase<VerifyRing> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<func::FuncOp>())
      if (program->hasAttr(ring::gridAttr) && failed(verify(program)))
        signalPassFailure();
  }

  LogicalResult verify(func::FuncOp program) {
    std::unique_ptr<Simulation> simulation = Simulation::create(program);
    if (!simulation)
      return failure();
    auto options = remark::RemarkOpts::name("schedule-proved")
                       .category("ring-verify")
                       .function(program.getName());
    if (!isStatic(program)) {
      remark::missed(program.getLoc(), options)
          << remark::reason("sizes or tables are known at run time only; the "
                            "schedule is proved when they are bound");
      return success();
    }
    FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
    if (failed(globals))
      return failure();
    Proof proof;
    if (auto counterexample =
            prove(*simulation, *globals, {allowEmpty}, proof)) {
      report(program, *counterexample);
      return failure();
    }
    remark::passed(program.getLoc(), options)
        << remark::metric("ranks", simulation->numRanks())
        << remark::metric("pairs", proof.computed)
        << remark::metric("dropped", proof.dropped);
    return success();
  }
};
} // namespace
