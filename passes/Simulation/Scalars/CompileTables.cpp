//===- CompileTables.cpp - tables and constants to instructions -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Simulation/Scalars/Compiler.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burst;

/// Flags take a bit each.
static int64_t mostElements(RankedTensorType type) {
  return type.getElementType().isInteger(1) ? maxTableElements << 4
                                            : maxTableElements;
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

/// The dimension of a table whose entries are made together: the longest, of
/// several the last one. None where it is short.
static std::optional<unsigned> dimOfLanes(RankedTensorType type) {
  constexpr int64_t few = 8;
  std::optional<unsigned> found;
  int64_t longest = few;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    if (extent < longest)
      continue;
    longest = extent;
    found = dim;
  }
  return found;
}

/// Nested loops over the dimensions that store what the body yields.
LogicalResult Compiler::compileGenerate(tensor::GenerateOp generate) {
  auto type = cast<RankedTensorType>(generate.getType());
  if (!type.hasStaticShape())
    return generate.emitOpError(
        "cannot be evaluated: its shape must be static");
  std::string error;
  if (!checkSize(type.getShape(), type.getElementType(), error) ||
      type.getNumElements() > mostElements(type))
    return generate.emitOpError("cannot be evaluated: a table has at most ")
           << mostElements(type) << " elements, got: " << type;
  Slot table = slot(generate.getResult());
  Instruction &allocate = emit(Opcode::AllocateTable, generate);
  allocate.dst = table.number;
  Block &body = generate.getBody().front();
  Slot one = emitConstant(1);
  SmallVector<uint32_t> heads;
  SmallVector<Slot> extents;
  std::optional<unsigned> lanes = dimOfLanes(type);
  uint32_t trial = 0;
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
    if (lanes == heads.size()) {
      trial = program.code.size();
      emit(Opcode::RunLanes, generate);
    }
    heads.push_back(program.code.size());
    Instruction &test = emit(Opcode::JumpUnlessLess);
    test.a = slot(iv).number;
    test.b = extents.back().number;
    if (failed(compileLevel(heads.size())))
      return failure();
  }
  Program::OperandList list;
  Slot value = slot(body.getTerminator()->getOperand(0));
  list.operands.push_back(value);
  for (Value iv : body.getArguments())
    list.operands.push_back(slot(iv));
  program.operandLists.push_back(std::move(list));
  Instruction &store = emit(Opcode::StoreTable, generate);
  store.a = table.number;
  store.b = value.number;
  store.operands = program.operandLists.size() - 1;
  for (size_t dim = heads.size(); dim-- > 0;) {
    emitNextTurn(Opcode::NextTurn, generate, heads[dim],
                 slot(body.getArgument(dim)), one);
    if (lanes == dim)
      describeLanes(trial, slot(body.getArgument(dim)), type.getDimSize(dim));
  }
  return success();
}

/// What the trial at `trial` runs: the loop behind it, which ends here.
void Compiler::describeLanes(uint32_t trial, Slot iv, int64_t extent) {
  Instruction &in = program.code[trial];
  std::optional<Program::LaneCode> code =
      program.laneCode(trial + 2, program.code.size() - 1,
                       /*varying=*/iv.number, Program::canRunInLanes);
  if (!code) {
    in.opcode = Opcode::Jump;
    in.imm.i = trial + 1;
    return;
  }
  in.dst = iv.number;
  in.imm.i = program.code.size();
  in.operands = program.laneLoops.size();
  program.laneLoops.push_back({std::move(*code), extent});
}

LogicalResult Compiler::compileTableOp(Operation &op) {
  Opcode opcode =
      TypeSwitch<Operation *, Opcode>(&op)
          .Case<tensor::ExtractOp>([](auto) { return Opcode::Extract; })
          .Case<TableRangeOp>([](auto) { return Opcode::TableRange; })
          .Case<tensor::DimOp>([](auto) { return Opcode::Dim; })
          .Default(Opcode::Call);
  Instruction &instruction = emit(opcode, &op);
  instruction.operands = operandList(&op);
  if (isa<tensor::ExtractOp>(op)) {
    instruction.a = slot(op.getOperand(0)).number;
    instruction.dst = slot(op.getResult(0)).number;
  }
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

TensorRef burst::makeTable(DenseIntOrFPElementsAttr dense) {
  auto table = std::make_shared<Tensor>(dense.getType().getShape(),
                                        dense.getElementType());
  if (isa<FloatType>(dense.getElementType()))
    for (const APFloat &value : dense.getValues<APFloat>())
      table->floats.push_back(FloatAttr::getValueAsDouble(value));
  else
    for (const APInt &value : dense.getValues<APInt>())
      table->ints.push_back(value.getSExtValue());
  return table;
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
  TensorRef table = makeTable(dense);
  Instruction &constant = emit(Opcode::ConstantObject, op);
  constant.dst = result.number;
  constant.imm.i = program.constants.size();
  program.constants.push_back(std::move(table));
  return success();
}
