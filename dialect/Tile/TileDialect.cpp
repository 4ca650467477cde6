//===- TileDialect.cpp - the tile dialect ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace burst;
using namespace burst::tile;

#include "dialect/Tile/TileDialect.cpp.inc"

void TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/Tile/TileOps.cpp.inc"
      >();
}

static constexpr StringLiteral memoryNames[] = {"state", "slice", "packing",
                                                "schedule"};

StringRef burst::tile::stringify(Memory memory) {
  return memoryNames[static_cast<size_t>(memory)];
}

std::optional<Memory> burst::tile::symbolizeMemory(StringRef name) {
  for (auto [index, known] : llvm::enumerate(memoryNames))
    if (name == known)
      return static_cast<Memory>(index);
  return std::nullopt;
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == kernelAttr) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && isa<UnitAttr>(attribute.getValue()) &&
        function.getNumArguments() > 0 &&
        function.getArgumentTypes().front().isIndex() &&
        function.getNumResults() == 0)
      return success();
    return op->emitError("'tile.kernel' marks a function that takes the number "
                         "of its task, an index, first, and has no results");
  }
  if (attribute.getName() == shapeAttr) {
    // Far more than fits anywhere, and products of it fit in numbers.
    constexpr int64_t most = 1 << 24;
    auto shape = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (isa<func::FuncOp>(op) && shape && shape.size() == 2 &&
        llvm::all_of(shape.asArrayRef(),
                     [](int64_t size) { return 0 < size && size <= most; }))
      return success();
    return op->emitError("'tile.shape' gives the tiles of a function rows and "
                         "columns, from 1 to ")
           << most << ", got: " << attribute.getValue();
  }
  if (attribute.getName() == gradientAttr) {
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    return text && (text == "queries" || text == "keys")
               ? success()
               : op->emitOpError("with ")
                     << gradientAttr << R"( needs "queries" or "keys", got: )"
                     << attribute.getValue();
  }
  if (attribute.getName() == warpsAttr) {
    auto warps = dyn_cast<IntegerAttr>(attribute.getValue());
    return isa<func::FuncOp>(op) && op->hasAttr(kernelAttr) && warps &&
                   warps.getInt() >= 1 && warps.getInt() <= 32
               ? success()
               : op->emitOpError("with ")
                     << warpsAttr << " must be a kernel of 1 to 32 warps, got: "
                     << attribute.getValue();
  }
  return op->emitError("unknown attribute: ") << attribute.getName();
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned regionIndex,
                                                    unsigned argIndex,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (attribute.getName() != hostAttr || !isa<UnitAttr>(attribute.getValue()) ||
      !function || !isa<MemRefType>(function.getArgumentTypes()[argIndex]))
    return op->emitOpError("has an attribute of an argument that the tile "
                           "dialect does not have: ")
           << attribute.getName() << "; there is " << hostAttr
           << ", a unit, of memrefs";
  return success();
}
