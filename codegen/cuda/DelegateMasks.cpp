//===- DelegateMasks.cpp - idle warps evaluate masks ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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

/// Registers of a thread where mask warps need some, by how many warpgroups
/// consume.
struct Registers {
  int64_t producer, consumers;
};
constexpr Registers registersOf[] = {{56, 256}, {56, 224}, {32, 160}};

/// Takes masks from one kernel's consumers.
class Delegator {
public:
  Delegator(cuda::WarpSpecializeOp specialized,
            const cuda::DelegateMasksPassOptions &options)
      : specialized(specialized), options(options),
        b(specialized.getLoc(), specialized) {}

  void delegate();

private:
  int64_t chooseStages(MemRefType maskBits);
  void evaluateInMaskWarps();
  void evaluate(tile::MapOp map);
  void applyMaskBits(tile::MapOp map);

  cuda::WarpSpecializeOp specialized;
  const cuda::DelegateMasksPassOptions &options;
  tile::LoopBuilder b;
  SmallVector<tile::MapOp> maps;
  SmallVector<cuda::PipelineOp> pipelines; ///< of the producer
  Value pipeline;
};

} // namespace

/// As many stages as asked for and as fit; 0 where there is room for none.
int64_t Delegator::chooseStages(MemRefType maskBits) {
  SmallVector<cuda::PipelineType> types;
  for (cuda::PipelineOp op : pipelines)
    types.push_back(op.getPipeline().getType());
  int64_t needed = 0;
  for (int64_t stages = options.stages; stages > 0; --stages) {
    types.push_back(cuda::PipelineType::get(b.getContext(), stages, maskBits));
    needed = cuda::placePipelines(types);
    types.pop_back();
    if (needed <= options.sharedBytes)
      return stages;
  }
  specialized.emitRemark(llvm::formatv("consumers evaluate masks: a stage for "
                                       "mask bits makes {0} bytes of shared "
                                       "memory, of {1}",
                                       needed, options.sharedBytes));
  return 0;
}

/// What mask warps do of a map: its mask, into the next stage.
void Delegator::evaluate(tile::MapOp map) {
  b.setInsertionPoint(map);
  b.setLoc(NameLoc::get(b.getStringAttr("bits"), map.getLoc()));
  Value stage = b.make<cuda::ProducerAcquireOp>(
      cast<cuda::PipelineType>(pipeline.getType()).getTile(), pipeline);
  b.setLoc(map.getLoc());
  auto bits = b.make<cuda::MaskBitsOp>(
      stage, map.getColumns(), map.getBatch(), map.getHead(), map.getI(),
      map.getJ(), map.getQueries(), map.getKeys(), map.getMaskCaptures());
  bits.getMask().takeBody(map.getMask());
  b.make<cuda::ProducerCommitOp>(pipeline);
  map.erase();
}

/// A copy of what consumers do, of which masks and their positions are left.
void Delegator::evaluateInMaskWarps() {
  Block &maskWarps = specialized.getMaskWarps().emplaceBlock();
  b.setInsertionPointToStart(&maskWarps);
  IRMapping mapping;
  // Each role has positions of its own.
  for (tile::MapOp map : maps)
    for (Value positions : {map.getI(), map.getJ()})
      if (!mapping.contains(positions))
        b.clone(*positions.getDefiningOp(), mapping);
  for (Operation &op : specialized.getConsumers().front())
    b.clone(op, mapping);
  SmallVector<tile::MapOp> copies;
  SmallVector<Operation *> others;
  maskWarps.walk([&](Operation *op) {
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
void Delegator::applyMaskBits(tile::MapOp map) {
  b.setInsertionPointAfter(map);
  b.setLoc(NameLoc::get(b.getStringAttr("bits"), map.getLoc()));
  Value stage = b.make<cuda::ConsumerWaitOp>(
      cast<cuda::PipelineType>(pipeline.getType()).getTile(), pipeline);
  b.setLoc(map.getLoc());
  b.make<cuda::ApplyMaskBitsOp>(map.getS(), stage);
  b.make<cuda::ConsumerReleaseOp>(pipeline);
  map.erase();
}

/// Whether a mask reads tables.
static bool readsTables(Region &mask) {
  return mask.walk([](tensor::ExtractOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

void Delegator::delegate() {
  bool readTables = false;
  specialized.getConsumers().walk([&](tile::MapOp map) {
    if (map.getMask().empty())
      return;
    maps.push_back(map);
    readTables |= readsTables(map.getMask());
  });
  if (!readTables)
    return;
  auto kernel = specialized->getParentOfType<func::FuncOp>();
  kernel.walk([&](cuda::PipelineOp op) { pipelines.push_back(op); });
  auto scores = cast<MemRefType>(maps.front().getS().getType());
  auto maskBits = MemRefType::get(
      scores.getShape(), b.getI1Type(), MemRefLayoutAttrInterface(),
      pipelines.front().getPipeline().getType().getTile().getMemorySpace());
  int64_t stages = chooseStages(maskBits);
  if (stages == 0)
    return;
  b.setInsertionPointAfter(pipelines.back());
  b.setLoc(NameLoc::get(b.getStringAttr("bitsPipeline")));
  pipeline = b.make<cuda::PipelineOp>(
      cuda::PipelineType::get(b.getContext(), stages, maskBits));
  evaluateInMaskWarps();
  SetVector<Operation *> positions;
  for (tile::MapOp map : maps) {
    positions.insert(map.getI().getDefiningOp());
    positions.insert(map.getJ().getDefiningOp());
    applyMaskBits(map);
  }
  for (Operation *block : positions)
    if (llvm::all_of(block->getUsers(), llvm::IsaPred<tile::PositionsOp>)) {
      for (Operation *user : llvm::make_early_inc_range(block->getUsers()))
        user->erase();
      block->erase();
    }
  int64_t warpgroups =
      kernel->getAttrOfType<IntegerAttr>(tile::warpsAttr).getInt() / 4;
  Registers registers = registersOf[warpgroups - 1];
  specialized.setProducerRegisters(registers.producer);
  specialized.setConsumerRegisters(registers.consumers);
  IRRewriter rewriter(b.getContext());
  std::ignore = runRegionDCE(rewriter, kernel->getRegions());
}

namespace {
struct DelegateMasks : cuda::impl::DelegateMasksPassBase<DelegateMasks> {
  using DelegateMasksPassBase::DelegateMasksPassBase;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (stages < 1) {
      kernel.emitError("a pipeline has at least one stage, got: ")
          << stages.getValue();
      return signalPassFailure();
    }
    cuda::DelegateMasksPassOptions options{stages, sharedBytes};
    kernel.walk([&](cuda::WarpSpecializeOp specialized) {
      Delegator(specialized, options).delegate();
    });
  }
};
} // namespace
