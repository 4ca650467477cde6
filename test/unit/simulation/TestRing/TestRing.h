//===- TestRing.h - ops from outside of the ring dialect --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_SIMULATION_TESTRING_TESTRING_H
#define BURST_TEST_UNIT_SIMULATION_TESTRING_TESTRING_H

#include "passes/Proof/StepMeaning.h"
#include "passes/Simulation/SimulatedOp.h"
#include "passes/Tile/Lowering.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"

// clang-format off
#include "TestRingDialect.h.inc"
#define GET_OP_CLASSES
#include "TestRing.h.inc"
// clang-format on

#endif // BURST_TEST_UNIT_SIMULATION_TESTRING_TESTRING_H
