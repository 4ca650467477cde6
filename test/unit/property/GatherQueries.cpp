//===- GatherQueries.cpp - a strategy of tests ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/property/GatherQueries.h"

#include "passes/Strategies/ForwardProgram.h"
#include "passes/Strategies/Strategy.h"

using namespace mlir;
using namespace burst;

namespace {
class Program final : public ForwardProgram {
public:
  using ForwardProgram::ForwardProgram;

  void build() {
    beginProgram();
    finish(gather({ownQueries().tensors,
                   {1},
                   query.getExtent(),
                   /*values=*/{},
                   ring::Join::Merge,
                   stateTypes(), // o, m and l
                   {1, 2, 2}},
                  [&](ValueRange queries, ValueRange state) {
                    return attend(gatheredShards(queries), ownKeys(), state);
                  }));
  }
};

struct GatherQueries final : Strategy {
  StringRef getName() const override { return "test_gather_q"; }
  bool isBaseline() const override { return true; }
  std::string whyNot(AttentionInterface op,
                     SequenceAttr sequence) const override {
    return isa<AttentionBackwardOp>(op.getOperation())
               ? "has a forward pass only"
               : "";
  }
  Estimate estimate(const Workload &, const Hardware &) const override {
    return {}; // of no matter: it is never chosen
  }
  void build(AttentionInterface op, const Layout &layout) const override {
    Program(cast<AttentionOp>(op.getOperation()), layout).build();
  }
};
} // namespace

void test::addGatherQueries() {
  static const GatherQueries strategy;
  if (!lookupStrategy(strategy.getName()))
    addStrategy(&strategy);
}
