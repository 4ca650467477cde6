//===- Slices.cpp - how many received slices a rank holds -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Slices.h"

#include "dialect/Ring/Ring.h"

using namespace mlir;
using namespace burst;

DenseI64ArrayAttr burst::ring::getMaxSlices(FunctionOpInterface program) {
  return program->getAttrOfType<DenseI64ArrayAttr>(maxSlicesAttr);
}

int64_t burst::ring::maxSlicesOf(DenseI64ArrayAttr bounds, int64_t channel) {
  return bounds && channel < bounds.size() ? bounds[channel] : defaultMaxSlices;
}

void burst::ring::stateMaxSlices(FunctionOpInterface program,
                                 ArrayRef<ArrayRef<int64_t>> parts) {
  size_t channels = 0;
  for (ArrayRef<int64_t> bounds : parts)
    channels = std::max(channels, bounds.size());
  if (channels == 0)
    return;
  SmallVector<int64_t> largest(channels, 1);
  for (ArrayRef<int64_t> bounds : parts)
    for (size_t channel = 0; channel < channels; ++channel)
      largest[channel] = std::max(largest[channel], channel < bounds.size()
                                                        ? bounds[channel]
                                                        : defaultMaxSlices);
  program->setAttr(maxSlicesAttr,
                   DenseI64ArrayAttr::get(program->getContext(), largest));
}

LogicalResult burst::ring::verifyMaxSlices(Operation *op, Attribute value) {
  auto bounds = dyn_cast<DenseI64ArrayAttr>(value);
  if (isa<FunctionOpInterface>(op) && op->hasAttr(gridAttr) && bounds &&
      !bounds.empty() && llvm::all_of(bounds.asArrayRef(), [](int64_t bound) {
        return bound > 0;
      }))
    return success();
  return op->emitError("'")
         << maxSlicesAttr << "' must give a program with 'ring.grid' an array "
         << "of bounds by channel, each at least 1, got: " << value;
}
