//===- TakeTurns.cpp - one warpgroup multiplies, others do not ------------===//
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

namespace burst::cuda {
#define GEN_PASS_DEF_TAKETURNSPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

/// The products that a block begins before it awaits one of them.
static SmallVector<cuda::MultiplyAsyncOp> begunTogether(Block &block) {
  SmallVector<cuda::MultiplyAsyncOp> begun;
  for (Operation &op : block) {
    if (auto product = dyn_cast<cuda::MultiplyAsyncOp>(op))
      begun.push_back(product);
    if (isa<cuda::AwaitOp>(op))
      break;
  }
  return begun;
}

namespace {
struct TakeTurns : cuda::impl::TakeTurnsPassBase<TakeTurns> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    kernel.walk([&](cuda::RolesOp roles) { takeTurns(kernel, roles); });
  }

private:
  static void takeTurns(func::FuncOp kernel, cuda::RolesOp roles) {
    auto team = kernel->getAttrOfType<IntegerAttr>(cuda::teamAttr);
    if (team.getInt() <= 4)
      return; // one warpgroup has all turns
    SmallVector<scf::ForOp> loops;
    roles.getConsumers().walk([&](scf::ForOp loop) {
      if (begunTogether(*loop.getBody()).size() > 1)
        loops.push_back(loop);
    });
    if (loops.empty()) {
      roles.emitRemark(
          "takes no turns: no loop has several products under way");
      return;
    }
    tile::LoopBuilder b(roles.getLoc(), roles);
    for (scf::ForOp loop : loops) {
      auto products = begunTogether(*loop.getBody());
      b.setLoc(products.front().getLoc());
      b.setInsertionPoint(products.front());
      b.make<cuda::TakeTurnOp>();
      b.setInsertionPointAfter(products.back());
      b.make<cuda::PassTurnOp>();
    }
    b.setLoc(roles.getLoc());
    b.setInsertionPointToStart(&roles.getConsumers().front());
    b.make<cuda::BeginTurnsOp>();
    b.setInsertionPointToEnd(&roles.getConsumers().front());
    b.make<cuda::EndTurnsOp>();
  }
};
} // namespace
