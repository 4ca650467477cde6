//===- RingDialect.cpp - the ring dialect ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Ring.h"
#include "dialect/Ring/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

namespace {
/// Whatever is called may be inlined.
struct RingInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

#include "dialect/Ring/RingDialect.cpp.inc"
#include "dialect/Ring/RingEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/Ring/RingAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/Ring/RingTypes.cpp.inc"

void RingDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Ring/RingAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/Ring/RingTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Ring/RingOps.cpp.inc"
      >();
  addInterfaces<RingInliner>();
}

Operation *RingDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Order order = Order::Contiguous;
  int64_t block = 1, parts = 0;
  if (parser.parseLess() || parseOrder(parser, order, block) ||
      parser.parseKeyword("over") || parser.parseInteger(parts))
    return {};
  bool all = succeeded(parser.parseOptionalComma());
  if ((all && parser.parseKeyword("all")) || parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), order, block,
                                       parts, all);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printOrder(printer, getOrder(), getBlock());
  printer << " over " << getParts() << (getAll() ? ", all>" : ">");
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Order order, int64_t block, int64_t parts,
                                 bool) {
  if (parts < 1 || parts > maxRanks)
    return emitError() << "a layout has 1 to 2^20 parts, got: " << parts;
  if (block < 1 || block >= maxPositions / parts)
    return emitError() << "a block has 1 to 2^40 / parts positions, got: "
                       << block;
  if (block != 1 && order != Order::Striped)
    return emitError() << "a block is for striped only, got: "
                       << StringRef(stringifyOrder(order)) << ' ' << block;
  return success();
}

Attribute ShardAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  LayoutAttr layout;
  int64_t dim = 0, extent = ShapedType::kDynamic;
  if (parser.parseLess() || parser.parseAttribute(layout) ||
      parser.parseComma() || parser.parseKeyword("dim") ||
      parser.parseInteger(dim) || parser.parseKeyword("extent"))
    return {};
  if (failed(parser.parseOptionalQuestion()) && parser.parseInteger(extent))
    return {};
  SmallVector<int64_t> axes;
  if (succeeded(parser.parseOptionalKeyword("axes")) &&
      parseAxisList(parser, axes))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardAttr>(loc, parser.getContext(), layout, dim,
                                      extent, axes);
}

void ShardAttr::print(AsmPrinter &printer) const {
  printer << '<' << getLayout() << ", dim " << getDim() << " extent ";
  if (ShapedType::isDynamic(getExtent()))
    printer << '?';
  else
    printer << getExtent();
  if (!getAxes().empty()) {
    printer << " axes ";
    printAxisList(printer.getStream(), getAxes());
  }
  printer << '>';
}

LogicalResult ShardAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                LayoutAttr layout, int64_t dim, int64_t extent,
                                ArrayRef<int64_t> axes) {
  if (layout.getAll())
    return emitError() << "a shard is what one rank holds of a tensor that is "
                          "sharded, got the layout of a gathered one: "
                       << layout;
  if (dim < 0)
    return emitError() << "dim must not be negative, got: " << dim;
  if (!ShapedType::isDynamic(extent) && (extent < 0 || extent >= maxPositions))
    return emitError() << "extent must be in [0, 2^40), got: " << extent;
  return verifyAxes(emitError, axes);
}

Attribute ChannelAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FlatSymbolRefAttr grid;
  SmallVector<int64_t> axes;
  int64_t index = 0;
  if (parser.parseLess() || parseAxes(parser, grid, axes) ||
      parser.parseComma() || parser.parseInteger(index) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<ChannelAttr>(loc, parser.getContext(), grid, axes,
                                        index);
}

void ChannelAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, getGrid(), getAxes());
  printer << ", " << getIndex() << '>';
}

LogicalResult ChannelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  FlatSymbolRefAttr, ArrayRef<int64_t> axes,
                                  int64_t index) {
  if (index < 0)
    return emitError() << "a channel's number must not be negative, got: "
                       << index;
  return verifyAxes(emitError, axes);
}

//===----------------------------------------------------------------------===//
// Attributes of functions
//===----------------------------------------------------------------------===//

static LogicalResult verifySharding(FunctionOpInterface program);

LogicalResult RingDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == maxSlicesAttr)
    return verifyMaxSlices(op, attribute.getValue());
  if (attribute.getName() == apartAttr) {
    if (isa<AttendLikeOpInterface>(op) &&
        isa<IntegerAttr>(attribute.getValue()))
      return success();
    return op->emitError("'ring.apart' must be the number of an attend, got: ")
           << attribute.getValue();
  }
  if (attribute.getName() == headChunksAttr) {
    auto count = dyn_cast<IntegerAttr>(attribute.getValue());
    if (isa<FunctionOpInterface>(op) && count && count.getInt() >= 2 &&
        count.getInt() <= maxHeadChunks)
      return success();
    return op->emitError("'ring.head_chunks' of a function must be from 2 to ")
           << maxHeadChunks << ", got: " << attribute.getValue();
  }
  if (attribute.getName() != gridAttr)
    return op->emitError("unknown attribute: ") << attribute.getName();
  auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue());
  if (!isa<FunctionOpInterface>(op) || !name)
    return op->emitError("'ring.grid' must name the grid of a function, got: ")
           << attribute.getValue();
  auto grid =
      SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(op, name.getAttr());
  int64_t ranks = grid ? 1 : 0;
  for (int64_t size : grid ? grid.getShape() : ArrayRef<int64_t>()) {
    ranks = size < 1 || size > maxRanks ? 0 : ranks * size;
    if (ranks > maxRanks)
      ranks = 0;
  }
  if (ranks == 0)
    return op->emitError("'ring.grid' must name a grid of 1 to 2^20 ranks, "
                         "got: ")
           << name;
  return verifySharding(cast<FunctionOpInterface>(op));
}

bool burst::ring::isShard(ShapedType type, ShardAttr shard) {
  int64_t size = type.getDimSize(shard.getDim()), extent = shard.getExtent();
  if (ShapedType::isDynamic(size))
    return true;
  Layout layout = shard.getLayout().getValue();
  return !ShapedType::isDynamic(extent) && layout.isEven(extent) &&
         layout.count(0, extent) == size;
}

/// What `ring.shard` may say of a tensor of `type` in a program of `op`.
static LogicalResult verifyShardOf(Operation *op, Type type, StringRef name,
                                   Attribute value) {
  auto shard = dyn_cast<ShardAttr>(value);
  if (!shard)
    return op->emitError("'")
           << name << "' must be a #ring.shard, got: " << value;
  auto tensor = dyn_cast<ShapedType>(type);
  if (!tensor || !tensor.hasRank() || shard.getDim() >= tensor.getRank())
    return op->emitError("'") << name << "' names dimension " << shard.getDim()
                              << ", got: " << type;
  if (!op->hasAttr(gridAttr))
    return op->emitError("'") << name << "' needs a function with 'ring.grid'";
  auto program = cast<FunctionOpInterface>(op);
  int64_t axes = gridOf(program).getRank();
  if (!shard.getAxes().empty() && shard.getAxes().back() >= axes)
    return op->emitError("'") << name << "' names axis "
                              << shard.getAxes().back() << " of " << axes;
  int64_t ranks = ring::groupOf(program, shard.getAxes()).size;
  if (shard.getLayout().getParts() != ranks)
    return op->emitError("'") << name << "' must layout to the " << ranks
                              << " ranks of the grid, got: " << shard;
  if (!isShard(tensor, shard))
    return op->emitError("'") << name << "' does not give each rank a " << type
                              << ", got: " << shard;
  return success();
}

/// `ring.splits` of a tensor that `ring.shard` says all else of.
static LogicalResult verifySplitsOf(Operation *op, Type type, Attribute value,
                                    Attribute sequence) {
  auto splits = dyn_cast<ArrayAttr>(value);
  auto shard = dyn_cast_or_null<ShardAttr>(sequence);
  if (!splits || !shard)
    return op->emitError("'ring.splits' is an array of #ring.shard beside a "
                         "'ring.shard', got: ")
           << value;
  SmallVector<int64_t> dims{shard.getDim()};
  for (Attribute split : splits) {
    if (failed(verifyShardOf(op, type, splitsAttr, split)))
      return failure();
    auto part = cast<ShardAttr>(split);
    Layout layout = part.getLayout().getValue();
    bool isEven = ShapedType::isDynamic(part.getExtent()) ||
                  part.getExtent() % layout.parts == 0;
    auto tensor = cast<ShapedType>(type);
    bool isOfHeads = (tensor.getRank() == 3 || tensor.getRank() == 4) &&
                     part.getDim() == headsDimOf(tensor);
    if (layout.order != Order::Contiguous || !isEven ||
        (part.getDim() != 0 && !isOfHeads) ||
        llvm::is_contained(dims, part.getDim()))
      return op->emitError("'ring.splits' shards batch and heads, each once, "
                           "into equal contiguous parts, got: ")
             << split;
    dims.push_back(part.getDim());
  }
  return success();
}

static LogicalResult verifyExtentOf(FunctionOpInterface function, Type type,
                                    Attribute value) {
  auto extent = dyn_cast<DenseI64ArrayAttr>(value);
  if (!extent || extent.empty() || extent.size() % 2 != 0 || !type.isIndex())
    return function.emitError("'ring.extent' must be array<i64: argument, "
                              "dimension, ...> on an index argument, got: ")
           << value << " on " << type;
  for (int64_t i = 0; i < extent.size(); i += 2) {
    int64_t argument = extent[i], dim = extent[i + 1];
    if (argument < 0 || argument >= function.getNumArguments())
      return function.emitError("'ring.extent' names argument ")
             << argument << " of " << function.getNumArguments();
    auto tensor = dyn_cast<ShapedType>(function.getArgumentTypes()[argument]);
    if (!tensor || !tensor.hasRank() || dim < 0 || dim >= tensor.getRank())
      return function.emitError("'ring.extent' names dimension ")
             << dim << " of " << function.getArgumentTypes()[argument];
    auto shard = function.getArgAttrOfType<ShardAttr>(argument, shardAttr);
    if (!shard || shard.getDim() != dim)
      return function.emitError("'ring.extent' must name dimensions that "
                                "'ring.shard' shards, got: ")
             << value;
  }
  return success();
}

LogicalResult RingDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned index,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitError("attribute ")
           << attribute.getName() << " is for functions";
  Type type = function.getArgumentTypes()[index];
  if (attribute.getName() == shardAttr)
    return verifyShardOf(op, type, shardAttr, attribute.getValue());
  if (attribute.getName() == splitsAttr)
    return verifySplitsOf(op, type, attribute.getValue(),
                          function.getArgAttr(index, shardAttr));
  if (attribute.getName() == extentAttr)
    return verifyExtentOf(function, type, attribute.getValue());
  if (attribute.getName() == resultAttr || attribute.getName() == partialAttr) {
    if (isa<MemRefType>(type) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitError("'")
           << attribute.getName() << "' marks a buffer, got: " << type;
  }
  return op->emitError("unknown attribute of an argument: ")
         << attribute.getName();
}

LogicalResult RingDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (function && attribute.getName() == partialAttr &&
      isa<UnitAttr>(attribute.getValue()))
    return success();
  if (function && attribute.getName() == splitsAttr)
    return verifySplitsOf(op, function.getResultTypes()[index],
                          attribute.getValue(),
                          function.getResultAttr(index, shardAttr));
  if (!function || attribute.getName() != shardAttr)
    return op->emitError("unknown attribute of a result: ")
           << attribute.getName();
  return verifyShardOf(op, function.getResultTypes()[index], shardAttr,
                       attribute.getValue());
}

shard::GridOp burst::ring::gridOf(FunctionOpInterface program) {
  auto name = program->getAttrOfType<FlatSymbolRefAttr>(gridAttr);
  return SymbolTable::lookupNearestSymbolFrom<shard::GridOp>(program,
                                                             name.getAttr());
}

RankGroup burst::ring::groupOf(FunctionOpInterface program,
                               ArrayRef<int64_t> axes) {
  return burst::groupOf(gridOf(program), axes);
}

int64_t burst::ring::numRanks(FunctionOpInterface program) {
  return groupOf(program, {}).size;
}

Value burst::ring::createPlace(OpBuilder &builder, Location loc,
                               shard::GridOp grid, ArrayRef<int64_t> axes) {
  if (axes == ArrayRef(noAxis))
    return arith::ConstantIndexOp::create(builder, loc, 0);
  SmallVector<shard::GridAxis> named(axes.begin(), axes.end());
  if (named.empty())
    llvm::append_range(named, llvm::seq<shard::GridAxis>(grid.getRank()));
  // Along an axis of one rank all are the first; folds would hide the others.
  SmallVector<shard::GridAxis> several(named);
  llvm::erase_if(several, [&](shard::GridAxis axis) {
    return grid.getShape()[axis] == 1;
  });
  if (!several.empty())
    named = several;
  else
    named.truncate(1);
  auto places = shard::ProcessMultiIndexOp::create(builder, loc,
                                                   grid.getSymName(), named);
  Value place = places.getResult().front();
  for (auto [axis, next] :
       llvm::drop_begin(llvm::zip_equal(named, places.getResult()))) {
    Value size =
        arith::ConstantIndexOp::create(builder, loc, grid.getShape()[axis]);
    place = arith::AddIOp::create(
        builder, loc, arith::MulIOp::create(builder, loc, place, size), next);
  }
  return place;
}

std::optional<SmallVector<int64_t>>
burst::ring::matchAxes(FunctionOpInterface program, Value value) {
  shard::GridOp grid = gridOf(program);
  auto arePlaces = [&](shard::ProcessMultiIndexOp places) {
    return places && places.getGrid() == grid.getSymName();
  };
  // The last axis is added last.
  SmallVector<OpResult> parts;
  for (auto add = value.getDefiningOp<arith::AddIOp>(); add;
       add = value.getDefiningOp<arith::AddIOp>()) {
    auto scaled = add.getLhs().getDefiningOp<arith::MulIOp>();
    auto part = dyn_cast<OpResult>(add.getRhs());
    if (!scaled || !part)
      return std::nullopt;
    auto places = part.getDefiningOp<shard::ProcessMultiIndexOp>();
    if (!arePlaces(places) ||
        part.getResultNumber() >= places.getAxes().size() ||
        getConstantIntValue(scaled.getRhs()) !=
            grid.getShape()[places.getAxes()[part.getResultNumber()]])
      return std::nullopt;
    parts.push_back(part);
    value = scaled.getLhs();
  }
  auto first = dyn_cast<OpResult>(value);
  if (!first)
    return std::nullopt;
  parts.push_back(first);
  auto places = first.getDefiningOp<shard::ProcessMultiIndexOp>();
  if (!arePlaces(places))
    return std::nullopt;
  size_t numAxes = places.getResult().size();
  for (auto [index, part] : llvm::enumerate(llvm::reverse(parts)))
    if (part.getOwner() != places || part.getResultNumber() != index)
      return std::nullopt;
  if (parts.size() != numAxes)
    return std::nullopt;
  SmallVector<int64_t> axes(places.getAxes().begin(), places.getAxes().end());
  if (axes.empty())
    llvm::append_range(axes, llvm::seq<int64_t>(numAxes));
  return axes;
}

std::optional<RankGroup> burst::ring::groupAlong(FunctionOpInterface program,
                                                 ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> shape = gridOf(program).getShape();
  for (size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] <= axes[i - 1])
      return std::nullopt;
    for (int64_t axis = axes[i - 1] + 1; axis < axes[i]; ++axis)
      if (shape[axis] != 1)
        return std::nullopt;
  }
  return groupOf(program, axes);
}

std::optional<RankGroup> burst::ring::matchPlace(FunctionOpInterface program,
                                                 Value value) {
  std::optional<SmallVector<int64_t>> axes = matchAxes(program, value);
  return axes ? groupAlong(program, *axes) : std::nullopt;
}

SmallVector<ShardAttr> burst::ring::shardsOf(Attribute shard,
                                             Attribute splits) {
  SmallVector<ShardAttr> shards;
  // Attributes may not have been verified yet.
  auto sequence = dyn_cast_or_null<ShardAttr>(shard);
  if (!sequence)
    return shards;
  shards.push_back(sequence);
  if (auto others = dyn_cast_or_null<ArrayAttr>(splits))
    for (Attribute split : others)
      if (auto other = dyn_cast<ShardAttr>(split))
        shards.push_back(other);
  return shards;
}

SmallVector<ShardAttr> burst::ring::argumentShards(FunctionOpInterface program,
                                                   unsigned argument) {
  return shardsOf(program.getArgAttr(argument, shardAttr),
                  program.getArgAttr(argument, splitsAttr));
}

SmallVector<ShardAttr> burst::ring::resultShards(FunctionOpInterface program,
                                                 unsigned result) {
  return shardsOf(program.getResultAttr(result, shardAttr),
                  program.getResultAttr(result, splitsAttr));
}

static ring::Sharding shardingOf(shard::GridOp grid,
                                 ArrayRef<ShardAttr> shards) {
  ring::Sharding sharding;
  sharding.sequence = burst::groupOf(grid, shards.front().getAxes());
  for (ShardAttr split : shards.drop_front()) {
    RankGroup &group = split.getDim() == 0 ? sharding.batch : sharding.heads;
    group = burst::groupOf(grid, split.getAxes());
    sharding.isSplit = true;
  }
  return sharding;
}

/// How every tensor of a program that is sharded is.
static SmallVector<SmallVector<ShardAttr>>
allShards(FunctionOpInterface program) {
  SmallVector<SmallVector<ShardAttr>> all;
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    all.push_back(argumentShards(program, i));
  for (unsigned i = 0; i < program.getNumResults(); ++i)
    all.push_back(resultShards(program, i));
  llvm::erase_if(all, [](const auto &shards) { return shards.empty(); });
  return all;
}

/// How arguments and results are sharded.
static ring::Sharding shardingAround(FunctionOpInterface program) {
  SmallVector<SmallVector<ShardAttr>> all = allShards(program);
  if (!all.empty())
    return shardingOf(gridOf(program), all.front());
  ring::Sharding sharding;
  sharding.sequence = burst::groupOf(gridOf(program), {});
  return sharding;
}

ring::Sharding burst::ring::shardingOf(FunctionOpInterface program) {
  Sharding sharding = shardingAround(program);
  sharding.whole = sharding.sequence;
  TransferOpInterface first;
  program.walk([&](TransferOpInterface start) {
    if (!start.isAllToAll())
      return WalkResult::advance();
    first = start;
    return WalkResult::interrupt();
  });
  if (!first)
    return sharding;
  RankGroup members = groupOf(program, first.getChannel().getAxes());
  sharding.exchanged = members;
  sharding.sequence = {sharding.whole.size / members.size,
                       members.stride * members.size};
  sharding.isSplit = true;
  return sharding;
}

/// That of which `tensor` is a chunk of heads, or `tensor`.
static Value wholeOf(Value tensor) {
  auto take = tensor.getDefiningOp<TakeHeadsOp>();
  return take ? Value(take.getTensor()) : tensor;
}

TransferOpInterface burst::ring::allToAllOf(Value tensor) {
  auto wait = tensor.getDefiningOp<WaitOp>();
  auto start = wait ? wait.getToken().getDefiningOp<TransferOpInterface>()
                    : TransferOpInterface();
  return start && start.isAllToAll() ? start : TransferOpInterface();
}

Value burst::ring::behindAllToAll(Value tensor) {
  TransferOpInterface start = allToAllOf(tensor);
  if (!start)
    return tensor;
  return wholeOf(start.getTensors()[cast<OpResult>(tensor).getResultNumber()]);
}

/// Calls `visit` with each all-to-all that brings an argument, and its number.
static WalkResult walkBroughtArguments(
    FunctionOpInterface program,
    function_ref<WalkResult(TransferOpInterface, unsigned)> visit) {
  return program.walk([&](TransferOpInterface start) {
    if (start.getRoute() != Route::ToHeads)
      return WalkResult::advance();
    for (Value tensor : start.getTensors())
      if (auto argument = dyn_cast<BlockArgument>(wholeOf(tensor));
          argument && argument.getOwner()->getParentOp() == program &&
          visit(start, argument.getArgNumber()).wasInterrupted())
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
}

SmallVector<int64_t> burst::ring::headGroups(FunctionOpInterface program) {
  SmallVector<int64_t> groups(program.getNumArguments(), 1);
  walkBroughtArguments(
      program, [&](TransferOpInterface start, unsigned argument) {
        groups[argument] = static_cast<int64_t>(start.getGroups());
        return WalkResult::advance();
      });
  return groups;
}

LogicalResult burst::ring::verifyExchanges(FunctionOpInterface program) {
  Sharding around = shardingAround(program);
  WalkResult result = program.walk([&](TransferOpInterface start) {
    if (!start.isAllToAll())
      return WalkResult::advance();
    RankGroup members = groupOf(program, start.getChannel().getAxes());
    auto refuse = [&](const Twine &text) {
      start.emitOpError("is an all_to_all along ")
          << start.getChannel() << text;
      return WalkResult::interrupt();
    };
    if (start.getLayout().getParts() != around.sequence.size ||
        members.stride != around.sequence.stride)
      return refuse(", which must be along the last axes over which the "
                    "sequence is sharded");
    if (members != shardingOf(program).exchanged)
      return refuse(", another one is along other axes");
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  llvm::DenseMap<unsigned, uint64_t> known;
  result = walkBroughtArguments(
      program, [&](TransferOpInterface start, unsigned argument) {
        uint64_t other =
            known.try_emplace(argument, start.getGroups()).first->second;
        if (start.getGroups() == other)
          return WalkResult::advance();
        start.emitOpError("has the heads of argument ")
            << argument << " in " << start.getGroups()
            << " groups, and another one in " << other;
        return WalkResult::interrupt();
      });
  return failure(result.wasInterrupted());
}

/// All tensors of a program are sharded over the same axes: each rank has
/// another part, and those of one sequence have the same heads and batch.
static LogicalResult verifySharding(FunctionOpInterface program) {
  SmallVector<SmallVector<ShardAttr>> all = allShards(program);
  // Other axes are refused where they stand.
  for (ArrayRef<ShardAttr> shards : all)
    for (ShardAttr shard : shards)
      if (!shard.getAxes().empty() &&
          shard.getAxes().back() >= gridOf(program).getRank())
        return success();
  for (ArrayRef<ShardAttr> shards : all) {
    ring::Sharding first = shardingOf(gridOf(program), all.front()),
                   other = shardingOf(gridOf(program), shards);
    if (first.sequence != other.sequence || first.batch != other.batch ||
        first.heads != other.heads || first.isSplit != other.isSplit)
      return program.emitError("all tensors must be sharded over the same axes "
                               "of 'ring.grid', got: ")
             << llvm::interleaved_array(all.front()) << " and "
             << llvm::interleaved_array(shards);
  }
  if (all.empty())
    return success();
  SmallVector<StringRef> users(gridOf(program).getRank());
  for (ShardAttr shard : all.front())
    for (auto [axis, user] : llvm::enumerate(users)) {
      if (!shard.getAxes().empty() &&
          !llvm::is_contained(shard.getAxes(), static_cast<int64_t>(axis)))
        continue;
      if (!user.empty())
        return program.emitError("two dimensions are sharded over axis ")
               << axis
               << " of 'ring.grid': " << llvm::interleaved_array(all.front());
      user = "used";
    }
  for (auto [axis, user] : llvm::enumerate(users))
    if (user.empty() && gridOf(program).getShape()[axis] != 1)
      return program.emitError("nothing is sharded over axis ")
             << axis
             << " of 'ring.grid': " << llvm::interleaved_array(all.front());
  return success();
}
