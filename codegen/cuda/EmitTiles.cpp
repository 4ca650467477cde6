//===- EmitTiles.cpp - tile ops as calls of the device library ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Emitter.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;
using namespace burst::cuda;
using llvm::formatv;

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

LogicalResult Emitter::emit(tile::LoadOp op) {
  auto f32 = [&](const APFloat &number) {
    return scalars.literal(number, /*isDouble=*/false);
  };
  if (!isPrivate(op.getBlock().getType()))
    return op.emitOpError("is to shared memory; run cuda-stage-copies first");
  bool isScaled = !op.getFactor().isExactlyValue(1.0);
  if (typeOf(op.getBlock()).getRank() == 1) {
    line() << formatv("load({0}, {1}, {2}{3});\n", name(op.getBlock()),
                      name(op.getView()), f32(op.getPadding()),
                      isScaled ? ", " + f32(op.getFactor()) : "");
    return success();
  }
  if (isScaled || !op.getPadding().isZero())
    return op.emitOpError("of a tile has text with factor 1 and padding 0 "
                          "only, got: ")
           << op.getFactorAttr() << " and " << op.getPaddingAttr();
  line() << formatv("load<{0}>({1}, {2});\n",
                    typeOf(op.getView()).getDimSize(1), name(op.getBlock()),
                    name(op.getView()));
  return success();
}

LogicalResult Emitter::emitTile(Operation *op) {
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
                          scalars.literal(op.getValue(), /*isDouble=*/false));
        return success();
      })
      .Case([&](tile::PositionsOp op) -> LogicalResult {
        line() << formatv("const Positions<{0}, {1}> {2}{{{3}, {4}};\n",
                          name(op.getStep()), name(op.getBlock()),
                          names.define(op.getPositions(), "positions"),
                          name(op.getFirst()), name(op.getBegin()));
        return success();
      })
      .Default([&](Operation *op) -> LogicalResult { return emitRows(op); });
}

/// What goes row by row.
LogicalResult Emitter::emitRows(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
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
                          name(op.getDelta()),
                          scalars.literal(op.getFactor(), /*isDouble=*/false));
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
      .Case([&](tile::MaxScoreOp op) -> LogicalResult {
        line() << formatv("maxScore({0}, {1});\n", name(op.getM()),
                          name(op.getL()));
        return success();
      })
      .Case([&](tile::AddOp op) -> LogicalResult {
        line() << formatv("add({0}, {1});\n", name(op.getA()), name(op.getB()));
        return success();
      })
      .Default([&](Operation *op) -> LogicalResult { return emitHopper(op); });
}
