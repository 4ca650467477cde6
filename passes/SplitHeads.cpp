//===- SplitHeads.cpp - heads in chunks -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Heads.h"
#include "passes/Passes.h"
#include "passes/Strategies/Exchange.h"

#include "mlir/IR/IRMapping.h"

namespace burst {
#define GEN_PASS_DEF_SPLITHEADSPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Rewrites one program, whose attentions all go in as many chunks.
class Splitter {
public:
  Splitter(func::FuncOp program, int64_t numChunks)
      : program(program), builder(program.getContext()), numChunks(numChunks) {}

  void run();

private:
  bool goesWhole(ring::StartOp start) const;
  bool isSummed(Value gradient) const;
  void split(Operation &op);
  void split(ring::StartOp start);
  void split(AttentionInterface attention);
  void renumber(AttentionInterface attention);
  void sum(Value whole);
  Type chunkOf(Type type) const;

  func::FuncOp program;
  OpBuilder builder;
  int64_t numChunks;
  int64_t chunk = 0; ///< the one that is written
  IRMapping ofChunk; ///< what is of all heads to what is of the chunk
  bool haveOwnKeys = true;
  /// Gradients that chunks have in common: what each has made of it.
  llvm::MapVector<Value, SmallVector<Value>> summed;
};

} // namespace

Type Splitter::chunkOf(Type type) const {
  if (auto token = dyn_cast<ring::TokenType>(type))
    return ring::TokenType::get(
        type.getContext(),
        llvm::map_to_vector(token.getTypes(),
                            [&](Type each) { return chunkOf(each); }));
  auto tensor = cast<RankedTensorType>(type);
  return ring::withHeads(tensor, tensor.getDimSize(ring::headsDimOf(tensor)) /
                                     numChunks);
}

/// Whether it brings keys that all chunks attend.
bool Splitter::goesWhole(ring::StartOp start) const {
  if (haveOwnKeys || start.getRoute() != ring::Route::ToHeads)
    return false;
  auto wait = cast<ring::WaitOp>(*start.getToken().user_begin());
  auto unshard = cast<UnshardOp>(*wait.getResult(0).user_begin());
  Value global = unshard.getGlobal();
  return llvm::any_of(global.getUsers(), [&](Operation *user) {
    auto attention = dyn_cast<AttentionInterface>(user);
    return attention &&
           llvm::any_of(attention.getSharded(), [&](const Sharded &sharded) {
             return sharded.tensor == global && sharded.isOfKeys;
           });
  });
}

/// Whether a result of a backward pass is by keys or tables of all chunks.
bool Splitter::isSummed(Value gradient) const {
  auto backward = gradient.getDefiningOp<AttentionBackwardOp>();
  return backward &&
         (llvm::is_contained(backward.getCaptureGrads(), gradient) ||
          (!haveOwnKeys && (gradient == backward.getKeyGrad() ||
                            gradient == backward.getValueGrad())));
}

/// Regions count the heads of all chunks: head h of this one is number
/// h * numChunks + chunk of them. Bounds are asked of heads from the first on,
/// up to but without the second.
void Splitter::renumber(AttentionInterface attention) {
  renumberHeads(attention, [&](Emit e, Value head, bool isEnd) {
    int64_t offset = isEnd ? chunk - (numChunks - 1) : chunk;
    return e.add(e.mul(head, e.index(numChunks)), e.index(offset));
  });
}

void Splitter::split(ring::StartOp start) {
  SmallVector<Value> tensors;
  for (Value tensor : start.getTensors()) {
    if (start.getRoute() == ring::Route::ToHeads)
      tensors.push_back(ring::TakeHeadsOp::create(builder, start.getLoc(),
                                                  chunkOf(tensor.getType()),
                                                  tensor, chunk, numChunks));
    else
      tensors.push_back(ofChunk.lookup(tensor));
  }
  auto created = cast<ring::StartOp>(builder.clone(*start, ofChunk));
  created.getTensorsMutable().assign(tensors);
  created.getToken().setType(
      cast<ring::TokenType>(chunkOf(start.getToken().getType())));
}

/// What chunks have in common is made in the state type, in which it is added.
void Splitter::split(AttentionInterface attention) {
  auto created = cast<AttentionInterface>(builder.clone(*attention, ofChunk));
  for (auto [whole, made] :
       llvm::zip_equal(attention->getResults(), created->getResults())) {
    auto type = cast<RankedTensorType>(whole.getType());
    if (isSummed(whole))
      made.setType(type.clone(attention.getStateType()));
    else
      made.setType(chunkOf(type));
  }
  if (auto backward = dyn_cast<AttentionBackwardOp>(attention.getOperation()))
    for (Value table : backward.getCaptureGrads())
      if (!table.use_empty())
        summed[table].push_back(ofChunk.lookup(table));
  renumber(created);
}

/// Writes an op of all heads for the chunk.
void Splitter::split(Operation &op) {
  if (auto start = dyn_cast<ring::StartOp>(op)) {
    if (!goesWhole(start) && !summed.contains(start.getTensors().front()))
      split(start);
    return;
  }
  if (auto attention = dyn_cast<AttentionInterface>(op))
    return split(attention);
  if (auto shard = dyn_cast<ShardOp>(op);
      shard && isSummed(shard.getGlobal())) {
    Value made = ofChunk.lookup(shard.getGlobal());
    Type element = cast<RankedTensorType>(made.getType()).getElementType();
    summed[shard].push_back(
        ShardOp::create(builder, shard.getLoc(),
                        cast<RankedTensorType>(shard.getType()).clone(element),
                        made, shard.getDim(), shard.getSequence()));
    return;
  }
  bool isOfChunk = llvm::any_of(op.getOperands(), [&](Value operand) {
    return ofChunk.contains(operand);
  });
  if (!isa<ring::WaitOp, UnshardOp, ShardOp>(op) || !isOfChunk)
    return; // for all chunks alike
  Operation *created = builder.clone(op, ofChunk);
  for (Value result : created->getResults())
    result.setType(chunkOf(result.getType()));
}

/// A gradient that chunks have in common goes on as it did, when all have made
/// theirs.
void Splitter::sum(Value whole) {
  Location loc = whole.getLoc();
  Value sum = ring::SumChunksOp::create(builder, loc, summed[whole]);
  if (sum.getType() != whole.getType())
    sum = ring::RoundOp::create(builder, loc, whole.getType(), sum,
                                /*into=*/Value())
              .getRounded();
  whole.replaceAllUsesWith(sum);
}

void Splitter::run() {
  Block &body = program.getBody().front();
  program.walk(
      [&](AttentionInterface op) { haveOwnKeys &= haveChunksOwnKeys(op); });
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  Operation *end = body.getTerminator();
  builder.setInsertionPoint(end);
  std::vector<SmallVector<Value>> results(end->getNumOperands());
  llvm::DenseSet<Operation *> isSplit;
  for (chunk = 0; chunk < numChunks; ++chunk) {
    ofChunk.clear();
    for (Operation *op : ops) {
      split(*op);
      if (op->getNumResults() != 0 && ofChunk.contains(op->getResult(0)))
        isSplit.insert(op);
    }
    for (auto [value, chunks] : llvm::zip_equal(end->getOperands(), results))
      if (ofChunk.contains(value) && !summed.contains(value))
        chunks.push_back(ofChunk.lookup(value));
  }
  for (auto &[whole, chunks] : summed)
    sum(whole);
  // What brings such gradients to their owners stands behind them.
  for (Operation *op : ops)
    if (!isSplit.contains(op) && !op->getOperands().empty() &&
        llvm::any_of(op->getOperands(), [&](Value operand) {
          return operand.getDefiningOp() &&
                 operand.getDefiningOp()->getBlock() == &body &&
                 op->isBeforeInBlock(operand.getDefiningOp());
        }))
      op->moveBefore(end);
  // What is returned twice is joined once.
  llvm::DenseMap<Value, Value> joined;
  for (auto [operand, chunks] :
       llvm::zip_equal(end->getOpOperands(), results)) {
    if (chunks.empty())
      continue;
    Value &whole = joined[operand.get()];
    if (!whole)
      whole = ring::JoinHeadsOp::create(builder, end->getLoc(),
                                        operand.get().getType(), chunks);
    operand.set(whole);
  }
  for (auto &[whole, chunks] : summed)
    isSplit.insert(whole.getDefiningOp());
  for (Operation *op : llvm::reverse(ops))
    if (isSplit.contains(op))
      op->erase();
}

namespace {
struct SplitHeads : burst::impl::SplitHeadsPassBase<SplitHeads> {
  void runOnOperation() override {
    auto numChunks =
        getOperation()->getAttrOfType<IntegerAttr>(ring::headChunksAttr);
    if (!numChunks)
      return;
    Splitter(getOperation(), numChunks.getInt()).run();
    getOperation()->removeAttr(ring::headChunksAttr);
  }
};
} // namespace
