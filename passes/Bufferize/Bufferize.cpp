//===- Bufferize.cpp - the program of a rank on buffers -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Bufferize/Bufferizer.h"
#include "passes/Plan.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferUtils.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace burst {
#define GEN_PASS_DEF_BUFFERIZEPASS
#include "passes/Passes.h.inc"
} // namespace burst

using namespace mlir;
using namespace burst;
using namespace burst::bufferizing;

LogicalResult Bufferizer::convert(tensor::GenerateOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Value buffer =
      allocate(MemRefType::get(type.getShape(), type.getElementType()),
               map(op.getDynamicExtents()), "schedule");
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> indices;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    Value size = memref::DimOp::create(builder, loc, buffer, constant(d));
    auto loop =
        scf::ForOp::create(builder, loc, constant(0), size, constant(1));
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  mapping.map(op.getBody().getArguments(), indices);
  for (Operation &inner : op.getBody().front().without_terminator())
    if (failed(convert(inner)))
      return failure();
  auto yield = cast<tensor::YieldOp>(op.getBody().front().getTerminator());
  memref::StoreOp::create(builder, loc, map(yield.getValue()), buffer, indices);
  mapping.map(op.getResult(), buffer);
  return success();
}

LogicalResult Bufferizer::convert(ring::TakeHeadsOp op) {
  Value whole = map(op.getTensor());
  Value view = viewChunk(whole, cast<RankedTensorType>(op.getTaken().getType()),
                         static_cast<int64_t>(op.getChunk()),
                         static_cast<int64_t>(op.getNumChunks()));
  mapping.map(op.getTaken(), view);
  inherit(whole, view);
  auto argument = dyn_cast<BlockArgument>(op.getTensor());
  queries[view] = argument ? argument : queries.lookup(whole);
  return success();
}

/// All-to-alls have brought the chunks to where they belong.
LogicalResult Bufferizer::convert(ring::JoinHeadsOp op) {
  Value whole = returnedMemory(op.getJoined());
  if (!whole)
    return op.emitOpError("joins what the program does not return, so that "
                          "nobody has memory for it");
  for (OpOperand &chunk : op->getOpOperands()) {
    auto wait = chunk.get().getDefiningOp<ring::WaitOp>();
    auto start =
        wait ? wait.getToken().getDefiningOp<ring::TransferOpInterface>()
             : ring::TransferOpInterface();
    if (!start || !chunk.get().hasOneUse() ||
        start.getRoute() != ring::Route::ToSequence)
      return op.emitOpError("joins as chunk ")
             << chunk.getOperandNumber()
             << " what no all-to-all brings for it alone";
  }
  queries[whole] = queries.lookup(map(op.getChunks().front()));
  mapping.map(op.getJoined(), whole);
  return success();
}

LogicalResult Bufferizer::convert(arith::ConstantOp op) {
  if (!isTensor(op.getResult()))
    return convertClone(*op);
  OpBuilder::InsertionGuard guard(builder);
  FailureOr<memref::GlobalOp> global =
      bufferization::getGlobalFor(op, tables, 64);
  if (failed(global))
    return op.emitOpError("has no constant buffer");
  mapping.map(op.getResult(),
              memref::GetGlobalOp::create(builder, loc, global->getType(),
                                          global->getName())
                  .getResult());
  return success();
}

/// What is sharded has one batch: nobody knows that of the caller's memory
/// where the types leave it open.
void Bufferizer::requireBatch() {
  SmallVector<std::pair<Value, std::string>> sharded;
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    if (program.getArgAttr(i, ring::shardAttr))
      sharded.push_back(
          {map(program.getArgument(i)), argumentName(program, i)});
  for (unsigned i = 0; i < results.size(); ++i)
    if (program.getResultAttr(i, ring::shardAttr))
      sharded.push_back({results[i], ("result " + Twine(i)).str()});
  if (llvm::none_of(sharded, [](const auto &each) {
        return cast<MemRefType>(each.first.getType()).isDynamicDim(0);
      }))
    return;
  auto batchOf = [&](Value buffer) -> Value {
    return memref::DimOp::create(builder, loc, buffer, 0);
  };
  Value first = batchOf(sharded.front().first);
  std::string whose = "batch of " + sharded.front().second;
  for (const auto &[buffer, name] : ArrayRef(sharded).drop_front()) {
    Value batch = batchOf(buffer);
    ring::RequireOp::create(builder, loc, batch, first, "batch of " + name);
    ring::RequireOp::create(builder, loc, first, batch, whose);
  }
}

/// A result is laid out as its queries are: what carries their size carries
/// its.
void Bufferizer::nameExtent(unsigned result, Value tensor) {
  auto created = cast<func::FuncOp>(builder.getBlock()->getParentOp());
  BlockArgument query = queries.lookup(map(tensor));
  auto shard =
      program.getResultAttrOfType<ring::ShardAttr>(result, ring::shardAttr);
  if (!query || !shard || !ShapedType::isDynamic(shard.getExtent()))
    return;
  for (unsigned i = 0; i < program.getNumArguments(); ++i) {
    auto extent =
        created.getArgAttrOfType<DenseI64ArrayAttr>(i, ring::extentAttr);
    for (int64_t p = 0; extent && p < extent.size(); p += 2) {
      if (extent[p] != query.getArgNumber() || extent[p + 1] != 1)
        continue;
      SmallVector<int64_t> pairs(extent.asArrayRef());
      pairs.push_back(program.getNumArguments() + result);
      pairs.push_back(shard.getDim());
      created.setArgAttr(i, ring::extentAttr,
                         builder.getDenseI64ArrayAttr(pairs));
      return;
    }
  }
}

LogicalResult Bufferizer::convert(func::ReturnOp op) {
  for (auto [index, tensor] : llvm::enumerate(op.getOperands())) {
    if (contents.lookup(map(tensor)) == ring::Content::State)
      return op.emitOpError("returns a state, in which m has another unit than "
                            "outside; finalize it first");
    nameExtent(index, tensor);
    if (map(tensor) == results[index])
      continue;
    requireSizes(index, map(tensor));
    memref::CopyOp::create(builder, loc, map(tensor), results[index]);
  }
  func::ReturnOp::create(builder, loc);
  return success();
}

LogicalResult Bufferizer::convertClone(Operation &op) {
  if (isa<ring::CollectiveOpInterface>(op))
    return op.emitOpError("stands for loops and transfers; run "
                          "ring-lower-rotate and ring-lower-gather first");
  auto isAnyTensor = [](Value value) { return isTensor(value); };
  if (llvm::any_of(op.getOperands(), isAnyTensor) ||
      llvm::any_of(op.getResults(), isAnyTensor))
    return op.emitOpError("works on tensors and has no form on buffers");
  if (op.getNumRegions() != 0)
    return op.emitOpError("has regions and no form on buffers");
  builder.clone(op, mapping);
  return success();
}

LogicalResult Bufferizer::convert(Operation &op) {
  loc = op.getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<ring::StepOpInterface, ring::TransferOpInterface, ring::WaitOp,
            scf::ForOp, scf::IfOp, tensor::GenerateOp, arith::ConstantOp,
            ring::TakeHeadsOp, ring::JoinHeadsOp, func::ReturnOp>(
          [&](auto op) { return convert(op); })
      .Case<tensor::DimOp>([&](tensor::DimOp op) {
        mapping.map(op.getResult(),
                    memref::DimOp::create(builder, loc, map(op.getSource()),
                                          map(op.getIndex()))
                        .getResult());
        return success();
      })
      .Case<tensor::ExtractOp>([&](tensor::ExtractOp op) {
        mapping.map(op.getResult(),
                    memref::LoadOp::create(builder, loc, map(op.getTensor()),
                                           map(op.getIndices()))
                        .getResult());
        return success();
      })
      .Case<tensor::CastOp>([&](tensor::CastOp op) {
        mapping.map(op.getResult(), map(op.getSource()));
        return success();
      })
      .Case<TableRangeOp>([&](TableRangeOp op) {
        builder.clone(*op, mapping);
        return success();
      })
      .Case<func::CallOp>([&](func::CallOp op) {
        return op.emitOpError("stands in the program of a rank; run inline "
                              "before ring-bufferize");
      })
      .Default([&](Operation *op) { return convertClone(*op); });
}

LogicalResult Bufferizer::convertBlock(Block &block) {
  for (Operation &op : block) {
    if (isa<scf::YieldOp>(op))
      scf::YieldOp::create(builder, op.getLoc(), map(op.getOperands()));
    else if (failed(convert(op)))
      return failure();
  }
  return success();
}

LogicalResult Bufferizer::run() {
  if (!program.getBody().hasOneBlock())
    return program.emitOpError("must have one block to be put on buffers");
  separateStates();
  reused = findReusedBuffers(program);
  Block &body = program.getBody().front();
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  auto add = [&](Type type, DictionaryAttr dictionary, bool isResult) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    types.push_back(tensor ? bufferType(tensor) : type);
    NamedAttrList list(dictionary);
    if (isResult)
      list.append(ring::resultAttr, builder.getUnitAttr());
    attributes.push_back(list.getDictionary(builder.getContext()));
    return tensor || !isResult;
  };
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes()))
    (void)add(type, program.getArgAttrDict(index), false);
  for (auto [index, type] : llvm::enumerate(program.getResultTypes()))
    if (!add(type, program.getResultAttrDict(index), true))
      return program.emitOpError("returns a ")
             << type << "; results of a program are tensors";

  auto empty = ArrayRef<NamedAttribute>();
  builder.setInsertionPoint(program);
  auto created = func::FuncOp::create(
      builder, program.getLoc(), program.getName(),
      builder.getFunctionType(types, {}), empty, attributes);
  created->setAttr(ring::gridAttr, program->getAttr(ring::gridAttr));
  if (Attribute shape = program->getAttr(tile::shapeAttr))
    created->setAttr(tile::shapeAttr, shape);
  Block *entry = created.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  auto arguments = entry->getArguments();
  mapping.map(body.getArguments(),
              arguments.take_front(body.getNumArguments()));
  llvm::append_range(results, arguments.drop_front(body.getNumArguments()));
  loc = program.getLoc();
  requireBatch();
  if (failed(convertBlock(body))) {
    created.erase();
    return failure();
  }
  program.erase();
  return success();
}

namespace {
struct Bufferize : burst::impl::BufferizePassBase<Bufferize> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr))
        programs.push_back(function);
    for (func::FuncOp program : programs) {
      if (llvm::any_of(program.getArgumentTypes(), llvm::IsaPred<MemRefType>)) {
        program.emitError("is on buffers already; ring-bufferize takes the "
                          "programs that burst-to-ring leaves, once");
        return signalPassFailure();
      }
      if (failed(Bufferizer(program).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
