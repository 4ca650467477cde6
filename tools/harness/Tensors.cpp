//===- Tensors.cpp - tensors between files and programs -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/Tensors.h"

#include "passes/Plan.h"
#include "tools/data/Random.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <unistd.h>

using namespace mlir;
using namespace burst;

std::string burst::argumentNameOf(func::FuncOp function, unsigned index) {
  return argumentName(function, index);
}

std::string burst::resultNameOf(func::FuncOp function, unsigned index) {
  if (auto name = function.getResultAttrOfType<StringAttr>(index, nameAttr))
    return name.str();
  return "result" + std::to_string(index);
}

std::optional<data::DType> burst::dtypeOf(Type element) {
  using data::DType;
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  if (element.isInteger(1))
    return DType::BOOL;
  if (element.isInteger(8))
    return DType::I8;
  if (element.isInteger(16))
    return DType::I16;
  if (element.isInteger(32))
    return DType::I32;
  if (element.isInteger(64) || element.isIndex())
    return DType::I64;
  return std::nullopt;
}

/// Element `i` as the machine holds it; a true i1 is -1.
static Scalar toScalar(const data::Tensor &tensor, size_t i) {
  Scalar scalar;
  if (data::isFloat(tensor.dtype))
    scalar.f = tensor.get(i);
  else
    scalar.i = data::toInt(tensor.dtype, tensor.element(i)) *
               (tensor.dtype == data::DType::BOOL ? -1 : 1);
  return scalar;
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::optional<Argument> burst::toArgument(const data::Tensor &tensor, Type type,
                                          std::string &error) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  Type element = ranked ? ranked.getElementType() : type;
  std::optional<data::DType> wanted =
      element.isIntOrIndexOrFloat() ? dtypeOf(element) : std::nullopt;
  size_t rank = ranked ? ranked.getRank() : 0;
  bool fits = wanted == tensor.dtype && tensor.shape.size() == rank;
  for (size_t dim = 0; fits && dim < rank; ++dim)
    fits =
        ranked.isDynamicDim(dim) || ranked.getDimSize(dim) == tensor.shape[dim];
  if (!fits) {
    error = "found " + std::string(data::nameOf(tensor.dtype)) + " " +
            data::shapeText(tensor.shape) + ", wanted " + typeText(type);
    return std::nullopt;
  }
  Argument argument;
  if (!ranked) {
    argument.scalar = toScalar(tensor, 0);
    return argument;
  }
  argument.table = std::make_shared<Tensor>(tensor.shape, element);
  if (data::isFloat(tensor.dtype)) {
    argument.table->floats = tensor.toDoubles();
  } else {
    argument.table->ints.reserve(tensor.numel());
    for (size_t i = 0; i < tensor.numel(); ++i)
      argument.table->ints.push_back(toScalar(tensor, i).i);
  }
  return argument;
}

data::Tensor burst::toData(const Tensor &tensor) {
  data::Tensor result = data::Tensor::zeros(
      *dtypeOf(tensor.element),
      std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()));
  for (size_t i = 0; i < tensor.floats.size(); ++i)
    result.set(i, tensor.floats[i]);
  for (size_t i = 0; i < tensor.ints.size(); ++i)
    data::fromInt(result.dtype,
                  result.dtype == data::DType::BOOL ? tensor.ints[i] != 0
                                                    : tensor.ints[i],
                  result.element(i));
  return result;
}

std::optional<Argument> burst::makeArgument(func::FuncOp function,
                                            unsigned index,
                                            ArrayRef<int64_t> shape,
                                            uint64_t seed, std::string &error) {
  Type type = function.getArgumentTypes()[index];
  auto ranked = dyn_cast<RankedTensorType>(type);
  Type element = ranked ? ranked.getElementType() : type;
  std::string name = argumentNameOf(function, index);
  Argument argument;
  if (!ranked && !isa<FloatType>(type)) {
    error = "a scalar " + typeText(type) +
            " cannot be made up from a seed: give it as a tensor without "
            "dimensions in --in";
    return std::nullopt;
  }
  if (!ranked) {
    argument.scalar.f = roundTo(data::normal(seed, name, 1).front(), type);
    return argument;
  }
  bool isShard = function.getArgAttr(index, ring::shardAttr) != nullptr;
  if (!isShard && !ranked.hasStaticShape()) {
    error = "a table of unknown size, " + typeText(type) +
            ", cannot be made up from a seed: give it in --in";
    return std::nullopt;
  }
  argument.table = std::make_shared<Tensor>(shape, element);
  int64_t count = argument.table->size();
  if (isa<FloatType>(element)) {
    argument.table->floats = data::normal(seed, name, count);
    for (double &value : argument.table->floats)
      value = roundTo(value, element);
    return argument;
  }
  int64_t row = shape.empty() ? 1 : shape.back();
  for (int64_t i = 0; i < count; ++i) {
    int64_t id = row == 0 ? 0 : i % row * 4 / row;
    argument.table->ints.push_back(element.isInteger(1) ? -(id & 1) : id);
  }
  return argument;
}

/// Inputs, their shards, state, results and the oracle's are all held in fp64:
/// about six times the inputs. Allocation failure would end the program.
static LogicalResult checkMemory(func::FuncOp program,
                                 ArrayRef<Argument> described) {
  double needed = 0;
  for (const Argument &argument : described) {
    if (!argument.table)
      continue;
    // Also where there are no positions: lists have an entry per batch and
    // head.
    double elements = 1;
    for (int64_t size : argument.table->shape)
      elements *= static_cast<double>(std::max<int64_t>(size, 1));
    needed += 6.0 * sizeof(double) * elements;
  }
  double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed <= memory)
    return success();
  constexpr double gib = 1 << 30;
  return emitError(program.getLoc(), "needs about ")
         << llvm::formatv("{0:F1}", needed / gib).str()
         << " GiB to be evaluated in fp64, this machine has "
         << llvm::formatv("{0:F1}", memory / gib).str();
}

const std::string *burst::findStranger(const data::Tensors &archive,
                                       ArrayRef<std::string> names) {
  for (const auto &[name, tensor] : archive)
    if (!llvm::is_contained(names, name))
      return &name;
  return nullptr;
}

/// Takes the arguments that the archive has, and notes which are to be made up.
static LogicalResult takeGlobals(func::FuncOp program,
                                 const data::Tensors &archive,
                                 MutableArrayRef<Argument> globals,
                                 llvm::BitVector &made) {
  SmallVector<std::string> names;
  for (unsigned index = 0; index < program.getNumArguments(); ++index)
    names.push_back(argumentNameOf(program, index));
  const std::string *stranger = findStranger(archive, names);
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    if (!made.test(index))
      continue;
    auto found = archive.find(names[index]);
    if (found == archive.end() && !stranger)
      continue;
    if (found == archive.end())
      return emitError(program.getLoc(), "argument ")
             << index << " takes a tensor named '" << names[index]
             << "', which the input does not have; it has '" << *stranger
             << "', which no argument takes";
    Type global = type;
    SmallVector<ring::ShardAttr> shards = ring::argumentShards(program, index);
    if (!shards.empty()) {
      SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
      for (ring::ShardAttr shard : shards)
        shape[shard.getDim()] = shard.getExtent();
      global = cast<RankedTensorType>(type).clone(shape);
    }
    std::string error;
    std::optional<Argument> argument = toArgument(found->second, global, error);
    if (!argument)
      return emitError(program.getLoc(), "argument ")
             << index << ", '" << names[index] << "': " << error;
    globals[index] = std::move(*argument);
    made.reset(index);
  }
  return success();
}

/// The sizes that a program leaves open, as the arguments say that are there.
static FailureOr<Sizes> openSizesOf(func::FuncOp program,
                                    ArrayRef<Argument> globals) {
  Sizes sizes;
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    const TensorRef &found = globals[index].table;
    if (found && program.getArgAttr(index, ring::shardAttr) &&
        cast<RankedTensorType>(type).isDynamicDim(0))
      sizes.batch = found->shape[0];
    auto pairs =
        program.getArgAttrOfType<DenseI64ArrayAttr>(index, ring::extentAttr);
    if (!pairs)
      continue;
    std::optional<int64_t> length;
    for (int64_t i = 0; i < pairs.size(); i += 2)
      if (const TensorRef &tensor = globals[pairs[i]].table)
        length = tensor->shape[pairs[i + 1]];
    if (!length)
      return emitError(program.getLoc(), "argument ")
             << pairs[0] << ", '" << argumentNameOf(program, pairs[0])
             << "': no tensor of the input says how long it is";
    sizes.extents.push_back(*length);
  }
  return sizes;
}

/// Makes up the arguments that `made` says.
static LogicalResult makeUp(func::FuncOp program, const llvm::BitVector &made,
                            uint64_t seed, const Sizes &sizes,
                            MutableArrayRef<Argument> globals) {
  FailureOr<std::vector<Argument>> described = describeGlobals(program, sizes);
  if (failed(described) || failed(checkMemory(program, *described)))
    return failure();
  for (unsigned index : made.set_bits()) {
    ArrayRef<int64_t> shape;
    if (const TensorRef &table = (*described)[index].table)
      shape = table->shape;
    std::string error;
    std::optional<Argument> argument =
        makeArgument(program, index, shape, seed, error);
    if (!argument)
      return emitError(program.getLoc(), "argument ")
             << index << ", '" << argumentNameOf(program, index)
             << "': " << error;
    globals[index] = std::move(*argument);
  }
  return success();
}

FailureOr<std::vector<Argument>>
burst::makeGlobals(func::FuncOp program, const data::Tensors *archive,
                   uint64_t seed, const Sizes &sizes) {
  std::vector<Argument> globals(program.getNumArguments());
  llvm::BitVector made(program.getNumArguments());
  for (unsigned index = 0; index < made.size(); ++index)
    // A length follows from the shape of its tensor.
    made[index] = !program.getArgAttr(index, ring::extentAttr);
  if (archive && failed(takeGlobals(program, *archive, globals, made)))
    return failure();
  FailureOr<Sizes> open = sizes;
  if (archive && made.any())
    open = openSizesOf(program, globals);
  if (failed(open) ||
      (made.any() && failed(makeUp(program, made, seed, *open, globals))) ||
      failed(checkGlobals(program, globals)))
    return failure();
  return globals;
}
