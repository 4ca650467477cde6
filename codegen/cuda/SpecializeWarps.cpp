//===- SpecializeWarps.cpp - a producer warp, and consumer warps ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/ControlFlowSinkUtils.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst::cuda {
#define GEN_PASS_DEF_SPECIALIZEWARPSPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

static MemRefType typeOf(Value value) {
  return cast<MemRefType>(value.getType());
}

namespace {

/// Registers of a thread, by how many warpgroups consume.
struct Registers {
  int64_t producer, consumers;
};
constexpr Registers registersOf[] = {{56, 256}, {24, 240}, {32, 160}};
constexpr int64_t producerWarps = 4;

/// Warp-specializes one kernel.
class Specializer {
public:
  Specializer(func::FuncOp kernel,
              const cuda::SpecializeWarpsPassOptions &options)
      : kernel(kernel), options(options), b(kernel.getLoc(), kernel) {}

  /// Whether the kernel loads tiles to shared memory.
  bool collect();
  /// Why the kernel stays as it is, or nothing.
  std::string reason();
  void specialize();

private:
  /// A tile in shared memory, and the loads that fill it.
  struct Staged {
    memref::AllocaOp block;
    SmallVector<tile::LoadOp> loads;
    int64_t stages = 1;
  };

  std::string chooseStages();
  void produce(Region &region, IRMapping &mapping);
  void consume();
  void readFromPipeline(Staged &staged, Value pipeline);
  void clear(tile::MultiplyOp product);
  Value round(tile::MultiplyOp product);

  func::FuncOp kernel;
  const cuda::SpecializeWarpsPassOptions &options;
  tile::LoopBuilder b;
  int64_t warps = 0;
  SmallVector<Staged> blocks;
  llvm::SmallDenseMap<Operation *, Value> pipelines; ///< of blocks
  llvm::SmallDenseMap<Value, Value> weights; ///< rounded, of blocks of scores
  Block *body = nullptr;                     ///< in which all of it happens
};

} // namespace

bool Specializer::collect() {
  llvm::MapVector<Operation *, Staged> found;
  kernel.walk([&](tile::LoadOp load) {
    if (!cuda::isShared(load.getBlock().getType()))
      return;
    auto block = load.getBlock().getDefiningOp<memref::AllocaOp>();
    Staged &staged = found[block];
    staged.block = block;
    staged.loads.push_back(load);
    if (!body)
      body = load->getBlock();
  });
  for (auto &[op, staged] : found)
    blocks.push_back(staged);
  return !blocks.empty();
}

/// Whether a tensor map can say where a view lies.
static bool isBox(Value view) {
  auto rows = view.getDefiningOp<memref::SubViewOp>();
  return rows && isa<BlockArgument>(rows.getSource()) &&
         typeOf(rows.getSource()).getRank() == 4;
}

std::string Specializer::reason() {
  warps = kernel->getAttrOfType<IntegerAttr>(tile::warpsAttr).getInt();
  if (warps % 4 != 0 || static_cast<size_t>(warps) > 4 * std::size(registersOf))
    return llvm::formatv(
        "consumers are 1 to {0} warpgroups of 4 warps, got {1} "
        "warps",
        std::size(registersOf), warps);
  std::string reason;
  auto stop = [&](const auto &why) {
    reason = why.str();
    return WalkResult::interrupt();
  };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op);
        load && cuda::isShared(load.getBlock().getType())) {
      int64_t columns = typeOf(load.getView()).getDimSize(1);
      if (columns % 16 != 0)
        return stop(llvm::formatv(
            "head dimensions of asynchronous products are multiples of 16, "
            "got {0}",
            columns));
      if (typeOf(load.getBlock()).getDimSize(0) > 256)
        return stop(llvm::formatv("a box has at most 256 rows, got {0}",
                                  typeOf(load.getBlock()).getDimSize(0)));
      if (!isBox(load.getView()))
        return stop(llvm::formatv("a tile is not rows of a tensor"));
    }
    if (auto product = dyn_cast<tile::MultiplyOp>(op)) {
      MemRefType c = typeOf(product.getC());
      if (c.getDimSize(0) != 16 * warps)
        return stop(llvm::formatv("asynchronous products have 16 rows for a "
                                  "warp, got {0} rows for {1} "
                                  "warps",
                                  c.getDimSize(0), warps));
      if (cuda::isPrivate(product.getA().getType()) == product.getByRows() ||
          product.getTransposed() || product.getDepth() || product.getSeen())
        return stop(llvm::formatv("a product is of other operands than queries "
                                  "and keys, or weights and values"));
      // Of values behind the last one, those of a softmax alone are cleared.
      if (!product.getByRows() &&
          llvm::none_of(product.getA().getUsers(),
                        llvm::IsaPred<tile::ExponentialsOp>))
        return stop(llvm::formatv("weights are not those of a softmax"));
    }
    return WalkResult::advance();
  });
  return reason.empty() ? chooseStages() : reason;
}

/// As many stages for what loops load as asked for, and as fit.
std::string Specializer::chooseStages() {
  auto repeats = [&](const Staged &staged) {
    return llvm::any_of(staged.loads, [&](tile::LoadOp load) {
      return load->getBlock() != body;
    });
  };
  int64_t needed = 0;
  for (int64_t stages = options.stages; stages > 0; --stages) {
    SmallVector<cuda::PipelineType> pipelines;
    for (Staged &staged : blocks) {
      staged.stages = repeats(staged) ? stages : 1;
      pipelines.push_back(cuda::PipelineType::get(b.getContext(), staged.stages,
                                                  staged.block.getType()));
    }
    needed = cuda::placePipelines(pipelines);
    if (needed <= options.sharedBytes)
      return "";
  }
  return llvm::formatv(
      "a stage for each tile takes {0} bytes of shared memory, "
      "of {1}",
      needed, options.sharedBytes);
}

/// What the producer does: of a copy of the body, the loads and what they need.
void Specializer::produce(Region &region, IRMapping &mapping) {
  b.setInsertionPointToStart(&region.emplaceBlock());
  for (Operation &op : body->without_terminator())
    if (!pipelines.contains(&op) &&
        !isa<cuda::PipelineOp, cuda::SynchronizeOp, cuda::WarpSpecializeOp>(op))
      b.clone(op, mapping);
  SmallVector<Operation *> tiles;
  region.walk([&](Operation *op) {
    if (isa<tile::TileDialect>(op->getDialect()))
      tiles.push_back(op);
  });
  for (Operation *op : tiles) {
    auto load = dyn_cast<tile::LoadOp>(op);
    Value pipeline =
        load ? pipelines.lookup(load.getBlock().getDefiningOp()) : Value();
    if (pipeline) {
      b.setInsertionPoint(op);
      b.setLoc(op->getLoc());
      Value stage =
          b.make<cuda::ProducerAcquireOp>(load.getBlock().getType(), pipeline);
      stage.setLoc(load.getBlock().getLoc());
      b.make<cuda::TmaLoadOp>(load.getView(), stage);
      b.make<cuda::ProducerCommitOp>(pipeline);
    }
    op->erase();
  }
}

/// A tile's readers wait for it in its pipeline, and release its stage unless
/// it is loaded once.
void Specializer::readFromPipeline(Staged &staged, Value pipeline) {
  for (tile::LoadOp load : staged.loads) {
    Block *block = load->getBlock();
    Operation *first = nullptr, *last = nullptr;
    SmallVector<OpOperand *> reads;
    for (OpOperand &use : staged.block->getUses()) {
      Operation *read = block->findAncestorOpInBlock(*use.getOwner());
      if (!read || use.getOwner() == load)
        continue;
      reads.push_back(&use);
      if (!first || read->isBeforeInBlock(first))
        first = read;
      if (!last || last->isBeforeInBlock(read))
        last = read;
    }
    b.setInsertionPoint(first);
    b.setLoc(load.getLoc());
    Value stage =
        b.make<cuda::ConsumerWaitOp>(staged.block.getType(), pipeline);
    stage.setLoc(staged.block.getLoc());
    for (OpOperand *read : reads)
      read->set(stage);
    if (block != body) {
      b.setInsertionPointAfter(last);
      b.make<cuda::ConsumerReleaseOp>(pipeline);
    }
  }
  for (tile::LoadOp load : staged.loads)
    load.erase();
}

/// Rounds a product's weights, in front of the wait for its values.
Value Specializer::round(tile::MultiplyOp product) {
  Value scores = product.getA();
  Value &block = weights[scores];
  if (!block) {
    tile::LoopBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(scores);
    b.setLoc(NameLoc::get(b.getStringAttr("weights")));
    block = b.alloca(MemRefType::get(
        typeOf(scores).getShape(), typeOf(product.getB()).getElementType(),
        MemRefLayoutAttrInterface(), typeOf(scores).getMemorySpace()));
  }
  b.setLoc(product.getLoc());
  b.setInsertionPoint(product.getB().getDefiningOp());
  b.make<cuda::RoundOp>(scores, block);
  return block;
}

/// Clears values behind the last column, where weights are 0 (0 times NaN is
/// NaN). Masks are in branches that know how many columns there are.
void Specializer::clear(tile::MultiplyOp product) {
  for (Operation *user : product.getA().getUsers()) {
    auto map = dyn_cast<tile::MapOp>(user);
    auto choice = map ? dyn_cast<scf::IfOp>(map->getParentOp()) : scf::IfOp();
    if (!choice || choice->getBlock() != product->getBlock() ||
        getConstantIntValue(map.getColumns()))
      continue;
    tile::LoopBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(choice);
    b.setLoc(map.getColumns().getLoc());
    auto counted = b.make<scf::IfOp>(b.getIndexType(), choice.getCondition(),
                                     /*addThenBlock=*/true,
                                     /*addElseBlock=*/true);
    Value columns = map.getColumns();
    counted.thenBlock()->getOperations().splice(
        counted.thenBlock()->end(), choice.thenBlock()->getOperations(),
        choice.thenBlock()->begin(), choice.thenYield()->getIterator());
    choice.erase();
    b.setInsertionPointToEnd(counted.thenBlock());
    b.make<scf::YieldOp>(columns);
    b.setInsertionPointToEnd(counted.elseBlock());
    b.make<scf::YieldOp>(b.index(typeOf(product.getA()).getDimSize(1)));
    b.setInsertionPoint(product);
    b.setLoc(product.getLoc());
    b.when(counted.getCondition(), [&] {
      b.make<cuda::ClearOp>(product.getB(), counted.getResult(0));
    });
    return;
  }
}

/// Sinks loads from lists and tables of tiles, to which no kernel writes, into
/// the branch that alone uses them.
static void sink(scf::IfOp choice, DominanceInfo &dominance) {
  controlFlowSink(
      choice->getRegions(), dominance,
      [](Operation *op, Region *) {
        return isMemoryEffectFree(op) || isa<memref::LoadOp>(op);
      },
      [](Operation *op, Region *region) {
        op->moveBefore(&region->front(), region->front().begin());
      });
}

/// What consumers do: the rest, with asynchronous products.
void Specializer::consume() {
  for (Staged &staged : blocks)
    readFromPipeline(staged, pipelines.lookup(staged.block));
  SmallVector<tile::MultiplyOp> products;
  kernel.walk([&](tile::MultiplyOp op) { products.push_back(op); });
  for (tile::MultiplyOp op : products) {
    Value a = op.getByRows() ? op.getA() : round(op);
    b.setInsertionPoint(op);
    b.setLoc(op.getLoc());
    clear(op);
    auto begun = b.make<cuda::MultiplyAsyncOp>(
        b.getType<gpu::AsyncTokenType>(), a, op.getB(), op.getC(),
        op.getFactor(), op.getAccumulate(), op.getByRows());
    b.make<cuda::AwaitOp>(begun.getToken());
    op.erase();
  }
}

void Specializer::specialize() {
  b.setInsertionPointToStart(body);
  for (Staged &staged : blocks) {
    staged.block->moveBefore(&kernel.getBody().front().front());
    b.setLoc(staged.block.getLoc());
    if (auto named = dyn_cast<NameLoc>(staged.block.getLoc()))
      b.setLoc(NameLoc::get(
          b.getStringAttr(named.getName().getValue() + "Pipeline")));
    pipelines[staged.block] = b.make<cuda::PipelineOp>(cuda::PipelineType::get(
        b.getContext(), staged.stages, staged.block.getType()));
  }
  b.setLoc(kernel.getLoc());
  b.make<cuda::SynchronizeOp>();
  Registers registers = registersOf[warps / 4 - 1];
  auto specialized = b.make<cuda::WarpSpecializeOp>(
      producerWarps, registers.producer, registers.consumers);
  IRMapping mapping;
  produce(specialized.getProducer(), mapping);
  Block &consumers = specialized.getConsumers().emplaceBlock();
  consumers.getOperations().splice(consumers.end(), body->getOperations(),
                                   std::next(specialized->getIterator()),
                                   body->getTerminator()->getIterator());
  body = &consumers;
  consume();
  for (Staged &staged : blocks)
    staged.block.erase();
  IRRewriter rewriter(b.getContext());
  std::ignore = runRegionDCE(rewriter, kernel->getRegions());
  DominanceInfo dominance(kernel);
  specialized.getConsumers().walk([&](scf::IfOp op) { sink(op, dominance); });
}

namespace {
struct SpecializeWarps : cuda::impl::SpecializeWarpsPassBase<SpecializeWarps> {
  using SpecializeWarpsPassBase::SpecializeWarpsPassBase;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (stages < 1) {
      kernel.emitError("a pipeline has at least one stage, got: ")
          << stages.getValue();
      return signalPassFailure();
    }
    cuda::SpecializeWarpsPassOptions options{stages, sharedBytes};
    Specializer specializer(kernel, options);
    if (!kernel->hasAttr(tile::warpsAttr) || !specializer.collect())
      return;
    if (std::string reason = specializer.reason(); !reason.empty()) {
      kernel.emitRemark("is not warp-specialized: ") << reason;
      return;
    }
    specializer.specialize();
  }
};
} // namespace
