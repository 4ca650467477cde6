//===- InterpretPairs.cpp - regions at pairs of positions -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Interpret/InterpretPairs.h"

#include <cmath>

using namespace mlir;
using namespace burst;
using namespace burst::interpreting;

std::array<Scalar, 8> interpreting::regionArguments(const AttendInputs &inputs,
                                                    Pair pair, double s,
                                                    double gradient) {
  std::array<Scalar, 8> arguments{};
  arguments[0].f = s;
  const int64_t indices[] = {
      inputs.firstBatch + pair.b, inputs.firstHead + pair.h, pair.i, pair.j,
      inputs.queryExtent,         inputs.keyExtent};
  for (auto [argument, index] : llvm::zip(llvm::drop_begin(arguments), indices))
    argument.i = index;
  arguments[7].f = gradient;
  return arguments;
}

bool interpreting::applyRegions(const AttendInputs &inputs,
                                std::optional<RegionEvaluator> &mask,
                                std::optional<RegionEvaluator> &score,
                                Pair pair, double &s,
                                std::optional<Fault> &fault) {
  auto arguments = regionArguments(inputs, pair, s);
  if (mask) {
    if (!mask->evaluate(llvm::ArrayRef(arguments).slice(1, 6))) {
      fault = mask->getFault();
      return false;
    }
    if (mask->result(0).i == 0) {
      s = minusInfinity;
      return true;
    }
  }
  if (score) {
    if (!score->evaluate(llvm::ArrayRef(arguments).take_front(7))) {
      fault = score->getFault();
      return false;
    }
    s = toScore(score->result(0).f, inputs.score->getArgument(0).getType());
  }
  return true;
}

bool interpreting::makeEvaluator(Region &region, ArrayRef<Argument> captures,
                                 std::optional<RegionEvaluator> &evaluator,
                                 std::string &message) {
  if (region.empty())
    return true;
  evaluator = RegionEvaluator::create(region, captures);
  if (!evaluator)
    message = "has a region that cannot be evaluated";
  return evaluator.has_value();
}

bool interpreting::checkSizes(const AttendInputs &inputs,
                              ArrayRef<Slice> slices, std::string &message) {
  int64_t rows = inputs.queryLayout.getValue().count(inputs.queryOwner,
                                                     inputs.queryExtent);
  if (inputs.query->shape[1] != rows) {
    message = "attends with " + std::to_string(inputs.query->shape[1]) +
              " queries, its layout says " + std::to_string(rows);
    return false;
  }
  for (const Slice &slice : slices) {
    int64_t columns =
        inputs.keyLayout.getValue().count(slice.owner, inputs.keyExtent);
    if (slice.key->shape[1] == columns && slice.value->shape[1] == columns)
      continue;
    message = "attends a slice of " + std::to_string(slice.key->shape[1]) +
              " keys and " + std::to_string(slice.value->shape[1]) +
              " values, its layout says " + std::to_string(columns);
    return false;
  }
  return true;
}

void interpreting::poisonAbsent(ArrayRef<Tensor *> tensors) {
  for (Tensor *tensor : tensors)
    if (tensor->floats.empty())
      tensor->floats.assign(tensor->size(), std::nan(""));
}
