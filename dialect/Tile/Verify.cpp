//===- Verify.cpp - the constraints of operations of tile -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Tile/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace burst;
using namespace burst::tile;

static MemRefType typeOf(Value value) {
  return cast<MemRefType>(value.getType());
}

// launch_c1
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto kernel =
      symbolTable.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(kernelAttr))
    return emitOpError("launches ")
           << getKernelAttr() << ", which is no kernel of this module";
  SmallVector<Type> types{IndexType::get(getContext())};
  llvm::append_range(types, getReads().getTypes());
  llvm::append_range(types, getWrites().getTypes());
  llvm::append_range(types, getScalars().getTypes());
  if (TypeRange(types) == TypeRange(kernel.getArgumentTypes()))
    return success();
  return emitOpError("gives (")
         << types << "), but " << getKernelAttr() << " takes ("
         << kernel.getArgumentTypes() << ")";
}

// allocate_c1, allocate_c2
LogicalResult AllocateOp::verify() {
  if (!symbolizeMemory(getMemory()))
    return emitOpError("is for state, slice, packing or schedule, got: ")
           << getMemoryAttr();
  MemRefType type = typeOf(getBuffer());
  if (!type.getLayout().isIdentity() ||
      static_cast<size_t>(type.getNumDynamicDims()) != getSizes().size())
    return emitOpError("needs a contiguous buffer and a size for each of its "
                       "dynamic dimensions, got: ")
           << type << " and " << getSizes().size() << " sizes";
  return success();
}

// await_c1
LogicalResult AwaitOp::verify() {
  MemRefType type = typeOf(getCounters());
  if (static_cast<size_t>(type.getRank()) != getIndices().size())
    return emitOpError("needs an index for each dimension of ")
           << type << ", got: " << getIndices().size();
  return success();
}

static LogicalResult verifyView(Operation *op, Value view) {
  MemRefType type = typeOf(view);
  if (type.getRank() == 1 || type.isLastDimUnitStride())
    return success();
  return op->emitOpError("needs rows that are contiguous, got: ") << type;
}

// load_c1, load_c2
LogicalResult LoadOp::verify() {
  MemRefType view = typeOf(getView()), block = typeOf(getBlock());
  if (view.getRank() != block.getRank())
    return emitOpError("needs a view and a block of one rank, got: ")
           << view << " and " << block;
  if (block.getElementTypeBitWidth() == 16 &&
      (view.getElementType() != block.getElementType() ||
       !getFactor().isExactlyValue(1.0)))
    return emitOpError("takes numbers of 16 bits as they are, got: ")
           << view << " and factor " << getFactorAttr();
  return verifyView(*this, getView());
}

// store_c1
LogicalResult StoreOp::verify() {
  MemRefType view = typeOf(getView()), block = typeOf(getBlock());
  bool fits = view.getRank() == block.getRank();
  for (int64_t d = 0; fits && d < view.getRank(); ++d)
    fits = view.isDynamicDim(d) || view.getDimSize(d) <= block.getDimSize(d);
  if (!fits)
    return emitOpError("needs a view that is not larger than the block, got: ")
           << view << " and " << block;
  return verifyView(*this, getView());
}

/// Panels are read across their last dimensions, and pairs are of two.
static LogicalResult verifyPanels(Operation *op, Value panels) {
  MemRefType type = typeOf(panels);
  bool isPairs = type.getElementType().isBF16();
  bool isStatic =
      isa<MultiplyOp>(op)
          ? !ShapedType::isDynamicShape(type.getShape().drop_front(2))
          : type.hasStaticShape();
  if (isStatic && type.areTrailingDimsContiguous(type.getRank() - 1) &&
      (!isPairs || type.getShape().back() == 2))
    return success();
  return op->emitOpError("needs panels that are contiguous")
         << (isPairs ? " pairs" : "") << ", got: " << type;
}

// pack_c1, pack_c2
LogicalResult PackOp::verify() {
  MemRefType view = typeOf(getView()), panels = typeOf(getPanels());
  if (view.getRank() != 2)
    return emitOpError("needs a view of two dimensions, got: ") << view;
  if (panels.getElementType().isBF16() && !view.getElementType().isBF16())
    return emitOpError("takes numbers of bf16 as they are, got: ") << view;
  if (failed(verifyPanels(*this, getPanels())))
    return failure();
  return verifyView(*this, getView());
}

// is_finite_c1
LogicalResult IsFiniteOp::verify() {
  if (typeOf(getPanels()).getRank() == 2)
    return verifyView(*this, getPanels());
  return verifyPanels(*this, getPanels());
}

/// A product whose right operand is a tile.
static LogicalResult verifyOfTiles(MultiplyOp op) {
  MemRefType a = typeOf(op.getA()), b = typeOf(op.getB()),
             c = typeOf(op.getC());
  if (op.getTransposed() || op.getDepth() || (op.getSeen() && op.getByRows()))
    return op.emitOpError(
        "of tiles takes its left operand as it is, and all of its depth, got "
        "`transposed`, `depth` or `where` with `by_rows`");
  auto areEqual = [](int64_t size, int64_t other) {
    return size == other || ShapedType::isDynamic(size) ||
           ShapedType::isDynamic(other);
  };
  int64_t depth = op.getByRows() ? 1 : 0;
  Type sums = b.getElementTypeBitWidth() == 16
                  ? Type(Float32Type::get(op.getContext()))
                  : b.getElementType();
  if (a.getRank() == 2 &&
      (a.getElementType() == b.getElementType() ||
       a.getElementType() == sums) &&
      c.getElementType() == sums &&
      areEqual(a.getDimSize(1), b.getDimSize(depth)) &&
      c.getDimSize(0) == a.getDimSize(0) &&
      areEqual(c.getDimSize(1), b.getDimSize(1 - depth)))
    return verifyView(op, op.getB());
  return op.emitOpError("needs M x K of b's type or of c's, ")
         << (op.getByRows() ? "N x K" : "K x N")
         << ", and M x N of f32 or of a wider b's type, got: " << a << ", " << b
         << " and " << c;
}

/// Of a size that may not be static.
static int64_t times(int64_t size, int64_t factor) {
  return ShapedType::isDynamic(size) ? size : size * factor;
}

// multiply_c1, multiply_c2, multiply_c3, multiply_c4
LogicalResult MultiplyOp::verify() {
  MemRefType a = typeOf(getA()), b = typeOf(getB()), c = typeOf(getC());
  if (b.getRank() == 2)
    return verifyOfTiles(*this);
  if (getByRows())
    return emitOpError("takes panels by columns, got `by_rows`");
  if (failed(verifyPanels(*this, getB())))
    return failure();
  bool isPairs = a.getElementType().isBF16(), transposed = getTransposed();
  if (isPairs && getDepth() && !transposed)
    return emitOpError(
        "of bf16 takes all of the depth of a left operand that is "
        "not transposed, got `depth`");
  bool areRowsPaired = a.getRank() == 3;
  // Each step of b's depth is as many of a's.
  int64_t together = isPairs && !areRowsPaired ? 2 : 1;
  int64_t rowDim = transposed ? 1 : 0;
  if (a.getElementType() != b.getElementType() ||
      areRowsPaired != (isPairs && transposed) ||
      (areRowsPaired && a.getDimSize(2) != 2) ||
      a.getDimSize(1 - rowDim) != times(b.getDimSize(1), together) ||
      c.getDimSize(0) != a.getDimSize(rowDim) ||
      ShapedType::isDynamic(c.getDimSize(0)) ||
      c.getDimSize(1) != times(b.getDimSize(0), b.getDimSize(2)) ||
      (isPairs ? !c.getElementType().isF32()
               : c.getElementType() != a.getElementType()))
    return emitOpError("needs ")
           << (isPairs      ? transposed ? "K/2 x M x 2" : "M x K"
               : transposed ? "K x M"
                            : "M x K")
           << (isPairs ? " of bf16, N/W x K/2 x W x 2 of bf16 and M x N of f32"
                       : ", N/W x K x W and M x N of one type")
           << ", got: " << a << ", " << b << " and " << c;
  if (!getSeen())
    return success();
  SmallVector<int64_t> shape(a.getShape().take_front(2));
  if (areRowsPaired)
    shape[0] = times(shape[0], 2);
  MemRefType seen = typeOf(getSeen());
  if (seen.getShape() == ArrayRef(shape) &&
      seen.getElementType() == c.getElementType())
    return success();
  return emitOpError("needs a score of the type of ")
         << c << " for each number of " << a << ", got: " << seen;
}

/// A tile of M rows and values with one number per row, or per column, of one
/// type.
static LogicalResult verifyRows(Operation *op, Value tile, ValueRange rows,
                                bool areColumns = false) {
  for (Value value : rows)
    if (typeOf(value).getDimSize(0) !=
            typeOf(tile).getDimSize(areColumns ? 1 : 0) ||
        typeOf(value).getElementType() != typeOf(tile).getElementType())
      return op->emitOpError("needs a number of the type of ")
             << tile.getType() << " for each of its "
             << (areColumns ? "columns" : "rows")
             << ", got: " << value.getType();
  return success();
}

// row_max_c1
LogicalResult RowMaxOp::verify() {
  return verifyRows(*this, getS(), {getM(), getFactor()});
}
// exponentials_c1, exponentials_c2
LogicalResult ExponentialsOp::verify() {
  MemRefType s = typeOf(getS());
  if (getP() && (!s.getElementType().isF32() ||
                 typeOf(getP()).getShape() != s.getShape()))
    return emitOpError("needs weights of the shape of scores of f32, got: ")
           << getP().getType() << " and " << s;
  return verifyRows(*this, getS(), {getM(), getL(), getFactor()});
}
// rescale_c1
LogicalResult RescaleOp::verify() {
  return verifyRows(*this, getO(), getFactor());
}
// add_c1
LogicalResult tile::AddOp::verify() {
  if (getA().getType() == getB().getType())
    return success();
  return emitOpError("adds tiles of one type, got: ")
         << getA().getType() << " and " << getB().getType();
}
// row_dot_c1
LogicalResult RowDotOp::verify() {
  if (getA().getType() != getB().getType())
    return emitOpError("multiplies tiles of one type, got: ")
           << getA().getType() << " and " << getB().getType();
  return verifyRows(*this, getA(), getX());
}
// merge_c1
LogicalResult tile::MergeOp::verify() {
  return verifyRows(*this, getO(), {getM(), getL(), getM2(), getL2()});
}
// normalize_c1
LogicalResult NormalizeOp::verify() {
  return verifyRows(*this, getO(), {getM(), getL()});
}
// weights_c1
LogicalResult WeightsOp::verify() {
  return verifyRows(*this, getS(), getLse(), getTransposed());
}
// round_c1
LogicalResult RoundOp::verify() {
  MemRefType s = typeOf(getS()), p = typeOf(getP());
  SmallVector<int64_t> shape(p.getShape().take_front(2));
  bool arePaired = p.getRank() == 3;
  if (arePaired)
    shape[0] = times(shape[0], 2);
  if (s.getElementType().isF32() && s.getShape() == ArrayRef(shape) &&
      (!arePaired || p.getDimSize(2) == 2))
    return success();
  return emitOpError(
             "needs M x N of f32, and M x N or M/2 x N x 2 of bf16, got: ")
         << s << " and " << p;
}
// differentials_c1
LogicalResult DifferentialsOp::verify() {
  return verifyRows(*this, getP(), getDelta(), getTransposed());
}

//===----------------------------------------------------------------------===//
// map, map_gradient
//===----------------------------------------------------------------------===//

static FloatType stateOf(Value tile) {
  return cast<FloatType>(typeOf(tile).getElementType());
}

static LogicalResult verifyPositions(Operation *op, Value tile, Value i,
                                     Value j, bool transposed) {
  MemRefType type = typeOf(tile);
  if (transposed)
    std::swap(i, j);
  if (typeOf(i).getDimSize(0) == type.getDimSize(0) &&
      typeOf(j).getDimSize(0) == type.getDimSize(1))
    return success();
  return op->emitOpError("needs a position for each row and column of ")
         << type << ", got: " << i.getType() << " and " << j.getType();
}

// map_c1
LogicalResult MapOp::verify() {
  auto heads = dyn_cast<MemRefType>(getHead().getType());
  if (heads &&
      (getTransposed() || heads.getDimSize(0) != typeOf(getS()).getDimSize(0)))
    return emitOpError("needs a head for each row of ")
           << getS().getType() << ", got: " << heads
           << (getTransposed() ? " and `transposed`" : "");
  return verifyPositions(*this, getS(), getI(), getJ(), getTransposed());
}
// map_gradient_c1, map_gradient_c3
LogicalResult MapGradientOp::verify() {
  if (getGrads().size() != getWanted().size())
    return emitOpError("needs a gradient for each of ")
           << getWanted().size() << " captures, got: " << getGrads().size();
  for (auto [n, grad] : llvm::zip_equal(getWanted(), getGrads())) {
    MemRefType table;
    if (n >= 0 && n < static_cast<int64_t>(getCaptures().size()))
      table = dyn_cast<MemRefType>(getCaptures()[n].getType());
    if (!table)
      return emitOpError("`wanted` numbers captured tables, got: ") << n;
    if (typeOf(grad).getElementType() != stateOf(getW()) ||
        !agree(typeOf(grad).getShape(), table.getShape()))
      return emitOpError("the gradient by ")
             << table << " must have its shape, in " << stateOf(getW())
             << ", got: " << grad.getType();
  }
  return verifyPositions(*this, getW(), getI(), getJ(), getTransposed());
}

// map_c2
LogicalResult MapOp::verifyRegions() {
  FloatType state = stateOf(getS());
  if (failed(verifyRegion(*this, RegionRole::Mask, getMask(), state,
                          asRegionArguments(getMaskCaptures().getTypes()))))
    return failure();
  return verifyRegion(*this, RegionRole::Score, getScore(), state,
                      asRegionArguments(getScoreCaptures().getTypes()));
}

// map_gradient_c2, map_gradient_c4
LogicalResult MapGradientOp::verifyRegions() {
  if (failed(verifyRegion(*this, RegionRole::Gradient, getGradient(),
                          stateOf(getW()),
                          asRegionArguments(getCaptures().getTypes()))))
    return failure();
  for (auto contribute : getGradient().getOps<ContributeOp>())
    if (!getGradOf(contribute))
      return contribute.emitOpError(
          "adds to the gradient of a capture that `wanted` does not name");
  return success();
}
