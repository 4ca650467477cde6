//===- Loader.h - objects in this process -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_LOADER_H
#define BURST_JIT_LOADER_H

#include "burst/program.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace burst::jit {

/// The code of a compiled program; it is gone with this.
class Code {
public:
  virtual ~Code() = default;
  virtual const burst_image *image() const = 0;
};

/// Links objects, of which one exports a burst_image, into this process.
llvm::Expected<std::unique_ptr<Code>>
load(llvm::SmallVector<std::unique_ptr<llvm::MemoryBuffer>, 0> objects);

} // namespace burst::jit

#endif // BURST_JIT_LOADER_H
