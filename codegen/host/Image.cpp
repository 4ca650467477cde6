//===- Image.cpp - what a compiled program exports ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/host/Image.h"
#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"

#include "burst/program.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace burst;
using namespace burst::host;

//===----------------------------------------------------------------------===//
// From a program
//===----------------------------------------------------------------------===//

/// The number of a type of elements in burst/program.h; 0 where there is none.
static int32_t elementType(Type type) {
  if (type.isF64())
    return BURST_F64;
  if (type.isF32())
    return BURST_F32;
  if (type.isBF16())
    return BURST_BF16;
  if (type.isF16())
    return BURST_F16;
  if (type.isIndex() || type.isInteger(64))
    return BURST_I64;
  if (type.isInteger(32))
    return BURST_I32;
  if (type.isInteger(16))
    return BURST_I16;
  if (type.isInteger(8))
    return BURST_I8;
  if (type.isInteger(1))
    return BURST_I1;
  return 0;
}

static std::string nameOf(func::FuncOp program, unsigned index, bool isResult,
                          unsigned number) {
  if (auto name = program.getArgAttrOfType<StringAttr>(index, "burst.name"))
    return name.str();
  return (isResult ? "result" : "arg") + std::to_string(number);
}

FailureOr<Image> burst::host::describe(func::FuncOp program) {
  Image image;
  image.name = program.getName().str();
  image.numRanks = ring::numRanks(program);
  image.numArguments = 0;
  program.walk([&](ring::TransferOpInterface op) {
    RankGroup group = ring::groupOf(program, op.getChannel().getAxes());
    std::pair<int64_t, int64_t> ranks(group.size, group.stride);
    if (op.getRoute() != ring::Route::Shift && group.size > 1 &&
        group.size < image.numRanks && !llvm::is_contained(image.groups, ranks))
      image.groups.push_back(ranks);
  });
  unsigned results = 0;
  for (unsigned i = 0; i < program.getNumArguments(); ++i) {
    Type type = program.getArgument(i).getType();
    bool isResult = !!program.getArgAttr(i, ring::resultAttr);
    Parameter parameter;
    unsigned number = isResult ? results++ : i;
    parameter.name = nameOf(program, i, isResult, number);
    parameter.isResult = isResult;
    parameter.isPartial = !!program.getArgAttr(i, ring::partialAttr);
    parameter.isHost = !!program.getArgAttr(i, tile::hostAttr);
    parameter.kind = BURST_SCALAR;
    parameter.shardDim = parameter.extentParameter = -1;
    parameter.numSegments = 0;
    parameter.extent = -1;
    Type element = type;
    if (auto buffer = dyn_cast<MemRefType>(type)) {
      parameter.kind = BURST_TENSOR;
      element = buffer.getElementType();
      for (int64_t size : buffer.getShape())
        parameter.sizes.push_back(ShapedType::isDynamic(size) ? -1 : size);
    }
    if (program.getArgAttr(i, ring::extentAttr))
      parameter.kind = BURST_EXTENT;
    parameter.type = elementType(element);
    if (parameter.type == 0)
      return program.emitOpError("takes a ")
             << type << " as '" << parameter.name
             << "', which a host cannot hand over: use f64, f32, bf16, f16, "
                "index, i64, i32, i16, i8 or i1";
    if (auto shard =
            program.getArgAttrOfType<ring::ShardAttr>(i, ring::shardAttr)) {
      parameter.shardDim = static_cast<int32_t>(shard.getDim());
      parameter.numSegments =
          static_cast<int32_t>(shard.getLayout().getNumSegments());
      if (!ShapedType::isDynamic(shard.getExtent()))
        parameter.extent = shard.getExtent();
    }
    SmallVector<ring::ShardAttr> shards = ring::argumentShards(program, i);
    for (ring::ShardAttr split :
         llvm::drop_begin(shards, parameter.shardDim >= 0 ? 1 : 0)) {
      RankGroup group = ring::groupOf(program, split.getAxes());
      parameter.splits.push_back({static_cast<int32_t>(split.getDim()),
                                  static_cast<int32_t>(group.size),
                                  group.stride});
    }
    llvm::sort(parameter.splits,
               [](const auto &a, const auto &b) { return a.dim < b.dim; });
    image.numArguments += !isResult;
    image.parameters.push_back(std::move(parameter));
  }
  // Extents name the arguments and results whose size they carry.
  for (unsigned i = 0; i < program.getNumArguments(); ++i) {
    auto pairs =
        program.getArgAttrOfType<DenseI64ArrayAttr>(i, ring::extentAttr);
    for (int64_t p = 0; pairs && p < pairs.size(); p += 2)
      image.parameters[pairs[p]].extentParameter = static_cast<int32_t>(i);
  }
  return image;
}

//===----------------------------------------------------------------------===//
// To LLVM
//===----------------------------------------------------------------------===//

namespace {

/// Makes constants with the layout of C.
class ImageBuilder {
public:
  explicit ImageBuilder(llvm::Module &module)
      : module(module), context(module.getContext()),
        pointer(llvm::PointerType::get(context, 0)) {}

  llvm::Constant *i32(int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt32Ty(context), value);
  }
  llvm::Constant *i64(int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), value);
  }
  llvm::Constant *null() { return llvm::ConstantPointerNull::get(pointer); }
  llvm::Constant *text(StringRef string) {
    return global(llvm::ConstantDataArray::getString(context, string), "text");
  }
  llvm::Constant *numbers(ArrayRef<int64_t> values) {
    if (values.empty())
      return null();
    SmallVector<uint64_t> copy(values.begin(), values.end());
    return global(llvm::ConstantDataArray::get(context, ArrayRef(copy)),
                  "sizes");
  }
  llvm::Constant *record(ArrayRef<llvm::Constant *> members) {
    return llvm::ConstantStruct::getAnon(context, members);
  }
  /// A pointer to elements, null where there are none.
  llvm::Constant *array(ArrayRef<llvm::Constant *> elements,
                        const Twine &name) {
    if (elements.empty())
      return null();
    auto *type =
        llvm::ArrayType::get(elements.front()->getType(), elements.size());
    return global(llvm::ConstantArray::get(type, elements), name);
  }
  llvm::Constant *bytes(StringRef data) {
    llvm::GlobalVariable *stored = global(
        llvm::ConstantDataArray::getString(context, data, /*AddNull=*/false),
        "binary");
    stored->setAlignment(llvm::Align(16));
    return stored;
  }
  llvm::Constant *gpuParameter(const GpuParameter &parameter) {
    llvm::Constant *map = null();
    if (parameter.map) {
      SmallVector<llvm::Constant *> box;
      for (size_t d = 0; d < 5; ++d)
        box.push_back(
            i32(d < parameter.map->box.size() ? parameter.map->box[d] : 0));
      auto *boxType = llvm::ArrayType::get(box.front()->getType(), box.size());
      map = global(record({i64(parameter.map->buffer), i32(parameter.map->type),
                           i32(static_cast<int64_t>(parameter.map->box.size())),
                           llvm::ConstantArray::get(boxType, box),
                           i32(parameter.map->swizzle)}),
                   "map");
    }
    return record({i64(parameter.offset), i64(parameter.bytes), map});
  }
  llvm::Constant *gpuKernel(const GpuKernel &kernel) {
    SmallVector<llvm::Constant *> parameters, binaries;
    for (const GpuParameter &parameter : kernel.parameters)
      parameters.push_back(gpuParameter(parameter));
    for (const GpuBinary &binary : kernel.binaries)
      binaries.push_back(
          record({text(binary.architecture), bytes(binary.data),
                  i64(static_cast<int64_t>(binary.data.size())),
                  i64(static_cast<int64_t>(checksum(binary.data)))}));
    return record({text(kernel.name), i32(kernel.threads),
                   i32(kernel.sharedBytes), i64(kernel.argumentBytes),
                   i64(static_cast<int64_t>(parameters.size())),
                   array(parameters, "gpu.parameters"),
                   i64(static_cast<int64_t>(binaries.size())),
                   array(binaries, "gpu.binaries")});
  }
  llvm::GlobalVariable *global(llvm::Constant *value, const Twine &name) {
    auto owned = std::make_unique<llvm::GlobalVariable>(
        value->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, value, name);
    llvm::GlobalVariable *global = owned.release();
    module.insertGlobalVariable(global);
    return global;
  }

private:
  /// FNV-1a.
  static uint64_t checksum(StringRef data) {
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char byte : data)
      hash = (hash ^ byte) * 0x100000001b3;
    return hash;
  }

  llvm::Module &module;
  llvm::LLVMContext &context;
  llvm::PointerType *pointer;
};

} // namespace

void burst::host::addImage(llvm::Module &module, const Image &image) {
  ImageBuilder b(module);
  SmallVector<llvm::Constant *> parameters;
  for (const Parameter &p : image.parameters) {
    SmallVector<llvm::Constant *> splits;
    for (const Parameter::Split &split : p.splits)
      splits.push_back(b.record(
          {b.i32(split.dim), b.i32(split.parts), b.i64(split.stride)}));
    parameters.push_back(b.record(
        {b.text(p.name), b.i32(p.kind), b.i32(p.type),
         b.i32(static_cast<int64_t>(p.sizes.size())), b.i32(p.isResult),
         b.numbers(p.sizes), b.i32(p.shardDim), b.i32(p.numSegments),
         b.i64(p.extent), b.i32(p.extentParameter), b.i32(p.isPartial),
         b.i32(p.isHost), b.i32(static_cast<int64_t>(p.splits.size())),
         b.array(splits, "splits")}));
  }
  SmallVector<llvm::Constant *> kernels;
  for (const GpuKernel &kernel : image.gpuKernels)
    kernels.push_back(b.gpuKernel(kernel));
  SmallVector<llvm::Constant *> groups;
  for (auto [size, stride] : image.groups)
    groups.push_back(b.record({b.i64(size), b.i64(stride)}));
  llvm::Function *segments = module.getFunction(image.name + ".segments");
  llvm::Function *run = module.getFunction(image.name + ".run");
  segments->setLinkage(llvm::GlobalValue::InternalLinkage);
  run->setLinkage(llvm::GlobalValue::InternalLinkage);
  llvm::Constant *value = b.record(
      {b.i32(sizeof(burst_image)), b.i32(BURST_ABI_VERSION), b.text(image.name),
       b.text(image.target), b.i64(image.numRanks),
       b.i32(static_cast<int64_t>(image.parameters.size())),
       b.i32(image.numArguments), b.array(parameters, "parameters"), segments,
       run, b.i64(static_cast<int64_t>(image.hash)), b.i32(image.minimumDriver),
       b.i32(static_cast<int64_t>(image.gpuKernels.size())),
       b.array(kernels, "gpu.kernels"), b.text(image.features),
       b.i32(BURST_VERSION_MAJOR), b.i32(BURST_VERSION_MINOR),
       b.i64(static_cast<int64_t>(groups.size())), b.array(groups, "groups")});
  llvm::GlobalVariable *exported = b.global(value, BURST_IMAGE_SYMBOL);
  exported->setLinkage(llvm::GlobalValue::ExternalLinkage);
  [[maybe_unused]] const llvm::DataLayout &layout = module.getDataLayout();
  assert(
      layout.getTypeAllocSize(value->getType()) == sizeof(burst_image) &&
      layout.getTypeAllocSize(parameters.front()->getType()) ==
          sizeof(burst_parameter) &&
      (kernels.empty() || layout.getTypeAllocSize(kernels.front()->getType()) ==
                              sizeof(burst_gpu_kernel)) &&
      "the image must have the layout of C");
}
