//===- DeviceLibrary.cpp - what the text of every kernel calls ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Emit.h"

/// The files of device/, one behind the other.
static constexpr char library[] =
#include "DeviceLibrary.inc"
    ;

llvm::StringRef burst::cuda::getDeviceLibrary() {
  return {library, sizeof(library) - 1};
}
