//===- Objects.cpp - host code and kernels as object files ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/Objects.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Local.h"

#include <atomic>
#include <pthread.h>

using namespace mlir;
using namespace burst;
using namespace burst::host;

//===----------------------------------------------------------------------===//
// LLVM
//===----------------------------------------------------------------------===//

static std::string print(const llvm::Module &module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << module;
  return text;
}

static std::unique_ptr<llvm::TargetMachine>
makeMachine(const Processor &target, llvm::CodeGenOptLevel level,
            std::string &error) {
  llvm::Triple triple(target.triple);
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.processor, target.features, llvm::TargetOptions(),
      llvm::Reloc::PIC_, std::nullopt, level));
}

/// Stores the members of a structure or an array one by one.
static void storeMembers(llvm::IRBuilderBase &b, llvm::StoreInst &store,
                         llvm::Type *type, SmallVectorImpl<unsigned> &path,
                         uint64_t offset) {
  const llvm::DataLayout &layout = store.getDataLayout();
  if (!type->isAggregateType()) {
    llvm::Value *value = llvm::FindInsertedValue(store.getValueOperand(), path,
                                                 store.getIterator());
    if (!value)
      value = b.CreateExtractValue(store.getValueOperand(), path);
    llvm::Value *address =
        b.CreatePtrAdd(store.getPointerOperand(), b.getInt64(offset));
    b.CreateAlignedStore(value, address,
                         llvm::commonAlignment(store.getAlign(), offset));
    return;
  }
  auto *record = llvm::dyn_cast<llvm::StructType>(type);
  uint64_t count =
      record ? record->getNumElements() : type->getArrayNumElements();
  for (unsigned i = 0; i < count; ++i) {
    llvm::Type *member =
        record ? record->getElementType(i) : type->getArrayElementType();
    uint64_t begin = record
                         ? layout.getStructLayout(record)->getElementOffset(i)
                         : i * layout.getTypeAllocSize(member);
    path.push_back(i);
    storeMembers(b, store, member, path, offset + begin);
    path.pop_back();
  }
}

/// Host code runs once per hop: not worth the time to optimise it. But as
/// values its descriptors would take more time than all the rest, since each is
/// copied as a whole to wherever it is used. Their members are values instead.
static void leaveHost(llvm::Function &function) {
  SmallVector<llvm::WeakTrackingVH> dead;
  for (llvm::Instruction &op : llvm::instructions(function))
    if (auto *extract = llvm::dyn_cast<llvm::ExtractValueInst>(&op)) {
      if (llvm::Value *value = llvm::FindInsertedValue(
              extract->getAggregateOperand(), extract->getIndices()))
        extract->replaceAllUsesWith(value);
      dead.emplace_back(extract);
    } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&op)) {
      if (store->getValueOperand()->getType()->isAggregateType())
        dead.emplace_back(store);
    }
  for (llvm::WeakTrackingVH &handle : dead)
    if (auto *store = llvm::dyn_cast_or_null<llvm::StoreInst>(handle)) {
      llvm::IRBuilder<> b(store);
      SmallVector<unsigned> path;
      storeMembers(b, *store, store->getValueOperand()->getType(), path, 0);
      handle = store->getValueOperand();
      store->eraseFromParent();
    }
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(dead);
  function.addFnAttr(llvm::Attribute::NoInline);
  function.addFnAttr(llvm::Attribute::OptimizeNone);
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
              "function(sroa,early-cse<memssa>,"
              "instcombine<no-verify-fixpoint>,simplifycfg,"
              "loop-mssa(loop-rotate,licm),gvn,"
              "instcombine<no-verify-fixpoint>,simplifycfg),"
              "globaldce"));
  passes.run(module, modules);
}

/// Null where the target has no objects.
static std::unique_ptr<llvm::MemoryBuffer>
emitObject(llvm::Module &module, llvm::TargetMachine &machine) {
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  llvm::CodeGenFileType::ObjectFile))
    return nullptr;
  passes.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), /*RequiresNullTerminator=*/false);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

static bool isHost(StringRef symbol, StringRef program) {
  return symbol == program || symbol.starts_with((program + ".").str());
}

/// How many operations a symbol has: what it takes to compile it.
static int64_t sizeOf(Operation *symbol) {
  int64_t size = 0;
  symbol->walk([&](Operation *) { ++size; });
  return size;
}

/// Makes a symbol known in another module.
static void declare(Operation *symbol, ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  Operation *declared = builder.insert(symbol->cloneWithoutRegions());
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(declared)) {
    function.setLinkage(LLVM::Linkage::External);
  } else {
    auto global = cast<LLVM::GlobalOp>(declared);
    global.setLinkage(LLVM::Linkage::External);
    global.removeValueAttr();
  }
}

/// Makes a definition known to other objects of the program. They find it by
/// tables of addresses, since they may be far away when they are linked in a
/// process.
static void expose(Operation *symbol) {
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(symbol)) {
    if (function.isExternal())
      return;
    function.setLinkage(LLVM::Linkage::External);
    function.setVisibility_(LLVM::Visibility::Hidden);
  } else {
    auto global = cast<LLVM::GlobalOp>(symbol);
    global.setLinkage(LLVM::Linkage::External);
    global.setVisibility_(LLVM::Visibility::Hidden);
  }
}

/// Moves all that is not host code to `count` modules of about the same size.
static SmallVector<OwningOpRef<ModuleOp>>
splitKernels(ModuleOp module, StringRef program, int64_t count) {
  SmallVector<OwningOpRef<ModuleOp>> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.emplace_back(ModuleOp::create(module.getLoc()));
    parts.back()->getOperation()->setAttrs(module->getAttrDictionary());
  }
  SymbolTable symbols(module);
  SmallVector<std::pair<Operation *, int64_t>> kernels;
  int64_t total = 1, passed = 0; // not 0 where there are no kernels
  for (Operation &op : *module.getBody())
    if (!isHost(SymbolTable::getSymbolName(&op), program)) {
      kernels.emplace_back(&op, sizeOf(&op));
      total += kernels.back().second;
    }
  llvm::DenseMap<Operation *, ModuleOp> places;
  for (Operation &op : *module.getBody())
    places[&op] = module;
  for (auto [op, size] : kernels) {
    places[op] = *parts[passed * count / total];
    passed += size;
  }
  llvm::SetVector<std::pair<Operation *, Operation *>> imports;
  for (Operation &op : *module.getBody()) {
    ModuleOp place = places.lookup(&op);
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(&op);
    for (SymbolTable::SymbolUse use : *uses) {
      Operation *used = symbols.lookup(use.getSymbolRef().getRootReference());
      if (places.lookup(used) != place)
        imports.insert({used, place});
    }
  }
  for (auto [op, size] : kernels) {
    ModuleOp place = places.lookup(op);
    op->moveBefore(place.getBody(), place.getBody()->end());
  }
  for (auto [symbol, place] : imports)
    declare(symbol, cast<ModuleOp>(place));
  for (auto [symbol, place] : imports)
    expose(symbol);
  return parts;
}

namespace {

/// A module of LLVM and what becomes of it.
struct Part {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Default;
  std::unique_ptr<llvm::MemoryBuffer> object;
};

/// Parts that are compiled, by two threads: from the last one on, so that host
/// code, which takes least, comes when a thread has nothing else to do.
struct Work {
  const Processor &target;
  ArrayRef<std::unique_ptr<Part>> parts;
  std::atomic<size_t> left;
};

} // namespace

static void compilePart(const Processor &target, Part &part) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      makeMachine(target, part.level, error);
  optimize(*part.module, *machine);
  part.object = emitObject(*part.module, *machine);
}

static void *compileParts(void *context) {
  auto &work = *static_cast<Work *>(context);
  for (size_t left = work.left; left > 0;)
    if (work.left.compare_exchange_weak(left, left - 1))
      compilePart(work.target, *work.parts[left - 1]);
  return nullptr;
}

/// By the calling thread alone if there is no other one.
static void compileAll(const Processor &target,
                       ArrayRef<std::unique_ptr<Part>> parts) {
  Work work{target, parts, parts.size()};
  pthread_t helper;
  bool hasHelper = parts.size() > 1 &&
                   pthread_create(&helper, nullptr, compileParts, &work) == 0;
  compileParts(&work);
  if (hasHelper)
    pthread_join(helper, nullptr);
}

//===----------------------------------------------------------------------===//
// Everything
//===----------------------------------------------------------------------===//

/// What becomes of a module with host code, if it has any, and kernels.
static LogicalResult translate(ModuleOp module, const Image &image,
                               const Processor &target,
                               const llvm::TargetMachine &machine, Part &part) {
  part.module = translateModuleToLLVMIR(module, part.context, image.name);
  if (!part.module)
    return module.emitError("cannot be translated to LLVM IR");
  part.module->setDataLayout(machine.createDataLayout());
  part.module->setTargetTriple(machine.getTargetTriple());
  if (part.module->getFunction(image.name))
    addImage(*part.module, image);
  for (llvm::Function &function : *part.module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.processor);
    function.addFnAttr("target-features", target.features);
    if (isHost(function.getName(), image.name))
      leaveHost(function);
    if (target.vectorBits >= 512)
      function.addFnAttr("prefer-vector-width", "512");
    if (!function.hasLocalLinkage() && !function.hasHiddenVisibility())
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  return success();
}

FailureOr<Objects> burst::host::emitObjects(ModuleOp module, const Image &image,
                                            const Processor &processor,
                                            Parts parts, const Dump &dump) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      makeMachine(processor, llvm::CodeGenOptLevel::Default, error);
  if (!machine)
    return module.emitError("cannot compile for ")
           << processor.triple << ": " << error;
  SmallVector<OwningOpRef<ModuleOp>> kernels;
  if (parts == Parts::Several)
    kernels = splitKernels(module, image.name, 3);
  SmallVector<std::unique_ptr<Part>> compiled;
  auto add = [&](ModuleOp part) {
    compiled.push_back(std::make_unique<Part>());
    return translate(part, image, processor, *machine, *compiled.back());
  };
  if (failed(add(module)))
    return failure();
  for (OwningOpRef<ModuleOp> &part : kernels)
    if (failed(add(*part)))
      return failure();
  if (!kernels.empty())
    compiled.front()->level = llvm::CodeGenOptLevel::None;
  compileAll(processor, compiled);
  Objects objects;
  objects.reserve(compiled.size());
  for (auto [i, part] : llvm::enumerate(compiled)) {
    if (!part->object)
      return module.emitError("cannot emit objects for ") << processor.triple;
    std::string number = i ? "." + std::to_string(i) : "";
    if (!dump.directory.empty() &&
        (failed(dump(module, "4-optimized" + number + ".ll",
                     ::print(*part->module))) ||
         failed(dump(module, "5-program" + number + ".o",
                     part->object->getBuffer()))))
      return failure();
    objects.push_back(std::move(part->object));
  }
  return objects;
}
