//===- Mutations.h - ways to break a schedule -------------------*- C++ -*-===//
#ifndef BURST_TEST_UNIT_MACHINE_MUTATIONS_H
#define BURST_TEST_UNIT_MACHINE_MUTATIONS_H

#include "test/unit/machine/Programs.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// A way to break a schedule, and what the proof has to say of it.
struct Mutation {
  const char *name;
  /// False where this schedule cannot be broken so.
  bool (*apply)(Schedule &schedule);
  const char *message; ///< a regular expression
  const char *op;      ///< the same, for the op that is blamed
};

llvm::ArrayRef<Mutation> allMutations();

} // namespace burst::test

#endif // BURST_TEST_UNIT_MACHINE_MUTATIONS_H
