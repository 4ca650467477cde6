//===- RingOps.cpp - operations of the ring dialect -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Ring/Ring.h"
#include "dialect/Ring/Verify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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

/// `all_gather`, `all_to_all heads over 4 groups 2`, or `to %to receive
/// [%owner] from %from`.
static ParseResult
parsePeers(OpAsmParser &parser, RouteAttr &route, IntegerAttr &members,
           IntegerAttr &groups,
           std::optional<OpAsmParser::UnresolvedOperand> &to,
           std::optional<OpAsmParser::UnresolvedOperand> &receivedOwner,
           std::optional<OpAsmParser::UnresolvedOperand> &from) {
  auto isKeyword = [&](StringRef keyword) {
    return succeeded(parser.parseOptionalKeyword(keyword));
  };
  auto setRoute = [&](Route found) {
    route = RouteAttr::get(parser.getContext(), found);
  };
  int64_t count = 1, numGroups = 1;
  setRoute(Route::Shift);
  auto parseAllToAll = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    bool isToHeads = isKeyword("heads");
    setRoute(isToHeads ? Route::ToHeads : Route::ToSequence);
    if (!isToHeads && !isKeyword("sequence"))
      return parser.emitError(loc, "an all_to_all shards 'heads' or "
                                   "'sequence'");
    return failure(parser.parseKeyword("over") || parser.parseInteger(count) ||
                   (isKeyword("groups") && parser.parseInteger(numGroups)));
  };
  auto parseShift = [&]() -> ParseResult {
    return failure(
        parser.parseKeyword("to") || parser.parseOperand(to.emplace()) ||
        parser.parseKeyword("receive") || parser.parseLSquare() ||
        parser.parseOperand(receivedOwner.emplace()) || parser.parseRSquare() ||
        parser.parseKeyword("from") || parser.parseOperand(from.emplace()));
  };
  if (isKeyword("all_gather"))
    setRoute(Route::AllGather);
  else if (isKeyword("all_to_all") ? parseAllToAll() : parseShift())
    return failure();
  members = parser.getBuilder().getI64IntegerAttr(count);
  groups = parser.getBuilder().getI64IntegerAttr(numGroups);
  return success();
}

static void printPeers(OpAsmPrinter &printer, Operation *, RouteAttr route,
                       IntegerAttr members, IntegerAttr groups, Value to,
                       Value receivedOwner, Value from) {
  switch (route.getValue()) {
  case Route::AllGather:
    printer << "all_gather";
    return;
  case Route::ToHeads:
  case Route::ToSequence:
    printer << "all_to_all "
            << (route.getValue() == Route::ToHeads ? "heads" : "sequence")
            << " over " << members.getInt();
    if (groups.getInt() != 1)
      printer << " groups " << groups.getInt();
    return;
  case Route::Shift:
    printer << "to " << to << " receive[" << receivedOwner << "] from " << from;
  }
}

/// `segments(%table[%turn] : type)`, where it stands there; an all-gather's
/// without a turn.
static ParseResult
parseSegments(OpAsmParser &parser,
              std::optional<OpAsmParser::UnresolvedOperand> &segments,
              Type &type, std::optional<OpAsmParser::UnresolvedOperand> &turn) {
  if (failed(parser.parseOptionalKeyword("segments")))
    return success();
  if (parser.parseLParen() || parser.parseOperand(segments.emplace()))
    return failure();
  if (succeeded(parser.parseOptionalLSquare()) &&
      (parser.parseOperand(turn.emplace()) || parser.parseRSquare()))
    return failure();
  return failure(parser.parseColonType(type) || parser.parseRParen());
}

static void printSegments(OpAsmPrinter &printer, Operation *, Value segments,
                          Type type, Value turn) {
  if (!segments)
    return;
  printer << " segments(" << segments;
  if (turn)
    printer << '[' << turn << ']';
  printer << " : " << type << ')';
}

/// `reach %table[%ring] by %step : type`, where it stands there; one for both
/// directions without a step.
static ParseResult
parseReach(OpAsmParser &parser,
           std::optional<OpAsmParser::UnresolvedOperand> &reach, Type &type,
           std::optional<OpAsmParser::UnresolvedOperand> &ring,
           std::optional<OpAsmParser::UnresolvedOperand> &step) {
  if (failed(parser.parseOptionalKeyword("reach")))
    return success();
  if (parser.parseOperand(reach.emplace()))
    return failure();
  if (succeeded(parser.parseOptionalLSquare()) &&
      (parser.parseOperand(ring.emplace()) || parser.parseRSquare()))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("by")) &&
      parser.parseOperand(step.emplace()))
    return failure();
  return parser.parseColonType(type);
}

static void printReach(OpAsmPrinter &printer, Operation *, Value reach,
                       Type type, Value ring, Value step) {
  if (!reach)
    return;
  printer << " reach " << reach;
  if (ring)
    printer << '[' << ring << ']';
  if (step)
    printer << " by " << step;
  printer << " : " << type;
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

/// Two results are said by the type of the first, three by those of all.
static ParseResult parseFinalizeTypes(OpAsmParser &parser, Type &o, Type &m,
                                      Type &l, SmallVectorImpl<Type> &into,
                                      SmallVectorImpl<Type> &results) {
  if (parser.parseType(o) || parser.parseComma() || parser.parseType(m))
    return failure();
  if (succeeded(parser.parseOptionalArrow())) {
    l = m;
    if (parser.parseTypeList(results))
      return failure();
    if (results.size() == 1)
      results.push_back(m);
    return success();
  }
  return failure(parseBufferTypes(parser, {&l}) || parser.parseComma() ||
                 parser.parseTypeList(into));
}

static void printFinalizeTypes(OpAsmPrinter &printer, Operation *, Type o,
                               Type m, Type l, TypeRange into,
                               TypeRange results) {
  printer << o << ", " << m;
  if (results.empty())
    printer << ", " << l << ", " << into;
  else
    printer << " -> " << results.take_front(results.size() == 2 ? 1 : 3);
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

static ParseResult parseProbabilityTypes(OpAsmParser &parser, Type &scores,
                                         Type &lse, Type &weights) {
  if (parser.parseType(scores) || parseBufferTypes(parser, {&lse}))
    return failure();
  if (!isa<BaseMemRefType>(scores))
    weights = scores;
  return success();
}

static void printProbabilityTypes(OpAsmPrinter &printer, Operation *,
                                  Type scores, Type lse, Type) {
  printer << scores << ", " << lse;
}

/// What is read, and two that are updated: on tensors into new ones.
static ParseResult parseStoredGradTypes(OpAsmParser &parser, Type &a, Type &b,
                                        Type &c, Type &x, Type &y, Type &newX,
                                        Type &newY) {
  if (parser.parseType(a) || parseBufferTypes(parser, {&b, &c, &x, &y}))
    return failure();
  if (!isa<BaseMemRefType>(x)) {
    newX = x;
    newY = y;
  }
  return success();
}

static void printStoredGradTypes(OpAsmPrinter &printer, Operation *, Type a,
                                 Type b, Type c, Type x, Type y, Type, Type) {
  llvm::interleaveComma(ArrayRef{a, b, c, x, y}, printer);
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

LogicalResult ring::verifyTable(Operation *op, Value table, bool isBuffer,
                                ArrayRef<int64_t> shape, bool mayRepeat) {
  if (!table)
    return success();
  auto type = cast<ShapedType>(table.getType());
  auto fits = [&](auto sizes) {
    auto [found, wanted] = sizes;
    return agree(found, wanted) || (mayRepeat && found == 1);
  };
  if (isa<MemRefType>(type) == isBuffer && type.hasStaticShape() &&
      llvm::all_of(llvm::zip_equal(type.getShape(), shape), fits))
    return success();
  std::string wanted;
  for (int64_t size : shape)
    wanted += (ShapedType::isDynamic(size) ? "N" : std::to_string(size)) + "x";
  return op->emitOpError("takes flags as ")
         << (isBuffer ? "memref<" : "tensor<") << wanted
         << "i1>, of static sizes" << (mayRepeat ? ", each or 1" : "")
         << ", got: " << type;
}

SmallVector<Value> ring::segmentIndices(OpBuilder &builder, Location loc,
                                        Value table, Value owner, Value turn,
                                        Value segment) {
  ShapedType type = shapedType(table);
  auto alike = [&](int64_t dim, Value index) -> Value {
    if (type.getDimSize(dim) != 1)
      return index;
    return arith::ConstantIndexOp::create(builder, loc, 0);
  };
  return {alike(0, owner), turn, alike(2, segment)};
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
      owner.getInt() >= getLayout().getNumOwners() || extent.getInt() < 0 ||
      extent.getInt() >= maxPositions)
    return failure();
  Segment s = getLayout().getValue().segment(owner.getInt(), index.getInt(),
                                             extent.getInt());
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

LogicalResult ring::verifyRanks(Operation *op, ValueRange made) {
  for (auto [index, value] : llvm::enumerate(made)) {
    auto type = dyn_cast<ShapedType>(value.getType());
    int64_t wanted = index == 0 ? 4 : 3;
    if (!type || !type.hasRank() || type.getRank() != wanted)
      return op->emitOpError(
                 "makes (batch, sequence, heads, dim), then (batch, "
                 "heads, sequence), got: ")
             << made.getTypes();
  }
  return success();
}

LogicalResult ring::verifyState(Operation *op, ShapedType shard, ShapedType o,
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
  if (failed(verifyRanks(*this, state)))
    return failure();
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
  if (failed(verifyPart(*this, getLayout())) ||
      failed(verifySegments(*this, isa<MemRefType>(getO1().getType()))))
    return failure();
  return verifyState(*this, shapedType(getO1()), shapedType(getO1()),
                     shapedType(getM1()));
}

void FinalizeOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  static constexpr StringLiteral names[] = {"out", "lse", "max"};
  for (auto [result, name] : llvm::zip(getResults(), names))
    setName(result, name);
}

LogicalResult FinalizeOp::verify() {
  if (!getInto().empty() && getInto().size() != 2 && getInto().size() != 3)
    return emitOpError(
               "writes into out, lse and maybe the largest scores, got: ")
           << getInto().size();
  if (failed(verifyForm(*this, (*this)->getOperands(),
                        getNumResults() == 3 ? 3 : 2)))
    return failure();
  ValueRange made = getMade();
  if (made.empty())
    return emitOpError("needs out and lse to write into");
  if (failed(verifyRanks(*this, made)))
    return failure();
  Value out = made[0];
  if (!agree(shapedType(out).getDimSize(3), shapedType(getO()).getDimSize(3)))
    return emitOpError("out must have the shape of o, got: ")
           << out.getType() << " and " << getO().getType();
  SmallVector<Value> ofRows(made.drop_front());
  ofRows.push_back(getL());
  for (Value rows : ofRows)
    if (shapedType(rows).getElementType() !=
            shapedType(getM()).getElementType() ||
        !agree(shapedType(rows).getShape(), shapedType(getM()).getShape()))
      return emitOpError("m, l, lse and the largest scores must have one shape "
                         "and type, got: ")
             << getM().getType() << " and " << rows.getType();
  return verifyState(*this, shapedType(out), shapedType(getO()),
                     shapedType(getM()));
}

//===----------------------------------------------------------------------===//
// What a run is refused for
//===----------------------------------------------------------------------===//

LogicalResult RequireOp::verify() {
  // require_c1
  if (getWhat().empty() || getWhat().contains('\0'))
    return emitOpError("must say what it requires, without zero bytes");
  return success();
}
