//===- ChooseTiles.cpp - tiles that suit a processor ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/Target.h"

namespace burst::cpu {
#define GEN_PASS_DEF_CHOOSETILESPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

/// LLVM would call a library that converts numbers one by one, which is not
/// there where programs run.
static LogicalResult checkTypes(func::FuncOp program, const Target &target) {
  if (target.f16)
    return success();
  for (auto [number, type] : llvm::enumerate(program.getArgumentTypes()))
    if (getElementTypeOrSelf(type).isF16())
      return program.emitError("argument ")
             << number << " is of f16, which processor '" << target.processor
             << "' has no instructions for: wanted one with feature 'f16c' "
                "(x86-64-v3 has it), or bf16";
  return success();
}

namespace {
struct ChooseTiles : burst::cpu::impl::ChooseTilesPassBase<ChooseTiles> {
  using ChooseTilesPassBase::ChooseTilesPassBase;

  void runOnOperation() override {
    func::FuncOp program = getOperation();
    if (!program->hasAttr(ring::gridAttr))
      return;
    std::string error;
    FailureOr<Target> target =
        Target::named(triple, processor, features, error);
    if (failed(target)) {
      program.emitError(error);
      return signalPassFailure();
    }
    if (failed(checkTypes(program, *target)))
      return signalPassFailure();
    target->rows = rows;
    target->columns = columns;
    Target suited = target->suiting(program);
    program->setAttr(
        tile::shapeAttr,
        DenseI64ArrayAttr::get(&getContext(), {suited.rows, suited.columns}));
  }
};
} // namespace
