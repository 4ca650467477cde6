//===- Compile.cpp - ring programs to object files ------------------------===//
#include "codegen/cpu/Compile.h"
#include "codegen/cpu/Image.h"
#include "dialect/Ring/Ring.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

LogicalResult Dump::operator()(Operation *op, StringRef name,
                               StringRef text) const {
  if (directory.empty())
    return success();
  SmallString<128> path(directory), temporary;
  llvm::sys::path::append(path, name);
  (path + ".%%%%%%.tmp").toVector(temporary);
  auto fail = [&](std::error_code error) {
    return op->emitError("cannot write '") << path << "': " << error.message();
  };
  if (std::error_code error = llvm::sys::fs::create_directories(directory))
    return fail(error);
  llvm::Expected<llvm::sys::fs::TempFile> file =
      llvm::sys::fs::TempFile::create(temporary);
  if (!file)
    return fail(llvm::errorToErrorCode(file.takeError()));
  llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  stream << text;
  stream.flush();
  bool isWhole = !stream.has_error();
  std::error_code problem = stream.error();
  stream.clear_error();
  if (!isWhole) {
    llvm::consumeError(file->discard());
    return fail(problem);
  }
  if (llvm::Error error = file->keep(path))
    return fail(llvm::errorToErrorCode(std::move(error)));
  return success();
}

static std::string print(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << module;
  return text;
}

std::string burst::cpu::print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

static LogicalResult runPhase(ModuleOp module, const Target &target,
                              void (*build)(OpPassManager &, const Target &)) {
  auto pm = PassManager::on<ModuleOp>(module.getContext());
  pm.enableVerifier(
#ifdef NDEBUG
      false
#else
      true
#endif
  );
  build(pm, target);
  return pm.run(module);
}

//===----------------------------------------------------------------------===//
// LLVM
//===----------------------------------------------------------------------===//

static std::unique_ptr<llvm::TargetMachine> makeMachine(const Target &target,
                                                        std::string &error) {
  llvm::Triple triple(target.triple);
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.processor, target.features, llvm::TargetOptions(),
      llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

/// Kernels are vectorised, unrolled and outlined as they shall be. What is left
/// is to fold addresses and to take them out of loops: a small part of LLVM's
/// pipelines, which take three times as long.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation leaveHost(/*DebugLogging=*/false);
  leaveHost.registerCallbacks(callbacks);
  llvm::PassBuilder builder(&machine, {}, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(
      passes, "always-inline,"
              "function(sroa,early-cse<memssa>,instcombine,simplifycfg,"
              "loop-mssa(loop-rotate,licm),gvn,instcombine,simplifycfg),"
              "globaldce"));
  passes.run(module, modules);
}

static FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
emitObject(ModuleOp op, llvm::Module &module, llvm::TargetMachine &machine) {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return op.emitError("cannot emit objects for ")
           << machine.getTargetTriple().str();
  passes.run(module);
  return std::unique_ptr<llvm::MemoryBuffer>(
      std::make_unique<llvm::SmallVectorMemoryBuffer>(
          std::move(bytes), /*RequiresNullTerminator=*/false));
}

//===----------------------------------------------------------------------===//
// Everything
//===----------------------------------------------------------------------===//

LogicalResult burst::cpu::isolate(ModuleOp module, StringRef entry) {
  auto program = module.lookupSymbol<func::FuncOp>(entry);
  if (!program || !program->hasAttr(ring::gridAttr))
    return module.emitError("has no ring program '") << entry << "'";
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function->hasAttr(ring::gridAttr) && function != program)
      function.erase();
  return success();
}

FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
burst::cpu::compileToObject(ModuleOp module, StringRef entry,
                            const Target &given, const Dump &dump) {
  if (failed(isolate(module, entry)))
    return failure();
  Target target = given.suiting(module.lookupSymbol<func::FuncOp>(entry));
  std::string text = print(module);
  if (failed(dump(module, "1-ring.mlir", text)) ||
      failed(runPhase(module, target, buildBufferPipeline)))
    return failure();
  FailureOr<Image> image = describe(module.lookupSymbol<func::FuncOp>(entry));
  if (failed(image))
    return failure();
  image->target = target.str();
  image->features = llvm::join(target.required(), ",");
  image->hash = llvm::xxh3_64bits(text);
  if (failed(dump(module, "2-tile.mlir",
                  dump.directory.empty() ? "" : print(module))))
    return failure();
  return compileTiles(module, *image, target, dump);
}

FailureOr<std::unique_ptr<llvm::MemoryBuffer>>
burst::cpu::compileTiles(ModuleOp module, const Image &image,
                         const Target &target, const Dump &dump) {
  if (failed(runPhase(module, target, buildLLVMPipeline)) ||
      failed(dump(module, "3-llvm.mlir",
                  dump.directory.empty() ? "" : print(module))))
    return failure();
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(target, error);
  if (!machine)
    return module.emitError("cannot compile for ")
           << target.triple << ": " << error;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context, image.name);
  if (!translated)
    return module.emitError("cannot be translated to LLVM IR");
  translated->setDataLayout(machine->createDataLayout());
  translated->setTargetTriple(machine->getTargetTriple());
  addImage(*translated, image);
  for (llvm::Function &function : *translated) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.processor);
    function.addFnAttr("target-features", target.features);
    // Host code runs once per hop: not worth the time to optimise it.
    bool isHost = function.getName() == image.name ||
                  function.getName().starts_with(image.name + ".");
    if (isHost) {
      function.addFnAttr(llvm::Attribute::NoInline);
      function.addFnAttr(llvm::Attribute::OptimizeNone);
    }
    if (target.vectorBits >= 512)
      function.addFnAttr("prefer-vector-width", "512");
    if (!function.hasLocalLinkage())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  optimize(*translated, *machine);
  if (!dump.directory.empty() &&
      failed(dump(module, "4-optimized.ll", ::print(*translated))))
    return failure();
  FailureOr<std::unique_ptr<llvm::MemoryBuffer>> object =
      emitObject(module, *translated, *machine);
  if (failed(object) ||
      failed(dump(module, "5-program.o", (*object)->getBuffer())))
    return failure();
  return object;
}
