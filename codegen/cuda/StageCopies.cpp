//===- StageCopies.cpp - loads to shared memory become copies -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/IRMapping.h"

namespace burst::cuda {
#define GEN_PASS_DEF_STAGECOPIESPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

namespace {

/// Stages the loads of one loop.
class Stager {
public:
  explicit Stager(scf::ForOp loop) : loop(loop), b(loop.getLoc(), loop) {}

  void stage();

private:
  struct Staged {
    tile::LoadOp load;
    Operation *firstRead, *lastRead;
  };

  void copy(const Staged &staged, Value iteration);
  void copyIf(const Staged &staged, Value iteration);
  void synchronize();

  scf::ForOp loop;
  tile::LoopBuilder b;
};

} // namespace

/// Copies what `staged` loads in an iteration: with what its view is computed
/// from.
void Stager::copy(const Staged &staged, Value iteration) {
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) {
    return loop.getBody()->findAncestorOpInBlock(*op) != nullptr;
  };
  llvm::SetVector<Operation *> slice;
  auto load = staged.load;
  std::ignore = getBackwardSlice(load.getView(), &slice, options);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), iteration);
  for (Operation *op : slice)
    b.clone(*op, mapping);
  b.make<cuda::CopyOp>(mapping.lookupOrDefault(load.getView()),
                       load.getBlock());
}

/// The same, if there is such an iteration.
void Stager::copyIf(const Staged &staged, Value iteration) {
  b.when(b.compare(arith::CmpIPredicate::slt, iteration, loop.getUpperBound()),
         [&] { copy(staged, iteration); });
  b.make<cuda::CommitOp>();
}

void Stager::synchronize() {
  b.make<cuda::WaitOp>(0);
  b.make<cuda::SynchronizeOp>();
}

void Stager::stage() {
  SmallVector<Staged> blocks;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
    if (!cuda::isShared(load.getBlock().getType()))
      continue;
    Staged staged{load, nullptr, nullptr};
    for (Operation *user : load.getBlock().getUsers()) {
      Operation *read = loop.getBody()->findAncestorOpInBlock(*user);
      if (!read || user == load)
        continue;
      if (!staged.firstRead || read->isBeforeInBlock(staged.firstRead))
        staged.firstRead = read;
      if (!staged.lastRead || staged.lastRead->isBeforeInBlock(read))
        staged.lastRead = read;
    }
    if (staged.firstRead)
      blocks.push_back(staged);
    else
      load.erase();
  }
  if (blocks.empty())
    return;
  llvm::sort(blocks, [](const Staged &a, const Staged &b) {
    return a.firstRead != b.firstRead &&
           a.firstRead->isBeforeInBlock(b.firstRead);
  });
  Staged first = blocks.front();
  ArrayRef<Staged> others = ArrayRef(blocks).drop_front();

  b.make<cuda::SynchronizeOp>(); // what an earlier loop reads
  copyIf(first, loop.getLowerBound());

  b.setInsertionPoint(first.firstRead);
  synchronize();
  for (const Staged &other : others)
    copy(other, loop.getInductionVar());
  b.make<cuda::CommitOp>();

  if (!others.empty() &&
      !first.lastRead->isBeforeInBlock(others.front().firstRead)) {
    b.setInsertionPoint(others.front().firstRead);
    synchronize();
    // The next of the first block has to wait for its last read.
    b.setInsertionPointAfter(first.lastRead);
    b.make<cuda::SynchronizeOp>();
  } else {
    b.setInsertionPointAfter(first.lastRead);
    if (others.empty())
      b.make<cuda::SynchronizeOp>();
    else
      synchronize();
  }
  copyIf(first, b.add(loop.getInductionVar(), loop.getStep()));
  for (Staged &staged : blocks)
    staged.load.erase();
}

namespace {
struct StageCopies : cuda::impl::StageCopiesPassBase<StageCopies> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(tile::warpsAttr))
      return;
    SmallVector<scf::ForOp> loops;
    kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      Stager(loop).stage();
    SmallVector<tile::LoadOp> rest;
    kernel.walk([&](tile::LoadOp load) {
      if (cuda::isShared(load.getBlock().getType()))
        rest.push_back(load);
    });
    for (tile::LoadOp load : rest) {
      OpBuilder b(load);
      cuda::CopyOp::create(b, load.getLoc(), load.getView(), load.getBlock());
      cuda::CommitOp::create(b, load.getLoc());
      load.erase();
    }
  }
};
} // namespace
