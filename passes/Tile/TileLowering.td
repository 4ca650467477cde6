//===- TileLowering.td - the kernels of a step --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_TILE_TILELOWERING_TD
#define BURST_PASSES_TILE_TILELOWERING_TD

include "mlir/IR/OpBase.td"

def TileLoweringOpInterface : OpInterface<"TileLoweringOpInterface"> {
  let cppNamespace = "::burst";
  let description = [{
    The kernels that a step on buffers becomes. The steps of the ring dialect have
    it by registerRingTileLowering.
  }];
  let methods = [
    InterfaceMethod<[{
      Replaces the op by launches of kernels over tiles, and erases it.
      }], "void", "lowerToTile", (ins "::burst::tiling::Lowering &":$lowering)>,
  ];
}

#endif // BURST_PASSES_TILE_TILELOWERING_TD
