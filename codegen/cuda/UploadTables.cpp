//===- UploadTables.cpp - the host's memory for kernels of GPUs -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Passes.h"
#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Build.h"

#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace burst::cuda {
#define GEN_PASS_DEF_UPLOADTABLESPASS
#include "codegen/cuda/Passes.h.inc"
} // namespace burst::cuda

using namespace mlir;
using namespace burst;

namespace {

/// Finds out of one program where its memory is.
class Placement {
public:
  explicit Placement(func::FuncOp program) : program(program) {}

  LogicalResult run();

private:
  bool isGpuLaunch(Operation *op);
  bool touches(Operation *op);
  bool isHost(Value buffer);
  LogicalResult verifyCopy(memref::CopyOp copy);
  LogicalResult verifyHostCode();
  void upload(Value buffer, ArrayRef<OpOperand *> reads);

  func::FuncOp program;
};

} // namespace

/// The allocation or argument that a view is of.
static Value rootOf(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

bool Placement::isGpuLaunch(Operation *op) {
  auto launch = dyn_cast<tile::LaunchOp>(op);
  return launch &&
         SymbolTable::lookupNearestSymbolFrom(launch, launch.getKernelAttr())
             ->hasAttr(tile::warpsAttr);
}

/// Whether the host reads or writes the content of memory that it gets: not
/// where it hands addresses on.
bool Placement::touches(Operation *op) {
  return !isGpuLaunch(op) &&
         !isa<ViewLikeOpInterface, memref::DimOp, memref::DeallocOp,
              ring::TransferOpInterface, ring::WaitOp, scf::YieldOp, scf::ForOp,
              scf::IfOp, func::ReturnOp>(op);
}

bool Placement::isHost(Value buffer) {
  Value root = rootOf(buffer);
  if (auto argument = dyn_cast<BlockArgument>(root))
    return argument.getOwner() == &program.getBody().front() &&
           program.getArgAttr(argument.getArgNumber(), tile::hostAttr);
  if (root.getDefiningOp<memref::GetGlobalOp>())
    return true; // a constant of the program's code
  auto allocation = root.getDefiningOp<tile::AllocateOp>();
  return allocation && tile::symbolizeMemory(allocation.getMemory()) ==
                           tile::Memory::Schedule;
}

/// A result's number, with its name if it has one.
static std::string describeResult(func::FuncOp program,
                                  BlockArgument argument) {
  unsigned number = 0;
  for (unsigned i = 0; i < argument.getArgNumber(); ++i)
    number += program.getArgAttr(i, ring::resultAttr) != nullptr;
  auto name =
      program.getArgAttrOfType<StringAttr>(argument.getArgNumber(), nameAttr);
  return llvm::formatv("result {0}{1}", number,
                       name ? (" ('" + name.getValue() + "')").str() : "");
}

/// What is returned twice, bufferization copies.
LogicalResult Placement::verifyCopy(memref::CopyOp copy) {
  auto from = dyn_cast<BlockArgument>(copy.getSource());
  auto to = dyn_cast<BlockArgument>(copy.getTarget());
  for (BlockArgument result : {from, to})
    if (!result || !program.getArgAttr(result.getArgNumber(), ring::resultAttr))
      return success();
  return emitError(copy.getLoc())
         << describeResult(program, to) << " is "
         << describeResult(program, from)
         << " again, which GPUs do not copy: wanted each value once, the "
            "caller can copy it";
}

/// Marks the arguments that host code reads.
LogicalResult Placement::verifyHostCode() {
  WalkResult result = program.walk([&](Operation *op) {
    if (!touches(op))
      return WalkResult::advance();
    if (auto copy = dyn_cast<memref::CopyOp>(op);
        copy && failed(verifyCopy(copy)))
      return WalkResult::interrupt();
    for (Value operand : op->getOperands()) {
      if (!isa<MemRefType>(operand.getType()) || isHost(operand))
        continue;
      auto argument = dyn_cast<BlockArgument>(rootOf(operand));
      bool isTable =
          argument && argument.getOwner() == &program.getBody().front() &&
          !program.getArgAttr(argument.getArgNumber(), ring::shardAttr) &&
          !program.getArgAttr(argument.getArgNumber(), ring::resultAttr);
      if (isTable) {
        program.setArgAttr(argument.getArgNumber(), tile::hostAttr,
                           UnitAttr::get(program.getContext()));
        continue;
      }
      op->emitOpError("is done by the host, and reads or writes memory of the "
                      "GPU: ")
          << operand.getType();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// One copy where all launches stand in a block; else one for each of them.
/// What is the same in all of the program is copied once.
void Placement::upload(Value buffer, ArrayRef<OpOperand *> reads) {
  Operation *first = reads.front()->getOwner(),
            *last = reads.back()->getOwner();
  Operation *constant = buffer.getDefiningOp<memref::GetGlobalOp>();
  Block *entry = &program.getBody().front();
  bool stays =
      isa<BlockArgument>(buffer) || (constant && constant->getBlock() == entry);
  if (!stays && first->getBlock() != last->getBlock()) {
    for (OpOperand *read : reads)
      upload(buffer, read);
    return;
  }
  OpBuilder b(first);
  if (stays && constant)
    b.setInsertionPointAfter(constant);
  else if (stays)
    b.setInsertionPointToStart(entry);
  Value copy =
      tile::UploadOp::create(b, first->getLoc(), buffer.getType(), buffer);
  for (OpOperand *read : reads)
    read->set(copy);
  if (stays)
    return; // until the end of the program
  b.setInsertionPointAfter(last);
  memref::DeallocOp::create(b, last->getLoc(), copy);
}

LogicalResult Placement::run() {
  if (failed(verifyHostCode()))
    return failure();
  llvm::MapVector<Value, SmallVector<OpOperand *>> reads;
  WalkResult result = program.walk([&](tile::LaunchOp launch) {
    if (!isGpuLaunch(launch))
      return WalkResult::advance();
    for (OpOperand &operand : launch->getOpOperands()) {
      if (!isa<MemRefType>(operand.get().getType()) || !isHost(operand.get()))
        continue;
      if (llvm::is_contained(launch.getWrites(), operand.get())) {
        launch.emitOpError("writes memory of the host: ")
            << operand.get().getType();
        return WalkResult::interrupt();
      }
      reads[operand.get()].push_back(&operand);
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (auto &[buffer, operands] : reads)
    upload(buffer, operands);
  return success();
}

namespace {
struct UploadTables : burst::cuda::impl::UploadTablesPassBase<UploadTables> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr) &&
          failed(Placement(function).run()))
        return signalPassFailure();
  }
};
} // namespace
