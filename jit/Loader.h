//===- Loader.h - objects in this process -----------------------*- C++ -*-===//
#ifndef BURST_JIT_LOADER_H
#define BURST_JIT_LOADER_H

#include "burst/program.h"
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

/// Links an object that exports a burst_image into this process.
llvm::Expected<std::unique_ptr<Code>>
load(std::unique_ptr<llvm::MemoryBuffer> object);

} // namespace burst::jit

#endif // BURST_JIT_LOADER_H
