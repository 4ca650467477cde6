//===- Without.h - optimisations that are left out --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_WITHOUT_H
#define BURST_JIT_WITHOUT_H

#include "jit/Frontend.h"
#include "passes/Passes.h"

namespace burst::jit {

/// Optimisations that a compilation leaves out, to measure what each saves.
struct Without {
  bool overlap = false;     ///< transfers in front of what they hide behind
  bool dropping = false;    ///< of what the mask does not need
  bool localTiling = false; ///< scores of tiles only, in caches

  /// Their names, in one order: the same ones give the same text.
  std::string str() const;
  void applyTo(RingPipelineOptions &options) const;
  void applyTo(Target &target) const;
  /// The program of a rank has its schedule already: an error at `entry` where
  /// another one is wanted.
  mlir::LogicalResult check(mlir::func::FuncOp entry) const;
};

/// Why local tiling cannot be left out there.
inline constexpr llvm::StringLiteral whyTiledOnGpus =
    "which kernels of GPUs always have";

/// Of a list of names, as in "overlap,dropping"; local tiling is none of them
/// where it is said why. Fails with a message that names those that there are.
mlir::FailureOr<Without> readWithout(llvm::StringRef names,
                                     llvm::StringRef whyTiled,
                                     std::string &error);

} // namespace burst::jit

#endif // BURST_JIT_WITHOUT_H
