//===- Loops.cpp - transfers, and the loops that carry them ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Bufferize/Bufferizer.h"

#include "llvm/ADT/SmallVector.h"

using namespace mlir;
using namespace burst;
using namespace burst::bufferizing;

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

static RankedTensorType receivedType(ring::TransferOpInterface op,
                                     unsigned index) {
  return cast<RankedTensorType>(op.getToken().getType().getTypes()[index]);
}

/// A transfer of tensors without elements: nothing travels, and memref.subview
/// has no views of nothing.
static bool isVoid(ring::TransferOpInterface op) {
  return llvm::any_of(op.getTensors().getTypes(), hasNoElements);
}

/// A buffer of a type without elements, which is not that of what is sent.
Value Bufferizer::allocateNothing(ring::TransferOpInterface op, unsigned index,
                                  RankedTensorType type) {
  SmallVector<Value> sizes;
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d))
      sizes.push_back(
          d == op.getDims()[index]
              ? capacity(op.getReceivedLayout(), map(op.getExtent()))
              : memref::DimOp::create(builder, loc, map(op.getTensors()[index]),
                                      constant(d))
                    .getResult());
  return allocate(MemRefType::get(type.getShape(), type.getElementType()),
                  sizes, "slice");
}

/// What an all-to-all brings of a tensor is sharded as the argument that it is.
void Bufferizer::nameArgument(ring::TransferOpInterface op, Value tensor,
                              Value brought) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (op.isAllToAll())
    queries[brought] = argument ? argument : queries.lookup(map(tensor));
}

LogicalResult Bufferizer::convert(ring::TransferOpInterface op) {
  SmallVector<Value> into;
  if (isVoid(op)) {
    for (auto [index, tensor] : llvm::enumerate(op.getTensors())) {
      RankedTensorType type = receivedType(op, index);
      MemRefType wanted = bufferType(type);
      Value buffer = map(tensor);
      if (!memref::CastOp::areCastCompatible(buffer.getType(), wanted))
        buffer = allocateNothing(op, index, type);
      into.push_back(memref::CastOp::create(builder, loc, wanted, buffer));
      inherit(map(tensor), into.back());
      nameArgument(op, tensor, into.back());
    }
    receiving[op.getToken()] = into;
    return success();
  }
  if (Operation *before = reused.lookup(op)) {
    Slots those = slots.lookup(before); // which slots[op] may move
    slots[op] = those;
  }
  Slots &entry = slots[op];
  SmallVector<Value> ofResults(op.getTensors().size());
  if (entry.buffers.empty()) { // in no loop
    ring::TransferOpInterface inLoop = successorOf(op);
    entry.count = inLoop ? numSlots(inLoop) : 1;
    Value most = capacity(op.getReceivedLayout(), map(op.getExtent()));
    for (auto [index, tensor] : llvm::enumerate(op.getTensors())) {
      ofResults[index] = receivedResult(op, index);
      entry.buffers.push_back(ofResults[index]
                                  ? Value()
                                  : allocateSlices(receivedType(op, index),
                                                   tensor, op.getDims()[index],
                                                   most, entry.count, "slice"));
    }
  }
  for (auto [index, buffer] : llvm::enumerate(entry.buffers)) {
    Value tensor = op.getTensors()[index];
    into.push_back(buffer ? received(op, index, buffer, entry.count)
                          : ofResults[index]);
    inherit(map(tensor), into.back());
    nameArgument(op, tensor, into.back());
  }
  auto start = cast<ring::TransferOpInterface>(
      builder.clone(*op.getOperation(), mapping));
  start.getIntoMutable().assign(into);
  start.getToken().setType(ring::TokenType::get(op.getContext(), {}));
  mapping.map(op.getToken(), start.getToken());
  receiving[op.getToken()] = into;
  return success();
}

LogicalResult Bufferizer::convert(ring::WaitOp op) {
  auto carried = arrivals.find(op.getToken());
  if (carried != arrivals.end()) {
    const Arrival &arrival = carried->second;
    ring::WaitOp::create(builder, loc, TypeRange(), map(op.getToken()));
    ring::TransferOpInterface start = arrival.start;
    for (auto [index, tensor] : llvm::enumerate(op.getTensors())) {
      Value view = viewSlot(
          cast<RankedTensorType>(tensor.getType()),
          {start.getDims()[index], start.getReceivedLayout(), arrival.owner,
           start.getExtent()},
          arrival.buffers[index],
          arrival.last ? OpFoldResult(builder.getIndexAttr(*arrival.last))
                       : slotOf(arrival.count, /*ofTurnBefore=*/true));
      mapping.map(tensor, view);
      contents[view] = arrival.content;
    }
    return success();
  }
  auto found = receiving.find(op.getToken());
  if (found == receiving.end())
    return op.emitOpError("waits for a token that is not the result of a "
                          "ring.start in this block or around it");
  if (Value token = mapping.lookupOrNull(op.getToken()))
    ring::WaitOp::create(builder, loc, TypeRange(), token);
  for (auto [tensor, buffer] : llvm::zip_equal(op.getTensors(), found->second))
    mapping.map(tensor, buffer);
  return success();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static std::optional<int64_t> tripCount(scf::ForOp loop) {
  std::optional<llvm::APInt> count = loop.getStaticTripCount();
  if (!count)
    return std::nullopt;
  return count->getSExtValue();
}

/// The transfer that a token is of, of one that a loop carries the first.
static ring::TransferOpInterface startOf(Value token) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(token)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        return {};
      token = loop.getTiedLoopInit(argument)->get();
    } else if (auto loop = token.getDefiningOp<scf::ForOp>()) {
      token = loop.getTiedLoopInit(cast<OpResult>(token))->get();
    } else {
      return token.getDefiningOp<ring::TransferOpInterface>();
    }
  }
}

/// What has the batch of a tensor and is there in front of all loops; null
/// where nothing has.
Value Bufferizer::inFrontOfLoops(Value tensor) {
  while (tensor && !outermost.isDefinedOutsideOfLoop(tensor)) {
    if (auto argument = dyn_cast<BlockArgument>(tensor)) {
      auto around = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      tensor = around ? around.getTiedLoopInit(argument)->get() : Value();
    } else if (auto inner = tensor.getDefiningOp<scf::ForOp>()) {
      tensor = inner.getTiedLoopInit(cast<OpResult>(tensor))->get();
    } else if (auto wait = tensor.getDefiningOp<ring::WaitOp>()) {
      // A shift brings what it sends, of another owner.
      ring::TransferOpInterface start = startOf(wait.getToken());
      unsigned number = cast<OpResult>(tensor).getResultNumber();
      tensor = start ? start.getTensors()[number] : Value();
    } else if (auto step = tensor.getDefiningOp<ring::StepOpInterface>()) {
      tensor = step.getSizeSource(cast<OpResult>(tensor), 0).value;
    } else {
      tensor = {};
    }
  }
  return tensor;
}

/// The buffers lie before all loops: what they depend on must, too.
LogicalResult Bufferizer::makeSlots(scf::ForOp op,
                                    ring::TransferOpInterface start,
                                    int64_t turns) {
  if (!outermost.isDefinedOutsideOfLoop(start.getExtent()))
    return start.emitOpError("needs an extent that its loop does not change");
  Slots &entry = slots[start];
  entry.count = std::min(turns, numSlots(start));
  // What is carried into the first turn has come, if it has, where others come.
  ring::TransferOpInterface first = predecessorOf(start);
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  bool isCarried = llvm::is_contained(yield.getOperands(), start.getToken());
  if (first && (isCarried || slots[first].count == 2)) {
    entry = slots[first];
    return success();
  }
  if (isCarried)
    return start.emitOpError("is carried to the next turn of its loop, so the "
                             "transfer of the turn before must come from a "
                             "ring.start");
  OpBuilder::InsertionGuard guard(builder);
  if (newOutermost)
    builder.setInsertionPoint(newOutermost);
  Value most = capacity(start.getReceivedLayout(), map(start.getExtent()));
  for (auto [index, tensor] : llvm::enumerate(start.getTensors())) {
    // The kind is that of what the loop starts with.
    Value outside = tensor;
    if (auto argument = dyn_cast<BlockArgument>(tensor);
        argument && argument.getOwner() == op.getBody())
      outside = op.getTiedLoopInit(argument)->get();
    RankedTensorType type = receivedType(start, index);
    bool isSized =
        llvm::all_of(llvm::seq<int64_t>(0, type.getRank()), [&](int64_t d) {
          return !type.isDynamicDim(d) || d == start.getDims()[index];
        });
    if (!isSized && !op.isDefinedOutsideOfLoop(outside)) {
      // A gradient that is made in this turn has the batch of any.
      outside = {};
      for (Value init : op.getInits())
        if (init.getType() == type)
          outside = init;
      if (!outside)
        return start.emitOpError("sends a tensor that is neither carried by "
                                 "its loop nor made before it");
    }
    if (!isSized && outermost != op) {
      outside = inFrontOfLoops(outside);
      if (!outside)
        return start.emitOpError("sends a tensor of which nothing in front of "
                                 "all loops has the batch");
    }
    entry.buffers.push_back(allocateSlices(
        type, outside, start.getDims()[index], most, entry.count, "slice"));
  }
  return success();
}

/// For a state or gradient by a slice that the loop carries.
LogicalResult Bufferizer::makeSlots(scf::ForOp op, Operation *fresh,
                                    int64_t turns) {
  std::optional<CarriedSlice> slice = sliceOf(fresh);
  if (!slice || !outermost.isDefinedOutsideOfLoop(slice->start.getExtent()))
    return fresh->emitOpError("in a loop makes a ")
           << (isGradient(cast<ring::StepOpInterface>(fresh)) ? "gradient by"
                                                              : "state of")
           << " a slice that the loop carries, with its owner, from a transfer";
  ring::TransferOpInterface start = slice->start;
  if (isVoid(start) || llvm::any_of(fresh->getResultTypes(), hasNoElements))
    return success();
  Slots &entry = slots[fresh];
  entry.count = std::min(turns, numSlots(fresh));
  OpBuilder::InsertionGuard guard(builder);
  if (newOutermost)
    builder.setInsertionPoint(newOutermost);
  Value most = capacity(start.getLayout(), map(start.getExtent()));
  Value first = inFrontOfLoops(slice->slice);
  if (!first)
    return fresh->emitOpError("is by a slice of which nothing in front of all "
                              "loops has the batch");
  for (Type tensor : fresh->getResultTypes()) {
    auto type = cast<RankedTensorType>(tensor);
    entry.buffers.push_back(allocateSlices(
        type, first, shardedDim(type, slice->dim), most, entry.count, "state"));
  }
  return success();
}

/// Says of the tokens that a loop carries what they bring, to those inside of
/// the loop or behind it.
LogicalResult Bufferizer::carryTokens(scf::ForOp op, scf::ForOp created,
                                      bool isInside) {
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  for (auto [index, init] : llvm::enumerate(op.getInits())) {
    if (!isa<ring::TokenType>(init.getType()))
      continue;
    Value token = isInside ? Value(op.getRegionIterArg(index))
                           : Value(op.getResult(index));
    if (!mapping.contains(init)) { // a transfer of nothing
      receiving[token] = receiving.lookup(init);
      continue;
    }
    auto start =
        yield.getOperand(index).getDefiningOp<ring::TransferOpInterface>();
    if (!start || start.isGather())
      return op.emitOpError(
          "carries a token that is not that of a shift which "
          "its body starts; wait for it in front of the loop, "
          "or in the turn that starts it");
    Value owner = start.getReceivedOwner();
    if (!op.isDefinedOutsideOfLoop(owner)) {
      auto carried = llvm::find(yield.getOperands(), owner);
      if (carried == yield.getOperands().end())
        return start.emitOpError("is carried to the next turn of its loop, but "
                                 "the owner of what it receives is not");
      unsigned position = std::distance(yield.getOperands().begin(), carried);
      owner = isInside ? Value(op.getRegionIterArg(position))
                       : Value(op.getResult(position));
    }
    auto first = init.getDefiningOp<ring::TransferOpInterface>();
    int64_t count = slots[start].count;
    std::optional<int64_t> last;
    std::optional<int64_t> turns = tripCount(op);
    if (!isInside && (turns || count == 1))
      last = turns ? (*turns + count - 1) % count : 0;
    if (!isInside && !last)
      return start.emitOpError("is carried out of its loop, which needs a "
                               "number of turns that is known");
    arrivals[token] = {start, slots[start].buffers,
                       owner, contents.lookup(map(first.getTensors().front())),
                       count, last};
  }
  return success();
}

/// Which operands the new loop has, and what they begin as: slices are what the
/// loop yields from a transfer.
LogicalResult Bufferizer::chooseCarried(scf::ForOp op,
                                        SmallVectorImpl<bool> &carried,
                                        SmallVectorImpl<Value> &inits) {
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  for (auto [init, yielded] :
       llvm::zip_equal(op.getInits(), yield.getOperands())) {
    bool isSlice = isTensor(init) &&
                   isa_and_nonnull<ring::WaitOp>(yielded.getDefiningOp());
    bool isNothing =
        isa<ring::TokenType>(init.getType()) && !mapping.contains(init);
    carried.push_back(isSlice || (!isTensor(init) && !isNothing));
    if (isSlice)
      inits.push_back(memref::CastOp::create(
          builder, loc, bufferType(cast<RankedTensorType>(init.getType())),
          map(init)));
    else if (isNothing)
      continue;
    else if (!isTensor(init))
      inits.push_back(map(init));
    else if (failed(checkUpdated(op, init)))
      return failure();
  }
  return success();
}

/// Says what stands for the values that a loop carries, inside of it or behind
/// it.
void Bufferizer::mapCarried(scf::ForOp op, ArrayRef<bool> carried,
                            ValueRange values, ValueRange successors) {
  unsigned next = 0;
  for (auto [value, init, isCarried] :
       llvm::zip_equal(values, op.getInits(), carried))
    if (isCarried) {
      Value successor = successors[next++];
      mapping.map(value, successor);
      inherit(map(init), successor);
    } else if (isTensor(init)) {
      mapping.map(value, map(init));
    }
}

/// A loop carries scalars, received slices and tokens; a state or gradient
/// stays in its buffer.
LogicalResult Bufferizer::convert(scf::ForOp op) {
  if (tripCount(op) == 0) {
    for (auto [result, init] : llvm::zip_equal(op.getResults(), op.getInits()))
      mapping.map(result, map(init));
    return success();
  }
  SmallVector<ring::TransferOpInterface> starts(
      op.getBody()->getOps<ring::TransferOpInterface>());
  llvm::erase_if(starts, isVoid);
  bool isOutermost = !loop;
  if (isOutermost)
    outermost = op;
  OpBuilder::InsertionGuard guard(builder);
  int64_t turns = std::min<int64_t>(tripCount(op).value_or(2), 2);
  for (ring::TransferOpInterface start : starts)
    if (failed(makeSlots(op, start, turns)))
      return failure();
  for (Operation &fresh : *op.getBody())
    // A state of other queries is made anew in each turn.
    if (auto step = dyn_cast<ring::StepOpInterface>(fresh);
        step && isFresh(step) && (isGradient(step) || sliceOf(step)) &&
        failed(makeSlots(op, &fresh, turns)))
      return failure();

  SmallVector<bool> carried;
  SmallVector<Value> inits;
  if (failed(chooseCarried(op, carried, inits)))
    return failure();
  auto created =
      scf::ForOp::create(builder, loc, map(op.getLowerBound()),
                         map(op.getUpperBound()), map(op.getStep()), inits);
  if (inits.empty()) // a body with a terminator of its own
    created.getBody()->getTerminator()->erase();
  if (isOutermost)
    newOutermost = created;
  mapping.map(op.getInductionVar(), created.getInductionVar());
  mapCarried(op, carried, op.getRegionIterArgs(), created.getRegionIterArgs());
  if (failed(carryTokens(op, created, /*isInside=*/true)))
    return failure();
  builder.setInsertionPointToStart(created.getBody());
  scf::ForOp outer = std::exchange(loop, op);
  Value outerTurn = turn;
  if (!starts.empty()) {
    Value passed = arith::SubIOp::create(
        builder, loc, created.getInductionVar(), created.getLowerBound());
    turn = arith::DivUIOp::create(builder, loc, passed, created.getStep());
  }
  for (Operation &inner : op.getBody()->without_terminator())
    if (failed(convert(inner)))
      return failure();
  loop = outer;
  turn = outerTurn;
  if (isOutermost)
    newOutermost = {};

  SmallVector<Value> yields;
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  for (auto [argument, init, yielded, isCarried] : llvm::zip_equal(
           op.getRegionIterArgs(), op.getInits(), yield.getOperands(), carried))
    if (isCarried)
      yields.push_back(map(yielded));
    else if (isTensor(init) && map(yielded) != map(init))
      return yield.emitOpError("yields a tensor that is neither the state it "
                               "came in with nor received in this turn, so it "
                               "has no buffer");
  scf::YieldOp::create(builder, loc, yields);
  mapCarried(op, carried, op.getResults(), created.getResults());
  return carryTokens(op, created, /*isInside=*/false);
}

LogicalResult Bufferizer::convert(scf::IfOp op) {
  if (llvm::any_of(op.getResults(), isTensor))
    return op.emitOpError("has tensors as results, which have no buffer of "
                          "their own: select scalars, or give each branch its "
                          "attend with flags");
  OpBuilder::InsertionGuard guard(builder);
  auto created =
      scf::IfOp::create(builder, loc, op.getResultTypes(),
                        map(op.getCondition()), !op.getElseRegion().empty());
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), created->getRegions())) {
    if (from.empty())
      continue;
    to.front().clear();
    builder.setInsertionPointToStart(&to.front());
    if (failed(convertBlock(from.front())))
      return failure();
  }
  mapping.map(op.getResults(), created.getResults());
  return success();
}
