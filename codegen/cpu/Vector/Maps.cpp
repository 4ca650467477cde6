//===- Maps.cpp - scores, masks and their gradients, point by point -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Vector/Region.h"
#include "codegen/cpu/Vector/Vectorizer.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

#include <numeric>

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

/// What depends on columns alone, reads of tables too, is computed once for all
/// rows.
static void hoistReads(scf::ForOp rows) {
  SmallPtrSet<Value, 4> written;
  rows.walk([&](Operation *op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      written.insert(store.getMemRef());
    else if (auto store = dyn_cast<vector::StoreOp>(op))
      written.insert(store.getBase());
  });
  auto isRead = [&](Operation *op) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return !written.contains(load.getMemRef());
    auto gather = dyn_cast<vector::GatherOp>(op);
    return gather && !written.contains(gather.getBase());
  };
  moveLoopInvariantCode(
      {&rows.getRegion()},
      [](Value value, Region *region) {
        return !region->isAncestor(value.getParentRegion());
      },
      [&](Operation *op, Region *) { return isPure(op) || isRead(op); },
      [&](Operation *op, Region *) { op->moveBefore(rows); });
}

template <typename Map>
SmallVector<Value> Vectorizer::eachPoint(Map op, MemRefType tile,
                                         ValueRange sums, MapBody body) {
  int64_t lane = lanes(tile.getElementType());
  auto indices = VectorType::get(lane, b.getIndexType());
  SmallVector<int64_t> steps(lane);
  std::iota(steps.begin(), steps.end(), 0);
  Value numbers =
      b.make<arith::ConstantOp>(DenseIntElementsAttr::get(indices, steps));
  Value columns = splat(indices, op.getColumns());

  auto loop = b.loop(
      b.index(0), b.index(tile.getDimSize(1)), lane, sums,
      [&](Value c, ValueRange sums) {
        Value j = load(indices, op.getJ(), c);
        Value isColumn = b.compare(arith::CmpIPredicate::slt,
                                   b.add(splat(indices, c), numbers), columns);
        auto rows = b.loop(op.getRows(), sums, [&](Value r, ValueRange sums) {
          SmallVector<Value> next(sums);
          // Of several heads, each row has its own.
          Value head = op.getHead();
          if (!head.getType().isIndex())
            head = b.load(head, r);
          body({r, c}, isColumn,
               {op.getBatch(), head, b.load(op.getI(), r), j, op.getQueries(),
                op.getKeys()},
               next);
          return next;
        });
        hoistReads(rows);
        return SmallVector<Value>(rows.getResults());
      });
  return SmallVector<Value>(loop.getResults());
}

void Vectorizer::lower(tile::MapOp op) {
  MemRefType type = bufferOf(op.getS());
  VectorType vector = vectorOf(type.getElementType());
  int64_t lane = vector.getNumElements();
  Value minusInfinity =
      number(vector, -std::numeric_limits<double>::infinity());
  double unit = op.getUnit().convertToDouble();
  eachPoint(op, type, {},
            [&](ValueRange at, Value keep, ArrayRef<Value> arguments, auto &) {
              Value s = opaque(load(vector, op.getS(), at));
              if (!op.getScore().empty()) {
                SmallVector<Value> all{s};
                llvm::append_range(all, arguments);
                llvm::append_range(all, op.getScoreCaptures());
                s = vectorizeRegion(b, op.getScore().front(), all, lane);
                if (unit != 1.0)
                  s = b.make<arith::MulFOp>(s, number(vector, unit));
              }
              if (!op.getMask().empty()) {
                SmallVector<Value> all(arguments);
                llvm::append_range(all, op.getMaskCaptures());
                keep = b.both(
                    keep, vectorizeRegion(b, op.getMask().front(), all, lane));
              }
              store(b.select(keep, s, minusInfinity), op.getS(), at);
            });
}

/// table[indices] += amount at the points that count, one after the other, with
/// indices clamped into the table. Where all points share an element, it gets
/// their sum.
void Vectorizer::addAt(Value table, ArrayRef<Value> indices, Value amount,
                       Value counts) {
  auto vector = cast<VectorType>(amount.getType());
  SmallVector<Value> places;
  bool differ = false;
  for (auto [d, index] : llvm::enumerate(indices)) {
    Value zero = b.index(0);
    Value last = b.sub(b.dim(table, static_cast<int64_t>(d)), b.index(1));
    if (auto type = dyn_cast<VectorType>(index.getType())) {
      zero = splat(type, zero);
      last = splat(type, last);
      differ = true;
    }
    places.push_back(b.max(b.min(index, last), zero));
  }
  auto add = [&](ValueRange at, Value value) {
    b.store(b.make<arith::AddFOp>(b.load(table, at), value), table, at);
  };
  if (!differ) {
    Value counted = b.select(counts, amount, number(vector, 0.0));
    Value sum = b.make<vector::ReductionOp>(vector::CombiningKind::ADD, counted,
                                            arith::FastMathFlags::reassoc);
    return add(places, sum);
  }
  // A loop, because the code of so many points takes long to compile. The first
  // index that differs also says whether a point counts.
  Value first;
  for (Value &place : places) {
    if (!isa<VectorType>(place.getType()))
      continue;
    if (!first)
      place = b.select(counts, place,
                       splat(cast<VectorType>(place.getType()), b.index(-1)));
    place = spill(place);
    if (!first)
      first = place;
  }
  Value amounts = spill(amount);
  b.loop(b.index(vector.getNumElements()), [&](Value lane) {
    SmallVector<Value> at = llvm::map_to_vector(places, [&](Value place) {
      return isa<MemRefType>(place.getType()) ? b.load(place, lane) : place;
    });
    Value isPoint =
        b.compare(arith::CmpIPredicate::sge, b.load(first, lane), b.index(0));
    b.when(isPoint, [&] { add(at, b.load(amounts, lane)); });
  });
}

/// Whether all points of a tile contribute to one element.
static bool isOfTile(ContributeOp op) {
  RegionArguments arguments =
      RegionArguments::of(RegionRole::Gradient, *op->getBlock());
  SmallVector<Value> open(op.getIndices());
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (llvm::is_contained(
            {arguments.score, arguments.i, arguments.j, arguments.g}, value))
      return false;
    if (Operation *defining = value.getDefiningOp())
      llvm::append_range(open, defining->getOperands());
  }
  return true;
}

void Vectorizer::lower(tile::MapGradientOp op) {
  MemRefType type = bufferOf(op.getW());
  VectorType vector = vectorOf(type.getElementType());
  Block &region = op.getGradient().front();
  Value none = number(vector, 0.0);
  // What goes to one element is summed up first: that is faster than adding it
  // vector by vector, and rounds less.
  llvm::SmallDenseMap<Operation *, size_t> numbers;
  for (auto contribute : region.getOps<ContributeOp>())
    if (isOfTile(contribute))
      numbers.insert({contribute, numbers.size()});
  auto run = [&](Value t, ArrayRef<Value> arguments, Value w,
                 Contribute contribute) {
    SmallVector<Value> all{t};
    llvm::append_range(all, arguments);
    all.push_back(w);
    llvm::append_range(all, op.getCaptures());
    return vectorizeRegion(b, region, all, vector.getNumElements(), contribute);
  };
  SmallVector<Value> zeros(numbers.size(), none);
  SmallVector<Value> sums = eachPoint(
      op, type, zeros,
      [&](ValueRange at, Value keep, ArrayRef<Value> arguments, auto &sums) {
        Value w = opaque(load(vector, op.getW(), at));
        Value counts = b.both(
            keep, b.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, w, none));
        Value t = load(vector, op.getT(), at);
        Value u = run(
            t, arguments, w,
            [&](ContributeOp contribute, Value amount,
                ArrayRef<Value> indices) {
              auto found = numbers.find(contribute);
              if (found == numbers.end())
                return addAt(op.getGradOf(contribute), indices, amount, counts);
              Value &sum = sums[found->second];
              sum = b.make<arith::AddFOp>(sum, b.select(counts, amount, none));
            });
        store(b.select(counts, u, none), op.getW(), at);
      });
  if (numbers.empty())
    return;
  // Once more, for the indices alone: of no point in particular.
  Value all = b.make<arith::ConstantOp>(
      DenseElementsAttr::get(vector.clone(b.getI1Type()), true));
  Value nowhere = b.index(0);
  run(none,
      {op.getBatch(), op.getHead(), nowhere, nowhere, op.getQueries(),
       op.getKeys()},
      none, [&](ContributeOp contribute, Value, ArrayRef<Value> indices) {
        auto found = numbers.find(contribute);
        if (found != numbers.end())
          addAt(op.getGradOf(contribute), indices, sums[found->second], all);
      });
}
