//===- HopperOps.cpp - warps with roles, and what is between --------------===//
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
ChannelType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    int64_t stages, MemRefType tile) {
  if (stages < 1)
    return emitError() << "a channel has at least one slot, got: " << stages;
  if (isShared(tile) && tile.getRank() == 2 && tile.hasStaticShape() &&
      tile.getElementType().isInteger(1))
    return tile.getDimSize(0) % 32 == 0 && tile.getDimSize(1) % 8 == 0
               ? success()
               : emitError() << "marks have rows in thirty-twos and columns in "
                                "eights, got: "
                             << tile;
  if (!isShared(tile) || tile.getRank() != 2 || !tile.hasStaticShape() ||
      tile.getElementTypeBitWidth() != 16 || tile.getDimSize(0) % 8 != 0 ||
      tile.getDimSize(0) > 256 || tile.getDimSize(1) % 16 != 0)
    return emitError()
           << "a slot is a tile of 16 bits in shared memory with up "
              "to 256 rows in eights and columns in sixteens, got: "
           << tile;
  return success();
}

int64_t ChannelType::getSlotBytes() {
  int64_t rows = getTile().getDimSize(0), columns = getTile().getDimSize(1);
  return isOfMarks() ? 4 * rows * llvm::divideCeilSigned(columns, 32)
                     : 2 * rows * columns;
}

int64_t cuda::placeChannels(ArrayRef<ChannelType> channels,
                            SmallVectorImpl<Place> *places) {
  int64_t bytes = 0;
  SmallVector<Place> found;
  for (ChannelType channel : channels) { // rows are permuted by their address
    found.push_back({static_cast<int64_t>(llvm::alignTo(bytes, 1024)), 0});
    bytes = found.back().slots + channel.getStages() * channel.getSlotBytes();
  }
  for (auto [place, channel] : llvm::zip_equal(found, channels)) {
    place.barriers = bytes;
    bytes += 16 * channel.getStages();
  }
  if (places)
    *places = std::move(found);
  return bytes;
}

/// Checks that an op is of a role.
static LogicalResult verifyRole(Operation *op, Region &(RolesOp::*region)(),
                                StringRef what) {
  if (auto roles = op->getParentOfType<RolesOp>())
    if ((roles.*region)().isAncestor(op->getParentRegion()))
      return success();
  return op->emitOpError("stands outside what ") << what;
}
static LogicalResult verifyProduces(Operation *op) {
  return verifyRole(op, &RolesOp::getProducer, "the producer does");
}
static LogicalResult verifyMarks(Operation *op) {
  return verifyRole(op, &RolesOp::getMarkers, "markers do");
}
static LogicalResult verifyConsumes(Operation *op) {
  return verifyRole(op, &RolesOp::getConsumers, "consumers do");
}

/// The warps of the consumers that an op belongs to.
static int64_t consumersOf(Operation *op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  return kernel->getAttrOfType<IntegerAttr>(teamAttr).getInt();
}

// acquire_c1, publish_c1
LogicalResult AcquireOp::verify() {
  return getChannel().getType().isOfMarks() ? verifyMarks(*this)
                                            : verifyProduces(*this);
}
LogicalResult PublishOp::verify() {
  return getChannel().getType().isOfMarks() ? verifyMarks(*this)
                                            : verifyProduces(*this);
}
// receive_c1, release_c1
LogicalResult ReceiveOp::verify() { return verifyConsumes(*this); }
LogicalResult ReleaseOp::verify() { return verifyConsumes(*this); }

// roles_c1, roles_c2, roles_c3
LogicalResult RolesOp::verify() {
  auto kernel = (*this)->getParentOfType<func::FuncOp>();
  auto team =
      kernel ? kernel->getAttrOfType<IntegerAttr>(teamAttr) : IntegerAttr();
  if (!team)
    return emitOpError("stands in no kernel with ") << teamAttr;
  int64_t consumers = team.getInt(), producers = getWarps();
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

// bring_c1, bring_c2
LogicalResult BringOp::verify() {
  if (failed(verifyProduces(*this)))
    return failure();
  if (!getSlot().getDefiningOp<AcquireOp>())
    return emitOpError("needs a slot of cuda.acquire");
  MemRefType view = typeOf(getView()), slot = typeOf(getSlot());
  if (view.getElementType() != slot.getElementType() ||
      view.getDimSize(1) != slot.getDimSize(1))
    return emitOpError("needs a view with the slot's columns and elements, "
                       "got: ")
           << view << " and " << slot;
  if (!isBox(getView()))
    return emitOpError("needs a view of rows of a kernel's parameter");
  return success();
}

// clear_c1
LogicalResult ClearOp::verify() {
  if (failed(verifyConsumes(*this)))
    return failure();
  if (!getSlot().getDefiningOp<ReceiveOp>())
    return emitOpError("needs a slot of cuda.receive");
  return success();
}

// mark_c1, mark_c2
LogicalResult MarkOp::verify() {
  if (failed(verifyMarks(*this)))
    return failure();
  if (!getSlot().getDefiningOp<AcquireOp>())
    return emitOpError("needs a slot of cuda.acquire");
  MemRefType slot = typeOf(getSlot());
  if (typeOf(getI()).getDimSize(0) != slot.getDimSize(0) ||
      typeOf(getJ()).getDimSize(0) != slot.getDimSize(1))
    return emitOpError("needs a position for each row and column of ")
           << slot << ", got: " << getI().getType() << " and "
           << getJ().getType();
  return success();
}

// mark_c3
LogicalResult MarkOp::verifyRegions() {
  return verifyRegion(*this, RegionRole::Mask, getMask(),
                      Float32Type::get(getContext()),
                      asRegionArguments(getCaptures().getTypes()));
}

void MarkOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  setArgumentNames(RegionRole::Mask, region, setName);
}

// hide_c1, hide_c2
LogicalResult HideOp::verify() {
  if (failed(verifyConsumes(*this)))
    return failure();
  if (!getSlot().getDefiningOp<ReceiveOp>())
    return emitOpError("needs a slot of cuda.receive");
  MemRefType s = typeOf(getS()), slot = typeOf(getSlot());
  if (!isPrivate(s) || s.getShape() != slot.getShape())
    return emitOpError("needs a block in registers of the slot's shape, got: ")
           << s << " and " << slot;
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

// begin_turns_c1, take_turn_c1, pass_turn_c1, end_turns_c1
static LogicalResult verifyTurn(Operation *op) {
  if (failed(verifyConsumes(op)))
    return failure();
  if (int64_t warps = consumersOf(op); warps <= 4)
    return op->emitOpError("needs several warpgroups of consumers, got: ")
           << warps << " warps";
  return success();
}

LogicalResult BeginTurnsOp::verify() { return verifyTurn(*this); }
LogicalResult TakeTurnOp::verify() { return verifyTurn(*this); }
LogicalResult PassTurnOp::verify() { return verifyTurn(*this); }
LogicalResult EndTurnsOp::verify() { return verifyTurn(*this); }
