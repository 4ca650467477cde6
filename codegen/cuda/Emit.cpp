//===- Emit.cpp - kernels as CUDA C++ -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Emit.h"
#include "codegen/cuda/Names.h"
#include "codegen/cuda/Scalars.h"
#include "dialect/Cuda/Cuda.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

namespace {

/// Prints one kernel. What an op computes gets a name, and each tile op is a
/// call of the device library.
class Emitter {
public:
  explicit Emitter(func::FuncOp kernel) : kernel(kernel), scalars(names) {}

  FailureOr<KernelText> emit();

private:
  LogicalResult emit(Block &block);
  LogicalResult emit(Operation *op);
  LogicalResult emitScalar(Operation *op);
  LogicalResult emit(scf::ForOp op);
  LogicalResult emitBranch(scf::IfOp op, Block &block);
  LogicalResult emit(scf::IfOp op);
  LogicalResult emit(memref::AllocaOp op);
  LogicalResult emit(memref::SubViewOp op);
  LogicalResult emit(tile::MultiplyOp op);
  LogicalResult emit(tile::MapOp op);
  LogicalResult emit(tile::MapGradientOp op);
  LogicalResult emit(MaskBitsOp op);
  template <typename OpT>
  SmallVector<StringRef>
  emitPlaces(OpT op, ArrayRef<std::pair<Region *, unsigned>> regions,
             bool isTransposed = false);
  FailureOr<std::string> emitRegion(Region &region, unsigned first,
                                    ArrayRef<StringRef> places,
                                    ValueRange captures);
  LogicalResult emitTile(Operation *op);
  void placePipelines();
  LogicalResult emit(PipelineOp op);
  LogicalResult emit(WarpSpecializeOp op);
  LogicalResult emit(AwaitOp op);
  LogicalResult emitHopper(Operation *op);
  LogicalResult parameter(BlockArgument argument, std::string &text);

  llvm::raw_ostream &line();
  StringRef name(Value value) { return names.of(value); }
  std::string unitOf(Value scores);

  func::FuncOp kernel;
  Names names;
  Scalars scalars;
  std::string text;
  llvm::raw_string_ostream os{text};
  unsigned depth = 1;
  int64_t sharedBytes = 0;
  WarpSpecializeOp specialized;                   ///< or null
  StringRef warpgroup = "uniformWarpgroup()";     ///< of a consumer
  llvm::SmallDenseMap<Operation *, Place> places; ///< of pipelines
  std::vector<ParameterText> parameters{{"order", 0, 8, {}}};
  int64_t argumentBytes = 8;
};

} // namespace

static MemRefType typeOf(Value value) {
  return cast<MemRefType>(value.getType());
}

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
    else if (isa<memref::SubViewOp, arith::SelectOp>(user))
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
  auto warps = kernel->getAttrOfType<IntegerAttr>(warpsAttr);
  if (!warps)
    return kernel.emitOpError("has no ")
           << warpsAttr << "; run ring-lower-to-tile with warps";
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

//===----------------------------------------------------------------------===//
// Control flow and memory
//===----------------------------------------------------------------------===//

/// Whether a region uses an argument in 32 bits only, as narrowing leaves it:
/// by casts, and as a place in a table.
static bool isNarrow(Value argument) {
  return llvm::all_of(argument.getUsers(), [](Operation *user) {
    return isa<tensor::ExtractOp>(user) ||
           (isa<arith::IndexCastOp, arith::IndexCastUIOp>(user) &&
            user->getResult(0).getType().isInteger(32));
  });
}

LogicalResult Emitter::emit(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<scf::ForOp, scf::IfOp, memref::AllocaOp, memref::SubViewOp,
            tile::MultiplyOp, tile::MapOp, tile::MapGradientOp, PipelineOp,
            WarpSpecializeOp, AwaitOp, MaskBitsOp>(
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
        if (auto select = dyn_cast<arith::SelectOp>(op);
            select && isa<MemRefType>(select.getType())) {
          line() << formatv(
              "const auto {0} = {1} ? {2} : {3};\n",
              names.define(select, "view"), name(select.getCondition()),
              name(select.getTrueValue()), name(select.getFalseValue()));
          return success();
        }
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

//===----------------------------------------------------------------------===//
// Tile ops
//===----------------------------------------------------------------------===//

/// What scales scores of a block to base 2: the factor of the product that
/// makes them, where nothing looks at them before the exponentials do, which
/// apply it with their own subtraction.
std::string Emitter::unitOf(Value scores) {
  std::optional<APFloat> unit;
  for (Operation *user : scores.getUsers()) {
    if (auto map = dyn_cast<tile::MapOp>(user); map && !map.getScore().empty())
      return "1.f";
    std::optional<APFloat> factor;
    if (auto product = dyn_cast<tile::MultiplyOp>(user);
        product && product.getC() == scores)
      factor = product.getFactor();
    else if (auto product = dyn_cast<MultiplyAsyncOp>(user);
             product && product.getC() == scores)
      factor = product.getFactor();
    if (!factor)
      continue;
    if (unit && unit->compare(*factor) != APFloat::cmpEqual)
      return "1.f";
    unit = factor;
  }
  // A reference is a maximum only of what a positive number scales.
  if (!unit || unit->isNegative() || unit->isZero())
    return "1.f";
  return scalars.literal(*unit, /*isDouble=*/false);
}

LogicalResult Emitter::emit(tile::MultiplyOp op) {
  StringRef a = name(op.getA()), b = name(op.getB()), c = name(op.getC());
  Type operand = typeOf(op.getB()).getElementType();
  if (typeOf(op.getB()).getRank() != 2)
    return op.emitOpError("is of panels, which a GPU has no text for");
  if (isPrivate(op.getA().getType()) == op.getByRows())
    return op.emitOpError(
        "has text for two tiles in shared memory by rows, and "
        "for weights in registers with a tile as it is");
  line() << "// " << c << (op.getAccumulate() ? " += " : " = ") << a << ' ' << b
         << (op.getByRows() ? "^T\n" : "\n");
  if (!op.getAccumulate())
    line() << formatv("fill({0}, 0.f);\n", c);
  line() << formatv("{0}<{1}>({2}, {3}, {4});\n",
                    op.getByRows() ? "multiplyTransposed" : "multiply",
                    scalars.elementName(operand), c, a, b);
  if (!op.getFactor().isExactlyValue(1.0) && unitOf(op.getC()) == "1.f")
    line() << formatv("scale({0}, {1});\n", c,
                      scalars.literal(op.getFactor(), /*isDouble=*/false));
  return success();
}

/// Names the leading arguments of regions of a map, those that are used. They
/// fit in 32 bits, but what a mask makes of them may not. Each region comes
/// with the number of its first argument that is one of them.
template <typename OpT>
SmallVector<StringRef>
Emitter::emitPlaces(OpT op, ArrayRef<std::pair<Region *, unsigned>> regions,
                    bool isTransposed) {
  struct Leading {
    StringRef name;
    Value value;
    StringRef place; ///< of a position
  };
  StringRef row = ".at(row)", column = ".at(column)";
  const Leading leading[] = {{"b", op.getBatch(), ""},
                             {"h", op.getHead(), ""},
                             {"i", op.getI(), isTransposed ? column : row},
                             {"j", op.getJ(), isTransposed ? row : column},
                             {"sq", op.getQueries(), ""},
                             {"sk", op.getKeys(), ""}};
  SmallVector<StringRef> called(std::size(leading));
  for (auto [n, argument] : llvm::enumerate(leading)) {
    bool isUsed = false, fits = true;
    for (auto [region, first] : regions)
      if (!region->empty()) {
        isUsed |= !region->front().getArgument(first + n).use_empty();
        fits &= isNarrow(region->front().getArgument(first + n));
      }
    if (!isUsed)
      continue;
    called[n] = names.fresh(argument.name);
    line() << formatv("const {0} {1} = {2}{3};\n", fits ? "int" : "i64",
                      called[n], name(argument.value), argument.place);
  }
  return called;
}

/// Prints a region whose leading arguments begin at `first`; gives what it
/// yields.
FailureOr<std::string> Emitter::emitRegion(Region &region, unsigned first,
                                           ArrayRef<StringRef> places,
                                           ValueRange captures) {
  Block &block = region.front();
  for (auto [n, place] : llvm::enumerate(places))
    if (!place.empty())
      names.alias(block.getArgument(first + n), place.str());
  for (auto [argument, value] : llvm::zip_equal(
           block.getArguments().take_back(captures.size()), captures))
    names.alias(argument, name(value).str());
  for (Operation &inner : block.without_terminator())
    if (failed(emit(&inner)))
      return failure();
  return name(block.getTerminator()->getOperand(0)).str();
}

LogicalResult Emitter::emit(tile::MapOp op) {
  Region &mask = op.getMask(), &score = op.getScore();
  StringRef scores = name(op.getS());
  line() << "// " << (score.empty() ? "" : "score, ")
         << (mask.empty() ? "ends" : "mask") << " of " << scores << '\n';
  line() << formatv("map({0}, [&](float s, int row, int column) {{\n", scores);
  ++depth;
  Scalars::Wide wide(scalars);
  SmallVector<StringRef> places =
      emitPlaces(op, {{&mask, 0}, {&score, 1}}, op.getTransposed());
  std::string scored = "s", kept;
  if (!score.empty()) {
    names.alias(score.front().getArgument(0), "s");
    FailureOr<std::string> yielded =
        emitRegion(score, 1, places, op.getScoreCaptures());
    if (failed(yielded))
      return failure();
    scored =
        formatv("{0} * {1}", scalars.literal(op.getUnit(), false), *yielded);
  }
  if (!mask.empty()) {
    FailureOr<std::string> yielded =
        emitRegion(mask, 0, places, op.getMaskCaptures());
    if (failed(yielded))
      return failure();
    kept = " && " + *yielded;
  }
  line() << formatv("return column < {0}{1} ? {2} : -infinity();\n",
                    name(op.getColumns()), kept, scored);
  --depth;
  line() << "});\n";
  return success();
}

LogicalResult Emitter::emit(tile::MapGradientOp op) {
  if (!op.getGrads().empty())
    return op.emitOpError("adds to gradients of captured tables, for which "
                          "there is no text for GPUs");
  Region &gradient = op.getGradient();
  StringRef w = name(op.getW()), t = name(op.getT());
  line() << formatv("// {0}: by what was scored, {1}\n", w, t);
  line() << formatv(
      "mapGradient({0}, {1}, [&](float w, float t, int row, int column) {{\n",
      w, t);
  ++depth;
  Scalars::Wide wide(scalars);
  SmallVector<StringRef> places =
      emitPlaces(op, {{&gradient, 1}}, op.getTransposed());
  Block &block = gradient.front();
  names.alias(block.getArgument(0), "t");
  names.alias(block.getArgument(7), "w");
  FailureOr<std::string> yielded =
      emitRegion(gradient, 1, places, op.getCaptures());
  if (failed(yielded))
    return failure();
  line() << formatv("return column < {0} ? {1} : 0.f;\n", name(op.getColumns()),
                    *yielded);
  --depth;
  line() << "});\n";
  return success();
}

LogicalResult Emitter::emit(MaskBitsOp op) {
  StringRef bits = name(op.getStage());
  line() << "// mask, as " << bits << '\n';
  line() << formatv("maskBits<Group>({0}, [&](int row, int column) {{\n", bits);
  ++depth;
  Scalars::Wide wide(scalars);
  SmallVector<StringRef> places = emitPlaces(op, {{&op.getMask(), 0}});
  FailureOr<std::string> kept =
      emitRegion(op.getMask(), 0, places, op.getCaptures());
  if (failed(kept))
    return failure();
  line() << formatv("return column < {0} && {1};\n", name(op.getColumns()),
                    *kept);
  --depth;
  line() << "});\n";
  return success();
}

LogicalResult Emitter::emitTile(Operation *op) {
  auto f32 = [&](const APFloat &number) {
    return scalars.literal(number, /*isDouble=*/false);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](CopyOp op) -> LogicalResult {
        int64_t columns = typeOf(op.getView()).getDimSize(1);
        line() << formatv("copy<Group, {0}>({1}, {2});\n", columns,
                          name(op.getBlock()), name(op.getView()));
        return success();
      })
      .Case([&](CommitOp) -> LogicalResult {
        line() << "commit();\n";
        return success();
      })
      .Case([&](WaitOp op) -> LogicalResult {
        line() << formatv("wait<{0}>();\n", op.getPending());
        return success();
      })
      .Case([&](SynchronizeOp) -> LogicalResult {
        line() << "synchronize();\n";
        return success();
      })
      .Case([&](tile::LoadOp op) -> LogicalResult {
        if (!isPrivate(op.getBlock().getType()))
          return LogicalResult(op.emitOpError(
              "is to shared memory; run cuda-stage-copies first"));
        bool isScaled = !op.getFactor().isExactlyValue(1.0);
        if (typeOf(op.getBlock()).getRank() == 1) {
          line() << formatv("load({0}, {1}, {2}{3});\n", name(op.getBlock()),
                            name(op.getView()), f32(op.getPadding()),
                            isScaled ? ", " + f32(op.getFactor()) : "");
          return success();
        }
        if (isScaled || !op.getPadding().isZero())
          return LogicalResult(
              op.emitOpError("of a tile has text with factor 1 and padding 0 "
                             "only, got: ")
              << op.getFactorAttr() << " and " << op.getPaddingAttr());
        line() << formatv("load<{0}>({1}, {2});\n",
                          typeOf(op.getView()).getDimSize(1),
                          name(op.getBlock()), name(op.getView()));
        return success();
      })
      .Case([&](tile::StoreOp op) -> LogicalResult {
        if (typeOf(op.getBlock()).getRank() == 2)
          line() << formatv("store<{0}>({1}, {2});\n",
                            typeOf(op.getView()).getDimSize(1),
                            name(op.getBlock()), name(op.getView()));
        else
          line() << formatv("store({0}, {1});\n", name(op.getBlock()),
                            name(op.getView()));
        return success();
      })
      .Case([&](tile::FillOp op) -> LogicalResult {
        line() << formatv("fill({0}, {1});\n", name(op.getBlock()),
                          f32(op.getValue()));
        return success();
      })
      .Case([&](tile::PositionsOp op) -> LogicalResult {
        line() << formatv("const Positions<{0}, {1}> {2}{{{3}, {4}};\n",
                          name(op.getStep()), name(op.getBlock()),
                          names.define(op.getPositions(), "positions"),
                          name(op.getFirst()), name(op.getBegin()));
        return success();
      })
      .Case([&](tile::RowMaxOp op) -> LogicalResult {
        line() << formatv("rowMax({0}, {1}, {2}, {3});\n", name(op.getS()),
                          name(op.getM()), name(op.getFactor()),
                          unitOf(op.getS()));
        return success();
      })
      .Case([&](tile::ExponentialsOp op) -> LogicalResult {
        if (op.getP())
          return LogicalResult(op.emitOpError(
              "writes weights to a block of their own, which a GPU does not "
              "need"));
        line() << formatv("exponentials({0}, {1}, {2}, {3}, {4});\n",
                          name(op.getS()), name(op.getM()), name(op.getL()),
                          name(op.getFactor()), unitOf(op.getS()));
        return success();
      })
      .Case([&](tile::RescaleOp op) -> LogicalResult {
        line() << formatv("rescale({0}, {1});\n", name(op.getO()),
                          name(op.getFactor()));
        return success();
      })
      .Case([&](tile::RowDotOp op) -> LogicalResult {
        line() << formatv("rowDot({0}, {1}, {2});\n", name(op.getA()),
                          name(op.getB()), name(op.getX()));
        return success();
      })
      .Case([&](tile::WeightsOp op) -> LogicalResult {
        line() << formatv("weights({0}, {1}, {2});\n", name(op.getS()),
                          name(op.getLse()), unitOf(op.getS()));
        return success();
      })
      .Case([&](tile::DifferentialsOp op) -> LogicalResult {
        line() << formatv("differentials({0}, {1}, {2}, {3});\n",
                          name(op.getP()), name(op.getDp()),
                          name(op.getDelta()), f32(op.getFactor()));
        return success();
      })
      .Case([&](tile::MergeOp op) -> LogicalResult {
        line() << formatv("merge({0}, {1}, {2}, {3}, {4}, {5});\n",
                          name(op.getO()), name(op.getM()), name(op.getL()),
                          name(op.getO2()), name(op.getM2()), name(op.getL2()));
        return success();
      })
      .Case([&](tile::NormalizeOp op) -> LogicalResult {
        line() << formatv("normalize({0}, {1}, {2});\n", name(op.getO()),
                          name(op.getM()), name(op.getL()));
        return success();
      })
      .Case([&](tile::AddOp op) -> LogicalResult {
        line() << formatv("add({0}, {1});\n", name(op.getA()), name(op.getB()));
        return success();
      })
      .Default([&](Operation *op) -> LogicalResult { return emitHopper(op); });
}

//===----------------------------------------------------------------------===//
// Warp-specialized kernels
//===----------------------------------------------------------------------===//

void Emitter::placePipelines() {
  SmallVector<PipelineType> types;
  SmallVector<Operation *> ops;
  SmallVector<Place> found;
  kernel.walk([&](PipelineOp op) {
    types.push_back(op.getPipeline().getType());
    ops.push_back(op);
  });
  sharedBytes = cuda::placePipelines(types, &found);
  for (auto [op, place] : llvm::zip_equal(ops, found))
    places[op] = place;
}

LogicalResult Emitter::emit(PipelineOp op) {
  PipelineType type = op.getPipeline().getType();
  Place place = places.lookup(op);
  line() << formatv("Pipeline<{0}<{1}, {2}>, {3}> {4}{{sharedMemory() + {5}, "
                    "sharedMemory() + {6}, Group::Count};\n",
                    type.isOfMaskBits() ? "SharedMaskBits" : "SharedTile",
                    type.getTile().getDimSize(0), type.getTile().getDimSize(1),
                    type.getStages(), names.define(op, "pipeline"),
                    place.stages, place.barriers);
  return success();
}

LogicalResult Emitter::emit(WarpSpecializeOp op) {
  auto body = [&](Region &region) {
    ++depth;
    LogicalResult result = emit(region.front());
    --depth;
    return result;
  };
  line() << "if (isProducer<Group>()) {\n";
  ++depth;
  line() << formatv("giveRegisters<{0}>();\n", op.getProducerRegisters());
  if (Region &maskWarps = op.getMaskWarps(); !maskWarps.empty()) {
    line() << "if (isMaskWarp<Group>()) {\n";
    if (failed(body(maskWarps)))
      return failure();
    line() << "} else if (isElected<Group>()) {\n";
  } else {
    line() << "if (isElected<Group>()) {\n";
  }
  if (failed(body(op.getProducer())))
    return failure();
  line() << "}\n";
  --depth;
  line() << "} else {\n";
  ++depth;
  line() << formatv("takeRegisters<{0}>();\n", op.getConsumerRegisters());
  // Without ping-pong scheduling outputs leave no register for it through the
  // loop.
  op.getConsumers().walk([&](PingPongBeginOp) { warpgroup = "warpgroup"; });
  if (warpgroup == "warpgroup")
    line() << "const int warpgroup = uniformWarpgroup();\n";
  --depth;
  if (failed(body(op.getConsumers())))
    return failure();
  line() << "}\n";
  return success();
}

/// How many products may be under way: those begun behind the one that is
/// awaited.
LogicalResult Emitter::emit(AwaitOp op) {
  auto begun = op.getToken().getDefiningOp<MultiplyAsyncOp>();
  int64_t pending = 0;
  for (Operation *other = begun->getNextNode(); other != op;
       other = other->getNextNode()) {
    if (other->walk([](MultiplyAsyncOp) { return WalkResult::interrupt(); })
            .wasInterrupted()) {
      if (!isa<MultiplyAsyncOp>(other))
        return op.emitOpError(
            "has products before it in a region of their own");
      ++pending;
    }
  }
  StringRef c = name(begun.getC());
  line() << formatv("await<{0}>({1});\n", pending, c);
  if (!begun.getFactor().isExactlyValue(1.0) && unitOf(begun.getC()) == "1.f")
    line() << formatv("scale({0}, {1});\n", c,
                      scalars.literal(begun.getFactor(), /*isDouble=*/false));
  return success();
}

LogicalResult Emitter::emitHopper(Operation *op) {
  auto stage = [&](auto op, StringRef how) -> LogicalResult {
    line() << formatv("const auto {0} = {1}.{2}();\n",
                      names.define(op.getStage(), "stage"),
                      name(op.getPipeline()), how);
    return success();
  };
  auto step = [&](auto op, StringRef how) -> LogicalResult {
    line() << formatv("{0}.{1}();\n", name(op.getPipeline()), how);
    return success();
  };
  auto pingPong = [&](StringRef how) -> LogicalResult {
    line() << formatv("PingPong<Group>::{0}();\n", how);
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ProducerAcquireOp op) { return stage(op, "producerAcquire"); })
      .Case([&](ConsumerWaitOp op) { return stage(op, "consumerWait"); })
      .Case([&](ProducerCommitOp op) { return step(op, "producerCommit"); })
      .Case([&](ConsumerReleaseOp op) { return step(op, "consumerRelease"); })
      .Case([&](TmaLoadOp op) -> LogicalResult {
        line() << formatv("tmaLoad({0}, {1});\n", name(op.getStage()),
                          name(op.getView()));
        return success();
      })
      .Case([&](ClearOp op) -> LogicalResult {
        line() << formatv("clear<Group>({0}, {1});\n", name(op.getStage()),
                          name(op.getCount()));
        return success();
      })
      .Case([&](ApplyMaskBitsOp op) -> LogicalResult {
        line() << formatv("applyMaskBits({0}, {1});\n", name(op.getS()),
                          name(op.getStage()));
        return success();
      })
      .Case([&](RoundOp op) -> LogicalResult {
        line() << formatv("round({0}, {1});\n", name(op.getS()),
                          name(op.getWeights()));
        return success();
      })
      .Case([&](PingPongBeginOp) { return pingPong("begin"); })
      .Case([&](PingPongWaitOp) { return pingPong("wait"); })
      .Case([&](PingPongSignalOp) { return pingPong("signal"); })
      .Case([&](PingPongEndOp) { return pingPong("end"); })
      .Case([&](MultiplyAsyncOp op) -> LogicalResult {
        StringRef a = name(op.getA()), b = name(op.getB()), c = name(op.getC());
        line() << "// " << c << (op.getAccumulate() ? " += " : " = ") << a
               << ' ' << b << (op.getByRows() ? "^T\n" : "\n");
        line() << formatv(
            "{0}<{1}, {2}>({3}, {4}, {5}{6});\n",
            op.getByRows() ? "beginMultiplyTransposed" : "beginMultiply",
            scalars.elementName(typeOf(op.getB()).getElementType()),
            op.getAccumulate(), c, a, b,
            op.getByRows() ? (", " + warpgroup).str() : "");
        return success();
      })
      .Default([](Operation *op) -> LogicalResult {
        return op->emitOpError("has no text for GPUs");
      });
}

FailureOr<KernelText> cuda::emitKernel(func::FuncOp kernel) {
  return Emitter(kernel).emit();
}
