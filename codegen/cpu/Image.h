//===- Image.h - what a compiled program exports ----------------*- C++ -*-===//
#ifndef BURST_CODEGEN_CPU_IMAGE_H
#define BURST_CODEGEN_CPU_IMAGE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace burst::cpu {

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
};

/// burst_image of burst/program.h.
struct Image {
  std::string name, target;
  int64_t numRanks;
  int32_t numArguments;
  uint64_t hash;
  std::vector<Parameter> parameters;
};

/// What a program of a rank, on buffers, takes. Emits an error at the program
/// where an argument has no type that a host can hand over.
mlir::FailureOr<Image> describe(mlir::func::FuncOp program);

/// Adds the image, and the functions it points to by the names that
/// `burst-host-to-runtime` gave them.
void addImage(llvm::Module &module, const Image &image);

} // namespace burst::cpu

#endif // BURST_CODEGEN_CPU_IMAGE_H
