//===- RandomRegion.cpp ---------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/property/RandomRegion.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <fmt/format.h>

using namespace burst;
using namespace burst::test;
using fmt::format;

namespace {

struct ScalarValue {
  std::string name, type;
};

/// Writes the ops of a region, each on values that were made before it.
class Writer {
public:
  Writer(Dice &dice, const oracle::Sizes &sizes, Captures &captures)
      : dice(dice), sizes(sizes), store(captures) {
    for (const char *name : {"b", "h", "i", "j", "sq", "sk"})
      pool.push_back({format("%{}", name), "index"});
  }

protected:
  ScalarValue b() const { return pool[0]; }
  ScalarValue h() const { return pool[1]; }
  ScalarValue i() const { return pool[2]; }
  ScalarValue j() const { return pool[3]; }
  ScalarValue sq() const { return pool[4]; }
  ScalarValue sk() const { return pool[5]; }

  ScalarValue make(const std::string &type, const std::string &text);
  ScalarValue binary(const char *op, const ScalarValue &x,
                     const ScalarValue &y) {
    return make(x.type, format("{} {}, {} : {}", op, x.name, y.name, x.type));
  }
  ScalarValue unary(const char *op, const ScalarValue &x) {
    return make(x.type, format("{} {} : {}", op, x.name, x.type));
  }
  ScalarValue compare(const char *predicate, const ScalarValue &x,
                      const ScalarValue &y) {
    return make("i1", format("arith.cmpi {}, {}, {} : {}", predicate, x.name,
                             y.name, x.type));
  }
  ScalarValue convert(const char *op, const ScalarValue &x,
                      const std::string &type) {
    return make(type, format("{} {} : {} to {}", op, x.name, x.type, type));
  }
  ScalarValue select(const ScalarValue &c, const ScalarValue &x,
                     const ScalarValue &y) {
    return make(x.type, format("arith.select {}, {}, {} : {}", c.name, x.name,
                               y.name, x.type));
  }
  ScalarValue constant(const std::string &type, int64_t number);
  ScalarValue real(const std::string &type, double number) {
    return make(type, format("arith.constant {:.9e} : {}", number, type));
  }
  ScalarValue negate(const ScalarValue &x) {
    return binary("arith.xori", x, constant("i1", 1));
  }
  /// An integer as an index, or an index as an integer.
  ScalarValue cast(const ScalarValue &x, const std::string &type) {
    return x.type == type ? x : convert("arith.index_cast", x, type);
  }

  /// The argument of the region that a capture is.
  Capture capture(Capture value);
  Capture intTable(std::vector<int64_t> shape, bool rising);
  ScalarValue extract(const Capture &table,
                      const std::vector<ScalarValue> &indices);
  /// `x` brought into [0, size).
  ScalarValue within(const ScalarValue &x, int64_t size);
  ScalarValue extractAnywhere(const Capture &table);

  /// A value of this type, rather a recent one; a constant where there is none.
  ScalarValue any(const std::string &type);
  /// The same for some pairs, and `otherwise` for others: an op that is
  /// undefined for every pair is refused.
  ScalarValue atTimes(const std::string &type, int64_t otherwise);
  std::string drawType(bool withLogic);
  std::string argumentTexts() const;

  Dice &dice;
  const oracle::Sizes &sizes;
  Captures &store;
  std::vector<ScalarValue> pool;
  std::vector<Capture> captured; ///< by the names of the region's arguments
  std::vector<Capture> outside;  ///< by the names in the function
  std::string lines;
  int64_t count = 0;
};

class MaskWriter : public Writer {
public:
  using Writer::Writer;
  std::string draw();

protected:
  void addRandomOp();
  std::string floatType; ///< of what is compared; any, where empty
  ScalarValue toFloat(const ScalarValue &x, const std::string &type);

private:
  ScalarValue arithmetic(const std::string &type);
  ScalarValue divide(const std::string &type);
  ScalarValue shift(const std::string &type);
  ScalarValue convertAny();
  ScalarValue trap();
  ScalarValue narrowed();
  ScalarValue multiplied();
  ScalarValue roundedTwice();
  ScalarValue floats();
  ScalarValue keep();

  ScalarValue idiom();
  ScalarValue causal(const ScalarValue &i, const ScalarValue &j);
  ScalarValue window(const ScalarValue &i, const ScalarValue &j);
  ScalarValue documents();
  ScalarValue strided(const ScalarValue &i, const ScalarValue &j);
  ScalarValue slices();
  ScalarValue byHead();
  ScalarValue scalarLimit();
  ScalarValue combine(const ScalarValue &x, const ScalarValue &y);
};

/// A score of ops at random: not smooth, not bounded, not always finite.
class WildScoreWriter : public MaskWriter {
public:
  WildScoreWriter(Dice &dice, const oracle::Sizes &sizes, Captures &captures)
      : MaskWriter(dice, sizes, captures) {
    pool.push_back({"%s", state});
    floatType = state;
  }
  std::string drawScore();

private:
  ScalarValue step(const ScalarValue &s);

  /// Scores of f32 are evaluated in f64, and fold in f32.
  static constexpr const char *state = "f64";
};

class ScoreWriter : public Writer {
public:
  ScoreWriter(Dice &dice, const oracle::Sizes &sizes, Captures &captures,
              std::string state)
      : Writer(dice, sizes, captures), state(std::move(state)) {}
  std::string draw();
  /// Of the function, in the order of the region's arguments.
  const std::vector<Capture> &captures() const { return outside; }

private:
  ScalarValue position();
  ScalarValue table();
  ScalarValue step(const ScalarValue &s);
  ScalarValue bounded(const ScalarValue &s);
  ScalarValue someKeysDropped(const ScalarValue &s);

  std::string state;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

ScalarValue Writer::make(const std::string &type, const std::string &text) {
  ScalarValue value{format("%v{}", count++), type};
  lines += format("      {} = {}\n", value.name, text);
  pool.push_back(value);
  return value;
}

ScalarValue Writer::constant(const std::string &type, int64_t number) {
  if (type == "i1")
    return make(type,
                format("arith.constant {}", number != 0 ? "true" : "false"));
  return make(type, format("arith.constant {} : {}", number, type));
}

std::string Writer::drawType(bool withLogic) {
  if (withLogic && dice.chance(25))
    return "i1";
  if (dice.chance(45))
    return "index";
  return dice.pick(
      {"i8", "i16", "i32", "i64", "i32", "i64", "i2", "i3", "i33", "i63"});
}

ScalarValue Writer::any(const std::string &type) {
  std::vector<ScalarValue> candidates;
  for (const ScalarValue &value : pool)
    if (value.type == type)
      candidates.push_back(value);
  if (candidates.empty() || dice.chance(20))
    return constant(type, type == "i1" ? dice.within(0, 1)
                                       : dice.number(widthOfElement(type)));
  int64_t last = static_cast<int64_t>(candidates.size()) - 1;
  return candidates[dice.within(dice.chance(50) ? last / 2 : 0, last)];
}

ScalarValue Writer::atTimes(const std::string &type, int64_t otherwise) {
  ScalarValue condition = compare(dice.pick({"slt", "ule", "ne"}), i(), j());
  return select(condition, any(type), constant(type, otherwise));
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

Capture Writer::capture(Capture value) {
  outside.push_back(value);
  value.name = format("%c{}", captured.size());
  captured.push_back(value);
  return value;
}

Capture Writer::intTable(std::vector<int64_t> shape, bool rising) {
  std::string element = dice.pick({"i32", "i64", "i8", "i16", "index", "i1"});
  int64_t size = 1;
  for (int64_t n : shape)
    size *= n;
  std::vector<int64_t> values;
  for (int64_t n = 0; n < size; ++n)
    values.push_back(element == "i1"   ? dice.within(0, 1)
                     : dice.chance(95) ? dice.within(0, 5)
                                       : dice.number(widthOfElement(element)));
  if (rising)
    std::sort(values.begin(), values.end());
  return capture(store.addInts(element, std::move(shape), values));
}

ScalarValue Writer::extract(const Capture &table,
                            const std::vector<ScalarValue> &indices) {
  std::string list;
  for (const ScalarValue &index : indices)
    list += (list.empty() ? "" : ", ") + index.name;
  return make(table.element, format("tensor.extract {}[{}] : {}", table.name,
                                    list, table.type));
}

ScalarValue Writer::within(const ScalarValue &x, int64_t size) {
  if (dice.chance(50))
    return binary("arith.remui", x, constant("index", size));
  ScalarValue least = binary("arith.maxsi", x, constant("index", 0));
  return binary("arith.minsi", least, constant("index", size - 1));
}

/// Also out of the table, where the index is clamped.
ScalarValue Writer::extractAnywhere(const Capture &table) {
  std::vector<ScalarValue> indices;
  for (int64_t size : table.shape)
    indices.push_back(dice.chance(40) ? atTimes("index", 0)
                                      : within(any("index"), size));
  return extract(table, indices);
}

/// "%b, %h, %i, %j, %sq, %sk, %c0 = %t0 : tensor<3xi32>"
std::string Writer::argumentTexts() const {
  std::string text = "%b, %h, %i, %j, %sq, %sk";
  for (size_t c = 0; c < captured.size(); ++c)
    text += format(", {} = {} : {}", captured[c].name, outside[c].name,
                   captured[c].type);
  return text;
}

//===----------------------------------------------------------------------===//
// Usual masks
//===----------------------------------------------------------------------===//

ScalarValue MaskWriter::causal(const ScalarValue &i, const ScalarValue &j) {
  ScalarValue shift = cast(binary("arith.subi", sk(), sq()), i.type);
  return compare("sle", j, binary("arith.addi", i, shift));
}

ScalarValue MaskWriter::window(const ScalarValue &i, const ScalarValue &j) {
  ScalarValue left = constant(i.type, dice.within(0, 9));
  ScalarValue right = constant(i.type, dice.within(0, 9));
  switch (dice.within(0, 2)) {
  case 0:
    return binary("arith.andi",
                  compare("sge", j, binary("arith.subi", i, left)),
                  compare("sle", j, binary("arith.addi", i, right)));
  case 1: // a difference below 0 is a large number
    return compare(dice.pick({"ult", "ule"}), binary("arith.subi", i, j), left);
  default:
    return compare("sle", unary("math.absi", binary("arith.subi", i, j)), left);
  }
}

/// By one table or two, by position or by batch and position.
ScalarValue MaskWriter::documents() {
  int64_t longest = std::max<int64_t>({sizes.queries, sizes.keys, 1});
  if (dice.chance(60)) {
    Capture ids = intTable({longest}, dice.chance(60));
    return compare("eq", extract(ids, {i()}), extract(ids, {j()}));
  }
  Capture ids = intTable({sizes.batch, longest}, dice.chance(30));
  return compare(dice.pick({"eq", "sge", "ule"}), extract(ids, {b(), i()}),
                 extract(ids, {b(), j()}));
}

ScalarValue MaskWriter::strided(const ScalarValue &i, const ScalarValue &j) {
  ScalarValue size = constant(i.type, dice.within(1, 6));
  const char *div =
      dice.pick({"arith.floordivsi", "arith.divui", "arith.divsi"});
  switch (dice.within(0, 2)) {
  case 0: // blocks
    return compare(dice.pick({"eq", "sge"}), binary(div, i, size),
                   binary(div, j, size));
  case 1: // every so many keys
    return compare("slt", binary("arith.remui", j, size),
                   constant(i.type, dice.within(0, 4)));
  default:
    return compare("eq", binary("arith.remsi", i, size),
                   binary("arith.remsi", j, size));
  }
}

/// Each query sees the keys from one table's number to another's.
ScalarValue MaskWriter::slices() {
  int64_t rows = std::max<int64_t>(sizes.queries, 1);
  std::vector<int64_t> from, to;
  for (int64_t row = 0; row < rows; ++row) {
    from.push_back(dice.within(0, sizes.keys));
    to.push_back(dice.within(from.back(), sizes.keys));
  }
  if (dice.chance(50)) {
    std::sort(from.begin(), from.end());
    std::sort(to.begin(), to.end());
  }
  Capture least = capture(store.addInts("i32", {rows}, from));
  Capture most = capture(store.addInts("i32", {rows}, to));
  ScalarValue key = cast(j(), "i32");
  return binary("arith.andi", compare("sge", key, extract(least, {i()})),
                compare("slt", key, extract(most, {i()})));
}

/// A window whose width depends on the head.
ScalarValue MaskWriter::byHead() {
  Capture widths = intTable({sizes.queryHeads}, false);
  ScalarValue width = extract(widths, {h()});
  ScalarValue wide = width.type == "index"
                         ? width
                         : convert("arith.index_cast", width, "index");
  return compare("sle", unary("math.absi", binary("arith.subi", i(), j())),
                 wide);
}

ScalarValue MaskWriter::scalarLimit() {
  std::string element = dice.pick({"index", "i64", "i32", "i8"});
  Capture limit =
      capture(store.addInts(element, {}, {dice.within(0, dice.within(1, 45))}));
  ScalarValue value = cast(ScalarValue{limit.name, element}, "index");
  return compare(dice.pick({"slt", "ule", "sge", "ugt", "ne"}),
                 dice.pick({i(), j()}), value);
}

ScalarValue MaskWriter::idiom() {
  ScalarValue query = i(), key = j();
  if (dice.chance(25)) {
    const char *type = dice.pick({"i32", "i64"});
    query = cast(query, type);
    key = cast(key, type);
  }
  switch (dice.within(0, 7)) {
  case 0:
    return causal(query, key);
  case 1:
    return window(query, key);
  case 2: // a prefix
    return binary("arith.ori",
                  compare("slt", key, constant(key.type, dice.within(0, 9))),
                  causal(query, key));
  case 3:
    return documents();
  case 4:
    return strided(query, key);
  case 5:
    return slices();
  case 6:
    return byHead();
  default:
    return scalarLimit();
  }
}

ScalarValue MaskWriter::combine(const ScalarValue &x, const ScalarValue &y) {
  switch (dice.within(0, 4)) {
  case 0:
  case 1:
    return binary("arith.andi", x, y);
  case 2:
    return binary("arith.ori", x, y);
  case 3:
    return negate(x);
  default:
    return select(any("i1"), x, y);
  }
}

//===----------------------------------------------------------------------===//
// Ops at random
//===----------------------------------------------------------------------===//

ScalarValue MaskWriter::arithmetic(const std::string &type) {
  const char *op =
      dice.pick({"arith.addi", "arith.subi", "arith.muli", "arith.andi",
                 "arith.ori", "arith.xori", "arith.minsi", "arith.maxsi",
                 "arith.minui", "arith.maxui", "math.absi"});
  ScalarValue x = any(type);
  if (op == std::string("math.absi"))
    return unary(op, x);
  ScalarValue y = any(type);
  bool mayOverflow =
      llvm::is_contained({"arith.addi", "arith.subi"}, std::string(op));
  if (mayOverflow && dice.chance(15))
    return make(type, format("{} {}, {} overflow<{}> : {}", op, x.name, y.name,
                             dice.pick({"nsw", "nuw"}), type));
  return binary(op, x, y);
}

/// Also by 0, and the least integer by -1.
ScalarValue MaskWriter::divide(const std::string &type) {
  bool isUnsigned = dice.chance(40);
  const char *op =
      isUnsigned ? dice.pick({"arith.divui", "arith.remui", "arith.ceildivui"})
                 : dice.pick({"arith.divsi", "arith.remsi", "arith.floordivsi",
                              "arith.ceildivsi"});
  int64_t most = widthOfElement(type) < 4 ? 1 : 7;
  ScalarValue divisor = dice.chance(50) ? constant(type, dice.within(1, most))
                        : dice.chance(20) && type != "i1" ? constant(type, -1)
                                                          : atTimes(type, 1);
  return binary(op, any(type), divisor);
}

/// Also by the width and more.
ScalarValue MaskWriter::shift(const std::string &type) {
  const char *op = dice.pick({"arith.shli", "arith.shrsi", "arith.shrui"});
  int64_t width = widthOfElement(type);
  ScalarValue amount =
      dice.chance(50)
          ? constant(type, dice.within(0, std::min<int64_t>(width, 8) - 1))
          : atTimes(type, 0);
  return binary(op, any(type), amount);
}

ScalarValue MaskWriter::convertAny() {
  std::string from = drawType(true), to = drawType(true);
  ScalarValue x = any(from);
  bool isUnsigned = dice.chance(50);
  if ((from == "index") != (to == "index"))
    return convert(isUnsigned ? "arith.index_castui" : "arith.index_cast", x,
                   to);
  if (from == to)
    return negate(any("i1"));
  if (widthOfElement(to) < widthOfElement(from))
    return convert("arith.trunci", x, to);
  return convert(isUnsigned ? "arith.extui" : "arith.extsi", x, to);
}

/// An index by way of a narrow integer, which upstream folds away.
ScalarValue MaskWriter::narrowed() {
  std::string type = dice.pick({"i8", "i16", "i32", "i5"});
  ScalarValue x = dice.pick({i(), j(), any("index")});
  const char *narrow = dice.pick({"arith.index_cast", "arith.index_castui"});
  const char *widen = dice.chance(80) ? narrow : "arith.index_cast";
  ScalarValue back = convert(widen, convert(narrow, x, type), "index");
  return compare(dice.pick({"sle", "ult", "eq", "sgt"}),
                 dice.pick({j(), i(), x}), back);
}

/// A product with flags that promise what does not hold, by one of its factors.
ScalarValue MaskWriter::multiplied() {
  std::string type = dice.pick({"i8", "i32", "index"});
  ScalarValue x = any(type), y = atTimes(type, 3);
  const char *flags = dice.pick({"nsw", "nuw", "nsw, nuw"});
  ScalarValue product = make(type, format("arith.muli {}, {} overflow<{}> : {}",
                                          x.name, y.name, flags, type));
  ScalarValue quotient =
      binary(dice.pick({"arith.divsi", "arith.divui"}), product, y);
  return compare("eq", quotient, x);
}

/// An integer next to the middle between two floats of 8 (or 24) bits, rounded
/// to 24 (or 53) bits first.
ScalarValue MaskWriter::roundedTwice() {
  bool isShort = dice.chance(60);
  int64_t digits = isShort ? 8 : 24, most = isShort ? 22 : 38;
  int64_t leading =
      dice.within(int64_t{1} << (digits - 1), (int64_t{1} << digits) - 1);
  int64_t number = (2 * leading + 1) << (most - (isShort ? 1 : 0));
  std::string wide = isShort ? "f32" : "f64", narrow = isShort ? "bf16" : "f32";
  std::string type = isShort ? "i32" : "i64";
  ScalarValue near = binary(
      "arith.addi", constant(type, number),
      select(compare("slt", i(), j()), constant(type, 1), constant(type, -1)));
  ScalarValue rounded = convert(
      "arith.truncf",
      convert(dice.pick({"arith.sitofp", "arith.uitofp"}), near, wide), narrow);
  ScalarValue limit =
      real(narrow, std::ldexp(static_cast<double>(leading),
                              static_cast<int>(most + !isShort)));
  return make("i1", format("arith.cmpf ole, {}, {} : {}", rounded.name,
                           limit.name, narrow));
}

/// What rewrites get wrong.
ScalarValue MaskWriter::trap() {
  switch (dice.within(0, 4)) {
  case 0:
    return narrowed();
  case 1:
    return multiplied();
  case 2:
    return roundedTwice();
  case 3: {
    std::string type = drawType(true);
    return compare(dice.pick({"eq", "slt", "ugt"}), divide(type), any(type));
  }
  default: {
    std::string type = drawType(true);
    return compare(dice.pick({"eq", "slt", "ugt"}), shift(type), any(type));
  }
  }
}

ScalarValue MaskWriter::toFloat(const ScalarValue &x, const std::string &type) {
  ScalarValue integer = x.type == "index" ? cast(x, "i64") : x;
  return convert(dice.pick({"arith.sitofp", "arith.uitofp"}), integer, type);
}

/// Floats, and back to an integer: a comparison, a conversion, bits.
ScalarValue MaskWriter::floats() {
  std::string type =
      floatType.empty() ? dice.pick({"f32", "f64", "f16", "bf16"}) : floatType;
  ScalarValue x = toFloat(dice.pick({i(), j(), h(), any("i8")}), type);
  ScalarValue y = toFloat(dice.pick({i(), j(), any("i16")}), type);
  y = binary(dice.pick({"arith.addf", "arith.subf", "arith.mulf",
                        "arith.minimumf", "arith.maximumf", "arith.minnumf",
                        "arith.maxnumf", "math.copysign"}),
             real(type, dice.within(-8, 8) * 0.25), y);
  x = unary(dice.pick({"math.sin", "math.cos", "math.tanh", "math.absf",
                       "math.floor", "math.ceil", "math.roundeven",
                       "math.trunc", "arith.negf", "math.atan", "math.erf"}),
            x);
  if (dice.chance(30)) { // also what the integer cannot hold, and NaN
    ScalarValue wide = dice.chance(50) ? y : binary("arith.divf", y, x);
    return convert(dice.pick({"arith.fptosi", "arith.fptoui"}), wide,
                   dice.pick({"i8", "i16", "i32", "i64", "i3", "i33"}));
  }
  if (dice.chance(15) && type == "f32")
    return convert("arith.bitcast", x, "i32");
  if (type == "f64" && dice.chance(30)) {
    type = "f32";
    x = convert("arith.truncf", x, type);
    y = convert("arith.truncf", y, type);
  } else if (type == "f32" && dice.chance(30)) {
    type = "f64";
    x = convert("arith.extf", x, type);
    y = convert("arith.extf", y, type);
  }
  const char *predicate =
      dice.pick({"olt", "ole", "ogt", "oge", "oeq", "one", "ult", "ule", "ugt",
                 "uge", "ueq", "une", "ord", "uno", "true", "false"});
  return make("i1", format("arith.cmpf {}, {}, {} : {}", predicate, x.name,
                           y.name, type));
}

void MaskWriter::addRandomOp() {
  std::string type = drawType(true);
  int64_t kind = dice.within(1, 100);
  if (kind <= 30)
    arithmetic(type);
  else if (kind <= 40)
    divide(type);
  else if (kind <= 45)
    shift(type);
  else if (kind <= 62)
    compare(dice.pick({"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule",
                       "ugt", "uge"}),
            any(type), any(type));
  else if (kind <= 70)
    select(any("i1"), any(type), any(type));
  else if (kind <= 82)
    convertAny();
  else if (kind <= 87)
    floats();
  else if (kind <= 92 && captured.size() < 4)
    extractAnywhere(dice.chance(60)
                        ? intTable({dice.within(1, 24)}, dice.chance(50))
                        : intTable({dice.within(1, 3), dice.within(1, 9)},
                                   dice.chance(50)));
  else
    idiom();
}

ScalarValue MaskWriter::keep() {
  ScalarValue keep = idiom();
  if (dice.chance(50)) {
    for (int64_t more = dice.within(0, 2); more > 0; --more)
      keep = combine(keep, idiom());
    return keep;
  }
  for (int64_t more = dice.within(2, 16); more > 0; --more)
    addRandomOp();
  if (dice.chance(50))
    keep = dice.chance(50) ? trap() : combine(keep, trap());
  return combine(dice.chance(60) ? keep : any("i1"), any("i1"));
}

std::string MaskWriter::draw() {
  ScalarValue result = keep();
  return format("mask({}) {{\n{}      burst.yield {} : i1\n    }}",
                argumentTexts(), lines, result.name);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// A number of about 1 that depends on where the pair is.
ScalarValue ScoreWriter::position() {
  ScalarValue index = dice.pick({i(), j(), h(), b()});
  if (dice.chance(30))
    index = binary("arith.subi", i(), j());
  ScalarValue number = convert("arith.sitofp", cast(index, "i64"), state);
  ScalarValue scaled =
      binary("arith.mulf", number, real(state, dice.pick({0.125, 0.25, 1.0})));
  return unary(dice.pick({"math.sin", "math.cos", "math.tanh", "math.atan"}),
               scaled);
}

/// An element of a table of floats, or a captured number.
ScalarValue ScoreWriter::table() {
  std::string element = dice.pick({"f32", "f64", "f16", "bf16"});
  std::vector<int64_t> shape;
  std::vector<ScalarValue> indices;
  if (dice.chance(40)) {
    shape = {sizes.queryHeads};
    indices = {h()};
  } else if (dice.chance(60)) {
    shape = {dice.within(1, 9), dice.within(1, 9)};
    indices = {within(i(), shape[0]), within(j(), shape[1])};
  }
  std::vector<double> values;
  int64_t size = 1;
  for (int64_t n : shape)
    size *= n;
  for (int64_t n = 0; n < size; ++n)
    values.push_back(static_cast<double>(dice.within(-16, 16)) * 0.125);
  Capture floats = capture(store.addFloats(element, shape, values));
  ScalarValue value = shape.empty() ? ScalarValue{floats.name, element}
                                    : extract(floats, indices);
  unsigned from = widthOfElement(element == "bf16" ? "f16" : element);
  unsigned to = widthOfElement(state);
  if (from == to)
    return value;
  return convert(from < to ? "arith.extf" : "arith.truncf", value, state);
}

ScalarValue ScoreWriter::bounded(const ScalarValue &s) {
  ScalarValue cap = real(state, 20);
  return binary("arith.mulf", unary("math.tanh", binary("arith.divf", s, cap)),
                cap);
}

/// Some keys get -inf: they count as not seen.
ScalarValue ScoreWriter::someKeysDropped(const ScalarValue &s) {
  ScalarValue least =
      make(state,
           format("arith.constant {} : {}",
                  state == "f32" ? "0xFF800000" : "0xFFF0000000000000", state));
  ScalarValue rest = binary("arith.remui", j(), constant("index", 3));
  ScalarValue isDropped =
      compare("eq", rest, constant("index", dice.within(0, 3)));
  return select(isDropped, least, s);
}

ScalarValue ScoreWriter::step(const ScalarValue &s) {
  switch (dice.within(0, 6)) {
  case 0:
    return binary("arith.addf", s, position());
  case 1:
    return binary("arith.mulf", s, table());
  case 2:
    return binary("arith.addf", table(), s);
  case 3: {
    ScalarValue half = binary("arith.mulf", s, real(state, 0.5));
    return select(compare("slt", i(), j()), half, s);
  }
  case 4: {
    ScalarValue p = position();
    return make(state, format("math.fma {}, {}, {} : {}", p.name, s.name,
                              p.name, state));
  }
  case 5:
    return binary(dice.pick({"arith.maximumf", "arith.minimumf"}), s,
                  position());
  default:
    return bounded(s);
  }
}

std::string ScoreWriter::draw() {
  ScalarValue result{"%s", state};
  for (int64_t more = dice.within(1, 4); more > 0; --more)
    result = step(result);
  result = bounded(result);
  if (dice.chance(15))
    result = someKeysDropped(result);
  return format("score(%s : {}, {}) {{\n{}      burst.yield {} : {}\n    }}",
                state, argumentTexts(), lines, result.name, state);
}

ScalarValue WildScoreWriter::step(const ScalarValue &s) {
  switch (dice.within(0, 5)) {
  case 0:
    return binary(
        dice.pick({"arith.addf", "arith.subf", "arith.mulf", "arith.divf",
                   "arith.minimumf", "arith.maximumf", "arith.minnumf",
                   "arith.maxnumf", "math.copysign"}),
        s, toFloat(any(drawType(false)), state));
  case 1: { // to an integer and back
    std::string type = dice.pick({"i8", "i32", "i64", "i5", "i1"});
    const char *op = dice.pick({"arith.fptosi", "arith.fptoui"});
    return toFloat(convert(op, s, type), state);
  }
  case 2: { // to a narrower float and back
    const char *type = dice.pick({"f16", "bf16", "f32"});
    ScalarValue narrow = convert("arith.truncf", s, type);
    if (dice.chance(50))
      narrow = binary(dice.pick({"arith.addf", "arith.mulf"}), narrow,
                      real(type, dice.within(-8, 8) * 0.25));
    return convert("arith.extf", narrow, state);
  }
  case 3: { // its bits
    ScalarValue bits = convert("arith.bitcast", s, "i64");
    ScalarValue changed =
        binary("arith.xori", bits, constant("i64", dice.within(0, 255)));
    return convert("arith.bitcast", changed, state);
  }
  case 4:
    return select(any("i1"), s, toFloat(any(drawType(false)), state));
  default:
    return unary(dice.pick({"arith.negf", "math.absf", "math.floor"}), s);
  }
}

std::string WildScoreWriter::drawScore() {
  ScalarValue result{"%s", state};
  for (int64_t more = dice.within(1, 6); more > 0; --more) {
    addRandomOp();
    result = step(result);
  }
  return format("score(%s : {}, {}) {{\n{}      burst.yield {} : {}\n    }}",
                state, argumentTexts(), lines, result.name, state);
}

std::string test::drawMaskRegion(Dice &dice, const oracle::Sizes &sizes,
                                 Captures &captures) {
  return MaskWriter(dice, sizes, captures).draw();
}

std::string test::drawScoreRegion(Dice &dice, const oracle::Sizes &sizes,
                                  const std::string &state, Captures &captures,
                                  std::vector<Capture> &captured) {
  ScoreWriter writer(dice, sizes, captures, state);
  std::string text = writer.draw();
  captured = writer.captures();
  return text;
}

std::string test::drawWildScoreRegion(Dice &dice, const oracle::Sizes &sizes,
                                      Captures &captures) {
  return WildScoreWriter(dice, sizes, captures).drawScore();
}
