//===- Target.h - processors and the shapes that suit them ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CPU_TARGET_H
#define BURST_CODEGEN_CPU_TARGET_H

#include "codegen/host/Processor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace burst::cpu {

/// What a processor can do, and the shapes that suit it. Nothing behind it
/// knows processors: passes get these numbers.
struct Target : host::Processor {
  int64_t registers = 16;         ///< of vectors
  bool fma = false;               ///< multiplies and adds in one instruction
  bool dot = false;               ///< has instructions for pairs of bf16
  bool f16 = true;                ///< has instructions that convert f16
  int64_t cacheBytes = 256 << 10; ///< of the second level, of a core

  /// A register tile, which sums up in registers: rows, and vectors in a row.
  int64_t microRows = 6;
  int64_t microVectors = 2;
  /// How many steps of a product's depth, and how many vectors of maxima and of
  /// exponentials, forward and backward, are computed together.
  int64_t steps = 2;
  int64_t maxima = 4;
  int64_t exponentials = 2;
  int64_t weights = 4;

  bool pairs = false;            ///< products of bf16 are of pairs of numbers
  int64_t rows = 0, columns = 0; ///< of tiles; 0: what suits a program
  bool localTiling = true;       ///< no more than tiles of scores are kept
  bool poison = false;           ///< blocks of kernels begin as NaN, for tests

  /// This machine.
  static Target host();
  /// A processor by LLVM's name ("x86-64", "znver5", "generic", ...) for a
  /// triple; `features`, as LLVM spells them, are added. What is empty is this
  /// machine's; of another architecture, a processor that all others can
  /// follow. Fails with a message that names what is not known.
  static mlir::FailureOr<Target> named(llvm::StringRef triple,
                                       llvm::StringRef processor,
                                       llvm::StringRef features,
                                       std::string &error);
  /// The names of processors that there are for a triple.
  static mlir::FailureOr<std::vector<std::string>> names(llvm::StringRef triple,
                                                         std::string &error);

  /// The same, with the rows and columns of tiles that suit a ring program:
  /// what its `tile.shape` says, else what is given here, else what was found
  /// by measuring (Tuned.inc), else what a rule says.
  Target suiting(mlir::func::FuncOp program) const;

  /// Bytes of a row of a panel: a register tile is as wide.
  int64_t panelBytes() const { return microVectors * vectorBits / 8; }
  /// Of a panel of keys, of which a register tile takes one or more. Strips
  /// leave out what they do not see panel by panel: one is no wider than a line
  /// of a cache.
  int64_t keyPanelBytes() const { return std::gcd<int64_t>(panelBytes(), 64); }
  /// The larger side of what a strip leaves out at once, in rows or in keys of
  /// so many bytes: what is computed of a mask is whole boxes of it.
  int64_t maskedSide(int64_t elementBytes) const {
    return std::max(microRows, keyPanelBytes() / elementBytes);
  }
  /// Whether the code is for this machine's architecture and system.
  bool isNative() const;
  /// The features that instructions of the code may need, by LLVM's names: what
  /// the runtime asks a processor for.
  std::vector<std::string> required() const;
  /// What it can do and its shapes, in one line.
  std::string str() const;
};

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_TARGET_H
