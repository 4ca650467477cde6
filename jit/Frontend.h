//===- Frontend.h - from modules to objects ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_FRONTEND_H
#define BURST_JIT_FRONTEND_H

#include "codegen/cpu/Compile.h"
#include "codegen/cuda/Compile.h"
#include "passes/Proof/Prove.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <memory>
#include <optional>
#include <string>

namespace burst::jit {

struct Without;

/// The dialects in which programs are written, and what compiling them takes.
void registerDialects(mlir::DialectRegistry &registry);

/// The module of a file ('-': the standard input), which `sources` keeps for
/// diagnostics. Null, and a message, where the file cannot be read; null, and
/// errors emitted, where it cannot be parsed.
mlir::OwningOpRef<mlir::ModuleOp> parseFile(llvm::StringRef file,
                                            llvm::SourceMgr &sources,
                                            mlir::MLIRContext &context,
                                            std::string &error);

/// Whether there is anything to run in a module.
bool hasPrograms(mlir::ModuleOp module);

/// The functions that can be run, in their order: with attention over global
/// tensors, or the program of a rank.
llvm::SmallVector<mlir::func::FuncOp> findEntries(mlir::ModuleOp module);

/// The function `entry` of a module, or the only one that can be run: one with
/// attention over global tensors, or the program of a rank. Null, and a message
/// that names those there are, where there is none; `option` is what users call
/// the choice.
mlir::func::FuncOp findEntry(mlir::ModuleOp module, llvm::StringRef entry,
                             llvm::StringRef option, std::string &error);

/// Where a program runs: on a processor, or on GPUs that a processor tells what
/// to do.
struct Target {
  Target(cpu::Target host, std::optional<cuda::Target> gpu = std::nullopt)
      : host(std::move(host)), gpu(std::move(gpu)) {}

  cpu::Target host;
  std::optional<cuda::Target> gpu;
};

/// Compiles the ring program `entry` of a module, see cpu::compileToObjects and
/// cuda::compileToObjects.
mlir::FailureOr<host::Objects> compileToObjects(mlir::ModuleOp module,
                                                llvm::StringRef entry,
                                                const Target &target,
                                                host::Parts parts,
                                                const host::Dump &dump);

/// A program as objects, see compileToObjects.
struct Compiled {
  host::Objects objects;
  /// The program of a rank, where its schedule depends on what is known at run
  /// time; empty where it is proved.
  std::string unproved;
  /// For what its schedule is proved, none where that is known at run time
  /// only; and then why not for every number of ranks.
  std::optional<ProvedFor> proved;
  std::string reason;
};

/// Compiles a function that findEntry found, and proves its schedule if it is
/// static. The module is used up. Errors are emitted.
mlir::FailureOr<Compiled> compile(mlir::func::FuncOp entry,
                                  const Target &target, const Without &without,
                                  host::Parts parts, const host::Dump &dump);

} // namespace burst::jit

#endif // BURST_JIT_FRONTEND_H
