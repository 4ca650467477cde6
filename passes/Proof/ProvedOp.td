//===- ProvedOp.td - what an op does, to a proof ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_PROOF_PROVEDOP_TD
#define BURST_PASSES_PROOF_PROVEDOP_TD

include "mlir/IR/OpBase.td"

def ProvedOpInterface : OpInterface<"ProvedOpInterface"> {
  let cppNamespace = "::burst";
  let description = [{
    What a step does to states and gradients, said of its operands and results:
    from it a proof for every number of ranks takes the conditions of the step.
    The steps of the ring dialect have it by registerRingProof; a program with
    other steps is simulated.
  }];
  let methods = [
    InterfaceMethod<[{
      Says what the op does, on tensors.
      }], "::burst::proof::StepMeaning", "describe">,
  ];
}

#endif // BURST_PASSES_PROOF_PROVEDOP_TD
