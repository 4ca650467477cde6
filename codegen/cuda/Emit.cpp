//===- Emit.cpp - kernels as CUDA C++ -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Emitter.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

llvm::raw_ostream &Emitter::line() { return os.indent(2 * depth); }

//===----------------------------------------------------------------------===//
// Kernel
//===----------------------------------------------------------------------===//

/// Whether a kernel writes to rows.
static bool isStored(Value view) {
  return llvm::any_of(view.getUsers(), [&](Operation *user) {
    if (auto cast = dyn_cast<memref::CastOp>(user))
      return isStored(cast);
    auto store = dyn_cast<tile::StoreOp>(user);
    return store && store.getView() == view;
  });
}

/// The boxes that are loaded by TMA of views of an argument.
static void findBoxes(Value view, llvm::SetVector<TmaLoadOp> &boxes) {
  for (Operation *user : view.getUsers()) {
    if (auto load = dyn_cast<TmaLoadOp>(user))
      boxes.insert(load);
    else if (isa<memref::SubViewOp>(user))
      findBoxes(user->getResult(0), boxes);
  }
}

/// Whether a view is of a parameter that is a map.
static bool isBox(Value view) {
  llvm::SetVector<TmaLoadOp> boxes;
  findBoxes(view, boxes);
  return !boxes.empty();
}

/// The map of an argument of which boxes are loaded by TMA: panels of a tile.
static FailureOr<std::optional<MapText>> mapOf(BlockArgument argument) {
  llvm::SetVector<TmaLoadOp> boxes;
  findBoxes(argument, boxes);
  std::optional<MapText> map;
  if (boxes.empty())
    return map;
  auto refuse = [&](Operation *op, StringRef why) {
    return op->emitOpError("uses argument ")
           << argument.getArgNumber() << ", " << why;
  };
  for (Operation *user : argument.getUsers())
    if (!isa<memref::SubViewOp>(user) || !isBox(user->getResult(0)))
      return refuse(user, "of which boxes are loaded by TMA, in another way");
  if (typeOf(argument).getRank() != 4)
    return refuse(boxes.front(), "whose rank is not 4");
  for (TmaLoadOp load : boxes) {
    MemRefType tile = typeOf(load.getStage());
    int64_t columns = tile.getDimSize(1);
    int64_t width = columns % 64 == 0 ? 64 : columns % 32 == 0 ? 32 : 16;
    std::vector<int64_t> box{1, tile.getDimSize(0), 1, width};
    if (map && map->box != box)
      return refuse(load, "of which boxes of other sizes are loaded by TMA");
    map = MapText{tile.getElementType(), box, 2 * width};
  }
  return map;
}

LogicalResult Emitter::parameter(BlockArgument argument, std::string &text) {
  StringRef called = names.define(argument, "argument");
  auto type = dyn_cast<MemRefType>(argument.getType());
  int64_t alignment = 8, bytes = 0;
  if (type) // a pointer, steps and sizes
    bytes = llvm::alignTo(8 + 12 * type.getRank(), 8);
  else if (argument.getType().isIndex()) // an int
    bytes = alignment = 4;
  else
    bytes = alignment =
        llvm::divideCeil(argument.getType().getIntOrFloatBitWidth(), 8);
  argumentBytes = llvm::alignTo(argumentBytes, alignment);
  parameters.push_back({called.str(), argumentBytes, bytes, {}});
  argumentBytes += bytes;
  if (!type) {
    text = formatv("{0} {1}", scalars.typeName(argument.getType()), called);
    return success();
  }
  FailureOr<std::optional<MapText>> map = mapOf(argument);
  if (failed(map))
    return failure();
  parameters.back().map = *map;
  if (*map) {
    text = formatv("const __grid_constant__ TensorMap {0}", called);
    return success();
  }
  bool written = llvm::any_of(argument.getUsers(), [](Operation *user) {
    auto view = dyn_cast<memref::SubViewOp>(user);
    return view && isStored(view);
  });
  text = formatv("Buffer<{0}{1}, {2}> {3}", written ? "" : "const ",
                 scalars.elementName(type.getElementType()), type.getRank(),
                 called);
  return success();
}

FailureOr<KernelText> Emitter::emit() {
  auto warps = kernel->getAttrOfType<IntegerAttr>(tile::warpsAttr);
  if (!warps)
    return kernel.emitOpError("has no ")
           << tile::warpsAttr << "; run ring-lower-to-tile with warps";
  // All tiles of a kernel have as many rows.
  int64_t rows = 0;
  kernel.walk([&](memref::AllocaOp op) {
    if (isPrivate(op.getType()) && op.getType().getRank() == 2)
      rows = op.getType().getDimSize(0);
  });
  if (rows == 0)
    return kernel.emitOpError("has no block in registers");

  Block &entry = kernel.getBody().front();
  SmallVector<std::string> listed{"const i32 *order"};
  names.reserve("order");
  names.reserve("warpgroup");
  for (BlockArgument argument : entry.getArguments().drop_front())
    if (failed(parameter(argument, listed.emplace_back())))
      return failure();
  int64_t allWarps = warps.getInt();
  kernel.walk([&](WarpSpecializeOp op) { specialized = op; });
  placePipelines();
  std::string bounds = "Group::Threads";
  if (specialized) {
    bounds += formatv(" + {0}, 1", 32 * specialized.getWarps());
    allWarps += specialized.getWarps();
  } else if (allWarps <= 4) {
    // Else ptxas may aim at three blocks, and spill at 168 registers.
    bounds += ", 2";
  }
  os << "using Group = Warps<" << rows << ", " << warps.getInt() << ">;\n\n";
  os << "extern \"C\" __global__ void __launch_bounds__(" << bounds << ")\n"
     << kernel.getName() << "(\n    " << llvm::join(listed, ",\n    ")
     << ") {\n";
  StringRef task = names.define(entry.getArgument(0), "task");
  line() << "const int " << task
         << " = order ? order[blockIdx.x] : blockIdx.x;\n";
  if (failed(emit(entry)))
    return failure();
  os << "}\n";
  return KernelText{kernel.getName().str(),
                    std::move(text),
                    allWarps,
                    sharedBytes,
                    std::move(parameters),
                    static_cast<int64_t>(llvm::alignTo(argumentBytes, 8)),
                    static_cast<bool>(specialized)};
}

LogicalResult Emitter::emit(Block &block) {
  for (Operation &op : block)
    if (failed(emit(&op)))
      return failure();
  return success();
}

FailureOr<KernelText> cuda::emitKernel(func::FuncOp kernel) {
  return Emitter(kernel).emit();
}

//===----------------------------------------------------------------------===//
// Control flow and memory
//===----------------------------------------------------------------------===//

bool cuda::isNarrow(Value argument) {
  return llvm::all_of(argument.getUsers(), [](Operation *user) {
    return isa<tensor::ExtractOp>(user) ||
           (isa<arith::IndexCastOp, arith::IndexCastUIOp>(user) &&
            user->getResult(0).getType().isInteger(32));
  });
}

LogicalResult Emitter::emit(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp, scf::IfOp, memref::AllocaOp, memref::SubViewOp,
            tile::LoadOp, tile::MultiplyOp, tile::MapOp, tile::MapGradientOp,
            PipelineOp, WarpSpecializeOp, AwaitOp, MaskBitsOp>(
          [&](auto op) -> LogicalResult { return emit(op); })
      .Case<scf::YieldOp, func::ReturnOp>(
          [](auto) -> LogicalResult { return success(); })
      .Case([&](memref::LoadOp load) -> LogicalResult {
        std::string indices =
            llvm::join(llvm::map_range(load.getIndices(),
                                       [&](Value v) { return name(v); }),
                       ", ");
        Type type = load.getType();
        StringRef called = names.define(load, "number");
        line() << formatv("const {0} {1} = {2}.at({3});\n",
                          scalars.typeName(type), called,
                          name(load.getMemRef()), indices);
        return success();
      })
      .Case([&](memref::CastOp cast) -> LogicalResult {
        names.alias(cast, name(cast.getSource()).str());
        return success();
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
          [&](auto cast) -> LogicalResult {
            auto argument = dyn_cast<BlockArgument>(cast.getIn());
            if (!argument ||
                !isa<tile::MapOp, tile::MapGradientOp, MaskBitsOp>(
                    argument.getOwner()->getParentOp()) ||
                !isNarrow(argument))
              return emitScalar(cast);
            names.alias(cast, name(argument).str());
            return success();
          })
      .Case([&](memref::CopyOp copy) -> LogicalResult {
        if (!isPrivate(copy.getSource().getType()) ||
            copy.getSource().getType() != copy.getTarget().getType())
          return copy.emitOpError("has text for blocks in registers only");
        line() << formatv("{0} = {1};\n", name(copy.getTarget()),
                          name(copy.getSource()));
        return success();
      })
      .Case([&](memref::DimOp dim) -> LogicalResult {
        std::optional<int64_t> index = dim.getConstantIndex();
        if (!index)
          return dim.emitOpError("needs a constant dimension in a kernel");
        names.alias(dim,
                    formatv("{0}.size[{1}]", name(dim.getSource()), *index));
        return success();
      })
      .Default([&](Operation *op) -> LogicalResult {
        if (isa<tile::TileDialect, cuda::CudaDialect>(op->getDialect()))
          return emitTile(op);
        return emitScalar(op);
      });
}

LogicalResult Emitter::emitScalar(Operation *op) {
  std::string expression;
  if (failed(scalars.print(op, expression)))
    return failure();
  if (!expression.empty())
    line() << formatv("const {0} {1} = {2};\n",
                      scalars.typeName(op->getResult(0).getType()),
                      names.define(op->getResult(0), "x"), expression);
  return success();
}

LogicalResult Emitter::emit(scf::ForOp op) {
  if (op.getNumResults() != 0)
    return op.emitOpError("carries values, for which kernels have no text");
  os << "#pragma unroll 1\n";
  StringRef iteration = names.define(op.getInductionVar(), "iteration");
  line() << formatv("for (int {0} = {1}; {0} < {2}; {0} += {3}) {{\n",
                    iteration, name(op.getLowerBound()),
                    name(op.getUpperBound()), name(op.getStep()));
  ++depth;
  LogicalResult result = emit(*op.getBody());
  --depth;
  line() << "}\n";
  return result;
}

/// A branch of an op, and what it gives.
LogicalResult Emitter::emitBranch(scf::IfOp op, Block &block) {
  ++depth;
  LogicalResult result = emit(block);
  for (auto [to, from] :
       llvm::zip_equal(op.getResults(), block.getTerminator()->getOperands()))
    line() << name(to) << " = " << name(from) << ";\n";
  --depth;
  return result;
}

LogicalResult Emitter::emit(scf::IfOp op) {
  for (Value value : op.getResults()) {
    if (!value.getType().isIntOrIndexOrFloat())
      return op.emitOpError("gives ")
             << value.getType() << ", for which kernels have no text";
    StringRef called = names.define(value, "x");
    line() << scalars.typeName(value.getType()) << " " << called << ";\n";
  }
  line() << "if (" << name(op.getCondition()) << ") {\n";
  LogicalResult result = emitBranch(op, *op.thenBlock());
  if (succeeded(result) && op.elseBlock()) {
    line() << "} else {\n";
    result = emitBranch(op, *op.elseBlock());
  }
  line() << "}\n";
  return result;
}

/// A block: a tile in shared memory, or an accumulator or numbers of rows in
/// registers. Sums of exponentials are kept by thread.
LogicalResult Emitter::emit(memref::AllocaOp op) {
  MemRefType type = op.getType();
  if (isShared(type)) {
    StringRef called = names.define(op, "tile");
    line() << formatv(
        "const SharedTile<{0}, {1}> {2}{{sharedMemory() + {3}};\n",
        type.getDimSize(0), type.getDimSize(1), called, sharedBytes);
    sharedBytes += type.getNumElements() * 2;
    return success();
  }
  if (type.getElementType().isIndex()) { // named where it is filled
    names.alias(op, "unfilled");
    return success();
  }
  if (!isPrivate(type))
    return op.emitOpError("lies neither in shared memory nor in registers: ")
           << type;
  if (type.getRank() == 2 && !type.getElementType().isF32()) {
    line() << formatv("Weights<Group, {0}, {1}> {2};\n",
                      scalars.elementName(type.getElementType()),
                      type.getDimSize(1), names.define(op, "weights"));
    return success();
  }
  if (type.getRank() == 2) {
    line() << formatv("Accumulator<Group, {0}> {1};\n", type.getDimSize(1),
                      names.define(op, "sums"));
    return success();
  }
  bool areSums = false, areColumns = false;
  for (Operation *user : op->getUsers()) {
    if (auto weights = dyn_cast<tile::ExponentialsOp>(user))
      areSums |= weights.getL() == op;
    else if (auto weights = dyn_cast<tile::WeightsOp>(user))
      areColumns |= weights.getTransposed();
    else if (auto differentials = dyn_cast<tile::DifferentialsOp>(user))
      areColumns |= differentials.getTransposed();
  }
  if (areColumns)
    line() << formatv("ColumnVector<Group, {0}> {1};\n", type.getDimSize(0),
                      names.define(op, "columns"));
  else
    line() << formatv("{0}<Group> {1};\n", areSums ? "RowSums" : "RowVector",
                      names.define(op, "rows"));
  return success();
}

/// Rows of a shard.
LogicalResult Emitter::emit(memref::SubViewOp op) {
  llvm::SmallBitVector dropped = op.getDroppedDims();
  SmallVector<std::string> indices;
  auto scalar = [&](OpFoldResult number) -> std::string {
    if (auto value = dyn_cast<Value>(number))
      return name(value).str();
    return std::to_string(cast<IntegerAttr>(cast<Attribute>(number)).getInt());
  };
  int64_t rowDim = -1;
  for (auto [d, offset] : llvm::enumerate(op.getMixedOffsets())) {
    indices.push_back(scalar(offset));
    if (rowDim < 0 && !dropped.test(d))
      rowDim = static_cast<int64_t>(d);
  }
  StringRef source = name(op.getSource());
  StringRef called = names.define(op, "view");
  if (isBox(op)) {
    line() << formatv("const auto {0} = boxOf({1}, {2});\n", called, source,
                      llvm::join(indices, ", "));
    return success();
  }
  line() << formatv("const auto {0} = rowsOf<{1}>({2}, {3}, {4});\n", called,
                    rowDim, source, scalar(op.getMixedSizes()[rowDim]),
                    llvm::join(indices, ", "));
  return success();
}
