//===- Compiled.h - compiled programs on the machine's tensors --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TOOLS_HARNESS_COMPILED_H
#define BURST_TOOLS_HARNESS_COMPILED_H

#include "jit/Frontend.h"
#include "passes/Simulation/Binding.h"
#include "tools/data/Tensor.h"

#include "burst/burst.h"

#include <memory>
#include <string>

namespace burst {

struct ProgramDeleter {
  void operator()(burst_program *program) const {
    burst_program_release(program);
  }
};
using ProgramRef = std::unique_ptr<burst_program, ProgramDeleter>;

/// How a compiled program is run.
struct CompiledRun {
  int64_t threads = 0; ///< 0: one per processor
  double deadline = 0; ///< of each wait in seconds; 0: the runtime's
  bool checked = false;
  std::string trace; ///< a file; empty: none
  /// What each transfer takes at least, see burst_local_config; 0: no delay.
  double latency = 0, bandwidth = 0;
  int64_t gpu = 0;                ///< which one runs a program for GPUs
  burst_device *device = nullptr; ///< null: one that is made for the run
  /// Of this process's rank, as in burst_run_all_config; null: all are threads.
  burst_transport *transport = nullptr;
};

/// Compiles and loads the ring program `program`; its module is left alone.
/// Errors are emitted.
mlir::FailureOr<ProgramRef> compile(mlir::func::FuncOp program,
                                    const jit::Target &target,
                                    const host::Dump &dump = {});

/// A dense tensor of the runtime on the bytes of `tensor`.
burst_tensor viewOf(data::Tensor &tensor, int32_t type);

/// Runs all ranks on global tensors, one for each parameter, on the kind of
/// device that the program is for; all ranks share a GPU. Null, or what went
/// wrong.
std::optional<std::string> runAll(burst_program *program,
                                  llvm::ArrayRef<burst_tensor> globals,
                                  const CompiledRun &options,
                                  std::vector<burst_counters> &counters);

/// Runs all ranks on global arguments. `results` have the shapes of the global
/// results and get their values. Null, or what went wrong.
std::optional<std::string> run(burst_program *program,
                               llvm::ArrayRef<Argument> globals,
                               llvm::MutableArrayRef<TensorRef> results,
                               const CompiledRun &options,
                               std::vector<burst_counters> &counters);

} // namespace burst

#endif // BURST_TOOLS_HARNESS_COMPILED_H
