//===- Binding.cpp - global tensors to ranks' arguments and back ----------===//
#include "passes/Machine/Binding.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace burst;

static ring::ShardAttr shardOf(func::FuncOp program, unsigned argument) {
  return program.getArgAttrOfType<ring::ShardAttr>(argument, ring::shardAttr);
}

bool burst::isStatic(func::FuncOp program) {
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    ring::ShardAttr shard = shardOf(program, index);
    bool isUsed = !program.getArgument(index).use_empty();
    if (!tensor || !shard) {
      if (isUsed)
        return false;
      continue;
    }
    if (ShapedType::isDynamic(shard.getExtent()))
      return false;
    for (auto [dim, size] : llvm::enumerate(tensor.getShape()))
      if (ShapedType::isDynamic(size) &&
          static_cast<int64_t>(dim) != shard.getDim())
        return false;
  }
  return true;
}

FailureOr<std::vector<Argument>> burst::describeGlobals(func::FuncOp program,
                                                        const Sizes &sizes) {
  std::vector<Argument> globals;
  llvm::DenseMap<unsigned, int64_t> extents;
  size_t given = 0;
  for (unsigned index = 0; index < program.getNumArguments(); ++index) {
    auto attribute =
        program.getArgAttrOfType<DenseI64ArrayAttr>(index, ring::extentAttr);
    if (!attribute)
      continue;
    if (given == sizes.extents.size())
      return program.emitError("needs a value for each of its dynamic sizes, "
                               "got: ")
             << given;
    extents[attribute[0]] = sizes.extents[given++];
  }
  if (given != sizes.extents.size())
    return program.emitError("has ")
           << given << " dynamic sizes, got values: " << sizes.extents.size();
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      globals.push_back({});
      continue;
    }
    SmallVector<int64_t> shape(tensor.getShape());
    if (ring::ShardAttr shard = shardOf(program, index)) {
      int64_t extent = shard.getExtent();
      if (ShapedType::isDynamic(extent)) {
        auto found = extents.find(index);
        // A value without a size of its own has that of its key, which is the
        // argument in front of it.
        extent = found != extents.end()
                     ? found->second
                     : (globals.empty() ? 0 : globals.back().table->shape[1]);
      }
      if (extent < 0 || extent >= maxPositions)
        return program.emitError("needs sizes in [0, 2^40), got: ") << extent;
      shape[shard.getDim()] = extent;
    }
    for (int64_t &size : shape)
      size = ShapedType::isDynamic(size) ? sizes.batch : size;
    globals.push_back(
        {Scalar{0}, std::make_shared<Tensor>(shape, tensor.getElementType())});
  }
  return globals;
}

LogicalResult burst::checkGlobals(func::FuncOp program,
                                  ArrayRef<Argument> globals) {
  if (globals.size() != program.getNumArguments())
    return program.emitError("takes ") << program.getNumArguments()
                                       << " arguments, got: " << globals.size();
  std::optional<int64_t> batch;
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    const TensorRef &found = globals[index].table;
    if (!tensor)
      continue;
    ring::ShardAttr shard = shardOf(program, index);
    bool fits = found && found->element == tensor.getElementType() &&
                static_cast<int64_t>(found->shape.size()) == tensor.getRank();
    for (int64_t dim = 0; fits && dim < tensor.getRank(); ++dim) {
      int64_t wanted = tensor.getDimSize(dim);
      if (shard && shard.getDim() == dim)
        wanted = shard.getExtent();
      if (shard && dim == 0) {
        fits = !batch || *batch == found->shape[0];
        batch = found->shape[0];
      }
      fits &= ShapedType::isDynamic(wanted) || wanted == found->shape[dim];
    }
    if (!fits)
      return program.emitError("argument ")
             << index << " does not fit " << type
             << (shard ? " as a shard of it" : "");
  }
  return success();
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

static TensorRef makeShard(const Tensor &global, ring::ShardAttr shard,
                           int64_t rank, const GaugeRef &gauge, int argument,
                           ShardData data) {
  Deal deal = shard.getLayout().getDeal();
  int64_t extent = global.shape[shard.getDim()];
  auto shape = global.shape;
  shape[shard.getDim()] = deal.count(rank, extent);
  auto result = std::make_shared<Tensor>(shape, global.element, gauge);
  result->argument = argument;
  result->owner = rank;
  if (data == ShardData::Copy && global.hasData()) {
    allocateLike(*result, global);
    copyPositions(global, deal.positions(rank, extent), *result,
                  iota(shape[shard.getDim()]), shard.getDim());
  }
  return result;
}

std::vector<std::vector<Argument>>
burst::shardGlobals(Simulation &simulation, ArrayRef<Argument> globals,
                    ShardData data) {
  func::FuncOp program = simulation.getFunction();
  std::vector<std::vector<Argument>> result;
  for (int64_t rank = 0; rank < simulation.numRanks(); ++rank) {
    std::vector<Argument> &arguments = result.emplace_back();
    for (auto [index, global] : llvm::enumerate(globals)) {
      Argument argument = global;
      if (ring::ShardAttr shard = shardOf(program, index))
        argument.table = makeShard(*global.table, shard, rank,
                                   simulation.gauge(rank), index, data);
      if (auto extent = program.getArgAttrOfType<DenseI64ArrayAttr>(
              index, ring::extentAttr))
        argument.scalar.i = globals[extent[0]].table->shape[extent[1]];
      arguments.push_back(argument);
    }
  }
  return result;
}

TensorRef burst::gatherResult(const Simulation &simulation, unsigned index) {
  auto shard = simulation.getFunction().getResultAttrOfType<ring::ShardAttr>(
      index, ring::shardAttr);
  const auto &results = simulation.getResults();
  if (!shard)
    return results.front()[index];
  Deal deal = shard.getLayout().getDeal();
  int64_t dim = shard.getDim(), extent = 0;
  for (const auto &ofRank : results)
    extent += ofRank[index]->shape[dim];
  auto shape = results.front()[index]->shape;
  shape[dim] = extent;
  auto global =
      std::make_shared<Tensor>(shape, results.front()[index]->element);
  for (auto [rank, ofRank] : llvm::enumerate(results))
    if (ofRank[index]->hasData() && !global->hasData())
      allocateLike(*global, *ofRank[index]);
  for (auto [rank, ofRank] : llvm::enumerate(results))
    copyPositions(*ofRank[index], iota(ofRank[index]->shape[dim]), *global,
                  deal.positions(rank, extent), dim);
  return global;
}
