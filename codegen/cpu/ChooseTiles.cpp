//===- ChooseTiles.cpp - tiles that suit a processor ----------------------===//
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/Target.h"

namespace burst::cpu {
#define GEN_PASS_DEF_CHOOSETILESPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

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
    target->rows = rows;
    target->columns = columns;
    Target suited = target->suiting(program);
    program->setAttr(
        tile::shapeAttr,
        DenseI64ArrayAttr::get(&getContext(), {suited.rows, suited.columns}));
  }
};
} // namespace
