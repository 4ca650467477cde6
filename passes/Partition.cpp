//===- Partition.cpp - from global tensors to shards ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"
#include "passes/Strategies/Exchange.h"
#include "passes/Strategies/Strategy.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/IRMapping.h"

namespace burst {
#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Rewrites one function.
class Partitioner {
public:
  explicit Partitioner(func::FuncOp function) : function(function) {}

  LogicalResult run();

private:
  LogicalResult check();
  LogicalResult checkOp(Operation &op);
  LogicalResult checkAttention(AttentionInterface op);
  LogicalResult checkReturn(func::ReturnOp op);
  LogicalResult assign(AttentionInterface op, Value tensor);

  Value extent(OpBuilder &builder, ArrayRef<Sharded> tensors, int64_t size);
  /// Arguments that attend, what a rank has of them then, and the start that
  /// brings it; null where they are that.
  struct Arguments {
    SmallVector<Value> shards;
    SmallVector<RankedTensorType> wholes;
    SmallVector<Type> types;
    SmallVector<int64_t> dims;
    ring::StartOp start;
    Value extent;
  };
  Arguments shardArguments(OpBuilder &builder, ArrayRef<Sharded> tensors,
                           Value extent, int64_t size,
                           const DividedHeads &divided);
  void unshard(OpBuilder &builder, const Arguments &arguments);
  Value shard(OpBuilder &builder, Value global, int64_t dim);
  ring::StartOp startAllToAll(OpBuilder &builder, ring::Route route,
                              ArrayRef<Value> tensors, TypeRange received,
                              ArrayRef<int64_t> dims, Value extent,
                              int64_t groups);
  void takeApart(AttentionInterface op, ArrayRef<Sharded> results,
                 ArrayRef<OpOperand *> uses);
  RankedTensorType globalResult(unsigned index) {
    return cast<RankedTensorType>(function.getFunctionType().getResult(index));
  }
  RankedTensorType shardOf(RankedTensorType type, int64_t dim) const;
  RankedTensorType partOf(RankedTensorType type, int64_t heads) const;
  RankedTensorType partInside(const Sharded &sharded, RankedTensorType type,
                              const DividedHeads &divided) const {
    return partOf(type, sharded.isOfKeys ? divided.key : divided.query);
  }
  static RankedTensorType partsOf(RankedTensorType shard, Value part,
                                  const DividedHeads &divided);
  ArrayAttr splitsAttr(RankedTensorType type);
  LogicalResult checkSplits(AttentionInterface op);
  void partition(AttentionInterface op, const AttentionSizes &sizes);
  void partitionReturn(func::ReturnOp op);
  ring::ShardAttr shardAttr(const Layout &layout, int64_t dim, int64_t extent,
                            ArrayRef<int64_t> axes);
  ring::ShardAttr shardAttr(int64_t dim, int64_t extent) {
    return shardAttr(layout, dim, extent, sequence.getAxes());
  }

  func::FuncOp function;
  /// With their sizes, which the types no longer say once arguments are shards.
  SmallVector<std::pair<AttentionInterface, AttentionSizes>> attentions;
  /// What computes each of them, where that is pinned.
  llvm::DenseMap<Operation *, StrategyAttr> strategies;
  Layout layout;
  SequenceAttr sequence;
  AxesAttr heads, batch;
  /// What the attentions are between all-to-alls, or without them.
  Exchange inside;
  Layout layoutInside;
  Value owner; ///< this rank, where there are all-to-alls
  /// Sharded arguments and the tensors they were turned into.
  llvm::MapVector<Value, Value> globals;
  /// The sizes of the sequences of an attention.
  llvm::DenseMap<Operation *, std::pair<Value, Value>> extentsOf;
  llvm::DenseMap<Operation *, DividedHeads> dividedOf;
  llvm::DenseSet<Value> attending; ///< arguments that are shards already
  /// Arguments that carry a dynamic size of another argument.
  llvm::DenseMap<Value, Value> extents;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is supported
//===----------------------------------------------------------------------===//

/// A backward pass may take what a forward pass of this function gives.
static bool isForwardResult(Value tensor) {
  return tensor.getDefiningOp<AttentionOp>() != nullptr;
}

LogicalResult Partitioner::assign(AttentionInterface op, Value tensor) {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (backward && isForwardResult(tensor) &&
      (tensor == backward.getOut() || tensor == backward.getLse()))
    return success();
  if (!isa<BlockArgument>(tensor))
    return op->emitOpError("must take its tensors from the function's "
                           "arguments, got the result of another op: what "
                           "stands in between has no sharding rule")
               .attachNote(tensor.getLoc())
           << "it is made here";
  for (Operation *user : tensor.getUsers())
    if (auto other = dyn_cast<AttentionInterface>(user))
      if (llvm::is_contained(other.getMaskCaptures(), tensor) ||
          llvm::is_contained(other.getScoreCaptures(), tensor))
        return op->emitOpError("cannot shard a tensor that a region captures: "
                               "captured tables are the same on every rank");
  globals.insert({tensor, Value()});
  return success();
}

/// What is sharded of the operands of an op.
static SmallVector<Sharded> shardedOperands(AttentionInterface op) {
  SmallVector<Sharded> sharded = op.getSharded();
  llvm::erase_if(sharded, [&](const Sharded &d) {
    return d.tensor.getDefiningOp() == op;
  });
  return sharded;
}

/// Whether two sequences are one, over the same axes.
static bool isSame(AttentionInterface op, SequenceAttr a, SequenceAttr b) {
  return a.getGrid() == b.getGrid() && a.getOrder() == b.getOrder() &&
         a.getBlock() == b.getBlock() && axesOf(op, a) == axesOf(op, b);
}

LogicalResult Partitioner::checkAttention(AttentionInterface op) {
  if (!op.getSequence())
    return op->emitOpError("has no sequence, so it cannot be partitioned; give "
                           "it one, as in `sequence <@grid, "
                           "zigzag>`");
  FailureOr<Layout> found = resolveLayout(op, *op.getSequence());
  if (failed(found))
    return failure();
  // All axes of a grid may be named, or left out.
  if (sequence && isSame(op, *op.getSequence(), sequence))
    op->setAttr("sequence", sequence);
  if (sequence && sequence != *op.getSequence())
    return op->emitOpError("has the sequence ")
           << *op.getSequence() << ", but another attention of this function "
           << "has " << sequence;
  if (!attentions.empty() &&
      (heads != op.getHeadsAttr() || batch != op.getBatchAttr()))
    return op->emitOpError("shards its heads and batch otherwise than another "
                           "attention of this function");
  sequence = *op.getSequence();
  heads = op.getHeadsAttr();
  batch = op.getBatchAttr();
  layout = *found;
  if (failed(checkSplits(op)))
    return failure();
  FailureOr<Exchange> exchange = exchangeOf(op);
  if (failed(exchange))
    return failure();
  if (!attentions.empty() && inside.axes != exchange->axes)
    return op->emitOpError("exchanges its sequence for heads over other axes "
                           "than another attention of this function, whose "
                           "tensors it may share; pin the same of strategy <")
           << exchangeName << "> for both";
  if (!attentions.empty() && inside.chunks != exchange->chunks)
    return op->emitOpError("exchanges heads in ")
           << exchange->chunks << " chunks, and another attention of this "
           << "function in " << inside.chunks << "; pin the same for both";
  inside = *exchange;
  strategies[op] = exchange->rest;
  layoutInside = *resolveLayout(op, inside.sequence);
  for (const Sharded &sharded : shardedOperands(op))
    if (failed(assign(op, sharded.tensor)))
      return failure();
  for (Value capture :
       llvm::concat<Value>(op.getMaskCaptures(), op.getScoreCaptures()))
    if (capture.getDefiningOp<AttentionInterface>())
      return op->emitOpError("captures the result of an attention, which is "
                             "sharded; captured tables are the same on every "
                             "rank");
  attentions.push_back({op, op.getSizes()});
  return success();
}

/// Heads and batch are cut into equal parts, along axes that count as one.
LogicalResult Partitioner::checkSplits(AttentionInterface op) {
  for (auto [what, axes] : {std::pair("heads", heads), {"batch", batch}})
    if (axes && failed(verifyAxes(
                    [&] {
                      return op->emitOpError("shards ")
                             << what << " over " << axes << ", of which ";
                    },
                    axes.getAxes())))
      return failure();
  const std::tuple<StringRef, AxesAttr, Value, int64_t> splits[] = {
      {"batches", batch, op.getQuery(), 0},
      {"query heads", heads, op.getQuery(), 2},
      {"key heads", heads, op.getKey(), 2}};
  for (auto [what, axes, tensor, dim] : splits) {
    int64_t ranks = numParts(op, axes);
    int64_t size = cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
    if (ShapedType::isDynamic(size) || size % ranks == 0)
      continue;
    auto error = op->emitOpError("shards ")
                 << size << ' ' << what << " over " << ranks << " ranks of "
                 << axes << ", which does not divide them";
    if (what == "key heads" && ranks % size == 0)
      error << "; give each rank a key head by repeating each " << ranks / size
            << " times";
    return error;
  }
  return success();
}

LogicalResult Partitioner::checkReturn(func::ReturnOp op) {
  for (Value value : op.getOperands())
    if (!value.getDefiningOp<AttentionInterface>())
      return op.emitOpError("returns a value that is no result of an "
                            "attention, which has no sharding");
  return success();
}

LogicalResult Partitioner::checkOp(Operation &op) {
  if (auto attention = dyn_cast<AttentionInterface>(op))
    return checkAttention(attention);
  if (auto ret = dyn_cast<func::ReturnOp>(op))
    return checkReturn(ret);
  if (op.hasTrait<OpTrait::ConstantLike>())
    return success();
  return op.emitOpError("stands between the boundary of ")
         << SymbolRefAttr::get(function) << " and its attention, and has no "
         << "sharding rule; do it before or behind the call";
}

LogicalResult Partitioner::check() {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has attention and several blocks; it must "
                                "have one to be partitioned");
  for (Operation &op : function.getBody().front())
    if (failed(checkOp(op)))
      return failure();
  auto ops = llvm::map_to_vector(
      attentions, [](const auto &attention) { return attention.first; });
  int64_t members = ops.empty() ? 1 : membersAlong(ops.front(), inside.axes);
  if (std::string why = whyNoHeadsTogether(ops, members); !why.empty())
    return ops.back()->emitOpError("shards heads over ")
           << members << " ranks, and " << why << "; pin another strategy than "
           << exchangeName << ", or put each into a function of its own";
  if (inside.chunks != 1) {
    if (std::string why = whyNoChunksTogether(ops); !why.empty())
      return ops.front()->emitOpError("exchanges heads in chunks, and ")
             << why << "; pin ulysses without chunks, or put them into "
             << "functions of their own";
  }
  std::optional<SymbolTable::UseRange> uses =
      SymbolTable::getSymbolUses(function, function->getParentOp());
  if (uses && !uses->empty())
    return uses->begin()->getUser()->emitOpError(
        "calls a function with sharded attention; only the outermost function "
        "can be partitioned");
  return success();
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

ring::ShardAttr Partitioner::shardAttr(const Layout &layout, int64_t dim,
                                       int64_t extent, ArrayRef<int64_t> axes) {
  MLIRContext *context = function.getContext();
  return ring::ShardAttr::get(context, ring::LayoutAttr::get(context, layout),
                              dim, extent, axes);
}

/// What a rank holds of the batch, with so many heads.
RankedTensorType Partitioner::partOf(RankedTensorType type,
                                     int64_t heads) const {
  SmallVector<int64_t> shape(type.getShape());
  shape[ring::headsDimOf(type)] = heads;
  if (!type.isDynamicDim(0))
    shape[0] /= numParts(function, batch);
  return type.clone(shape);
}

/// What a rank holds of a global tensor as argument or result.
RankedTensorType Partitioner::shardOf(RankedTensorType type,
                                      int64_t dim) const {
  int64_t all = type.getDimSize(ring::headsDimOf(type));
  return shardType(partOf(type, all / numParts(function, heads)), dim, layout);
}

/// `ring.splits` of a global tensor; null where its batch and heads are whole.
ArrayAttr Partitioner::splitsAttr(RankedTensorType type) {
  SmallVector<Attribute> splits;
  auto add = [&](AxesAttr axes, int64_t dim) {
    if (axes)
      splits.push_back(shardAttr(Layout{.parts = numParts(function, axes)}, dim,
                                 type.getDimSize(dim), axes.getAxes()));
  };
  add(batch, 0);
  add(heads, ring::headsDimOf(type));
  return splits.empty() ? ArrayAttr()
                        : ArrayAttr::get(function.getContext(), splits);
}

/// The global size of the sequence of tensors: a constant, or an argument.
Value Partitioner::extent(OpBuilder &builder, ArrayRef<Sharded> tensors,
                          int64_t size) {
  if (!ShapedType::isDynamic(size))
    return arith::ConstantIndexOp::create(builder, function.getLoc(), size);
  Value first = tensors.front().tensor;
  Value &argument = extents[first];
  if (!argument) {
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, builder.getIndexType(), {},
                                  first.getLoc());
    argument = function.getArgument(index);
  }
  unsigned index = cast<BlockArgument>(argument).getArgNumber();
  SmallVector<int64_t> pairs;
  if (auto known =
          function.getArgAttrOfType<DenseI64ArrayAttr>(index, ring::extentAttr))
    llvm::append_range(pairs, known.asArrayRef());
  for (const Sharded &sharded : tensors) {
    auto tensor = dyn_cast<BlockArgument>(sharded.tensor);
    if (!tensor)
      continue;
    int64_t number = tensor.getArgNumber();
    bool isKnown = false;
    for (size_t i = 0; i < pairs.size(); i += 2)
      isKnown |= pairs[i] == number;
    if (!isKnown)
      pairs.append({number, sharded.dim});
  }
  function.setArgAttr(index, ring::extentAttr,
                      builder.getDenseI64ArrayAttr(pairs));
  return argument;
}

/// Begins an all-to-all of tensors of one sequence.
ring::StartOp Partitioner::startAllToAll(OpBuilder &builder, ring::Route route,
                                         ArrayRef<Value> tensors,
                                         TypeRange received,
                                         ArrayRef<int64_t> dims, Value extent,
                                         int64_t groups) {
  MLIRContext *context = builder.getContext();
  return ring::StartOp::create(
      builder, function.getLoc(),
      ring::TokenType::get(context, SmallVector<Type>(received)), tensors,
      owner, extent, /*to=*/Value(), /*receivedOwner=*/Value(),
      /*from=*/Value(), /*segments=*/Value(), /*turn=*/Value(),
      /*into=*/ValueRange(), dims, ring::LayoutAttr::get(context, layout),
      ring::ChannelAttr::get(context, sequence.getGrid(), inside.axes,
                             /*index=*/ring::exchangeChannel),
      route, membersAlong(attentions.front().first, inside.axes), groups);
}

/// Those arguments that have not attended yet become shards.
Partitioner::Arguments
Partitioner::shardArguments(OpBuilder &builder, ArrayRef<Sharded> tensors,
                            Value extent, int64_t size,
                            const DividedHeads &divided) {
  Arguments brought;
  brought.extent = extent;
  for (const Sharded &sharded : tensors) {
    auto argument = dyn_cast<BlockArgument>(sharded.tensor);
    if (!argument || !attending.insert(argument).second)
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    function.setArgAttr(argument.getArgNumber(), ring::shardAttr,
                        shardAttr(sharded.dim, size));
    if (ArrayAttr splits = splitsAttr(type))
      function.setArgAttr(argument.getArgNumber(), ring::splitsAttr, splits);
    brought.shards.push_back(argument);
    brought.wholes.push_back(partInside(sharded, type, divided));
    brought.types.push_back(
        shardType(brought.wholes.back(), sharded.dim, layoutInside));
    brought.dims.push_back(sharded.dim);
    argument.setType(shardOf(type, sharded.dim));
  }
  if (inside.isDone() && !brought.shards.empty())
    brought.start = startAllToAll(builder, ring::Route::ToHeads, brought.shards,
                                  brought.types, brought.dims, extent,
                                  divided.groupsOf(tensors.front().isOfKeys));
  return brought;
}

/// Global tensors of arguments.
void Partitioner::unshard(OpBuilder &builder, const Arguments &arguments) {
  SmallVector<Value> locals(arguments.shards);
  if (ring::StartOp start = arguments.start)
    locals = ring::WaitOp::create(builder, function.getLoc(), arguments.types,
                                  start.getToken())
                 .getTensors();
  for (auto [shard, local, whole, dim] : llvm::zip_equal(
           arguments.shards, locals, arguments.wholes, arguments.dims))
    globals[shard] = UnshardOp::create(builder, shard.getLoc(), whole, local,
                                       arguments.extent, dim, inside.sequence)
                         .getGlobal();
}

void Partitioner::partition(AttentionInterface op,
                            const AttentionSizes &sizes) {
  OpBuilder builder(op);
  SmallVector<Sharded> ofQueries = shardedOperands(op), ofKeys;
  llvm::copy_if(ofQueries, std::back_inserter(ofKeys),
                [](const Sharded &d) { return d.isOfKeys; });
  llvm::erase_if(ofQueries, [](const Sharded &d) { return d.isOfKeys; });
  Value queries = extent(builder, ofQueries, sizes.queries);
  Value keys = extent(builder, ofKeys, sizes.keys);
  extentsOf[op] = {queries, keys};
  if (inside.isDone() && !owner)
    owner = ring::createPlace(builder, op.getLoc(),
                              lookupGrid(op, sequence.getGrid()),
                              sequence.getAxes());
  int64_t headParts = numParts(function, heads);
  DividedHeads divided =
      divideHeads(sizes.queryHeads / headParts, sizes.keyHeads / headParts,
                  membersAlong(op, inside.axes));
  dividedOf[op] = divided;
  // All-to-alls of queries and of keys are under way together.
  Arguments queryArguments =
      shardArguments(builder, ofQueries, queries, sizes.queries, divided);
  Arguments keyArguments =
      shardArguments(builder, ofKeys, keys, sizes.keys, divided);
  unshard(builder, queryArguments);
  unshard(builder, keyArguments);
  // What a forward pass of this function gives is used as it is in between.
  for (const Sharded &sharded : ofQueries)
    if (!isa<BlockArgument>(sharded.tensor) && !globals[sharded.tensor])
      globals[sharded.tensor] =
          UnshardOp::create(builder, sharded.tensor.getLoc(),
                            cast<RankedTensorType>(sharded.tensor.getType()),
                            shard(builder, sharded.tensor, sharded.dim),
                            queries, sharded.dim, inside.sequence)
              .getGlobal();
  for (OpOperand &operand : op->getOpOperands())
    if (Value global = globals.lookup(operand.get()))
      operand.set(global);
  for (Sharded sharded : op.getSharded()) {
    if (sharded.tensor.getDefiningOp() != op)
      continue;
    auto type = cast<RankedTensorType>(sharded.tensor.getType());
    RankedTensorType part = partInside(sharded, type, divided);
    bool isPart = sharded.isOfKeys && divided.areShared();
    sharded.tensor.setType(isPart ? part.clone(op.getStateType()) : part);
  }
  // What computes is left, on all axes that are.
  if (StrategyAttr strategy = strategies.lookup(op))
    op->setAttr("strategy", strategy);
  else
    op->removeAttr("strategy");
  if (!inside.isDone())
    return;
  op->setAttr("sequence", inside.sequence);
  op->setAttr("heads", inside.heads);
}

/// This rank's shard of the result of an attention.
Value Partitioner::shard(OpBuilder &builder, Value global, int64_t dim) {
  auto type = cast<RankedTensorType>(global.getType());
  return ShardOp::create(builder, global.getLoc(),
                         shardType(type, dim, layoutInside), global, dim,
                         inside.sequence);
}

/// What an all-to-all brings to a shard of heads that ranks share: a part of
/// each, of which the shard is the sum, in the type of `part`.
RankedTensorType Partitioner::partsOf(RankedTensorType shard, Value part,
                                      const DividedHeads &divided) {
  auto type = cast<RankedTensorType>(part.getType());
  SmallVector<int64_t> shape(shard.getShape());
  shape[ring::headsDimOf(shard)] = divided.groups * divided.ranksOfGroup();
  return RankedTensorType::get(shape, type.getElementType());
}

/// Exchanges results of one attention and sequence, from right behind it on, so
/// that other attentions are computed meanwhile.
void Partitioner::takeApart(AttentionInterface op, ArrayRef<Sharded> results,
                            ArrayRef<OpOperand *> uses) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  const DividedHeads &divided = dividedOf.at(op);
  SmallVector<Value> shards;
  SmallVector<Type> types;
  SmallVector<RankedTensorType> wholes;
  SmallVector<int64_t> dims;
  llvm::SmallSetVector<Value, 4> tensors; // one may be returned twice
  for (auto [result, use] : llvm::zip_equal(results, uses)) {
    if (!tensors.insert(result.tensor))
      continue;
    shards.push_back(shard(builder, result.tensor, result.dim));
    RankedTensorType whole = globalResult(use->getOperandNumber());
    wholes.push_back(shardOf(whole, result.dim));
    types.push_back(result.isOfKeys && divided.areShared()
                        ? partsOf(wholes.back(), shards.back(), divided)
                        : wholes.back());
    dims.push_back(result.dim);
  }
  auto &[queries, keys] = extentsOf.at(op);
  bool isOfKeys = results.front().isOfKeys;
  ring::StartOp start =
      startAllToAll(builder, ring::Route::ToSequence, shards, types, dims,
                    isOfKeys ? keys : queries, divided.groupsOf(isOfKeys));
  builder.setInsertionPoint(uses.front()->getOwner());
  auto wait =
      ring::WaitOp::create(builder, op.getLoc(), types, start.getToken());
  SmallVector<Value> returned;
  for (auto [tensor, whole] : llvm::zip_equal(wait.getTensors(), wholes))
    returned.push_back(tensor.getType() == whole
                           ? Value(tensor)
                           : ring::RoundOp::create(builder, op.getLoc(), whole,
                                                   tensor,
                                                   /*into=*/Value())
                                 .getRounded());
  for (auto [use, result] : llvm::zip_equal(uses, results))
    use->set(returned[llvm::find(tensors, result.tensor) - tensors.begin()]);
}

void Partitioner::partitionReturn(func::ReturnOp op) {
  OpBuilder builder(op);
  llvm::MapVector<std::pair<Operation *, int>,
                  std::pair<SmallVector<Sharded>, SmallVector<OpOperand *>>>
      exchanged;
  for (OpOperand &operand : op->getOpOperands()) {
    Value global = operand.get();
    auto attention = global.getDefiningOp<AttentionInterface>();
    SmallVector<Sharded> sharded = attention.getSharded();
    auto *found = llvm::find_if(
        sharded, [&](const Sharded &d) { return d.tensor == global; });
    unsigned index = operand.getOperandNumber();
    if (found == sharded.end()) { // the gradient of a capture
      function.setResultAttr(index, ring::partialAttr, builder.getUnitAttr());
      continue;
    }
    RankedTensorType whole = globalResult(index);
    function.setResultAttr(index, ring::shardAttr,
                           shardAttr(found->dim, whole.getDimSize(found->dim)));
    if (ArrayAttr splits = splitsAttr(whole))
      function.setResultAttr(index, ring::splitsAttr, splits);
    if (!inside.isDone()) {
      operand.set(shard(builder, global, found->dim));
      continue;
    }
    auto &[results, uses] = exchanged[{attention, found->isOfKeys}];
    results.push_back(*found);
    uses.push_back(&operand);
  }
  for (auto &[from, what] : exchanged)
    takeApart(cast<AttentionInterface>(from.first), what.first, what.second);
}

LogicalResult Partitioner::run() {
  if (failed(check()))
    return failure();
  function->setAttr(ring::gridAttr, sequence.getGrid());
  if (inside.chunks != 1)
    function->setAttr(ring::headChunksAttr,
                      Builder(function).getI64IntegerAttr(inside.chunks));
  for (auto &[op, sizes] : attentions)
    partition(op, sizes);
  auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  partitionReturn(ret);
  function.setType(FunctionType::get(function.getContext(),
                                     function.getBody().getArgumentTypes(),
                                     ret.getOperandTypes()));
  return success();
}

namespace {
struct Partition : burst::impl::PartitionPassBase<Partition> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool hasAttention = false;
      function.walk([&](AttentionInterface) { hasAttention = true; });
      if (!hasAttention || function->hasAttr(ring::gridAttr))
        continue;
      if (failed(Partitioner(function).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
