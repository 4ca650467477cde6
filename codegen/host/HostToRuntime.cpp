//===- HostToRuntime.cpp - host code as calls of the runtime --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/HostLowering.h"

#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace burst::host {
#define GEN_PASS_DEF_HOSTTORUNTIMEPASS
#include "codegen/host/Passes.h.inc"
} // namespace burst::host

using namespace mlir;
using namespace burst;
using namespace burst::host;

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Value HostLowering::reserve(Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&program.getBody().front());
  return b.make<LLVM::AllocaOp>(pointer, type, constant(count), 64);
}

/// Where a burst_table has an entry, as the type in `call` says.
static constexpr size_t offsetOf(Entry entry) {
  return 2 * sizeof(uint32_t) +
         (static_cast<size_t>(entry) - 2) * sizeof(void *);
}
static_assert(offsetOf(Entry::Index) == offsetof(burst_table, index));
static_assert(offsetOf(Entry::Allocate) == offsetof(burst_table, allocate));
static_assert(offsetOf(Entry::Release) == offsetof(burst_table, release));
static_assert(offsetOf(Entry::Sort) == offsetof(burst_table, sort));
static_assert(offsetOf(Entry::Launch) == offsetof(burst_table, launch));
static_assert(offsetOf(Entry::Start) == offsetof(burst_table, start));
static_assert(offsetOf(Entry::Wait) == offsetof(burst_table, wait));
static_assert(offsetOf(Entry::Require) == offsetof(burst_table, require));
static_assert(offsetOf(Entry::Upload) == offsetof(burst_table, upload));
static_assert(offsetOf(Entry::LaunchGpu) == offsetof(burst_table, launch_gpu));
static_assert(offsetOf(Entry::Threads) == offsetof(burst_table, threads));
static_assert(offsetOf(Entry::Use) == offsetof(burst_table, use));
static_assert(offsetOf(Entry::Messages) == offsetof(burst_table, messages));
static_assert(offsetOf(Entry::End) == sizeof(burst_table));

Value HostLowering::call(Entry entry, Type result, ArrayRef<Value> arguments) {
  SmallVector<Type> members(static_cast<size_t>(Entry::End), pointer);
  members[0] = members[1] = i32;
  auto tableType = LLVM::LLVMStructType::getLiteral(b.getContext(), members);
  Value address = fieldOf(
      tableType, table, ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(entry)});
  Value function = b.make<LLVM::LoadOp>(pointer, address);
  SmallVector<Value> operands{function, rank};
  llvm::append_range(operands, arguments);
  SmallVector<Type> inputs{pointer};
  for (Value argument : arguments)
    inputs.push_back(argument.getType());
  auto type = LLVM::LLVMFunctionType::get(result, inputs);
  auto call = b.make<LLVM::CallOp>(type, operands);
  return call.getNumResults() ? call.getResult() : Value();
}

int64_t HostLowering::bytesOf(Type element) {
  if (element.isIndex())
    return 8;
  return static_cast<int64_t>(
      llvm::PowerOf2Ceil((element.getIntOrFloatBitWidth() + 7) / 8));
}

Value HostLowering::dataOf(Value buffer) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  MemRefDescriptor memory = descriptor(buffer);
  return b.make<LLVM::GEPOp>(
      pointer, types.convertType(element), memory.alignedPtr(b, b.getLoc()),
      ArrayRef<LLVM::GEPArg>{memory.offset(b, b.getLoc())});
}

/// A bf16 as its bits: moving one as a float is a call on processors without.
Value HostLowering::asStored(Value scalar) {
  if (scalar.getType().isBF16())
    return b.make<arith::BitcastOp>(b.getI16Type(), scalar);
  return scalar;
}

/// Makes a function take the bits of its bf16 arguments.
void HostLowering::storeScalarsAsBits(func::FuncOp function) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  for (BlockArgument argument : function.getArguments()) {
    if (!argument.getType().isBF16())
      continue;
    Type type = argument.getType();
    argument.setType(b.getI16Type());
    auto cast = b.make<arith::BitcastOp>(type, argument);
    argument.replaceAllUsesExcept(cast, cast);
  }
  function.setType(b.getFunctionType(function.getBody().getArgumentTypes(),
                                     function.getResultTypes()));
}

/// A constant string of C, at the point of insertion.
LLVM::GlobalOp HostLowering::makeText(const Twine &name, StringRef text) {
  auto value = b.getStringAttr(text + Twine('\0'));
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(),
                                       static_cast<unsigned>(value.size()));
  return b.make<LLVM::GlobalOp>(type, /*isConstant=*/true,
                                LLVM::Linkage::Internal, name.str(), value);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value HostLowering::spill(Value buffer) {
  Value address = reserve(types.convertType(buffer.getType()), 1);
  b.make<LLVM::StoreOp>(descriptor(buffer), address);
  return address;
}

static int64_t kindOf(tile::Memory memory) {
  switch (memory) {
  case tile::Memory::State:
    return BURST_MEMORY_STATE;
  case tile::Memory::Slice:
    return BURST_MEMORY_SLICE;
  case tile::Memory::Packing:
    return BURST_MEMORY_PACKING;
  case tile::Memory::Schedule:
    return BURST_MEMORY_SCHEDULE;
  }
  return BURST_MEMORY_SCHEDULE;
}

void HostLowering::lowerAllocate(tile::AllocateOp op) {
  auto type = cast<MemRefType>(op.getBuffer().getType());
  int64_t kind = kindOf(*tile::symbolizeMemory(op.getMemory()));
  SmallVector<Value> sizes;
  unsigned next = 0;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? number(op.getSizes()[next++])
                                                : constant(size));
  SmallVector<Value> strides(sizes.size());
  Value count = constant(1);
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = count;
    count = b.make<LLVM::MulOp>(count, sizes[d]);
  }
  Value bytes =
      b.make<LLVM::MulOp>(count, constant(bytesOf(type.getElementType())));
  Value data = call(Entry::Allocate, pointer, {bytes, constant(kind)});
  Location loc = op.getLoc();
  auto memory = MemRefDescriptor::poison(b, loc, types.convertType(type));
  memory.setAllocatedPtr(b, loc, data);
  memory.setAlignedPtr(b, loc, data);
  memory.setConstantOffset(b, loc, 0);
  for (size_t d = 0; d < sizes.size(); ++d) {
    memory.setSize(b, loc, d, sizes[d]);
    memory.setStride(b, loc, d, strides[d]);
  }
  op.replaceAllUsesWith(asBuffer(memory, type));
}

void HostLowering::lowerRequire(ring::RequireOp op) {
  std::string name =
      (program.getName() + ".required." + Twine(numRequired++)).str();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(program);
    makeText(name, op.getWhat());
  }
  call(Entry::Require, LLVM::LLVMVoidType::get(b.getContext()),
       {number(op.getFound()), number(op.getWanted()),
        b.make<LLVM::AddressOfOp>(pointer, name)});
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

void HostLowering::addArguments() {
  DictionaryAttr none;
  (void)program.insertArguments({0, 0}, {pointer, pointer}, {none, none},
                                {program.getLoc(), program.getLoc()});
  rank = program.getArgument(0);
  table = program.getArgument(1);
}

/// `run` of the program's image: unpacks the values and calls the program.
void HostLowering::makeEntries() {
  b.setInsertionPointAfter(program);
  auto nothing = LLVM::LLVMVoidType::get(b.getContext());
  auto entry = b.make<LLVM::LLVMFuncOp>(
      (program.getName() + ".run").str(),
      LLVM::LLVMFunctionType::get(nothing, {pointer, pointer, pointer}));
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  SmallVector<Value> operands{block->getArgument(0), block->getArgument(1)};
  for (auto [i, type] :
       llvm::enumerate(program.getArgumentTypes().drop_front(2))) {
    Value address = b.make<LLVM::LoadOp>(
        pointer, fieldOf(pointer, block->getArgument(2),
                         ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)}));
    Value value;
    if (auto buffer = dyn_cast<MemRefType>(type)) {
      value = asBuffer(b.make<LLVM::LoadOp>(types.convertType(type), address),
                       buffer);
    } else if (type.isIndex()) {
      value = index(b.make<LLVM::LoadOp>(i64, address));
    } else if (type.isInteger()) {
      // As memory holds it, in whole bytes.
      Type stored = b.getIntegerType(bytesOf(type) * 8);
      value = b.make<LLVM::LoadOp>(stored, address);
      if (stored != type)
        value = b.make<LLVM::TruncOp>(type, value);
    } else {
      value = b.make<LLVM::LoadOp>(type, address);
    }
    operands.push_back(value);
  }
  b.make<func::CallOp>(program, operands);
  b.make<LLVM::ReturnOp>(ValueRange());
}

// What `makeSegments` writes.
static_assert(offsetof(burst_segment, begin) == 0 * sizeof(int64_t) &&
              offsetof(burst_segment, count) == 1 * sizeof(int64_t) &&
              offsetof(burst_segment, step) == 2 * sizeof(int64_t) &&
              offsetof(burst_segment, block) == 3 * sizeof(int64_t) &&
              sizeof(burst_segment) == 4 * sizeof(int64_t));

/// `segments` of the program's image.
void HostLowering::makeSegments() {
  b.setInsertionPointAfter(program);
  auto nothing = LLVM::LLVMVoidType::get(b.getContext());
  auto function = b.make<LLVM::LLVMFuncOp>(
      (program.getName() + ".segments").str(),
      LLVM::LLVMFunctionType::get(nothing, {i32, i64, i64, pointer}));
  Block *block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  Value parameter = block->getArgument(0);
  Value rank = index(block->getArgument(1));
  Value extent = index(block->getArgument(2));
  auto segment =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i64, i64, i64, i64});
  for (unsigned i = 2; i < program.getNumArguments(); ++i) {
    auto shard = program.getArgAttrOfType<ring::ShardAttr>(i, ring::shardAttr);
    if (!shard)
      continue;
    Value isThis =
        b.compare(arith::CmpIPredicate::eq, parameter,
                  b.make<LLVM::ConstantOp>(i32, static_cast<int64_t>(i) - 2));
    b.when(isThis, [&] {
      ring::LayoutAttr layout = shard.getLayout();
      Value owner = placeOf(rank, ring::groupOf(program, shard.getAxes()));
      for (int32_t s = 0; s < layout.getNumSegments(); ++s) {
        auto op = b.make<ring::SegmentOp>(s, layout, owner, extent);
        SmallVector<Value> members{op.getBegin(), op.getCount(), op.getStep(),
                                   op.getBlock()};
        for (auto [member, value] : llvm::enumerate(members))
          b.make<LLVM::StoreOp>(
              number(value),
              fieldOf(segment, block->getArgument(3),
                      ArrayRef<LLVM::GEPArg>{s, static_cast<int32_t>(member)}));
      }
    });
  }
  b.make<LLVM::ReturnOp>(ValueRange());
}

/// The place of a rank in its group.
Value HostLowering::placeOf(Value rank, const RankGroup &group) {
  Value place = rank;
  if (group.stride != 1)
    place = b.make<arith::DivUIOp>(place, b.index(group.stride));
  if (group.size * group.stride != ring::numRanks(program))
    place = b.make<arith::RemUIOp>(place, b.index(group.size));
  return place;
}

LogicalResult HostLowering::lower(Operation *op) {
  b.setLoc(op->getLoc());
  b.setInsertionPoint(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tile::AllocateOp>([&](auto op) {
        lowerAllocate(op);
        return success();
      })
      .Case<memref::DeallocOp>([&](memref::DeallocOp op) {
        call(Entry::Release, LLVM::LLVMVoidType::get(b.getContext()),
             {descriptor(op.getMemref()).allocatedPtr(b, b.getLoc())});
        return success();
      })
      .Case<tile::LaunchOp>([&](auto op) {
        lowerLaunch(op);
        return success();
      })
      .Case<tile::UploadOp>([&](auto op) {
        lowerUpload(op);
        return success();
      })
      .Case<tile::ThreadsOp>([&](tile::ThreadsOp op) {
        op.getResult().replaceAllUsesWith(index(call(Entry::Threads, i64, {})));
        return success();
      })
      .Case<tile::SortOp>([&](tile::SortOp op) {
        call(Entry::Sort, LLVM::LLVMVoidType::get(b.getContext()),
             {dataOf(op.getCosts()), number(b.dim(op.getCosts(), 0)),
              dataOf(op.getOrder())});
        return success();
      })
      .Case<ring::TransferOpInterface>([&](auto op) {
        lowerStart(op);
        return success();
      })
      .Case<ring::WaitOp>([&](ring::WaitOp op) {
        call(Entry::Wait, LLVM::LLVMVoidType::get(b.getContext()),
             {op->getOperand(0)});
        return success();
      })
      .Case<ring::RequireOp>([&](auto op) {
        lowerRequire(op);
        return success();
      })
      .Case<shard::ProcessMultiIndexOp>([&](shard::ProcessMultiIndexOp op) {
        Value rank = index(call(Entry::Index, i64, {}));
        for (auto [number, result] : llvm::enumerate(op.getResults())) {
          int64_t axis = op.getAxes().empty() ? static_cast<int64_t>(number)
                                              : op.getAxes()[number];
          result.replaceAllUsesWith(
              placeOf(rank, ring::groupOf(program, axis)));
        }
        return success();
      })
      .Case<shard::ProcessLinearIndexOp>([&](shard::ProcessLinearIndexOp op) {
        op.getResult().replaceAllUsesWith(index(call(Entry::Index, i64, {})));
        return success();
      })
      .Default([&](Operation *op) {
        return op->emitOpError("has no form in the runtime; run "
                               "ring-lower-to-tile first");
      });
}

LogicalResult HostLowering::run() {
  addArguments();
  storeScalarsAsBits(program);
  carryNumbers();
  SmallVector<Operation *> ops;
  program.walk([&](Operation *op) {
    if (isa<memref::DeallocOp>(op) ||
        (isa<ring::RingDialect, tile::TileDialect, shard::ShardDialect>(
             op->getDialect()) &&
         !isa<ring::SegmentOp>(op)))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (failed(lower(op)))
      return failure();
    op->erase();
  }
  b.setLoc(program.getLoc());
  makeEntries();
  makeSegments();
  // How it was made, whichever dialect says it, is of no use any more.
  for (NamedAttribute attribute :
       llvm::to_vector(program->getDiscardableAttrs())) {
    StringRef dialect = attribute.getName().strref().split('.').first;
    if (dialect != attribute.getName() && dialect != "llvm")
      program->removeAttr(attribute.getName());
  }
  // What the arguments are is in the image.
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    program.setArgAttrs(i, ArrayRef<NamedAttribute>());
  program.setPrivate();
  return success();
}

namespace {
struct HostToRuntime : burst::host::impl::HostToRuntimePassBase<HostToRuntime> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    LLVMTypeConverter types(module.getContext());
    SmallVector<func::FuncOp> programs;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr(ring::gridAttr))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(HostLowering(program, types).run()))
        return signalPassFailure();
    // Kernels are functions like others now: their entries say what they are.
    // Those of GPUs are in the image.
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (function->hasAttr(tile::warpsAttr))
        function.erase();
      else
        function->removeAttr(tile::kernelAttr);
    }
    for (auto grid : llvm::make_early_inc_range(module.getOps<shard::GridOp>()))
      grid.erase();
  }
};
} // namespace
