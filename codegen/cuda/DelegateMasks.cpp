//===- DelegateMasks.cpp - idle warps evaluate masks ----------------------===//
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst::cuda {
#define GEN_PASS_DEF_DELEGATEMASKSPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

namespace {

/// Registers of a thread where markers need some, by how many warpgroups
/// consume.
struct Registers {
  int64_t producer, consumers;
};
constexpr Registers registersOf[] = {{56, 256}, {56, 224}, {32, 160}};

/// Takes masks from one kernel's consumers.
class Delegator {
public:
  Delegator(cuda::RolesOp roles, const cuda::DelegateMasksPassOptions &options)
      : roles(roles), options(options), b(roles.getLoc(), roles) {}

  void delegate();

private:
  int64_t chooseStages(MemRefType marks);
  void mark();
  void evaluate(tile::MapOp map);
  void hide(tile::MapOp map);

  cuda::RolesOp roles;
  const cuda::DelegateMasksPassOptions &options;
  tile::LoopBuilder b;
  SmallVector<tile::MapOp> maps;
  SmallVector<cuda::ChannelOp> channels; ///< of the producer
  Value channel;
};

} // namespace

/// As many slots as asked for and as fit; 0 where there is room for none.
int64_t Delegator::chooseStages(MemRefType marks) {
  SmallVector<cuda::ChannelType> types;
  for (cuda::ChannelOp op : channels)
    types.push_back(op.getChannel().getType());
  int64_t needed = 0;
  for (int64_t stages = options.stages; stages > 0; --stages) {
    types.push_back(cuda::ChannelType::get(b.getContext(), stages, marks));
    needed = cuda::placeChannels(types);
    types.pop_back();
    if (needed <= options.sharedBytes)
      return stages;
  }
  roles.emitRemark(llvm::formatv(
      "consumers evaluate masks: a slot for marks makes {0} bytes of shared "
      "memory, of {1}",
      needed, options.sharedBytes));
  return 0;
}

/// What markers do of a map: its mask, into the next slot.
void Delegator::evaluate(tile::MapOp map) {
  b.setInsertionPoint(map);
  b.setLoc(NameLoc::get(b.getStringAttr("marks"), map.getLoc()));
  Value slot = b.make<cuda::AcquireOp>(
      cast<cuda::ChannelType>(channel.getType()).getTile(), channel);
  b.setLoc(map.getLoc());
  auto mark = b.make<cuda::MarkOp>(
      slot, map.getColumns(), map.getBatch(), map.getHead(), map.getI(),
      map.getJ(), map.getQueries(), map.getKeys(), map.getMaskCaptures());
  mark.getMask().takeBody(map.getMask());
  b.make<cuda::PublishOp>(channel);
  map.erase();
}

/// A copy of what consumers do, of which masks and their positions are left.
void Delegator::mark() {
  Block &markers = roles.getMarkers().emplaceBlock();
  b.setInsertionPointToStart(&markers);
  IRMapping mapping;
  // Positions are of a role.
  for (tile::MapOp map : maps)
    for (Value positions : {map.getI(), map.getJ()})
      if (!mapping.contains(positions))
        b.clone(*positions.getDefiningOp(), mapping);
  for (Operation &op : roles.getConsumers().front())
    b.clone(op, mapping);
  SmallVector<tile::MapOp> copies;
  SmallVector<Operation *> others;
  markers.walk([&](Operation *op) {
    bool isOfTiles =
        isa<memref::CopyOp>(op) ||
        isa<tile::TileDialect, cuda::CudaDialect>(op->getDialect());
    if (auto map = dyn_cast<tile::MapOp>(op); map && !map.getMask().empty())
      copies.push_back(map);
    else if (isOfTiles && !isa<tile::PositionsOp>(op))
      others.push_back(op);
  });
  for (Operation *op : llvm::reverse(others)) // what uses a result first
    op->erase();
  for (tile::MapOp copy : copies)
    evaluate(copy);
}

/// What consumers do instead of evaluating a mask; a score has a map of its
/// own.
void Delegator::hide(tile::MapOp map) {
  b.setInsertionPointAfter(map);
  b.setLoc(NameLoc::get(b.getStringAttr("marks"), map.getLoc()));
  Value slot = b.make<cuda::ReceiveOp>(
      cast<cuda::ChannelType>(channel.getType()).getTile(), channel);
  b.setLoc(map.getLoc());
  b.make<cuda::HideOp>(map.getS(), slot);
  b.make<cuda::ReleaseOp>(channel);
  map.erase();
}

/// Whether a mask reads tables.
static bool readsTables(Region &mask) {
  return mask.walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

void Delegator::delegate() {
  bool readTables = false;
  roles.getConsumers().walk([&](tile::MapOp map) {
    if (map.getMask().empty())
      return;
    maps.push_back(map);
    readTables |= readsTables(map.getMask());
  });
  if (!readTables)
    return;
  auto kernel = roles->getParentOfType<func::FuncOp>();
  kernel.walk([&](cuda::ChannelOp op) { channels.push_back(op); });
  auto scores = cast<MemRefType>(maps.front().getS().getType());
  auto marks = MemRefType::get(
      scores.getShape(), b.getI1Type(), MemRefLayoutAttrInterface(),
      channels.front().getChannel().getType().getTile().getMemorySpace());
  int64_t stages = chooseStages(marks);
  if (stages == 0)
    return;
  b.setInsertionPointAfter(channels.back());
  b.setLoc(NameLoc::get(b.getStringAttr("marksChannel")));
  channel = b.make<cuda::ChannelOp>(
      cuda::ChannelType::get(b.getContext(), stages, marks));
  mark();
  SetVector<Operation *> positions;
  for (tile::MapOp map : maps) {
    positions.insert(map.getI().getDefiningOp());
    positions.insert(map.getJ().getDefiningOp());
    hide(map);
  }
  for (Operation *block : positions)
    if (llvm::all_of(block->getUsers(), llvm::IsaPred<tile::PositionsOp>)) {
      for (Operation *user : llvm::make_early_inc_range(block->getUsers()))
        user->erase();
      block->erase();
    }
  int64_t warpgroups =
      kernel->getAttrOfType<IntegerAttr>(cuda::teamAttr).getInt() / 4;
  Registers registers = registersOf[warpgroups - 1];
  roles.setProducerRegisters(registers.producer);
  roles.setConsumerRegisters(registers.consumers);
  IRRewriter rewriter(b.getContext());
  std::ignore = runRegionDCE(rewriter, kernel->getRegions());
}

namespace {
struct DelegateMasks : cuda::impl::DelegateMasksPassBase<DelegateMasks> {
  using DelegateMasksPassBase::DelegateMasksPassBase;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (stages < 1) {
      kernel.emitError("a channel has at least one slot, got: ")
          << stages.getValue();
      return signalPassFailure();
    }
    cuda::DelegateMasksPassOptions options{stages, sharedBytes};
    kernel.walk(
        [&](cuda::RolesOp roles) { Delegator(roles, options).delegate(); });
  }
};
} // namespace
