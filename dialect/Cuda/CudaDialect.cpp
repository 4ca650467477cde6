//===- CudaDialect.cpp - the cuda dialect ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Cuda/Cuda.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;

#include "dialect/Cuda/CudaDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/Cuda/CudaTypes.cpp.inc"

static ParseResult
parseMask(OpAsmParser &parser, Region &mask,
          SmallVectorImpl<OpAsmParser::UnresolvedOperand> &captures,
          SmallVectorImpl<Type> &types) {
  if (parser.parseKeyword(stringify(RegionRole::Mask)) || parser.parseLParen())
    return failure();
  return parseRegion(parser, RegionRole::Mask, mask, captures, types);
}
static void printMask(OpAsmPrinter &printer, Operation *, Region &mask,
                      OperandRange captures, TypeRange) {
  printClauseRegion(printer, RegionRole::Mask, mask, captures);
}

#define GET_OP_CLASSES
#include "dialect/Cuda/CudaOps.cpp.inc"

void CudaDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/Cuda/CudaTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Cuda/CudaOps.cpp.inc"
      >();
}

LogicalResult CudaDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == shapeAttr)
    return isa<StringAttr>(attribute.getValue())
               ? success()
               : op->emitOpError("with ") << shapeAttr << " needs a string";
  if (attribute.getName() == refusedAttr) {
    auto reasons = dyn_cast<ArrayAttr>(attribute.getValue());
    return reasons && llvm::all_of(reasons, llvm::IsaPred<StringAttr>)
               ? success()
               : op->emitOpError("with ") << refusedAttr << " needs strings";
  }
  return op->emitOpError("has an attribute that the cuda dialect does not "
                         "have: ")
         << attribute.getName();
}

static bool liesIn(Type type, gpu::AddressSpace space) {
  auto memory = dyn_cast<MemRefType>(type);
  auto attr =
      memory ? dyn_cast_or_null<gpu::AddressSpaceAttr>(memory.getMemorySpace())
             : gpu::AddressSpaceAttr();
  return attr && attr.getValue() == space;
}

bool cuda::isShared(Type type) {
  return liesIn(type, gpu::AddressSpace::Workgroup);
}
bool cuda::isPrivate(Type type) {
  return liesIn(type, gpu::AddressSpace::Private);
}

// copy_c1, copy_c2
LogicalResult CopyOp::verify() {
  auto view = cast<MemRefType>(getView().getType());
  auto block = cast<MemRefType>(getBlock().getType());
  if (!isShared(block) || view.getElementType() != block.getElementType())
    return emitOpError("needs a block in shared memory of the view's type of "
                       "element, got: ")
           << view << " and " << block;
  int64_t columns = view.getDimSize(1);
  if (view.isDynamicDim(1) || columns % 8 != 0 ||
      columns > block.getDimSize(1) || !view.isLastDimUnitStride())
    return emitOpError("needs a view with a contiguous last dimension, a "
                       "multiple of 8 and at most ")
           << block.getDimSize(1) << ", got: " << view;
  return success();
}
