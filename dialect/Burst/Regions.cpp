//===- Regions.cpp - mask, score, bounds and gradient regions -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/Burst.h"
#include "dialect/Burst/RegionOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace burst;

StringRef burst::stringify(RegionRole kind) {
  switch (kind) {
  case RegionRole::Mask:
    return "mask";
  case RegionRole::Score:
    return "score";
  case RegionRole::Bounds:
    return "bounds";
  case RegionRole::Gradient:
    return "gradient";
  }
  return "";
}

/// Leading arguments of type index: b, h, i, j, sq, sk, the first four twice
/// for a box.
static unsigned numIndices(RegionRole kind) {
  return kind == RegionRole::Bounds ? 10 : 6;
}

/// Whether the argument in front of the indices is a score.
static bool takesScore(RegionRole kind) {
  return kind == RegionRole::Score || kind == RegionRole::Gradient;
}

static unsigned numLeading(RegionRole kind) {
  return numIndices(kind) + (takesScore(kind) ? 1 : 0) +
         (kind == RegionRole::Gradient ? 1 : 0);
}

/// Whether the leading argument at `index` has the state type.
static bool isState(RegionRole kind, size_t index) {
  return takesScore(kind) && (index == 0 || index > numIndices(kind));
}

/// Whether the region's captures are operands, not those of another region.
static bool hasCaptures(RegionRole kind) {
  return kind == RegionRole::Mask || kind == RegionRole::Score;
}

SmallVector<Type> burst::leadingArguments(RegionRole kind, FloatType state) {
  SmallVector<Type> types(numLeading(kind), IndexType::get(state.getContext()));
  for (auto [index, type] : llvm::enumerate(types))
    if (isState(kind, index))
      type = state;
  return types;
}

SmallVector<Type> burst::yieldedTypes(RegionRole kind, FloatType state) {
  if (takesScore(kind))
    return {state};
  Type truth = IntegerType::get(state.getContext(), 1);
  if (kind == RegionRole::Mask)
    return {truth};
  return {truth, truth};
}

void burst::setArgumentNames(RegionRole kind, Region &region,
                             OpAsmSetValueNameFn setName) {
  static constexpr StringLiteral point[] = {"s", "b",  "h",  "i",
                                            "j", "sq", "sk", "g"};
  static constexpr StringLiteral box[] = {"b0", "b1", "h0", "h1", "i0",
                                          "i1", "j0", "j1", "sq", "sk"};
  if (region.empty())
    return;
  ArrayRef<StringLiteral> names =
      kind == RegionRole::Bounds
          ? ArrayRef<StringLiteral>(box)
          : ArrayRef<StringLiteral>(point).drop_front(takesScore(kind) ? 0 : 1);
  names = names.take_front(numLeading(kind));
  for (auto [argument, name] : llvm::zip(region.getArguments(), names))
    setName(argument, name);
}

RegionArguments RegionArguments::of(RegionRole kind, Block &block) {
  ValueRange args = block.getArguments();
  RegionArguments result;
  if (takesScore(kind)) {
    result.score = args.front();
    args = args.drop_front();
  }
  result.b = args[0];
  result.h = args[1];
  result.i = args[2];
  result.j = args[3];
  result.sq = args[4];
  result.sk = args[5];
  args = args.drop_front(6);
  if (kind == RegionRole::Gradient) {
    result.g = args.front();
    args = args.drop_front();
  }
  result.captures = args;
  return result;
}

Block &burst::addRegionBlock(OpBuilder &builder, Location loc, Region &region,
                             RegionRole kind, FloatType state,
                             TypeRange captures) {
  SmallVector<Type> types = leadingArguments(kind, state);
  llvm::append_range(types, captures);
  SmallVector<Location> locs(types.size(), loc);
  return *builder.createBlock(&region, region.end(), types, locs);
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

bool burst::isRegionScalar(Type type) {
  if (isa<FloatType>(type))
    return type.getIntOrFloatBitWidth() <= 64;
  if (type.isSignlessInteger())
    return type.getIntOrFloatBitWidth() >= 1 &&
           type.getIntOrFloatBitWidth() <= 64;
  return type.isIndex();
}

bool burst::isCapture(Type type) {
  if (auto table = dyn_cast<ShapedType>(type))
    return isa<RankedTensorType, MemRefType>(type) && table.getRank() >= 1 &&
           table.getRank() <= 4 && isRegionScalar(table.getElementType());
  return isRegionScalar(type);
}

static Type asRegionArgument(Type capture) {
  auto buffer = dyn_cast<MemRefType>(capture);
  if (!buffer)
    return capture;
  return RankedTensorType::get(buffer.getShape(), buffer.getElementType());
}

SmallVector<Type> burst::asRegionArguments(TypeRange captures) {
  return llvm::map_to_vector(captures, asRegionArgument);
}

/// Whether every level computes with floats of the type.
static bool isComputable(Type type) {
  return !isa<FloatType>(type) ||
         isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

/// Scalars, without side effects, of the dialects that every level can
/// evaluate, analyse and emit.
static LogicalResult verifyRegionOp(Operation &op, RegionRole kind,
                                    FloatType state) {
  auto contribute = dyn_cast<ContributeOp>(op);
  if (contribute && kind == RegionRole::Gradient) {
    Type type = contribute.getValue().getType();
    if (type != state)
      return op.emitOpError("must add a ")
             << state << ", the state type, got: " << type;
    return success();
  }
  bool isScalar =
      isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op.getDialect());
  StringRef name = op.getName().getStringRef();
  if (isScalar && !isAdmitted(name))
    return op.emitOpError("is not allowed in a ")
           << stringify(kind)
           << " region, it is not evaluated on every device: "
           << replacementOf(name);
  if (auto cast = dyn_cast<arith::BitcastOp>(op);
      cast &&
      isa<FloatType>(cast.getIn().getType()) == isa<FloatType>(cast.getType()))
    return op.emitOpError("must cast between a float and an integer in a ")
           << stringify(kind) << " region, got: " << cast.getIn().getType()
           << " to " << cast.getType();
  bool known =
      isScalar || isa<tensor::ExtractOp>(op) ||
      (kind == RegionRole::Bounds && isa<TableRangeOp, tensor::DimOp>(op));
  if (!known || !isMemoryEffectFree(&op))
    return op.emitOpError("is not allowed in a ")
           << stringify(kind)
           << " region, which is made of side-effect free ops of arith and "
              "math, and of tensor.extract on captured tables";
  if (op.getNumRegions() != 0)
    return op.emitOpError("has a region, got in a ")
           << stringify(kind) << " region: use arith.select instead";
  for (Type type : op.getResultTypes())
    if (!isRegionScalar(type))
      return op.emitOpError("makes a ")
             << type << ", but a " << stringify(kind)
             << " region works on scalars of at most 64 bits";
  for (Type type : op.getResultTypes())
    if (!isComputable(type))
      return op.emitOpError("makes a ")
             << type << ", but a " << stringify(kind)
             << " region computes with f16, bf16, f32 and f64";
  return success();
}

LogicalResult burst::verifyRegion(Operation *op, RegionRole kind,
                                  Region &region, FloatType state,
                                  TypeRange captures) {
  if (region.empty())
    return success();
  if (!region.hasOneBlock())
    return op->emitOpError("the ")
           << stringify(kind)
           << " region must have one block, got: " << region.getBlocks().size();
  Block &block = region.front();
  SmallVector<Type> wanted = leadingArguments(kind, state);
  llvm::append_range(wanted, captures);
  if (TypeRange(wanted) != TypeRange(block.getArgumentTypes()))
    return op->emitOpError("the ")
           << stringify(kind) << " region must have the arguments (" << wanted
           << "), got: (" << block.getArgumentTypes() << ")";
  for (Operation &inner : block.without_terminator())
    if (failed(verifyRegionOp(inner, kind, state)))
      return failure();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError("the ")
           << stringify(kind) << " region must end in burst.yield";
  SmallVector<Type> yielded = yieldedTypes(kind, state);
  if (TypeRange(yielded) != TypeRange(yield.getOperandTypes()))
    return yield.emitOpError("must yield (")
           << yielded << ") from a " << stringify(kind) << " region, got: ("
           << yield.getOperandTypes() << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

void burst::printRegion(OpAsmPrinter &printer, RegionRole kind, Region &region,
                        ValueRange captures) {
  printer << stringify(kind) << "(";
  for (auto [index, arg] : llvm::enumerate(region.getArguments())) {
    if (index != 0)
      printer << ", ";
    printer.printRegionArgument(arg, {}, /*omitType=*/true);
    if (index >= numLeading(kind)) {
      Type type = arg.getType();
      if (!captures.empty()) {
        Value capture = captures[index - numLeading(kind)];
        printer << " = " << capture;
        type = capture.getType();
      }
      printer << " : " << type;
    } else if (isState(kind, index)) {
      printer << " : " << arg.getType();
    }
  }
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

void burst::printClauseRegion(OpAsmPrinter &printer, RegionRole kind,
                              Region &region, ValueRange captures) {
  printer.increaseIndent();
  printer.increaseIndent();
  printer.printNewline();
  printRegion(printer, kind, region, captures);
  printer.decreaseIndent();
  printer.decreaseIndent();
}

/// One region argument with what stands behind it.
static ParseResult
parseRegionArgument(OpAsmParser &parser, RegionRole kind,
                    OpAsmParser::Argument &arg, unsigned index,
                    SmallVectorImpl<OpAsmParser::UnresolvedOperand> &captures,
                    SmallVectorImpl<Type> &captureTypes, bool lists) {
  if (parser.parseArgument(arg))
    return failure();
  if (index < numLeading(kind)) {
    arg.type = parser.getBuilder().getIndexType();
    if (isState(kind, index))
      return parser.parseColonType(arg.type);
    return success();
  }
  if ((lists || hasCaptures(kind)) &&
      (parser.parseEqual() || parser.parseOperand(captures.emplace_back())))
    return failure();
  if (parser.parseColonType(arg.type))
    return failure();
  captureTypes.push_back(arg.type);
  arg.type = asRegionArgument(arg.type);
  return success();
}

ParseResult
burst::parseRegion(OpAsmParser &parser, RegionRole kind, Region &region,
                   SmallVectorImpl<OpAsmParser::UnresolvedOperand> &captures,
                   SmallVectorImpl<Type> &captureTypes, bool lists) {
  SmallVector<OpAsmParser::Argument> args;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&] {
    return parseRegionArgument(parser, kind, args.emplace_back(),
                               args.size() - 1, captures, captureTypes, lists);
  };
  if (parser.parseCommaSeparatedList(parseOne) || parser.parseRParen())
    return failure();
  if (args.size() < numLeading(kind))
    return parser.emitError(loc, "a ")
           << stringify(kind) << " region has at least " << numLeading(kind)
           << " arguments, got: " << args.size();
  if (parser.parseRegion(region, args, /*enableNameShadowing=*/true))
    return failure();
  if (region.empty())
    return parser.emitError(loc, "a ")
           << stringify(kind) << " region must not be empty";
  return success();
}
