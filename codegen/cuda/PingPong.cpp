//===- PingPong.cpp - warpgroups begin products one after another ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

namespace burst::cuda {
#define GEN_PASS_DEF_PINGPONGPASS
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
struct PingPong : cuda::impl::PingPongPassBase<PingPong> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    kernel.walk([&](cuda::WarpSpecializeOp specialized) {
      schedule(kernel, specialized);
    });
  }

private:
  static void schedule(func::FuncOp kernel,
                       cuda::WarpSpecializeOp specialized) {
    auto warps = kernel->getAttrOfType<IntegerAttr>(tile::warpsAttr);
    if (warps.getInt() <= 4)
      return; // one warpgroup alone
    SmallVector<scf::ForOp> loops;
    specialized.getConsumers().walk([&](scf::ForOp loop) {
      if (begunTogether(*loop.getBody()).size() > 1)
        loops.push_back(loop);
    });
    if (loops.empty()) {
      specialized.emitRemark("has no ping-pong scheduling: no loop has several "
                             "products under way");
      return;
    }
    tile::LoopBuilder b(specialized.getLoc(), specialized);
    for (scf::ForOp loop : loops) {
      auto products = begunTogether(*loop.getBody());
      b.setLoc(products.front().getLoc());
      b.setInsertionPoint(products.front());
      b.make<cuda::PingPongWaitOp>();
      b.setInsertionPointAfter(products.back());
      b.make<cuda::PingPongSignalOp>();
    }
    b.setLoc(specialized.getLoc());
    b.setInsertionPointToStart(&specialized.getConsumers().front());
    b.make<cuda::PingPongBeginOp>();
    b.setInsertionPointToEnd(&specialized.getConsumers().front());
    b.make<cuda::PingPongEndOp>();
  }
};
} // namespace
