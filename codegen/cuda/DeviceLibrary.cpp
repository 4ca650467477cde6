//===- DeviceLibrary.cpp - what the text of every kernel calls ------------===//
#include "codegen/cuda/Emit.h"

/// The files of device/, one behind the other.
static constexpr char library[] =
#include "DeviceLibrary.inc"
    ;

llvm::StringRef burst::cuda::getDeviceLibrary() {
  return {library, sizeof(library) - 1};
}
