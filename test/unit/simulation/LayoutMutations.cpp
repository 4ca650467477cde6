//===- LayoutMutations.cpp - how sizes and layouts are broken -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/simulation/Mutations.h"

using namespace mlir;

namespace burst::test {

//===----------------------------------------------------------------------===//
// Sizes and layouts
//===----------------------------------------------------------------------===//

/// A layout that assigns otherwise, to as many segments where flags count them.
static ring::LayoutAttr otherLayout(ring::LayoutAttr layout) {
  Order order = layout.getOrder() == Order::Contiguous ? Order::Striped
                                                       : Order::Contiguous;
  return ring::LayoutAttr::get(layout.getContext(),
                               Layout{order, 1, layout.getParts()});
}

static bool growKeyExtent(Schedule &s) {
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    attend.getKeyExtentMutable().set(e.plus(attend.getKeyExtent(), 1));
  }
  return true;
}

static bool growQueryExtentOfOneRank(Schedule &s) {
  for (ring::AttendOp attend : s.attends) {
    Emit e(s, attend);
    Value extent = attend.getQueryExtent();
    attend.getQueryExtentMutable().set(e.onRank(0, e.plus(extent, 1), extent));
  }
  return true;
}

static bool growExtentOfOneAttend(Schedule &s) {
  Emit e(s, s.attends.back());
  s.attends.back().getKeyExtentMutable().set(
      e.plus(s.attends.back().getKeyExtent(), 1));
  return true;
}

static bool growStartExtent(Schedule &s) {
  Emit e(s, s.start);
  s.start.getExtentMutable().set(e.plus(s.start.getExtent(), 1));
  return true;
}

static bool sendAnotherDimension(Schedule &s) {
  s.start.setDims({2, 2});
  return true;
}

/// All ops agree on a layout that is not the arguments'.
static bool relabelOps(Schedule &s) {
  if (hasFlags(s))
    return false;
  ring::LayoutAttr other = otherLayout(s.start.getLayout());
  s.start.setLayoutAttr(other);
  for (ring::AttendOp attend : s.attends) {
    attend.setKeyLayoutAttr(other);
    attend.setQueryLayoutAttr(other);
  }
  return true;
}

static bool relabelArgument(Schedule &s) {
  ring::ShardAttr shard = shardOf(s, 1);
  s.program.setArgAttr(1, ring::shardAttr,
                       ring::ShardAttr::get(s.module.getContext(),
                                            otherLayout(shard.getLayout()),
                                            shard.getDim(), shard.getExtent(),
                                            shard.getAxes()));
  return true;
}

static bool relabelResult(Schedule &s) {
  auto shard =
      s.program.getResultAttrOfType<ring::ShardAttr>(1, ring::shardAttr);
  s.program.setResultAttr(
      1, ring::shardAttr,
      ring::ShardAttr::get(s.module.getContext(),
                           otherLayout(shard.getLayout()), shard.getDim(),
                           shard.getExtent(), shard.getAxes()));
  return true;
}

static bool unlabelResult(Schedule &s) {
  s.program.removeResultAttr(
      0, StringAttr::get(s.module.getContext(), ring::shardAttr));
  return true;
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

ArrayRef<Mutation> layoutMutations() {
  static constexpr Mutation mutations[] = {
      {"the keys' extent is wrong", growKeyExtent,
       "laid out as|its layout says", "ring.attend"},
      {"the queries' extent is wrong on one rank", growQueryExtentOfOneRank,
       "laid out as|its layout says", "ring.attend"},
      {"the extent of one attend is wrong", growExtentOfOneAttend,
       "laid out as|its layout says", "ring.attend"},
      {"a start's extent is wrong", growStartExtent,
       "laid out as|sends a tensor of", "ring.start"},
      {"another dimension is sent", sendAnotherDimension,
       "sends a tensor of|dimension", "ring.start"},
      {"all ops name another layout", relabelOps,
       "laid out as|its layout says|sends a tensor of", "ring.(attend|start)"},
      {"an argument has another layout", relabelArgument,
       "laid out as|its layout says|sends a tensor of", "ring.(attend|start)"},
      {"a result has another layout", relabelResult, "returns as result 1",
       "func.return"},
      {"a result is no shard", unlabelResult, "returns as result 0",
       "func.return"},
  };
  return mutations;
}

} // namespace burst::test
