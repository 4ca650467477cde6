//===- Tensors.h - tensors between files and programs -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_TENSORS_H
#define BURST_TOOLS_HARNESS_TENSORS_H

#include "passes/Simulation/Binding.h"
#include "tools/data/Safetensors.h"

#include <string>

namespace burst {

/// `burst.name` of argument or result `index` of a function, else `arg0`, ...,
/// `result0`, ...
std::string argumentNameOf(mlir::func::FuncOp function, unsigned index);
std::string resultNameOf(mlir::func::FuncOp function, unsigned index);

/// The type in a file of elements of an MLIR type; index is stored as I64.
std::optional<data::DType> dtypeOf(mlir::Type element);

/// A tensor of a file as argument of `type`, which must fit; else null and a
/// message that names what was found and wanted.
std::optional<Argument> toArgument(const data::Tensor &tensor, mlir::Type type,
                                   std::string &error);
data::Tensor toData(const Tensor &tensor);

/// Seeded values for argument `index`: standard normal floats (rounded to the
/// type), for tables of integers rising ids, four to a row of the table. Sizes
/// that the type leaves open are those of `shape`. Integer scalars cannot be
/// made up.
std::optional<Argument> makeArgument(mlir::func::FuncOp function,
                                     unsigned index,
                                     llvm::ArrayRef<int64_t> shape,
                                     uint64_t seed, std::string &error);

/// The name of a tensor of `archive` that no argument of the names has, or
/// null. Where an argument is missing, it may be what was meant.
const std::string *findStranger(const data::Tensors &archive,
                                llvm::ArrayRef<std::string> names);

/// The arguments of a rank's program, as global tensors: those of `archive`,
/// and seeded ones for what it does not have. Sizes that the program leaves
/// open are those of the archive's tensors; without an archive, `sizes`. Emits
/// an error at the program and fails where one does not fit.
llvm::FailureOr<std::vector<Argument>> makeGlobals(mlir::func::FuncOp program,
                                                   const data::Tensors *archive,
                                                   uint64_t seed,
                                                   const Sizes &sizes);

} // namespace burst

#endif // BURST_TOOLS_HARNESS_TENSORS_H
