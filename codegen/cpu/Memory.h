//===- Memory.h - what kernels need beside a program's tensors --*- C++ -*-===//
#ifndef BURST_CODEGEN_CPU_MEMORY_H
#define BURST_CODEGEN_CPU_MEMORY_H

#include "codegen/cpu/Compile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace burst::cpu {

/// Bytes of packed keys and values that a rank of a ring program holds at most:
/// of one attend at a time, for all heads, in the type of the state, or of bf16
/// where the target takes that in pairs. With n tiles of C keys in its slices,
/// and the value dim rounded up to a panel,
///
///     batch * key heads * n * C * (query dim + value dim) * bytes
///
/// and n = sum over segments of ceil(keys / C), for the largest of all owners;
/// pairs round the query dim up to an even number.
/// `extentOf` says how many keys an extent of the program stands for.
int64_t packingBytes(mlir::func::FuncOp program, const Target &target,
                     int64_t batch,
                     llvm::function_ref<int64_t(mlir::Value)> extentOf);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_MEMORY_H
