//===- GpuKernels.cpp - kernels of GPUs in programs -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/GpuKernels.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

LLVM::LLVMStructType burst::host::gpuArguments(func::FuncOp kernel) {
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
