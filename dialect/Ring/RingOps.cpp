//===- RingOps.cpp - operations of the ring dialect -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Ring.h"
#include "dialect/Ring/Verify.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace burst;
using namespace burst::ring;

static ParseResult parseDims(OpAsmParser &parser, DenseI64ArrayAttr &dims) {
  SmallVector<int64_t> values;
  auto parseOne = [&] { return parser.parseInteger(values.emplace_back()); };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  dims = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printDims(OpAsmPrinter &printer, Operation *,
                      DenseI64ArrayAttr dims) {
  printer << '[';
  llvm::interleaveComma(dims.asArrayRef(), printer);
  printer << ']';
}

/// Of a tensor three types say everything, of buffers each has a layout of its
/// own and is listed.
static ParseResult parseBufferTypes(OpAsmParser &parser,
                                    ArrayRef<Type *> types) {
  for (Type *type : types)
    if (parser.parseComma() || parser.parseType(*type))
      return failure();
  return success();
}

static ParseResult parseInitTypes(OpAsmParser &parser, Type &query,
                                  SmallVectorImpl<Type> &into, Type &o, Type &m,
                                  Type &l) {
  if (parser.parseType(query))
    return failure();
  if (succeeded(parser.parseOptionalArrow())) {
    if (parser.parseType(o) || parser.parseComma() || parser.parseType(m))
      return failure();
    l = m;
    return success();
  }
  into.resize(3);
  return parseBufferTypes(parser, {&into[0], &into[1], &into[2]});
}

static void printInitTypes(OpAsmPrinter &printer, Operation *, Type query,
                           TypeRange into, Type o, Type m, Type) {
  printer << query;
  if (o)
    printer << " -> " << o << ", " << m;
  else
    printer << ", " << into;
}

static ParseResult parseMergeTypes(OpAsmParser &parser, Type &o1, Type &m1,
                                   Type &l1, Type &o2, Type &m2, Type &l2,
                                   Type &o, Type &m, Type &l) {
  if (parser.parseType(o1) || parser.parseComma() || parser.parseType(m1))
    return failure();
  if (isa<BaseMemRefType>(o1))
    return parseBufferTypes(parser, {&l1, &o2, &m2, &l2});
  o2 = o = o1;
  l1 = m2 = l2 = m = l = m1;
  return success();
}

static void printMergeTypes(OpAsmPrinter &printer, Operation *, Type o1,
                            Type m1, Type l1, Type o2, Type m2, Type l2, Type o,
                            Type, Type) {
  printer << o1 << ", " << m1;
  if (!o)
    printer << ", " << l1 << ", " << o2 << ", " << m2 << ", " << l2;
}

static ParseResult parseFinalizeTypes(OpAsmParser &parser, Type &o, Type &m,
                                      Type &l, SmallVectorImpl<Type> &into,
                                      Type &out, Type &lse) {
  if (parser.parseType(o) || parser.parseComma() || parser.parseType(m))
    return failure();
  if (succeeded(parser.parseOptionalArrow())) {
    l = lse = m;
    return parser.parseType(out);
  }
  into.resize(2);
  return parseBufferTypes(parser, {&l, &into[0], &into[1]});
}

static void printFinalizeTypes(OpAsmPrinter &printer, Operation *, Type o,
                               Type m, Type l, TypeRange into, Type out, Type) {
  printer << o << ", " << m;
  if (out)
    printer << " -> " << out;
  else
    printer << ", " << l << ", " << into;
}

/// `-> type` of a tensor that is made, or `, type` of the buffer it is put
/// into.
static ParseResult parseWrittenTypes(OpAsmParser &parser, Type &into,
                                     Type &made) {
  if (succeeded(parser.parseOptionalArrow()))
    return parser.parseType(made);
  return failure(parser.parseComma() || parser.parseType(into));
}

static void printWrittenTypes(OpAsmPrinter &printer, Operation *, Type into,
                              Type made) {
  if (made)
    printer << "-> " << made;
  else
    printer << ", " << into;
}

static ParseResult parseMadeTypes(OpAsmParser &parser, Type &of, Type &into,
                                  Type &made) {
  return failure(parser.parseType(of) || parseWrittenTypes(parser, into, made));
}

static void printMadeTypes(OpAsmPrinter &printer, Operation *op, Type of,
                           Type into, Type made) {
  printer << of << (made ? " " : "");
  printWrittenTypes(printer, op, into, made);
}

/// Of the gradients, and of delta: the gradient of lse may not be there.
static ParseResult parseDeltaTypes(OpAsmParser &parser, Type &outGrad,
                                   Type &lseGrad, Type &into, Type &delta) {
  SmallVector<Type, 3> types(1);
  if (parser.parseType(types[0]))
    return failure();
  while (succeeded(parser.parseOptionalComma()))
    if (parser.parseType(types.emplace_back()))
      return failure();
  SMLoc loc = parser.getCurrentLocation();
  bool isTensor = succeeded(parser.parseOptionalArrow());
  if (isTensor && parser.parseType(delta))
    return failure();
  if (!isTensor)
    into = types.pop_back_val();
  if (types.empty() || types.size() > 2)
    return parser.emitError(loc, "expects the types of out, its gradient, "
                                 "maybe that of lse, and of delta");
  outGrad = types[0];
  if (types.size() == 2)
    lseGrad = types[1];
  return success();
}

static void printDeltaTypes(OpAsmPrinter &printer, Operation *op, Type outGrad,
                            Type lseGrad, Type into, Type delta) {
  printer << outGrad;
  if (lseGrad)
    printer << ", " << lseGrad;
  printer << (delta ? " " : "");
  printWrittenTypes(printer, op, into, delta);
}

static ParseResult parseAddTypes(OpAsmParser &parser, Type &a, Type &b,
                                 Type &sum) {
  if (parser.parseType(a))
    return failure();
  if (isa<BaseMemRefType>(a))
    return failure(parser.parseComma() || parser.parseType(b));
  b = sum = a;
  return success();
}

static void printAddTypes(OpAsmPrinter &printer, Operation *, Type a, Type b,
                          Type sum) {
  printer << a;
  if (!sum)
    printer << ", " << b;
}

/// Of scores or weights, a value where it is wanted, o and m; on buffers also
/// of l. On tensors a state is made of the types that are taken.
static ParseResult parseStoredTypes(OpAsmParser &parser,
                                    ArrayRef<Type *> inputs, Type &o, Type &m,
                                    Type &l, Type &newO, Type &newM,
                                    Type &newL) {
  if (parser.parseType(*inputs.front()) ||
      parseBufferTypes(parser, inputs.drop_front()) ||
      parseBufferTypes(parser, {&o, &m}))
    return failure();
  if (isa<BaseMemRefType>(o))
    return parseBufferTypes(parser, {&l});
  newO = o;
  l = newM = newL = m;
  return success();
}

static ParseResult parseSoftmaxTypes(OpAsmParser &parser, Type &scores, Type &o,
                                     Type &m, Type &l, Type &weights,
                                     Type &newO, Type &newM, Type &newL) {
  if (parseStoredTypes(parser, {&scores}, o, m, l, newO, newM, newL))
    return failure();
  if (newO)
    weights = scores;
  return success();
}

static void printSoftmaxTypes(OpAsmPrinter &printer, Operation *, Type scores,
                              Type o, Type m, Type l, Type weights, Type, Type,
                              Type) {
  printer << scores << ", " << o << ", " << m;
  if (!weights)
    printer << ", " << l;
}

static ParseResult parseWeighTypes(OpAsmParser &parser, Type &weights,
                                   Type &value, Type &o, Type &m, Type &l,
                                   Type &newO, Type &newM, Type &newL) {
  return parseStoredTypes(parser, {&weights, &value}, o, m, l, newO, newM,
                          newL);
}

static void printWeighTypes(OpAsmPrinter &printer, Operation *, Type weights,
                            Type value, Type o, Type m, Type l, Type newO, Type,
                            Type) {
  printer << weights << ", " << value << ", " << o << ", " << m;
  if (!newO)
    printer << ", " << l;
}

#define GET_OP_CLASSES
#include "dialect/Ring/RingOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Tensors and buffers
//===----------------------------------------------------------------------===//

LogicalResult ring::verifyForm(Operation *op, ValueRange values, size_t results,
                               bool keepsResults) {
  bool buffers = llvm::any_of(values.getTypes(), llvm::IsaPred<MemRefType>);
  if (buffers != llvm::all_of(values.getTypes(), llvm::IsaPred<MemRefType>))
    return op->emitOpError("works on tensors or on buffers, got both: ")
           << values.getTypes();
  if (keepsResults || op->getNumResults() == (buffers ? 0 : results))
    return success();
  return op->emitOpError("on ")
         << (buffers ? "buffers has no results" : "tensors needs its results")
         << ", got: " << op->getNumResults();
}

void ring::addEffects(Effects &effects, MutableArrayRef<OpOperand> operands,
                      ValueRange written) {
  for (OpOperand &operand : operands) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (llvm::is_contained(written, operand.get()))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

void StartOp::getEffects(Effects &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), ChannelResource::get());
  effects.emplace_back(MemoryEffects::Write::get(), ChannelResource::get());
  addEffects(effects, (*this)->getOpOperands(), getInto());
}

//===----------------------------------------------------------------------===//
// segment
//===----------------------------------------------------------------------===//

void SegmentOp::build(OpBuilder &builder, OperationState &state, int64_t index,
                      LayoutAttr layout, Value owner, Value extent) {
  build(builder, state,
        arith::ConstantIndexOp::create(builder, state.location, index), layout,
        owner, extent);
}

// segment_c1
LogicalResult SegmentOp::verify() {
  std::optional<int64_t> index = getConstantIntValue(getIndex());
  int64_t count = getLayout().getNumSegments();
  if (!index || (*index >= 0 && *index < count))
    return success();
  return emitOpError("index must be in [0, ")
         << count << ") for " << getLayout() << ", got: " << *index;
}

LogicalResult SegmentOp::fold(FoldAdaptor adaptor,
                              SmallVectorImpl<OpFoldResult> &results) {
  auto index = dyn_cast_or_null<IntegerAttr>(adaptor.getIndex());
  auto owner = dyn_cast_or_null<IntegerAttr>(adaptor.getOwner());
  auto extent = dyn_cast_or_null<IntegerAttr>(adaptor.getExtent());
  if (!index || !owner || !extent || index.getInt() < 0 ||
      index.getInt() >= getLayout().getNumSegments() || owner.getInt() < 0 ||
      owner.getInt() >= getLayout().getParts() || extent.getInt() < 0 ||
      extent.getInt() >= maxPositions)
    return failure();
  Segment s = getLayout().getDeal().segment(owner.getInt(), index.getInt(), extent.getInt());
  Builder builder(getContext());
  for (int64_t value : {s.begin, s.end(), s.count, s.step, s.block})
    results.push_back(builder.getIndexAttr(value));
  return success();
}

void SegmentOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getBegin(), "begin");
  setName(getEnd(), "end");
  setName(getCount(), "count");
  setName(getStep(), "step");
  setName(getBlock(), "block");
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

FloatType ring::stateTypeOf(ShapedType shard) {
  Builder builder(shard.getContext());
  return shard.getElementType().isF64() ? builder.getF64Type()
                                        : builder.getF32Type();
}

/// The state (o, m) has the batch, sequence and heads of `shard`, a query or
/// the attention's result.
static LogicalResult verifyState(Operation *op, ShapedType shard, ShapedType o,
                                 ShapedType m) {
  FloatType state = stateTypeOf(shard);
  if (o.getElementType() != state || m.getElementType() != state)
    return op->emitOpError("the state of ") << shard << " must be of " << state
                                            << ", got: " << o << " and " << m;
  if (!agree(o.getDimSize(0), shard.getDimSize(0)) ||
      !agree(o.getDimSize(1), shard.getDimSize(1)) ||
      !agree(o.getDimSize(2), shard.getDimSize(2)))
    return op->emitOpError("o must have batch, sequence and heads of ")
           << shard << ", got: " << o;
  if (!agree(m.getDimSize(0), o.getDimSize(0)) ||
      !agree(m.getDimSize(1), o.getDimSize(2)) ||
      !agree(m.getDimSize(2), o.getDimSize(1)))
    return op->emitOpError("m and l must be (batch, heads, sequence) of ")
           << o << ", got: " << m;
  return success();
}

LogicalResult InitOp::verify() {
  if (!getInto().empty() && getInto().size() != 3)
    return emitOpError("writes into o, m and l, got: ") << getInto().size();
  if (failed(verifyForm(*this, (*this)->getOperands(), 3)))
    return failure();
  ValueRange state = getState();
  if (state.size() != 3)
    return emitOpError("needs o, m and l to write into");
  ShapedType m = shapedType(state[1]), l = shapedType(state[2]);
  if (l.getElementType() != m.getElementType() ||
      !agree(l.getShape(), m.getShape()))
    return emitOpError("m and l must have one shape and type, got: ")
           << m << " and " << l;
  return verifyState(*this, shapedType(getQuery()), shapedType(state[0]),
                     shapedType(state[1]));
}

// merge_c1, merge_c2
LogicalResult MergeOp::verify() {
  ValueRange states = getOperands().take_front(6);
  if (failed(verifyForm(*this, states, 3)))
    return failure();
  auto differ = [](Value a, Value b) {
    ShapedType x = shapedType(a), y = shapedType(b);
    return x.getElementType() != y.getElementType() ||
           !agree(x.getShape(), y.getShape());
  };
  if (differ(getO1(), getO2()) || differ(getM1(), getM2()) ||
      differ(getM1(), getL1()) || differ(getM1(), getL2()))
    return emitOpError("needs states of one shape and type, got: ")
           << states.getTypes();
  if (getO() && (*this)->getResultTypes() != getInto().getTypes())
    return emitOpError("must give a state of the types it takes, got: ")
           << (*this)->getResultTypes();
  if (failed(verifyFlags(*this)))
    return failure();
  return verifyState(*this, shapedType(getO1()), shapedType(getO1()),
                     shapedType(getM1()));
}

LogicalResult FinalizeOp::verify() {
  if (!getInto().empty() && getInto().size() != 2)
    return emitOpError("writes into out and lse, got: ") << getInto().size();
  if (failed(verifyForm(*this, (*this)->getOperands(), 2)))
    return failure();
  bool buffers = !getInto().empty();
  Value out = buffers ? getInto()[0] : getOut();
  Value lse = buffers ? getInto()[1] : getLse();
  if (!out)
    return emitOpError("needs out and lse to write into");
  if (!agree(shapedType(out).getDimSize(3), shapedType(getO()).getDimSize(3)))
    return emitOpError("out must have the shape of o, got: ")
           << out.getType() << " and " << getO().getType();
  for (Value rows : {getL(), lse})
    if (shapedType(rows).getElementType() !=
            shapedType(getM()).getElementType() ||
        !agree(shapedType(rows).getShape(), shapedType(getM()).getShape()))
      return emitOpError("m, l and lse must have one shape and type, got: ")
             << getM().getType() << " and " << rows.getType();
  return verifyState(*this, shapedType(out), shapedType(getO()),
                     shapedType(getM()));
}

//===----------------------------------------------------------------------===//
// attend
//===----------------------------------------------------------------------===//

namespace {
/// Everything of an attend that is parsed before its types.
struct ParsedAttend {
  OpAsmParser::UnresolvedOperand query, queryOwner, queryExtent, keyExtent;
  Operands keys, values, owners, state, pairs, maskCaptures, scoreCaptures;
  SmallVector<Type> maskTypes, scoreTypes;
};
} // namespace

/// `(%k, %v at %owner), ...`
static ParseResult parseSlices(OpAsmParser &parser, ParsedAttend &parsed) {
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    return failure(parser.parseLParen() ||
                   parser.parseOperand(parsed.keys.emplace_back()) ||
                   parser.parseComma() ||
                   parser.parseOperand(parsed.values.emplace_back()) ||
                   parser.parseKeyword("at") ||
                   parser.parseOperand(parsed.owners.emplace_back()) ||
                   parser.parseRParen());
  });
}

ParseResult ring::parseOptionalRegion(OpAsmParser &parser, RegionRole kind,
                                      Region &region, Operands &captures,
                                      SmallVector<Type> &types) {
  if (failed(parser.parseOptionalKeyword(stringify(kind))))
    return success();
  if (parser.parseLParen())
    return failure();
  return parseRegion(parser, kind, region, captures, types);
}

ParseResult ring::parseLayout(OpAsmParser &parser, StringRef name,
                              NamedAttrList &attributes) {
  LayoutAttr layout;
  return parser.parseCustomAttributeWithFallback(layout, Type(), name,
                                                 attributes);
}

static ParseResult parseAttendClauses(OpAsmParser &parser,
                                      OperationState &result,
                                      ParsedAttend &parsed) {
  FloatAttr scale;
  NamedAttrList &attributes = result.attributes;
  if (parser.parseOperand(parsed.query) || parser.parseKeyword("at") ||
      parseLayout(parser, "queryLayout", attributes) || parser.parseLSquare() ||
      parser.parseOperand(parsed.queryOwner) || parser.parseRSquare() ||
      parser.parseKeyword("extent") ||
      parser.parseOperand(parsed.queryExtent) ||
      parser.parseKeyword("slices") || parseSlices(parser, parsed) ||
      parser.parseKeyword("of") ||
      parseLayout(parser, "keyLayout", attributes) ||
      parser.parseKeyword("extent") || parser.parseOperand(parsed.keyExtent) ||
      parser.parseKeyword("state") || parser.parseOperandList(parsed.state, 3))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("pairs")) &&
      parser.parseOperandList(parsed.pairs, OpAsmParser::Delimiter::Paren))
    return failure();
  return failure(parser.parseKeyword("scale") ||
                 parser.parseAttribute(scale, parser.getBuilder().getF64Type(),
                                       "scale", attributes));
}

/// Resolves the operands once the types are known; `type` lists the query, then
/// a key and a value per slice, and gives o and m.
static ParseResult resolveAttend(OpAsmParser &parser, OperationState &result,
                                 ParsedAttend &parsed, FunctionType type,
                                 SMLoc loc) {
  size_t slices = parsed.keys.size();
  bool tensors = type.getNumResults() == 2;
  if (type.getNumInputs() != 1 + 2 * slices + (tensors ? 0 : 3) ||
      (!tensors && type.getNumResults() != 0))
    return parser.emitError(loc,
                            "expects the types of the query and of a key "
                            "and a value per slice, then those of o and m, or "
                            "on buffers of o, m and l");
  SmallVector<Type> keys, values;
  for (size_t slice = 0; slice < slices; ++slice) {
    keys.push_back(type.getInput(1 + 2 * slice));
    values.push_back(type.getInput(2 + 2 * slice));
  }
  Type index = parser.getBuilder().getIndexType();
  Type flag = parser.getBuilder().getI1Type();
  SmallVector<Type> state;
  if (tensors)
    state = {type.getResult(0), type.getResult(1), type.getResult(1)};
  else
    state.append(type.getInputs().end() - 3, type.getInputs().end());
  auto &operands = result.operands;
  if (parser.resolveOperand(parsed.query, type.getInput(0), operands) ||
      parser.resolveOperand(parsed.queryOwner, index, operands) ||
      parser.resolveOperand(parsed.queryExtent, index, operands) ||
      parser.resolveOperands(parsed.keys, keys, loc, operands) ||
      parser.resolveOperands(parsed.values, values, loc, operands) ||
      parser.resolveOperands(parsed.owners, index, operands) ||
      parser.resolveOperand(parsed.keyExtent, index, operands) ||
      parser.resolveOperands(parsed.state, state, loc, operands) ||
      parser.resolveOperands(parsed.pairs, flag, operands) ||
      parser.resolveOperands(parsed.maskCaptures, parsed.maskTypes, loc,
                             operands) ||
      parser.resolveOperands(parsed.scoreCaptures, parsed.scoreTypes, loc,
                             operands))
    return failure();
  if (tensors)
    result.addTypes(state);
  auto size = [](const Operands &list) {
    return static_cast<int32_t>(list.size());
  };
  result.getOrAddProperties<AttendOp::Properties>().operandSegmentSizes = {
      1,
      1,
      1,
      size(parsed.keys),
      size(parsed.values),
      size(parsed.owners),
      1,
      1,
      1,
      1,
      size(parsed.pairs),
      size(parsed.maskCaptures),
      size(parsed.scoreCaptures)};
  return success();
}

ParseResult AttendOp::parse(OpAsmParser &parser, OperationState &result) {
  ParsedAttend parsed;
  Region &mask = *result.addRegion();
  Region &score = *result.addRegion();
  Region &bounds = *result.addRegion();
  Operands none;
  SmallVector<Type> noTypes;
  SMLoc loc = parser.getCurrentLocation();
  FunctionType type;
  if (parseAttendClauses(parser, result, parsed) ||
      parseOptionalRegion(parser, RegionRole::Mask, mask, parsed.maskCaptures,
                          parsed.maskTypes) ||
      parseOptionalRegion(parser, RegionRole::Score, score,
                          parsed.scoreCaptures, parsed.scoreTypes) ||
      parseOptionalRegion(parser, RegionRole::Bounds, bounds, none, noTypes) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type))
    return failure();
  return resolveAttend(parser, result, parsed, type, loc);
}

void AttendOp::print(OpAsmPrinter &printer) {
  auto newline = [&] {
    printer.printNewline();
    printer << "    ";
  };
  printer << ' ' << getQuery() << " at ";
  printer.printStrippedAttrOrType(getQueryLayout());
  printer << '[' << getQueryOwner() << "] extent " << getQueryExtent();
  newline();
  printer << "slices ";
  llvm::interleaveComma(llvm::zip_equal(getKeys(), getValues(), getOwners()),
                        printer, [&](auto slice) {
                          auto [key, value, owner] = slice;
                          printer << '(' << key << ", " << value << " at "
                                  << owner << ')';
                        });
  printer << " of ";
  printer.printStrippedAttrOrType(getKeyLayout());
  printer << " extent " << getKeyExtent();
  newline();
  printer << "state " << getO() << ", " << getM() << ", " << getL();
  if (!getPairs().empty())
    printer << " pairs (" << getPairs() << ')';
  printer << " scale ";
  printer.printAttributeWithoutType(getScaleAttr());
  auto printOptionalRegion = [&](RegionRole kind, Region &region,
                                 ValueRange captures) {
    if (!region.empty())
      printClauseRegion(printer, kind, region, captures);
  };
  printOptionalRegion(RegionRole::Mask, getMask(), getMaskCaptures());
  printOptionalRegion(RegionRole::Score, getScore(), getScoreCaptures());
  printOptionalRegion(RegionRole::Bounds, getBounds(), {});
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getOperandSegmentSizeAttr(),
                                 getQueryLayoutAttrName(),
                                 getKeyLayoutAttrName(), getScaleAttrName()});
  newline();
  SmallVector<Type> inputs{getQuery().getType()};
  for (auto [key, value] : llvm::zip_equal(getKeys(), getValues())) {
    inputs.push_back(key.getType());
    inputs.push_back(value.getType());
  }
  SmallVector<Type> outputs;
  if (getNewO())
    outputs = {getNewO().getType(), getNewM().getType()};
  else
    llvm::append_range(
        inputs, TypeRange(ValueRange{getO(), getM(), getL()}.getTypes()));
  printer << ": ";
  printer.printFunctionalType(inputs, outputs);
}

void AttendOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  RegionRole kind = &region == &getMask()    ? RegionRole::Mask
                    : &region == &getScore() ? RegionRole::Score
                                             : RegionRole::Bounds;
  setArgumentNames(kind, region, setName);
}

void AttendOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  if (!getNewO())
    return;
  setName(getNewO(), "o");
  setName(getNewM(), "m");
  setName(getNewL(), "l");
}

FloatType AttendOp::getStateType() {
  return stateTypeOf(shapedType(getQuery()));
}

/// attend_c1, for the state. AllTypesMatch would infer types, and from the
/// wrong operands where there are several slices.
static LogicalResult verifyTypes(AttendOp op) {
  Type m = op.getM().getType();
  if (!op.getNewO()) {
    ShapedType rows = shapedType(op.getM()), other = shapedType(op.getL());
    if (rows.getShape() == other.getShape() &&
        rows.getElementType() == other.getElementType())
      return success();
    return op.emitOpError("m and l must have one shape, got: ")
           << rows << " and " << other;
  }
  bool holds = op.getO().getType() == op.getNewO().getType() &&
               llvm::all_equal(ArrayRef<Type>{m, op.getL().getType(),
                                              op.getNewM().getType(),
                                              op.getNewL().getType()});
  if (holds)
    return success();
  return op.emitOpError("o must keep its type, m and l must have one, got: ")
         << op.getO().getType() << ", " << m << " and " << op.getL().getType()
         << " to " << op.getResultTypes();
}

/// attend_c1, for each tensor but m and l.
static LogicalResult verifyHeads(AttendOp op) {
  SmallVector<Value> tensors{op.getQuery(), op.getO()};
  llvm::append_range(tensors, op.getKeys());
  llvm::append_range(tensors, op.getValues());
  for (Value tensor : tensors) {
    ShapedType type = shapedType(tensor);
    // A dynamic size is negative.
    int64_t heads = type.getDimSize(2), dim = type.getDimSize(3);
    if (heads < 1 || dim < 1 || dim > 256)
      return op.emitOpError(
                 "heads and head dims must be static, at least 1, and "
                 "head dims at most 256, got: ")
             << type;
  }
  return success();
}

/// attend_c1, for one slice.
static LogicalResult verifySlice(AttendOp op, ShapedType key,
                                 ShapedType value) {
  ShapedType query = shapedType(op.getQuery());
  if (key.getElementType() != query.getElementType() ||
      value.getElementType() != query.getElementType())
    return op.emitOpError("query, keys and values must have one element type, "
                          "got: ")
           << query << ", " << key << " and " << value;
  for (int dim : {0, 1, 2})
    if (!agree(key.getDimSize(dim), value.getDimSize(dim)))
      return op.emitOpError("a slice must have one batch, sequence and head "
                            "count, got: ")
             << key << " and " << value;
  if (!agree(key.getDimSize(0), query.getDimSize(0)) ||
      !agree(key.getDimSize(3), query.getDimSize(3)))
    return op.emitOpError("a key must have the query's batch and head dim, "
                          "got: ")
           << key << " for " << query;
  if (query.getDimSize(2) % key.getDimSize(2) != 0)
    return op.emitOpError("query heads must be a multiple of key heads, got: ")
           << query << " and " << key;
  if (!agree(value.getDimSize(3), shapedType(op.getO()).getDimSize(3)))
    return op.emitOpError("o must have the head dim of the values, got: ")
           << op.getO().getType() << " and " << value;
  return success();
}

LogicalResult AttendOp::verify() {
  SmallVector<Value> shaped{getQuery(), getO(), getM(), getL()};
  llvm::append_range(shaped, getKeys());
  llvm::append_range(shaped, getValues());
  if (failed(verifyForm(*this, shaped, 3)) || failed(verifyTypes(*this)) ||
      failed(verifyState(*this, shapedType(getQuery()), shapedType(getO()),
                         shapedType(getM()))) ||
      failed(verifyHeads(*this)))
    return failure();
  // attend_c2
  size_t slices = getKeys().size();
  if (slices == 0 || getValues().size() != slices ||
      getOwners().size() != slices)
    return emitOpError("needs a key, a value and an owner per slice, got: ")
           << slices << ", " << getValues().size() << " and "
           << getOwners().size();
  for (auto [key, value] : llvm::zip_equal(getKeys(), getValues()))
    if (failed(verifySlice(*this, shapedType(key), shapedType(value))))
      return failure();
  // attend_c3
  return verifyMeeting(*this, slices);
}

// attend_c4
LogicalResult AttendOp::verifyRegions() { return verifyMeetingRegions(*this); }

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

LogicalResult StartOp::verify() {
  // start_c1
  size_t count = getTensors().size();
  if (count == 0 || getDims().size() != count)
    return emitOpError("needs at least one tensor and a dimension of each, "
                       "got: ")
           << count << " and " << getDims().size();
  for (auto [tensor, dim] : llvm::zip_equal(getTensors(), getDims()))
    if (dim < 0 || dim >= shapedType(tensor).getRank())
      return emitOpError("names dimension ")
             << dim << " of " << tensor.getType();
  // start_c2
  SmallVector<Value> shaped(getTensors());
  llvm::append_range(shaped, getInto());
  if (failed(verifyForm(*this, shaped, 1, /*keepsResults=*/true)))
    return failure();
  bool buffers = isa<MemRefType>(getTensors().front().getType());
  SmallVector<Type> received(getToken().getType().getTypes());
  if (buffers && !received.empty())
    return emitOpError("on buffers has a token without types, got: ")
           << getToken().getType();
  if (buffers)
    llvm::append_range(received, getInto().getTypes());
  bool fits =
      received.size() == count &&
      llvm::all_of(llvm::zip_equal(getTensors(), received), [](auto pair) {
        ShapedType sent = shapedType(std::get<0>(pair));
        auto type = dyn_cast<ShapedType>(std::get<1>(pair));
        return type && type.hasRank() &&
               type.getElementType() == sent.getElementType() &&
               agree(type.getShape(), sent.getShape());
      });
  if (!fits)
    return emitOpError("receives tensors of the kind it sends, got: ")
           << received << " for " << getTensors().getTypes();
  // start_c3
  size_t segments = getLayout().getNumSegments();
  for (size_t flags : {getSendSegments().size(), getReceiveSegments().size()})
    if (flags != 0 && flags != segments)
      return emitOpError("needs no flags, or one per segment of ")
             << getLayout() << ", that is " << segments << ", got: " << flags;
  return success();
}

/// The grid of a channel has `parts` ranks in one axis.
static LogicalResult verifyChannel(Operation *op, ChannelAttr channel,
                                   int64_t parts) {
  shard::GridOp grid = lookupGrid(op, channel.getGrid());
  if (!grid)
    return failure();
  if (grid.getRank() != 1 || grid.getShape().front() != parts)
    return op->emitOpError("needs a grid of one axis of ")
           << parts << " ranks, as its layout says, got: " << channel.getGrid();
  return success();
}

// start_c4
LogicalResult StartOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyChannel(*this, getChannel(), getLayout().getParts());
}

LogicalResult WaitOp::verify() {
  if (TypeRange(getTensors().getTypes()) ==
      TypeRange(getToken().getType().getTypes()))
    return success();
  return emitOpError("must give what its token names, ")
         << getToken().getType() << ", got: " << getTensors().getTypes();
}

ParseResult WaitOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand token;
  TokenType type;
  if (parser.parseOperand(token) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperand(token, type, result.operands))
    return failure();
  result.addTypes(type.getTypes());
  return success();
}

void WaitOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getToken();
  printer.printOptionalAttrDict((*this)->getAttrs());
  printer << " : " << getToken().getType();
}

/// The shape of the tensor of which `type` is a shard.
static SmallVector<int64_t> globalShape(RankedTensorType type,
                                        ShardAttr shard) {
  SmallVector<int64_t> shape(type.getShape());
  shape[shard.getDim()] = shard.getExtent();
  return shape;
}

LogicalResult ExchangeOp::verifySymbolUses(SymbolTableCollection &) {
  auto input = cast<RankedTensorType>(getInput().getType());
  auto output = cast<RankedTensorType>(getOutput().getType());
  // exchange_c1
  if (input.getElementType() != output.getElementType() ||
      input.getRank() != output.getRank())
    return emitOpError("input and output must have one rank and element type, "
                       "got: ")
           << input << " and " << output;
  // exchange_c2
  for (ShardAttr shard : {getSource(), getTarget()}) {
    if (shard.getDim() >= input.getRank())
      return emitOpError("names dimension ")
             << shard.getDim() << " of " << input;
    if (ShapedType::isDynamic(shard.getExtent()))
      return emitOpError("needs known extents, got: ") << shard;
    if (failed(
            verifyChannel(*this, getChannel(), shard.getLayout().getParts())))
      return failure();
  }
  // exchange_c1
  if (!isShard(input, getSource()) || !isShard(output, getTarget()) ||
      !agree(globalShape(input, getSource()), globalShape(output, getTarget())))
    return emitOpError("input and output must be shards of one shape, got: ")
           << input << " and " << output;
  return success();
}

LogicalResult RequireOp::verify() {
  // require_c1
  if (getWhat().empty() || getWhat().contains('\0'))
    return emitOpError("must say what it requires, without zero bytes");
  return success();
}
