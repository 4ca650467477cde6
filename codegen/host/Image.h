//===- Image.h - what a compiled program exports ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_HOST_IMAGE_H
#define BURST_CODEGEN_HOST_IMAGE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace burst::host {

/// burst_parameter of burst/program.h.
struct Parameter {
  std::string name;
  int32_t kind, type;
  bool isResult;
  std::vector<int64_t> sizes;
  int32_t shardDim, numSegments;
  int64_t extent;
  int32_t extentParameter;
  bool isPartial;
  bool isHost = false;
  struct Split {
    int32_t dim, parts;
    int64_t stride;
  };
  std::vector<Split> splits; ///< by rising dim
};

/// burst_gpu_map, burst_gpu_parameter, burst_gpu_binary and burst_gpu_kernel.
struct GpuMap {
  int64_t buffer;
  int32_t type;
  std::vector<int32_t> box;
  int32_t swizzle;
};
struct GpuParameter {
  int64_t offset, bytes;
  std::optional<GpuMap> map = std::nullopt;
};
struct GpuBinary {
  std::string architecture, data;
};
struct GpuKernel {
  std::string name;
  int64_t threads, sharedBytes, argumentBytes;
  std::vector<GpuParameter> parameters;
  std::vector<GpuBinary> binaries;
};

/// burst_image of burst/program.h.
struct Image {
  std::string name, target;
  std::string features; ///< that the processor needs, with commas
  int64_t numRanks;
  int32_t numArguments;
  uint64_t hash;
  std::vector<Parameter> parameters;
  int32_t minimumDriver = 0; ///< of a program for GPUs
  std::vector<GpuKernel> gpuKernels;
  /// Among which transfers have patterns, but for all ranks: ranks and stride.
  std::vector<std::pair<int64_t, int64_t>> groups;
};

/// What a program of a rank, on buffers, takes. Emits an error at the program
/// where an argument has no type that a host can hand over.
mlir::FailureOr<Image> describe(mlir::func::FuncOp program);

/// Adds the image, and the functions it points to by the names that
/// `burst-host-to-runtime` gave them.
void addImage(llvm::Module &module, const Image &image);

} // namespace burst::host

#endif // BURST_CODEGEN_HOST_IMAGE_H
