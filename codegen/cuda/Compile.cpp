//===- Compile.cpp - ring programs for GPUs to object files ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Compile.h"

#include "codegen/cuda/CompileLog.h"
#include "codegen/cuda/Emit.h"
#include "codegen/cuda/Passes.h"
#include "codegen/cuda/Shapes.h"
#include "codegen/host/Image.h"
#include "dialect/Cuda/Cuda.h"
#include "dialect/Ring/Ring.h"

#include "burst/internal/gpu.h"
#include "burst/program.h"

#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

#include <map>

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

static_assert(tile::largestExtent == BURST_GPU_LARGEST_EXTENT);

static constexpr llvm::StringLiteral portable = "sm_80";
/// The architecture whose kernels are warp-specialized: a producer and
/// consumers.
static constexpr llvm::StringLiteral warpSpecialized = "sm_90a";

/// The number of "sm_86" or "sm_90a"; 0 where it is none.
static unsigned numberOf(StringRef architecture) {
  unsigned number = 0;
  architecture.consume_back("a");
  if (!architecture.consume_front("sm_") ||
      architecture.getAsInteger(10, number) || number < 10 || number > 999)
    return 0;
  return number;
}

FailureOr<Target> Target::named(StringRef architectures, std::string &error) {
  Target target;
  SmallVector<StringRef> names;
  architectures.split(names, ',');
  for (StringRef name : names) {
    if (numberOf(name) < 80) {
      error = formatv("architecture '{0}': wanted sm_80 or a later one", name);
      return failure();
    }
    // Warp-specialized kernels run nowhere else, and have tiles of their own.
    if (name.ends_with("a") && (name != warpSpecialized || names.size() > 1)) {
      error = formatv("architecture '{0}': code that is for one architecture "
                      "alone is made for {1}, and for no other with it",
                      name, warpSpecialized);
      return failure();
    }
    if (llvm::is_contained(target.architectures, name)) {
      error = formatv("architecture '{0}' is there twice", name);
      return failure();
    }
    target.architectures.push_back(name.str());
  }
  return target;
}

Target Target::here() {
  Target target{{portable.str()}};
  bool allSpecialize = true;
  int count = 0;
  burst_error *error = burst_gpu_count(&count);
  for (int ordinal = 0; ordinal < count && !error; ++ordinal) {
    burst_gpu *gpu = nullptr;
    error = burst_gpu_create(ordinal, &gpu);
    if (error)
      break;
    const burst_gpu_properties *found = burst_gpu_get_properties(gpu);
    std::string name = formatv("sm_{0}{1}", found->major, found->minor);
    allSpecialize &= warpSpecialized == name + "a";
    if (!llvm::is_contained(target.architectures, name) && numberOf(name) >= 80)
      target.architectures.push_back(name);
    burst_gpu_destroy(gpu);
  }
  if (count > 0 && !error && allSpecialize)
    target.architectures = {warpSpecialized.str()};
  // No GPU here: the portable code is all there is.
  burst_error_destroy(error);
  return target;
}

std::string Target::str() const { return llvm::join(architectures, ", "); }

bool Target::isWarpSpecialized() const {
  return llvm::is_contained(architectures, warpSpecialized);
}

int64_t cuda::sharedBytesOf(StringRef architecture) {
  constexpr int64_t kib = 1024;
  switch (numberOf(architecture)) {
  case 80:
  case 87:
    return 163 * kib;
  case 90:
  case 100:
  case 103:
    return 227 * kib;
  default:
    return 99 * kib;
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// From a ring program on tensors to host code, and kernels that are ready to
/// be printed.
static void buildKernelPipeline(OpPassManager &pm, const Shapes &shapes,
                                bool isWarpSpecialized) {
  host::buildTilePipeline(pm, shapes.options());
  pm.addPass(createUploadTablesPass());
  if (isWarpSpecialized) {
    pm.addNestedPass<func::FuncOp>(createSpecializeWarpsPass());
    pm.addNestedPass<func::FuncOp>(createDelegateMasksPass());
  }
  const Shape &shape = shapes[Tiling::Attends];
  if (shape.isPipelined)
    pm.addNestedPass<func::FuncOp>(createSoftwarePipelinePass());
  if (shape.isPingPong)
    pm.addNestedPass<func::FuncOp>(createPingPongPass());
  pm.addNestedPass<func::FuncOp>(createStageCopiesPass());
  pm.addNestedPass<func::FuncOp>(createNarrowPositionsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

namespace {

/// A program with shapes, and what its kernels became.
struct Variant {
  OwningOpRef<ModuleOp> module;
  std::string shapes; ///< as text
  std::vector<func::FuncOp> functions;
  std::vector<KernelText> kernels;
  std::vector<Source> sources;  ///< kernel by kernel, for each architecture
  std::vector<Binary> binaries; ///< of them
  /// Why the shape of a tiling is rejected.
  std::map<Tiling, std::string> rejections;

  void reject(Tiling tiling, const std::string &why) {
    rejections.try_emplace(tiling, why);
  }
};

} // namespace

/// What the environment tells NVRTC beside what is needed.
static std::vector<std::string> optionsOfNvrtc() {
  std::vector<std::string> options{"--device-as-default-execution-space"};
  SmallVector<StringRef> more;
  const char *given = getenv("BURST_NVRTC_OPTIONS");
  StringRef(given ? given : "").split(more, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef option : more)
    options.push_back(option.str());
  return options;
}

static Source sourceOf(const KernelText &kernel, StringRef architecture) {
  return {kernel.name + ".cu",
          getDeviceLibrary().str() + "using namespace burst;\n" + kernel.text,
          architecture.str(),
          /*lineInfo=*/false, optionsOfNvrtc()};
}

/// The text of a kernel, for each architecture.
static LogicalResult addKernel(Variant &variant, func::FuncOp function,
                               const Target &target) {
  FailureOr<KernelText> kernel = emitKernel(function);
  if (failed(kernel))
    return failure();
  for (const std::string &architecture : target.architectures) {
    variant.sources.push_back(sourceOf(*kernel, architecture));
    if (kernel->sharedBytes > sharedBytesOf(architecture))
      variant.reject(tilingOf(function),
                     formatv("{0}: {1} bytes of shared memory, {2} has {3}",
                             kernel->name, kernel->sharedBytes, architecture,
                             sharedBytesOf(architecture)));
  }
  variant.functions.push_back(function);
  variant.kernels.push_back(std::move(*kernel));
  return success();
}

static FailureOr<Variant> makeVariant(ModuleOp module, const Shapes &shapes,
                                      const Target &target) {
  Variant variant{module.clone(), shapes.str(), {}, {}, {}, {}, {}};
  auto pm = PassManager::on<ModuleOp>(module.getContext());
  buildKernelPipeline(pm, shapes, target.isWarpSpecialized());
  {
    // Remarks (why a kernel is not warp-specialized) are not for who runs it.
    ScopedDiagnosticHandler remarks(
        module.getContext(), [](Diagnostic &diagnostic) {
          return success(diagnostic.getSeverity() ==
                         DiagnosticSeverity::Remark);
        });
    if (failed(pm.run(*variant.module)))
      return failure();
  }
  for (auto function : variant.module->getOps<func::FuncOp>())
    if (function->hasAttr(tile::warpsAttr) &&
        failed(addKernel(variant, function, target)))
      return failure();
  if (shapes[Tiling::Attends].isPipelined &&
      llvm::none_of(variant.kernels, [](const KernelText &kernel) {
        return kernel.isWarpSpecialized;
      }))
    variant.reject(Tiling::Attends, "no kernel is warp-specialized");
  return variant;
}

static LogicalResult compileVariant(Variant &variant, Compiler &compiler,
                                    ModuleOp module) {
  std::vector<llvm::Expected<Binary>> compiled =
      compiler.compileAll(variant.sources);
  size_t perKernel = variant.functions.empty()
                         ? 1
                         : variant.sources.size() / variant.functions.size();
  std::string errors;
  for (auto [n, binary] : llvm::enumerate(compiled)) {
    const Source &source = variant.sources[n];
    if (!binary) { // a missing NVRTC is one error for all
      std::string error = toString(binary.takeError());
      if (!StringRef(errors).contains(error))
        errors += (errors.empty() ? "" : "\n") + error;
      continue;
    }
    std::string reason = CompileLog::read(binary->log).rejectionReason();
    if (!reason.empty())
      variant.reject(tilingOf(variant.functions[n / perKernel]),
                     source.name + ": " + reason);
    variant.binaries.push_back(std::move(*binary));
  }
  return errors.empty() ? success() : LogicalResult(module.emitError(errors));
}

/// Goes on to the next shape of each tiling that was rejected. Whether there is
/// one.
static bool refuse(Shapes &shapes, const Variant &variant) {
  bool isLast = true;
  for (const auto &[tiling, reason] : variant.rejections) {
    isLast &= shapes.isLast(tiling);
    shapes.refuse(tiling, reason);
  }
  return !isLast;
}

/// For each tiling the first shape that is not rejected, or the last one.
static FailureOr<Variant> choose(ModuleOp module, StringRef entry,
                                 const Target &target) {
  llvm::Expected<CacheConfig> config = CacheConfig::fromEnvironment();
  if (!config)
    return module.emitError(toString(config.takeError()));
  auto compiler = Compiler::create(std::move(*config));
  if (!compiler)
    return module.emitError(toString(compiler.takeError()));
  auto program = module.lookupSymbol<func::FuncOp>(entry);
  Shapes shapes(program, target.isWarpSpecialized());
  Builder b(module.getContext());
  while (true) {
    FailureOr<Variant> variant = makeVariant(module, shapes, target);
    if (failed(variant))
      return failure();
    // What does not fit into shared memory cannot be launched.
    bool fits = variant->rejections.empty();
    if (fits && failed(compileVariant(*variant, **compiler, module)))
      return failure();
    Shapes before = shapes;
    if (refuse(shapes, *variant))
      continue;
    auto refused = [&](const Shapes &shapes) {
      SmallVector<StringRef> reasons(shapes.refused());
      return b.getStrArrayAttr(reasons);
    };
    if (!fits)
      return program.emitError("has no shape of tiles for ")
             << target.str() << ": " << refused(shapes);
    for (const auto &[tiling, reason] : variant->rejections)
      program.emitWarning("is slower than it could be, as ") << reason;
    auto chosen = variant->module->lookupSymbol<func::FuncOp>(entry);
    chosen->setAttr(shapeAttr, b.getStringAttr(variant->shapes));
    if (!before.refused().empty())
      chosen->setAttr(refusedAttr, refused(before));
    return variant;
  }
}

static LogicalResult dumpKernels(const Variant &variant,
                                 const host::Dump &dump) {
  ModuleOp module = *variant.module;
  for (auto [source, binary] :
       llvm::zip_equal(variant.sources, variant.binaries)) {
    std::string name = StringRef(source.name).drop_back(3).str();
    std::string made = name + "." + source.architecture;
    if (failed(dump(module, source.name, source.text)) ||
        failed(dump(module, made + ".ptx", binary.ptx)) ||
        failed(dump(module, made + ".cubin", binary.cubin)) ||
        failed(dump(module, made + ".log", binary.log)))
      return failure();
  }
  return success();
}

static host::GpuParameter describeParameter(const ParameterText &parameter) {
  host::GpuParameter described{parameter.offset, parameter.bytes};
  if (const std::optional<MapText> &map = parameter.map)
    described.map = {parameter.offset,
                     map->element.isBF16() ? BURST_BF16 : BURST_F16,
                     {map->box.begin(), map->box.end()},
                     static_cast<int32_t>(map->swizzle)};
  return described;
}

/// What the image says of the kernels.
static void describeKernels(const Variant &variant, host::Image &image) {
  size_t numArchitectures =
      variant.kernels.empty() ? 0
                              : variant.sources.size() / variant.kernels.size();
  for (auto [n, kernel] : llvm::enumerate(variant.kernels)) {
    host::GpuKernel described;
    described.name = kernel.name;
    described.threads = 32 * kernel.warps;
    described.sharedBytes = kernel.sharedBytes;
    described.argumentBytes = kernel.argumentBytes;
    for (const ParameterText &parameter : kernel.parameters)
      described.parameters.push_back(describeParameter(parameter));
    for (size_t a = 0; a < numArchitectures; ++a) {
      const Source &source = variant.sources[n * numArchitectures + a];
      const Binary &binary = variant.binaries[n * numArchitectures + a];
      described.binaries.push_back({source.architecture, binary.cubin});
    }
    std::string ptx = variant.binaries[n * numArchitectures].ptx;
    ptx.push_back('\0');
    described.binaries.push_back(
        {"compute_" +
             StringRef(variant.sources[n * numArchitectures].architecture)
                 .drop_front(3)
                 .str(),
         std::move(ptx)});
    image.gpuKernels.push_back(std::move(described));
  }
}

FailureOr<host::Objects>
cuda::compileToObjects(ModuleOp module, StringRef entry, const Target &target,
                       const cpu::Target &processor, host::Parts parts,
                       const host::Dump &dump) {
  if (failed(host::isolate(module, entry)))
    return failure();
  std::string text = host::print(module);
  if (failed(dump(module, "1-ring.mlir", text)))
    return failure();
  FailureOr<Variant> variant = choose(module, entry, target);
  if (failed(variant))
    return failure();
  ModuleOp chosen = *variant->module;
  if (failed(dump(chosen, "2-tile.mlir",
                  dump.directory.empty() ? "" : host::print(chosen))) ||
      (!dump.directory.empty() && failed(dumpKernels(*variant, dump))))
    return failure();
  FailureOr<host::Image> image =
      host::describe(chosen.lookupSymbol<func::FuncOp>(entry));
  if (failed(image))
    return failure();
  for (const Binary &binary : variant->binaries)
    image->minimumDriver = std::max(image->minimumDriver, binary.minimumDriver);
  image->target = target.str() + ", tiles of " + variant->shapes +
                  "; schedules on " + processor.str();
  image->features = llvm::join(processor.required(), ",");
  image->hash = llvm::xxh3_64bits(text);
  describeKernels(*variant, *image);
  // From here on kernels are numbers, which their declarations stand for.
  for (func::FuncOp kernel : variant->functions)
    kernel.eraseBody();
  return cpu::compileTiles(chosen, *image, processor, parts, dump);
}
