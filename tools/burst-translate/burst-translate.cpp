//===- burst-translate.cpp - burst's IR in other languages ----------------===//
#include "codegen/cuda/Emit.h"
#include "dialect/Cuda/Cuda.h"
#include "jit/Frontend.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;
using namespace burst;

static llvm::cl::opt<bool>
    withLibrary("with-device-library", llvm::cl::init(false),
                llvm::cl::desc("Print the device library in front of kernels, "
                               "so that the text compiles as it is"));

/// Prints the kernels of GPUs of a module.
static LogicalResult toCuda(ModuleOp module, llvm::raw_ostream &os) {
  if (withLibrary)
    os << cuda::getDeviceLibrary();
  os << "using namespace burst;\n";
  bool found = false;
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(cuda::teamAttr))
      continue;
    FailureOr<cuda::KernelText> text = cuda::emitKernel(kernel);
    if (failed(text))
      return failure();
    os << "\n// " << 32 * text->warps << " threads, " << text->sharedBytes
       << " bytes of shared memory\n"
       << text->text;
    found = true;
  }
  if (!found)
    return module.emitError("has no kernels for GPUs; run ring-lower-to-tile "
                            "with warps");
  return success();
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration registration("burst-to-cuda",
                                             "kernels of GPUs as CUDA C++",
                                             toCuda, jit::registerDialects);
  return failed(mlirTranslateMain(argc, argv, "burst translator\n"));
}
