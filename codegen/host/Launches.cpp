//===- Launches.cpp - kernels, and their launches -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/HostLowering.h"

using namespace mlir;
using namespace burst;
using namespace burst::host;

static_assert(offsetof(burst_kernel, name) == 0 &&
              offsetof(burst_kernel, run) == sizeof(void *) &&
              sizeof(burst_kernel) == 2 * sizeof(void *));

/// The burst_kernel of a kernel, made when it is first launched: its name and
/// an entry that unpacks the arguments.
Value HostLowering::kernelInfo(func::FuncOp kernel) {
  std::string name = (kernel.getName() + ".kernel").str();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    storeScalarsAsBits(kernel);
    b.setInsertionPoint(kernel);
    LLVM::GlobalOp label =
        makeText(kernel.getName() + ".name", kernel.getName());

    auto nothing = LLVM::LLVMVoidType::get(b.getContext());
    auto entry = b.make<LLVM::LLVMFuncOp>(
        (kernel.getName() + ".entry").str(),
        LLVM::LLVMFunctionType::get(nothing, {pointer, i64}),
        LLVM::Linkage::Internal);
    auto info =
        LLVM::LLVMStructType::getLiteral(b.getContext(), {pointer, pointer});
    auto global = b.make<LLVM::GlobalOp>(
        info, /*isConstant=*/true, LLVM::Linkage::Internal, name, Attribute());
    Block *block = entry.addEntryBlock(b);
    b.setInsertionPointToStart(block);
    SmallVector<Type> packed;
    for (Type type : kernel.getArgumentTypes().drop_front())
      packed.push_back(types.convertType(type));
    auto arguments = LLVM::LLVMStructType::getLiteral(b.getContext(), packed);
    SmallVector<Value> operands{index(block->getArgument(1))};
    for (auto [i, type] :
         llvm::enumerate(kernel.getArgumentTypes().drop_front())) {
      Value address =
          fieldOf(arguments, block->getArgument(0),
                  ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
      Value value = b.make<LLVM::LoadOp>(packed[i], address);
      if (auto buffer = dyn_cast<MemRefType>(type))
        value = asBuffer(value, buffer);
      else if (type.isIndex())
        value = index(value);
      operands.push_back(value);
    }
    b.make<func::CallOp>(kernel, operands);
    b.make<LLVM::ReturnOp>(ValueRange());

    b.createBlock(&global.getInitializerRegion());
    Value value = b.make<LLVM::UndefOp>(info);
    value =
        b.make<LLVM::InsertValueOp>(value, b.make<LLVM::AddressOfOp>(label), 0);
    value =
        b.make<LLVM::InsertValueOp>(value, b.make<LLVM::AddressOfOp>(entry), 1);
    b.make<LLVM::ReturnOp>(value);
  }
  return b.make<LLVM::AddressOfOp>(pointer, name);
}

static_assert(offsetof(burst_use, begin) == 0 &&
              offsetof(burst_use, bytes) == sizeof(void *) &&
              offsetof(burst_use, mode) == sizeof(void *) + sizeof(int64_t) &&
              sizeof(burst_use) == sizeof(void *) + 2 * sizeof(int64_t));

LLVM::LLVMStructType HostLowering::typeOfUse() {
  return LLVM::LLVMStructType::getLiteral(b.getContext(), {pointer, i64, i64});
}

/// Writes a burst_use of the buffer whose descriptor lies there.
void HostLowering::writeUse(Value use, Value descriptor, MemRefType type,
                            int64_t mode) {
  call(Entry::Use, LLVM::LLVMVoidType::get(b.getContext()),
       {use, descriptor, constant(type.getRank()),
        constant(bytesOf(type.getElementType())), constant(mode)});
}

/// What a launch touches, for the runtime to check: of its buffers, number by
/// number, `descriptorOf` gives where the descriptors lie.
Value HostLowering::listUses(tile::LaunchOp op, int64_t &count,
                             llvm::function_ref<Value(int64_t)> descriptorOf) {
  SmallVector<Value> buffers(op.getReads());
  llvm::append_range(buffers, op.getWrites());
  auto reads = static_cast<int64_t>(op.getReads().size());
  count = static_cast<int64_t>(buffers.size());
  LLVM::LLVMStructType type = typeOfUse();
  Value uses = reserve(type, std::max<int64_t>(count, 1));
  for (auto [n, buffer] : llvm::enumerate(buffers)) {
    auto i = static_cast<int64_t>(n);
    writeUse(
        fieldOf(type, uses, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)}),
        descriptorOf(i), cast<MemRefType>(buffer.getType()),
        i < reads ? BURST_READS : BURST_READS | BURST_WRITES);
  }
  return uses;
}

void HostLowering::lowerLaunch(tile::LaunchOp op) {
  auto kernel = module.lookupSymbol<func::FuncOp>(op.getKernel());
  if (kernel->hasAttr(tile::warpsAttr))
    return lowerGpuLaunch(op, kernel);
  Value info = kernelInfo(kernel);
  SmallVector<Value> operands(op.getReads());
  llvm::append_range(operands, op.getWrites());
  for (Value scalar : op.getScalars())
    operands.push_back(asStored(scalar));
  SmallVector<Type> packed;
  for (Value operand : operands)
    packed.push_back(types.convertType(operand.getType()));
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), packed);
  Value arguments = reserve(type, 1);
  auto address = [&](int64_t i) {
    return fieldOf(type, arguments,
                   ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(i)});
  };
  for (auto [i, operand] : llvm::enumerate(operands)) {
    Value value = operand;
    if (isa<MemRefType>(operand.getType()))
      value = descriptor(operand);
    else if (operand.getType().isIndex())
      value = number(operand);
    b.make<LLVM::StoreOp>(value, address(static_cast<int64_t>(i)));
  }
  int64_t numUses = 0;
  Value uses = listUses(op, numUses, address);
  Value order = op.getOrder() ? dataOf(op.getOrder()) : null();
  call(
      Entry::Launch, LLVM::LLVMVoidType::get(b.getContext()),
      {info, arguments, number(op.getTasks()), order, constant(numUses), uses});
}

//===----------------------------------------------------------------------===//
// On GPUs
//===----------------------------------------------------------------------===//

/// The arguments of a launch of a kernel of a GPU, as host code packs them and
/// `Buffer` of the device library has them: a pointer to the order of tasks,
/// then for each argument of the kernel but its task
///     struct { void *data; int64_t steps[rank]; int32_t sizes[rank]; }
/// for a memref, an int32_t for an index, and a scalar as memory holds it.
static LLVM::LLVMStructType gpuArguments(func::FuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  Builder b(context);
  Type pointer = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> members{pointer};
  for (Type type : kernel.getArgumentTypes().drop_front()) {
    if (auto buffer = dyn_cast<MemRefType>(type)) {
      auto rank = static_cast<unsigned>(buffer.getRank());
      members.push_back(LLVM::LLVMStructType::getLiteral(
          context, {pointer, LLVM::LLVMArrayType::get(b.getI64Type(), rank),
                    LLVM::LLVMArrayType::get(b.getI32Type(), rank)}));
    } else if (type.isIndex()) {
      members.push_back(b.getI32Type());
    } else if (type.isInteger(1)) {
      members.push_back(b.getI8Type());
    } else if (type.isBF16()) {
      members.push_back(b.getI16Type());
    } else {
      members.push_back(type);
    }
  }
  return LLVM::LLVMStructType::getLiteral(context, members);
}

/// Packs the arguments as kernels of GPUs take them.
void HostLowering::lowerGpuLaunch(tile::LaunchOp op, func::FuncOp kernel) {
  LLVM::LLVMStructType type = gpuArguments(kernel);
  Value arguments = reserve(type, 1);
  auto store = [&](Value value, ArrayRef<int32_t> path) {
    SmallVector<LLVM::GEPArg> all{0};
    all.append(path.begin(), path.end());
    b.make<LLVM::StoreOp>(value, fieldOf(type, arguments, all));
  };
  store(op.getOrder() ? dataOf(op.getOrder()) : null(), {0});
  SmallVector<Value> operands(op.getReads());
  llvm::append_range(operands, op.getWrites());
  llvm::append_range(operands, op.getScalars());
  Location loc = b.getLoc();
  for (auto [n, operand] : llvm::enumerate(operands)) {
    auto i = static_cast<int32_t>(n) + 1;
    auto buffer = dyn_cast<MemRefType>(operand.getType());
    if (!buffer) {
      Value value = asStored(operand);
      if (value.getType().isIndex())
        value = b.make<arith::IndexCastOp>(i32, value);
      else if (value.getType().isInteger(1))
        value = b.make<LLVM::ZExtOp>(b.getI8Type(), value);
      store(value, {i});
      continue;
    }
    MemRefDescriptor memory = descriptor(operand);
    store(dataOf(operand), {i, 0});
    for (int32_t d = 0; d < buffer.getRank(); ++d) {
      store(memory.stride(b, loc, d), {i, 1, d});
      store(b.make<LLVM::TruncOp>(i32, memory.size(b, loc, d)), {i, 2, d});
    }
  }
  int64_t index = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function == kernel)
      break;
    index += function->hasAttr(tile::warpsAttr);
  }
  int64_t numUses = 0;
  Value uses =
      listUses(op, numUses, [&](int64_t i) { return spill(operands[i]); });
  call(Entry::LaunchGpu, LLVM::LLVMVoidType::get(b.getContext()),
       {constant(index), arguments, number(op.getTasks()), constant(numUses),
        uses});
}

void HostLowering::lowerUpload(tile::UploadOp op) {
  auto type = cast<MemRefType>(op.getTable().getType());
  MemRefDescriptor table = descriptor(op.getTable());
  LLVM::LLVMStructType useType = typeOfUse();
  Value use = reserve(useType, 1);
  writeUse(use, spill(op.getTable()), type, BURST_READS);
  Value begin = b.make<LLVM::LoadOp>(
      pointer, fieldOf(useType, use, ArrayRef<LLVM::GEPArg>{0, 0}));
  Value bytes = b.make<LLVM::LoadOp>(
      i64, fieldOf(useType, use, ArrayRef<LLVM::GEPArg>{0, 1}));
  Value data = call(Entry::Upload, pointer, {begin, bytes});
  // At an offset that a type may fix, from what was copied.
  Location loc = b.getLoc();
  Value back = b.make<LLVM::SubOp>(constant(0), table.offset(b, loc));
  Value aligned =
      b.make<LLVM::GEPOp>(pointer, types.convertType(type.getElementType()),
                          data, ArrayRef<LLVM::GEPArg>{back});
  auto memory = MemRefDescriptor::poison(b, loc, types.convertType(type));
  memory.setAllocatedPtr(b, loc, data);
  memory.setAlignedPtr(b, loc, aligned);
  memory.setOffset(b, loc, table.offset(b, loc));
  for (unsigned d = 0; d < type.getRank(); ++d) {
    memory.setSize(b, loc, d, table.size(b, loc, d));
    memory.setStride(b, loc, d, table.stride(b, loc, d));
  }
  op.getCopy().replaceAllUsesWith(asBuffer(memory, type));
}
