//===- RingInterfaces.td - interfaces of the ring dialect ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes ask of an op in place of its name. A dialect that brings an op of
// its own implements them, and, for proof and kernels, SimulatedOpInterface and
// TileLoweringOpInterface of the passes; see docs/how-to.md, "Add a step".
//
//===----------------------------------------------------------------------===//
#ifndef BURST_DIALECT_RING_RINGINTERFACES_TD
#define BURST_DIALECT_RING_RINGINTERFACES_TD

include "mlir/IR/OpBase.td"

def Ring_StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::burst::ring";
  let description = [{
    A step of a rank's program: it computes, and neither communicates nor
    branches.

    On tensors every result is a new value. On buffers a step has no results. A
    result that is *tied* to an operand is written to the buffer of that operand;
    a step whose results need memory of their own takes it as the operands that
    `getResultMemory` gives, one per result. A result may be both: it is written
    where it is told to, which may be the buffer of the tied operand.

    Steps whose results are all tied implement `DestinationStyleOpInterface`, from
    which `getTiedOperand` takes its default.
  }];
  let methods = [
    InterfaceMethod<[{
      The operand whose memory `result` takes over; null where it has its own.
      }], "::mlir::OpOperand *", "getTiedOperand", (ins "::mlir::OpResult":$result),
      "", [{
        auto step = ::llvm::dyn_cast<::mlir::DestinationStyleOpInterface>(
            $_op.getOperation());
        return step ? step.getTiedOpOperand(result) : nullptr;
      }]>,
    InterfaceMethod<[{
      The operands into which results are written on buffers, none on tensors;
      nullopt where all results are tied.
      }], "std::optional<::mlir::MutableOperandRange>", "getResultMemory", (ins),
      "", "return std::nullopt;">,
    InterfaceMethod<[{
      What says how large `result`, which has memory of its own, is along `dim`.
      }], "::burst::ring::SizeSource", "getSizeSource",
      (ins "::mlir::OpResult":$result, "int64_t":$dim), "",
      [{ return {$_op->getOperand(0), dim}; }]>,
    InterfaceMethod<[{
      What `value`, an operand or a result, holds.
      }], "::burst::ring::Content", "getContent", (ins "::mlir::Value":$value), "",
      "return ::burst::ring::Content::Data;">,
    InterfaceMethod<[{
      Whether the step reads `operand` and leaves it as it is: neither is it tied
      nor does it end here with one that is.
      }], "bool", "isOnlyRead", (ins "::mlir::OpOperand &":$operand), "", [{
        auto step = ::llvm::cast<StepOpInterface>($_op.getOperation());
        return !step.getTiedResult(operand);
      }]>,
  ];
  let extraClassDeclaration = [{
    /// The result that takes over the memory of `operand`; null where none does.
    ::mlir::OpResult getTiedResult(::mlir::OpOperand &operand) {
      for (::mlir::OpResult result : getOperation()->getResults())
        if (getTiedOperand(result) == &operand)
          return result;
      return {};
    }
  }];
}

def Ring_AttendLikeOpInterface : OpInterface<"AttendLikeOpInterface"> {
  let cppNamespace = "::burst::ring";
  let description = [{
    A step in which a shard of queries and a slice of keys come together, under a
    mask: forward, backward, or to store scores. The regions are those of
    `burst.attention`.
  }];
  let methods = [
    InterfaceMethod<"The shard of queries.", "::mlir::OpOperand &", "getQueryMutable">,
    InterfaceMethod<"Whose shard of queries it is.", "::mlir::OpOperand &",
      "getQueryOwnerMutable">,
    InterfaceMethod<"How many positions the queries have in all.",
      "::mlir::OpOperand &", "getQueryExtentMutable">,
    InterfaceMethod<"How queries are laid out.", "::burst::ring::LayoutAttr",
      "getQueryLayout">,
    InterfaceMethod<"Whose keys the slice has.", "::mlir::OpOperand &",
      "getKeyOwnerMutable">,
    InterfaceMethod<"How many positions the keys have in all.",
      "::mlir::OpOperand &", "getKeyExtentMutable">,
    InterfaceMethod<"How keys are laid out.", "::burst::ring::LayoutAttr",
      "getKeyLayout">,
    InterfaceMethod<[{
      The global numbers of the first batch and the first query head, each in front
      of how many there are in all: none where these tensors have all of them.
      }], "::mlir::MutableOperandRange", "getOffsetsMutable", (ins), "",
      "return ::mlir::MutableOperandRange($_op, 0, 0);">,
    InterfaceMethod<[{
      The table of the pairs of segments that are computed, see `ring.attend`, or
      none.
      }], "::mlir::MutableOperandRange", "getPairsMutable">,
    InterfaceMethod<[{
      Whether pairs that the mask rules out may be left out, and slices of which
      all are may stay where they are.
      }], "bool", "mayDropPairs", (ins), "", "return true;">,
    InterfaceMethod<[{
      Whether it begins from nothing, and makes its state or gradients: it runs where
      no pair is computed, too.
      }], "bool", "isFirst", (ins), "", "return false;">,
    InterfaceMethod<[{
      Whether it gives what is final, in place of a state: it runs where no pair is
      computed, too.
      }], "bool", "isLast", (ins), "", "return false;">,
    InterfaceMethod<"The mask, which may be empty.", "::mlir::Region &", "getMask">,
    InterfaceMethod<"The score, which may be empty.", "::mlir::Region &", "getScore">,
    InterfaceMethod<"Bounds of the mask, which may be empty.", "::mlir::Region &",
      "getBounds">,
    InterfaceMethod<"What mask and bounds capture.", "::mlir::MutableOperandRange",
      "getMaskCapturesMutable">,
    InterfaceMethod<"What the score captures.", "::mlir::MutableOperandRange",
      "getScoreCapturesMutable">,
    InterfaceMethod<"What products are scaled by.", "::llvm::APFloat", "getScale">,
    InterfaceMethod<"The type of softmax states and gradients.", "::mlir::FloatType",
      "getStateType">,
  ];
  let extraClassDeclaration = [{
    ::mlir::OperandRange getMaskCaptures() { return getMaskCapturesMutable(); }
    ::mlir::OperandRange getScoreCaptures() { return getScoreCapturesMutable(); }
    ::mlir::Value getQuery() { return getQueryMutable().get(); }
    ::mlir::Value getQueryOwner() { return getQueryOwnerMutable().get(); }
    ::mlir::Value getQueryExtent() { return getQueryExtentMutable().get(); }
    ::mlir::Value getKeyOwner() { return getKeyOwnerMutable().get(); }
    ::mlir::Value getKeyExtent() { return getKeyExtentMutable().get(); }
    /// Null where all pairs are computed.
    ::mlir::Value getPairs() {
      ::mlir::OperandRange pairs = getPairsMutable();
      return pairs.empty() ? ::mlir::Value() : pairs.front();
    }
    /// Whether there is nothing to do where no pair is computed.
    bool mayBeSkipped() {
      auto attend = ::llvm::cast<AttendLikeOpInterface>(getOperation());
      return !attend.isFirst() && !attend.isLast();
    }
  }];
}

def Ring_TransferOpInterface : OpInterface<"TransferOpInterface"> {
  let cppNamespace = "::burst::ring";
  let description = [{
    What begins to send shards of this rank's tensors to other ranks and to receive
    others, by a route that all ranks of a channel take: `ring.start`, where the
    operands are explained. `ring.wait` of its token gives what is received.

    The result is the token alone, and on buffers the operands `into` take what is
    received; bufferization clones the op with buffers in place of tensors.
  }];
  let methods = [
    InterfaceMethod<"The tensors that are sent.", "::mlir::OperandRange",
      "getTensors">,
    InterfaceMethod<"Whose shards they are.", "::mlir::OpOperand &",
      "getOwnerMutable">,
    InterfaceMethod<"How many positions each tensor has in all along its dimension.",
      "::mlir::OpOperand &", "getExtentMutable">,
    InterfaceMethod<"The rank that a shift sends to.", "::mlir::MutableOperandRange",
      "getToMutable">,
    InterfaceMethod<"Whose shards a shift receives.", "::mlir::MutableOperandRange",
      "getReceivedOwnerMutable">,
    InterfaceMethod<"The rank from which a shift receives.",
      "::mlir::MutableOperandRange", "getFromMutable">,
    InterfaceMethod<"The table of the segments that travel, or none where all do.",
      "::mlir::MutableOperandRange", "getSegmentsMutable">,
    InterfaceMethod<"The turn of the table.", "::mlir::MutableOperandRange",
      "getTurnMutable">,
    InterfaceMethod<"On buffers, where what is received goes.",
      "::mlir::MutableOperandRange", "getIntoMutable">,
    InterfaceMethod<"The dimension of each tensor that is sharded.",
      "::llvm::ArrayRef<int64_t>", "getDims">,
    InterfaceMethod<"How that dimension is laid out.", "::burst::ring::LayoutAttr",
      "getLayout">,
    InterfaceMethod<"Where messages meet.", "::burst::ring::ChannelAttr",
      "getChannel">,
    InterfaceMethod<"Who sends to whom.", "::burst::ring::Route", "getRoute">,
    InterfaceMethod<"How many ranks an all-to-all is over; 1 of other routes.",
      "uint64_t", "getMembers", (ins), "", "return 1;">,
    InterfaceMethod<"In how many groups an all-to-all has ranks and heads.",
      "uint64_t", "getGroups", (ins), "", "return 1;">,
    InterfaceMethod<"The token, with the types of what is received on tensors.",
      "::mlir::TypedValue<::burst::ring::TokenType>", "getToken">,
  ];
  let verify = "return ::burst::ring::verifyTransfer($_op);";
  let extraSharedClassDeclaration = [{
    bool isGather() { return $_op.getRoute() == ::burst::ring::Route::AllGather; }
    bool isAllToAll() {
      return $_op.getRoute() == ::burst::ring::Route::ToHeads ||
             $_op.getRoute() == ::burst::ring::Route::ToSequence;
    }
    /// That of what is sent: of an all-to-all the shards that it takes.
    ::burst::ring::LayoutAttr getSentLayout() {
      return $_op.getRoute() == ::burst::ring::Route::ToSequence
                 ? $_op.getLayout().ofGroups($_op.getMembers())
                 : $_op.getLayout();
    }
    /// That of what is received.
    ::burst::ring::LayoutAttr getReceivedLayout() {
      switch ($_op.getRoute()) {
      case ::burst::ring::Route::AllGather:
        return $_op.getLayout().ofAll();
      case ::burst::ring::Route::ToHeads:
        return $_op.getLayout().ofGroups($_op.getMembers());
      case ::burst::ring::Route::Shift:
      case ::burst::ring::Route::ToSequence:
        return $_op.getLayout().ofPart();
      }
      llvm_unreachable("unknown route");
    }
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getOwner() { return getOwnerMutable().get(); }
    ::mlir::Value getExtent() { return getExtentMutable().get(); }
    ::mlir::Value getTo() { return only(getToMutable()); }
    ::mlir::Value getReceivedOwner() { return only(getReceivedOwnerMutable()); }
    ::mlir::Value getFrom() { return only(getFromMutable()); }
    ::mlir::Value getSegments() { return only(getSegmentsMutable()); }
    ::mlir::Value getTurn() { return only(getTurnMutable()); }
    ::mlir::OperandRange getInto() { return getIntoMutable(); }
    /// The dimension along which one of the tensors is sharded.
    int64_t getDim(::mlir::OpOperand &tensor) {
      return getDims()[tensor.getOperandNumber() -
                       getTensors().getBeginOperandIndex()];
    }

  private:
    /// Null where there is none.
    static ::mlir::Value only(::mlir::OperandRange operands) {
      return operands.empty() ? ::mlir::Value() : operands.front();
    }

  public:
  }];
}

def Ring_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::burst::ring";
  let description = [{
    What strategies write in place of transfers: an op that brings shards of other
    ranks into its region.
  }];
  let methods = [
    InterfaceMethod<"This rank's shards of what is brought.",
      "::mlir::OperandRange", "getTensors">,
    InterfaceMethod<"What the region is given of each of them.",
      "::mlir::ValueRange", "getBrought">,
    InterfaceMethod<"This rank.", "::mlir::TypedValue<::mlir::IndexType>",
      "getRank">,
    InterfaceMethod<[{
      Whose shards the region is given: an argument of the region; null where those
      of all.
      }], "::mlir::Value", "getBroughtOwner">,
  ];
}

#endif // BURST_DIALECT_RING_RINGINTERFACES_TD
