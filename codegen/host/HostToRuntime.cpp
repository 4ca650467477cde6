//===- HostToRuntime.cpp - host code as calls of the runtime --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/GpuKernels.h"
#include "codegen/host/Passes.h"
#include "dialect/Tile/Build.h"

#include "burst/program.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"

namespace burst::host {
#define GEN_PASS_DEF_HOSTTORUNTIMEPASS
#include "codegen/host/Passes.h.inc"
} // namespace burst::host

using namespace mlir;
using namespace burst;
using namespace burst::host;

namespace {

/// Members of burst_table behind size and version, in their order.
enum class Entry : uint8_t {
  Index = 2,
  Allocate,
  Release,
  Sort,
  Launch,
  Start,
  Wait,
  Require,
  Upload,
  LaunchGpu,
  Threads,
  End
};

constexpr int32_t maxRank = 4; ///< of a burst_piece

/// Lowers one program.
class HostLowering {
public:
  HostLowering(func::FuncOp program, LLVMTypeConverter &types)
      : program(program), module(program->getParentOfType<ModuleOp>()),
        types(types), b(program.getLoc(), program.getContext()) {
    MLIRContext *context = program.getContext();
    pointer = LLVM::LLVMPointerType::get(context);
    i64 = b.getI64Type();
    i32 = b.getI32Type();
  }

  LogicalResult run();

private:
  // Values in LLVM's types.
  Value constant(int64_t value) { return b.make<LLVM::ConstantOp>(i64, value); }
  Value number(Value index) { return b.make<arith::IndexCastOp>(i64, index); }
  Value index(Value number) {
    return b.make<arith::IndexCastOp>(b.getIndexType(), number);
  }
  Value null() { return b.make<LLVM::ZeroOp>(pointer); }
  MemRefDescriptor descriptor(Value buffer) {
    Type type = types.convertType(buffer.getType());
    return MemRefDescriptor(
        b.make<UnrealizedConversionCastOp>(type, buffer).getResult(0));
  }
  Value asBuffer(Value descriptor, MemRefType type) {
    return b.make<UnrealizedConversionCastOp>(type, descriptor).getResult(0);
  }
  Value fieldOf(Type type, Value address, ArrayRef<LLVM::GEPArg> path) {
    return b.make<LLVM::GEPOp>(pointer, type, address, path);
  }
  /// Memory of the whole program, at its entry: in a loop the stack would grow.
  Value reserve(Type type, int64_t count);
  Value call(Entry entry, Type result, ArrayRef<Value> arguments);
  Value dataOf(Value buffer);
  int64_t bytesOf(Type element);
  Value spill(Value buffer);
  Value word(Value address, Value i);
  LLVM::LLVMFuncOp helper(StringRef name, Type result, ArrayRef<Type> inputs,
                          llvm::function_ref<Value(Block *)> body);
  LLVM::LLVMFuncOp useHelper();
  LLVM::LLVMFuncOp pieceHelper();

  Value asStored(Value scalar);
  void storeScalarsAsBits(func::FuncOp function);
  void addArguments();
  void makeEntries();
  void makeSegments();
  LLVM::GlobalOp makeText(const Twine &name, StringRef text);
  Value kernelInfo(func::FuncOp kernel);
  LogicalResult lower(Operation *op);
  void lowerAllocate(tile::AllocateOp op);
  void lowerLaunch(tile::LaunchOp op);
  void lowerStart(ring::StartOp op);
  void carryNumbers();
  void lowerRequire(ring::RequireOp op);
  Value pieces(ValueRange tensors, ring::StartOp op, Value owner,
               ValueRange flags, Value &count);
  Value bytesSpanned(Value buffer);
  Value listUses(tile::LaunchOp op, int64_t &count,
                 llvm::function_ref<Value(int64_t)> descriptorOf);
  void lowerGpuLaunch(tile::LaunchOp op, func::FuncOp kernel);
  void lowerUpload(tile::UploadOp op);

  func::FuncOp program;
  ModuleOp module;
  LLVMTypeConverter &types;
  tile::LoopBuilder b;
  Type pointer, i64, i32;
  Value rank, table;
  int64_t numRequired = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Value HostLowering::reserve(Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&program.getBody().front());
  return b.make<LLVM::AllocaOp>(pointer, type, constant(count), 64);
}

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

/// In bytes, as LLVM stores an element of an array.
int64_t HostLowering::bytesOf(Type element) {
  if (element.isIndex())
    return 8;
  return static_cast<int64_t>(
      llvm::PowerOf2Ceil((element.getIntOrFloatBitWidth() + 7) / 8));
}

/// The address of the first element.
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

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//
//
// What is done with many buffers is done by functions, on descriptors that lie
// in memory: they are compiled once.

/// Puts a descriptor into memory.
Value HostLowering::spill(Value buffer) {
  Value address = reserve(types.convertType(buffer.getType()), 1);
  b.make<LLVM::StoreOp>(descriptor(buffer), address);
  return address;
}

/// The address of number `i` of 64 bits each.
Value HostLowering::word(Value address, Value i) {
  return b.make<LLVM::GEPOp>(pointer, i64, address,
                             ArrayRef<LLVM::GEPArg>{number(i)});
}

/// A function of the program; `body` emits it when it is first needed.
LLVM::LLVMFuncOp HostLowering::helper(StringRef name, Type result,
                                      ArrayRef<Type> inputs,
                                      llvm::function_ref<Value(Block *)> body) {
  std::string whole = (program.getName() + "." + name).str();
  if (auto made = module.lookupSymbol<LLVM::LLVMFuncOp>(whole))
    return made;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(program);
  auto function = b.make<LLVM::LLVMFuncOp>(
      whole, LLVM::LLVMFunctionType::get(result, inputs),
      LLVM::Linkage::Internal);
  Block *block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  Value value = body(block);
  b.make<LLVM::ReturnOp>(value ? ValueRange(value) : ValueRange());
  return function;
}

/// Writes a burst_use. Takes its address, a descriptor, the rank, the bytes of
/// an element, and the mode.
LLVM::LLVMFuncOp HostLowering::useHelper() {
  auto body = [&](Block *block) -> Value {
    Value use = block->getArgument(0), buffer = block->getArgument(1);
    Value rank = index(block->getArgument(2)), bytes = block->getArgument(3);
    Value zero = constant(0), one = constant(1);
    auto load = [&](Value i) {
      return b.make<LLVM::LoadOp>(i64, word(buffer, i));
    };
    // From the first element to behind the last one.
    auto loop =
        b.loop(rank, {one, b.truth(false)}, [&](Value d, ValueRange carried) {
          Value place = b.add(d, b.index(3));
          Value size = load(place), stride = load(b.add(place, rank));
          Value steps = b.mul(b.sub(size, one), stride);
          Value isEmpty = b.compare(arith::CmpIPredicate::eq, size, zero);
          return SmallVector<Value>{b.add(carried[0], steps),
                                    b.make<arith::OrIOp>(carried[1], isEmpty)};
        });
    Value span =
        b.select(loop.getResult(1), zero, b.mul(loop.getResult(0), bytes));
    Value begin = b.add(load(b.index(1)), b.mul(load(b.index(2)), bytes));
    b.make<LLVM::StoreOp>(begin, word(use, b.index(0)));
    b.make<LLVM::StoreOp>(span, word(use, b.index(1)));
    b.make<LLVM::StoreOp>(block->getArgument(4), word(use, b.index(2)));
    return nullptr;
  };
  return helper("use", LLVM::LLVMVoidType::get(b.getContext()),
                {pointer, pointer, i64, i64, i64}, body);
}

/// Writes a burst_piece to the end of a list. Takes the list, its length, a
/// descriptor, the rank, the bytes of an element, the dimension that is cut,
/// the first row there, their number, and whether they are wanted; gives the
/// length with the piece, if it is wanted and not empty.
LLVM::LLVMFuncOp HostLowering::pieceHelper() {
  auto body = [&](Block *block) -> Value {
    Value count = block->getArgument(1), buffer = block->getArgument(2);
    Value rank = index(block->getArgument(3)), bytes = block->getArgument(4);
    Value dim = index(block->getArgument(5));
    Value row = block->getArgument(6), rows = block->getArgument(7);
    Value piece = word(block->getArgument(0),
                       b.mul(index(count), b.index(2 + 2 * maxRank)));
    auto load = [&](Value i) {
      return b.make<LLVM::LoadOp>(i64, word(buffer, i));
    };
    auto store = [&](Value value, Value i) {
      b.make<LLVM::StoreOp>(value, word(piece, i));
    };
    Value sizes = b.index(3), strides = b.add(sizes, rank);
    Value offset =
        b.add(load(b.index(2)), b.mul(row, load(b.add(strides, dim))));
    store(b.add(load(b.index(1)), b.mul(offset, bytes)), b.index(0));
    store(bytes, b.index(1));
    auto storeDim = [&](Value d, Value size, Value stride) {
      store(size, b.add(d, b.index(2)));
      store(stride, b.add(d, b.index(2 + maxRank)));
    };
    Value missing = b.sub(b.index(maxRank), rank);
    b.loop(missing, [&](Value d) { storeDim(d, constant(1), constant(1)); });
    auto loop =
        b.loop(rank, block->getArgument(8), [&](Value d, ValueRange carried) {
          Value size = b.select(b.compare(arith::CmpIPredicate::eq, d, dim),
                                rows, load(b.add(sizes, d)));
          storeDim(b.add(missing, d), size, load(b.add(strides, d)));
          Value isThere =
              b.compare(arith::CmpIPredicate::ne, size, constant(0));
          return SmallVector<Value>{b.both(carried[0], isThere)};
        });
    return b.add(count, b.make<arith::ExtUIOp>(i64, loop.getResult(0)));
  };
  return helper("piece", i64,
                {pointer, i64, pointer, i64, i64, i64, i64, i64, b.getI1Type()},
                body);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// A constant string of C, at the point of insertion.
LLVM::GlobalOp HostLowering::makeText(const Twine &name, StringRef text) {
  auto value = b.getStringAttr(text + Twine('\0'));
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(),
                                       static_cast<unsigned>(value.size()));
  return b.make<LLVM::GlobalOp>(type, /*isConstant=*/true,
                                LLVM::Linkage::Internal, name.str(), value);
}

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

/// From the first element to behind the last one.
Value HostLowering::bytesSpanned(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  MemRefDescriptor memory = descriptor(buffer);
  Location loc = b.getLoc();
  Value zero = constant(0), one = constant(1);
  Value elements = one, isEmpty = b.truth(false);
  for (int64_t d = 0; d < type.getRank(); ++d) {
    Value size = memory.size(b, loc, d);
    Value steps = b.make<LLVM::MulOp>(b.make<LLVM::SubOp>(size, one),
                                      memory.stride(b, loc, d));
    elements = b.make<LLVM::AddOp>(elements, steps);
    isEmpty = b.make<arith::OrIOp>(
        isEmpty, b.compare(arith::CmpIPredicate::eq, size, zero));
  }
  return b.select(
      isEmpty, zero,
      b.make<LLVM::MulOp>(elements, constant(bytesOf(type.getElementType()))));
}

/// What a launch touches, for the runtime to check: of its buffers, number by
/// number, `descriptorOf` gives where the descriptors lie.
Value HostLowering::listUses(tile::LaunchOp op, int64_t &count,
                             llvm::function_ref<Value(int64_t)> descriptorOf) {
  SmallVector<Value> buffers(op.getReads());
  llvm::append_range(buffers, op.getWrites());
  auto reads = static_cast<int64_t>(op.getReads().size());
  count = static_cast<int64_t>(buffers.size());
  auto use =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {pointer, i64, i64});
  Value uses = reserve(use, std::max<int64_t>(count, 1));
  LLVM::LLVMFuncOp makeUse = useHelper();
  for (auto [n, buffer] : llvm::enumerate(buffers)) {
    auto i = static_cast<int64_t>(n);
    auto type = cast<MemRefType>(buffer.getType());
    int64_t mode = i < reads ? BURST_READS : BURST_READS | BURST_WRITES;
    b.make<LLVM::CallOp>(
        makeUse,
        ValueRange{
            fieldOf(use, uses, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)}),
            descriptorOf(i), constant(type.getRank()),
            constant(bytesOf(type.getElementType())), constant(mode)});
  }
  return uses;
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
  Value data = call(Entry::Upload, pointer,
                    {dataOf(op.getTable()), bytesSpanned(op.getTable())});
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
// Transfers
//===----------------------------------------------------------------------===//

/// Lists what travels of `tensors`, which are shards of `owner`: a piece per
/// tensor and segment that is flagged and not empty.
Value HostLowering::pieces(ValueRange tensors, ring::StartOp op, Value owner,
                           ValueRange flags, Value &count) {
  ring::LayoutAttr layout = op.getLayout();
  int64_t segments = layout.getNumSegments();
  auto four = LLVM::LLVMArrayType::get(i64, maxRank);
  auto piece = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                                {pointer, i64, four, four});
  // Each is written at the end of the list, and stays where it is needed.
  Value list =
      reserve(piece, static_cast<int64_t>(tensors.size()) * segments + 1);
  count = constant(0);
  LLVM::LLVMFuncOp addPiece = pieceHelper();
  for (auto [tensor, dim] : llvm::zip_equal(tensors, op.getDims())) {
    auto type = cast<MemRefType>(tensor.getType());
    Value buffer = spill(tensor);
    Value row = constant(0);
    for (int64_t i = 0; i < segments; ++i) {
      Value rows = number(
          b.make<ring::SegmentOp>(i, layout, owner, op.getExtent()).getCount());
      Value isWanted = flags.empty() ? b.truth(true) : flags[i];
      auto added = b.make<LLVM::CallOp>(
          addPiece, ValueRange{list, count, buffer, constant(type.getRank()),
                               constant(bytesOf(type.getElementType())),
                               constant(dim), row, rows, isWanted});
      count = added.getResult();
      row = b.make<LLVM::AddOp>(row, rows);
    }
  }
  return list;
}

void HostLowering::lowerStart(ring::StartOp op) {
  Value numSends, numReceives;
  Value sends = pieces(op.getTensors(), op, op.getOwner(), op.getSendSegments(),
                       numSends);
  Value receives = pieces(op.getInto(), op, op.getReceivedOwner(),
                          op.getReceiveSegments(), numReceives);
  Value token =
      call(Entry::Start, i64,
           {constant(op.getChannel().getIndex()), number(op.getTo()), numSends,
            sends, number(op.getFrom()), numReceives, receives});
  op.getToken().replaceAllUsesWith(token);
}

/// Tokens that loops carry become numbers, as those that transfers make.
void HostLowering::carryNumbers() {
  program.walk([&](scf::ForOp loop) {
    auto retype = [&](Value value) {
      if (isa<ring::TokenType>(value.getType()))
        value.setType(i64);
    };
    llvm::for_each(loop.getRegionIterArgs(), retype);
    llvm::for_each(loop.getResults(), retype);
  });
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
  Value owner = index(block->getArgument(1));
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
      .Case<ring::StartOp>([&](auto op) {
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
        // Grids of programs have one axis.
        Value rank = index(call(Entry::Index, i64, {}));
        for (Value result : op.getResults())
          result.replaceAllUsesWith(rank);
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
