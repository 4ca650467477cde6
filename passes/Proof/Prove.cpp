//===- Prove.cpp - the proof of a schedule --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/Prove.h"

using namespace mlir;
using namespace burst;

StringRef burst::proofText(ProvedFor proved) {
  switch (proved) {
  case ProvedFor::AllRanks:
    return "for every number of ranks";
  case ProvedFor::AllOddRanks:
    return "for every odd number of ranks";
  case ProvedFor::AllEvenRanks:
    return "for every even number of ranks";
  case ProvedFor::TheseRanks:
    return "for these ranks, sizes and tables";
  }
  llvm_unreachable("unknown proof");
}

ProvedFor burst::provedFor(const proof::Verdict &verdict,
                           func::FuncOp program) {
  if (!verdict.isOfOneParity)
    return ProvedFor::AllRanks;
  return ring::shardingOf(program).sequence.size % 2 == 0
             ? ProvedFor::AllEvenRanks
             : ProvedFor::AllOddRanks;
}

/// By the verdict and a look at tables; a reason where that is not enough.
static std::optional<std::string>
proveByContract(func::FuncOp program, const proof::Verdict &verdict,
                ArrayRef<Argument> globals, const ScheduleProofOptions &options,
                ScheduleProof &proved) {
  if (!verdict.isProved())
    return verdict.reason->text;
  if (auto failure =
          proof::checkContract(program, verdict.contract, verdict.attentions,
                               globals, options, proved))
    return failure;
  proved.proved = provedFor(verdict, program);
  return std::nullopt;
}

namespace {
/// The simulation that is given, or one that is made.
class AnySimulation {
public:
  AnySimulation(func::FuncOp program, Simulation *given, int64_t mostRanks)
      : found(given) {
    if (given)
      return;
    made = Simulation::create(program, mostRanks);
    found = made.get();
  }
  Simulation *get() const { return found; }

private:
  std::unique_ptr<Simulation> made;
  Simulation *found;
};
} // namespace

/// Of a program that is proved.
static LogicalResult countTraffic(func::FuncOp program,
                                  ArrayRef<Argument> globals,
                                  const ScheduleProofOptions &options,
                                  ScheduleProof &proved) {
  AnySimulation simulation(program, options.simulation, maxPlannedRanks);
  if (!simulation.get())
    return failure();
  if (auto counterexample = plan(*simulation.get(), globals, proved.traffic,
                                 /*isProved=*/true, options.listener)) {
    report(program, *counterexample);
    return failure();
  }
  return success();
}

LogicalResult burst::proveSchedule(func::FuncOp program,
                                   const proof::Verdict &verdict,
                                   ArrayRef<Argument> globals,
                                   const ScheduleProofOptions &options,
                                   ScheduleProof &proved) {
  std::optional<std::string> reason =
      proveByContract(program, verdict, globals, options, proved);
  if (!reason)
    return options.wantsTraffic || options.listener
               ? countTraffic(program, globals, options, proved)
               : success();
  if (int64_t ranks = ring::numRanks(program); ranks > maxSimulatedRanks) {
    Operation *op =
        verdict.reason && verdict.reason->op ? verdict.reason->op : program;
    InFlightDiagnostic error =
        emitError(op->getLoc())
        << "'" << op->getName()
        << "' op is not proved for every number of ranks: " << *reason;
    error.attachNote(program.getLoc())
        << "nor can all " << ranks << " ranks be simulated; at most "
        << maxSimulatedRanks
        << " can be: lower the program for fewer to see what fails";
    return error;
  }
  AnySimulation simulation(program, options.simulation, maxSimulatedRanks);
  if (!simulation.get())
    return failure();
  proved = ScheduleProof();
  proved.reason = *reason;
  if (auto counterexample = prove(*simulation.get(), globals, options, proved,
                                  options.listener)) {
    report(program, *counterexample);
    return failure();
  }
  return success();
}
