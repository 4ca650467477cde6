//===- Transfers.cpp - what ranks send each other -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/HostLowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::host;

/// Lists what travels of `tensors`, which are shards of `owner`: a piece per
/// tensor and segment that is flagged and not empty.
Value HostLowering::pieces(ValueRange tensors, ring::StartOp op, Value owner,
                           Value &count) {
  ring::LayoutAttr layout = op.getLayout();
  int64_t segments = layout.getNumSegments();
  auto four = LLVM::LLVMArrayType::get(i64, 4);
  auto piece = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                                {pointer, i64, four, four});
  // Each is written at the end of the list, and stays where it is needed.
  Value list =
      reserve(piece, static_cast<int64_t>(tensors.size()) * segments + 1);
  count = constant(0);
  for (auto [tensor, dim] : llvm::zip_equal(tensors, op.getDims())) {
    auto type = cast<MemRefType>(tensor.getType());
    Value buffer = spill(tensor);
    Value row = constant(0);
    for (int64_t i = 0; i < segments; ++i) {
      Value rows = number(
          b.make<ring::SegmentOp>(i, layout, owner, op.getExtent()).getCount());
      Value wanted = rows;
      if (op.getSegments()) {
        Value flag =
            b.load(op.getSegments(),
                   ring::segmentIndices(b, op.getLoc(), op.getSegments(), owner,
                                        op.getTurn(), b.index(i)));
        wanted = b.select(flag, rows, constant(0));
      }
      count = call(Entry::Piece, i64,
                   {list, count, buffer, constant(type.getRank()),
                    constant(bytesOf(type.getElementType())), constant(dim),
                    row, wanted});
      row = b.make<LLVM::AddOp>(row, rows);
    }
  }
  return list;
}

void HostLowering::lowerStart(ring::StartOp op) {
  Value numSends, numReceives;
  Value sends = pieces(op.getTensors(), op, op.getOwner(), numSends);
  Value receives = pieces(op.getInto(), op, op.getReceivedOwner(), numReceives);
  Value token =
      call(Entry::Start, i64,
           {constant(op.getChannel().getIndex()), number(op.getTo()), numSends,
            sends, number(op.getFrom()), numReceives, receives});
  op.getToken().replaceAllUsesWith(token);
}

/// Tokens that loops carry become numbers, as those that transfers make.
void HostLowering::carryNumbers() {
  program.walk([&](scf::ForOp loop) {
    auto retype = [&](Value value) {
      if (isa<ring::TokenType>(value.getType()))
        value.setType(i64);
    };
    llvm::for_each(loop.getRegionIterArgs(), retype);
    llvm::for_each(loop.getResults(), retype);
  });
}
