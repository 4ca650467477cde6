//===- VerifyRing.cpp - proves schedules ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Proof/Prove.h"
#include "passes/Proof/SmtLib.h"
#include "support/Files.h"

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
    if (smtlib.empty())
      return;
    if (llvm::Error error = writeFile(conditions, smtlib)) {
      emitError(getOperation().getLoc(), "ring-verify: ")
          << llvm::toString(std::move(error));
      signalPassFailure();
    }
  }

  std::string conditions; ///< in SMT-LIB

  ProofOptions allowed() const { return {allowEmpty, allowNeedless}; }

  /// And notes the conditions where they are wanted.
  proof::Verdict proveForAll(func::FuncOp program) {
    if (smtlib.empty())
      return proof::proveForAll(program, allowed());
    llvm::raw_string_ostream stream(conditions);
    return proof::proveForAll(
        program, allowed(),
        [&](const proof::Condition &condition, const proof::Formula &facts,
            bool isShown) {
          std::string title = (program.getName() + ": " + condition.what +
                               (isShown ? ": shown" : ": not shown"))
                                  .str();
          proof::writeSmtLib(facts && !condition.formula, title, stream);
        });
  }

  LogicalResult verify(func::FuncOp program) {
    auto options = remark::RemarkOpts::name("schedule-proved")
                       .category("ring-verify")
                       .function(program.getName());
    proof::Verdict verdict = proveForAll(program);
    if (!isStatic(program)) {
      if (verdict.isProved())
        remark::passed(program.getLoc(), options)
            << remark::metric("proved", proofText(provedFor(verdict, program)))
            << remark::metric("ranks", ring::numRanks(program))
            << remark::reason("sizes or tables are known at run time only; "
                              "tables are looked at when they are bound");
      else
        remark::missed(program.getLoc(), options)
            << remark::reason("sizes or tables are known at run time only; the "
                              "schedule is proved when they are bound (for "
                              "every number of ranks it is not: {0})",
                              verdict.reason->text);
      return success();
    }
    FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
    if (failed(globals))
      return failure();
    ScheduleProof proved;
    if (failed(proveSchedule(program, verdict, *globals, {allowed()}, proved)))
      return failure();
    auto remark = remark::passed(program.getLoc(), options);
    remark << remark::metric("ranks", ring::numRanks(program))
           << remark::metric("pairs", proved.computed)
           << remark::metric("dropped", proved.dropped)
           << remark::metric("proved", proofText(proved.proved));
    if (!proved.reason.empty())
      remark << remark::reason("for every number of ranks it is not: {0}",
                               proved.reason);
    return success();
  }
};
} // namespace
