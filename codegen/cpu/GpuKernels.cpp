//===- GpuKernels.cpp - kernels of GPUs in programs -----------------------===//
#include "codegen/cpu/GpuKernels.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

LLVM::LLVMStructType burst::cpu::gpuArguments(func::FuncOp kernel) {
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

std::vector<burst::cpu::GpuParameter>
burst::cpu::gpuParameters(func::FuncOp kernel, int64_t &bytes) {
  constexpr int64_t pointerBytes = 8;
  std::vector<GpuParameter> parameters{{0, pointerBytes}};
  bytes = pointerBytes;
  for (Type type : kernel.getArgumentTypes().drop_front()) {
    GpuParameter parameter{};
    int64_t alignment;
    if (auto buffer = dyn_cast<MemRefType>(type)) {
      alignment = pointerBytes;
      parameter.bytes = static_cast<int64_t>(
          llvm::alignTo(pointerBytes + 12 * buffer.getRank(), alignment));
    } else {
      unsigned bits = type.isIndex() ? 32 : type.getIntOrFloatBitWidth();
      alignment = parameter.bytes = std::max(1U, bits / 8);
    }
    parameter.offset = static_cast<int64_t>(llvm::alignTo(bytes, alignment));
    bytes = parameter.offset + parameter.bytes;
    parameters.push_back(parameter);
  }
  bytes = static_cast<int64_t>(llvm::alignTo(bytes, pointerBytes));
  return parameters;
}
