//===- Partition.cpp - from global tensors to shards ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Passes.h"

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
  Value unshard(OpBuilder &builder, const Sharded &sharded, Value extent,
                int64_t size);
  Value shard(OpBuilder &builder, Value global, int64_t dim);
  RankedTensorType withoutSplits(RankedTensorType type) const;
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
  FlatSymbolRefAttr grid;
  Layout layout;
  SequenceAttr sequence;
  AxesAttr heads, batch;
  /// Sharded arguments and the tensors they were turned into.
  llvm::MapVector<Value, Value> globals;
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

LogicalResult Partitioner::checkAttention(AttentionInterface op) {
  if (!op.getSequence())
    return op->emitOpError("has no sequence, so it cannot be partitioned; give "
                           "it one, as in `sequence <@grid, "
                           "zigzag>`");
  FailureOr<Layout> found = resolveLayout(op, *op.getSequence());
  if (failed(found))
    return failure();
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

/// Heads and batch are cut into equal parts.
LogicalResult Partitioner::checkSplits(AttentionInterface op) {
  const std::tuple<StringRef, AxesAttr, Value, int64_t> splits[] = {
      {"batches", batch, op.getQuery(), 0},
      {"query heads", heads, op.getQuery(), 2},
      {"key heads", heads, op.getKey(), 2}};
  for (auto [what, axes, tensor, dim] : splits) {
    int64_t ranks = groupOf(op, axes).size;
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

/// What a rank holds of the batch and the heads of a tensor.
RankedTensorType Partitioner::withoutSplits(RankedTensorType type) const {
  SmallVector<int64_t> shape(type.getShape());
  shape[ring::headsDimOf(type)] /= groupOf(function, heads).size;
  if (!type.isDynamicDim(0))
    shape[0] /= groupOf(function, batch).size;
  return type.clone(shape);
}

/// `ring.splits` of a global tensor; null where its batch and heads are whole.
ArrayAttr Partitioner::splitsAttr(RankedTensorType type) {
  SmallVector<Attribute> splits;
  auto add = [&](AxesAttr axes, int64_t dim) {
    if (axes)
      splits.push_back(shardAttr(Layout{.parts = groupOf(function, axes).size},
                                 dim, type.getDimSize(dim), axes.getAxes()));
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

Value Partitioner::unshard(OpBuilder &builder, const Sharded &sharded,
                           Value extent, int64_t size) {
  Value &global = globals[sharded.tensor];
  if (global)
    return global;
  auto type = cast<RankedTensorType>(sharded.tensor.getType());
  Location loc = sharded.tensor.getLoc();
  Value local = sharded.tensor;
  if (auto argument = dyn_cast<BlockArgument>(local)) {
    function.setArgAttr(argument.getArgNumber(), ring::shardAttr,
                        shardAttr(sharded.dim, size));
    if (ArrayAttr splits = splitsAttr(type))
      function.setArgAttr(argument.getArgNumber(), ring::splitsAttr, splits);
    type = withoutSplits(type);
    argument.setType(shardType(type, sharded.dim, layout));
  } else {
    local = shard(builder, local, sharded.dim);
  }
  auto op = UnshardOp::create(builder, loc, type, local, extent, sharded.dim,
                              sequence);
  return global = op.getGlobal();
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
  IRMapping globals;
  for (const Sharded &sharded : ofQueries)
    globals.map(sharded.tensor,
                unshard(builder, sharded, queries, sizes.queries));
  for (const Sharded &sharded : ofKeys)
    globals.map(sharded.tensor, unshard(builder, sharded, keys, sizes.keys));
  for (OpOperand &operand : op->getOpOperands())
    operand.set(globals.lookupOrDefault(operand.get()));
  for (Sharded sharded : op.getSharded())
    if (sharded.tensor.getDefiningOp() == op)
      sharded.tensor.setType(
          withoutSplits(cast<RankedTensorType>(sharded.tensor.getType())));
}

/// This rank's shard of the result of an attention.
Value Partitioner::shard(OpBuilder &builder, Value global, int64_t dim) {
  auto type = cast<RankedTensorType>(global.getType());
  return ShardOp::create(builder, global.getLoc(), shardType(type, dim, layout),
                         global, dim, sequence);
}

void Partitioner::partitionReturn(func::ReturnOp op) {
  OpBuilder builder(op);
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
    auto type = cast<RankedTensorType>(global.getType());
    function.setResultAttr(index, ring::shardAttr,
                           shardAttr(found->dim, type.getDimSize(found->dim)));
    Type whole = function.getFunctionType().getResult(index);
    if (ArrayAttr splits = splitsAttr(cast<RankedTensorType>(whole)))
      function.setResultAttr(index, ring::splitsAttr, splits);
    operand.set(shard(builder, global, found->dim));
  }
}

LogicalResult Partitioner::run() {
  if (failed(check()))
    return failure();
  function->setAttr(ring::gridAttr, sequence.getGrid());
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
