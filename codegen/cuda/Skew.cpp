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
  cuda::AwaitOp await;     ///< of outputs
  cuda::ReceiveOp receive; ///< of values
  cuda::ReleaseOp release; ///< of them
  cuda::ClearOp clear;     ///< of values behind the last one, or none
  /// The first op that needs the outputs of the turn before: it writes to them,
  /// or to the weights that they are made of.
  Operation *first = nullptr;

  /// The turn that a loop repeats, if it is one.
  static std::optional<Turn> of(scf::ForOp loop);
  /// Whether turns can be of one sequence.
  bool isLike(Turn other);
  /// Whether an op is of the second product, which the next turn does.
  bool isLate(Operation *op) const {
    return op == receive || op == outputs || op == await || op == release ||
           op == clear;
  }
};

/// Skews the loops of one kernel's consumers.
class Skewer {
public:
  explicit Skewer(cuda::RolesOp roles)
      : roles(roles), b(roles.getLoc(), roles) {}

  /// Why they stay as they are, or nothing.
  std::string collect();
  void skew();

private:
  void begin(Turn turn, Value isFirst);
  void rotate(Turn &turn);
  void finish(Turn turn);

  cuda::RolesOp roles;
  tile::LoopBuilder b;
  SmallVector<Turn> turns;
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
    if (auto clear = dyn_cast<cuda::ClearOp>(user))
      turn.clear = clear;
    else if (user != turn.outputs)
      return std::nullopt;
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

bool Turn::isLike(Turn other) {
  return loop->getBlock() == other.loop->getBlock() &&
         outputs.getA() == other.outputs.getA() &&
         outputs.getC() == other.outputs.getC() &&
         receive.getChannel() == other.receive.getChannel();
}

std::string Skewer::collect() {
  SmallVector<scf::ForOp> loops;
  roles.getConsumers().walk([&](cuda::MultiplyAsyncOp product) {
    auto loop = product->getParentOfType<scf::ForOp>();
    if (!llvm::is_contained(loops, loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    std::optional<Turn> turn = loop ? Turn::of(loop) : std::nullopt;
    if (!turn)
      return "a loop does not make scores, weights of them and outputs in turn";
    if (!turns.empty() && !turn->isLike(turns.front()))
      return "loops do not have their outputs in common";
    turns.push_back(*turn);
  }
  if (turns.empty())
    return "no loop has products";
  // What is done between loops is done before the last outputs are there.
  Operation *firstLoop = turns.front().loop, *lastLoop = turns.back().loop;
  for (Value block :
       {turns.front().outputs.getA(), turns.front().outputs.getC()})
    for (Operation *user : block.getUsers()) {
      Operation *op = firstLoop->getBlock()->findAncestorOpInBlock(*user);
      if (op && firstLoop->isBeforeInBlock(op) &&
          op->isBeforeInBlock(lastLoop) &&
          llvm::none_of(turns,
                        [&](const Turn &turn) { return turn.loop == op; }))
        return "outputs are used between loops";
    }
  return "";
}

/// The first turn of all, up to its weights.
void Skewer::begin(Turn turn, Value isFirst) {
  scf::ForOp loop = turn.loop;
  b.when(isFirst, [&] {
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), loop.getLowerBound());
    for (Operation &op : loop.getBody()->without_terminator())
      if (!turn.isLate(&op))
        b.clone(op, mapping);
  });
}

/// Makes a turn compute the scores of its tile and the outputs of the tile
/// before it, and then weights.
void Skewer::rotate(Turn &turn) {
  turn.receive->moveAfter(turn.scores);
  turn.outputs->moveAfter(turn.receive);
  turn.await->moveBefore(turn.first);
  turn.release->moveBefore(turn.first);
}

/// The outputs of the last tile.
void Skewer::finish(Turn turn) {
  IRMapping mapping;
  for (Operation *op :
       {turn.receive.getOperation(), turn.outputs.getOperation(),
        turn.await.getOperation(), turn.release.getOperation()})
    b.clone(*op, mapping);
}

void Skewer::skew() {
  Value hasBegun; // whether an earlier loop has turns; none: there is none
  for (Turn &turn : turns) {
    scf::ForOp loop = turn.loop;
    if (turn.clear) { // by the turn that knows where its values end
      b.setInsertionPoint(loop.getBody()->getTerminator());
      b.setLoc(turn.receive.getLoc());
      auto slot = cast<cuda::ReceiveOp>(b.clone(*turn.receive));
      turn.clear->moveAfter(slot);
      turn.clear.getSlotMutable().assign(slot.getSlot());
      turn.clear = nullptr;
    }
    b.setInsertionPoint(loop);
    b.setLoc(loop.getLoc());
    Value begin = loop.getLowerBound();
    Value second = b.add(begin, loop.getStep());
    Value hasTurns =
        b.compare(arith::CmpIPredicate::slt, begin, loop.getUpperBound());
    if (hasBegun) {
      Value isFirst = b.select(hasBegun, b.truth(false), hasTurns);
      this->begin(turn, isFirst);
      loop.setLowerBound(b.select(hasBegun, begin, second));
      hasBegun = b.make<arith::OrIOp>(hasBegun, hasTurns);
    } else {
      this->begin(turn, hasTurns);
      loop.setLowerBound(second);
      hasBegun = hasTurns;
    }
    rotate(turn);
  }
  b.setInsertionPointAfter(turns.back().loop);
  b.when(hasBegun, [&] { finish(turns.back()); });
}

namespace {
struct Skew : cuda::impl::SkewPassBase<Skew> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    kernel.walk([](cuda::RolesOp roles) {
      Skewer skewer(roles);
      if (std::string reason = skewer.collect(); reason.empty())
        skewer.skew();
      else
        roles.emitRemark("is not skewed: ") << reason;
    });
  }
};
} // namespace
