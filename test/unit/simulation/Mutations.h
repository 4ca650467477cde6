//===- Mutations.h - ways to break a schedule -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_SIMULATION_MUTATIONS_H
#define BURST_TEST_UNIT_SIMULATION_MUTATIONS_H

#include "test/unit/simulation/Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Regex.h"

#include <gtest/gtest.h>

namespace burst::test {

/// The program of a rank.
struct Ring {
  Ring(mlir::ModuleOp module, const Problem &problem);

  mlir::ModuleOp module;
  const Problem &problem;
  int64_t parts;
  mlir::func::FuncOp program;
  mlir::Value rank;

  /// Options under which the unbroken schedule is accepted.
  ProofOptions options;
};

/// The ops of a ring, found by their kind, and what they did when it ran: the
/// text of the IR may change.
struct Schedule : Ring {
  Schedule(mlir::ModuleOp module, const Problem &problem);

  ring::InitOp init;
  std::vector<ring::AttendOp> attends; ///< in the order of the program
  ring::StartOp start;
  ring::WaitOp wait;
  ring::FinalizeOp finalize;
  mlir::scf::ForOp loop; ///< null where two ranks make it one hop

  struct Message {
    int64_t from, to, hop;
  };
  std::vector<Message> messages;
  /// Whether some rank needs what its last hop brings.
  bool needsLast = false;
  /// Whether some attend has a pair of segments that the mask rules out.
  bool hasRuledOut = false;
};

/// The ops of a ring from which something returns to the owner, a partial
/// result: the gradients by a slice, or the state of its queries.
struct Returning : Ring {
  using Ring::Ring;

  mlir::scf::ForOp loop;
  /// What travels: a slice, a partial result with it, and that to its owner.
  ring::StartOp slice, onward, toOwner;

  struct Message {
    int64_t from, to;
    int64_t turn; ///< of the loop
  };
  std::vector<Message> slices, onwards, returns;
  /// Whether some pair of segments is ruled out by the mask.
  bool hasRuledOut = false;

  bool hasLastReturn() const {
    return llvm::any_of(returns,
                        [&](const Message &m) { return m.turn == parts - 1; });
  }
  mlir::func::ReturnOp end() {
    return mlir::cast<mlir::func::ReturnOp>(
        program.getBody().front().getTerminator());
  }

protected:
  /// Finds loop and transfers of the ring in which `moving` of `owner` travels,
  /// and what they do.
  void find(mlir::Operation *attend, mlir::Value moving, mlir::Value owner);
};

/// The ops of a backward ring.
struct Backward : Returning {
  Backward(mlir::ModuleOp module, const Problem &problem);

  bool movesKeys;
  ring::DeltaOp delta;
  ring::AttendGradOp attend;
  std::vector<ring::ZeroOp> zeros; ///< in each hop
  /// Into the own gradients, of what returned to its owner and of what was
  /// computed here; into the gradients of a slice; and behind the last hop.
  std::vector<ring::AddOp> returnSums, ownSums, onwardSums, lastSums;

  mlir::Value movingOwner() {
    return movesKeys ? attend.getKeyOwner() : attend.getQueryOwner();
  }
};

/// The ops of a forward ring in which queries travel.
struct Queries : Returning {
  Queries(mlir::ModuleOp module, const Problem &problem);

  ring::InitOp own, init; ///< of the own queries, and of a slice in each hop
  ring::AttendOp attend;
  /// Into the own state, of what returned to its owner and of what was computed
  /// here; into the state of a slice; and behind the last hop.
  ring::MergeOp returnMerge, ownMerge, onwardMerge, lastMerge;
  ring::FinalizeOp finalize;
};

/// Emits index arithmetic in front of an op.
struct Emit {
  Emit(Ring &schedule, mlir::Operation *before)
      : schedule(schedule), builder(before), loc(before->getLoc()) {}

  /// Behind the op that gives the rank: in front of all hops.
  static Emit atTop(Ring &schedule) {
    return {schedule, schedule.rank.getDefiningOp()->getNextNode()};
  }

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }
  mlir::Value truth(bool value) {
    return mlir::arith::ConstantIntOp::create(builder, loc, value, 1);
  }
  mlir::Value plus(mlir::Value value, int64_t amount) {
    return mlir::arith::AddIOp::create(builder, loc, value, index(amount));
  }
  /// The rank `distance` ahead of `rank`, in ring order.
  mlir::Value ahead(mlir::Value rank, int64_t distance = 1) {
    return mlir::arith::RemUIOp::create(builder, loc, plus(rank, distance),
                                        index(schedule.parts));
  }
  mlir::Value both(mlir::Value a, mlir::Value b) {
    return mlir::arith::AndIOp::create(builder, loc, a, b);
  }
  mlir::Value either(mlir::Value a, mlir::Value b) {
    return mlir::arith::OrIOp::create(builder, loc, a, b);
  }
  mlir::Value differs(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpIOp::create(builder, loc,
                                       mlir::arith::CmpIPredicate::ne, a, b);
  }
  mlir::Value differs(mlir::Value a, int64_t b) { return differs(a, index(b)); }
  /// An entry of a table of segments, which may be one for several owners or
  /// segments.
  mlir::Value entry(mlir::Value table, mlir::Value owner, mlir::Value turn,
                    mlir::Value segment) {
    auto type = mlir::cast<mlir::RankedTensorType>(table.getType());
    mlir::Value at[] = {type.getDimSize(0) == 1 ? index(0) : owner, turn,
                        type.getDimSize(2) == 1 ? index(0) : segment};
    return mlir::tensor::ExtractOp::create(builder, loc, table, at);
  }
  mlir::Value equals(mlir::Value a, int64_t b) {
    return mlir::arith::CmpIOp::create(
        builder, loc, mlir::arith::CmpIPredicate::eq, a, index(b));
  }
  mlir::Value isRank(int64_t rank) {
    return mlir::arith::CmpIOp::create(builder, loc,
                                       mlir::arith::CmpIPredicate::eq,
                                       schedule.rank, index(rank));
  }
  /// `there` on one rank, `elsewhere` on all others.
  mlir::Value onRank(int64_t rank, mlir::Value there, mlir::Value elsewhere) {
    return mlir::arith::SelectOp::create(builder, loc, isRank(rank), there,
                                         elsewhere);
  }

  /// A table of flags, each from what it was, true where there was none, and
  /// its indices.
  using Flag = llvm::function_ref<mlir::Value(Emit &inside, mlir::Value old,
                                              mlir::ValueRange at)>;
  mlir::Value changeTable(mlir::Value old, llvm::ArrayRef<int64_t> shape,
                          Flag flag) {
    auto type = mlir::RankedTensorType::get(shape, builder.getI1Type());
    auto before =
        old ? mlir::cast<mlir::RankedTensorType>(old.getType()) : type;
    return mlir::tensor::GenerateOp::create(
        builder, loc, type, mlir::ValueRange(),
        [&](mlir::OpBuilder &inner, mlir::Location, mlir::ValueRange at) {
          Emit e(*this);
          e.builder = inner;
          llvm::SmallVector<mlir::Value> from(at);
          for (auto [d, size] : llvm::enumerate(before.getShape()))
            if (size == 1)
              from[d] = e.index(0);
          mlir::Value was =
              old ? mlir::tensor::ExtractOp::create(e.builder, loc, old, from)
                  : e.truth(true);
          mlir::tensor::YieldOp::create(e.builder, loc, flag(e, was, at));
          inner = e.builder;
        });
  }
  /// Changes which pairs of segments an attend computes.
  template <typename OpT>
  void changePairs(OpT attend, Flag flag) {
    ring::LayoutAttr queries = attend.getQueryLayout();
    ring::LayoutAttr keys = attend.getKeyLayout();
    attend.getPairsMutable().assign(
        changeTable(attend.getPairs(),
                    {queries.getParts(), keys.getParts(),
                     queries.getNumSegments(), keys.getNumSegments()},
                    flag));
  }
  /// A hop of its own: this rank's shard goes ahead, the one behind comes.
  ring::StartOp send(mlir::Value tensor, ring::ShardAttr shard, int64_t channel,
                     llvm::StringRef grid = "cp") {
    auto name = mlir::FlatSymbolRefAttr::get(builder.getContext(), grid);
    mlir::Value from = ahead(schedule.rank, schedule.parts - 1);
    return ring::StartOp::create(
        builder, loc,
        ring::TokenType::get(builder.getContext(), tensor.getType()), tensor,
        schedule.rank, index(shard.getExtent()), ahead(schedule.rank), from,
        from, /*segments=*/mlir::Value(), /*turn=*/mlir::Value(),
        mlir::ValueRange(), llvm::ArrayRef<int64_t>{1}, shard.getLayout(),
        ring::ChannelAttr::get(builder.getContext(), name,
                               /*axes=*/{}, channel));
  }
  mlir::Value receive(ring::StartOp start) {
    return ring::WaitOp::create(builder, loc,
                                start.getTensors().front().getType(),
                                start.getToken())
        .getResult(0);
  }
  /// The same of tensors, which a select cannot choose.
  mlir::Value tensorOnRank(int64_t rank, mlir::Value there,
                           mlir::Value elsewhere) {
    mlir::scf::IfOp branch = branchOnRank(rank, there.getType());
    auto inner = mlir::OpBuilder::atBlockEnd(branch.thenBlock());
    mlir::scf::YieldOp::create(inner, loc, there);
    inner.setInsertionPointToEnd(branch.elseBlock());
    mlir::scf::YieldOp::create(inner, loc, elsewhere);
    return branch.getResult(0);
  }
  mlir::scf::IfOp branchOnRank(int64_t rank, mlir::TypeRange results = {}) {
    return mlir::scf::IfOp::create(builder, loc, results, isRank(rank),
                                   /*withElseRegion=*/true);
  }

  Ring &schedule;
  mlir::OpBuilder builder;
  mlir::Location loc;
};

/// What a rank holds of argument `argument`.
ring::ShardAttr shardOf(Ring &s, unsigned argument);
/// Whether pairs or segments are dropped.
bool hasFlags(Schedule &s);
/// Changes which segments a transfer moves, or which a merge or sum joins.
template <typename OpT>
void changeSegments(Ring &s, OpT op, Emit::Flag flag) {
  Emit e(s, op);
  ring::LayoutAttr layout = op.getLayout();
  int64_t turns = 1;
  if (op.getSegments())
    turns = llvm::cast<mlir::RankedTensorType>(op.getSegments().getType())
                .getDimSize(1);
  mlir::Value table =
      e.changeTable(op.getSegments(),
                    {layout.getParts(), turns, layout.getNumSegments()}, flag);
  if (!op.getTurn())
    op.getTurnMutable().assign(e.index(0));
  op.getSegmentsMutable().assign(table);
}

/// Segments of shards go a hop farther than they are needed.
void sendFarther(Ring &s, ring::StartOp start);

/// A way to break a schedule, and what the proof has to say of it.
template <typename ScheduleT>
struct MutationOf {
  const char *name;
  /// False where this schedule cannot be broken so.
  bool (*apply)(ScheduleT &schedule);
  const char *message; ///< a regular expression
  const char *op;      ///< the same, for the op that is blamed
};
using Mutation = MutationOf<Schedule>;
using GradientMutation = MutationOf<Backward>;
using QueryMutation = MutationOf<Queries>;

llvm::ArrayRef<Mutation> transferMutations();
llvm::ArrayRef<Mutation> attendMutations();
llvm::ArrayRef<Mutation> layoutMutations();
std::vector<Mutation> allMutations();
std::vector<GradientMutation> gradientMutations();
/// Of what is attended and returned, and of what travels.
llvm::ArrayRef<GradientMutation> gradientAttendMutations();
llvm::ArrayRef<GradientMutation> gradientTransferMutations();
llvm::ArrayRef<QueryMutation> queryMutations();

//===----------------------------------------------------------------------===//
// Ways to break transfers of a ring from which something returns to the owner.
// Each is false where it cannot be done.
//===----------------------------------------------------------------------===//

/// The wait in the same hop, or null where it stands in the next.
ring::WaitOp waitInHop(ring::StartOp start);
/// That, or the wait of what the loop carries on.
ring::WaitOp waitOf(ring::StartOp start);
/// What is received is what was sent.
bool dropWait(ring::StartOp start);
bool doubleWait(ring::StartOp start);
bool shiftOwner(Returning &s, ring::StartOp start);
bool shiftReceivedOwner(Returning &s, ring::StartOp start);
/// The slices go one way round, their partial results the other.
bool turnPartialsRound(Returning &s);
bool misdirectOnwardOfOneRank(Returning &s);
bool misdirectReturn(Returning &s);
bool takeReturnFromAnother(Returning &s);
/// One rank does not send, or not receive, what it should.
bool clearSends(Returning &s, ring::StartOp start,
                llvm::ArrayRef<Returning::Message> messages);
bool clearReceives(Returning &s, ring::StartOp start,
                   llvm::ArrayRef<Returning::Message> messages);
/// No rank does.
bool clearBoth(Returning &s, ring::StartOp start,
               llvm::ArrayRef<Returning::Message> messages);
/// Segments of the shard of `owner` move only where `keep` holds.
void keepSegments(Ring &s, ring::StartOp start, mlir::Value owner,
                  mlir::Value keep);
/// In one turn of the loop, all segments are meant too.
template <typename OpT>
void alsoInTurn(Returning &s, OpT op, int64_t turn) {
  changeSegments(s, op, [&](Emit &e, mlir::Value old, mlir::ValueRange) {
    return e.either(old, e.equals(s.loop.getInductionVar(), turn));
  });
}
/// What the owner computes goes round with the rest, and stays with it too.
template <typename OpT>
bool sendOwnPartOnward(Returning &s, llvm::ArrayRef<OpT> joins) {
  if (s.problem.drop)
    return false;
  alsoInTurn(s, s.onward, 0);
  for (OpT join : joins)
    alsoInTurn(s, join, 1);
  return true;
}
bool sendWithTheWrongLayout(Returning &s);
/// A shard, or a partial result, goes on behind its last hop.
bool sendSlicesFarther(Returning &s);
bool sendPartialsFarther(Returning &s);
/// Of a shard that stays with its owner, a partial result returns that nobody
/// has computed, and is joined.
template <typename OpT>
bool returnNothing(Returning &s, llvm::ArrayRef<OpT> joins) {
  auto staysHome = [&](int64_t owner) {
    return llvm::none_of(
        s.returns, [&](const Returning::Message &m) { return m.to == owner; });
  };
  int64_t owner = 0;
  while (owner < s.parts && !staysHome(owner))
    ++owner;
  if (s.parts == 2 || owner == s.parts || !s.toOwner.getSegments())
    return false;
  auto alsoOfOwner = [&](auto op) {
    changeSegments(s, op, [&](Emit &e, mlir::Value old, mlir::ValueRange at) {
      return e.either(old, e.both(e.equals(at[0], owner), e.equals(at[1], 2)));
    });
  };
  alsoOfOwner(s.toOwner);
  for (OpT join : joins)
    alsoOfOwner(join);
  return true;
}
/// Two more partial results come than there is room for.
bool holdTooMany(Returning &s);

/// Breaks `original` in all ways that it can be, each of which must be refused.
/// A rank waits for at most `hops` transfers.
template <typename ScheduleT>
void expectRefusals(mlir::ModuleOp original, const Problem &problem,
                    llvm::ArrayRef<MutationOf<ScheduleT>> mutations,
                    int64_t hops) {
  for (const MutationOf<ScheduleT> &mutation : mutations) {
    SCOPED_TRACE(mutation.name);
    mlir::OwningOpRef<mlir::ModuleOp> module = original.clone();
    ScheduleT schedule(*module, problem);
    if (!mutation.apply(schedule))
      continue;
    // What the verifiers refuse proves nothing about the proof.
    ASSERT_TRUE(succeeded(verify(*module)));
    auto found = proveModule(*module, schedule.options);
    if (!found) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    EXPECT_TRUE(llvm::Regex(mutation.message).match(found->message))
        << found->message;
    ASSERT_TRUE(found->op) << found->message;
    llvm::StringRef op = found->op->getName().getStringRef();
    EXPECT_TRUE(llvm::Regex(mutation.op).match(op))
        << op.str() << ": " << found->message;
    EXPECT_TRUE(found->rank >= 0 && found->rank < problem.parts);
    EXPECT_TRUE(found->hop >= 0 && found->hop <= hops);
  }
}

/// Takes from `left` what some schedule can be broken by.
template <typename ScheduleT>
void removeMade(mlir::ModuleOp original, const Problem &problem,
                std::vector<MutationOf<ScheduleT>> &left) {
  llvm::erase_if(left, [&](const MutationOf<ScheduleT> &mutation) {
    mlir::OwningOpRef<mlir::ModuleOp> module = original.clone();
    ScheduleT schedule(*module, problem);
    return mutation.apply(schedule);
  });
}

} // namespace burst::test

#endif // BURST_TEST_UNIT_SIMULATION_MUTATIONS_H
