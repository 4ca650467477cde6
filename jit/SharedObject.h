//===- SharedObject.h - objects on disk -------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_SHARED_OBJECT_H
#define BURST_JIT_SHARED_OBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace burst::jit {

/// Links objects to a shared object, with a seal behind it
/// (burst/internal/seal.h), which replaces `path` as writeFile of
/// support/Files.h does. `linker` is the name or the path of a program; if it
/// is empty, the first of ld.lld, ld and cc on the PATH is used.
llvm::Error
linkFile(llvm::ArrayRef<std::unique_ptr<llvm::MemoryBuffer>> objects,
         llvm::StringRef linker, llvm::StringRef path);

/// The same for objects of another architecture, of which no libraries need be
/// here: stubs of glibc's stand for them. Without a name, ld.lld is used, which
/// links for all.
llvm::Error
crossLinkFile(llvm::ArrayRef<std::unique_ptr<llvm::MemoryBuffer>> objects,
              llvm::StringRef linker, llvm::StringRef path);

} // namespace burst::jit

#endif // BURST_JIT_SHARED_OBJECT_H
