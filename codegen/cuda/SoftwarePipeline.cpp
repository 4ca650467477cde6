//===- SoftwarePipeline.cpp - weights over products of neighbours ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst::cuda {
#define GEN_PASS_DEF_SOFTWAREPIPELINEPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

namespace {

/// An iteration of a loop: a product that makes scores, what makes weights of
/// them, and a product of weights and values.
struct Iteration {
  scf::ForOp loop;
  cuda::MultiplyAsyncOp scores, outputs;
  cuda::AwaitOp await;             ///< of outputs
  cuda::ConsumerWaitOp wait;       ///< of values
  cuda::ConsumerReleaseOp release; ///< of them
  cuda::ClearOp clear;             ///< of values behind the last one, or none
  Operation *clears = nullptr;     ///< the iteration's op that has it
  /// The first op that needs the outputs of the iteration before: it writes to
  /// them, or to the weights that they are made of.
  Operation *first = nullptr;

  /// The iteration that a loop repeats, if it is one.
  static std::optional<Iteration> of(scf::ForOp loop);
  /// Whether an op is of the second product, which the next iteration does.
  bool isLate(Operation *op) const {
    return op == wait || op == outputs || op == await || op == release ||
           op == clears;
  }
};

/// Software-pipelines the loop of one kernel's consumers.
class Pipeliner {
public:
  explicit Pipeliner(Iteration iteration)
      : iteration(iteration), b(iteration.loop.getLoc(), iteration.loop) {}

  void pipeline();

private:
  void clearEarly();
  void begin();
  void rotate();
  void finish();

  Iteration iteration;
  tile::LoopBuilder b;
};

} // namespace

std::optional<Iteration> Iteration::of(scf::ForOp loop) {
  Iteration iteration;
  iteration.loop = loop;
  for (auto product : loop.getBody()->getOps<cuda::MultiplyAsyncOp>()) {
    if (iteration.outputs)
      return std::nullopt;
    (iteration.scores ? iteration.outputs : iteration.scores) = product;
  }
  if (!iteration.outputs || loop.getNumResults() != 0)
    return std::nullopt;
  iteration.wait =
      iteration.outputs.getB().getDefiningOp<cuda::ConsumerWaitOp>();
  iteration.await =
      cast<cuda::AwaitOp>(*iteration.outputs.getToken().user_begin());
  if (!iteration.wait || iteration.wait->getBlock() != loop.getBody() ||
      !iteration.scores->isBeforeInBlock(iteration.wait))
    return std::nullopt;
  for (Operation *user : iteration.wait.getPipeline().getUsers())
    if (auto release = dyn_cast<cuda::ConsumerReleaseOp>(user);
        release && release->getBlock() == loop.getBody())
      iteration.release = release;
  for (Operation *user : iteration.wait.getStage().getUsers()) {
    if (auto clear = dyn_cast<cuda::ClearOp>(user)) {
      iteration.clear = clear;
      iteration.clears = loop.getBody()->findAncestorOpInBlock(*clear);
    } else if (user != iteration.outputs) {
      return std::nullopt;
    }
  }
  for (Value block : {iteration.outputs.getA(), iteration.outputs.getC()})
    for (Operation *user : block.getUsers()) {
      Operation *op = loop.getBody()->findAncestorOpInBlock(*user);
      if (op && !iteration.isLate(op) &&
          (!iteration.first || op->isBeforeInBlock(iteration.first)))
        iteration.first = op;
    }
  // What the next iteration does comes behind all else.
  for (Operation &op : loop.getBody()->without_terminator())
    if (!iteration.isLate(&op) && iteration.wait->isBeforeInBlock(&op))
      return std::nullopt;
  if (!iteration.first || !iteration.release ||
      iteration.first->isBeforeInBlock(iteration.scores))
    return std::nullopt;
  return iteration;
}

/// Clears values in the iteration that knows where they end.
void Pipeliner::clearEarly() {
  b.setInsertionPoint(iteration.clear);
  b.setLoc(iteration.wait.getLoc());
  auto stage = cast<cuda::ConsumerWaitOp>(b.clone(*iteration.wait));
  iteration.clear.getStageMutable().assign(stage.getStage());
  iteration.clears->moveBefore(iteration.loop.getBody()->getTerminator());
  iteration.clears = nullptr;
}

/// The first iteration of all, up to its weights.
void Pipeliner::begin() {
  IRMapping mapping;
  mapping.map(iteration.loop.getInductionVar(), iteration.loop.getLowerBound());
  for (Operation &op : iteration.loop.getBody()->without_terminator())
    if (!iteration.isLate(&op))
      b.clone(op, mapping);
}

/// Makes an iteration compute the scores of its tile and the outputs of the
/// tile before it, and then weights.
void Pipeliner::rotate() {
  iteration.wait->moveAfter(iteration.scores);
  iteration.outputs->moveAfter(iteration.wait);
  iteration.await->moveBefore(iteration.first);
  iteration.release->moveBefore(iteration.first);
}

/// The outputs of the last tile.
void Pipeliner::finish() {
  IRMapping mapping;
  for (Operation *op :
       {iteration.wait.getOperation(), iteration.outputs.getOperation(),
        iteration.await.getOperation(), iteration.release.getOperation()})
    b.clone(*op, mapping);
}

void Pipeliner::pipeline() {
  scf::ForOp loop = iteration.loop;
  if (iteration.clear)
    clearEarly();
  b.setInsertionPoint(loop);
  b.setLoc(loop.getLoc());
  Value hasIterations = b.compare(arith::CmpIPredicate::slt,
                                  loop.getLowerBound(), loop.getUpperBound());
  b.when(hasIterations, [&] { begin(); });
  loop.setLowerBound(b.add(loop.getLowerBound(), loop.getStep()));
  rotate();
  b.setInsertionPointAfter(loop);
  b.when(hasIterations, [&] { finish(); });
}

/// The iteration of all products of consumers, or why there is none.
static std::optional<Iteration>
findIteration(cuda::WarpSpecializeOp specialized, std::string &reason) {
  llvm::SmallSetVector<scf::ForOp, 1> loops;
  specialized.getConsumers().walk([&](cuda::MultiplyAsyncOp product) {
    loops.insert(product->getParentOfType<scf::ForOp>());
  });
  if (loops.size() != 1) {
    reason = llvm::formatv("{0} loops have products, wanted one", loops.size());
    return std::nullopt;
  }
  std::optional<Iteration> iteration =
      loops.front() ? Iteration::of(loops.front()) : std::nullopt;
  if (!iteration)
    reason = "a loop does not make scores, weights of them and outputs in this "
             "order";
  return iteration;
}

namespace {
struct SoftwarePipeline
    : cuda::impl::SoftwarePipelinePassBase<SoftwarePipeline> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    kernel.walk([](cuda::WarpSpecializeOp specialized) {
      std::string reason;
      if (std::optional<Iteration> iteration =
              findIteration(specialized, reason))
        Pipeliner(*iteration).pipeline();
      else
        specialized.emitRemark("is not software-pipelined: ") << reason;
    });
  }
};
} // namespace
