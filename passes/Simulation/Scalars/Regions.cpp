//===- Regions.cpp - evaluates regions ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Program.h"

using namespace mlir;
using namespace burst;

std::optional<RegionEvaluator>
RegionEvaluator::create(Region &region, ArrayRef<Capture> captures,
                        bool isTotal) {
  std::optional<Program> program =
      Program::compile(region, [](Operation *) { return false; },
                       {.isTotal = isTotal, .clampsIndices = true});
  if (!program)
    return std::nullopt;
  RegionEvaluator evaluator;
  evaluator.frame = program->makeFrame();
  evaluator.numLeading = program->arguments().size() - captures.size();
  ArrayRef<Slot> trailing = program->arguments().take_back(captures.size());
  for (auto [slot, capture] : llvm::zip_equal(trailing, captures)) {
    if (slot.isScalar)
      evaluator.frame.scalars[slot.number] = capture.scalar;
    else
      evaluator.frame.objects[slot.number] = capture.table;
  }
  program->whole = program->laneCode(0, program->code.size() - 1, std::nullopt,
                                     Program::canRunInLanes);
  evaluator.program = std::make_shared<const Program>(std::move(*program));
  return evaluator;
}

void RegionEvaluator::setGradient(unsigned capture, TensorRef table) {
  if (std::optional<Slot> slot = program->gradient(numLeading + capture))
    frame.objects[slot->number] = std::move(table);
}

bool RegionEvaluator::evaluate(ArrayRef<Scalar> arguments) {
  for (auto [slot, value] : llvm::zip(program->arguments(), arguments))
    frame.scalars[slot.number] = value;
  frame.next = 0;
  return program->run(frame, *this) == Step::Done;
}
