//===- Transfers.cpp - what ranks send each other -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/HostLowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::host;

/// A function of the program that writes something of the segments of an owner:
/// (owner, extent, where).
LLVM::LLVMFuncOp HostLowering::makeWriter(
    const Twine &name,
    llvm::function_ref<void(Value owner, Value extent, Value where)> write) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(program);
  auto function = b.make<LLVM::LLVMFuncOp>(
      (program.getName() + "." + name).str(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  {i64, i64, pointer}));
  function.setLinkage(LLVM::Linkage::Internal);
  Block *block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  write(index(block->getArgument(0)), index(block->getArgument(1)),
        block->getArgument(2));
  b.make<LLVM::ReturnOp>(ValueRange());
  return function;
}

/// What writes how many positions each segment of a part of a layout has, see
/// burst_transfer.
Value HostLowering::countsOf(ring::LayoutAttr layout) {
  LLVM::LLVMFuncOp &function = counts[layout];
  auto write = [&](Value owner, Value extent, Value where) {
    b.loop(b.index(layout.getNumSegments()), [&](Value s) {
      auto segment = b.make<ring::SegmentOp>(s, layout, owner, extent);
      Value place = b.make<LLVM::GEPOp>(pointer, i64, where,
                                        ArrayRef<LLVM::GEPArg>{number(s)});
      b.make<LLVM::StoreOp>(number(segment.getCount()), place);
    });
  };
  if (!function)
    function = makeWriter("counts." + Twine(counts.size() - 1), write);
  return b.make<LLVM::AddressOfOp>(pointer, function.getName());
}

/// What writes where the segments of a part of a layout lie in what its group
/// has, see burst_transfer and Layout::segmentInGroup.
Value HostLowering::segmentsInGroup(ring::TransferOpInterface op) {
  auto members = static_cast<int64_t>(op.getMembers());
  ring::LayoutAttr layout = op.getLayout(), groups = layout.ofGroups(members);
  LLVM::LLVMFuncOp &function = inGroup[{layout, members}];
  auto write = [&](Value owner, Value extent, Value where) {
    Value group = b.make<arith::DivUIOp>(owner, b.index(members));
    Value before = b.index(0);
    for (int64_t s = 0; s < layout.getNumSegments(); ++s) {
      auto own = b.make<ring::SegmentOp>(b.index(s), layout, owner, extent);
      Value begin = own.getBegin(), step = own.getStep();
      if (groups.getParts() > 1) {
        auto of = b.make<ring::SegmentOp>(b.index(s), groups, group, extent);
        begin = b.make<arith::AddIOp>(
            b.make<arith::SubIOp>(begin, of.getBegin()), before);
        before = b.make<arith::AddIOp>(before, of.getCount());
        if (layout.getOrder() == Order::Striped)
          step = b.index(groups.getBlock());
      }
      Value fields[] = {begin, own.getCount(), step, own.getBlock()};
      for (auto [i, value] : llvm::enumerate(fields)) {
        auto place = static_cast<int32_t>(s * std::size(fields) + i);
        b.make<LLVM::StoreOp>(
            number(value), b.make<LLVM::GEPOp>(pointer, i64, where,
                                               ArrayRef<LLVM::GEPArg>{place}));
      }
    }
  };
  if (!function)
    function = makeWriter("in_group." + Twine(inGroup.size() - 1), write);
  return b.make<LLVM::AddressOfOp>(pointer, function.getName());
}

static_assert(offsetof(burst_segment, begin) == 0 &&
              offsetof(burst_segment, count) == sizeof(int64_t) &&
              offsetof(burst_segment, step) == 2 * sizeof(int64_t) &&
              offsetof(burst_segment, block) == 3 * sizeof(int64_t) &&
              sizeof(burst_segment) == 4 * sizeof(int64_t));

static_assert(offsetof(burst_sharded, tensor) == 0 &&
              offsetof(burst_sharded, dims) == sizeof(void *) &&
              offsetof(burst_sharded, element_bytes) ==
                  sizeof(void *) + sizeof(int64_t) &&
              offsetof(burst_sharded, dim) ==
                  sizeof(void *) + 2 * sizeof(int64_t) &&
              offsetof(burst_sharded, heads_dim) ==
                  sizeof(void *) + 3 * sizeof(int64_t) &&
              sizeof(burst_sharded) == sizeof(void *) + 4 * sizeof(int64_t));

/// Tensors as burst_sharded lists them.
Value HostLowering::listSharded(ValueRange tensors, ArrayRef<int64_t> dims,
                                bool isAllToAll) {
  auto sharded = LLVM::LLVMStructType::getLiteral(
      b.getContext(), {pointer, i64, i64, i64, i64});
  Value list = reserve(sharded, static_cast<int64_t>(tensors.size()));
  for (auto [i, tensor, dim] : llvm::enumerate(tensors, dims)) {
    auto type = cast<MemRefType>(tensor.getType());
    SmallVector<Value> members{
        spill(tensor), constant(type.getRank()),
        constant(bytesOf(type.getElementType())), constant(dim),
        constant(isAllToAll ? ring::headsDimOf(type) : -1)};
    for (auto [member, value] : llvm::enumerate(members))
      b.make<LLVM::StoreOp>(
          value, fieldOf(sharded, list,
                         ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i),
                                                static_cast<int32_t>(member)}));
  }
  return list;
}

/// As burst_transfer has it.
static int64_t numberOf(ring::Route route) {
  switch (route) {
  case ring::Route::Shift:
    return BURST_SHIFT;
  case ring::Route::AllGather:
    return BURST_ALL_GATHER;
  case ring::Route::ToHeads:
    return BURST_TO_HEADS;
  case ring::Route::ToSequence:
    return BURST_TO_SEQUENCE;
  }
  llvm_unreachable("unknown route");
}

/// A burst_transfer, whose messages are listed, then started.
void HostLowering::lowerStart(ring::TransferOpInterface op) {
  auto numberOr = [&](Value value, int64_t other) {
    return value ? number(value) : constant(other);
  };
  Value flags = null();
  SmallVector<Value> flagSizes(3, constant(0));
  if (Value table = op.getSegments()) {
    flags = dataOf(table);
    for (auto [d, size] : llvm::enumerate(flagSizes))
      size = number(b.dim(table, d));
  }
  ring::LayoutAttr part = op.getLayout().ofPart();
  RankGroup group = ring::groupOf(program, op.getChannel().getAxes());
  const std::pair<size_t, Value> members[] = {
      {offsetof(burst_transfer, route), constant(numberOf(op.getRoute()))},
      {offsetof(burst_transfer, owner), number(op.getOwner())},
      {offsetof(burst_transfer, to), numberOr(op.getTo(), -1)},
      {offsetof(burst_transfer, received_owner),
       numberOr(op.getReceivedOwner(), -1)},
      {offsetof(burst_transfer, from), numberOr(op.getFrom(), -1)},
      {offsetof(burst_transfer, is_of_gathered),
       constant(op.getLayout().getAll())},
      {offsetof(burst_transfer, num_ranks), constant(group.size)},
      {offsetof(burst_transfer, stride), constant(group.stride)},
      {offsetof(burst_transfer, groups),
       constant(static_cast<int64_t>(op.getGroups()))},
      {offsetof(burst_transfer, num_owners), constant(part.getParts())},
      {offsetof(burst_transfer, num_segments), constant(part.getNumSegments())},
      {offsetof(burst_transfer, extent), number(op.getExtent())},
      {offsetof(burst_transfer, counts), countsOf(part)},
      {offsetof(burst_transfer, in_group),
       op.isAllToAll() ? segmentsInGroup(op) : null()},
      {offsetof(burst_transfer, flags), flags},
      {offsetof(burst_transfer, flag_owners), flagSizes[0]},
      {offsetof(burst_transfer, flag_turns), flagSizes[1]},
      {offsetof(burst_transfer, flag_segments), flagSizes[2]},
      {offsetof(burst_transfer, turn), numberOr(op.getTurn(), 0)},
      {offsetof(burst_transfer, num_tensors),
       constant(static_cast<int64_t>(op.getTensors().size()))},
      {offsetof(burst_transfer, sends),
       listSharded(op.getTensors(), op.getDims(), op.isAllToAll())},
      {offsetof(burst_transfer, receives),
       listSharded(op.getInto(), op.getDims(), op.isAllToAll())}};
  static_assert(sizeof(burst_transfer) == std::size(members) * sizeof(int64_t));
  Value transfer = reserve(i64, std::size(members));
  for (auto [offset, value] : members)
    b.make<LLVM::StoreOp>(
        value, fieldOf(b.getI8Type(), transfer,
                       ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)}));
  Value messages = call(Entry::Messages, pointer, {transfer});
  Value token =
      call(Entry::Start, i64, {constant(op.getChannel().getIndex()), messages});
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
