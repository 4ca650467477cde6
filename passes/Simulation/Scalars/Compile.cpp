//===- Compile.cpp - from MLIR to instructions ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Compiler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burst;

std::optional<Program>
Program::compile(Region &region, function_ref<bool(Operation *)> isExternal,
                 ProgramOptions options) {
  Compiler compiler(isExternal);
  compiler.program.options = options;
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

void Compiler::emitCopy(Slot to, Slot from, bool moves) {
  if (to.number == from.number)
    return;
  Opcode ofObject = moves ? Opcode::MoveObject : Opcode::CopyObject;
  Instruction &copy = emit(to.isScalar ? Opcode::Copy : ofObject);
  copy.dst = to.number;
  copy.a = from.number;
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
  bool isCalled = isExternal(op) && !program.code.empty() &&
                  program.code.back().opcode == Opcode::External;
  auto release = [&](Value value) {
    uint32_t number = slot(value).number;
    if (!isScalar(value.getType()) && isCalled)
      program.operandLists[program.code.back().operands].released.push_back(
          number);
    else if (!isScalar(value.getType()))
      emit(Opcode::ReleaseObject).dst = number;
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
  emitNextTurn(loop.getUnsignedCmp() ? Opcode::NextTurnU : Opcode::NextTurn,
               loop, head, iv, slot(loop.getStep()));
  return success();
}

/// The end of a loop that begins with the test `head`, behind which the program
/// goes on: `head` itself is passed once.
void Compiler::emitNextTurn(Opcode opcode, Operation *op, uint32_t head,
                            Slot iv, Slot step) {
  Instruction &next = emit(opcode, op);
  next.dst = iv.number;
  next.b = program.code[head].b;
  next.c = step.number;
  next.imm.i = head + 1;
  program.code[head].imm.i = program.code.size();
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
  for (Assignment &assignment : assignments) {
    bool isGiven = llvm::any_of(
        to, [&](Value target) { return slot(target) == assignment.from; });
    if (!isGiven)
      continue;
    Slot temporary = assignment.from;
    temporary.number =
        assignment.from.isScalar ? program.numScalars++ : program.numObjects++;
    emitCopy(temporary, assignment.from, assignment.moves);
    assignment = {assignment.to, temporary, true};
  }
  for (const Assignment &assignment : assignments)
    emitCopy(assignment.to, assignment.from, assignment.moves);
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
  instruction.a = program.layouts.size();
  program.layouts.push_back(op.getLayout().getValue());
}
