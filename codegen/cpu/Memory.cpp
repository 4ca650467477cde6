//===- Memory.cpp - what kernels need beside a program's tensors ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Memory.h"
#include "passes/Gradient/Gradient.h"
#include "passes/Simulation/Prove/Audit.h"
#include "passes/Tile/FewQueries.h"
#include "passes/Tile/GradientOperands.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burst;

namespace {
/// Sizes of tiles for one type of state.
struct TileSizes {
  int64_t bytes, rows, columns, panel, keyPanel;

  TileSizes(FloatType state, const cpu::Target &target)
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

static int64_t numTiles(const Layout &layout, int64_t owner, int64_t extent,
                        int64_t size) {
  int64_t tiles = 0;
  for (const Segment &segment : layout.segments(owner, extent))
    tiles += llvm::divideCeil(segment.count, size);
  return tiles;
}

static int64_t dimOf(Value tensor, int64_t dim) {
  return cast<ShapedType>(tensor.getType()).getDimSize(dim);
}

namespace {
/// How the operands of products are packed.
struct Packing {
  int64_t bytes;    ///< of a number
  int64_t together; ///< steps of the depth that lie side by side

  Packing(Type operand, const TileSizes &sizes, const cpu::Target &target) {
    bool arePairs = target.pairs && target.localTiling && operand.isBF16();
    bytes = arePairs ? 2 : sizes.bytes;
    together = arePairs ? 2 : 1;
  }
  int64_t deep(int64_t depth) const {
    return static_cast<int64_t>(
        llvm::alignTo(depth, static_cast<uint64_t>(together)));
  }
};

/// What a forward pass packs, and what it stores of pairs of tiles.
struct AttendBytes {
  int64_t keys = 0, stored = 0;

  AttendBytes() = default;
  AttendBytes(const Attend &attend, const cpu::Target &target);
};
} // namespace

static std::optional<tiling::FewQueries>
fewQueriesOf(const Attend &attend, const cpu::Target &target) {
  auto op = dyn_cast<ring::AttendOp>(attend.at);
  if (!op || !target.localTiling)
    return std::nullopt;
  TileSizes sizes(op.getStateType(), target);
  return tiling::FewQueries::find(op, sizes.rows, sizes.columns,
                                  sizes.keyPanel);
}

/// The states of parts of so many tiles of keys, of a batch.
static int64_t bytesOfParts(const Attend &attend, const tiling::FewQueries &few,
                            const TileSizes &sizes, int64_t tiles) {
  const Tensor &query = *attend.query;
  int64_t queryTiles =
      numTiles(attend.queryLayout.getValue(), attend.queryOwner,
               attend.queryExtent, few.positions);
  int64_t tasks = query.shape[0] * query.shape[2] / few.heads * queryTiles;
  return tiling::FewQueries::numParts(tasks, tiles) * query.shape[1] *
         query.shape[2] * (attend.slices.front().value->shape[3] + 2) *
         sizes.bytes;
}

/// Keys and values of all slices; scores of the slices and a shard of queries.
AttendBytes::AttendBytes(const Attend &attend, const cpu::Target &target) {
  auto op = cast<ring::AttendLikeOpInterface>(attend.at);
  TileSizes sizes(op.getStateType(), target);
  const Slice &first = attend.slices.front();
  const Tensor &key = *first.key, &value = *first.value;
  Packing packing(key.element, sizes, target);
  int64_t tiles = 0;
  for (const Slice &slice : attend.slices)
    tiles += numTiles(attend.keyLayout.getValue(), slice.owner,
                      attend.keyExtent, sizes.columns);
  if (auto few = fewQueriesOf(attend, target)) {
    keys = few->isSplit ? bytesOfParts(attend, *few, sizes, tiles) : 0;
    return;
  }
  keys = key.shape[2] * tiles * sizes.columns *
         (packing.deep(key.shape[3]) + sizes.padded(value.shape[3])) *
         packing.bytes;
  if (target.localTiling)
    return;
  int64_t queryTiles =
      numTiles(attend.queryLayout.getValue(), attend.queryOwner,
               attend.queryExtent, sizes.rows);
  stored = attend.query->shape[2] * queryTiles * sizes.rows * tiles *
           sizes.columns * sizes.bytes;
}

/// A state that nobody sees. Kernels between which scores are in memory have it
/// there, too.
static int64_t bytesOfHidden(const Attend &attend, const cpu::Target &target) {
  auto op = cast<ring::AttendLikeOpInterface>(attend.at);
  if (target.localTiling || !op.isFirst() || !op.isLast())
    return 0;
  TileSizes sizes(op.getStateType(), target);
  return attend.query->shape[1] * attend.query->shape[2] *
         (attend.slices.front().value->shape[3] + 2) * sizes.bytes;
}

namespace {
/// What a backward pass packs, and what it stores of pairs of tiles.
struct GradientBytes {
  int64_t keys = 0, queries = 0, stored = 0;

  GradientBytes() = default;
  GradientBytes(const AttendGrad &attend, const cpu::Target &target);
};
} // namespace

/// Keys twice, values, queries and gradients of the result.
GradientBytes::GradientBytes(const AttendGrad &attend,
                             const cpu::Target &target) {
  auto op = cast<ring::AttendGradOp>(attend.at);
  TileSizes sizes(op.getStateType(), target);
  Packing packing(attend.slice.key->element, sizes, target);
  int64_t keyTiles = numTiles(attend.keyLayout.getValue(), attend.slice.owner,
                              attend.keyExtent, sizes.columns);
  int64_t queryTiles =
      numTiles(attend.queryLayout.getValue(), attend.queryOwner,
               attend.queryExtent, sizes.rows);
  int64_t queryDim = dimOf(op.getQuery(), 3),
          valueDim = dimOf(op.getValue(), 3);
  keys = dimOf(op.getKey(), 2) * keyTiles * sizes.columns *
         (packing.deep(queryDim) + sizes.padded(queryDim) +
          packing.deep(valueDim)) *
         packing.bytes;
  queries = dimOf(op.getQuery(), 2) * queryTiles * packing.deep(sizes.rows) *
            (sizes.padded(queryDim) + sizes.padded(valueDim)) * packing.bytes;
  // A stored tile is of whole strips, and wider by one.
  int64_t strip = target.microRows;
  int64_t rows = static_cast<int64_t>(
      llvm::alignTo(sizes.rows, static_cast<uint64_t>(strip)));
  stored = target.localTiling
               ? 0
               : 2 * dimOf(op.getQuery(), 2) * queryTiles * rows * keyTiles *
                     (sizes.columns + sizes.ofKeys(strip)) * sizes.bytes;
}

/// Of the largest of all owners.
static int64_t mostTiles(const Layout &layout, int64_t extent, int64_t size) {
  int64_t most = 0;
  for (int64_t owner = 0; owner < layout.numOwners(); ++owner)
    most = std::max(most, numTiles(layout, owner, extent, size));
  return most;
}

/// Of keys, of the largest of all owners.
static int64_t bytesOf(ring::ScoreOp op, const cpu::Target &target,
                       int64_t extent) {
  TileSizes sizes(op.getStateType(), target);
  return dimOf(op.getKey(), 2) * dimOf(op.getKey(), 3) * sizes.columns *
         mostTiles(op.getKeyLayout().getValue(), extent, sizes.columns) *
         sizes.bytes;
}

/// What a step that sums up stored weights has packed at once, of a batch:
/// `dim` numbers of so many rows, in tiles.
static int64_t bytesOfRows(int64_t heads, int64_t rows, int64_t tileRows,
                           int64_t dim, const TileSizes &sizes) {
  return heads * sizes.bytes * dim * tileRows *
         static_cast<int64_t>(llvm::divideCeil(rows, tileRows));
}

/// Of values, which are no segments any more.
static int64_t bytesOf(ring::WeighOp op, const cpu::Target &target,
                       int64_t extent) {
  TileSizes sizes(
      cast<FloatType>(cast<ShapedType>(op.getO().getType()).getElementType()),
      target);
  return bytesOfRows(dimOf(op.getValue(), 2),
                     op.getKeyLayout().getValue().largest(extent),
                     sizes.columns, sizes.padded(dimOf(op.getO(), 3)), sizes);
}

/// How large a captured table is in a dimension.
using TableSizes = llvm::function_ref<int64_t(Value table, int64_t dim)>;

/// What tasks that run at once add to beside the gradients of captured tables.
static int64_t bytesOfTables(ring::AttendGradOp op, int64_t batch,
                             TableSizes tableSizeOf) {
  int64_t elements = 0;
  for (int64_t n : op.getCaptures()) {
    Sharing sharing = sharingOf(op.getGradient(), n);
    int64_t copies = (sharing.batches ? batch : 1) *
                     (sharing.heads ? dimOf(op.getKey(), 2) : 1);
    Value table = op.getScoreCaptures()[n];
    int64_t size = 1;
    for (int64_t d = 0; d < cast<ShapedType>(table.getType()).getRank(); ++d) {
      int64_t known = dimOf(table, d);
      size *= ShapedType::isDynamic(known) ? tableSizeOf(table, d) : known;
    }
    elements += std::max<int64_t>(copies - 1, 0) * size;
  }
  return elements * op.getStateType().getWidth() / 8;
}

namespace {
/// Runs a program without data, and finds the most that each rank packs.
class PackingPlanner : public Bookkeeper {
public:
  PackingPlanner(Simulation &simulation, const cpu::Target &target,
                 TableSizes tableSizeOf)
      : target(target), tableSizeOf(tableSizeOf), most(simulation.numRanks()) {}

  bool attend(Attend &attend, State &result, std::string &message) override {
    auto op = cast<ring::AttendLikeOpInterface>(attend.at);
    AttendBytes part(attend, target);
    attended.keys = part.keys;
    attended.stored += part.stored; // of all shards at once
    isComputed |= llvm::is_contained(attend.pairs, true);
    if (attend.isLastShard()) {
      bool isRun = isComputed || (target.localTiling && !op.mayBeSkipped());
      note(attend, bytesOfHidden(attend, target) +
                       (isRun ? attended.keys + attended.stored : 0));
      attended = {};
      isComputed = false;
    }
    return Bookkeeper::attend(attend, result, message);
  }

  bool attendGrad(AttendGrad &attend, std::string &message) override {
    // Shards of what is gathered are packed together.
    GradientBytes part(attend, target);
    bytes.keys += attend.queryShard == 0 ? part.keys : 0;
    bytes.queries += attend.keyShard == 0 ? part.queries : 0;
    bytes.stored += part.stored;
    isComputed |= llvm::is_contained(attend.pairs, true);
    if (attend.isLastShard()) {
      noteGradients(attend);
      bytes = {};
      isComputed = false;
    }
    return Bookkeeper::attendGrad(attend, message);
  }

  bool score(Score &score, std::string &message) override {
    auto op = cast<ring::ScoreOp>(score.at);
    note(score, bytesOf(op, target, score.keyExtent));
    return Bookkeeper::score(score, message);
  }

  bool weigh(Weigh &weigh, std::string &message) override {
    auto op = cast<ring::WeighOp>(weigh.at);
    int64_t bytes = bytesOf(op, target, weigh.keyExtent);
    for (int64_t &known : most) // of the largest of all owners
      known = std::max(known, weigh.value->shape[0] * bytes);
    return Bookkeeper::weigh(weigh, message);
  }

  /// Gradients of results, as rows of a product; then values, as columns.
  bool weighGrad(WeighGrad &weigh, std::string &message) override {
    const Tensor &rows = *weigh.outGrad, &value = *weigh.value;
    TileSizes sizes(cast<FloatType>(weigh.grad->element), target);
    noteRows(rows, sizes, weigh.rank);
    note(weigh.rank,
         value.shape[0] * bytesOfRows(value.shape[2], value.shape[1],
                                      sizes.columns, value.shape[3], sizes));
    return Bookkeeper::weighGrad(weigh, message);
  }

  /// Keys; then queries.
  bool scoreGrad(ScoreGrad &score, std::string &message) override {
    const Tensor &key = *score.key;
    TileSizes sizes(cast<FloatType>(score.keyGrad->element), target);
    note(score.rank,
         key.shape[0] * bytesOfRows(key.shape[2], key.shape[1], sizes.columns,
                                    sizes.padded(key.shape[3]), sizes));
    noteRows(*score.query, sizes, score.rank);
    return Bookkeeper::scoreGrad(score, message);
  }

  std::vector<int64_t> take() { return std::move(most); }

private:
  void noteGradients(const AttendGrad &attend) {
    auto op = cast<ring::AttendGradOp>(attend.at);
    bool queriesStay = tiling::loopOfQueries(op) != nullptr;
    bool keysStay = tiling::loopOfKeys(op) != nullptr;
    int64_t held = (isComputed || queriesStay ? bytes.queries : 0) +
                   (isComputed || keysStay ? bytes.keys : 0) +
                   (isComputed ? bytes.stored : 0);
    int64_t batch = attend.query->shape[0];
    note(attend, held, bytesOfTables(op, batch, tableSizeOf));
  }

  void note(int64_t rank, int64_t bytes) {
    most[rank] = std::max(most[rank], bytes);
  }
  /// Of a shard of queries, or of what lies as they do.
  void noteRows(const Tensor &rows, const TileSizes &sizes, int64_t rank) {
    note(rank,
         rows.shape[0] * bytesOfRows(rows.shape[2], rows.shape[1], sizes.rows,
                                     sizes.padded(rows.shape[3]), sizes));
  }

  /// Bytes of a batch, and others.
  void note(const AttendInputs &inputs, int64_t bytes, int64_t others = 0) {
    note(inputs.rank, inputs.query->shape[0] * bytes + others);
  }

  const cpu::Target &target;
  TableSizes tableSizeOf;
  std::vector<int64_t> most;
  /// Of the attend, or the attend_grad, that is under way.
  AttendBytes attended;
  GradientBytes bytes;
  bool isComputed = false;
};
} // namespace

std::optional<Counterexample>
burst::cpu::planPacking(Simulation &simulation, ArrayRef<Argument> globals,
                        const Target &given, std::vector<int64_t> &bytes) {
  Target target = given.suiting(simulation.getFunction());
  auto tableSizeOf = [&](Value table, int64_t dim) {
    unsigned argument = cast<BlockArgument>(table).getArgNumber();
    return globals[argument].table->shape[dim];
  };
  PackingPlanner planner(simulation, target, tableSizeOf);
  simulation.reset();
  if (!simulation.run(planner,
                      shardGlobals(simulation, globals, ShardData::Omit)))
    return simulation.getCounterexample();
  bytes = planner.take();
  return std::nullopt;
}
