//===- Mutations.h - ways to break a schedule -------------------*- C++ -*-===//
#ifndef BURST_TEST_UNIT_MACHINE_MUTATIONS_H
#define BURST_TEST_UNIT_MACHINE_MUTATIONS_H

#include "test/unit/machine/Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"

namespace burst::test {

/// The ops of a ring, found by their kind, and what they did when it ran: the
/// text of the IR may change.
struct Schedule {
  Schedule(mlir::ModuleOp module, const Problem &problem);

  mlir::ModuleOp module;
  const Problem &problem;
  int64_t parts;
  mlir::func::FuncOp program;
  mlir::Value rank;
  ring::InitOp init;
  std::vector<ring::AttendOp> attends; ///< in the order of the program
  ring::StartOp start;
  ring::WaitOp wait;
  ring::FinalizeOp finalize;
  mlir::scf::ForOp loop; ///< null where two ranks make it one hop

  /// Options under which the unbroken schedule is accepted.
  ProofOptions options;

  struct Message {
    int64_t from, to, hop;
  };
  std::vector<Message> messages;
  /// Whether some rank needs what its last hop brings.
  bool needsLast = false;
  /// Whether some attend has a pair of segments that the mask rules out.
  bool hasRuledOut = false;
};

/// Emits index arithmetic in front of an op.
struct Emit {
  Emit(Schedule &schedule, mlir::Operation *before)
      : schedule(schedule), builder(before), loc(before->getLoc()) {}

  /// Behind the op that gives the rank: in front of all hops.
  static Emit atTop(Schedule &schedule) {
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
  mlir::Value differs(mlir::Value a, int64_t b) {
    return mlir::arith::CmpIOp::create(
        builder, loc, mlir::arith::CmpIPredicate::ne, a, index(b));
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

  /// A hop of its own: this rank's shard goes ahead, the one behind comes.
  ring::StartOp send(mlir::Value tensor, ring::ShardAttr shard, int64_t channel,
                     llvm::StringRef grid = "cp") {
    auto name = mlir::FlatSymbolRefAttr::get(builder.getContext(), grid);
    mlir::Value from = ahead(schedule.rank, schedule.parts - 1);
    return ring::StartOp::create(
        builder, loc,
        ring::TokenType::get(builder.getContext(), tensor.getType()), tensor,
        schedule.rank, index(shard.getExtent()), ahead(schedule.rank),
        mlir::ValueRange(), from, from, mlir::ValueRange(), mlir::ValueRange(),
        llvm::ArrayRef<int64_t>{1}, shard.getLayout(),
        ring::ChannelAttr::get(builder.getContext(), name, channel));
  }
  mlir::Value receive(ring::StartOp start) {
    return ring::WaitOp::create(builder, loc,
                                start.getTensors().front().getType(),
                                start.getToken())
        .getResult(0);
  }
  mlir::Value exchange(mlir::Value tensor, ring::ShardAttr shard) {
    return ring::ExchangeOp::create(
        builder, loc, tensor.getType(), tensor, schedule.rank, shard, shard,
        ring::ChannelAttr::get(
            builder.getContext(),
            mlir::FlatSymbolRefAttr::get(builder.getContext(), "cp"), 7));
  }
  mlir::scf::IfOp branchOnRank(int64_t rank, mlir::TypeRange results = {}) {
    return mlir::scf::IfOp::create(builder, loc, results, isRank(rank),
                                   /*withElseRegion=*/true);
  }

  Schedule &schedule;
  mlir::OpBuilder builder;
  mlir::Location loc;
};

/// What a rank holds of argument `argument`.
ring::ShardAttr shardOf(Schedule &s, unsigned argument);
/// Whether pairs or segments are dropped.
bool hasFlags(Schedule &s);
/// Pairs of an attend, all true where it has none.
llvm::SmallVector<mlir::Value> pairsOf(Emit &e, ring::AttendOp attend);

/// A way to break a schedule, and what the proof has to say of it.
struct Mutation {
  const char *name;
  /// False where this schedule cannot be broken so.
  bool (*apply)(Schedule &schedule);
  const char *message; ///< a regular expression
  const char *op;      ///< the same, for the op that is blamed
};

llvm::ArrayRef<Mutation> transferMutations();
llvm::ArrayRef<Mutation> attendMutations();
llvm::ArrayRef<Mutation> layoutMutations();
std::vector<Mutation> allMutations();

} // namespace burst::test

#endif // BURST_TEST_UNIT_MACHINE_MUTATIONS_H
