//===- Frontend.cpp - from modules to objects -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Frontend.h"
#include "jit/Without.h"

#include "codegen/cpu/Passes.h"
#include "dialect/Cuda/Cuda.h"
#include "passes/Passes.h"
#include "passes/Proof/StepMeaning.h"
#include "passes/Simulation/Binding.h"
#include "passes/Simulation/SimulatedOp.h"
#include "passes/Tile/Lowering.h"
#include "support/Files.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace burst;

void jit::registerDialects(DialectRegistry &registry) {
  registry.insert<BurstDialect, ring::RingDialect, tile::TileDialect,
                  cuda::CudaDialect, arith::ArithDialect, func::FuncDialect,
                  math::MathDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                  memref::MemRefDialect, vector::VectorDialect, scf::SCFDialect,
                  shard::ShardDialect, tensor::TensorDialect, DLTIDialect>();
  registerRingSimulation(registry);
  registerRingProof(registry);
  registerRingTileLowering(registry);
  cpu::registerInterfaces(registry);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static bool canRun(func::FuncOp function) {
  bool hasAttention = function->hasAttr(ring::gridAttr);
  function.walk([&](AttentionInterface) { hasAttention = true; });
  return hasAttention;
}

OwningOpRef<ModuleOp> jit::parseFile(StringRef file, llvm::SourceMgr &sources,
                                     MLIRContext &context, std::string &error) {
  auto buffer = readInput(file);
  if (!buffer) {
    error = toString(buffer.takeError());
    return {};
  }
  sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}

bool jit::hasPrograms(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(), canRun);
}

static bool isOnBuffers(func::FuncOp function) {
  return llvm::any_of(function.getArgumentTypes(), llvm::IsaPred<MemRefType>);
}

SmallVector<func::FuncOp> jit::findEntries(ModuleOp module) {
  SmallVector<func::FuncOp> found(module.getOps<func::FuncOp>());
  llvm::erase_if(found, [](func::FuncOp function) {
    return !canRun(function) || isOnBuffers(function);
  });
  return found;
}

func::FuncOp jit::findEntry(ModuleOp module, StringRef entry, StringRef option,
                            std::string &error) {
  SmallVector<func::FuncOp> found = findEntries(module);
  std::string names;
  for (func::FuncOp function : found) {
    if (function.getName() == entry)
      return function;
    names += (names.empty() ? "" : ", ") + function.getName().str();
  }
  StringRef lowered;
  for (auto function : module.getOps<func::FuncOp>())
    if (canRun(function) && isOnBuffers(function))
      lowered = function.getName();
  if (found.empty() && !lowered.empty())
    error = ("the program of a rank in '" + lowered +
             "' is on buffers already; wanted is what burst-to-ring leaves")
                .str();
  else if (found.empty())
    error = "no function with burst.attention, nor the program of a rank";
  else if (!entry.empty())
    error = ("found no function '" + entry + "' that can be run, there are: ")
                .str() +
            names;
  else if (found.size() == 1)
    return found.front();
  else
    error =
        ("several functions can be run, name one with " + option + ": ").str() +
        names;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// Errors of functions that nobody asked for are of no concern.
static void dropOthers(ModuleOp module, func::FuncOp entry) {
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function != entry && canRun(function) &&
        SymbolTable::symbolKnownUseEmpty(function, module))
      function.erase();
}

/// To the program of a rank.
static LogicalResult lower(ModuleOp module, const jit::Without &without) {
  PassManager pm(module.getContext());
  RingPipelineOptions options;
  without.applyTo(options);
  options.verify = false; // The proof is wanted as such.
  buildRingPipeline(pm, options);
  return pm.run(module);
}

/// Proves a program where it is static, and for every number of ranks where it
/// is not; none, and the reason, where that does not do.
static LogicalResult proveProgram(func::FuncOp program,
                                  const ProofOptions &allowed,
                                  jit::Compiled &compiled) {
  proof::Verdict verdict = proof::proveForAll(program, allowed);
  if (!isStatic(program)) {
    if (verdict.isProved())
      compiled.proved = provedFor(verdict, program);
    else
      compiled.reason = verdict.reason->text;
    return success();
  }
  FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
  ScheduleProof proof;
  if (failed(globals) ||
      failed(proveSchedule(program, verdict, *globals, {allowed}, proof)))
    return failure();
  compiled.proved = proof.proved;
  return success();
}

FailureOr<host::Objects> jit::compileToObjects(ModuleOp module, StringRef entry,
                                               const Target &target,
                                               host::Parts parts,
                                               const host::Dump &dump) {
  if (target.gpu)
    return cuda::compileToObjects(module, entry, *target.gpu, target.host,
                                  parts, dump);
  return cpu::compileToObjects(module, entry, target.host, parts, dump);
}

FailureOr<jit::Compiled> jit::compile(func::FuncOp entry, const Target &target,
                                      const Without &without, host::Parts parts,
                                      const host::Dump &dump) {
  if (failed(without.check(entry)))
    return failure();
  auto module = cast<ModuleOp>(entry->getParentOp());
  std::string name = entry.getName().str();
  dropOthers(module, entry);
  // One that is lowered already stays as it is: whoever left an optimisation
  // out wants it so.
  bool isLowered = entry->hasAttr(ring::gridAttr);
  if (!isLowered && failed(lower(module, without)))
    return failure();
  Compiled compiled;
  auto program = module.lookupSymbol<func::FuncOp>(name);
  bool isWasteful = isLowered || without.dropping;
  if (failed(proveProgram(program, isWasteful ? allowWaste : ProofOptions(),
                          compiled)))
    return failure();
  if (!isStatic(program)) {
    llvm::raw_string_ostream stream(compiled.unproved);
    module.print(stream, OpPrintingFlags().enableDebugInfo());
  }
  Target machine = target;
  without.applyTo(machine);
  auto objects = compileToObjects(module, name, machine, parts, dump);
  if (failed(objects))
    return failure();
  compiled.objects = std::move(*objects);
  return compiled;
}
