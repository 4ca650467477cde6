//===- Binding.cpp - global tensors to ranks' arguments and back ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Binding.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace burst;

static ring::ShardAttr shardOf(func::FuncOp program, unsigned argument) {
  return program.getArgAttrOfType<ring::ShardAttr>(argument, ring::shardAttr);
}

/// Whether only checks need a size: they end a run, and else change nothing.
static bool isForChecks(tensor::DimOp dim) {
  return llvm::all_of(dim->getUsers(), llvm::IsaPred<ring::RequireOp>);
}

bool burst::steersSchedule(func::FuncOp program, unsigned argument) {
  if (shardOf(program, argument))
    return false;
  return llvm::any_of(
      program.getArgument(argument).getUses(), [](OpOperand &use) {
        auto isInFrontOf = [&](OperandRange captures) {
          return captures.empty() ||
                 use.getOperandNumber() < captures.getBeginOperandIndex();
        };
        Operation *user = use.getOwner();
        if (auto dim = dyn_cast<tensor::DimOp>(user))
          return !isForChecks(dim);
        if (auto attend = dyn_cast<ring::AttendLikeOpInterface>(user))
          return isInFrontOf(attend.getScoreCaptures());
        return !isa<ring::ZeroOp>(user); // which asks for the shape only
      });
}

bool burst::isStatic(func::FuncOp program) {
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    if (steersSchedule(program, index))
      return false;
    ring::ShardAttr shard = shardOf(program, index);
    if (!shard)
      continue;
    if (ShapedType::isDynamic(shard.getExtent()))
      return false;
    for (auto [dim, size] :
         llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      if (ShapedType::isDynamic(size) &&
          static_cast<int64_t>(dim) != shard.getDim())
        return false;
  }
  return true;
}

LogicalResult burst::checkLengths(func::FuncOp function, size_t wanted,
                                  ArrayRef<int64_t> found, StringRef option) {
  if (wanted != found.size()) {
    auto error = emitError(function.getLoc(), "has ")
                 << wanted
                 << " dynamic sequence lengths, got extents: " << found.size();
    return wanted == 0 ? error << "; leave " << option << " out"
                       : error << "; give " << wanted << " with " << option;
  }
  for (int64_t length : found)
    if (length < 0 || length >= maxPositions)
      return emitError(function.getLoc(),
                       "needs sequence lengths in [0, 2^40), got: ")
             << length;
  return success();
}

LogicalResult burst::checkBatch(func::FuncOp function, bool isDynamic,
                                std::optional<int64_t> found,
                                StringRef option) {
  if (found && !isDynamic)
    return emitError(function.getLoc(),
                     "has no dynamic batch size, got batch: ")
           << *found << "; leave " << option << " out";
  if (found && (*found < 0 || *found >= maxPositions))
    return emitError(function.getLoc(),
                     "needs a batch size in [0, 2^40), got: ")
           << *found;
  return success();
}

static bool hasDynamicBatch(func::FuncOp program) {
  auto types = program.getArgumentTypes();
  return llvm::any_of(llvm::enumerate(types), [&](auto argument) {
    auto tensor = dyn_cast<RankedTensorType>(argument.value());
    ring::ShardAttr shard = shardOf(program, argument.index());
    return tensor && llvm::any_of(llvm::seq(tensor.getRank()), [&](int64_t d) {
             return tensor.isDynamicDim(d) && (!shard || shard.getDim() != d);
           });
  });
}

/// The sizes that `ring.extent` arguments carry, by the argument they are of.
static FailureOr<llvm::DenseMap<unsigned, int64_t>>
assignExtents(func::FuncOp program, ArrayRef<int64_t> values) {
  llvm::DenseMap<unsigned, int64_t> extents;
  size_t needed = 0;
  for (unsigned index = 0; index < program.getNumArguments(); ++index) {
    auto pairs =
        program.getArgAttrOfType<DenseI64ArrayAttr>(index, ring::extentAttr);
    if (!pairs)
      continue;
    if (needed < values.size())
      for (int64_t i = 0; i < pairs.size(); i += 2)
        extents[pairs[i]] = values[needed];
    ++needed;
  }
  if (failed(checkLengths(program, needed, values)))
    return failure();
  return extents;
}

/// Batch and heads of a global tensor are cut into equal parts.
static LogicalResult checkSplits(func::FuncOp program, unsigned index,
                                 ArrayRef<int64_t> shape) {
  SmallVector<ring::ShardAttr> shards = ring::argumentShards(program, index);
  for (ring::ShardAttr split : llvm::drop_begin(shards, !shards.empty())) {
    int64_t size = shape[split.getDim()], parts = split.getLayout().getParts();
    if (size % parts != 0)
      return emitError(program.getLoc(), "shards ")
             << (split.getDim() == 0 ? "a batch" : "heads") << " of " << size
             << " over " << parts << " ranks, which does not divide it";
  }
  return success();
}

FailureOr<std::vector<Argument>> burst::describeGlobals(func::FuncOp program,
                                                        const Sizes &sizes) {
  auto extents = assignExtents(program, sizes.extents);
  if (failed(extents))
    return failure();
  if (failed(checkBatch(program, hasDynamicBatch(program), sizes.batch)))
    return failure();
  std::vector<Argument> globals;
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      globals.push_back({});
      continue;
    }
    SmallVector<int64_t> shape(tensor.getShape());
    if (ring::ShardAttr shard = shardOf(program, index))
      shape[shard.getDim()] = ShapedType::isDynamic(shard.getExtent())
                                  ? extents->lookup(index)
                                  : shard.getExtent();
    auto shards = ring::argumentShards(program, index);
    int64_t batchParts = 1;
    for (ring::ShardAttr split : llvm::drop_begin(shards, !shards.empty())) {
      int64_t parts = split.getLayout().getParts();
      if (!ShapedType::isDynamic(split.getExtent()))
        shape[split.getDim()] = split.getExtent();
      else
        batchParts = parts;
    }
    for (int64_t &size : shape)
      if (ShapedType::isDynamic(size))
        size = sizes.batch.value_or(batchParts);
    if (failed(checkSplits(program, index, shape)))
      return failure();
    std::string error;
    if (!checkSize(shape, tensor.getElementType(), error))
      return emitError(program.getLoc(), "argument ") << index << " " << error;
    globals.push_back(
        {Scalar{0}, std::make_shared<Tensor>(shape, tensor.getElementType())});
  }
  return globals;
}

/// Whether a global tensor fits argument `index`.
static bool fits(func::FuncOp program, unsigned index, const Tensor *found) {
  auto wanted = cast<RankedTensorType>(program.getArgumentTypes()[index]);
  if (!found || found->element != wanted.getElementType() ||
      static_cast<int64_t>(found->shape.size()) != wanted.getRank())
    return false;
  SmallVector<int64_t> sizes(wanted.getShape());
  for (ring::ShardAttr shard : ring::argumentShards(program, index))
    sizes[shard.getDim()] = shard.getExtent();
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (!ShapedType::isDynamic(size) && size != found->shape[dim])
      return false;
  }
  return true;
}

/// The tensors whose size one argument carries must have one size.
static LogicalResult checkExtents(func::FuncOp program,
                                  ArrayRef<Argument> globals) {
  for (unsigned index = 0; index < program.getNumArguments(); ++index) {
    auto pairs =
        program.getArgAttrOfType<DenseI64ArrayAttr>(index, ring::extentAttr);
    for (int64_t i = 2; pairs && i < pairs.size(); i += 2) {
      int64_t first = globals[pairs[0]].table->shape[pairs[1]];
      int64_t other = globals[pairs[i]].table->shape[pairs[i + 1]];
      if (first != other)
        return emitError(program.getLoc(), "arguments ")
               << pairs[0] << " and " << pairs[i]
               << " must have one sequence length, got: " << first << " and "
               << other;
    }
  }
  return success();
}

LogicalResult burst::checkGlobals(func::FuncOp program,
                                  ArrayRef<Argument> globals) {
  if (globals.size() != program.getNumArguments())
    return emitError(program.getLoc(), "takes ")
           << program.getNumArguments()
           << " arguments, got: " << globals.size();
  std::optional<int64_t> batch;
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    const TensorRef &found = globals[index].table;
    ring::ShardAttr shard = shardOf(program, index);
    if (isa<RankedTensorType>(type) && !fits(program, index, found.get()))
      return emitError(program.getLoc(), "argument ")
             << index << " does not fit the type " << type
             << (shard ? " of its shards" : "");
    if (!shard)
      continue;
    if (failed(checkSplits(program, index, found->shape)))
      return failure();
    if (batch && *batch != found->shape[0])
      return emitError(program.getLoc(), "argument ")
             << index << " has a batch of " << found->shape[0]
             << ", those before it have " << *batch;
    batch = found->shape[0];
  }
  return checkExtents(program, globals);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void burst::copyPositions(const Tensor &source, ArrayRef<int64_t> from,
                          Tensor &target, ArrayRef<int64_t> to, int64_t dim) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(source.shape.size()); ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : source.shape[d];
  auto copy = [&](const auto &in, auto &out) {
    for (int64_t o = 0; o < outer; ++o)
      for (auto [f, t] : llvm::zip_equal(from, to))
        std::copy_n(in.begin() + (o * source.shape[dim] + f) * inner, inner,
                    out.begin() + (o * target.shape[dim] + t) * inner);
  };
  if (!source.floats.empty())
    copy(source.floats, target.floats);
  if (!source.ints.empty())
    copy(source.ints, target.ints);
}

/// Storage for the data of `like`, where it has any.
static void allocateLike(Tensor &tensor, const Tensor &like) {
  if (!like.floats.empty())
    tensor.floats.assign(tensor.size(), std::nan(""));
  if (!like.ints.empty())
    tensor.ints.assign(tensor.size(), 0);
}

static std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> result(count);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

/// What the rank at `place` holds of a tensor along one dimension.
static TensorRef cut(const Tensor &whole, ring::ShardAttr shard, int64_t place,
                     ShardData data) {
  Layout layout = shard.getLayout().getValue();
  int64_t dim = shard.getDim(), extent = whole.shape[dim];
  auto shape = whole.shape;
  shape[dim] = layout.count(place, extent);
  auto result = std::make_shared<Tensor>(shape, whole.element);
  if (data == ShardData::Copy && whole.hasData()) {
    allocateLike(*result, whole);
    copyPositions(whole, layout.positions(place, extent), *result,
                  iota(shape[dim]), dim);
  }
  return result;
}

/// The place of a rank among those over which a dimension is sharded.
static int64_t placeOf(func::FuncOp program, ring::ShardAttr shard,
                       int64_t rank) {
  return ring::groupOf(program, shard.getAxes()).placeOf(rank);
}

static TensorRef makeShard(func::FuncOp program, const Tensor &global,
                           int64_t rank, int argument, ShardData data) {
  SmallVector<ring::ShardAttr> shards = ring::argumentShards(program, argument);
  ring::ShardAttr sequence = shards.front();
  int64_t place = placeOf(program, sequence, rank);
  TensorRef result = cut(global, sequence, place, data);
  for (ring::ShardAttr split : llvm::drop_begin(shards))
    result = cut(*result, split, placeOf(program, split, rank), data);
  result->argument = argument;
  result->owner = place;
  result->sharding = {sequence.getLayout().getValue(), sequence.getDim(),
                      global.shape[sequence.getDim()]};
  return result;
}

std::vector<Argument> burst::shardGlobals(func::FuncOp program,
                                          ArrayRef<Argument> globals,
                                          int64_t rank, ShardData data) {
  std::vector<Argument> arguments;
  for (auto [index, global] : llvm::enumerate(globals)) {
    Argument argument = global;
    // A captured table is held by every rank.
    if (shardOf(program, index))
      argument.table = makeShard(program, *global.table, rank, index, data);
    if (auto extent = program.getArgAttrOfType<DenseI64ArrayAttr>(
            index, ring::extentAttr))
      argument.scalar.i = globals[extent[0]].table->shape[extent[1]];
    arguments.push_back(argument);
  }
  return arguments;
}

std::vector<std::vector<Argument>>
burst::shardGlobals(Simulation &simulation, ArrayRef<Argument> globals,
                    ShardData data) {
  std::vector<std::vector<Argument>> result;
  result.reserve(simulation.numRanks());
  for (int64_t rank = 0; rank < simulation.numRanks(); ++rank)
    result.push_back(
        shardGlobals(simulation.getFunction(), globals, rank, data));
  return result;
}

/// The sum of what the ranks give.
static TensorRef addUp(ArrayRef<std::vector<TensorRef>> results,
                       unsigned index) {
  const Tensor &first = *results.front()[index];
  auto sum = std::make_shared<Tensor>(first.shape, first.element);
  for (const auto &ofRank : results) {
    const std::vector<double> &addends = ofRank[index]->floats;
    sum->floats.resize(addends.size());
    for (auto [total, addend] : llvm::zip_equal(sum->floats, addends))
      total += addend;
  }
  return sum;
}

/// The shards of the ranks of a group, whose first is `first`.
static TensorRef join(ArrayRef<TensorRef> parts, ring::ShardAttr shard,
                      const RankGroup &group, int64_t first) {
  if (!parts[first])
    return nullptr;
  Layout layout = shard.getLayout().getValue();
  int64_t dim = shard.getDim(), extent = 0;
  auto part = [&](int64_t place) -> const Tensor & {
    return *parts[group.member(first, place)];
  };
  for (int64_t place = 0; place < group.size; ++place)
    extent += part(place).shape[dim];
  auto shape = part(0).shape;
  shape[dim] = extent;
  auto whole = std::make_shared<Tensor>(shape, part(0).element);
  for (int64_t place = 0; place < group.size; ++place)
    if (part(place).hasData() && !whole->hasData())
      allocateLike(*whole, part(place));
  for (int64_t place = 0; place < group.size; ++place)
    copyPositions(part(place), iota(part(place).shape[dim]), *whole,
                  layout.positions(place, extent), dim);
  return whole;
}

TensorRef burst::gatherResult(const Simulation &simulation, unsigned index) {
  func::FuncOp function = simulation.getFunction();
  SmallVector<ring::ShardAttr> shards = ring::resultShards(function, index);
  const auto &results = simulation.getResults();
  if (function.getResultAttr(index, ring::partialAttr))
    return addUp(results, index);
  if (shards.empty())
    return results.front()[index];
  std::vector<TensorRef> parts;
  parts.reserve(results.size());
  for (const auto &ofRank : results)
    parts.push_back(ofRank[index]);
  // Of ranks that differ in the place along one dimension, one is made.
  for (ring::ShardAttr shard : llvm::reverse(shards)) {
    RankGroup group = ring::groupOf(function, shard.getAxes());
    std::vector<TensorRef> joined(parts.size());
    for (auto [rank, part] : llvm::enumerate(parts))
      if (group.placeOf(rank) == 0)
        joined[rank] = join(parts, shard, group, rank);
    parts = std::move(joined);
  }
  return parts.front();
}
