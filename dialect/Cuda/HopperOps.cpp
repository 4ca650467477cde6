//===- HopperOps.cpp - warp-specialized kernels ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Cuda/Cuda.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;

static MemRefType typeOf(Value value) {
  return cast<MemRefType>(value.getType());
}

LogicalResult
PipelineType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     int64_t stages, MemRefType tile) {
  if (stages < 1)
    return emitError() << "a pipeline has at least one stage, got: " << stages;
  if (isShared(tile) && tile.getRank() == 2 && tile.hasStaticShape() &&
      tile.getElementType().isInteger(1))
    return tile.getDimSize(0) % 32 == 0 && tile.getDimSize(1) % 8 == 0
               ? success()
               : emitError()
                     << "mask bits have rows in thirty-twos and columns in "
                        "eights, got: "
                     << tile;
  if (!isShared(tile) || tile.getRank() != 2 || !tile.hasStaticShape() ||
      tile.getElementTypeBitWidth() != 16 || tile.getDimSize(0) % 8 != 0 ||
      tile.getDimSize(0) > 256 || tile.getDimSize(1) % 16 != 0)
    return emitError()
           << "a stage is a tile of 16 bits in shared memory with up "
              "to 256 rows in eights and columns in sixteens, got: "
           << tile;
  return success();
}

int64_t PipelineType::getStageBytes() {
  int64_t rows = getTile().getDimSize(0), columns = getTile().getDimSize(1);
  return isOfMaskBits() ? 4 * rows * llvm::divideCeilSigned(columns, 32)
                        : 2 * rows * columns;
}

int64_t cuda::placePipelines(ArrayRef<PipelineType> pipelines,
                             SmallVectorImpl<Place> *places) {
  int64_t bytes = 0;
  SmallVector<Place> found;
  for (PipelineType pipeline : pipelines) {
    // Rows are permuted by their address.
    found.push_back({static_cast<int64_t>(llvm::alignTo(bytes, 1024)), 0});
    bytes =
        found.back().stages + pipeline.getStages() * pipeline.getStageBytes();
  }
  for (auto [place, pipeline] : llvm::zip_equal(found, pipelines)) {
    place.barriers = bytes;
    bytes += 16 * pipeline.getStages();
  }
  if (places)
    *places = std::move(found);
  return bytes;
}

/// Checks that an op stands in the region of a role.
static LogicalResult verifyRole(Operation *op,
                                Region &(WarpSpecializeOp::*region)(),
                                StringRef what) {
  if (auto specialized = op->getParentOfType<WarpSpecializeOp>())
    if ((specialized.*region)().isAncestor(op->getParentRegion()))
      return success();
  return op->emitOpError("stands outside what ") << what;
}
static LogicalResult verifyProduces(Operation *op) {
  return verifyRole(op, &WarpSpecializeOp::getProducer, "the producer does");
}
static LogicalResult verifyMaskWarps(Operation *op) {
  return verifyRole(op, &WarpSpecializeOp::getMaskWarps, "mask warps do");
}
static LogicalResult verifyConsumes(Operation *op) {
  return verifyRole(op, &WarpSpecializeOp::getConsumers, "consumers do");
}

/// The warps of the consumers that an op belongs to.
static int64_t consumersOf(Operation *op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  return kernel->getAttrOfType<IntegerAttr>(tile::warpsAttr).getInt();
}

// producer_acquire_c1, producer_commit_c1
LogicalResult ProducerAcquireOp::verify() {
  return getPipeline().getType().isOfMaskBits() ? verifyMaskWarps(*this)
                                                : verifyProduces(*this);
}
LogicalResult ProducerCommitOp::verify() {
  return getPipeline().getType().isOfMaskBits() ? verifyMaskWarps(*this)
                                                : verifyProduces(*this);
}
// consumer_wait_c1, consumer_release_c1
LogicalResult ConsumerWaitOp::verify() { return verifyConsumes(*this); }
LogicalResult ConsumerReleaseOp::verify() { return verifyConsumes(*this); }

// warp_specialize_c1, warp_specialize_c2, warp_specialize_c3
LogicalResult WarpSpecializeOp::verify() {
  auto kernel = (*this)->getParentOfType<func::FuncOp>();
  auto warps = kernel ? kernel->getAttrOfType<IntegerAttr>(tile::warpsAttr)
                      : IntegerAttr();
  if (!warps)
    return emitOpError("stands in no kernel with ") << tile::warpsAttr;
  int64_t consumers = warps.getInt(), producers = getWarps();
  if (consumers % 4 != 0 || producers < 4 || producers % 4 != 0)
    return emitOpError("needs whole warpgroups of 4 warps, got: ")
           << consumers << " warps of consumers and " << producers
           << " of the producer";
  for (int64_t registers : {getProducerRegisters(), getConsumerRegisters()})
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return emitOpError("needs registers in eights from 24 to 256, got: ")
             << registers;
  int64_t all = 32 * (consumers * getConsumerRegisters() +
                      producers * getProducerRegisters());
  if (all > 65536)
    return emitOpError("needs at most 65536 registers of a block, got: ")
           << all;
  return success();
}

/// Whether a view is rows of a parameter, which a tensor map can say.
static bool isBox(Value view) {
  if (auto select = view.getDefiningOp<arith::SelectOp>())
    return isBox(select.getTrueValue()) && isBox(select.getFalseValue());
  auto rows = view.getDefiningOp<memref::SubViewOp>();
  auto source =
      rows ? dyn_cast<BlockArgument>(rows.getSource()) : BlockArgument();
  return source && isa<func::FuncOp>(source.getOwner()->getParentOp()) &&
         rows.hasUnitStride();
}

// tma_load_c1, tma_load_c2
LogicalResult TmaLoadOp::verify() {
  if (failed(verifyProduces(*this)))
    return failure();
  if (!getStage().getDefiningOp<ProducerAcquireOp>())
    return emitOpError("needs a stage of cuda.producer_acquire");
  MemRefType view = typeOf(getView()), stage = typeOf(getStage());
  if (view.getElementType() != stage.getElementType() ||
      view.getDimSize(1) != stage.getDimSize(1))
    return emitOpError("needs a view with the stage's columns and elements, "
                       "got: ")
           << view << " and " << stage;
  if (!isBox(getView()))
    return emitOpError("needs a view of rows of a kernel's parameter");
  return success();
}

// clear_c1
LogicalResult ClearOp::verify() {
  if (failed(verifyConsumes(*this)))
    return failure();
  if (!getStage().getDefiningOp<ConsumerWaitOp>())
    return emitOpError("needs a stage of cuda.consumer_wait");
  return success();
}

// mask_bits_c1, mask_bits_c2
LogicalResult MaskBitsOp::verify() {
  if (failed(verifyMaskWarps(*this)))
    return failure();
  if (!getStage().getDefiningOp<ProducerAcquireOp>())
    return emitOpError("needs a stage of cuda.producer_acquire");
  MemRefType stage = typeOf(getStage());
  if (typeOf(getI()).getDimSize(0) != stage.getDimSize(0) ||
      typeOf(getJ()).getDimSize(0) != stage.getDimSize(1))
    return emitOpError("needs a position for each row and column of ")
           << stage << ", got: " << getI().getType() << " and "
           << getJ().getType();
  return success();
}

// mask_bits_c3
LogicalResult MaskBitsOp::verifyRegions() {
  return verifyRegion(*this, RegionRole::Mask, getMask(),
                      Float32Type::get(getContext()),
                      asRegionArguments(getCaptures().getTypes()));
}

void MaskBitsOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  setArgumentNames(RegionRole::Mask, region, setName);
}

// apply_mask_bits_c1, apply_mask_bits_c2
LogicalResult ApplyMaskBitsOp::verify() {
  if (failed(verifyConsumes(*this)))
    return failure();
  if (!getStage().getDefiningOp<ConsumerWaitOp>())
    return emitOpError("needs a stage of cuda.consumer_wait");
  MemRefType s = typeOf(getS()), stage = typeOf(getStage());
  if (!isPrivate(s) || s.getShape() != stage.getShape())
    return emitOpError("needs a block in registers of the stage's shape, got: ")
           << s << " and " << stage;
  return success();
}

// round_c1, round_c2
LogicalResult RoundOp::verify() {
  if (failed(verifyConsumes(*this)))
    return failure();
  MemRefType s = typeOf(getS()), weights = typeOf(getWeights());
  if (!isPrivate(s) || !isPrivate(weights) ||
      s.getShape() != weights.getShape())
    return emitOpError("needs blocks of one shape in registers, got: ")
           << s << " and " << weights;
  return success();
}

// multiply_async_c1, multiply_async_c2, multiply_async_c3
LogicalResult MultiplyAsyncOp::verify() {
  if (failed(verifyConsumes(*this)))
    return failure();
  MemRefType a = typeOf(getA()), b = typeOf(getB()), c = typeOf(getC());
  int64_t depth = a.getDimSize(1), columns = c.getDimSize(1);
  int64_t warps = consumersOf(*this);
  bool fits = isShared(b) && isPrivate(c) &&
              (getByRows() ? isShared(a) : isPrivate(a)) &&
              a.getElementType() == b.getElementType() &&
              b.getDimSize(getByRows() ? 1 : 0) == depth &&
              b.getDimSize(getByRows() ? 0 : 1) == columns &&
              a.getDimSize(0) == c.getDimSize(0) &&
              c.getDimSize(0) == 16 * warps && depth % 16 == 0 &&
              columns % 16 == 0 && columns <= 256;
  if (!fits)
    return emitOpError("has operands that asynchronous products do not take: ")
           << a << ", " << b << ", " << c;
  auto awaits = [&](Operation *user) {
    return isa<AwaitOp>(user) && user->getBlock() == (*this)->getBlock();
  };
  if (!getToken().hasOneUse() || !awaits(*getToken().user_begin()))
    return emitOpError("must be awaited once, in its block");
  return success();
}

// await_c1
LogicalResult AwaitOp::verify() {
  if (!getToken().getDefiningOp<MultiplyAsyncOp>())
    return emitOpError("needs a token of cuda.multiply_async");
  return success();
}

// ping_pong_begin_c1, ping_pong_wait_c1, ping_pong_signal_c1, ping_pong_end_c1
static LogicalResult verifyPingPong(Operation *op) {
  if (failed(verifyConsumes(op)))
    return failure();
  if (int64_t warps = consumersOf(op); warps <= 4)
    return op->emitOpError("needs several warpgroups of consumers, got: ")
           << warps << " warps";
  return success();
}

LogicalResult PingPongBeginOp::verify() { return verifyPingPong(*this); }
LogicalResult PingPongWaitOp::verify() { return verifyPingPong(*this); }
LogicalResult PingPongSignalOp::verify() { return verifyPingPong(*this); }
LogicalResult PingPongEndOp::verify() { return verifyPingPong(*this); }
