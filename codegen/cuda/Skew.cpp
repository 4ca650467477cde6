//===- Skew.cpp - weights of a tile over products of its neighbours -------===//
#include "codegen/cuda/Passes.h"
#include "dialect/Tile/Build.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst::cuda {
#define GEN_PASS_DEF_SKEWPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

namespace {

/// A turn of a loop: a product that makes scores, what makes weights of them,
/// and a product of weights and values.
struct Turn {
  scf::ForOp loop;
  cuda::MultiplyAsyncOp scores, outputs;
  cuda::AwaitOp await;         ///< of outputs
  cuda::ReceiveOp receive;     ///< of values
  cuda::ReleaseOp release;     ///< of them
  cuda::ClearOp clear;         ///< of values behind the last one, or none
  Operation *clears = nullptr; ///< the turn's op that has it
  /// The first op that needs the outputs of the turn before: it writes to them,
  /// or to the weights that they are made of.
  Operation *first = nullptr;

  /// The turn that a loop repeats, if it is one.
  static std::optional<Turn> of(scf::ForOp loop);
  /// Whether an op is of the second product, which the next turn does.
  bool isLate(Operation *op) const {
    return op == receive || op == outputs || op == await || op == release ||
           op == clears;
  }
};

/// Skews the loop of one kernel's consumers.
class Skewer {
public:
  explicit Skewer(Turn turn) : turn(turn), b(turn.loop.getLoc(), turn.loop) {}

  void skew();

private:
  void clearEarly();
  void begin();
  void rotate();
  void finish();

  Turn turn;
  tile::LoopBuilder b;
};

} // namespace

std::optional<Turn> Turn::of(scf::ForOp loop) {
  Turn turn;
  turn.loop = loop;
  for (auto product : loop.getBody()->getOps<cuda::MultiplyAsyncOp>()) {
    if (turn.outputs)
      return std::nullopt;
    (turn.scores ? turn.outputs : turn.scores) = product;
  }
  if (!turn.outputs || loop.getNumResults() != 0)
    return std::nullopt;
  turn.receive = turn.outputs.getB().getDefiningOp<cuda::ReceiveOp>();
  turn.await = cast<cuda::AwaitOp>(*turn.outputs.getToken().user_begin());
  if (!turn.receive || turn.receive->getBlock() != loop.getBody() ||
      !turn.scores->isBeforeInBlock(turn.receive))
    return std::nullopt;
  for (Operation *user : turn.receive.getChannel().getUsers())
    if (auto release = dyn_cast<cuda::ReleaseOp>(user);
        release && release->getBlock() == loop.getBody())
      turn.release = release;
  for (Operation *user : turn.receive.getSlot().getUsers()) {
    if (auto clear = dyn_cast<cuda::ClearOp>(user)) {
      turn.clear = clear;
      turn.clears = loop.getBody()->findAncestorOpInBlock(*clear);
    } else if (user != turn.outputs) {
      return std::nullopt;
    }
  }
  for (Value block : {turn.outputs.getA(), turn.outputs.getC()})
    for (Operation *user : block.getUsers()) {
      Operation *op = loop.getBody()->findAncestorOpInBlock(*user);
      if (op && !turn.isLate(op) &&
          (!turn.first || op->isBeforeInBlock(turn.first)))
        turn.first = op;
    }
  // What the next turn does comes behind all else.
  for (Operation &op : loop.getBody()->without_terminator())
    if (!turn.isLate(&op) && turn.receive->isBeforeInBlock(&op))
      return std::nullopt;
  if (!turn.first || !turn.release || turn.first->isBeforeInBlock(turn.scores))
    return std::nullopt;
  return turn;
}

/// Clears values in the turn that knows where they end.
void Skewer::clearEarly() {
  b.setInsertionPoint(turn.clear);
  b.setLoc(turn.receive.getLoc());
  auto slot = cast<cuda::ReceiveOp>(b.clone(*turn.receive));
  turn.clear.getSlotMutable().assign(slot.getSlot());
  turn.clears->moveBefore(turn.loop.getBody()->getTerminator());
  turn.clears = nullptr;
}

/// The first turn of all, up to its weights.
void Skewer::begin() {
  IRMapping mapping;
  mapping.map(turn.loop.getInductionVar(), turn.loop.getLowerBound());
  for (Operation &op : turn.loop.getBody()->without_terminator())
    if (!turn.isLate(&op))
      b.clone(op, mapping);
}

/// Makes a turn compute the scores of its tile and the outputs of the tile
/// before it, and then weights.
void Skewer::rotate() {
  turn.receive->moveAfter(turn.scores);
  turn.outputs->moveAfter(turn.receive);
  turn.await->moveBefore(turn.first);
  turn.release->moveBefore(turn.first);
}

/// The outputs of the last tile.
void Skewer::finish() {
  IRMapping mapping;
  for (Operation *op :
       {turn.receive.getOperation(), turn.outputs.getOperation(),
        turn.await.getOperation(), turn.release.getOperation()})
    b.clone(*op, mapping);
}

void Skewer::skew() {
  scf::ForOp loop = turn.loop;
  if (turn.clear)
    clearEarly();
  b.setInsertionPoint(loop);
  b.setLoc(loop.getLoc());
  Value hasTurns = b.compare(arith::CmpIPredicate::slt, loop.getLowerBound(),
                             loop.getUpperBound());
  b.when(hasTurns, [&] { begin(); });
  loop.setLowerBound(b.add(loop.getLowerBound(), loop.getStep()));
  rotate();
  b.setInsertionPointAfter(loop);
  b.when(hasTurns, [&] { finish(); });
}

/// The turn of all products of consumers, or why there is none.
static std::optional<Turn> findTurn(cuda::RolesOp roles, std::string &reason) {
  llvm::SmallSetVector<scf::ForOp, 1> loops;
  roles.getConsumers().walk([&](cuda::MultiplyAsyncOp product) {
    loops.insert(product->getParentOfType<scf::ForOp>());
  });
  if (loops.size() != 1) {
    reason = llvm::formatv("{0} loops have products, wanted one", loops.size());
    return std::nullopt;
  }
  std::optional<Turn> turn =
      loops.front() ? Turn::of(loops.front()) : std::nullopt;
  if (!turn)
    reason = "a loop does not make scores, weights of them and outputs in turn";
  return turn;
}

namespace {
struct Skew : cuda::impl::SkewPassBase<Skew> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    kernel.walk([](cuda::RolesOp roles) {
      std::string reason;
      if (std::optional<Turn> turn = findTurn(roles, reason))
        Skewer(*turn).skew();
      else
        roles.emitRemark("is not skewed: ") << reason;
    });
  }
};
} // namespace
