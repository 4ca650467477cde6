//===- TestRing.td - ops from outside of the ring dialect ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dialect of tests, whose ops go through all passes of the ring level by
// their interfaces alone: nothing outside of this folder knows them.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_TEST_UNIT_SIMULATION_TESTRING_TESTRING_TD
#define BURST_TEST_UNIT_SIMULATION_TESTRING_TESTRING_TD

include "dialect/Ring/RingOps.td"
include "passes/Proof/ProvedOp.td"
include "passes/Simulation/SimulatedOp.td"
include "passes/Tile/TileLowering.td"

def TestRing_Dialect : Dialect {
  let name = "test_ring";
  let cppNamespace = "::burst::test_ring";
  let dependentDialects = ["::burst::ring::RingDialect"];
}

class TestRing_Step<string mnemonic, list<Trait> traits = []>
    : Op<TestRing_Dialect, mnemonic, traits # [
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<Ring_StepOpInterface, ["getContent"]>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<SimulatedOpInterface>,
        DeclareOpInterfaceMethods<ProvedOpInterface>,
        DeclareOpInterfaceMethods<TileLoweringOpInterface>]>;

/// a + b + c, in this order: two `ring.add` as one step.
def TestRing_AddTwiceOp : TestRing_Step<"add_twice", [
    AttrSizedOperandSegments, Burst_FixedSegments]> {
  let arguments = (ins Ring_OutTensor:$a, Ring_OutTensor:$b, Ring_OutTensor:$c,
      Index:$owner, Index:$extent, Optional<Ring_SegmentTable>:$segmentsOfB,
      Optional<Index>:$turnOfB, Optional<Ring_SegmentTable>:$segmentsOfC,
      Optional<Index>:$turnOfC, Ring_LayoutAttr:$layout);
  let results = (outs Optional<Ring_OutTensor>:$sum);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {5, 6, 7, 8};
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getAMutable(); }
  }];
}

/// `ring.attend` of one slice, with its operands in another order.
def TestRing_AttendOneOp : TestRing_Step<"attend_one", [
    SameVariadicResultSize, AttrSizedOperandSegments, Burst_FixedSegments,
    IsolatedFromAbove, Ring_AttendLikeOpInterface]> {
  let arguments = (ins Ring_OutTensor:$o, Ring_RowTensor:$m, Ring_RowTensor:$l,
      Ring_ShardTensor:$value, Ring_ShardTensor:$key, Index:$keyOwner,
      Ring_ShardTensor:$query, Index:$queryOwner, Index:$keyExtent,
      Index:$queryExtent, Variadic<AnyType>:$maskCaptures, Optional<Ring_PairTable>:$pairs,
      Variadic<AnyType>:$scoreCaptures, Ring_LayoutAttr:$queryLayout,
      Ring_LayoutAttr:$keyLayout, F64Attr:$scale);
  let results = (outs Optional<Ring_OutTensor>:$newO, Optional<Ring_RowTensor>:$newM,
                      Optional<Ring_RowTensor>:$newL);
  let regions = (region AnyRegion:$mask, AnyRegion:$score, AnyRegion:$bounds);
  let assemblyFormat = [{
    operands $mask $score $bounds attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {10, 11, 12};
    ::mlir::FloatType getStateType() {
      return ::llvm::cast<::mlir::FloatType>(
          ::llvm::cast<::mlir::ShapedType>(getO().getType()).getElementType());
    }
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {*this, 0, 3}; }
  }];
}

/// `ring.start`, with its operands in another order.
def TestRing_SendOp : Op<TestRing_Dialect, "send", [
    AttrSizedOperandSegments, Burst_FixedSegments, Ring_TransferOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins Optional<Index>:$turn, Optional<Ring_SegmentTable>:$segments,
      Index:$extent, Optional<Index>:$from, Optional<Index>:$receivedOwner,
      Optional<Index>:$to, Variadic<AnyStridedMemRef>:$into, Index:$owner,
      Variadic<Ring_Tensor>:$tensors, DenseI64ArrayAttr:$dims,
      Ring_LayoutAttr:$layout, Ring_ChannelAttr:$channel, Ring_RouteAttr:$route);
  let results = (outs Ring_TokenType:$token);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    static constexpr unsigned variadicSegments[] = {0, 1, 3, 4, 5, 6, 8};
  }];
}

#endif // BURST_TEST_UNIT_SIMULATION_TESTRING_TESTRING_TD
