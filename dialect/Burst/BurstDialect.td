//===- BurstDialect.td - what is computed -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_BURSTDIALECT_TD
#define BURST_DIALECT_BURST_BURSTDIALECT_TD

include "mlir/IR/OpBase.td"

def Burst_Dialect : Dialect {
  let name = "burst";
  let cppNamespace = "::burst";
  let summary = "Attention, and how its sequence is sharded: what is computed.";
  let description = [{
    A program of this dialect is a function over *global* tensors. It says which
    attention is computed (shapes, mask, score) and over which axis of a device
    grid the sequence is split, in which order. It says nothing of transfers,
    buffers or tiles: those begin in the `ring` dialect.

    ```mlir
    shard.grid @cp(shape = 8)

    func.func @llama3(%q: tensor<1x16384x32x128xbf16>,
                      %k: tensor<1x16384x8x128xbf16>,
                      %v: tensor<1x16384x8x128xbf16>)
        -> (tensor<1x16384x32x128xbf16>, tensor<1x32x16384xf32>) {
      %o, %lse = burst.attention %q, %k, %v mask causal
          sequence <@cp, zigzag>
          : (tensor<1x16384x32x128xbf16>, tensor<1x16384x8x128xbf16>,
             tensor<1x16384x8x128xbf16>)
          -> (tensor<1x16384x32x128xbf16>, tensor<1x32x16384xf32>)
      return %o, %lse : tensor<1x16384x32x128xbf16>, tensor<1x32x16384xf32>
    }
    ```

    The dialect owns one discardable attribute: `burst.name`, a string on an
    argument or a result of a function, by which tools name the tensor in files.
    No two arguments have one name, nor have two results.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif // BURST_DIALECT_BURST_BURSTDIALECT_TD
