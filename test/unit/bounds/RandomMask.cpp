//===- RandomMask.cpp -----------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/bounds/RandomMask.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"

#include <algorithm>

using namespace mlir;

namespace burst::test {

int64_t Random::number(unsigned width) {
  int64_t least = signExtend(uint64_t(1) << (width - 1), width), most = ~least;
  int64_t result = 0;
  switch (within(0, 9)) {
  default:
    result = within(-4, 12);
    break;
  case 5: // a power of two, or beside it
    result = signExtend((uint64_t(1) << within(0, width - 1)) + within(-1, 1),
                        width);
    break;
  case 6:
    result = least + within(0, 3);
    break;
  case 7:
    result = most - within(0, 3);
    break;
  case 8:
    result = within(least, most);
    break;
  }
  return std::clamp(result, least, most);
}

namespace {

/// Draws one mask.
class Generator {
public:
  Generator(MLIRContext &context, Random &random)
      : random(random), loc(UnknownLoc::get(&context)), b(&context) {}

  RandomMask draw(RandomMask::Kind kind);
  Value drawKeep(RandomMask::Kind kind);
  Value singleOp();

private:
  void addArgument(Type type, Extent extent, bool captured);
  void addArguments();
  void addTables();
  Extent drawExtent(unsigned width, bool isPosition);

  Type drawType(bool withLogic);
  Value any(Type type);
  Value anyVarying();
  Value constant(Type type, int64_t number);
  Value smallConstant(Type type) { return constant(type, random.within(0, 9)); }
  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y).getResult();
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value negate(Value x) {
    return make<arith::XOrIOp>(x, constant(b.getI1Type(), 1));
  }
  arith::CmpIPredicate drawPredicate() {
    return static_cast<arith::CmpIPredicate>(random.within(0, 9));
  }

  void addRandomOp();
  Value binary(Type type);
  Value apply(Value x, Value y);
  Value cast();
  Value extract();
  Value floatCompare();
  Value opaque();

  Value idiom();
  Value causal(Value i, Value j);
  Value window(Value i, Value j);
  Value prefix(Value i, Value j);
  Value documents();
  Value strided(Value i, Value j);
  Value combine(Value x, Value y);

  Random &random;
  Location loc;
  OpBuilder b;
  RandomMask mask;
  Block *block = nullptr;
  std::vector<Value> pool, tables, sorted;
};

/// Positions are small, other numbers may be amounts and divisors, or anything:
/// overflow is what many traps are about.
Extent Generator::drawExtent(unsigned width, bool isPosition) {
  int64_t most = signExtend((uint64_t(1) << (width - 1)) - 1, width);
  int64_t base = random.number(width);
  if (random.chance(75))
    base = isPosition ? random.within(0, 20) : random.within(-5, 5);
  base = std::clamp(base, ~most, most);
  int64_t more = random.pick<int64_t>({0, 0, 1, 2, 4, 7});
  return {base, base > most - more ? most : base + more};
}

void Generator::addArgument(Type type, Extent extent, bool captured) {
  Value argument = block->addArgument(type, loc);
  mask.rectangle.push_back(extent);
  mask.captured.push_back(captured);
  if (!isa<TensorType>(type))
    pool.push_back(argument);
}

void Generator::addArguments() {
  Type index = b.getIndexType();
  addArgument(index, {0, random.chance(15)}, false); // b
  addArgument(index, {0, random.chance(15)}, false); // h
  addArgument(index, drawExtent(64, true), false);
  addArgument(index, drawExtent(64, true), false);
  int64_t sq = random.within(0, 20),
          sk = random.chance(50) ? sq : random.within(0, 20);
  addArgument(index, {sq, sq}, random.chance(80));
  addArgument(index, {sk, sk}, random.chance(80));
  int numRanges = 0;
  for (int64_t count = random.within(0, 3); count > 0; --count) {
    if (random.chance(10)) {
      addArgument(b.getF32Type(), {random.within(-5, 5), 0}, true);
      mask.rectangle.back().hi = mask.rectangle.back().lo;
      continue;
    }
    Type type = drawType(true);
    if (type.isInteger(1)) {
      bool captured = random.chance(50);
      int64_t lo = random.within(-1, 0),
              hi = captured ? lo : random.within(lo, 0);
      addArgument(type, {lo, hi}, captured);
      continue;
    }
    int64_t number = random.number(widthOf(type));
    bool captured =
        random.chance(60) || numRanges++ > 1; // to keep rectangles small
    addArgument(type,
                captured ? Extent{number, number}
                         : drawExtent(widthOf(type), false),
                captured);
  }
}

void Generator::addTables() {
  for (int64_t count = random.within(0, 2); count > 0; --count) {
    Type element = random.chance(10) ? Type(b.getF32Type()) : drawType(true);
    Table &table = mask.tables.emplace_back();
    SmallVector<int64_t> type;
    int64_t size = 1;
    for (int rank = random.pick({0, 1, 1, 1, 1, 2}); rank > 0; --rank) {
      table.shape.push_back(random.chance(3) ? 0 : random.within(1, 24));
      type.push_back(random.chance(70) ? ShapedType::kDynamic
                                       : table.shape.back());
      size *= table.shape.back();
    }
    bool isSorted = random.chance(60);
    for (int64_t n = 0; n < size; ++n) {
      int64_t number = isa<FloatType>(element) ? random.within(-5, 5)
                       : element.isInteger(1)  ? random.within(-1, 0)
                       : isSorted || random.chance(80)
                           ? random.within(0, 3)
                           : random.number(widthOf(element));
      table.elements.push_back(signExtend(number, widthOf(element)));
    }
    if (isSorted)
      std::sort(table.elements.begin(), table.elements.end());
    addArgument(RankedTensorType::get(type, element), {0, 0, &table}, true);
    tables.push_back(block->getArguments().back());
    if (isSorted && table.shape.size() == 1)
      sorted.push_back(tables.back());
  }
}

Type Generator::drawType(bool withLogic) {
  static const std::vector<unsigned> widths = {8, 16, 32, 64, 3, 2, 33, 63};
  if (withLogic && random.chance(25))
    return b.getI1Type();
  if (random.chance(45))
    return b.getIndexType();
  return b.getIntegerType(random.chance(80) ? widths[random.within(0, 3)]
                                            : random.pick(widths));
}

Value Generator::constant(Type type, int64_t number) {
  if (type.isInteger(1))
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(number != 0));
  return arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(type, signExtend(number, widthOf(type))));
}

/// A value of this type, rather a recent one.
Value Generator::any(Type type) {
  std::vector<Value> candidates;
  for (Value value : pool)
    if (value.getType() == type)
      candidates.push_back(value);
  if (candidates.empty() || random.chance(25))
    return constant(type, type.isInteger(1) ? random.within(0, 1)
                                            : random.number(widthOf(type)));
  auto last = static_cast<int64_t>(candidates.size()) - 1;
  if (random.chance(50))
    return candidates[random.within(last / 2, last)];
  return random.pick(candidates);
}

/// The latest i1 values are often constants: one that depends on the point, if
/// any.
Value Generator::anyVarying() {
  llvm::DenseSet<Value> varying;
  for (BlockArgument argument : block->getArguments())
    if (!mask.captured[argument.getArgNumber()])
      varying.insert(argument);
  std::vector<Value> candidates;
  for (Operation &op : *block) {
    if (llvm::none_of(op.getOperands(),
                      [&](Value v) { return varying.contains(v); }))
      continue;
    varying.insert(op.result_begin(), op.result_end());
    if (op.getResult(0).getType().isInteger(1))
      candidates.push_back(op.getResult(0));
  }
  return candidates.empty() ? any(b.getI1Type()) : random.pick(candidates);
}

Value Generator::binary(Type type) {
  Value x = any(type), y = any(type);
  if (!type.isInteger(1) && random.chance(15))
    y = smallConstant(type);
  if (random.chance(15))
    for (BlockArgument argument : block->getArguments())
      if (argument.getType() == type && !mask.captured[argument.getArgNumber()])
        y = argument; // the last one is not a position
  if (random.chance(4))
    y = x;
  return apply(x, y);
}

/// Some op of two integers.
Value Generator::apply(Value x, Value y) {
  using Make = Value (Generator::*)(Value, Value);
  static const std::vector<Make> logic = {&Generator::make<arith::AndIOp>,
                                          &Generator::make<arith::OrIOp>,
                                          &Generator::make<arith::XOrIOp>};
  static const std::vector<Make> shifts = {&Generator::make<arith::ShLIOp>,
                                           &Generator::make<arith::ShRSIOp>,
                                           &Generator::make<arith::ShRUIOp>};
  static const std::vector<Make> others = {
      &Generator::make<arith::AddIOp>,
      &Generator::make<arith::SubIOp>,
      &Generator::make<arith::MulIOp>,
      &Generator::make<arith::DivSIOp>,
      &Generator::make<arith::DivUIOp>,
      &Generator::make<arith::FloorDivSIOp>,
      &Generator::make<arith::CeilDivSIOp>,
      &Generator::make<arith::CeilDivUIOp>,
      &Generator::make<arith::RemSIOp>,
      &Generator::make<arith::RemUIOp>,
      &Generator::make<arith::MinSIOp>,
      &Generator::make<arith::MaxSIOp>,
      &Generator::make<arith::MinUIOp>,
      &Generator::make<arith::MaxUIOp>};
  Type type = x.getType();
  int64_t kind = random.within(1, 100);
  if (kind <= (type.isInteger(1) ? 70 : 15))
    return (this->*random.pick(logic))(x, y);
  if (kind <= 80)
    return (this->*random.pick(others))(x, y);
  if (kind <= 85)
    return math::AbsIOp::create(b, loc, x);
  return (this->*random.pick(shifts))(x, random.chance(50) ? smallConstant(type)
                                                           : y);
}

Value Generator::cast() {
  Type from = drawType(true), to = drawType(true);
  Value x = any(from);
  bool isUnsigned = random.chance(50);
  if (from.isIndex() != to.isIndex())
    return isUnsigned ? arith::IndexCastUIOp::create(b, loc, to, x).getResult()
                      : arith::IndexCastOp::create(b, loc, to, x).getResult();
  if (from == to)
    return negate(any(b.getI1Type()));
  if (widthOf(to) < widthOf(from))
    return arith::TruncIOp::create(b, loc, to, x);
  return isUnsigned ? arith::ExtUIOp::create(b, loc, to, x).getResult()
                    : arith::ExtSIOp::create(b, loc, to, x).getResult();
}

Value Generator::extract() {
  if (tables.empty())
    return idiom();
  Value table = random.pick(tables);
  SmallVector<Value> indices;
  for (int64_t n = 0;
       n < cast_or_null<RankedTensorType>(table.getType()).getRank(); ++n)
    indices.push_back(any(b.getIndexType()));
  return tensor::ExtractOp::create(b, loc, table, indices);
}

Value Generator::floatCompare() {
  auto drawFloat = [&]() -> Value {
    for (Value value : pool)
      if (isa<FloatType>(value.getType()) && random.chance(50))
        return value;
    return arith::SIToFPOp::create(b, loc, b.getF32Type(),
                                   any(b.getIntegerType(random.pick({8, 32}))));
  };
  using P = arith::CmpFPredicate;
  P predicate =
      random.pick({P::OLT, P::UGE, P::OEQ, P::AlwaysTrue, P::AlwaysFalse});
  return arith::CmpFOp::create(b, loc, predicate, drawFloat(), drawFloat());
}

Value Generator::opaque() {
  OperationState state(loc, "test.opaque");
  state.addOperands(any(drawType(true)));
  state.addTypes(drawType(true));
  return b.create(state)->getResult(0);
}

void Generator::addRandomOp() {
  int64_t kind = random.within(1, 100);
  Type type = drawType(true);
  if (kind <= 40)
    pool.push_back(binary(type));
  else if (kind <= 60)
    pool.push_back(compare(drawPredicate(), any(type), any(type)));
  else if (kind <= 70)
    pool.push_back(arith::SelectOp::create(b, loc, any(b.getI1Type()),
                                           any(type), any(type)));
  else if (kind <= 83)
    pool.push_back(cast());
  else if (kind <= 90)
    pool.push_back(extract());
  else if (kind <= 92)
    pool.push_back(floatCompare());
  else if (kind <= 94)
    pool.push_back(opaque());
  else
    pool.push_back(idiom());
}

//===----------------------------------------------------------------------===//
// Usual masks
//===----------------------------------------------------------------------===//

using P = arith::CmpIPredicate;

Value Generator::causal(Value i, Value j) {
  Value shift =
      make<arith::SubIOp>(block->getArgument(5), block->getArgument(4));
  if (i.getType() != shift.getType())
    shift = arith::IndexCastOp::create(b, loc, i.getType(), shift);
  return compare(P::sle, j, make<arith::AddIOp>(i, shift));
}

Value Generator::window(Value i, Value j) {
  Type type = i.getType();
  switch (random.within(0, 2)) {
  case 0: {
    Value first = make<arith::SubIOp>(i, smallConstant(type));
    Value last = make<arith::AddIOp>(i, smallConstant(type));
    return make<arith::AndIOp>(compare(P::sle, first, j),
                               compare(P::sle, j, last));
  }
  case 1:
    return compare(P::ult, make<arith::SubIOp>(i, j), smallConstant(type));
  default:
    return compare(P::sle,
                   math::AbsIOp::create(b, loc, make<arith::SubIOp>(i, j)),
                   smallConstant(type));
  }
}

Value Generator::prefix(Value i, Value j) {
  return make<arith::OrIOp>(compare(P::slt, j, smallConstant(j.getType())),
                            causal(i, j));
}

Value Generator::documents() {
  if (sorted.empty())
    return constant(b.getI1Type(), 1);
  Value table = random.pick(sorted);
  Value i = tensor::ExtractOp::create(b, loc, table,
                                      ValueRange(block->getArgument(2)));
  Value j = tensor::ExtractOp::create(b, loc, table,
                                      ValueRange(block->getArgument(3)));
  return compare(P::eq, i, j);
}

Value Generator::strided(Value i, Value j) {
  Value size = constant(i.getType(), random.within(1, 5));
  if (random.chance(50)) // equal blocks
    return compare(P::eq, make<arith::FloorDivSIOp>(i, size),
                   make<arith::FloorDivSIOp>(j, size));
  Value rest = make<arith::RemUIOp>(j, size);
  return compare(P::slt, rest, smallConstant(i.getType()));
}

Value Generator::idiom() {
  Value i = block->getArgument(2), j = block->getArgument(3);
  if (random.chance(25)) {
    Type narrow = b.getIntegerType(random.pick({32, 64}));
    i = arith::IndexCastOp::create(b, loc, narrow, i);
    j = arith::IndexCastOp::create(b, loc, narrow, j);
  }
  switch (random.within(0, 5)) {
  case 0:
    return causal(i, j);
  case 1:
    return window(i, j);
  case 2:
    return prefix(i, j);
  case 3:
    return documents();
  case 4:
    return strided(i, j);
  default: // a causal mask in blocks
    Value size = constant(i.getType(), random.within(1, 4));
    return compare(P::sle, make<arith::DivSIOp>(j, size),
                   make<arith::DivSIOp>(i, size));
  }
}

Value Generator::combine(Value x, Value y) {
  switch (random.within(0, 4)) {
  case 0:
  case 1:
    return make<arith::AndIOp>(x, y);
  case 2:
    return make<arith::OrIOp>(x, y);
  case 3:
    return negate(x);
  default:
    return arith::SelectOp::create(b, loc, any(b.getI1Type()), x, y);
  }
}

/// One op on two ranges, compared with something: nothing hides what it does.
Value Generator::singleOp() {
  Type type = drawType(false);
  SmallVector<Value, 3> operands;
  for (int n = 0; n < 3; ++n) {
    addArgument(type, drawExtent(widthOf(type), false), false);
    operands.push_back(block->getArguments().back());
  }
  Value result = apply(operands[0], operands[1]);
  Value other = random.chance(30) ? operands[random.within(0, 2)]
                : random.chance(50)
                    ? constant(type, random.within(-9, 9))
                    : constant(type, random.number(widthOf(type)));
  return compare(drawPredicate(), result, other);
}

Value Generator::drawKeep(RandomMask::Kind kind) {
  if (kind == RandomMask::Single)
    return singleOp();
  if (kind == RandomMask::Usual) {
    Value keep = idiom();
    for (int64_t count = random.within(0, 2); count > 0; --count)
      keep = combine(keep, idiom());
    return keep;
  }
  for (int64_t count = random.within(2, 16); count > 0; --count)
    addRandomOp();
  Type type = drawType(true);
  pool.push_back(compare(drawPredicate(), any(type), any(type)));
  return combine(anyVarying(), random.chance(50) ? anyVarying() : pool.back());
}

RandomMask Generator::draw(RandomMask::Kind kind) {
  OperationState state(loc, "test.mask");
  state.addRegion();
  mask.op = Operation::create(state);
  mask.kind = kind;
  block = &mask.op->getRegion(0).emplaceBlock();
  b.setInsertionPointToEnd(block);
  if (kind != RandomMask::Single) {
    addArguments();
    addTables();
  }
  OperationState keep(loc, "test.keep");
  keep.addOperands(drawKeep(kind));
  b.create(keep);
  return std::move(mask);
}

} // namespace

RandomMask drawMask(MLIRContext &context, Random &random,
                    RandomMask::Kind kind) {
  return Generator(context, random).draw(kind);
}

SmallVector<Extent> drawAround(RandomMask &mask, Random &random) {
  SmallVector<Extent> around = mask.rectangle;
  for (auto [index, extent] : llvm::enumerate(around)) {
    Type type = mask.op->getRegion(0).getArgument(index).getType();
    if (mask.captured[index] || type.isInteger(1))
      continue;
    int64_t most =
        signExtend(~uint64_t(0) >> (65 - widthOf(type)), widthOf(type));
    int64_t below = random.pick<int64_t>({0, 1, 20, most}),
            above = random.pick<int64_t>({0, 1, 20, most});
    extent.lo = extent.lo < ~most + below ? ~most : extent.lo - below;
    extent.hi = extent.hi > most - above ? most : extent.hi + above;
  }
  return around;
}

SmallVector<Extent> drawPart(RandomMask &mask, Random &random) {
  SmallVector<Extent> part = mask.rectangle;
  for (auto [index, extent] : llvm::enumerate(part)) {
    Type type = mask.op->getRegion(0).getArgument(index).getType();
    if (mask.captured[index]) {
      if (type.isIntOrIndex() && !type.isInteger(1) && random.chance(50))
        extent.lo = extent.hi = random.number(widthOf(type));
      continue;
    }
    int64_t lo = random.within(extent.lo, extent.hi);
    extent = {lo, random.within(lo, extent.hi)};
  }
  return part;
}

} // namespace burst::test
