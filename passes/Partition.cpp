//===- Partition.cpp - from global tensors to shards ----------------------===//
#include "passes/Passes.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"

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
  LogicalResult checkAttention(AttentionOp op);
  LogicalResult checkReturn(func::ReturnOp op);
  LogicalResult assign(AttentionOp op, Value tensor, SequenceAttr sequence);

  Value extent(OpBuilder &builder, ArrayRef<Value> tensors, int64_t size);
  Value unshard(OpBuilder &builder, Value argument, Value extent, int64_t size);
  void partition(AttentionOp op, const AttentionSizes &sizes);
  void partitionReturn(func::ReturnOp op);
  ring::ShardAttr shardAttr(int64_t dim, int64_t extent);

  func::FuncOp function;
  /// With their sizes, which the types no longer say once arguments are shards.
  SmallVector<std::pair<AttentionOp, AttentionSizes>> attentions;
  FlatSymbolRefAttr grid;
  Deal deal;
  SequenceAttr sequence;
  /// Sharded arguments and the tensors they were turned into.
  llvm::MapVector<Value, Value> globals;
  /// Arguments that carry a dynamic size of another argument.
  llvm::DenseMap<Value, Value> extents;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is supported
//===----------------------------------------------------------------------===//

LogicalResult Partitioner::assign(AttentionOp op, Value tensor,
                                  SequenceAttr sequence) {
  if (!isa<BlockArgument>(tensor))
    return op.emitOpError("must take its tensors from the function's "
                          "arguments, got the result of another op: what "
                          "stands in between has no sharding rule")
               .attachNote(tensor.getLoc())
           << "it is made here";
  for (Operation *user : tensor.getUsers())
    if (auto other = dyn_cast<AttentionOp>(user))
      if (llvm::is_contained(other.getMaskCaptures(), tensor) ||
          llvm::is_contained(other.getScoreCaptures(), tensor))
        return op.emitOpError("cannot shard a tensor that a region captures: "
                              "captured tables are the same on every rank");
  globals.insert({tensor, Value()});
  return success();
}

LogicalResult Partitioner::checkAttention(AttentionOp op) {
  if (!op.getSequence())
    return op.emitOpError("has no sequence, so it cannot be partitioned; give "
                          "it one, as in `sequence <@grid, "
                          "zigzag>`");
  FailureOr<Deal> found = resolveDeal(op, *op.getSequence());
  if (failed(found))
    return failure();
  if (sequence && sequence != *op.getSequence())
    return op.emitOpError("has the sequence ")
           << *op.getSequence() << ", but another attention of this function "
           << "has " << sequence;
  sequence = *op.getSequence();
  deal = *found;
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()})
    if (failed(assign(op, tensor, sequence)))
      return failure();
  for (Value capture :
       llvm::concat<Value>(op.getMaskCaptures(), op.getScoreCaptures()))
    if (capture.getDefiningOp<AttentionOp>())
      return op.emitOpError("captures the result of an attention, which is "
                            "sharded; captured tables are the same on every "
                            "rank");
  attentions.push_back({op, op.getSizes()});
  return success();
}

LogicalResult Partitioner::checkReturn(func::ReturnOp op) {
  for (Value value : op.getOperands())
    if (!value.getDefiningOp<AttentionOp>())
      return op.emitOpError("returns a value that is no result of an "
                            "attention, which has no sharding");
  return success();
}

LogicalResult Partitioner::checkOp(Operation &op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
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

ring::ShardAttr Partitioner::shardAttr(int64_t dim, int64_t extent) {
  MLIRContext *context = function.getContext();
  return ring::ShardAttr::get(context, ring::LayoutAttr::get(context, deal),
                              dim, extent);
}

/// The global size of the sequence of tensors: a constant, or an argument.
Value Partitioner::extent(OpBuilder &builder, ArrayRef<Value> tensors,
                          int64_t size) {
  if (!ShapedType::isDynamic(size))
    return arith::ConstantIndexOp::create(builder, function.getLoc(), size);
  Value &argument = extents[tensors.front()];
  if (!argument) {
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, builder.getIndexType(), {},
                                  tensors.front().getLoc());
    argument = function.getArgument(index);
  }
  unsigned index = cast<BlockArgument>(argument).getArgNumber();
  SmallVector<int64_t> pairs;
  if (auto known =
          function.getArgAttrOfType<DenseI64ArrayAttr>(index, ring::extentAttr))
    llvm::append_range(pairs, known.asArrayRef());
  for (Value tensor : tensors) {
    int64_t number = cast<BlockArgument>(tensor).getArgNumber();
    bool isKnown = false;
    for (size_t i = 0; i < pairs.size(); i += 2)
      isKnown |= pairs[i] == number;
    if (!isKnown)
      pairs.append({number, 1});
  }
  function.setArgAttr(index, ring::extentAttr,
                      builder.getDenseI64ArrayAttr(pairs));
  return argument;
}

Value Partitioner::unshard(OpBuilder &builder, Value argument, Value extent,
                           int64_t size) {
  Value &global = globals[argument];
  if (global)
    return global;
  auto type = cast<RankedTensorType>(argument.getType());
  unsigned index = cast<BlockArgument>(argument).getArgNumber();
  function.setArgAttr(index, ring::shardAttr, shardAttr(1, size));
  argument.setType(shardType(type, 1, deal));
  auto op = UnshardOp::create(builder, argument.getLoc(), type, argument,
                              extent, 1, sequence);
  return global = op.getGlobal();
}

void Partitioner::partition(AttentionOp op, const AttentionSizes &sizes) {
  OpBuilder builder(op);
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  Value queries = extent(builder, query, sizes.queries);
  Value keys = extent(builder, {key, value}, sizes.keys);
  op.getQueryMutable().assign(unshard(builder, query, queries, sizes.queries));
  op.getKeyMutable().assign(unshard(builder, key, keys, sizes.keys));
  op.getValueMutable().assign(unshard(builder, value, keys, sizes.keys));
}

void Partitioner::partitionReturn(func::ReturnOp op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Value global = operand.get();
    auto attention = global.getDefiningOp<AttentionOp>();
    int64_t dim = global == attention.getOut() ? 1 : 2;
    auto type = cast<RankedTensorType>(global.getType());
    function.setResultAttr(operand.getOperandNumber(), ring::shardAttr,
                           shardAttr(dim, type.getDimSize(dim)));
    auto shard =
        ShardOp::create(builder, op.getLoc(), shardType(type, dim, deal),
                        global, dim, sequence);
    operand.set(shard.getShard());
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
      function.walk([&](AttentionOp) { hasAttention = true; });
      if (!hasAttention || function->hasAttr(ring::gridAttr))
        continue;
      if (failed(Partitioner(function).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
