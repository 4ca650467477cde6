//===- Compile.cpp - from MLIR to instructions ----------------------------===//
#include "passes/Machine/Compiler.h"

#include "dialect/Burst/Burst.h"
#include "dialect/Ring/Ring.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

using namespace mlir;
using namespace burst;

/// Of a table that a program makes; P^2 entries of four for 2048 ranks.
static constexpr int64_t maxTableElements = int64_t{1} << 24;

static bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

static unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

std::optional<Program>
Program::compile(Region &region, function_ref<bool(Operation *)> isExternal) {
  Compiler compiler(isExternal);
  if (failed(compiler.compileTop(region)))
    return std::nullopt;
  return std::move(compiler.program);
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

Slot Compiler::fresh(Type type) {
  bool scalar = isScalar(type);
  SmallVector<uint32_t> &free = scalar ? freeScalars : freeObjects;
  if (!free.empty())
    return {free.pop_back_val(), scalar};
  return {scalar ? program.numScalars++ : program.numObjects++, scalar};
}

/// The slot of a value that nothing behind reads, which others may have: of
/// thousands of ranks, frames must be small. Those of arguments and of what
/// loops and branches give are assigned in several places, and are kept.
void Compiler::reuse(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isInOrder || !op || op->getNumRegions() != 0)
    return;
  Slot found = slot(value);
  (found.isScalar ? freeScalars : freeObjects).push_back(found.number);
}

Slot Compiler::slot(Value value) {
  auto [entry, isNew] = slots.try_emplace(value);
  if (isNew)
    entry->second = fresh(value.getType());
  return entry->second;
}

Instruction &Compiler::emit(Opcode opcode, Operation *op) {
  Instruction &instruction = program.code.emplace_back();
  instruction.opcode = opcode;
  instruction.op = op;
  return instruction;
}

void Compiler::emitCopy(Slot to, Slot from) {
  if (to.number == from.number)
    return;
  Instruction &copy = emit(to.isScalar ? Opcode::Copy : Opcode::CopyObject);
  copy.dst = to.number;
  copy.a = from.number;
}

/// Objects leave where they are.
void Compiler::emitMove(Slot to, Slot from) {
  if (to.number == from.number)
    return;
  Instruction &move = emit(to.isScalar ? Opcode::Copy : Opcode::MoveObject);
  move.dst = to.number;
  move.a = from.number;
}

Slot Compiler::emitConstant(int64_t value) {
  Slot result{program.numScalars++, true};
  Instruction &constant = emit(Opcode::Constant);
  constant.dst = result.number;
  constant.imm.i = value;
  return result;
}

uint32_t Compiler::operandList(Operation *op) {
  Program::OperandList list;
  for (Value operand : op->getOperands()) {
    list.operands.push_back(slot(operand));
    list.last.push_back(isLastUse(op, operand));
  }
  // An operand that occurs twice is moved out by its last occurrence only.
  for (size_t i = 0; i < list.operands.size(); ++i)
    for (size_t j = i + 1; j < list.operands.size(); ++j)
      if (op->getOperand(i) == op->getOperand(j))
        list.last[i] = 0;
  for (Value result : op->getResults())
    list.results.push_back(slot(result));
  program.operandLists.push_back(std::move(list));
  return program.operandLists.size() - 1;
}

/// A value is used for the last time by the op, in its own block, behind which
/// no use comes. Arguments of the top block belong to the caller.
bool Compiler::isLastUse(Operation *op, Value value) {
  Block *block = value.getParentBlock();
  bool isCallers = block->getParent() == top && isa<BlockArgument>(value);
  // Of a constant that is used everywhere, to ask all uses at each takes long.
  constexpr unsigned many = 64;
  if (isCallers || (isScalar(value.getType()) && value.hasNUsesOrMore(many)))
    return false;
  Operation *self = block->findAncestorOpInBlock(*op);
  if (self != op)
    return false; // Inside a loop: the loop comes again.
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    return ancestor == op || ancestor->isBeforeInBlock(op);
  });
}

/// Drops what nothing behind `op` reads: that is when the memory of objects is
/// free again.
void Compiler::emitReleases(Operation *op) {
  auto release = [&](Value value) {
    if (!isScalar(value.getType()))
      emit(Opcode::ReleaseObject).dst = slot(value).number;
    reuse(value);
  };
  for (Value result : op->getResults())
    if (result.use_empty())
      release(result);
  llvm::SmallDenseSet<Value> seen;
  auto visit = [&](Value value) {
    if (value.getParentBlock() == op->getBlock() && seen.insert(value).second &&
        isLastUse(op, value))
      release(value);
  };
  op->walk(
      [&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult Compiler::compileTop(Region &region) {
  top = &region;
  if (!region.hasOneBlock())
    return region.getParentOp()->emitOpError(
        "cannot be evaluated: its region must have one block");
  Block &block = region.front();
  isMask = llvm::all_of(block.getTerminator()->getOperandTypes(),
                        [](Type type) { return type.isInteger(1); });
  for (Value argument : block.getArguments())
    program.argumentSlots.push_back(slot(argument));
  if (failed(compileBody(block)))
    return failure();
  for (Value value : block.getTerminator()->getOperands())
    program.resultSlots.push_back(slot(value));
  emit(Opcode::Return);
  return success();
}

LogicalResult Compiler::compileBody(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (failed(compileOp(op)))
      return failure();
    emitReleases(&op);
  }
  return success();
}

LogicalResult Compiler::compileOp(Operation &op) {
  if (isExternal(&op)) {
    Instruction &external = emit(Opcode::External, &op);
    external.operands = operandList(&op);
    if (auto segment = dyn_cast<ring::SegmentOp>(op))
      describeSegment(segment, external);
    return success();
  }
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<scf::ForOp>([&](auto loop) { return compileFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { return compileIf(branch); })
      .Case<tensor::GenerateOp>(
          [&](auto generate) { return compileGenerate(generate); })
      .Case<tensor::ExtractOp, TableRangeOp, tensor::DimOp, func::CallOp>(
          [&](auto) { return compileTableOp(op); })
      .Case<ContributeOp>([&](auto contribute) {
        compileContribute(contribute);
        return success();
      })
      .Case<tensor::CastOp>([&](tensor::CastOp cast) {
        emitCopy(slot(cast.getResult()), slot(cast.getSource()));
        return success();
      })
      .Case<arith::ConstantOp>(
          [&](auto constant) { return compileConstant(constant); })
      .Default([&](Operation *) { return compileScalar(op); });
}

/// Inits that die with the loop's beginning must not live on beside the values
/// that the loop carries.
void Compiler::releaseInits(scf::ForOp loop) {
  for (Value init : loop.getInits()) {
    bool usedInside = llvm::any_of(init.getUsers(), [&](Operation *user) {
      return loop->isProperAncestor(user);
    });
    if (!isScalar(init.getType()) && !usedInside && isLastUse(loop, init))
      emit(Opcode::ReleaseObject).dst = slot(init).number;
  }
}

/// The values of `block` that it yields, once they are copied out.
void Compiler::releaseYielded(Block &block) {
  for (Value value : block.getTerminator()->getOperands())
    if (!isScalar(value.getType()) && value.getParentBlock() == &block)
      emit(Opcode::ReleaseObject).dst = slot(value).number;
}

LogicalResult Compiler::compileFor(scf::ForOp loop) {
  Slot iv = slot(loop.getInductionVar());
  emitCopy(iv, slot(loop.getLowerBound()));
  for (auto [iter, init, result] : llvm::zip_equal(
           loop.getRegionIterArgs(), loop.getInits(), loop.getResults())) {
    slots[result] = slot(iter);
    emitCopy(slot(iter), slot(init));
  }
  releaseInits(loop);
  emit(Opcode::CheckStep, loop).a = slot(loop.getStep()).number;
  uint32_t head = program.code.size();
  Instruction &test = emit(loop.getUnsignedCmp() ? Opcode::JumpUnlessLessU
                                                 : Opcode::JumpUnlessLess,
                           loop);
  test.a = iv.number;
  test.b = slot(loop.getUpperBound()).number;
  if (failed(compileBody(*loop.getBody())))
    return failure();
  emitYield(*loop.getBody(), loop.getRegionIterArgs());
  Instruction &step = emit(Opcode::Add, loop);
  step.dst = step.a = iv.number;
  step.b = slot(loop.getStep()).number;
  emit(Opcode::Jump, loop).imm.i = head;
  program.code[head].imm.i = program.code.size();
  return success();
}

/// Assigns all values at once: a yield may swap what it was given. So what it
/// was given is put aside first. Values of the block are not needed behind it,
/// and objects among them move.
void Compiler::emitYield(Block &block, ValueRange to) {
  struct Assignment {
    Slot to, from;
    bool moves;
  };
  SmallVector<Assignment> assignments;
  ValueRange values = block.getTerminator()->getOperands();
  for (auto [index, value, target] : llvm::enumerate(values, to)) {
    bool isLast = !llvm::is_contained(values.drop_front(index + 1), value);
    if (value != target)
      assignments.push_back({slot(target), slot(value),
                             isLast && value.getParentBlock() == &block});
  }
  // A value that stays where it is must not leave with another.
  for (Assignment &assignment : assignments)
    for (auto [value, target] : llvm::zip_equal(values, to))
      if (value == target && slot(value) == assignment.from)
        assignment.moves = false;
  auto assign = [&](Slot to, Slot from, bool moves) {
    return moves ? emitMove(to, from) : emitCopy(to, from);
  };
  for (Assignment &assignment : assignments) {
    bool isGiven = llvm::any_of(
        to, [&](Value target) { return slot(target) == assignment.from; });
    if (!isGiven)
      continue;
    Slot temporary = assignment.from;
    temporary.number =
        assignment.from.isScalar ? program.numScalars++ : program.numObjects++;
    assign(temporary, assignment.from, assignment.moves);
    assignment = {assignment.to, temporary, true};
  }
  for (const Assignment &assignment : assignments)
    assign(assignment.to, assignment.from, assignment.moves);
}

LogicalResult Compiler::compileIf(scf::IfOp branch) {
  uint32_t test = program.code.size();
  emit(Opcode::JumpIfNot, branch).a = slot(branch.getCondition()).number;
  auto compileArm = [&](Region &region) {
    if (region.empty())
      return success();
    Block &block = region.front();
    if (failed(compileBody(block)))
      return failure();
    for (auto [result, value] : llvm::zip_equal(
             branch.getResults(), block.getTerminator()->getOperands()))
      emitCopy(slot(result), slot(value));
    releaseYielded(block);
    return success();
  };
  if (failed(compileArm(branch.getThenRegion())))
    return failure();
  uint32_t skip = program.code.size();
  emit(Opcode::Jump, branch);
  program.code[test].imm.i = program.code.size();
  if (failed(compileArm(branch.getElseRegion())))
    return failure();
  program.code[skip].imm.i = program.code.size();
  return success();
}

/// Where a segment begins and ends the machine can say itself.
void Compiler::describeSegment(ring::SegmentOp op, Instruction &instruction) {
  instruction.opcode = Opcode::Segment;
  instruction.a = program.deals.size();
  instruction.imm.i = op.getIndex();
  program.deals.push_back(op.getLayout().getDeal());
}

/// How many of `indices` must be known before `op` can be run.
static size_t depthOf(Operation &op, ValueRange indices,
                      const llvm::DenseMap<Operation *, size_t> &depths) {
  size_t depth = 0;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      auto index = llvm::find(indices, operand);
      if (index != indices.end())
        depth = std::max<size_t>(depth, index.getIndex() + 1);
      else if (Operation *def = operand.getDefiningOp())
        depth = std::max(depth, depths.lookup(def));
    }
  });
  return depth;
}

/// What the body of a loop nest runs, by the number of loops around it: what
/// does not depend on the inner indices is run once for all of them. They have
/// turns, so nothing is run that would not be.
static SmallVector<SmallVector<Operation *>> sortByDepth(Block &body) {
  auto type = cast<RankedTensorType>(body.getParentOp()->getResultTypes()[0]);
  SmallVector<SmallVector<Operation *>> byDepth(type.getRank() + 1);
  auto isSimple = [](Operation &op) {
    return llvm::all_of(op.getResultTypes(), isScalar);
  };
  bool canMove = type.getNumElements() > 0 &&
                 llvm::all_of(body.without_terminator(), isSimple);
  llvm::DenseMap<Operation *, size_t> depths;
  for (Operation &op : body.without_terminator()) {
    size_t depth =
        canMove ? depthOf(op, body.getArguments(), depths) : type.getRank();
    depths[&op] = depth;
    byDepth[depth].push_back(&op);
  }
  return byDepth;
}

/// Nested loops over the dimensions that store what the body yields.
LogicalResult Compiler::compileGenerate(tensor::GenerateOp generate) {
  auto type = cast<RankedTensorType>(generate.getType());
  if (!type.hasStaticShape())
    return generate.emitOpError(
        "cannot be evaluated: its shape must be static");
  std::string error;
  if (!checkSize(type.getShape(), type.getElementType(), error) ||
      type.getNumElements() > maxTableElements)
    return generate.emitOpError("cannot be evaluated: a table has at most ")
           << maxTableElements << " elements, got: " << type;
  Slot table = slot(generate.getResult());
  Instruction &allocate = emit(Opcode::AllocateTable, generate);
  allocate.dst = table.number;
  Block &body = generate.getBody().front();
  Slot one = emitConstant(1);
  SmallVector<uint32_t> heads;
  SmallVector<Slot> extents;
  auto levels = sortByDepth(body);
  llvm::SaveAndRestore outOfOrder(isInOrder, false);
  auto compileLevel = [&](size_t depth) -> LogicalResult {
    for (Operation *op : levels[depth]) {
      if (failed(compileOp(*op)))
        return failure();
      emitReleases(op);
    }
    return success();
  };
  if (failed(compileLevel(0)))
    return failure();
  for (auto [iv, extent] :
       llvm::zip_equal(body.getArguments(), type.getShape())) {
    extents.push_back(emitConstant(extent));
    emitCopy(slot(iv), emitConstant(0));
    heads.push_back(program.code.size());
    Instruction &test = emit(Opcode::JumpUnlessLess);
    test.a = slot(iv).number;
    test.b = extents.back().number;
    if (failed(compileLevel(heads.size())))
      return failure();
  }
  Program::OperandList list;
  list.operands.push_back(slot(body.getTerminator()->getOperand(0)));
  for (Value iv : body.getArguments())
    list.operands.push_back(slot(iv));
  program.operandLists.push_back(std::move(list));
  Instruction &store = emit(Opcode::StoreTable, generate);
  store.a = table.number;
  store.operands = program.operandLists.size() - 1;
  for (size_t dim = heads.size(); dim-- > 0;) {
    Instruction &step = emit(Opcode::Add);
    step.dst = step.a = slot(body.getArgument(dim)).number;
    step.b = one.number;
    emit(Opcode::Jump, generate).imm.i = heads[dim];
    program.code[heads[dim]].imm.i = program.code.size();
  }
  return success();
}

LogicalResult Compiler::compileTableOp(Operation &op) {
  Opcode opcode =
      TypeSwitch<Operation *, Opcode>(&op)
          .Case<tensor::ExtractOp>([](auto) { return Opcode::Extract; })
          .Case<TableRangeOp>([](auto) { return Opcode::TableRange; })
          .Case<tensor::DimOp>([](auto) { return Opcode::Dim; })
          .Default(Opcode::Call);
  emit(opcode, &op).operands = operandList(&op);
  return success();
}

/// Adds to an object of its own: the capture may be a scalar, and is not
/// changed.
void Compiler::compileContribute(ContributeOp op) {
  unsigned argument = cast<BlockArgument>(op.getTable()).getArgNumber();
  auto [gradient, isNew] = program.gradientSlots.try_emplace(argument);
  if (isNew)
    gradient->second = {program.numObjects++, false};
  Program::OperandList list;
  list.operands.push_back(gradient->second);
  for (Value index : op.getIndices())
    list.operands.push_back(slot(index));
  program.operandLists.push_back(std::move(list));
  Instruction &contribute = emit(Opcode::Contribute, op);
  contribute.a = slot(op.getValue()).number;
  contribute.operands = program.operandLists.size() - 1;
}

LogicalResult Compiler::compileConstant(arith::ConstantOp op) {
  Slot result = slot(op.getResult());
  if (auto integer = dyn_cast<IntegerAttr>(op.getValue())) {
    if (widthOf(integer.getType()) > 64)
      return op.emitOpError(
          "cannot be evaluated: integers have at most 64 bits");
    Instruction &constant = emit(Opcode::Constant, op);
    constant.dst = result.number;
    constant.imm.i = integer.getValue().getSExtValue();
    return success();
  }
  if (auto real = dyn_cast<FloatAttr>(op.getValue())) {
    Instruction &constant = emit(Opcode::Constant, op);
    constant.dst = result.number;
    constant.imm.f = real.getValueAsDouble();
    return success();
  }
  auto dense = dyn_cast<DenseIntOrFPElementsAttr>(op.getValue());
  if (!dense)
    return op.emitOpError("cannot be evaluated: a table is written as dense");
  std::string error;
  if (!checkSize(dense.getType().getShape(), dense.getElementType(), error) ||
      dense.getNumElements() > maxTableElements)
    return op.emitOpError("cannot be evaluated: a table has at most ")
           << maxTableElements << " elements, got: " << dense.getType();
  auto table = std::make_shared<Tensor>(dense.getType().getShape(),
                                        dense.getElementType());
  if (isa<FloatType>(dense.getElementType()))
    for (const APFloat &value : dense.getValues<APFloat>())
      table->floats.push_back(FloatAttr::getValueAsDouble(value));
  else
    for (const APInt &value : dense.getValues<APInt>())
      table->ints.push_back(value.getSExtValue());
  Instruction &constant = emit(Opcode::ConstantObject, op);
  constant.dst = result.number;
  constant.imm.i = program.constants.size();
  program.constants.push_back(std::move(table));
  return success();
}

//===----------------------------------------------------------------------===//
// Scalar ops
//===----------------------------------------------------------------------===//

namespace {
struct Simple {
  StringLiteral name;
  Opcode opcode;
};

/// Ops whose operands are a, b, c in order and whose width is the result's.
constexpr Simple simpleOps[] = {
    {"arith.addi", Opcode::Add},
    {"arith.subi", Opcode::Sub},
    {"arith.muli", Opcode::Mul},
    {"arith.divsi", Opcode::DivS},
    {"arith.divui", Opcode::DivU},
    {"arith.ceildivsi", Opcode::CeilDivS},
    {"arith.ceildivui", Opcode::CeilDivU},
    {"arith.floordivsi", Opcode::FloorDivS},
    {"arith.remsi", Opcode::RemS},
    {"arith.remui", Opcode::RemU},
    {"arith.andi", Opcode::And},
    {"arith.ori", Opcode::Or},
    {"arith.xori", Opcode::Xor},
    {"arith.shli", Opcode::Shl},
    {"arith.shrsi", Opcode::ShrS},
    {"arith.shrui", Opcode::ShrU},
    {"arith.minsi", Opcode::MinS},
    {"arith.maxsi", Opcode::MaxS},
    {"arith.minui", Opcode::MinU},
    {"arith.maxui", Opcode::MaxU},
    {"arith.select", Opcode::Select},
    {"math.absi", Opcode::AbsI},
    {"arith.addf", Opcode::AddF},
    {"arith.subf", Opcode::SubF},
    {"arith.mulf", Opcode::MulF},
    {"arith.divf", Opcode::DivF},
    {"arith.remf", Opcode::RemF},
    {"arith.negf", Opcode::NegF},
    {"arith.minimumf", Opcode::MinimumF},
    {"arith.maximumf", Opcode::MaximumF},
    {"arith.minnumf", Opcode::MinNumF},
    {"arith.maxnumf", Opcode::MaxNumF},
    {"math.fma", Opcode::FmaF},
    {"math.fpowi", Opcode::PowerI},
    {"arith.extf", Opcode::Copy},
    {"arith.extsi", Opcode::Copy},
};

double rsqrt(double x) { return 1.0 / std::sqrt(x); }
/// A NaN counts as positive.
double copySign(double x, double y) {
  return std::copysign(x, std::isnan(y) ? 1.0 : y);
}
double roundHalfEven(double x) { return std::nearbyint(x); }

struct Unary {
  StringLiteral name;
  double (*function)(double);
};
constexpr Unary unaryOps[] = {
    {"math.absf", std::fabs},
    {"math.acos", std::acos},
    {"math.acosh", std::acosh},
    {"math.asin", std::asin},
    {"math.asinh", std::asinh},
    {"math.atan", std::atan},
    {"math.atanh", std::atanh},
    {"math.cbrt", std::cbrt},
    {"math.ceil", std::ceil},
    {"math.cos", std::cos},
    {"math.cosh", std::cosh},
    {"math.erf", std::erf},
    {"math.erfc", std::erfc},
    {"math.exp", std::exp},
    {"math.exp2", std::exp2},
    {"math.expm1", std::expm1},
    {"math.floor", std::floor},
    {"math.log", std::log},
    {"math.log10", std::log10},
    {"math.log1p", std::log1p},
    {"math.log2", std::log2},
    {"math.round", std::round},
    {"math.roundeven", roundHalfEven},
    {"math.rsqrt", rsqrt},
    {"math.sin", std::sin},
    {"math.sinh", std::sinh},
    {"math.sqrt", std::sqrt},
    {"math.tan", std::tan},
    {"math.tanh", std::tanh},
    {"math.trunc", std::trunc},
};

struct Binary {
  StringLiteral name;
  double (*function)(double, double);
};
constexpr Binary binaryOps[] = {
    {"math.atan2", std::atan2},
    {"math.copysign", copySign},
    {"math.powf", std::pow},
};
} // namespace

/// `opcode` with the op's operands as a, b, c.
Instruction &Compiler::emitSimple(Opcode opcode, Operation &op) {
  Slot result = slot(op.getResult(0));
  SmallVector<Slot, 3> operands;
  for (Value operand : op.getOperands())
    operands.push_back(slot(operand));
  Instruction &instruction = emit(opcode, &op);
  instruction.dst = result.number;
  instruction.width = widthOf(op.getResult(0).getType());
  uint32_t *fields[] = {&instruction.a, &instruction.b, &instruction.c};
  for (auto [field, operand] : llvm::zip(fields, operands))
    *field = operand.number;
  return instruction;
}

/// Numbers of 16 bits are rounded to by every op. Those of f32 only in masks,
/// where a bit decides: scores have errors of this size, and what is compared
/// with them should not.
void Compiler::emitRounding(Operation &op) {
  auto type = dyn_cast<FloatType>(op.getResult(0).getType());
  if (!type || type.isF64() || (type.isF32() && !isMask))
    return;
  uint32_t number = slot(op.getResult(0)).number;
  Instruction &round = emit(Opcode::RoundF, &op);
  round.dst = round.a = number;
}

/// cmpi: four of the ten predicates are others with operands swapped.
void Compiler::compileCompare(arith::CmpIOp op) {
  using Predicate = arith::CmpIPredicate;
  struct Form {
    Opcode opcode;
    bool swapped;
  };
  auto form = [&]() -> Form {
    switch (op.getPredicate()) {
    case Predicate::eq:
      return {Opcode::Equal, false};
    case Predicate::ne:
      return {Opcode::NotEqual, false};
    case Predicate::slt:
      return {Opcode::LessS, false};
    case Predicate::sle:
      return {Opcode::LessEqualS, false};
    case Predicate::sgt:
      return {Opcode::LessS, true};
    case Predicate::sge:
      return {Opcode::LessEqualS, true};
    case Predicate::ult:
      return {Opcode::LessU, false};
    case Predicate::ule:
      return {Opcode::LessEqualU, false};
    case Predicate::ugt:
      return {Opcode::LessU, true};
    case Predicate::uge:
      return {Opcode::LessEqualU, true};
    }
    return {Opcode::Equal, false};
  }();
  Instruction &compare = emitSimple(form.opcode, *op);
  if (form.swapped)
    std::swap(compare.a, compare.b);
}

/// Conversions; the width is that of the side where bits matter.
LogicalResult Compiler::compileConversion(Operation &op) {
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  auto emitWidth = [&](Opcode opcode, unsigned width) {
    emitSimple(opcode, op).width = width;
    return success();
  };
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<arith::ExtUIOp>(
          [&](auto) { return emitWidth(Opcode::ExtendU, widthOf(from)); })
      .Case<arith::TruncIOp, arith::IndexCastOp>(
          [&](auto) { return emitWidth(Opcode::Wrap, widthOf(to)); })
      .Case<arith::IndexCastUIOp>([&](auto) {
        return widthOf(from) < widthOf(to)
                   ? emitWidth(Opcode::ExtendU, widthOf(from))
                   : emitWidth(Opcode::Wrap, widthOf(to));
      })
      .Case<arith::SIToFPOp>(
          [&](auto) { return emitWidth(Opcode::SignedToF, widthOf(from)); })
      .Case<arith::UIToFPOp>(
          [&](auto) { return emitWidth(Opcode::UnsignedToF, widthOf(from)); })
      .Case<arith::FPToSIOp>(
          [&](auto) { return emitWidth(Opcode::FToSigned, widthOf(to)); })
      .Case<arith::FPToUIOp>(
          [&](auto) { return emitWidth(Opcode::FToUnsigned, widthOf(to)); })
      .Case<arith::TruncFOp>(
          [&](auto) { return emitWidth(Opcode::RoundF, widthOf(to)); })
      .Case<arith::BitcastOp>([&](auto) {
        bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
        if (fromFloat && !toFloat)
          return emitWidth(Opcode::FToBits, widthOf(to));
        if (!fromFloat && toFloat)
          return emitWidth(Opcode::BitsToF, widthOf(to));
        return LogicalResult(
            op.emitOpError("cannot be evaluated between types of one kind"));
      })
      .Default([&](Operation *) {
        return op.emitOpError("cannot be evaluated: burst does not know it; "
                              "write it with other ops of arith and math");
      });
}

LogicalResult Compiler::compileScalar(Operation &op) {
  for (Type type :
       llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()))
    if (!isScalar(type) || (type.isInteger() && widthOf(type) > 64))
      return op.emitOpError("cannot be evaluated on ") << type;
  if (op.getNumResults() != 1 || op.getNumOperands() == 0 ||
      op.getNumOperands() > 3 || op.getNumRegions() != 0)
    return op.emitOpError("cannot be evaluated: it is no op on scalars");
  StringRef name = op.getName().getStringRef();
  for (const Simple &simple : simpleOps)
    if (simple.name == name) {
      emitSimple(simple.opcode, op);
      emitRounding(op);
      return success();
    }
  for (const Unary &unary : unaryOps)
    if (unary.name == name) {
      emitSimple(Opcode::UnaryF, op).imm.unary = unary.function;
      emitRounding(op);
      return success();
    }
  for (const Binary &binary : binaryOps)
    if (binary.name == name) {
      emitSimple(Opcode::BinaryF, op).imm.binary = binary.function;
      emitRounding(op);
      return success();
    }
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    compileCompare(compare);
    return success();
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    emitSimple(Opcode::CompareF, op).width =
        static_cast<uint8_t>(compare.getPredicate());
    return success();
  }
  return compileConversion(op);
}
