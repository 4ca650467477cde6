//===- Mutations.cpp - ways to break a schedule ---------------------------===//
#include "test/unit/machine/Mutations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// What a schedule does
//===----------------------------------------------------------------------===//

namespace {

/// Notes what an unbroken schedule sends and needs.
class Observer : public Bookkeeper {
public:
  explicit Observer(Schedule &schedule) : schedule(schedule) {}

  bool attend(Attend &attend, State &result, std::string &message) override {
    ring::AttendOp op = attend.op;
    for (auto [index, slice] : llvm::enumerate(attend.slices))
      for (int64_t a = 0; a < op.getQueryLayout().getNumSegments(); ++a)
        for (int64_t b = 0; b < op.getKeyLayout().getNumSegments(); ++b) {
          bool isEmpty =
              classifier.classify(attend, slice.owner, a, b) ==
              PairClass::Empty;
          schedule.hasRuledOut |= isEmpty;
          schedule.needsLast |= !isEmpty && op == schedule.attends.back();
        }
    return Bookkeeper::attend(attend, result, message);
  }

  void deliver(const Transfer &from, Transfer &to, size_t index) override {
    schedule.messages.push_back({from.rank, to.rank, from.hop});
  }

private:
  Schedule &schedule;
  Classifier classifier;
};

} // namespace

Schedule::Schedule(ModuleOp module, const Problem &problem)
    : module(module), problem(problem), parts(problem.parts),
      program(getProgram(module)) {
  program.walk([&](Operation *op) {
    if (auto found = dyn_cast<shard::ProcessMultiIndexOp>(op))
      rank = found.getResult()[0];
    else if (auto found = dyn_cast<ring::AttendOp>(op))
      attends.push_back(found);
    else if (isa<ring::InitOp>(op))
      init = cast<ring::InitOp>(op);
    else if (isa<ring::StartOp>(op))
      start = cast<ring::StartOp>(op);
    else if (isa<ring::WaitOp>(op))
      wait = cast<ring::WaitOp>(op);
    else if (isa<ring::FinalizeOp>(op))
      finalize = cast<ring::FinalizeOp>(op);
    else if (isa<scf::ForOp>(op))
      loop = cast<scf::ForOp>(op);
  });
  options.allowEmpty = !problem.drop;
  std::unique_ptr<Simulation> simulation = Simulation::create(program);
  simulation->reset();
  Observer observer(*this);
  (void)simulation->run(
      observer, shardGlobals(*simulation, *describeGlobals(program, {}),
                             ShardData::Omit));
}

//===----------------------------------------------------------------------===//
// Values for broken operands
//===----------------------------------------------------------------------===//

namespace {

/// Emits index arithmetic in front of an op.
struct Emit {
  Emit(Schedule &schedule, Operation *before)
      : schedule(schedule), builder(before), loc(before->getLoc()) {}

  /// Behind the op that gives the rank: in front of all hops.
  static Emit atTop(Schedule &schedule) {
    return {schedule, schedule.rank.getDefiningOp()->getNextNode()};
  }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value truth(bool value) {
    return arith::ConstantIntOp::create(builder, loc, value, 1);
  }
  Value plus(Value value, int64_t amount) {
    return arith::AddIOp::create(builder, loc, value, index(amount));
  }
  /// The rank `distance` behind `rank`, in ring order.
  Value ahead(Value rank, int64_t distance = 1) {
    return arith::RemUIOp::create(builder, loc, plus(rank, distance),
                                  index(schedule.parts));
  }
  Value both(Value a, Value b) {
    return arith::AndIOp::create(builder, loc, a, b);
  }
  Value differs(Value a, int64_t b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, a,
                                 index(b));
  }
  Value isRank(int64_t rank) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                 schedule.rank, index(rank));
  }
  /// `there` on one rank, `elsewhere` on all others.
  Value onRank(int64_t rank, Value there, Value elsewhere) {
    return arith::SelectOp::create(builder, loc, isRank(rank), there,
                                   elsewhere);
  }

  /// A hop of its own: this rank's shard goes ahead, the one behind comes.
  ring::StartOp send(Value tensor, ring::ShardAttr shard, int64_t channel,
                     StringRef grid = "cp") {
    auto name = FlatSymbolRefAttr::get(builder.getContext(), grid);
    Value from = ahead(schedule.rank, schedule.parts - 1);
    return ring::StartOp::create(
        builder, loc,
        ring::TokenType::get(builder.getContext(), tensor.getType()), tensor,
        schedule.rank, index(shard.getExtent()), ahead(schedule.rank),
        ValueRange(), from, from, ValueRange(), ArrayRef<int64_t>{1},
        shard.getLayout(),
        ring::ChannelAttr::get(builder.getContext(), name, channel));
  }
  Value receive(ring::StartOp start) {
    return ring::WaitOp::create(builder, loc,
                                start.getTensors().front().getType(),
                                start.getToken())
        .getResult(0);
  }
  Value exchange(Value tensor, ring::ShardAttr shard) {
    return ring::ExchangeOp::create(
        builder, loc, tensor.getType(), tensor, schedule.rank, shard, shard,
        ring::ChannelAttr::get(builder.getContext(),
                               FlatSymbolRefAttr::get(builder.getContext(),
                                                      "cp"),
                               7));
  }
  scf::IfOp branchOnRank(int64_t rank, TypeRange results = {}) {
    return scf::IfOp::create(builder, loc, results, isRank(rank),
                             /*withElseRegion=*/true);
  }

  Schedule &schedule;
  OpBuilder builder;
  Location loc;
};

} // namespace

static ring::ShardAttr shardOf(Schedule &s, unsigned argument) {
  return s.program.getArgAttrOfType<ring::ShardAttr>(argument, ring::shardAttr);
}

/// Flags of a transfer, all true where it has none.
static SmallVector<Value> flagsOf(Emit &e, OperandRange flags) {
  SmallVector<Value> result(flags);
  while (static_cast<int64_t>(result.size()) <
         e.schedule.start.getLayout().getNumSegments())
    result.push_back(e.truth(true));
  return result;
}

/// Pairs of an attend, all true where it has none.
static SmallVector<Value> pairsOf(Emit &e, ring::AttendOp attend) {
  SmallVector<Value> result(attend.getPairs());
  size_t size = attend.getKeys().size() *
                attend.getQueryLayout().getNumSegments() *
                attend.getKeyLayout().getNumSegments();
  while (result.size() < size)
    result.push_back(e.truth(true));
  return result;
}

static void clearSends(Emit &e, Value keep) {
  SmallVector<Value> flags;
  for (Value flag : flagsOf(e, e.schedule.start.getSendSegments()))
    flags.push_back(e.both(flag, keep));
  e.schedule.start.getSendSegmentsMutable().assign(flags);
}

static void clearReceives(Emit &e, Value keep) {
  SmallVector<Value> flags;
  for (Value flag : flagsOf(e, e.schedule.start.getReceiveSegments()))
    flags.push_back(e.both(flag, keep));
  e.schedule.start.getReceiveSegmentsMutable().assign(flags);
}

static void setState(ring::AttendOp attend, ValueRange state) {
  attend.getOMutable().set(state[0]);
  attend.getMMutable().set(state[1]);
  attend.getLMutable().set(state[2]);
}

static SmallVector<Value> stateOf(ring::AttendOp attend) {
  return {attend.getO(), attend.getM(), attend.getL()};
}

/// A layout that deals otherwise, to as many segments where flags count them.
static ring::LayoutAttr otherLayout(ring::LayoutAttr layout) {
  Order order = layout.getOrder() == Order::Contiguous ? Order::Striped
                                                       : Order::Contiguous;
  return ring::LayoutAttr::get(layout.getContext(),
                               Deal{order, 1, layout.getParts()});
}

static bool hasFlags(Schedule &s) {
  return !s.start.getSendSegments().empty() ||
         !s.attends.front().getPairs().empty();
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

static bool dropWait(Schedule &s) {
  for (auto [received, sent] :
       llvm::zip_equal(s.wait.getResults(), s.start.getTensors()))
    received.replaceAllUsesWith(sent);
  s.wait.erase();
  return true;
}

static bool doubleWait(Schedule &s) {
  OpBuilder(s.wait->getNextNode()).clone(*s.wait);
  return true;
}

static bool neverWait(Schedule &s) {
  Emit e = Emit::atTop(s);
  e.send(s.program.getArgument(0), shardOf(s, 0), 1);
  s.options.maxSlices = 3; // What it receives stays, which is not the point.
  return true;
}

//===----------------------------------------------------------------------===//
// Owners and peers
//===----------------------------------------------------------------------===//

static bool shiftAttendOwner(Schedule &s) {
  Emit e(s, s.attends[0]);
  s.attends[0].getOwnersMutable().assign(e.ahead(s.attends[0].getOwners()[0]));
  return true;
}

static bool shiftStartOwner(Schedule &s) {
  Emit e(s, s.start);
  s.start.getOwnerMutable().set(e.ahead(s.start.getOwner()));
  return true;
}

static bool shiftReceivedOwner(Schedule &s) {
  Emit e(s, s.start);
  s.start.getReceivedOwnerMutable().set(e.ahead(s.start.getReceivedOwner()));
  return true;
}

static bool shiftQueryOwner(Schedule &s) {
  Emit e(s, s.attends[0]);
  s.attends[0].getQueryOwnerMutable().set(
      e.ahead(s.attends[0].getQueryOwner()));
  return true;
}

static bool misdirectSendOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  Value to = s.start.getTo();
  s.start.getToMutable().set(
      e.onRank(s.messages.front().from, e.ahead(to), to));
  return true;
}

static bool misdirectReceiveOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  Value from = s.start.getFrom();
  s.start.getFromMutable().set(
      e.onRank(s.messages.front().to, e.ahead(from), from));
  return true;
}

static bool swapPeers(Schedule &s) {
  if (s.parts == 2 || s.messages.empty())
    return false; // The two peers are one.
  Value to = s.start.getTo(), from = s.start.getFrom();
  s.start.getToMutable().set(from);
  s.start.getFromMutable().set(to);
  return true;
}

static bool sendToNoRank(Schedule &s) {
  Emit e(s, s.start);
  s.start.getToMutable().set(e.plus(s.start.getTo(), s.parts));
  return true;
}

static bool attendOfNoOwner(Schedule &s) {
  Emit e(s, s.attends[0]);
  s.attends[0].getOwnersMutable().assign(
      e.plus(s.attends[0].getOwners()[0], s.parts));
  return true;
}

static bool takeRankOfAnotherGrid(Schedule &s) {
  Emit e = Emit::atTop(s);
  OpBuilder top = OpBuilder::atBlockBegin(s.module.getBody());
  shard::GridOp::create(top, e.loc, "other", s.parts);
  auto other = shard::ProcessMultiIndexOp::create(
      e.builder, e.loc, "other", ArrayRef<shard::GridAxis>{0});
  s.rank.replaceAllUsesWith(other.getResult()[0]);
  return true;
}

//===----------------------------------------------------------------------===//
// Hops
//===----------------------------------------------------------------------===//

static bool shortenLoop(Schedule &s) {
  if (!s.loop || !s.needsLast)
    return false;
  Emit e(s, s.loop);
  s.loop.setUpperBound(e.index(s.parts - 2));
  return true;
}

static bool lengthenLoop(Schedule &s) {
  if (!s.loop)
    return false;
  Emit e(s, s.loop);
  s.loop.setUpperBound(e.index(s.parts));
  return true;
}

static bool startTwice(Schedule &s) {
  // Only a rank that receives in two hops running holds three slices.
  auto receives = [&](int64_t rank, int64_t hop) {
    return llvm::any_of(s.messages, [&](const Schedule::Message &m) {
      return m.to == rank && m.hop == hop;
    });
  };
  bool hasTwo = llvm::any_of(s.messages, [&](const Schedule::Message &m) {
    return m.hop == 0 && receives(m.to, 1);
  });
  if (!s.loop || !hasTwo)
    return false;
  OpBuilder builder(s.start->getNextNode());
  auto second = cast<ring::StartOp>(builder.clone(*s.start));
  second.setChannelAttr(ring::ChannelAttr::get(
      s.module.getContext(), s.start.getChannel().getGrid(), 1));
  builder.setInsertionPointAfter(s.wait);
  ring::WaitOp::create(builder, s.wait.getLoc(), s.wait.getResultTypes(),
                       second.getToken());
  return true;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static bool clearPair(Schedule &s) {
  Emit e(s, s.attends[0]);
  SmallVector<Value> pairs = pairsOf(e, s.attends[0]);
  // The pair of the first segments of a rank is on every mask's diagonal.
  pairs[0] = e.both(pairs[0], e.differs(s.rank, 0));
  s.attends[0].getPairsMutable().assign(pairs);
  return true;
}

static bool setPairs(Schedule &s) {
  if (!s.hasRuledOut || s.options.allowEmpty)
    return false;
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    SmallVector<Value> pairs = pairsOf(e, attend);
    attend.getPairsMutable().assign(
        SmallVector<Value>(pairs.size(), e.truth(true)));
  }
  return true;
}

static bool clearSendOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  clearSends(e, e.differs(s.rank, s.messages.front().from));
  return true;
}

static bool clearReceiveOfOneRank(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  clearReceives(e, e.differs(s.rank, s.messages.front().to));
  return true;
}

/// Nothing travels in the first hop, and the second passes on what is not there.
static bool forwardWhatNeverCame(Schedule &s) {
  bool travelsOn = llvm::any_of(
      s.messages, [](const Schedule::Message &m) { return m.hop == 1; });
  if (!s.loop || !travelsOn)
    return false;
  Emit e(s, s.start);
  Value keep = e.differs(s.loop.getInductionVar(), 0);
  clearSends(e, keep);
  clearReceives(e, keep);
  return true;
}

/// Nothing travels at all.
static bool attendWhatNeverCame(Schedule &s) {
  if (s.messages.empty())
    return false;
  Emit e(s, s.start);
  clearSends(e, e.truth(false));
  clearReceives(e, e.truth(false));
  return true;
}

//===----------------------------------------------------------------------===//
// What is attended
//===----------------------------------------------------------------------===//

static bool doubleAttend(Schedule &s) {
  ring::AttendOp first = s.attends[0];
  OpBuilder builder(first->getNextNode());
  auto second = cast<ring::AttendOp>(builder.clone(*first));
  for (auto [a, b] : llvm::zip_equal(first.getResults(), second.getResults()))
    a.replaceAllUsesWith(b);
  setState(second, first.getResults());
  return true;
}

static bool attendASliceTwice(Schedule &s) {
  ring::AttendOp attend = s.attends[0];
  Value key = attend.getKeys()[0], value = attend.getValues()[0],
        owner = attend.getOwners()[0];
  SmallVector<Value> pairs(attend.getPairs());
  pairs.append(SmallVector<Value>(attend.getPairs()));
  attend.getKeysMutable().assign({key, key});
  attend.getValuesMutable().assign({value, value});
  attend.getOwnersMutable().assign({owner, owner});
  attend.getPairsMutable().assign(pairs);
  return true;
}

/// Of the first attend, where no state before it says what they should be.
static bool mixTensorsInAList(Schedule &s) {
  ring::AttendOp attend = s.attends[0];
  Value key = attend.getKeys()[0], value = attend.getValues()[0],
        owner = attend.getOwners()[0];
  if (key.getType() != value.getType())
    return false;
  Emit e(s, attend);
  SmallVector<Value> pairs = pairsOf(e, attend);
  pairs.append(pairs.size(), e.truth(false));
  attend.getKeysMutable().assign({key, value});
  attend.getValuesMutable().assign({value, key});
  attend.getOwnersMutable().assign({owner, owner});
  attend.getPairsMutable().assign(pairs);
  return true;
}

static bool dropLastAttend(Schedule &s) {
  if (!s.needsLast)
    return false;
  ring::AttendOp last = s.attends.back();
  for (auto [after, before] :
       llvm::zip_equal(last.getResults(), stateOf(last)))
    after.replaceAllUsesWith(before);
  last.erase();
  return true;
}

static bool mixSlices(Schedule &s) {
  s.attends.back().getValuesMutable().assign(s.program.getArgument(2));
  return true;
}

static bool swapKeysAndValues(Schedule &s) {
  Value key = s.start.getTensors()[0], value = s.start.getTensors()[1];
  if (key.getType() != value.getType())
    return false;
  s.start.getTensorsMutable().assign({value, key});
  return true;
}

static bool attendAConstant(Schedule &s) {
  ring::AttendOp attend = s.attends.back();
  auto type = cast<RankedTensorType>(attend.getKeys()[0].getType());
  if (!type.hasStaticShape())
    return false;
  Emit e(s, attend);
  auto zeros = DenseElementsAttr::get(type, e.builder.getF32FloatAttr(0));
  attend.getKeysMutable().assign(
      arith::ConstantOp::create(e.builder, e.loc, zeros).getResult());
  return true;
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// The queries of the rank behind, and that rank.
static std::pair<Value, Value> queriesOfAnother(Emit &e) {
  Value query = e.receive(
      e.send(e.schedule.program.getArgument(0), shardOf(e.schedule, 0), 1));
  // They are held beside the slices, which is not the point here.
  e.schedule.options.maxSlices = 3;
  return {query, e.ahead(e.schedule.rank, e.schedule.parts - 1)};
}

static void setQuery(ring::AttendOp attend, std::pair<Value, Value> queries) {
  attend.getQueryMutable().set(queries.first);
  attend.getQueryOwnerMutable().set(queries.second);
}

/// All is attended as it should be, but for the rows of another rank.
static bool returnRowsOfAnotherRank(Schedule &s) {
  if (hasFlags(s))
    return false;
  Emit e = Emit::atTop(s);
  auto queries = queriesOfAnother(e);
  s.init->moveAfter(queries.second.getDefiningOp());
  s.init.getQueryMutable().set(queries.first);
  for (ring::AttendOp attend : s.attends)
    setQuery(attend, queries);
  return true;
}

static bool mixQueries(Schedule &s) {
  if (hasFlags(s))
    return false;
  Emit e = Emit::atTop(s);
  setQuery(s.attends.back(), queriesOfAnother(e));
  return true;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

static bool restartStateInLoop(Schedule &s) {
  if (!s.loop)
    return false;
  setState(s.attends[0], s.init.getResults());
  return true;
}

static bool restartStateBehindLoop(Schedule &s) {
  setState(s.attends.back(), s.init.getResults());
  return true;
}

static bool tearState(Schedule &s) {
  s.attends.back().getMMutable().set(s.init.getM());
  return true;
}

static bool swapRows(Schedule &s) {
  s.finalize.getMMutable().set(s.attends.back().getNewL());
  s.finalize.getLMutable().set(s.attends.back().getNewM());
  return true;
}

static bool finalizeEarly(Schedule &s) {
  if (!s.needsLast)
    return false;
  SmallVector<Value> state = stateOf(s.attends.back());
  s.finalize->setOperands(state);
  return true;
}

static bool finalizeFresh(Schedule &s) {
  s.finalize->setOperands(s.init.getResults());
  return true;
}

static bool finalizeTornState(Schedule &s) {
  s.finalize.getLMutable().set(s.init.getL());
  return true;
}

static bool mergeAStateWithItself(Schedule &s) {
  Emit e(s, s.finalize);
  ValueRange state = s.attends.back().getResults();
  auto merge = ring::MergeOp::create(
      e.builder, e.loc, state[0].getType(), state[1].getType(),
      state[2].getType(), state[0], state[1], state[2], state[0], state[1],
      state[2]);
  s.finalize->setOperands(merge.getResults());
  return true;
}

static bool mergeTornState(Schedule &s) {
  Emit e(s, s.finalize);
  ValueRange state = s.attends.back().getResults();
  auto merge = ring::MergeOp::create(
      e.builder, e.loc, state[0].getType(), state[1].getType(),
      state[2].getType(), s.init.getO(), s.init.getM(), state[2], state[0],
      state[1], state[2]);
  s.finalize->setOperands(merge.getResults());
  return true;
}

static bool returnAState(Schedule &s) {
  auto ret =
      cast<func::ReturnOp>(s.program.getBody().front().getTerminator());
  if (s.finalize.getO().getType() != s.finalize.getOut().getType())
    return false;
  ret->setOperand(0, s.finalize.getO());
  return true;
}

//===----------------------------------------------------------------------===//
// Sizes and layouts
//===----------------------------------------------------------------------===//

static bool growKeyExtent(Schedule &s) {
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    attend.getKeyExtentMutable().set(e.plus(attend.getKeyExtent(), 1));
  }
  return true;
}

static bool growQueryExtentOfOneRank(Schedule &s) {
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    Value extent = attend.getQueryExtent();
    attend.getQueryExtentMutable().set(
        e.onRank(0, e.plus(extent, 1), extent));
  }
  return true;
}

static bool growExtentOfOneAttend(Schedule &s) {
  Emit e(s, s.attends.back());
  s.attends.back().getKeyExtentMutable().set(
      e.plus(s.attends.back().getKeyExtent(), 1));
  return true;
}

static bool growStartExtent(Schedule &s) {
  Emit e(s, s.start);
  s.start.getExtentMutable().set(e.plus(s.start.getExtent(), 1));
  return true;
}

static bool sendAnotherDimension(Schedule &s) {
  s.start.setDims({2, 2});
  return true;
}

/// All ops agree on a layout that is not the arguments'.
static bool relabelOps(Schedule &s) {
  if (hasFlags(s))
    return false;
  ring::LayoutAttr other = otherLayout(s.start.getLayout());
  s.start.setLayoutAttr(other);
  for (ring::AttendOp attend : s.attends) {
    attend.setKeyLayoutAttr(other);
    attend.setQueryLayoutAttr(other);
  }
  return true;
}

static bool relabelArgument(Schedule &s) {
  ring::ShardAttr shard = shardOf(s, 1);
  s.program.setArgAttr(1, ring::shardAttr,
                       ring::ShardAttr::get(s.module.getContext(),
                                            otherLayout(shard.getLayout()),
                                            shard.getDim(), shard.getExtent()));
  return true;
}

static bool relabelResult(Schedule &s) {
  auto shard =
      s.program.getResultAttrOfType<ring::ShardAttr>(1, ring::shardAttr);
  s.program.setResultAttr(
      1, ring::shardAttr,
      ring::ShardAttr::get(s.module.getContext(),
                           otherLayout(shard.getLayout()), shard.getDim(),
                           shard.getExtent()));
  return true;
}

static bool unlabelResult(Schedule &s) {
  s.program.removeResultAttr(0, StringAttr::get(s.module.getContext(),
                                                ring::shardAttr));
  return true;
}

//===----------------------------------------------------------------------===//
// What attends compute
//===----------------------------------------------------------------------===//

static bool changeMask(Schedule &s) {
  Region &mask = s.attends.back().getMask();
  if (mask.empty())
    return false;
  Operation *yield = mask.front().getTerminator();
  Emit e(s, yield);
  yield->setOperand(0, arith::XOrIOp::create(e.builder, e.loc,
                                             yield->getOperand(0),
                                             e.truth(true)));
  return true;
}

static bool changeScore(Schedule &s) {
  ring::AttendOp attend = s.attends.back();
  OpBuilder builder(s.module.getContext());
  Block &block = addRegionBlock(builder, attend.getLoc(), attend.getScore(),
                                RegionRole::Score, attend.getStateType(), {});
  Value score = block.getArgument(0);
  Value twice =
      arith::AddFOp::create(builder, attend.getLoc(), score, score);
  YieldOp::create(builder, attend.getLoc(), twice);
  return true;
}

static bool changeScale(Schedule &s) {
  s.attends.back().setScaleAttr(
      OpBuilder(s.module.getContext()).getF64FloatAttr(1));
  return true;
}

/// Each rank's attends agree with each other, but not with those of others.
static bool changeScaleOfOneRank(Schedule &s) {
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    scf::IfOp branch = e.branchOnRank(0, attend->getResultTypes());
    attend->replaceAllUsesWith(branch.getResults());
    for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
      OpBuilder inner = OpBuilder::atBlockEnd(block);
      auto clone = cast<ring::AttendOp>(inner.clone(*attend));
      if (block == branch.thenBlock())
        clone.setScaleAttr(inner.getF64FloatAttr(1));
      scf::YieldOp::create(inner, attend.getLoc(), clone->getResults());
    }
    attend.erase();
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Channels and exchanges
//===----------------------------------------------------------------------===//

/// Two transfers, each waited for at once: one rank runs them in the other
/// order, on two channels.
static bool crossChannels(Schedule &s) {
  Emit e = Emit::atTop(s);
  scf::IfOp branch = e.branchOnRank(0);
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    Emit inner(s, block->getTerminator());
    bool crosses = block == branch.thenBlock();
    for (int64_t channel : {crosses ? 2 : 1, crosses ? 1 : 2})
      inner.receive(inner.send(s.program.getArgument(1), shardOf(s, 1),
                               channel));
  }
  return true;
}

static bool sendOnAnotherGrid(Schedule &s) {
  Emit e = Emit::atTop(s);
  OpBuilder top = OpBuilder::atBlockBegin(s.module.getBody());
  shard::GridOp::create(top, e.loc, "other", s.parts);
  scf::IfOp branch = e.branchOnRank(0);
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    Emit inner(s, block->getTerminator());
    inner.receive(inner.send(s.program.getArgument(1), shardOf(s, 1), 1,
                             block == branch.thenBlock() ? "other" : "cp"));
  }
  return true;
}

static bool exchangeAlone(Schedule &s) {
  Emit e = Emit::atTop(s);
  scf::IfOp branch = e.branchOnRank(0);
  Emit inner(s, branch.thenBlock()->getTerminator());
  inner.exchange(s.program.getArgument(0), shardOf(s, 0));
  return true;
}

static bool exchangeApart(Schedule &s) {
  Emit e = Emit::atTop(s);
  scf::IfOp branch = e.branchOnRank(0);
  unsigned argument = 0;
  for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
    Emit inner(s, block->getTerminator());
    inner.exchange(s.program.getArgument(argument), shardOf(s, argument));
    ++argument;
  }
  return true;
}

static bool exchangeAsAnotherRank(Schedule &s) {
  Emit e = Emit::atTop(s);
  Value result = e.exchange(s.program.getArgument(0), shardOf(s, 0));
  auto exchange = result.getDefiningOp<ring::ExchangeOp>();
  Emit before(s, exchange);
  exchange.getRankMutable().set(before.ahead(s.rank));
  return true;
}

static bool exchangeAnotherTensor(Schedule &s) {
  Value key = s.program.getArgument(1), value = s.program.getArgument(2);
  if (key.getType() != value.getType())
    return false;
  Emit e = Emit::atTop(s);
  scf::IfOp branch = e.branchOnRank(0, key.getType());
  OpBuilder inner = OpBuilder::atBlockEnd(branch.thenBlock());
  scf::YieldOp::create(inner, e.loc, key);
  inner.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(inner, e.loc, value);
  e.exchange(branch.getResult(0), shardOf(s, 1));
  return true;
}

/// What came from another rank is exchanged as this rank's own.
static bool exchangeWhatIsAnothers(Schedule &s) {
  Emit e = Emit::atTop(s);
  Value received =
      e.receive(e.send(s.program.getArgument(1), shardOf(s, 1), 1));
  e.exchange(received, shardOf(s, 1));
  return true;
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

ArrayRef<Mutation> allMutations() {
  static constexpr Mutation mutations[] = {
      {"a wait is dropped", dropWait,
       "takes the keys for those of rank|sends (a tensor|the shard) of",
       "ring.(attend|start)"},
      {"a wait is doubled", doubleWait, "waits again", "ring.wait"},
      {"a transfer is never waited for", neverWait, "is never waited for",
       "ring.start"},
      {"an attend's owner is off by one", shiftAttendOwner,
       "takes the keys for those of rank", "ring.attend"},
      {"a start's owner is off by one", shiftStartOwner,
       "sends (a tensor|the shard) of", "ring.start"},
      {"the received owner is off by one", shiftReceivedOwner,
       "receives .* from rank|takes the keys for those", "ring.(start|attend)"},
      {"the query's owner is off by one", shiftQueryOwner,
       "takes the queries for those of rank", "ring.attend"},
      {"one rank sends elsewhere", misdirectSendOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank receives from elsewhere", misdirectReceiveOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"the peers are swapped", swapPeers, "deadlock|receives .* from rank",
       "ring.start"},
      {"a peer is no rank", sendToNoRank, "names rank [0-9]+ as target",
       "ring.start"},
      {"an owner is no rank", attendOfNoOwner, "names rank [0-9]+ as owner",
       "ring.attend"},
      {"the rank is that of another grid", takeRankOfAnotherGrid,
       "@other, the program runs on @cp", "shard.process_multi_index"},

      {"a hop too few", shortenLoop, "lacks query segment", "ring.finalize"},
      {"a hop too many", lengthenLoop, "deadlock|a second time",
       "ring.(start|attend)"},
      {"three slices are held", startTwice, "while 2 are still needed",
       "ring.start"},

      {"a pair is skipped", clearPair,
       "lacks query segment 0 with segment 0 of rank 0", "ring.finalize"},
      {"ruled-out pairs are computed", setPairs,
       "the mask keeps nothing|was not received", "ring.attend"},
      {"one rank does not send", clearSendOfOneRank,
       "deadlock|receives .* from rank", "ring.start"},
      {"one rank does not receive", clearReceiveOfOneRank,
       "deadlock|receives .* from rank|reads segment|sends segments",
       "ring.(start|attend)"},
      {"what never came is passed on", forwardWhatNeverCame,
       "reads segment|sends segments", "ring.(start|attend)"},
      {"what never came is attended", attendWhatNeverCame,
       "reads segment|sends segments", "ring.(start|attend)"},

      {"an attend is doubled", doubleAttend, "a second time", "ring.attend"},
      {"a slice is twice in a list", attendASliceTwice, "a second time",
       "ring.attend"},
      {"a list mixes tensors", mixTensorsInAList,
       "attends slices of other tensors", "ring.attend"},
      {"the last attend is dropped", dropLastAttend, "lacks query segment",
       "ring.finalize"},
      {"a key meets the value of another hop", mixSlices,
       "takes the values for those of rank", "ring.attend"},
      {"keys and values change places", swapKeysAndValues,
       "attends slices of other tensors", "ring.attend"},
      {"a constant is attended", attendAConstant,
       "keys that are no shard of an argument", "ring.attend"},

      {"a rank returns the rows of another", returnRowsOfAnotherRank,
       "returns .* queries of rank", "func.return"},
      {"a state sees queries of two ranks", mixQueries,
       "attends with the queries of rank", "ring.attend"},

      {"the state restarts in the loop", restartStateInLoop,
       "lacks query segment", "ring.finalize"},
      {"the state restarts behind the loop", restartStateBehindLoop,
       "lacks query segment", "ring.finalize"},
      {"a state is torn", tearState, "of different states", "ring.attend"},
      {"m and l change places", swapRows, "m and l", "ring.finalize"},
      {"the state ends before the last attend", finalizeEarly,
       "lacks query segment", "ring.finalize"},
      {"a fresh state ends", finalizeFresh, "attended nothing",
       "ring.finalize"},
      {"a torn state ends", finalizeTornState, "of different states",
       "ring.finalize"},
      {"a state is merged with itself", mergeAStateWithItself,
       "absorbed the same pair", "ring.merge"},
      {"a torn state is merged", mergeTornState, "of different states",
       "ring.merge"},
      {"a state is returned", returnAState, "what no ring.finalize",
       "func.return"},

      {"the keys' extent is wrong", growKeyExtent, "dealt as|its layout says",
       "ring.attend"},
      {"the queries' extent is wrong on one rank", growQueryExtentOfOneRank,
       "dealt as|its layout says", "ring.attend"},
      {"the extent of one attend is wrong", growExtentOfOneAttend,
       "dealt as|its layout says", "ring.attend"},
      {"a start's extent is wrong", growStartExtent,
       "dealt as|sends a tensor of", "ring.start"},
      {"another dimension is sent", sendAnotherDimension,
       "sends a tensor of|dimension", "ring.start"},
      {"all ops name another layout", relabelOps,
       "dealt as|its layout says|sends a tensor of",
       "ring.(attend|start)"},
      {"an argument has another layout", relabelArgument,
       "dealt as|its layout says|sends a tensor of",
       "ring.(attend|start)"},
      {"a result has another layout", relabelResult, "returns as result 1",
       "func.return"},
      {"a result is no shard", unlabelResult, "returns as result 0",
       "func.return"},

      {"the mask of one attend is changed", changeMask, "another mask",
       "ring.attend"},
      {"the score of one attend is changed", changeScore,
       "another mask, score", "ring.attend"},
      {"the scale of one attend is changed", changeScale,
       "another mask, score, scale", "ring.attend"},
      {"one rank has another scale", changeScaleOfOneRank,
       "returns .* rank 0", "func.return"},

      {"channels are crossed", crossChannels, "deadlock: .*rank [0-9]",
       "ring.start"},
      {"one rank sends on another grid's channel", sendOnAnotherGrid,
       "@other, the program runs on @cp", "ring.start"},
      {"one rank exchanges alone", exchangeAlone,
       "deadlock: .*rank 0, at hop 0, takes part in an exchange|"
       "deadlock: it takes part in an exchange; rank 1",
       "ring.(exchange|start)"},
      {"ranks are at different exchanges", exchangeApart, "another exchange",
       "ring.exchange"},
      {"a rank exchanges as another", exchangeAsAnotherRank,
       "takes part as rank", "ring.exchange"},
      {"one rank exchanges another tensor", exchangeAnotherTensor,
       "exchanges another tensor than rank 0", "ring.exchange"},
      {"a rank exchanges what is another's", exchangeWhatIsAnothers,
       "exchanges the shard of rank|gives a shard of", "ring.exchange"},
  };
  return mutations;
}

} // namespace burst::test
