//===- Labels.cpp - what the tensors of a program are ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Labels.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace burst;
using namespace burst::proof;

bool Label::isLike(const Label &other) const {
  return tensor == other.tensor && layout == other.layout && dim == other.dim &&
         extent == other.extent && table == other.table &&
         isRounded == other.isRounded && out == other.out &&
         lseGrad == other.lseGrad;
}

bool burst::proof::isPartialResult(const Label &label) {
  return label.isOf(Made::Gradient) || label.isOf(Made::O) ||
         label.isOf(Made::M) || label.isOf(Made::L);
}

Labels::Labels(func::FuncOp program, Places &places)
    : program(program), places(places), headGroups(ring::headGroups(program)) {
  visitArguments();
  // An attention is known of what a loop carries when its body was seen.
  do {
    hasChanged = false;
    visit(program.getBody().front());
  } while (hasChanged && !places.getReason());
}

Label Labels::of(Value tensor) const {
  auto found = labels.find(tensor);
  return found == labels.end() || found->second.empty() ? Label()
                                                        : found->second.front();
}

Extent Labels::extentOf(Value value) const {
  IntegerAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return {.number = number.getInt()};
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &program.getBody().front())
    places.refuse(program,
                  "an extent that is neither a number nor an argument");
  return {.argument = value};
}

bool Labels::unify(Label &into, const Label &from) {
  auto isOther = [](int x, int y) { return x >= 0 && y >= 0 && x != y; };
  if (!into.isLike(from) || isOther(into.attention, from.attention) ||
      isOther(into.place, from.place))
    return false;
  into.attention = std::max(into.attention, from.attention);
  into.place = std::max(into.place, from.place);
  for (int other : from.others)
    if (!into.isOfAttention(other))
      into.others.push_back(other);
  return true;
}

void Labels::give(Value value, const Label &label, unsigned index) {
  SmallVector<Label, 1> &known = labels[value];
  if (known.size() <= index) {
    hasChanged = true;
    known.resize(index + 1);
    known[index] = label;
    return;
  }
  int before = known[index].attention;
  size_t others = known[index].others.size();
  if (!unify(known[index], label))
    fail(value.getDefiningOp() ? value.getDefiningOp() : program,
         "a tensor that is not always of the same argument, sharding and "
         "attention");
  hasChanged |=
      known[index].attention != before || known[index].others.size() != others;
}

bool Labels::hasSharding(const Label &label, ring::LayoutAttr layout,
                         int64_t dim, const Extent &extent) const {
  return label.layout == layout && label.dim == dim && label.extent == extent;
}

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

void Labels::visitArguments() {
  DenseMap<std::pair<int64_t, int64_t>, Value> extents;
  for (BlockArgument argument : program.getArguments())
    if (auto of = program.getArgAttrOfType<DenseI64ArrayAttr>(
            argument.getArgNumber(), ring::extentAttr))
      for (int64_t i = 0; i + 1 < of.size(); i += 2)
        extents[{of[i], of[i + 1]}] = argument;
  for (BlockArgument argument : program.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto shard =
        program.getArgAttrOfType<ring::ShardAttr>(number, ring::shardAttr);
    if (!shard)
      continue;
    Label label;
    label.tensor = number;
    label.layout = shard.getLayout();
    label.dim = shard.getDim();
    label.extent.number = shard.getExtent();
    if (ShapedType::isDynamic(shard.getExtent()))
      label.extent = {.argument = extents.lookup({number, shard.getDim()})};
    give(argument, label);
  }
}

static int64_t headsOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getRank() < 3 ? 0 : type.getDimSize(ring::headsDimOf(type));
}

/// Of what all-to-alls brought: ranks share no heads of queries, and what each
/// made for a head of keys that it shares was added.
bool Labels::hasAllHeads(Value result, const Label &label) const {
  return ring::shardingOf(program).exchanged.size == 1 ||
         headsOf(result) == headsOfArgument(whatIsMade(label.tensor).first);
}

int64_t Labels::headsOfArgument(int number) const {
  HeadChunk of = chunkOf(number);
  return headsOf(program.getArgument(of.argument)) / of.count;
}

int64_t Labels::groupsOf(int number) const {
  return headGroups[chunkOf(number).argument];
}

bool Labels::haveSameHeads(int x, int y) const {
  return headsOfArgument(x) == headsOfArgument(y) && groupsOf(x) == groupsOf(y);
}

ExchangedHeads Labels::exchangedHeads(int argument, Value shard) const {
  return {headsOfArgument(argument), headsOf(shard), groupsOf(argument)};
}

/// Queries of a chunk of heads meet rows of it, and keys as mayMeetKeys says.
bool Labels::isOfChunk(const Label &query, const Label &other,
                       bool isOfKeys) const {
  if (!isOfKeys)
    return areOfOneChunk(query.tensor, other.tensor) &&
           haveSameHeads(query.tensor, other.tensor);
  return mayMeetKeys(
      query.tensor, headsOfArgument(chunkOf(query.tensor).argument),
      other.tensor, headsOfArgument(chunkOf(other.tensor).argument));
}

void Labels::visitReturn(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Label label = of(operand.get());
    unsigned number = operand.getOperandNumber();
    bool isPartial =
        static_cast<bool>(program.getResultAttr(number, ring::partialAttr));
    bool isGradient = label.isOf(Made::Gradient) || label.table;
    if (!isGradient && !label.isResult())
      return fail(op, "returns what is no result of an attention");
    if (label.attention < 0)
      return fail(op, "returns what has attended nothing");
    bool isJoined = operand.get().getDefiningOp<ring::JoinHeadsOp>();
    if (!isJoined && !label.table && chunkOf(label.tensor).count != 1)
      return fail(op, "returns a chunk of heads");
    if (isGradient && !isJoined && !hasAllChunks(label))
      return fail(op,
                  "returns a gradient to which not all chunks of heads add");
    if (static_cast<bool>(label.table) != isPartial)
      return fail(op,
                  "returns a gradient by a table that is no partial result");
    if (isPartial)
      continue;
    auto shard =
        program.getResultAttrOfType<ring::ShardAttr>(number, ring::shardAttr);
    if (!shard || shard.getLayout() != label.layout ||
        shard.getDim() != label.dim ||
        (!ShapedType::isDynamic(shard.getExtent()) &&
         shard.getExtent() != label.extent.number))
      return fail(op, "returns what is sharded in another way than it says");
    if (!hasAllHeads(operand.get(), label))
      return fail(op, "returns other heads than those of the argument");
  }
}

//===----------------------------------------------------------------------===//
// Control flow and transfers
//===----------------------------------------------------------------------===//

/// Whether a value is the same on all ranks.
bool Labels::isUniform(Value value) {
  if (auto found = uniform.find(value); found != uniform.end())
    return found->second;
  bool made = isMadeUniform(value);
  return uniform[value] = made;
}

bool Labels::isMadeUniform(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == &program.getBody().front() &&
           of(argument).tensor == -1;
  Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    auto shard = dyn_cast<BlockArgument>(dim.getSource());
    return shard && shard.getOwner() == &program.getBody().front() &&
           dim.getConstantIndex() &&
           (of(shard).tensor == -1 || dim.getConstantIndex() != of(shard).dim);
  }
  return isa<arith::ConstantOp, func::CallOp, arith::AddIOp, arith::SubIOp,
             arith::MulIOp, arith::MaxSIOp, arith::MinSIOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isUniform(operand); });
}

void Labels::visit(Block &block) {
  for (Operation &op : block) {
    if (places.getReason())
      return;
    visit(&op);
  }
}

/// What computes tables and scalars, the same on all ranks of the same.
static bool isScalarCode(Operation *op) {
  return isa<arith::ArithDialect, tensor::TensorDialect>(op->getDialect());
}

void Labels::visit(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visit(loop);
  if (auto start = dyn_cast<ring::TransferOpInterface>(op))
    return visit(start);
  if (auto wait = dyn_cast<ring::WaitOp>(op)) {
    SmallVector<Label, 1> received = labels[wait.getToken()];
    if (received.size() != wait->getNumResults())
      return fail(op, "waits for a transfer that is not known");
    for (auto [result, label] : llvm::zip_equal(wait->getResults(), received))
      give(result, label);
    return;
  }
  if (auto step = dyn_cast<ProvedOpInterface>(op)) {
    // Its regions compute elements, and send nothing.
    op->walk([&](Operation *inner) {
      if (inner != op &&
          isa<ring::TransferOpInterface, ring::WaitOp, ProvedOpInterface>(
              inner))
        fail(inner, "an op of a rank in the region of another one");
    });
    StepMeaning meaning = step.describe();
    return std::visit([&](const auto &what) { visit(what, op); }, meaning);
  }
  if (isa<func::ReturnOp>(op))
    return visitReturn(op);
  auto grid = program->getAttrOfType<FlatSymbolRefAttr>(ring::gridAttr);
  auto isOther = [&](auto asked) {
    return asked && asked.getGrid() != grid.getValue();
  };
  if (isOther(dyn_cast<shard::ProcessMultiIndexOp>(op)) ||
      isOther(dyn_cast<shard::GridShapeOp>(op)))
    return fail(op, "asks for the rank in another grid");
  if (auto call = dyn_cast<func::CallOp>(op))
    return visit(call);
  if (isa<scf::YieldOp>(op))
    return;
  // What computes tables and scalars, and takes no shard.
  op->walk([&](Operation *inner) {
    if (!isScalarCode(inner) &&
        !isa<shard::ProcessMultiIndexOp, shard::GridShapeOp, ring::RequireOp>(
            inner))
      fail(inner, "an op of which a proof knows no meaning");
    bool readsShard = llvm::any_of(inner->getOperands(), [&](Value operand) {
      return of(operand).tensor != -1 || of(operand).table;
    });
    if (readsShard && !isa<tensor::DimOp>(inner))
      fail(inner, "computes with a shard");
  });
  // Asked in the order of the program, so that nothing is asked in depth.
  for (Value result : op->getResults())
    isUniform(result);
}

/// What a function gives is the same on all ranks.
void Labels::visit(func::CallOp call) {
  func::FuncOp callee = calleeOf(call);
  if (!callee || callee.isExternal())
    return fail(call, "calls a function without a body");
  // It may end the program, and has no result by which that is seen.
  if (call.getNumResults() == 0)
    return fail(call, "calls a function that gives nothing");
  // No op that may tell one rank from another.
  WalkResult scalars = callee.walk([](Operation *op) {
    bool isKnown =
        isScalarCode(op) || isa<scf::SCFDialect>(op->getDialect()) ||
        isa<func::FuncOp, func::ReturnOp, ring::SegmentOp, TableRangeOp>(op);
    return isKnown ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (scalars.wasInterrupted() ||
      !llvm::all_of(call.getOperands(),
                    [&](Value operand) { return isUniform(operand); }))
    fail(call, "calls a function of what ranks may not have in common");
}

void Labels::visit(scf::ForOp loop) {
  scf::ForOp outer = loopAround(loop);
  bool isInner = places.getNest() && outer && outer->getParentOp() == program;
  if (loop->getParentOp() != program && !isInner)
    return fail(loop, "a loop inside of another one that is no nest of rings");
  for (auto [argument, init] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    for (auto [index, label] :
         llvm::enumerate(SmallVector<Label, 1>(labels.lookup(init))))
      give(argument, label, index);
  visit(*loop.getBody());
  for (auto [argument, yielded, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues(),
                       loop.getResults())) {
    SmallVector<Label, 1> made = labels.lookup(yielded);
    if (made.size() != labels.lookup(argument).size())
      return fail(loop, "carries a tensor that is not known");
    for (auto [index, label] : llvm::enumerate(made)) {
      give(argument, label, index);
      give(result, label, index);
    }
  }
}

void Labels::visit(ring::TransferOpInterface start) {
  Extent extent = extentOf(start.getExtent());
  if (start.getChannel().getGrid() !=
      program->getAttrOfType<FlatSymbolRefAttr>(ring::gridAttr))
    return fail(start, "a channel of another grid");
  if (start.isAllToAll())
    return visitAllToAll(start, extent);
  RankGroup group = ring::groupOf(program, start.getChannel().getAxes());
  const std::optional<Nest> &nest = places.getNest();
  bool isOfNest = nest && (group == nest->outer || group == nest->inner);
  if (group != ring::shardingOf(program).sequence && !isOfNest)
    return fail(start, "a channel of other axes than those of the sequence");
  for (auto [index, tensor, dim] :
       llvm::enumerate(start.getTensors(), start.getDims())) {
    Label label = of(tensor);
    if (label.tensor == -1)
      return fail(start, "sends a tensor that is no shard of an argument");
    if (!hasSharding(label, start.getLayout(), dim, extent))
      return fail(start, "sends what is laid out in another way");
    if (!hasRoom(start, index, extent))
      return fail(start, "receives into what has another size");
    Label received = label;
    received.layout = start.getReceivedLayout();
    give(start.getToken(), received, index);
  }
}

/// Arguments come in an all-to-all, and results go back. All ranks of a group
/// come to it in the same order, in front of or behind all loops; each gets its
/// part by its place, so that there is nothing to name but this rank.
void Labels::visitAllToAll(ring::TransferOpInterface start,
                           const Extent &extent) {
  ring::Sharding sharding = ring::shardingOf(program);
  if (start->getParentOp() != program)
    return fail(start, "an all_to_all in a loop");
  if (ring::matchPlace(program, start.getOwner()) != sharding.whole)
    return fail(start, "an all_to_all of another rank's shard");
  if (ring::groupOf(program, start.getChannel().getAxes()) !=
      sharding.exchanged)
    return fail(start, "an all_to_all along other axes");
  bool toHeads = start.getRoute() == ring::Route::ToHeads;
  auto types = start.getToken().getType().getTypes();
  for (auto [index, tensor, dim] :
       llvm::enumerate(start.getTensors(), start.getDims())) {
    Label label = of(tensor);
    bool isResult = label.isResult() || label.isOf(Made::Gradient);
    bool mayGo = toHeads ? label.tensor >= 0
                         : isResult && label.attention >= 0 && !label.table;
    if (!mayGo)
      return fail(start, "exchanges what is neither an argument nor a result "
                         "of an attention");
    if (static_cast<int64_t>(start.getGroups()) !=
        groupsOf(toHeads ? label.tensor : whatIsMade(label.tensor).first))
      return fail(start, "exchanges heads in other groups than those in which "
                         "they came");
    if (!hasSharding(label, start.getSentLayout(), dim, extent))
      return fail(start, "sends what is laid out in another way");
    label.layout = start.getReceivedLayout();
    int64_t size = index < types.size()
                       ? cast<RankedTensorType>(types[index]).getDimSize(dim)
                       : 0;
    if (!ShapedType::isDynamic(size) &&
        extent.number != size * label.layout.getParts())
      return fail(start, "receives into what has another size");
    give(start.getToken(), label, index);
  }
}

/// Whether what a transfer brings has the size that its type says, where it
/// says one along the dimension that is sharded.
bool Labels::hasRoom(ring::TransferOpInterface start, unsigned index,
                     const Extent &extent) const {
  auto sent = cast<RankedTensorType>(start.getTensors()[index].getType());
  auto types = cast<ring::TokenType>(start.getToken().getType()).getTypes();
  if (index >= types.size())
    return false;
  auto received = cast<RankedTensorType>(types[index]);
  int64_t dim = start.getDims()[index], size = received.getDimSize(dim);
  if (ShapedType::isDynamic(size))
    return true;
  int64_t parts = start.getLayout().getParts();
  if (start.isGather())
    return size == extent.number;
  if (start.getLayout().getAll())
    return extent.number == size * parts;
  return size == sent.getDimSize(dim);
}

SmallVector<ring::TransferOpInterface> Labels::transfersOf(Value token) const {
  SmallVector<ring::TransferOpInterface> found;
  auto add = [&](Value other) {
    if (auto start = other.getDefiningOp<ring::TransferOpInterface>())
      found.push_back(start);
    else
      places.refuse(token.getParentRegion()->getParentOp(),
                    "a transfer that is not waited for in the turn behind it");
  };
  auto ofLoop = [&](scf::ForOp loop, unsigned number) {
    add(loop.getYieldedValues()[number]);
    add(loop.getInitArgs()[number]);
  };
  if (auto argument = dyn_cast<BlockArgument>(token))
    ofLoop(cast<scf::ForOp>(argument.getOwner()->getParentOp()),
           argument.getArgNumber() - 1);
  else if (auto loop = token.getDefiningOp<scf::ForOp>())
    ofLoop(loop, cast<OpResult>(token).getResultNumber());
  else
    add(token);
  return found;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

bool Labels::isState(ValueRange state) const {
  SmallVector<StateParts> assumed;
  return state.size() == 3 && isState({state[0], state[1], state[2]}, assumed);
}

/// o, m and l, where a step makes a state.
static ValueRange stateMadeBy(ProvedOpInterface step) {
  StepMeaning meaning = step.describe();
  if (auto *init = std::get_if<Init>(&meaning))
    return init->state;
  if (auto *attended = std::get_if<Attended>(&meaning))
    return attended->op.isLast() ? ValueRange() : attended->made;
  if (auto *joined = std::get_if<Joined>(&meaning))
    return joined->made.size() == 3 ? joined->made : ValueRange();
  return {};
}

/// Whether these are o, m and l of one state: an op made all three, a transfer
/// brought them, or a loop carries them side by side.
bool Labels::isState(ArrayRef<Value> state,
                     SmallVectorImpl<StateParts> &assumed) const {
  StateParts parts = {state[0], state[1], state[2]};
  if (llvm::is_contained(assumed, parts))
    return true;
  auto pick = [&](ValueRange values, unsigned first, unsigned offset) {
    SmallVector<Value> picked;
    for (Value part : state) {
      unsigned number = isa<BlockArgument>(part)
                            ? cast<BlockArgument>(part).getArgNumber()
                            : cast<OpResult>(part).getResultNumber();
      picked.push_back(values[number - offset + first]);
    }
    return picked;
  };
  auto isCarried = [&](scf::ForOp loop, unsigned offset) {
    assumed.push_back(parts);
    return isState(pick(loop.getInitArgs(), 0, offset), assumed) &&
           isState(pick(loop.getYieldedValues(), 0, offset), assumed);
  };
  if (auto argument = dyn_cast<BlockArgument>(state[0])) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    bool isOne = loop && llvm::all_of(state, [&](Value part) {
                   auto other = dyn_cast<BlockArgument>(part);
                   return other && other.getOwner() == argument.getOwner();
                 });
    return isOne && isCarried(loop, 1);
  }
  Operation *op = state[0].getDefiningOp();
  if (!llvm::all_of(state,
                    [&](Value part) { return part.getDefiningOp() == op; }))
    return false;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return isCarried(loop, 0);
  if (auto wait = dyn_cast<ring::WaitOp>(op))
    return llvm::all_of(
        transfersOf(wait.getToken()), [&](ring::TransferOpInterface start) {
          return isState(pick(start.getTensors(), 0, 0), assumed);
        });
  auto step = dyn_cast<ProvedOpInterface>(op);
  return step && llvm::equal(stateMadeBy(step), state);
}

/// The parts of what is made of a state, by their place.
static constexpr std::array<std::pair<Made, int64_t>, 3> partsOfState{
    {{Made::O, 1}, {Made::M, 2}, {Made::L, 2}}};
static constexpr std::array<std::pair<Made, int64_t>, 3> partsOfResult{
    {{Made::Out, 1}, {Made::Lse, 2}, {Made::MaxScores, 2}}};

/// What is made for queries, along `dim`.
static Label madeOf(const Label &query, Made what, int64_t dim) {
  Label made;
  made.tensor = madeFor(query.tensor, what);
  made.layout = query.layout;
  made.dim = dim;
  made.extent = query.extent;
  return made;
}

void Labels::visit(const Init &init, Operation *op) {
  Label query = of(init.query);
  if (query.tensor < 0)
    return fail(op, "a state of what is no shard of an argument");
  for (auto [part, what] : llvm::zip_equal(init.state, partsOfState))
    give(part, madeOf(query, what.first, what.second));
}

void Labels::visit(const Attended &attended, Operation *op) {
  Label query = of(attended.op.getQuery());
  int attention = join(attended.op, attended.key, attended.value);
  if (attention < 0)
    return;
  bool isFirst = attended.state.empty();
  if (!isFirst) {
    Label o = of(attended.state[0]);
    if (!isState(attended.state) || !o.isLike(madeOf(query, Made::O, 1)) ||
        (o.attention >= 0 && o.attention != attention))
      return fail(op, "a state of other queries, or of another attention");
  }
  auto give = [&](auto &parts) {
    for (auto [part, what] : llvm::zip(attended.made, parts)) {
      Label made = madeOf(query, what.first, what.second);
      made.attention = attention;
      this->give(part, made);
    }
  };
  if (attended.op.isLast())
    give(partsOfResult);
  else
    give(partsOfState);
}

void Labels::visit(const Finalized &finalized, Operation *op) {
  Label o = of(finalized.state[0]);
  if (!isState(finalized.state) || !o.isOf(Made::O))
    return fail(op, "o, m and l are not those of one state");
  Label query = o;
  query.tensor = whatIsMade(o.tensor).first;
  for (auto [result, what] : llvm::zip(finalized.results, partsOfResult)) {
    Label made = madeOf(query, what.first, what.second);
    made.attention = o.attention;
    give(result, made);
  }
}

void Labels::visit(const Joined &joined, Operation *op) {
  Extent extent = extentOf(joined.extent);
  bool isOfState = joined.into.size() == 3;
  for (size_t i = 0; i < joined.into.size(); ++i) {
    Label label = of(joined.into[i]);
    for (const Joined::Part &part : joined.parts) {
      if (isOfState ? !isState(joined.into) || !isState(part.from)
                    : !label.isOf(Made::Gradient))
        return fail(op, "joins what are no partial results of one kind");
      if (label.isRounded || !unify(label, of(part.from[i])))
        return fail(op, "joins partial results of different attentions");
    }
    int64_t dim = isOfState ? partsOfState[i].second : 1;
    if (!hasSharding(label, joined.layout, dim, extent))
      return fail(op, "joins what is laid out in another way");
    give(joined.made[i], label);
  }
}

//===----------------------------------------------------------------------===//
// Attentions
//===----------------------------------------------------------------------===//

static bool areEquivalent(Region &x, Region &y) {
  return OperationEquivalence::isRegionEquivalentTo(
      &x, &y, OperationEquivalence::IgnoreLocations);
}

/// An argument that is no shard, or a constant.
bool Labels::isSameOnAllRanks(Value capture) const {
  if (matchPattern(capture, m_Constant()))
    return true;
  auto argument = dyn_cast<BlockArgument>(capture);
  return argument && argument.getOwner() == &program.getBody().front() &&
         of(argument).tensor == -1;
}

/// Whether two ops ask the same of the arguments that they attend with, but for
/// masks and scores.
bool Labels::asksAlike(ring::AttendLikeOpInterface x,
                       ring::AttendLikeOpInterface y) const {
  return x.getQueryLayout().ofPart() == y.getQueryLayout().ofPart() &&
         x.getKeyLayout().ofPart() == y.getKeyLayout().ofPart() &&
         extentOf(x.getQueryExtent()) == extentOf(y.getQueryExtent()) &&
         extentOf(x.getKeyExtent()) == extentOf(y.getKeyExtent()) &&
         x.getScale().bitwiseIsEqual(y.getScale()) &&
         llvm::equal(x.getMaskCaptures(), y.getMaskCaptures()) &&
         llvm::equal(x.getScoreCaptures(), y.getScoreCaptures());
}

bool Labels::asksSame(ring::AttendLikeOpInterface x,
                      ring::AttendLikeOpInterface y) const {
  return x == y ||
         (asksAlike(x, y) && areEquivalent(x.getMask(), y.getMask()) &&
          areEquivalent(x.getScore(), y.getScore()) &&
          areEquivalent(x.getBounds(), y.getBounds()));
}

/// Whether `value` is how many of what is along `dim`, of which a rank has
/// `size`, all `ranks` have.
static bool isOfAll(Value value, int64_t size, int64_t dim, int64_t ranks,
                    func::FuncOp program) {
  if (!ShapedType::isDynamic(size))
    return getConstantIntValue(value) == size * ranks;
  if (auto product = value.getDefiningOp<arith::MulIOp>();
      product && ranks != 1)
    return getConstantIntValue(product.getRhs()) == ranks &&
           isOfAll(product.getLhs(), size, dim, 1, program);
  auto found = value.getDefiningOp<tensor::DimOp>();
  auto argument =
      found ? dyn_cast<BlockArgument>(found.getSource()) : BlockArgument();
  return ranks == 1 && argument &&
         argument.getOwner() == &program.getBody().front() &&
         program.getArgAttr(argument.getArgNumber(), ring::shardAttr) &&
         found.getConstantIndex() == dim;
}

/// Whether `axes` are those of one group, and behind them those of another one.
static bool areAxesOf(ArrayRef<int64_t> axes, const RankGroup &group,
                      const RankGroup &behind, func::FuncOp program) {
  auto are = [&](ArrayRef<int64_t> some, const RankGroup &wanted) {
    return some.empty() ? wanted.size == 1
                        : ring::groupAlong(program, some) == wanted;
  };
  return llvm::any_of(llvm::seq<size_t>(0, axes.size() + 1), [&](size_t split) {
    return are(axes.take_front(split), group) &&
           are(axes.drop_front(split), behind);
  });
}

/// Whether `value` is where what a rank of the groups, of which the second cuts
/// what the first has, has along `dim` begins.
static bool isFirst(Value value, const RankGroup &group,
                    const RankGroup &behind, int64_t size, int64_t dim,
                    func::FuncOp program) {
  if ((group.size * behind.size == 1 || size == 0) &&
      getConstantIntValue(value) == 0)
    return true;
  auto isPlace = [&](Value place) {
    std::optional<SmallVector<int64_t>> axes = ring::matchAxes(program, place);
    return axes && areAxesOf(*axes, group, behind, program);
  };
  auto product = value.getDefiningOp<arith::MulIOp>();
  if (!product) // by one, which folds
    return size == 1 && isPlace(value);
  return isPlace(product.getLhs()) &&
         isOfAll(product.getRhs(), size, dim, 1, program);
}

/// Whether batches and heads are counted from where those of this rank begin.
static bool hasOffsets(ring::AttendLikeOpInterface op, func::FuncOp program) {
  ring::Sharding sharding = ring::shardingOf(program);
  OperandRange offsets = op.getOffsetsMutable();
  if (offsets.empty())
    return !sharding.isSplit;
  auto type = cast<RankedTensorType>(op.getQuery().getType());
  const std::tuple<RankGroup, RankGroup, int64_t, unsigned> parts[] = {
      {sharding.batch, {}, 0, 0}, {sharding.heads, sharding.exchanged, 2, 2}};
  return llvm::all_of(parts, [&](const auto &part) {
    auto [group, behind, dim, operand] = part;
    int64_t size = type.getDimSize(dim);
    return isFirst(offsets[operand], group, behind, size, dim, program) &&
           isOfAll(offsets[operand + 1], size, dim, group.size * behind.size,
                   program);
  });
}

/// The attention that an op is a part of: that of others that ask the same of
/// the same arguments. -1, refused, where it is none.
int Labels::join(ring::AttendLikeOpInterface op, Value keys, Value values) {
  Label ofQuery = of(op.getQuery()), ofKey = of(keys), ofValue = of(values);
  int query = ofQuery.tensor, key = ofKey.tensor, value = ofValue.tensor;
  if (query < 0 || key < 0 || value < 0) {
    fail(op, "attends with what are no shards of arguments");
    return -1;
  }
  bool capturesArguments = llvm::all_of(
      llvm::concat<const Value>(SmallVector<Value>(op.getMaskCaptures()),
                                SmallVector<Value>(op.getScoreCaptures())),
      [&](Value capture) { return isSameOnAllRanks(capture); });
  if (!capturesArguments) {
    fail(op, "a mask or a score that captures what the program computes");
    return -1;
  }
  int64_t ranks = ring::shardingOf(program).sequence.size;
  if (op.getQueryLayout().getParts() != ranks ||
      op.getKeyLayout().getParts() != ranks) {
    fail(op, "a layout over other ranks than those of the sequence");
    return -1;
  }
  Extent keyExtent = extentOf(op.getKeyExtent());
  bool fits = hasSharding(ofQuery, op.getQueryLayout(), 1,
                          extentOf(op.getQueryExtent())) &&
              hasSharding(ofKey, op.getKeyLayout(), 1, keyExtent) &&
              hasSharding(ofValue, op.getKeyLayout(), 1, keyExtent);
  if (!fits) {
    fail(op, "queries or keys that are laid out in another way");
    return -1;
  }
  if (!isOfChunk(ofQuery, ofKey, /*isOfKeys=*/true) ||
      !isOfChunk(ofQuery, ofValue, /*isOfKeys=*/true)) {
    fail(op, "queries and keys of different chunks of heads");
    return -1;
  }
  auto doMeet = [&](int argument, Value shard) {
    return doHeadsMeet(exchangedHeads(query, op.getQuery()),
                       exchangedHeads(argument, shard),
                       ring::shardingOf(program).exchanged.size);
  };
  if (!doMeet(key, keys) || !doMeet(value, values) ||
      headsOfArgument(key) != headsOfArgument(value)) {
    fail(op, "query heads that meet other key heads than theirs");
    return -1;
  }
  if (!hasOffsets(op, program)) {
    fail(op,
         "batches or heads that are counted from elsewhere than where those "
         "of this rank begin");
    return -1;
  }
  int number = 0, count = static_cast<int>(attentions.size());
  auto isOfOp = [&](const Attention &other) {
    return other.query == query && other.key == key && other.value == value &&
           asksSame(other.first, op);
  };
  while (number < count && !isOfOp(attentions[number]))
    ++number;
  if (number == count)
    attentions.push_back({query, key, value, op, std::nullopt});
  ofOp[op] = number;
  return number;
}

void Labels::visit(const Zero &zero, Operation *op) {
  Label like = of(zero.like), made;
  if (like.tensor >= 0) {
    made = madeOf(like, Made::Gradient, like.dim);
  } else {
    if (!isSameOnAllRanks(zero.like))
      return fail(op, "a gradient by what the program has made");
    made.table = zero.like;
  }
  give(zero.gradient, made);
}

void Labels::visit(const Delta &delta, Operation *op) {
  Label out = of(delta.out), outGrad = of(delta.outGrad), lseGrad;
  Label made = madeOf(outGrad, Made::Delta, 2);
  bool fits = outGrad.tensor >= 0 && (out.tensor >= 0 || out.isOf(Made::Out)) &&
              hasSharding(out, outGrad.layout, outGrad.dim, outGrad.extent);
  if (delta.lseGrad) {
    lseGrad = of(delta.lseGrad);
    fits &= lseGrad.tensor >= 0 &&
            hasSharding(lseGrad, outGrad.layout, 2, outGrad.extent);
    made.lseGrad = lseGrad.tensor;
  }
  for (int rows : {out.tensor, lseGrad.tensor})
    fits &= rows == -1 || (areOfOneChunk(rows, outGrad.tensor) &&
                           (rows < 0 || haveSameHeads(rows, outGrad.tensor)));
  if (!fits)
    return fail(op, "takes rows that are no shards of arguments, or that are "
                    "laid out in different ways");
  made.out = out.tensor;
  made.attention = out.attention;
  give(delta.delta, made);
}

/// All gradients of an attention are of the same rows.
void Labels::joinGradient(const AttendedGrad &attended, Attention &attention,
                          Operation *op) {
  Label outGrad = of(attended.outGrad), lse = of(attended.lse),
        delta = of(attended.delta);
  std::array<int *, 5> known = {&attention.outGrad, &attention.lse,
                                &attention.delta, &attention.out,
                                &attention.lseGrad};
  int found[] = {outGrad.tensor, lse.tensor, delta.tensor, delta.out,
                 delta.lseGrad};
  if (!attention.gradient) {
    attention.gradient = attended;
    for (auto [mine, other] : llvm::zip_equal(known, found))
      *mine = other;
  }
  for (auto [mine, other] : llvm::zip_equal(known, found))
    if (*mine != other)
      return fail(op, "takes other rows than the gradients before");
  if (!areEquivalent(*attention.gradient->gradient, *attended.gradient) ||
      attention.gradient->captures != attended.captures)
    return fail(op, "has another gradient of its score than those before");
}

void Labels::visit(const AttendedGrad &attended, Operation *op) {
  Label query = of(attended.op.getQuery()), key = of(attended.key),
        value = of(attended.value);
  int number = join(attended.op, attended.key, attended.value);
  if (number < 0)
    return;
  Label lse = of(attended.lse), delta = of(attended.delta),
        outGrad = of(attended.outGrad);
  bool fits = outGrad.tensor >= 0 && (lse.tensor >= 0 || lse.isOf(Made::Lse)) &&
              delta.isOf(Made::Delta) &&
              whatIsMade(delta.tensor).first == outGrad.tensor;
  for (auto [rows, dim] : {std::pair(&outGrad, 1), {&lse, 2}, {&delta, 2}})
    fits &= hasSharding(*rows, query.layout, dim, query.extent);
  for (const Label *rows : {&outGrad, &lse})
    fits &= rows->tensor < 0 || isOfChunk(query, *rows, /*isOfKeys=*/false);
  // Where the program itself attends, the gradients are those of that.
  for (const Label *rows : {&lse, &delta})
    fits &= rows->attention < 0 || rows->attention == number;
  if (!fits)
    return fail(op, "takes rows that are not those of its queries");
  joinGradient(attended, attentions[number], op);
  const Label *by[] = {&query, &key, &value};
  for (auto [place, before, after] :
       llvm::enumerate(attended.grads, attended.made)) {
    Label label = of(before);
    bool isBy;
    if (place < std::size(by)) {
      isBy = label.isLike(madeOf(*by[place], Made::Gradient, by[place]->dim));
    } else {
      int64_t capture = attended.captures[place - std::size(by)];
      isBy = label.table == attended.op.getScoreCaptures()[capture];
    }
    if (label.attention >= 0 && isOfOtherChunk(label, number)) {
      label.others.push_back(label.attention);
      label.attention = number;
    }
    Label wanted = label;
    wanted.attention = number;
    wanted.place = static_cast<int>(place);
    if (!isBy || label.isRounded || !unify(label, wanted))
      return fail(op, "adds to a gradient by something else");
    give(after, label);
  }
}

void Labels::visit(const Rounded &rounded, Operation *op) {
  Label label = of(rounded.gradient);
  if ((!label.isOf(Made::Gradient) && !label.table) || label.isRounded)
    return fail(op, "rounds what is no gradient, or was rounded");
  if (!mayAddHeads(rounded, label))
    return fail(op, "adds heads of what is no gradient by heads that ranks "
                    "share");
  label.isRounded = true;
  give(rounded.rounded, label);
}

/// Of what an all-to-all brought of the gradient by an argument with fewer
/// heads than ranks, of which each gave a part for one.
bool Labels::mayAddHeads(const Rounded &rounded, const Label &label) const {
  int64_t parts = headsOf(rounded.gradient), heads = headsOf(rounded.rounded);
  if (parts == heads)
    return true;
  ring::TransferOpInterface start = ring::allToAllOf(rounded.gradient);
  return start && start.getRoute() == ring::Route::ToSequence && !label.table &&
         headsOf(ring::behindAllToAll(rounded.gradient)) == 1 &&
         heads == groupsOf(whatIsMade(label.tensor).first) &&
         parts == heads * (static_cast<int64_t>(start.getMembers()) / heads) &&
         heads == headsOfArgument(whatIsMade(label.tensor).first);
}

//===----------------------------------------------------------------------===//
// Chunks of heads
//===----------------------------------------------------------------------===//

void Labels::visit(const TakenHeads &taken, Operation *op) {
  Label label = of(taken.whole);
  if (label.tensor < 0 || label.tensor >= maxChunkedArguments)
    return fail(op, "takes heads of what is no argument");
  label.tensor = numberOf({label.tensor, static_cast<int>(taken.chunk),
                           static_cast<int>(taken.count)});
  give(taken.taken, label);
}

void Labels::visit(const JoinedHeads &joined, Operation *op) {
  Label whole = of(joined.chunks.front());
  if (!whole.isResult() && !whole.isOf(Made::Gradient))
    return fail(op, "joins what is no result of an attention");
  auto [first, made] = whatIsMade(whole.tensor);
  HeadChunk wanted{chunkOf(first).argument, 0,
                   static_cast<int>(joined.chunks.size())};
  whole.tensor = madeFor(wanted.argument, made);
  for (Value chunk : joined.chunks) {
    Label label = of(chunk);
    if (label.attention < 0 || label.tensor != madeFor(numberOf(wanted), made))
      return fail(op, "joins as a chunk of heads what was made of another one");
    label.tensor = whole.tensor;
    if (!label.isLike(whole) || label.place != whole.place ||
        !areChunksOfOne(attentions[label.attention],
                        attentions[whole.attention]))
      return fail(op, "joins chunks that are not alike");
    ++wanted.chunk;
  }
  give(joined.whole, whole);
}

/// Whether two are one attention, each of its chunk of heads. Masks and scores
/// know the chunk, and are not compared.
bool Labels::areChunksOfOne(const Attention &x, const Attention &y) const {
  const std::pair<int, int> numbers[] = {
      {x.query, y.query}, {x.key, y.key},        {x.value, y.value},
      {x.lse, y.lse},     {x.delta, y.delta},    {x.outGrad, y.outGrad},
      {x.out, y.out},     {x.lseGrad, y.lseGrad}};
  for (auto [own, other] : numbers)
    if (ofAllHeads(own) != ofAllHeads(other) ||
        chunkOf(own).count != chunkOf(other).count)
      return false;
  return asksAlike(x.first, y.first) &&
         (!x.gradient || !y.gradient ||
          x.gradient->captures == y.gradient->captures);
}

/// Whether an attention is that of another chunk than those that have added to
/// a gradient, of which keys or a table are in all chunks.
bool Labels::isOfOtherChunk(const Label &gradient, int attention) const {
  const Attention &own = attentions[attention];
  HeadChunk chunk = chunkOf(own.query);
  auto isOther = [&](int number) {
    const Attention &other = attentions[number];
    HeadChunk before = chunkOf(other.query);
    return before.argument == chunk.argument && before.count == chunk.count &&
           before.chunk != chunk.chunk && areChunksOfOne(own, other);
  };
  bool isInAll = gradient.table ||
                 (gradient.place > 0 && chunkOf(gradient.tensor).count == 1);
  return isInAll && isOther(gradient.attention) &&
         llvm::all_of(gradient.others, isOther);
}

/// Whether all chunks of queries have added to a gradient by what is in all.
bool Labels::hasAllChunks(const Label &gradient) const {
  int count = chunkOf(attentions[gradient.attention].query).count;
  bool isOfOne = !gradient.table &&
                 (gradient.place <= 0 || chunkOf(gradient.tensor).count != 1);
  return isOfOne || static_cast<int>(gradient.others.size()) + 1 == count;
}
