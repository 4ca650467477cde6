//===- BurstInterfaces.td - interfaces of the burst dialect -*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_DIALECT_BURST_BURSTINTERFACES_TD
#define BURST_DIALECT_BURST_BURSTINTERFACES_TD

include "mlir/IR/OpBase.td"

/// An op with operand segments, of which those that are not variadic have one
/// operand each: MLIR checks the sum only, and its accessors rely on the rest.
def Burst_FixedSegments : NativeOpTrait<"FixedSegments">, StructuralOpTrait {
  let cppNamespace = "::burst";
}

def Burst_NamedRegionInterface : AttrInterface<"NamedRegionInterface"> {
  let cppNamespace = "::burst";
  let description = [{
    A named mask or score: a short spelling of a region. `burst-expand-names`
    asks it to emit that region, so everything behind that pass knows one
    mechanism only. A new name is one attribute with this interface.
  }];
  let methods = [
    InterfaceMethod<"Whether this names a score (else a mask).", "bool", "isScore",
      (ins), "", "return false;">,
    InterfaceMethod<"Least and largest number of captured tables it takes.",
      "std::pair<unsigned, unsigned>", "numTables", (ins), "", "return {0u, 0u};">,
    InterfaceMethod<[{
      Checks the tables against the sizes of the attention; `emitError` starts a
      diagnostic at the op.
      }], "::llvm::LogicalResult", "verifyTables",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::mlir::TypeRange":$tables, "const ::burst::AttentionSizes &":$sizes),
      "", "return ::mlir::success();">,
    InterfaceMethod<[{
      Emits the region's ops: for a mask the i1 that keeps the pair, for a score
      the new score.
      }], "::mlir::Value", "emit",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "const ::burst::RegionArguments &":$args)>,
  ];
}

def Burst_AttentionInterface : OpInterface<"AttentionInterface"> {
  let cppNamespace = "::burst";
  let description = [{
    What `burst.attention` and `burst.attention_backward` share: a mask, a score,
    a scale, sizes, and tensors that are sharded over ranks. Passes that do not ask
    what is computed work on this.
  }];
  let methods = [
    InterfaceMethod<"", "::mlir::ArrayAttr", "getMaskNamesAttr">,
    InterfaceMethod<"", "::mlir::ArrayAttr", "getScoreNamesAttr">,
    InterfaceMethod<"", "::mlir::Attribute", "removeMaskNamesAttr">,
    InterfaceMethod<"", "::mlir::Attribute", "removeScoreNamesAttr">,
    InterfaceMethod<"", "::mlir::FloatAttr", "getScaleAttr">,
    InterfaceMethod<"", "std::optional<::burst::SequenceAttr>", "getSequence">,
    InterfaceMethod<"", "::burst::AxesAttr", "getHeadsAttr">,
    InterfaceMethod<"", "::burst::AxesAttr", "getBatchAttr">,
    InterfaceMethod<"", "::burst::StrategyAttr", "getStrategyAttr">,
    InterfaceMethod<"", "::mlir::Region &", "getMask">,
    InterfaceMethod<"", "::mlir::Region &", "getScore">,
    InterfaceMethod<"", "::mlir::Region &", "getBounds">,
    InterfaceMethod<"", "::mlir::OperandRange", "getMaskCaptures">,
    InterfaceMethod<"", "::mlir::OperandRange", "getScoreCaptures">,
    InterfaceMethod<"", "::mlir::TypedValue<::mlir::RankedTensorType>", "getQuery">,
    InterfaceMethod<"", "::mlir::TypedValue<::mlir::RankedTensorType>", "getKey">,
    InterfaceMethod<"", "::mlir::TypedValue<::mlir::RankedTensorType>", "getValue">,
    InterfaceMethod<[{
      How each operand and result that is sharded over ranks is: those in front
      of the captures, and all results but the gradients of captures.
      }], "::llvm::SmallVector<::burst::Sharded>", "getSharded">,
  ];
  let extraSharedClassDeclaration = [{
    /// Sizes of the problem; kDynamic where not static.
    ::burst::AttentionSizes getSizes() { return ::burst::sizesOf($_op); }
    /// `scale`, or its default.
    double getScaleOrDefault() { return ::burst::scaleOf($_op); }
    /// f64 for f64 operands, else f32.
    ::mlir::FloatType getStateType() { return ::burst::stateTypeOf($_op); }
  }];
}

#endif // BURST_DIALECT_BURST_BURSTINTERFACES_TD
