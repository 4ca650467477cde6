//===- Outline.cpp - steps that kernels have in common --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Passes.h"

namespace burst::cpu {
#define GEN_PASS_DEF_OUTLINEPASS
#include "codegen/cpu/Passes.h.inc"
} // namespace burst::cpu

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

/// Whether both do the same to other operands of the same types.
static bool isSameStep(Operation *a, Operation *b) {
  return OperationEquivalence::isEquivalentTo(
      a, b, OperationEquivalence::ignoreValueEquivalence, nullptr,
      OperationEquivalence::IgnoreLocations);
}

/// A function that does what `op` does, in front of `before`.
static func::FuncOp makeFunction(Operation *op, func::FuncOp before) {
  OpBuilder builder(before);
  auto function =
      func::FuncOp::create(builder, op->getLoc(), op->getName().stripDialect(),
                           builder.getFunctionType(op->getOperandTypes(), {}));
  function.setPrivate();
  // LLVM shall not undo it.
  function->setAttr(outlinedAttr, builder.getStrArrayAttr({"noinline"}));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  for (auto [operand, argument] :
       llvm::zip_equal(op->getOperands(), body->getArguments()))
    mapping.map(operand, argument);
  builder.clone(*op, mapping);
  func::ReturnOp::create(builder, op->getLoc());
  return function;
}

namespace {
struct Outline : burst::cpu::impl::OutlinePassBase<Outline> {
  void runOnOperation() override {
    SmallVector<SmallVector<Operation *>> steps;
    getOperation().walk([&](Operation *op) {
      if (!isa<tile::MultiplyOp, tile::RowMaxOp, tile::ExponentialsOp,
               tile::RescaleOp, tile::WeightsOp, tile::DifferentialsOp,
               tile::RoundOp>(op))
        return;
      auto *same = llvm::find_if(
          steps, [&](auto &list) { return isSameStep(list.front(), op); });
      if (same == steps.end())
        steps.push_back({op});
      else
        same->push_back(op);
    });
    SymbolTable symbols(getOperation());
    for (ArrayRef<Operation *> step : steps) {
      if (step.size() == 1)
        continue;
      auto kernel = step.front()->getParentOfType<func::FuncOp>();
      func::FuncOp function = makeFunction(step.front(), kernel);
      symbols.insert(function, kernel->getIterator());
      for (Operation *op : step) {
        OpBuilder builder(op);
        func::CallOp::create(builder, op->getLoc(), function,
                             op->getOperands());
        op->erase();
      }
    }
  }
};
} // namespace
