//===- DropEmpty.cpp - drops what the mask does not need ------------------===//
#include "dialect/Burst/Emit.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"

namespace burst {
#define GEN_PASS_DEF_DROPEMPTYPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;

namespace {

/// Makes the function that says what an attend needs, for all ranks:
///
///   (Sq, Sk, B, captures of the mask) -> (need[r][o][a][b], reach[o][b], step)
///
/// need: whether any pair of segment a of rank r and segment b of owner o is
/// kept. step: the direction of the ring, 1 or P - 1, in which less travels.
/// reach: how many hops segment b of owner o travels in that direction, that is
/// the distance of the farthest rank that needs it.
class NeedFunction {
public:
  NeedFunction(ring::AttendOp attend, SymbolTable &symbols)
      : attend(attend), symbols(symbols), loc(attend.getLoc()),
        parts(attend.getQueryLayout().getParts()),
        numA(attend.getQueryLayout().getNumSegments()),
        numB(attend.getKeyLayout().getNumSegments()) {}

  func::FuncOp create();

private:
  RankedTensorType needType() {
    return RankedTensorType::get({parts, parts, numA, numB},
                                 IntegerType::get(attend.getContext(), 1));
  }
  RankedTensorType reachType() {
    return RankedTensorType::get({parts, numB},
                                 IndexType::get(attend.getContext()));
  }
  struct Box {
    Value begin, end, isEmpty;
  };
  Box segment(Emit &e, ring::LayoutAttr layout, Value owner, Value index,
              int64_t count, Value extent);
  Value needOf(OpBuilder &builder, ValueRange indices, ValueRange args);
  Value reachOf(OpBuilder &builder, ValueRange indices, Value need,
                int64_t step);
  Value reachTable(OpBuilder &builder, Value need, int64_t step);
  Value cost(OpBuilder &builder, Value reach, Value extent);

  ring::AttendOp attend;
  SymbolTable &symbols;
  Location loc;
  int64_t parts, numA, numB;
};

} // namespace

/// The box of the segment whose number is a value: there are one or two.
NeedFunction::Box NeedFunction::segment(Emit &e, ring::LayoutAttr layout,
                                        Value owner, Value index, int64_t count,
                                        Value extent) {
  Box box;
  for (int64_t s = 0; s < count; ++s) {
    auto op = ring::SegmentOp::create(e.builder, loc, s, layout, owner, extent);
    Value empty =
        e.compare(arith::CmpIPredicate::eq, op.getCount(), e.index(0));
    if (s == 0) {
      box = {op.getBegin(), op.getEnd(), empty};
      continue;
    }
    Value chosen = e.compare(arith::CmpIPredicate::eq, index, e.index(s));
    box = {e.select(chosen, op.getBegin(), box.begin),
           e.select(chosen, op.getEnd(), box.end),
           e.select(chosen, empty, box.isEmpty)};
  }
  // Bounds mean nothing for an empty box, and may even trap: ask about another.
  box.begin = e.select(box.isEmpty, e.index(0), box.begin);
  box.end = e.select(box.isEmpty, e.index(1), box.end);
  return box;
}

Value NeedFunction::needOf(OpBuilder &builder, ValueRange indices,
                           ValueRange args) {
  Emit e{builder, loc};
  Value sq = args[0], sk = args[1];
  Value batch =
      arith::MaxSIOp::create(builder, loc, args[2], e.index(1)); // not empty
  Box q = segment(e, attend.getQueryLayout(), indices[0], indices[2], numA, sq);
  Box k = segment(e, attend.getKeyLayout(), indices[1], indices[3], numB, sk);
  int64_t heads =
      cast<RankedTensorType>(attend.getQuery().getType()).getDimSize(2);
  SmallVector<Value> box{e.index(0), batch, e.index(0), e.index(heads),
                         q.begin,    q.end, k.begin,    k.end,
                         sq,         sk};
  llvm::append_range(box, args.drop_front(3));
  IRMapping mapping;
  Block &bounds = attend.getBounds().front();
  mapping.map(bounds.getArguments(), ValueRange(box));
  for (Operation &op : bounds.without_terminator())
    builder.clone(op, mapping);
  Value may = mapping.lookupOrDefault(bounds.getTerminator()->getOperand(0));
  Value some = e.negate(e.either(q.isEmpty, k.isEmpty));
  return e.both(some, may);
}

/// The distance of the farthest rank that needs a segment, going by `step`.
Value NeedFunction::reachOf(OpBuilder &builder, ValueRange indices, Value need,
                            int64_t step) {
  Emit e{builder, loc};
  auto loop = scf::ForOp::create(
      builder, loc, e.index(1), e.index(parts), e.index(1),
      ValueRange{e.index(0)},
      [&](OpBuilder &inner, Location, Value hop, ValueRange reach) {
        Emit e{inner, loc};
        Value far = e.mul(hop, e.index(step));
        Value rank = e.mod(e.add(indices[0], far), parts);
        Value needed;
        for (int64_t a = 0; a < numA; ++a) {
          Value one =
              e.extract(need, {rank, indices[0], e.index(a), indices[1]});
          needed = needed ? e.either(needed, one) : one;
        }
        scf::YieldOp::create(inner, loc, e.select(needed, hop, reach.front()));
      });
  return loop.getResult(0);
}

Value NeedFunction::reachTable(OpBuilder &builder, Value need, int64_t step) {
  return tensor::GenerateOp::create(
      builder, loc, reachType(), ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        tensor::YieldOp::create(inner, loc,
                                reachOf(inner, indices, need, step));
      });
}

/// How many positions travel in all, times their hops.
Value NeedFunction::cost(OpBuilder &builder, Value reach, Value extent) {
  Emit e{builder, loc};
  auto loop = scf::ForOp::create(
      builder, loc, e.index(0), e.index(parts), e.index(1),
      ValueRange{e.index(0)},
      [&](OpBuilder &inner, Location, Value owner, ValueRange cost) {
        Emit e{inner, loc};
        Value sum = cost.front();
        for (int64_t b = 0; b < numB; ++b) {
          auto segment = ring::SegmentOp::create(
              inner, loc, b, attend.getKeyLayout(), owner, extent);
          Value hops = e.extract(reach, {owner, e.index(b)});
          sum = e.add(sum, e.mul(segment.getCount(), hops));
        }
        scf::YieldOp::create(inner, loc, sum);
      });
  return loop.getResult(0);
}

func::FuncOp NeedFunction::create() {
  auto parent = attend->getParentOfType<func::FuncOp>();
  OpBuilder builder(parent);
  SmallVector<Type> inputs(3, builder.getIndexType());
  llvm::append_range(inputs, attend.getMaskCaptures().getTypes());
  auto function = func::FuncOp::create(
      builder, loc, (parent.getName() + "_needs").str(),
      builder.getFunctionType(
          inputs, {needType(), reachType(), builder.getIndexType()}));
  function.setPrivate();
  symbols.insert(function);
  builder.setInsertionPointToStart(function.addEntryBlock());
  ValueRange args = function.getArguments();
  Emit e{builder, loc};
  Value need = tensor::GenerateOp::create(
      builder, loc, needType(), ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        tensor::YieldOp::create(inner, loc, needOf(inner, indices, args));
      });
  Value ahead = reachTable(builder, need, 1);
  Value behind = reachTable(builder, need, parts - 1);
  Value goesBack =
      e.compare(arith::CmpIPredicate::ult, cost(builder, behind, args[1]),
                cost(builder, ahead, args[1]));
  Value reach = tensor::GenerateOp::create(
      builder, loc, reachType(), ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        Emit e{inner, loc};
        tensor::YieldOp::create(inner, loc,
                                e.select(goesBack, e.extract(behind, indices),
                                         e.extract(ahead, indices)));
      });
  Value step = e.select(goesBack, e.index(parts - 1), e.index(1));
  func::ReturnOp::create(builder, loc, ValueRange{need, reach, step});
  return function;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

namespace {
/// What was found to be needed, at the top of a rank's program.
struct Needs {
  Value need, reach, step;
};
} // namespace

/// The call of the need function, and the attends it speaks for. Attends of one
/// ring have the same bounds and captures.
static Needs callNeeds(ring::AttendOp attend, func::FuncOp function) {
  auto program = attend->getParentOfType<func::FuncOp>();
  // Sizes and captures are arguments or constants: behind the last of them is
  // the place, which is in front of all loops.
  OpBuilder builder(&program.getBody().front(),
                    program.getBody().front().begin());
  SmallVector<Value> operands{attend.getQueryExtent(), attend.getKeyExtent()};
  llvm::append_range(operands, attend.getMaskCaptures());
  Operation *last = nullptr;
  for (Value operand : operands)
    if (Operation *def = operand.getDefiningOp())
      if (!last || last->isBeforeInBlock(def))
        last = def;
  if (last)
    builder.setInsertionPointAfter(last);
  Location loc = attend.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value query = attend.getQuery();
  Value batch = tensor::DimOp::create(builder, loc, query, zero);
  operands.insert(operands.begin() + 2, batch);
  auto call = func::CallOp::create(builder, loc, function, operands);
  return {call.getResult(0), call.getResult(1), call.getResult(2)};
}

static void flagAttend(ring::AttendOp attend, Needs needs) {
  OpBuilder builder(attend);
  Emit e{builder, attend.getLoc()};
  SmallVector<Value> pairs;
  for (Value owner : attend.getOwners())
    for (int64_t a = 0; a < attend.getQueryLayout().getNumSegments(); ++a)
      for (int64_t b = 0; b < attend.getKeyLayout().getNumSegments(); ++b)
        pairs.push_back(e.extract(needs.need, {attend.getQueryOwner(), owner,
                                               e.index(a), e.index(b)}));
  attend.getPairsMutable().assign(pairs);
}

/// A slice has come (rank - owner) * step mod P hops, for step is its own
/// inverse; segment b goes on while that is less than its reach. What arrives
/// here has come one hop more.
static void flagStart(ring::StartOp start, Value rank, Needs needs) {
  OpBuilder builder(start);
  Emit e{builder, start.getLoc()};
  int64_t parts = start.getLayout().getParts();
  auto distance = [&](Value owner) {
    Value between = arith::SubIOp::create(builder, e.loc,
                                          e.add(rank, e.index(parts)), owner);
    return e.mod(e.mul(between, needs.step), parts);
  };
  Value sent = distance(start.getOwner());
  Value received = distance(start.getReceivedOwner());
  SmallVector<Value> sendFlags, receiveFlags;
  for (int64_t b = 0; b < start.getLayout().getNumSegments(); ++b) {
    auto reach = [&](Value owner) {
      return e.extract(needs.reach, {owner, e.index(b)});
    };
    sendFlags.push_back(
        e.compare(arith::CmpIPredicate::ult, sent, reach(start.getOwner())));
    receiveFlags.push_back(e.compare(arith::CmpIPredicate::ule, received,
                                     reach(start.getReceivedOwner())));
  }
  start.getSendSegmentsMutable().assign(sendFlags);
  start.getReceiveSegmentsMutable().assign(receiveFlags);
}

/// Whether `value` is (rank + offset) mod parts.
static bool isNeighbour(Value value, Value rank, int64_t offset,
                        int64_t parts) {
  auto mod = value.getDefiningOp<arith::RemUIOp>();
  auto sum = mod ? mod.getLhs().getDefiningOp<arith::AddIOp>() : nullptr;
  return sum && sum.getLhs() == rank &&
         getConstantIntValue(sum.getRhs()) == offset &&
         getConstantIntValue(mod.getRhs()) == parts;
}

/// The transfer that passes the slices of `attend` on to the next rank, as
/// burst-lower-to-ring makes it.
static ring::StartOp findStart(ring::AttendOp attend) {
  Value rank = attend.getQueryOwner(), owner = attend.getOwners().front();
  int64_t parts = attend.getKeyLayout().getParts();
  for (Operation *user : attend.getKeys().front().getUsers())
    if (auto start = dyn_cast<ring::StartOp>(user))
      if (start.getOwner() == owner &&
          isNeighbour(start.getTo(), rank, 1, parts) &&
          isNeighbour(start.getFrom(), rank, parts - 1, parts) &&
          isNeighbour(start.getReceivedOwner(), owner, parts - 1, parts))
        return start;
  return nullptr;
}

/// Lets the ring go by `step` instead of by 1.
static void redirect(ring::StartOp start, Value rank, Value step) {
  OpBuilder builder(start);
  // The next owner is also what the loop carries on.
  Value nextOwner = start.getReceivedOwner();
  builder.setInsertionPointAfterValue(nextOwner);
  Emit e{builder, start.getLoc()};
  int64_t parts = start.getLayout().getParts();
  Value back = arith::SubIOp::create(builder, e.loc, e.index(parts), step);
  nextOwner.replaceAllUsesWith(e.mod(e.add(start.getOwner(), back), parts));
  builder.setInsertionPoint(start);
  start.getToMutable().assign(e.mod(e.add(rank, step), parts));
  start.getFromMutable().assign(e.mod(e.add(rank, back), parts));
}

/// Attends with the same inputs ask the same question.
static bool sameNeeds(ring::AttendOp a, ring::AttendOp b) {
  return a.getQuery() == b.getQuery() &&
         a.getQueryExtent() == b.getQueryExtent() &&
         a.getKeyExtent() == b.getKeyExtent() &&
         a.getQueryLayout() == b.getQueryLayout() &&
         a.getKeyLayout() == b.getKeyLayout() &&
         llvm::equal(a.getMaskCaptures(), b.getMaskCaptures()) &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBounds(), &b.getBounds(),
             OperationEquivalence::IgnoreLocations);
}

/// What the need function is called with must be there in front of all loops.
static bool isKnownAtTheTop(ring::AttendOp op, Block &top) {
  SmallVector<Value> values{op.getQuery(), op.getQueryOwner(),
                            op.getQueryExtent(), op.getKeyExtent()};
  llvm::append_range(values, op.getMaskCaptures());
  return llvm::all_of(
      values, [&](Value value) { return value.getParentBlock() == &top; });
}

static void dropEmpty(func::FuncOp program, SymbolTable &symbols) {
  SmallVector<ring::AttendOp> attends;
  program.walk([&](ring::AttendOp op) {
    if (!op.getBounds().empty() && op.getPairs().empty() &&
        isKnownAtTheTop(op, program.getBody().front()))
      attends.push_back(op);
  });
  while (!attends.empty()) {
    ring::AttendOp first = attends.front();
    Needs needs = callNeeds(first, NeedFunction(first, symbols).create());
    llvm::erase_if(attends, [&](ring::AttendOp op) {
      if (!sameNeeds(first, op))
        return false;
      flagAttend(op, needs);
      if (ring::StartOp start = findStart(op)) {
        redirect(start, op.getQueryOwner(), needs.step);
        flagStart(start, op.getQueryOwner(), needs);
      }
      return true;
    });
  }
}

namespace {
struct DropEmpty : burst::impl::DropEmptyPassBase<DropEmpty> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(ring::gridAttr))
        dropEmpty(function, symbols);
  }
};
} // namespace
