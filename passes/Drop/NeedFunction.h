//===- NeedFunction.h - what a ring needs of its slices ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_DROP_NEEDFUNCTION_H
#define BURST_PASSES_DROP_NEEDFUNCTION_H

#include "dialect/Burst/Emit.h"
#include "dialect/Ring/Ring.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace burst {

/// Queries and keys that come together, and which of both moves.
struct Droppable {
  mlir::Operation *op = nullptr;
  mlir::Value query, queryExtent, keyExtent;
  /// How many batches and query heads all ranks have: of what bounds are asked,
  /// so that needs are those of all. Null where the query has all batches.
  mlir::Value batches;
  int64_t heads = 0;
  ring::LayoutAttr queryLayout, keyLayout;
  mlir::Region *bounds = nullptr;
  /// Not a range: flags move operands.
  llvm::SmallVector<mlir::Value> maskCaptures;
  bool movesKeys = true;
  /// How many ranks the inner rings of a nest have; 0 where there is one ring.
  int64_t innerRanks = 0;
  /// Whether what moves comes straight from its owner.
  bool isDirect = false;
  /// Whether it goes round in both directions at once.
  bool isBidirectional = false;

  ring::LayoutAttr movingLayout() const {
    return movesKeys ? keyLayout : queryLayout;
  }
  /// Whether what moves comes from all ranks at once.
  bool isGathered() const { return movingLayout().getAll(); }
};

/// Makes the function that says what a attend needs, for all ranks:
///
///   (Sq, Sk, B, captures of the mask) -> (need[p][r][a][b], reach[o][s], step)
///
/// B are the batches of all ranks, as heads are those of all. need: whether any
/// pair of query segment a of owner p and key segment b of owner r is kept.
/// step: the direction of the ring, 1 or P - 1, in which less travels. reach:
/// how many hops segment s of owner o, of what moves, travels in that
/// direction, that is the distance of the farthest rank that needs it.
///
/// In a nest, reach and step are those of the outer ring, in which a segment
/// goes as far as the last inner ring of which a rank needs it, and behind them
/// stand those of inner rings,
///
///   innerReach[o][ring][s], innerStep
///
/// Of a ring in both directions, in place of reach and step,
///
///   reach[o][way][s]
///
/// says the same of each of them, within the ranks that it serves, see
/// ring.rotate.
///
/// Of what is gathered, or comes straight from its owner, in place of reach and
/// step,
///
///   segments[o][d][s]
///
/// says whether rank (o + d) mod P needs segment s of owner o; its own it has.
///
/// A range of a table that the bounds ask for reads all positions of a segment.
/// Where it depends on one side alone it is found once per segment of that
/// side, and not per pair.
class NeedFunction {
public:
  NeedFunction(const Droppable &attend, mlir::SymbolTable &symbols)
      : attend(attend), symbols(symbols), loc(attend.op->getLoc()),
        parts(attend.queryLayout.getParts()),
        numA(attend.queryLayout.getNumSegments()),
        numB(attend.keyLayout.getNumSegments()),
        numMoving(attend.movingLayout().ofPart().getNumSegments()) {}

  mlir::func::FuncOp create();

private:
  enum class Side : uint8_t { Query, Key };
  /// A ring, or inner rings.
  enum class Level : uint8_t { Whole, Outer, Inner };
  int64_t ranksOf(Level level) const {
    switch (level) {
    case Level::Whole:
      return parts;
    case Level::Outer:
      return parts / attend.innerRanks;
    case Level::Inner:
      return attend.innerRanks;
    }
    llvm_unreachable("unknown level");
  }
  mlir::RankedTensorType needType() {
    return mlir::RankedTensorType::get(
        {numOwners(Side::Query), numOwners(Side::Key), numA, numB},
        mlir::IntegerType::get(symbols.getOp()->getContext(), 1));
  }
  mlir::RankedTensorType reachType(Level level) {
    llvm::SmallVector<int64_t> shape{parts, numMoving};
    if (level == Level::Inner)
      shape.insert(shape.begin() + 1, ranksOf(Level::Outer));
    return mlir::RankedTensorType::get(
        shape, mlir::IndexType::get(symbols.getOp()->getContext()));
  }
  struct Box {
    mlir::Value begin, end, isEmpty;
  };
  int64_t numSegments(Side side) const {
    return side == Side::Query ? numA : numB;
  }
  int64_t numOwners(Side side) const {
    return (side == Side::Query ? attend.queryLayout : attend.keyLayout)
        .getNumOwners();
  }
  Box segment(Emit &e, Side side, mlir::Value owner, mlir::Value index,
              mlir::ValueRange args);
  void mapSizes(Emit &e, mlir::ValueRange args, mlir::IRMapping &mapping);
  void mapBox(Side side, const Box &box, mlir::IRMapping &mapping);
  std::optional<Side> sideOf(mlir::Operation *op);
  void makeRanges(mlir::OpBuilder &builder, mlir::ValueRange args);
  mlir::Value rangeTable(mlir::OpBuilder &builder, mlir::OpResult range,
                         Side side, mlir::ValueRange args);
  mlir::Value needOf(mlir::OpBuilder &builder, mlir::ValueRange indices,
                     mlir::ValueRange args);
  using Next = llvm::function_ref<mlir::Value(Emit, mlir::Value, mlir::Value)>;
  mlir::Value fold(mlir::OpBuilder &builder, int64_t first, int64_t end,
                   mlir::Value begin, Next next);
  mlir::Value anyNeed(Emit &e, mlir::Value owner, mlir::Value rank,
                      mlir::Value segment, mlir::Value need);
  mlir::Value segmentTable(mlir::OpBuilder &builder, mlir::Value need);
  mlir::SmallVector<mlir::Value> reachAndStep(mlir::OpBuilder &builder,
                                              Level level, mlir::Value need,
                                              mlir::ValueRange args);
  mlir::Value needAhead(Emit &e, Level level, mlir::ValueRange indices,
                        mlir::Value far, mlir::Value need);
  mlir::Value reachOf(mlir::OpBuilder &builder, Level level,
                      mlir::ValueRange indices, mlir::Value need, int64_t step);
  mlir::Value reachTable(mlir::OpBuilder &builder, Level level,
                         mlir::Value need, int64_t step);
  mlir::Value bidirectionalReach(mlir::OpBuilder &builder, mlir::Value need);
  mlir::Value cost(mlir::OpBuilder &builder, Level level, mlir::Value reach,
                   mlir::Value extent);

  const Droppable &attend;
  mlir::SymbolTable &symbols;
  mlir::Location loc;
  int64_t parts, numA, numB, numMoving;
  /// Results of the bounds' ranges per segment of one side.
  struct Ranges {
    Side side;
    llvm::SmallVector<mlir::Value, 2> tables; ///< by owner and segment
  };
  llvm::DenseMap<mlir::Operation *, Ranges> ranges;
};

} // namespace burst

#endif // BURST_PASSES_DROP_NEEDFUNCTION_H
