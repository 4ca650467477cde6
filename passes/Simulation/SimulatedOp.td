//===- SimulatedOp.td - what an op does on a simulated rank -*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_SIMULATEDOP_TD
#define BURST_PASSES_SIMULATION_SIMULATEDOP_TD

include "mlir/IR/OpBase.td"

def SimulatedOpInterface : OpInterface<"SimulatedOpInterface"> {
  let cppNamespace = "::burst";
  let description = [{
    The meaning of a step, in terms of a Semantics: the interpreter computes it,
    the proof accounts for it, the plan counts its memory. The steps of the ring
    dialect have it by registerRingSimulation.
  }];
  let methods = [
    InterfaceMethod<[{
      Runs the op on `rank`: reads the operands that `call` gives and gives it
      the results.
      }], "::burst::Step", "simulate",
      (ins "::burst::SimulatedRank &":$rank, "const ::burst::ExternalCall &":$call)>,
    InterfaceMethod<[{
      Whether operands may hold the shards of all ranks. Of other ops a rank fails
      where they do.
      }], "bool", "takesGathered", (ins), "", "return false;">,
  ];
}

#endif // BURST_PASSES_SIMULATION_SIMULATEDOP_TD
