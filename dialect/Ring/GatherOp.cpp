//===- GatherOp.cpp - shards of all ranks at once -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Verify.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

// gather_c5
LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyChannel(*this, getChannel(), getLayout().getParts());
}

LogicalResult GatherOp::verify() {
  // gather_c1
  if (failed(verifyDims(*this)) || failed(verifyPart(*this, getLayout())))
    return failure();
  // gather_c4
  int64_t parts = getLayout().getParts();
  if (failed(verifyTable(*this, getSegments(), /*isBuffer=*/false,
                         {parts, parts, getLayout().getNumSegments()})))
    return failure();
  // gather_c3
  size_t partials = getNumPartials();
  if (!getJoin() != !getPartialDims())
    return emitOpError("must say of partial results how they are joined, and "
                       "along which dimensions: partial add dims [...], or "
                       "merge");
  if (partials > getNumResults())
    return emitOpError("gives values and ")
           << partials << " partial results, got: " << getNumResults();
  return verifyPartials(*this, partials);
}

/// Whether both are tensors of one type, but for the size along `dim`.
static bool isGathered(Type shard, Type all, int64_t dim) {
  auto from = dyn_cast<RankedTensorType>(shard);
  auto to = dyn_cast<RankedTensorType>(all);
  if (!from || !to || from.getElementType() != to.getElementType() ||
      from.getRank() != to.getRank() || dim < 0 || dim >= from.getRank())
    return false;
  SmallVector<int64_t> shape(from.getShape());
  shape[dim] = to.getDimSize(dim);
  return to.getShape() == ArrayRef(shape);
}

// gather_c2
LogicalResult GatherOp::verifyRegions() {
  size_t tensors = getTensors().size(), partials = getNumPartials();
  if (getBody().getNumArguments() != tensors + partials)
    return emitOpError("region takes ")
           << tensors << " gathered tensors and " << partials
           << " partial results, got: " << getBody().getArgumentTypes();
  auto check = [&](ValueRange shards, ValueRange all,
                   ArrayRef<int64_t> dims) -> LogicalResult {
    for (auto [shard, gathered, dim] : llvm::zip_equal(shards, all, dims))
      if (!isGathered(shard.getType(), gathered.getType(), dim))
        return emitOpError("region takes as gathered along dimension ")
               << dim << " of " << shard.getType()
               << ", got: " << gathered.getType();
    return success();
  };
  if (failed(check(getTensors(), getBrought(), getDims())) ||
      (partials &&
       failed(check(getPartialResults(), getPartials(), *getPartialDims()))))
    return failure();
  SmallVector<Type> given(TypeRange(getResultTypes()).drop_back(partials));
  llvm::append_range(given, getPartials().getTypes());
  return verifyYield(*this, given);
}
