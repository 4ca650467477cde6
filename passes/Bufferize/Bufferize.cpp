//===- Bufferize.cpp - the program of a rank on buffers -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Machine/Slots.h"
#include "passes/Passes.h"
#include "passes/Plan.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferUtils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace burst {
#define GEN_PASS_DEF_BUFFERIZEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

static bool isTensor(Value value) { return isa<TensorType>(value.getType()); }

static bool hasNoElements(Type tensor) {
  return llvm::is_contained(cast<RankedTensorType>(tensor).getShape(), 0);
}

/// Which dimension is dealt of what is made by a slice of which `dim` is: m and
/// l have the queries behind the heads.
static int64_t dealtDim(RankedTensorType type, int64_t dim) {
  return type.getRank() == 3 ? 2 : dim;
}

/// A buffer of a tensor of `type` wherever it lies: only the last stride is
/// known, to be 1.
static MemRefType bufferType(RankedTensorType type) {
  if (type.getRank() == 0)
    return MemRefType::get({}, type.getElementType());
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  strides.back() = 1;
  return MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides));
}

namespace {

/// Where a transfer in a loop receives, turn by turn.
struct Slots {
  SmallVector<Value> buffers; ///< per tensor, with a leading dimension
  int64_t count;              ///< its size
};

/// Positions along a dimension that are dealt to the ranks: how many there are
/// is what the owner holds.
struct Extent {
  int64_t dim;
  ring::LayoutAttr layout;
  Value owner, extent; ///< of the old program
};

/// A transfer that a loop carries: where it puts what it brings.
struct Arrival {
  ring::StartOp start;
  SmallVector<Value> buffers;
  Value owner; ///< of what it brings, in the old program
  ring::Content content;
};

/// Clones one program, with buffers in place of tensors.
class Bufferizer {
public:
  explicit Bufferizer(func::FuncOp program)
      : program(program), builder(program.getContext()) {}

  LogicalResult run();

private:
  LogicalResult convertBlock(Block &block);
  LogicalResult convert(Operation &op);
  LogicalResult convert(ring::StepOpInterface op);
  LogicalResult convert(ring::StartOp op);
  LogicalResult convert(ring::WaitOp op);
  LogicalResult convert(scf::ForOp op);
  LogicalResult convert(scf::IfOp op);
  LogicalResult convert(tensor::GenerateOp op);
  LogicalResult convert(arith::ConstantOp op);
  LogicalResult convert(func::ReturnOp op);
  LogicalResult convertClone(Operation &op);

  LogicalResult checkContent(ring::StepOpInterface op, OpOperand &operand);
  LogicalResult checkUpdated(Operation *op, ValueRange tensors);
  LogicalResult makeSlots(scf::ForOp op, ring::StartOp start, int64_t turns);
  LogicalResult makeSlots(scf::ForOp op, Operation *fresh, int64_t turns);
  SmallVector<Value> madeInSlots(Operation *fresh);
  SmallVector<Value> madeResults(ring::StepOpInterface op);
  Operation *cloneOnBuffers(ring::StepOpInterface op, ValueRange memory);
  LogicalResult carryTokens(scf::ForOp op, scf::ForOp created, bool isInside);
  void separateStates();
  void nameExtent(unsigned result, Value tensor);
  void requireSizes(unsigned result, Value table);
  void requireBatch();
  Value allocate(MemRefType type, ValueRange sizes, StringRef memory);
  Value capacity(ring::LayoutAttr layout, Value extent);
  Value allocateSlices(RankedTensorType type, Value tensor, int64_t dim,
                       Value capacity, int64_t count, StringRef memory);
  Value viewSlot(RankedTensorType type, const Extent &dealt, Value slot,
                 int64_t turns);
  Value received(ring::StartOp op, unsigned index, Value slot, int64_t turns);
  Value made(ring::StepOpInterface op, OpResult tensor, ArrayRef<Value> others);
  Value resultBuffer(Value tensor);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  /// What comes in the place of a buffer holds what that does.
  void inherit(Value buffer, Value successor) {
    contents[successor] = contents.lookup(buffer);
  }
  Value map(Value value) { return mapping.lookup(value); }
  SmallVector<Value> map(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return map(value); });
  }

  func::FuncOp program;
  OpBuilder builder;
  Location loc = program.getLoc();
  /// Scalars to scalars, tensors to buffers.
  IRMapping mapping;
  /// Of the transfers, states and gradients of the loop that is being
  /// converted.
  llvm::DenseMap<Operation *, Slots> slots;
  /// Of tokens that loops carry.
  llvm::DenseMap<Value, Arrival> arrivals;
  /// What transfers under way receive into.
  llvm::DenseMap<Value, SmallVector<Value>> receiving;
  SymbolTableCollection tables;
  /// What buffers hold that are updated in place.
  llvm::DenseMap<Value, ring::Content> contents;
  /// The buffers of the program's results.
  SmallVector<Value> results;
  /// The argument as which what is in a buffer is dealt.
  llvm::DenseMap<Value, BlockArgument> queries;
  scf::ForOp loop; ///< innermost, that of the old program
  Value turn;      ///< its number of the turn, in the new program
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Bufferizer::allocate(MemRefType type, ValueRange sizes,
                           StringRef memory) {
  return tile::AllocateOp::create(builder, loc, type, memory, sizes);
}

/// The result of the program that `tensor`, part of a state or a gradient,
/// turns into; null where it does not.
Value Bufferizer::resultBuffer(Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  auto isReturn = [](OpOperand &use) {
    return isa<func::ReturnOp>(use.getOwner()) && isReturnedInPlace(use);
  };
  while (tensor) {
    auto uses = tensor.getUses();
    auto returned = llvm::find_if(uses, isReturn);
    OpOperand *use = returned != uses.end() ? &*returned : updatingUse(tensor);
    if (!use)
      return {};
    if (!isa<func::ReturnOp>(use->getOwner())) {
      tensor = updated(*use);
      continue;
    }
    Value buffer = results[use->getOperandNumber()];
    bool fits = cast<MemRefType>(buffer.getType()).getElementType() == element;
    return fits ? buffer : Value();
  }
  return {};
}

/// How many positions the largest shard of what a transfer moves has.
Value Bufferizer::capacity(ring::LayoutAttr layout, Value extent) {
  Value zero = constant(0);
  auto most = scf::ForOp::create(
      builder, loc, zero, constant(layout.getParts()), constant(1), zero,
      [&](OpBuilder &at, Location loc, Value owner, ValueRange args) {
        Value count;
        for (int64_t i = 0; i < layout.getNumSegments(); ++i) {
          auto segment =
              ring::SegmentOp::create(at, loc, i, layout, owner, extent);
          count =
              count ? arith::AddIOp::create(at, loc, count, segment.getCount())
                    : Value(segment.getCount());
        }
        Value max = arith::MaxSIOp::create(at, loc, args.front(), count);
        scf::YieldOp::create(at, loc, max);
      });
  return most.getResult(0);
}

/// Buffers for `count` slices of `type` and the sizes of `tensor`, but with
/// `capacity` positions along `dim`.
Value Bufferizer::allocateSlices(RankedTensorType type, Value tensor,
                                 int64_t dim, Value capacity, int64_t count,
                                 StringRef memory) {
  SmallVector<int64_t> shape{count};
  SmallVector<Value> sizes;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    shape.push_back(type.getDimSize(d));
    if (!type.isDynamicDim(d))
      continue;
    sizes.push_back(
        d == dim ? capacity
                 : memref::DimOp::create(builder, loc, map(tensor), constant(d))
                       .getResult());
  }
  return allocate(MemRefType::get(shape, type.getElementType()), sizes, memory);
}

/// The slot of this turn, as large as the owner's shard.
Value Bufferizer::viewSlot(RankedTensorType type, const Extent &dealt,
                           Value slot, int64_t turns) {
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank + 1, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes{builder.getIndexAttr(1)};
  SmallVector<OpFoldResult> strides(rank + 1, builder.getIndexAttr(1));
  if (turns == 2)
    offsets[0] =
        arith::RemUIOp::create(builder, loc, turn, constant(2)).getResult();
  for (int64_t d = 0; d < rank; ++d) {
    if (!type.isDynamicDim(d)) {
      sizes.push_back(builder.getIndexAttr(type.getDimSize(d)));
    } else if (d != dealt.dim) {
      sizes.push_back(
          memref::DimOp::create(builder, loc, slot, d + 1).getResult());
    } else {
      Value count;
      for (int64_t i = 0; i < dealt.layout.getNumSegments(); ++i) {
        auto segment = ring::SegmentOp::create(
            builder, loc, i, dealt.layout, map(dealt.owner), map(dealt.extent));
        count = count ? arith::AddIOp::create(builder, loc, count,
                                              segment.getCount())
                      : Value(segment.getCount());
      }
      sizes.push_back(count);
    }
  }
  auto slots = cast<MemRefType>(slot.getType());
  MemRefType view = memref::SubViewOp::inferRankReducedResultType(
      type.getShape(), slots, offsets, sizes, strides);
  Value slice = memref::SubViewOp::create(builder, loc, view, slot, offsets,
                                          sizes, strides);
  return memref::CastOp::create(builder, loc, bufferType(type), slice);
}

/// What tensor `index` of a transfer is received into.
Value Bufferizer::received(ring::StartOp op, unsigned index, Value slot,
                           int64_t turns) {
  auto token = cast<ring::TokenType>(op.getToken().getType());
  return viewSlot(cast<RankedTensorType>(token.getTypes()[index]),
                  {op.getDims()[index], op.getLayout(), op.getReceivedOwner(),
                   op.getExtent()},
                  slot, turns);
}

/// Memory for a result of a step, but for `others`: that of the result of the
/// program that it becomes, that of the operand it is tied to, or new memory.
Value Bufferizer::made(ring::StepOpInterface op, OpResult tensor,
                       ArrayRef<Value> others) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto sourceOf = [&](int64_t dim) { return op.getSizeSource(tensor, dim); };
  Value like = sourceOf(0).value;
  Value buffer = resultBuffer(tensor);
  if (llvm::is_contained(others, buffer))
    buffer = {};
  auto *result = llvm::find(results, buffer);
  if (buffer && result != results.end())
    requireSizes(std::distance(results.begin(), result), map(like));
  if (OpOperand *tied = op.getTiedOperand(tensor); tied && !buffer) {
    Value memory = map(tied->get());
    if (cast<MemRefType>(memory.getType()).getElementType() ==
        type.getElementType())
      buffer = memory;
  }
  if (!buffer) {
    SmallVector<Value> sizes;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      if (!type.isDynamicDim(d))
        continue;
      ring::SizeSource source = sourceOf(d);
      Value from = map(source.value);
      sizes.push_back(
          isTensor(source.value)
              ? memref::DimOp::create(builder, loc, from, source.dim)
                    .getResult()
              : from);
    }
    buffer = allocate(MemRefType::get(type.getShape(), type.getElementType()),
                      sizes, "state");
  }
  auto argument = dyn_cast<BlockArgument>(like);
  queries[buffer] = argument ? argument : queries.lookup(map(like));
  return buffer;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

static bool isNothing(ValueRange flags) {
  return !flags.empty() && llvm::all_of(flags, [](Value flag) {
    return getConstantIntValue(flag) == 0;
  });
}

LogicalResult Bufferizer::checkContent(ring::StepOpInterface op,
                                       OpOperand &operand) {
  if (!isTensor(operand.get()))
    return success();
  ring::Content wanted = op.getContent(operand.get());
  if (wanted == ring::Content::Data ||
      wanted == contents.lookup(map(operand.get())))
    return success();
  if (wanted == ring::Content::State)
    return op->emitOpError("takes a state that does not come from a ring.init "
                           "of this program; m has another unit outside of it");
  return op->emitOpError("takes a gradient that does not come from a ring.zero "
                         "of this program");
}

/// States and gradients are updated in place: whatever else uses one is done
/// with it, and it is not under way.
LogicalResult Bufferizer::checkUpdated(Operation *op, ValueRange tensors) {
  for (Value tensor : tensors) {
    bool isState = contents.lookup(map(tensor)) == ring::Content::State;
    StringRef what = isState ? "state" : "gradient";
    for (OpOperand &use : tensor.getUses()) {
      Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (user == op)
        continue;
      if (!user || !user->isBeforeInBlock(op))
        return op->emitOpError("updates a ")
                   .append(what, " that is used behind it too; buffers are "
                                 "updated in place")
                   .attachNote(use.getOwner()->getLoc())
               << "used here";
      auto start = dyn_cast<ring::StartOp>(use.getOwner());
      if (!start || isNothing(start.getSendSegments()))
        continue;
      bool isDone =
          llvm::any_of(start.getToken().getUsers(), [&](Operation *waiting) {
            return isa<ring::WaitOp>(waiting) &&
                   waiting->getBlock() == op->getBlock() &&
                   waiting->isBeforeInBlock(op);
          });
      if (!isDone)
        return op->emitOpError("updates a ")
                   .append(what, " that is under way")
                   .attachNote(start.getLoc())
               << "sent here";
    }
  }
  return success();
}

/// Whether a step begins a state or a gradient, of nothing that is one.
static bool isFresh(ring::StepOpInterface op) {
  return op.getResultMemory() && op->getNumResults() != 0 &&
         op.getContent(op->getResult(0)) != ring::Content::Data;
}

static bool isGradient(ring::StepOpInterface op) {
  return op.getContent(op->getResult(0)) == ring::Content::Gradient;
}

/// Fresh states are alike, and cse takes several for one: each state gets its
/// own again, and so does each gradient.
void Bufferizer::separateStates() {
  SmallVector<Operation *> fresh;
  program.walk([&](ring::StepOpInterface op) {
    if (isFresh(op))
      fresh.push_back(op);
  });
  for (Operation *op : fresh) {
    auto groups = updatingUses(op);
    for (ArrayRef<OpOperand *> group : llvm::drop_begin(groups)) {
      Operation *own = OpBuilder(op).clone(*op);
      for (OpOperand *use : group)
        use->set(own->getResult(cast<OpResult>(use->get()).getResultNumber()));
    }
  }
}

/// Buffers of the slice of this turn, of which `fresh` makes something.
SmallVector<Value> Bufferizer::madeInSlots(Operation *fresh) {
  const Slots &entry = slots[fresh];
  OpOperand &slice = *sentOn(fresh);
  auto start = cast<ring::StartOp>(slice.getOwner());
  Extent dealt{start.getDims()[slice.getOperandNumber()], start.getLayout(),
               start.getOwner(), start.getExtent()};
  SmallVector<Value> views;
  for (auto [tensor, buffer] :
       llvm::zip_equal(fresh->getResults(), entry.buffers)) {
    auto type = cast<RankedTensorType>(tensor.getType());
    dealt.dim = dealtDim(type, dealt.dim);
    views.push_back(viewSlot(type, dealt, buffer, entry.count));
  }
  return views;
}

/// Buffers of what a step makes, in no loop that sends it on.
SmallVector<Value> Bufferizer::madeResults(ring::StepOpInterface op) {
  SmallVector<Value> memory;
  for (OpResult result : op->getResults())
    memory.push_back(made(op, result, memory));
  return memory;
}

/// The step on buffers, which writes what it makes to `memory`.
Operation *Bufferizer::cloneOnBuffers(ring::StepOpInterface op,
                                      ValueRange memory) {
  Operation *created = Operation::create(
      loc, op->getName(), TypeRange(), map(op->getOperands()),
      op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
      BlockRange(), op->getNumRegions());
  IRMapping inside;
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), created->getRegions()))
    from.cloneInto(&to, inside);
  builder.insert(created);
  if (!memory.empty())
    cast<ring::StepOpInterface>(created).getResultMemory()->assign(memory);
  return created;
}

LogicalResult Bufferizer::convert(ring::StepOpInterface op) {
  SmallVector<Value> updated;
  for (OpOperand &operand : op->getOpOperands()) {
    if (failed(checkContent(op, operand)))
      return failure();
    if (isTensor(operand.get()) && !op.isOnlyRead(operand))
      updated.push_back(operand.get());
  }
  if (failed(checkUpdated(op, updated)))
    return failure();
  SmallVector<Value> memory;
  if (op.getResultMemory())
    memory = slots.contains(op) ? madeInSlots(op) : madeResults(op);
  cloneOnBuffers(op, memory);
  for (OpResult result : op->getResults()) {
    Value buffer = memory.empty() ? map(op.getTiedOperand(result)->get())
                                  : memory[result.getResultNumber()];
    mapping.map(result, buffer);
    contents[buffer] = op.getContent(result);
  }
  return success();
}

/// The caller's memory for the gradient of a table must be as large as that.
/// How large a shard is the runtime knows.
void Bufferizer::requireSizes(unsigned result, Value table) {
  if (!program.getResultAttr(result, ring::partialAttr))
    return;
  auto type = cast<MemRefType>(results[result].getType());
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.isDynamicDim(d))
      ring::RequireOp::create(
          builder, loc, memref::DimOp::create(builder, loc, results[result], d),
          memref::DimOp::create(builder, loc, table, d),
          ("size of dimension " + Twine(d) + " of result " + Twine(result))
              .str());
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// A transfer of tensors without elements: nothing travels, and memref.subview
/// has no views of nothing.
static bool isVoid(ring::StartOp op) {
  return llvm::any_of(op.getTensors().getTypes(), hasNoElements);
}

LogicalResult Bufferizer::convert(ring::StartOp op) {
  SmallVector<Value> into;
  if (isVoid(op)) {
    for (Value tensor : op.getTensors()) {
      into.push_back(memref::CastOp::create(
          builder, loc, bufferType(cast<RankedTensorType>(tensor.getType())),
          map(tensor)));
      inherit(map(tensor), into.back());
    }
    receiving[op.getToken()] = into;
    return success();
  }
  Slots &entry = slots[op];
  if (entry.buffers.empty()) { // in no loop
    entry.count = 1;
    Value most = capacity(op.getLayout(), map(op.getExtent()));
    for (auto [index, tensor] : llvm::enumerate(op.getTensors()))
      entry.buffers.push_back(
          allocateSlices(cast<RankedTensorType>(tensor.getType()), tensor,
                         op.getDims()[index], most, 1, "slice"));
  }
  for (auto [index, buffer] : llvm::enumerate(entry.buffers)) {
    into.push_back(received(op, index, buffer, entry.count));
    inherit(map(op.getTensors()[index]), into.back());
  }
  auto start = ring::StartOp::create(
      builder, loc, ring::TokenType::get(op.getContext(), {}),
      map(op.getTensors()), map(op.getOwner()), map(op.getExtent()),
      map(op.getTo()), map(op.getSendSegments()), map(op.getReceivedOwner()),
      map(op.getFrom()), map(op.getReceiveSegments()), into, op.getDims(),
      op.getLayout(), op.getChannel());
  mapping.map(op.getToken(), start.getToken());
  receiving[op.getToken()] = into;
  return success();
}

LogicalResult Bufferizer::convert(ring::WaitOp op) {
  auto carried = arrivals.find(op.getToken());
  if (carried != arrivals.end()) {
    const Arrival &arrival = carried->second;
    ring::WaitOp::create(builder, loc, TypeRange(), map(op.getToken()));
    ring::StartOp start = arrival.start;
    for (auto [index, tensor] : llvm::enumerate(op.getTensors())) {
      Value view = viewSlot(cast<RankedTensorType>(tensor.getType()),
                            {start.getDims()[index], start.getLayout(),
                             arrival.owner, start.getExtent()},
                            arrival.buffers[index], 1);
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

/// The buffers lie before the loop: what they depend on must, too.
LogicalResult Bufferizer::makeSlots(scf::ForOp op, ring::StartOp start,
                                    int64_t turns) {
  if (!op.isDefinedOutsideOfLoop(start.getExtent()))
    return start.emitOpError("needs an extent that its loop does not change");
  Slots &entry = slots[start];
  entry.count = std::min(turns, numSlots(start));
  // What is carried into the first turn has come, if it has, where others come.
  auto yield = cast<scf::YieldOp>(op.getBody()->getTerminator());
  auto carried = llvm::find(yield.getOperands(), start.getToken());
  if (carried != yield.getOperands().end()) {
    unsigned position = std::distance(yield.getOperands().begin(), carried);
    auto first = op.getInits()[position].getDefiningOp<ring::StartOp>();
    if (!first || entry.count != 1)
      return start.emitOpError(
          "is carried to the next turn of its loop, so the "
          "transfer of the turn before must come from a "
          "ring.start and be used up in front of it");
    entry.buffers = slots[first].buffers;
    return success();
  }
  Value most = capacity(start.getLayout(), map(start.getExtent()));
  for (auto [index, tensor] : llvm::enumerate(start.getTensors())) {
    // The kind is that of what the loop starts with.
    Value outside = tensor;
    if (auto argument = dyn_cast<BlockArgument>(tensor);
        argument && argument.getOwner() == op.getBody())
      outside = op.getTiedLoopInit(argument)->get();
    auto type = cast<RankedTensorType>(tensor.getType());
    bool isSized =
        llvm::all_of(llvm::seq<int64_t>(0, type.getRank()), [&](int64_t d) {
          return !type.isDynamicDim(d) || d == start.getDims()[index];
        });
    if (!isSized && !op.isDefinedOutsideOfLoop(outside)) {
      // A gradient that is made in this turn has the batch of any.
      outside = start.getReceivedOwner();
      for (Value init : op.getInits())
        if (init.getType() == type)
          outside = init;
      if (!isTensor(outside))
        return start.emitOpError("sends a tensor that is neither carried by "
                                 "its loop nor made before it");
    }
    entry.buffers.push_back(allocateSlices(
        type, outside, start.getDims()[index], most, entry.count, "slice"));
  }
  return success();
}

/// For a state or gradient by a slice that the loop carries and sends on.
LogicalResult Bufferizer::makeSlots(scf::ForOp op, Operation *fresh,
                                    int64_t turns) {
  OpOperand *slice = sentOn(fresh);
  auto start = slice ? cast<ring::StartOp>(slice->getOwner()) : nullptr;
  if (!start || !op.isDefinedOutsideOfLoop(start.getExtent()))
    return fresh->emitOpError("in a loop makes a ")
           << (isGradient(cast<ring::StepOpInterface>(fresh)) ? "gradient by"
                                                              : "state of")
           << " a slice that the loop carries and sends on";
  if (isVoid(start) || llvm::any_of(fresh->getResultTypes(), hasNoElements))
    return success();
  Slots &entry = slots[fresh];
  entry.count = std::min(turns, numSlots(fresh));
  Value most = capacity(start.getLayout(), map(start.getExtent()));
  Value first = op.getTiedLoopInit(cast<BlockArgument>(slice->get()))->get();
  int64_t dim = start.getDims()[slice->getOperandNumber()];
  for (Type tensor : fresh->getResultTypes()) {
    auto type = cast<RankedTensorType>(tensor);
    entry.buffers.push_back(allocateSlices(type, first, dealtDim(type, dim),
                                           most, entry.count, "state"));
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
    auto start = yield.getOperand(index).getDefiningOp<ring::StartOp>();
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
    auto first = init.getDefiningOp<ring::StartOp>();
    arrivals[token] = {start, slots[start].buffers, owner,
                       contents.lookup(map(first.getTensors().front()))};
  }
  return success();
}

/// A loop carries scalars, received slices and tokens; a state or gradient
/// stays in its buffer.
LogicalResult Bufferizer::convert(scf::ForOp op) {
  if (tripCount(op) == 0) {
    for (auto [result, init] : llvm::zip_equal(op.getResults(), op.getInits()))
      mapping.map(result, map(init));
    return success();
  }
  SmallVector<ring::StartOp> starts(op.getBody()->getOps<ring::StartOp>());
  llvm::erase_if(starts, isVoid);
  if (loop && !starts.empty())
    return starts.front().emitOpError(
        "stands in nested loops, where its double buffer has no place yet");
  OpBuilder::InsertionGuard guard(builder);
  int64_t turns = std::min<int64_t>(tripCount(op).value_or(2), 2);
  for (ring::StartOp start : starts)
    if (failed(makeSlots(op, start, turns)))
      return failure();
  for (Operation &fresh : *op.getBody())
    // A state of other queries is made anew in each turn.
    if (auto step = dyn_cast<ring::StepOpInterface>(fresh);
        step && isFresh(step) && (isGradient(step) || sentOn(step)) &&
        failed(makeSlots(op, &fresh, turns)))
      return failure();

  // Slices are what the loop yields from a transfer.
  SmallVector<bool> carried;
  SmallVector<Value> inits;
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
  auto created =
      scf::ForOp::create(builder, loc, map(op.getLowerBound()),
                         map(op.getUpperBound()), map(op.getStep()), inits);
  if (inits.empty()) // a body with a terminator of its own
    created.getBody()->getTerminator()->erase();
  mapping.map(op.getInductionVar(), created.getInductionVar());
  unsigned next = 0;
  for (auto [argument, init, isCarried] :
       llvm::zip_equal(op.getRegionIterArgs(), op.getInits(), carried))
    if (isCarried) {
      Value inside = created.getRegionIterArg(next++);
      mapping.map(argument, inside);
      inherit(map(init), inside);
    } else if (isTensor(init)) {
      mapping.map(argument, map(init));
    }
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

  SmallVector<Value> yields;
  for (auto [argument, init, yielded, isCarried] : llvm::zip_equal(
           op.getRegionIterArgs(), op.getInits(), yield.getOperands(), carried))
    if (isCarried)
      yields.push_back(map(yielded));
    else if (isTensor(init) && map(yielded) != map(init))
      return yield.emitOpError("yields a tensor that is neither the state it "
                               "came in with nor received in this turn, so it "
                               "has no buffer");
  scf::YieldOp::create(builder, loc, yields);
  next = 0;
  for (auto [result, init, isCarried] :
       llvm::zip_equal(op.getResults(), op.getInits(), carried))
    if (isCarried) {
      Value behind = created.getResult(next++);
      mapping.map(result, behind);
      inherit(map(init), behind);
    } else if (isTensor(init)) {
      mapping.map(result, map(init));
    }
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

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

LogicalResult Bufferizer::convert(tensor::GenerateOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Value buffer =
      allocate(MemRefType::get(type.getShape(), type.getElementType()),
               map(op.getDynamicExtents()), "schedule");
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> indices;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    Value size = memref::DimOp::create(builder, loc, buffer, constant(d));
    auto loop =
        scf::ForOp::create(builder, loc, constant(0), size, constant(1));
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  mapping.map(op.getBody().getArguments(), indices);
  for (Operation &inner : op.getBody().front().without_terminator())
    if (failed(convert(inner)))
      return failure();
  auto yield = cast<tensor::YieldOp>(op.getBody().front().getTerminator());
  memref::StoreOp::create(builder, loc, map(yield.getValue()), buffer, indices);
  mapping.map(op.getResult(), buffer);
  return success();
}

LogicalResult Bufferizer::convert(arith::ConstantOp op) {
  if (!isTensor(op.getResult()))
    return convertClone(*op);
  OpBuilder::InsertionGuard guard(builder);
  FailureOr<memref::GlobalOp> global =
      bufferization::getGlobalFor(op, tables, 64);
  if (failed(global))
    return op.emitOpError("has no constant buffer");
  mapping.map(op.getResult(),
              memref::GetGlobalOp::create(builder, loc, global->getType(),
                                          global->getName())
                  .getResult());
  return success();
}

/// What is dealt has one batch: nobody knows that of the caller's memory where
/// the types leave it open.
void Bufferizer::requireBatch() {
  SmallVector<std::pair<Value, std::string>> dealt;
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    if (program.getArgAttr(i, ring::shardAttr))
      dealt.push_back({map(program.getArgument(i)), argumentName(program, i)});
  for (unsigned i = 0; i < results.size(); ++i)
    if (program.getResultAttr(i, ring::shardAttr))
      dealt.push_back({results[i], ("result " + Twine(i)).str()});
  if (llvm::none_of(dealt, [](const auto &each) {
        return cast<MemRefType>(each.first.getType()).isDynamicDim(0);
      }))
    return;
  auto batchOf = [&](Value buffer) -> Value {
    return memref::DimOp::create(builder, loc, buffer, 0);
  };
  Value first = batchOf(dealt.front().first);
  std::string whose = "batch of " + dealt.front().second;
  for (const auto &[buffer, name] : ArrayRef(dealt).drop_front()) {
    Value batch = batchOf(buffer);
    ring::RequireOp::create(builder, loc, batch, first, "batch of " + name);
    ring::RequireOp::create(builder, loc, first, batch, whose);
  }
}

/// A result is dealt as its queries are: what carries their size carries its.
void Bufferizer::nameExtent(unsigned result, Value tensor) {
  auto created = cast<func::FuncOp>(builder.getBlock()->getParentOp());
  BlockArgument query = queries.lookup(map(tensor));
  auto shard =
      program.getResultAttrOfType<ring::ShardAttr>(result, ring::shardAttr);
  if (!query || !shard || !ShapedType::isDynamic(shard.getExtent()))
    return;
  for (unsigned i = 0; i < program.getNumArguments(); ++i) {
    auto extent =
        created.getArgAttrOfType<DenseI64ArrayAttr>(i, ring::extentAttr);
    for (int64_t p = 0; extent && p < extent.size(); p += 2) {
      if (extent[p] != query.getArgNumber() || extent[p + 1] != 1)
        continue;
      SmallVector<int64_t> pairs(extent.asArrayRef());
      pairs.push_back(program.getNumArguments() + result);
      pairs.push_back(shard.getDim());
      created.setArgAttr(i, ring::extentAttr,
                         builder.getDenseI64ArrayAttr(pairs));
      return;
    }
  }
}

LogicalResult Bufferizer::convert(func::ReturnOp op) {
  for (auto [index, tensor] : llvm::enumerate(op.getOperands())) {
    if (contents.lookup(map(tensor)) == ring::Content::State)
      return op.emitOpError("returns a state, in which m has another unit than "
                            "outside; finalize it first");
    nameExtent(index, tensor);
    if (map(tensor) == results[index])
      continue;
    requireSizes(index, map(tensor));
    memref::CopyOp::create(builder, loc, map(tensor), results[index]);
  }
  func::ReturnOp::create(builder, loc);
  return success();
}

LogicalResult Bufferizer::convertClone(Operation &op) {
  auto isAnyTensor = [](Value value) { return isTensor(value); };
  if (llvm::any_of(op.getOperands(), isAnyTensor) ||
      llvm::any_of(op.getResults(), isAnyTensor))
    return op.emitOpError("works on tensors and has no form on buffers");
  if (op.getNumRegions() != 0)
    return op.emitOpError("has regions and no form on buffers");
  builder.clone(op, mapping);
  return success();
}

LogicalResult Bufferizer::convert(Operation &op) {
  loc = op.getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<ring::StepOpInterface, ring::StartOp, ring::WaitOp, scf::ForOp,
            scf::IfOp, tensor::GenerateOp, arith::ConstantOp, func::ReturnOp>(
          [&](auto op) { return convert(op); })
      .Case<tensor::DimOp>([&](tensor::DimOp op) {
        mapping.map(op.getResult(),
                    memref::DimOp::create(builder, loc, map(op.getSource()),
                                          map(op.getIndex()))
                        .getResult());
        return success();
      })
      .Case<tensor::ExtractOp>([&](tensor::ExtractOp op) {
        mapping.map(op.getResult(),
                    memref::LoadOp::create(builder, loc, map(op.getTensor()),
                                           map(op.getIndices()))
                        .getResult());
        return success();
      })
      .Case<tensor::CastOp>([&](tensor::CastOp op) {
        mapping.map(op.getResult(), map(op.getSource()));
        return success();
      })
      .Case<TableRangeOp>([&](TableRangeOp op) {
        builder.clone(*op, mapping);
        return success();
      })
      .Case<func::CallOp>([&](func::CallOp op) {
        return op.emitOpError("stands in the program of a rank; run inline "
                              "before ring-bufferize");
      })
      .Default([&](Operation *op) { return convertClone(*op); });
}

LogicalResult Bufferizer::convertBlock(Block &block) {
  for (Operation &op : block) {
    if (isa<scf::YieldOp>(op))
      scf::YieldOp::create(builder, op.getLoc(), map(op.getOperands()));
    else if (failed(convert(op)))
      return failure();
  }
  return success();
}

LogicalResult Bufferizer::run() {
  if (!program.getBody().hasOneBlock())
    return program.emitOpError("must have one block to be put on buffers");
  separateStates();
  Block &body = program.getBody().front();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  auto add = [&](Type type, DictionaryAttr dictionary, bool isResult) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    types.push_back(tensor ? bufferType(tensor) : type);
    NamedAttrList list(dictionary);
    if (isResult)
      list.append(ring::resultAttr, builder.getUnitAttr());
    attributes.push_back(list.getDictionary(builder.getContext()));
    return tensor || !isResult;
  };
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes()))
    (void)add(type, program.getArgAttrDict(index), false);
  for (auto [index, type] : llvm::enumerate(program.getResultTypes()))
    if (!add(type, program.getResultAttrDict(index), true))
      return program.emitOpError("returns a ")
             << type << "; results of a program are tensors";

  auto empty = ArrayRef<NamedAttribute>();
  builder.setInsertionPoint(program);
  auto created = func::FuncOp::create(
      builder, program.getLoc(), program.getName(),
      builder.getFunctionType(types, {}), empty, attributes);
  created->setAttr(ring::gridAttr, program->getAttr(ring::gridAttr));
  if (Attribute shape = program->getAttr(tile::shapeAttr))
    created->setAttr(tile::shapeAttr, shape);
  Block *entry = created.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  auto arguments = entry->getArguments();
  mapping.map(body.getArguments(),
              arguments.take_front(body.getNumArguments()));
  llvm::append_range(results, arguments.drop_front(body.getNumArguments()));
  loc = program.getLoc();
  requireBatch();
  if (failed(convertBlock(body))) {
    created.erase();
    return failure();
  }
  program.erase();
  return success();
}

namespace {
struct Bufferize : burst::impl::BufferizePassBase<Bufferize> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(Bufferizer(program).run()))
        return signalPassFailure();
  }
};
} // namespace
