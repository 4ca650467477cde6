//===- Memory.cpp - what kernels need beside a program's tensors ----------===//
#include "codegen/cpu/Memory.h"
#include "dialect/Ring/Ring.h"
#include "passes/Gradient/Gradient.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;

namespace {
/// Sizes of tiles for one type of state.
struct Sizes {
  int64_t bytes, rows, columns, panel, keyPanel;

  Sizes(FloatType state, const cpu::Target &target)
      : bytes(state.getWidth() / 8), rows(target.rows),
        panel(target.panelBytes() / bytes),
        keyPanel(target.keyPanelBytes() / bytes) {
    columns = ofKeys(target.columns);
  }
  int64_t padded(int64_t dim) const {
    return std::min(alignTo(dim, panel), alignTo(dim, keyPanel));
  }
  int64_t ofKeys(int64_t count) const { return alignTo(count, keyPanel); }

private:
  static int64_t alignTo(int64_t size, int64_t panel) {
    return static_cast<int64_t>(
        llvm::alignTo(size, static_cast<uint64_t>(panel)));
  }
};
} // namespace

static int64_t numTiles(const Deal &deal, int64_t owner, int64_t extent,
                        int64_t size) {
  int64_t tiles = 0;
  for (const Segment &segment : deal.segments(owner, extent))
    tiles += llvm::divideCeil(segment.count, size);
  return tiles;
}

/// Of the largest of all owners.
static int64_t mostTiles(const Deal &deal, int64_t extent, int64_t size) {
  int64_t most = 0;
  for (int64_t owner = 0; owner < deal.parts; ++owner)
    most = std::max(most, numTiles(deal, owner, extent, size));
  return most;
}

static int64_t dimOf(Value tensor, int64_t dim) {
  return cast<ShapedType>(tensor.getType()).getDimSize(dim);
}

/// Of what `owner` names: this rank's, or what comes from all owners.
static int64_t tilesOf(Value owner, int64_t rank, ring::LayoutAttr layout,
                       int64_t extent, int64_t size) {
  bool isOwn = owner.getDefiningOp<shard::ProcessMultiIndexOp>() != nullptr;
  return isOwn ? numTiles(layout.getDeal(), rank, extent, size)
               : mostTiles(layout.getDeal(), extent, size);
}

namespace {
/// How the operands of products are packed.
struct Packing {
  int64_t bytes;    ///< of a number
  int64_t together; ///< steps of the depth that lie side by side

  Packing(Value operand, const Sizes &sizes, const cpu::Target &target) {
    bool arePairs =
        target.pairs && target.localTiling &&
        cast<ShapedType>(operand.getType()).getElementType().isBF16();
    bytes = arePairs ? 2 : sizes.bytes;
    together = arePairs ? 2 : 1;
  }
  int64_t deep(int64_t depth) const {
    return static_cast<int64_t>(
        llvm::alignTo(depth, static_cast<uint64_t>(together)));
  }
};
} // namespace

/// Keys and values of all slices.
static int64_t bytesOf(ring::AttendOp op, const cpu::Target &target,
                       int64_t rank, int64_t queries, int64_t extent) {
  Sizes sizes(op.getStateType(), target);
  Value key = op.getKeys().front(), value = op.getValues().front();
  Packing packing(key, sizes, target);
  int64_t tiles = 0;
  for (Value owner : op.getOwners())
    tiles += tilesOf(owner, rank, op.getKeyLayout(), extent, sizes.columns);
  int64_t packed =
      dimOf(key, 2) * tiles * sizes.columns *
      (packing.deep(dimOf(key, 3)) + sizes.padded(dimOf(value, 3))) *
      packing.bytes;
  if (target.localTiling)
    return packed;
  int64_t queryTiles = tilesOf(op.getQueryOwner(), rank, op.getQueryLayout(),
                               queries, sizes.rows);
  return packed + dimOf(op.getQuery(), 2) * queryTiles * sizes.rows * tiles *
                      sizes.columns * sizes.bytes;
}

/// Keys twice, values, queries and gradients of the result; whatever moves
/// comes from all owners.
static int64_t bytesOf(ring::AttendGradOp op, const cpu::Target &target,
                       int64_t rank, int64_t queries, int64_t keys) {
  Sizes sizes(op.getStateType(), target);
  Packing packing(op.getKey(), sizes, target);
  int64_t keyTiles =
      tilesOf(op.getKeyOwner(), rank, op.getKeyLayout(), keys, sizes.columns);
  int64_t queryTiles = tilesOf(op.getQueryOwner(), rank, op.getQueryLayout(),
                               queries, sizes.rows);
  int64_t queryDim = dimOf(op.getQuery(), 3),
          valueDim = dimOf(op.getValue(), 3);
  int64_t ofKeys = dimOf(op.getKey(), 2) * keyTiles * sizes.columns *
                   (packing.deep(queryDim) + sizes.padded(queryDim) +
                    packing.deep(valueDim));
  int64_t ofQueries = dimOf(op.getQuery(), 2) * queryTiles *
                      packing.deep(sizes.rows) *
                      (sizes.padded(queryDim) + sizes.padded(valueDim));
  // A stored tile is of whole strips, and wider by one.
  int64_t strip = target.microRows;
  int64_t rows = static_cast<int64_t>(
      llvm::alignTo(sizes.rows, static_cast<uint64_t>(strip)));
  int64_t stored = target.localTiling
                       ? 0
                       : 2 * dimOf(op.getQuery(), 2) * queryTiles * rows *
                             keyTiles * (sizes.columns + sizes.ofKeys(strip));
  return (ofKeys + ofQueries) * packing.bytes + stored * sizes.bytes;
}

/// Of keys, of the largest of all owners.
static int64_t bytesOf(ring::ScoreOp op, const cpu::Target &target,
                       int64_t extent) {
  Sizes sizes(op.getStateType(), target);
  return dimOf(op.getKey(), 2) * dimOf(op.getKey(), 3) * sizes.columns *
         mostTiles(op.getKeyLayout().getDeal(), extent, sizes.columns) *
         sizes.bytes;
}

/// Of values, which are no segments any more.
static int64_t bytesOf(ring::WeighOp op, const cpu::Target &target,
                       int64_t extent) {
  Sizes sizes(
      cast<FloatType>(cast<ShapedType>(op.getO().getType()).getElementType()),
      target);
  Deal deal = op.getKeyLayout().getDeal();
  int64_t most = 0;
  for (int64_t owner = 0; owner < deal.parts; ++owner)
    most = std::max(most, deal.count(owner, extent));
  return dimOf(op.getValue(), 2) * sizes.padded(dimOf(op.getO(), 3)) *
         static_cast<int64_t>(llvm::divideCeil(most, sizes.columns)) *
         sizes.columns * sizes.bytes;
}

/// What tasks that run at once add to beside the gradients of captured tables.
static int64_t bytesOfTables(ring::AttendGradOp op, int64_t batch,
                             const cpu::SizesOfRun &sizes) {
  int64_t elements = 0;
  for (int64_t n : op.getCaptures()) {
    Sharing sharing = sharingOf(op.getGradient(), n);
    int64_t copies = (sharing.batches ? batch : 1) *
                     (sharing.heads ? dimOf(op.getKey(), 2) : 1);
    Value table = op.getScoreCaptures()[n];
    int64_t size = 1;
    for (int64_t d = 0; d < cast<ShapedType>(table.getType()).getRank(); ++d) {
      int64_t known = dimOf(table, d);
      size *=
          ShapedType::isDynamic(known) ? sizes.tableSizeOf(table, d) : known;
    }
    elements += std::max<int64_t>(copies - 1, 0) * size;
  }
  return elements * op.getStateType().getWidth() / 8;
}

int64_t burst::cpu::packingBytes(func::FuncOp program, const Target &given,
                                 int64_t batch, int64_t rank,
                                 const SizesOfRun &sizes) {
  Target target = given.suiting(program);
  int64_t most = 0;
  program.walk([&](ring::AttendOp op) {
    most = std::max(most, batch * bytesOf(op, target, rank,
                                          sizes.extentOf(op.getQueryExtent()),
                                          sizes.extentOf(op.getKeyExtent())));
  });
  program.walk([&](ring::ScoreOp op) {
    most = std::max(
        most, batch * bytesOf(op, target, sizes.extentOf(op.getKeyExtent())));
  });
  program.walk([&](ring::WeighOp op) {
    most = std::max(
        most, batch * bytesOf(op, target, sizes.extentOf(op.getKeyExtent())));
  });
  program.walk([&](ring::AttendGradOp op) {
    int64_t bytes =
        batch * bytesOf(op, target, rank, sizes.extentOf(op.getQueryExtent()),
                        sizes.extentOf(op.getKeyExtent()));
    most = std::max(most, bytes + bytesOfTables(op, batch, sizes));
  });
  return most;
}
