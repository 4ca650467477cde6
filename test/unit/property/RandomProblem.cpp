//===- RandomProblem.cpp --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/property/RandomProblem.h"

#include "test/unit/property/RandomRegion.h"
#include "tools/data/Random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <numeric>

using namespace burst;
using namespace burst::test;
using fmt::format;

namespace {

/// Draws one problem.
class Drawing {
public:
  Drawing(uint64_t seed, For kind) : dice(seed), captures(dice), kind(kind) {
    problem.seed = seed;
  }

  RandomProblem draw();
  RandomProblem drawBackward(Scores scores);

private:
  void drawSizes();
  void drawMembers();
  void drawNest();
  void fitGpus();
  void drawInputs();
  std::string tensor(std::vector<int64_t> shape, const std::string &element);

  void addInput(const std::string &name, std::vector<int64_t> shape,
                const std::string &element, double factor);
  std::string attention(int64_t index, bool givesMaxScores);
  std::string clauses(bool hasScore, std::vector<Capture> &scoreCaptures);
  void finish(const std::vector<std::string> &inputs, const std::string &ops);
  void give(const std::string &name, const std::string &type);
  std::string maskNames();
  std::string maskName(bool isLast, std::vector<Capture> &tables);
  std::string documents(bool isLast, std::vector<Capture> &tables);
  Capture ids(int64_t extent, const std::string &element);
  std::string scoreNames(std::vector<Capture> &tables);
  std::string scoreName(std::vector<Capture> &tables);
  Capture floatTable(std::vector<int64_t> shape, bool mayBeOpen = true);
  std::string state() const { return problem.element == "f64" ? "f64" : "f32"; }

  Dice dice;
  Captures captures;
  For kind;
  RandomProblem problem;
  /// Sizes of batch, queries and keys that the types leave open.
  bool openBatch = false, openQueries = false, openKeys = false;
  std::string queryType, keyType, valueType, outType, lseType;
  std::vector<std::string> values, types, results; ///< that are returned
};

} // namespace

//===----------------------------------------------------------------------===//
// Sizes and inputs
//===----------------------------------------------------------------------===//

void Drawing::drawSizes() {
  problem.element = dice.pick({"f64", "f32", "bf16", "f16"});
  problem.ranks = dice.within(1, 8);
  // Fewer positions than ranks, about as many, or many.
  int64_t most = dice.pick({3, 9, 18, 40});
  int64_t queries = dice.chance(4) ? 0 : dice.within(1, most);
  int64_t keys = dice.chance(4) ? 0 : dice.within(1, most);
  if (dice.chance(50))
    keys = queries;
  int64_t keyHeads = dice.within(1, 2);
  problem.sizes = {dice.within(1, 2),
                   queries,
                   keys,
                   keyHeads * dice.pick({1, 1, 2, 4}),
                   keyHeads,
                   dice.within(1, 16),
                   dice.within(1, 16)};
  if (kind == For::Gpus)
    fitGpus();
  if (problem.ranks > 1 && problem.ranks < 5 && dice.chance(40)) {
    const oracle::Sizes &s = problem.sizes;
    problem.headParts = s.keyHeads == 2 && dice.chance(60) ? 2 : 1;
    problem.batchParts = s.batch == 2 && dice.chance(60) ? 2 : 1;
    problem.isHeadsLast = dice.chance(50);
  }
  if (problem.ranks > 1 && problem.ranks < 4 && dice.chance(40))
    drawMembers();
  if (!problem.isGrid() && problem.members == 1 && dice.chance(40))
    drawNest();
  problem.order = dice.pick({"contiguous", "zigzag", "striped"});
  if (problem.order == "striped" && dice.chance(60))
    problem.order += format(" {}", dice.within(1, 7));
  problem.drop = dice.chance(80);
  problem.overlap = dice.chance(70);
  problem.fuse = problem.seed % 4 != 1;
  problem.fuseSeparately = problem.seed % 4 == 2;
  openBatch = dice.chance(25);
  openQueries = dice.chance(25);
  openKeys = dice.chance(25);
}

/// As many heads as there must be for each of some ranks to have others, but
/// that they may share those of keys.
void Drawing::drawMembers() {
  oracle::Sizes &s = problem.sizes;
  problem.members =
      problem.isGrid() ? 2 : dice.pick({2, 2, 3, 4}); // of many ranks
  int64_t keyHeads = s.keyHeads / problem.headParts;  // of a part
  int64_t group = s.queryHeads / s.keyHeads;
  auto setHeads = [&] {
    s.keyHeads = keyHeads * problem.headParts;
    s.queryHeads = group * s.keyHeads;
  };
  if (dice.chance(40)) { // heads that ranks may not divide
    if (problem.members < 4 && dice.chance(50))
      keyHeads = problem.members + 1;
    else
      group = dice.pick({group, int64_t{3}, int64_t{5}});
    int64_t heads = group * keyHeads;
    if (heads > problem.members || problem.members % heads != 0)
      return setHeads();
  }
  bool isShared = dice.chance(40) && problem.members % keyHeads == 0;
  if (isShared)
    group = std::lcm(group * keyHeads, problem.members) / keyHeads;
  else if (keyHeads % problem.members != 0)
    keyHeads = problem.members;
  setHeads();
}

/// Ranks of two axes, and sometimes of a third one over which heads are
/// exchanged.
void Drawing::drawNest() {
  problem.innerRanks = dice.pick({1, 2, 2, 2, 3, 4});
  int64_t outer = dice.within(1, 8 / problem.innerRanks);
  if (kind == For::Gpus) {
    problem.innerRanks = dice.pick({1, 2, 2});
    outer = 2;
  }
  problem.ranks = outer * problem.innerRanks;
  if (problem.ranks > 1 && problem.ranks < 5 && dice.chance(30))
    drawMembers();
}

/// Numbers of 16 bits, rows of whole chunks, sometimes more than a tile of
/// them; and little work, for what executes the kernels is slow.
void Drawing::fitGpus() {
  problem.element = dice.pick({"bf16", "f16"});
  problem.ranks = dice.within(1, 3);
  oracle::Sizes &s = problem.sizes;
  int64_t most = dice.pick({9, 40, 90});
  s.batch = dice.chance(80) ? 1 : 2;
  s.queries = dice.chance(4) ? 0 : dice.within(1, most);
  s.keys =
      dice.chance(50) ? s.queries : dice.within(dice.chance(4) ? 0 : 1, most);
  s.keyHeads = dice.within(1, 2);
  s.queryHeads = s.keyHeads * dice.pick({1, 1, 2});
  int64_t products = problem.ranks * problem.ranks * s.batch * s.queryHeads;
  int64_t widest = std::clamp<int64_t>(80 / products, 2, 32);
  s.queryDim = 8 * dice.within(1, widest);
  s.valueDim = dice.chance(70) ? s.queryDim : 8 * dice.within(1, widest);
}

std::string Drawing::tensor(std::vector<int64_t> shape,
                            const std::string &element) {
  return tensorText(shape, element);
}

void Drawing::drawInputs() {
  const oracle::Sizes &s = problem.sizes;
  const std::string &e = problem.element;
  int64_t b = openBatch ? -1 : s.batch, sq = openQueries ? -1 : s.queries,
          sk = openKeys ? -1 : s.keys;
  queryType = tensor({b, sq, s.queryHeads, s.queryDim}, e);
  keyType = tensor({b, sk, s.keyHeads, s.queryDim}, e);
  valueType = tensor({b, sk, s.keyHeads, s.valueDim}, e);
  outType = tensor({b, sq, s.queryHeads, s.valueDim}, e);
  lseType = tensor({b, s.queryHeads, sq}, state());
  // Scores of up to some hundreds are what a maximum is subtracted for.
  double factor = dice.pick({1.0, 1.0, 1.0, 1.0, 8.0, 0.0});
  addInput("q", {s.batch, s.queries, s.queryHeads, s.queryDim}, e, factor);
  addInput("k", {s.batch, s.keys, s.keyHeads, s.queryDim}, e, factor);
  addInput("v", {s.batch, s.keys, s.keyHeads, s.valueDim}, e, 1);
}

void Drawing::addInput(const std::string &name, std::vector<int64_t> shape,
                       const std::string &element, double factor) {
  size_t count = 1;
  for (int64_t size : shape)
    count *= size;
  std::vector<double> values = data::normal(problem.seed, name, count);
  for (double &value : values)
    value *= factor;
  problem.tensors.emplace(name, data::Tensor::of(dtypeOfElement(element),
                                                 std::move(shape), values));
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Names, and behind them the tables they take.
static std::string withTables(const std::vector<std::string> &names,
                              const std::vector<Capture> &tables) {
  std::string text = names.size() == 1 ? names.front()
                                       : format("[{}]", fmt::join(names, ", "));
  if (tables.empty())
    return text;
  std::vector<std::string> values, types;
  for (const Capture &table : tables) {
    values.push_back(table.name);
    types.push_back(table.type);
  }
  return text +
         format("({} : {})", fmt::join(values, ", "), fmt::join(types, ", "));
}

Capture Drawing::ids(int64_t extent, const std::string &element) {
  std::vector<int64_t> shape{extent};
  bool byBatch = dice.chance(30);
  if (byBatch)
    shape.insert(shape.begin(), problem.sizes.batch);
  std::vector<int64_t> values(extent * (byBatch ? problem.sizes.batch : 1));
  int64_t most = element == "i1" ? 1 : dice.within(1, 6);
  for (int64_t &value : values)
    value = dice.within(0, most);
  if (dice.chance(60))
    std::sort(values.begin(), values.end());
  else
    problem.isExact = false;
  problem.isExact &= !byBatch;
  return captures.addInts(element, shape, values);
}

/// One table for queries and keys, or one for each, which only the last of
/// several names may take.
std::string Drawing::documents(bool isLast, std::vector<Capture> &tables) {
  std::string element =
      dice.pick({"i32", "i32", "i64", "i16", "i8", "index", "i1"});
  bool isSame = problem.sizes.queries == problem.sizes.keys;
  if (!isSame && !isLast)
    return "causal";
  tables.push_back(ids(problem.sizes.queries, element));
  if (isSame && dice.chance(60))
    return "documents";
  if (!isLast)
    return "documents";
  problem.isExact = false;
  tables.push_back(ids(problem.sizes.keys, element));
  return "documents";
}

std::string Drawing::maskName(bool isLast, std::vector<Capture> &tables) {
  int64_t most = std::max<int64_t>(problem.sizes.keys / 2, 2);
  switch (dice.within(0, 7)) {
  case 0:
    return "full";
  case 1:
  case 2:
    return "causal";
  case 3:
    return format("window<left = {}, right = {}>", dice.within(0, most),
                  dice.within(0, most));
  case 4:
    return format("window<{} = {}>", dice.pick({"left", "right"}),
                  dice.within(0, most));
  case 5:
    return format("prefix<{}>", dice.within(0, most));
  default:
    return documents(isLast, tables);
  }
}

std::string Drawing::maskNames() {
  std::vector<std::string> names;
  std::vector<Capture> tables;
  int64_t count = dice.pick({1, 1, 2, 3});
  for (int64_t n = 0; n < count; ++n)
    names.push_back(maskName(n + 1 == count, tables));
  problem.isExact &= count == 1;
  return "mask " + withTables(names, tables);
}

/// Multiples of 1/8, which every float type holds.
Capture Drawing::floatTable(std::vector<int64_t> shape, bool mayBeOpen) {
  int64_t size = 1;
  for (int64_t n : shape)
    size *= n;
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n)
    values.push_back(static_cast<double>(dice.within(-16, 16)) * 0.125);
  return captures.addFloats(dice.pick({"f32", "f64", "f16", "bf16"}), shape,
                            values, mayBeOpen);
}

std::string Drawing::scoreName(std::vector<Capture> &tables) {
  const oracle::Sizes &s = problem.sizes;
  switch (dice.within(0, 2)) {
  case 0:
    if (dice.chance(70))
      tables.push_back(floatTable({s.queryHeads}));
    else
      tables.push_back(floatTable({s.batch, s.queryHeads}));
    return "alibi";
  case 1: // a cap that f32 holds: the oracle takes it as it is
    return format("softcap<{:.6e}>",
                  static_cast<double>(dice.within(1, 240)) * 0.125);
  default:
    break;
  }
  std::vector<int64_t> shape{s.queries, s.keys};
  if (dice.chance(60)) {
    shape = {s.batch, s.queryHeads, s.queries, s.keys};
    for (int64_t &size : shape)
      size = dice.chance(40) ? 1 : size;
  }
  tables.push_back(floatTable(shape, /*mayBeOpen=*/shape.size() == 2));
  return "bias";
}

std::string Drawing::scoreNames(std::vector<Capture> &tables) {
  std::vector<std::string> names;
  for (int64_t n = dice.pick({1, 1, 2, 3}); n > 0; --n)
    names.push_back(scoreName(tables));
  return "score " + withTables(names, tables);
}

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

/// Without sines and cosines: for large angles these read a table of NVRTC's,
/// and what executes kernels of GPUs has no such variables.
static std::string withoutSines(std::string text) {
  for (const char *name : {"math.sin ", "math.cos "})
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, strlen(name), "math.tanh ");
  return text;
}

/// What an attention is like, behind its tensors.
std::string Drawing::clauses(bool hasScore,
                             std::vector<Capture> &scoreCaptures) {
  std::string text;
  auto clause = [&](const std::string &clause) {
    text += "    " + (kind == For::Gpus ? withoutSines(clause) : clause) + "\n";
  };
  int64_t mask = dice.within(0, 9);
  if (mask <= 3) {
    clause(maskNames());
  } else if (mask <= 8) {
    problem.isExact = false;
    clause(drawMaskRegion(dice, problem.sizes, captures));
  }
  int64_t score = hasScore ? dice.within(0, 9) : 9;
  if (score <= 2)
    clause(scoreNames(scoreCaptures));
  else if (score <= 5)
    clause(
        drawScoreRegion(dice, problem.sizes, state(), captures, scoreCaptures));
  if (dice.chance(30))
    clause(format("scale {:.6e}",
                  static_cast<double>(dice.within(-8, 8)) * 0.125));
  clause(problem.clauses());
  return text;
}

std::string Drawing::attention(int64_t index, bool givesMaxScores) {
  std::vector<Capture> scoreCaptures;
  std::string text =
      format("  %o{0}, %l{0}{1} = burst.attention %q, %k, %v\n{2}", index,
             givesMaxScores ? format(", %m{}", index) : "",
             clauses(/*hasScore=*/true, scoreCaptures));
  if (problem.members > 1 || dice.chance(90)) {
    std::string strategy =
        dice.pick({"ring_q", "ring_q", "ring_kv", "ring_kv", "all_gather",
                   "all_gather", "gather_q", "direct_q", "direct_kv",
                   "bi_ring_q", "bi_ring_kv", "ring_scores"});
    if (problem.innerRanks != 0 && dice.chance(70))
      strategy = dice.pick({"double_ring_q", "double_ring_kv"});
    if (kind == For::Gpus && strategy == "ring_scores")
      strategy = "ring_kv"; // kernels of GPUs keep no scores
    text += format("    strategy <{}>\n", problem.strategy(strategy));
    problem.isExact &= strategy != "ring_scores"; // nothing is dropped
  }
  return text + format("    : ({}, {}, {}) -> ({}, {}{})\n", queryType, keyType,
                       valueType, outType, lseType,
                       givesMaxScores ? ", " + lseType : "");
}

void Drawing::give(const std::string &name, const std::string &type) {
  values.push_back("%" + name);
  types.push_back(type);
  results.push_back(format("{} {{burst.name = \"{}\"}}", type, name));
}

/// The function of `inputs`, written with their types, and captures.
void Drawing::finish(const std::vector<std::string> &inputs,
                     const std::string &ops) {
  std::vector<std::string> arguments = inputs;
  for (const std::string &argument : captures.arguments())
    arguments.push_back(argument);
  problem.body = format("func.func @f({})\n    -> ({}) {{\n{}{}  return {} : "
                        "{}\n}}\n",
                        fmt::join(arguments, ",\n    "),
                        fmt::join(results, ", "), captures.constants(), ops,
                        fmt::join(values, ", "), fmt::join(types, ", "));
  for (const auto &[name, tensor] : captures.tensors())
    problem.tensors.emplace(name, tensor);
}

/// "%q: type {burst.name = "q"}"
static std::string namedArgument(const std::string &name,
                                 const std::string &type) {
  return format("%{0}: {1} {{burst.name = \"{0}\"}}", name, type);
}

RandomProblem Drawing::draw() {
  drawSizes();
  drawInputs();
  problem.isExact = true;
  // Of several attentions, each may return one of its results only.
  int64_t count = dice.chance(85) ? 1 : 2;
  std::string attentions;
  for (int64_t index = 0; index < count; ++index) {
    bool givesMaxScores = dice.chance(25);
    attentions += attention(index, givesMaxScores);
    int64_t which = dice.within(0, 9);
    if (which != 0)
      give(format("o{}", index), outType);
    if (which != 1)
      give(format("l{}", index), lseType);
    if (givesMaxScores)
      give(format("m{}", index), lseType);
  }
  problem.isExact &= count == 1;
  finish({namedArgument("q", queryType), namedArgument("k", keyType),
          namedArgument("v", valueType)},
         attentions);
  return problem;
}

RandomProblem Drawing::drawBackward(Scores scores) {
  drawSizes();
  drawInputs();
  problem.isExact = false;
  const oracle::Sizes &s = problem.sizes;
  std::vector<int64_t> outShape{s.batch, s.queries, s.queryHeads, s.valueDim};
  std::vector<int64_t> lseShape{s.batch, s.queryHeads, s.queries};
  std::vector<std::string> inputs{namedArgument("q", queryType),
                                  namedArgument("k", keyType),
                                  namedArgument("v", valueType)};
  auto take = [&](const char *name, const std::vector<int64_t> &shape,
                  const std::string &type, const std::string &element,
                  double factor) {
    inputs.push_back(namedArgument(name, type));
    addInput(name, shape, element, factor);
  };
  std::vector<Capture> scoreCaptures;
  std::string common = clauses(scores != Scores::None, scoreCaptures), ops;

  bool hasForward = dice.chance(40);
  // All attentions of a function do the same.
  std::string exchange =
      problem.members == 1
          ? ""
          : format("    strategy <{}>\n", problem.strategy("ring_kv"));
  if (hasForward) {
    ops += format("  %o, %l = burst.attention %q, %k, %v\n{}{}"
                  "    : ({}, {}, {}) -> ({}, {})\n",
                  common, exchange, queryType, keyType, valueType, outType,
                  lseType);
    // On a GPU, nothing copies what the backward pass reads.
    if (dice.chance(50) && kind != For::Gpus)
      give("o", outType);
    if (dice.chance(30) && kind != For::Gpus)
      give("l", lseType);
  } else {
    take("o", outShape, outType, problem.element, 0);
    take("l", lseShape, lseType, state(), 0);
  }
  take("do", outShape, outType, problem.element, 1);
  bool hasLseGrad = dice.chance(40);
  if (hasLseGrad)
    take("dl", lseShape, lseType, state(), 1);

  // Tables of floats, in any order.
  std::vector<int64_t> wanted;
  std::vector<std::string> resultTypes{queryType, keyType, valueType};
  for (size_t c = 0; c < scoreCaptures.size(); ++c)
    if (scores == Scores::Tables && kind != For::Gpus &&
        isFloatElement(scoreCaptures[c].element) &&
        !scoreCaptures[c].shape.empty() && dice.chance(70))
      wanted.insert(dice.chance(50) ? wanted.begin() : wanted.end(),
                    static_cast<int64_t>(c));
  for (int64_t c : wanted) {
    std::string type = scoreCaptures[c].type;
    type.resize(type.rfind('x') + 1);
    resultTypes.push_back(type + state() + ">");
  }

  // Twice the same, but for what travels. Where that is the same too, one
  // result is copied to the other, which no GPU does.
  int64_t count = dice.chance(85) || kind == For::Gpus ? 1 : 2;
  for (int64_t index = 0; index < count; ++index) {
    std::vector<std::string> names;
    for (size_t r = 0; r < resultTypes.size(); ++r) {
      names.push_back(format("d{}_{}", index, r));
      if (static_cast<int64_t>(r) == index || dice.chance(85))
        give(names.back(), resultTypes[r]);
    }
    ops += format("  %{} = burst.attention_backward %q, %k, %v, %o, %l, "
                  "%do{}\n{}",
                  fmt::join(names, ", %"), hasLseGrad ? ", %dl" : "", common);
    if (problem.members > 1 || dice.chance(80)) {
      std::string strategy =
          dice.pick({"ring_q", "ring_kv", "all_gather", "gather_q", "direct_q",
                     "direct_kv", "bi_ring_q", "bi_ring_kv"});
      if (problem.innerRanks != 0 && dice.chance(70))
        strategy = dice.pick({"double_ring_q", "double_ring_kv"});
      // Which has no kernels for GPUs, and no derivatives of most scores.
      bool isScored = common.find("    score") != std::string::npos;
      if (kind != For::Gpus && !isScored && dice.chance(25))
        strategy = "ring_scores";
      ops += format("    strategy <{}>\n", problem.strategy(strategy));
    }
    if (!wanted.empty())
      ops += format("    gradients [{}]\n", fmt::join(wanted, ", "));
    ops +=
        format("    : ({}, {}, {}, {}, {}, {}{}) -> ({})\n", queryType, keyType,
               valueType, outType, lseType, outType,
               hasLseGrad ? ", " + lseType : "", fmt::join(resultTypes, ", "));
  }
  finish(inputs, ops);
  return problem;
}

void RandomProblem::drawOperand(const std::string &name,
                                std::vector<int64_t> shape, uint64_t from) {
  size_t count = 1;
  for (int64_t size : shape)
    count *= size;
  tensors.emplace(name, data::Tensor::of(dtypeOfElement(element), shape,
                                         data::normal(from, name, count)));
}

std::string RandomProblem::clauses() const {
  if (!isGrid())
    return format("sequence <@g, {}>", order);
  int64_t last = members == 1 ? 2 : 3;
  return format("sequence <@g[{}], {}> heads <@g[{}]> batch <@g[{}]>",
                members == 1 ? "1" : "1, 2", order, isHeadsLast ? last : 0,
                isHeadsLast ? 0 : last);
}

std::string RandomProblem::strategy(const std::string &name) const {
  return members == 1 ? name
                      : format("ulysses on [{}], {}",
                               innerRanks == 0 && !isGrid() ? 1 : 2, name);
}

std::string RandomProblem::text(int64_t ranks) const {
  std::string shape = std::to_string(ranks);
  if (innerRanks != 0)
    shape =
        ranks == 1 ? "1x1" : format("{}x{}", ranks / innerRanks, innerRanks);
  if (members > 1)
    shape += format("x{}", ranks == 1 ? 1 : members);
  if (isGrid() && ranks == 1)
    shape = "1x1x" + shape;
  else if (isGrid())
    shape = format("{}x{}x{}", isHeadsLast ? batchParts : headParts, shape,
                   isHeadsLast ? headParts : batchParts);
  return format("shard.grid @g(shape = {})\n{}", shape, body);
}

std::string RandomProblem::replay() const {
  return format("BURST_SEED={} BURST_COUNT=1; burst-to-ring={{drop={} "
                "overlap={} fuse={}}}{}",
                seed, drop, overlap, fuse,
                fuseSeparately ? " ring-fuse-ends{separately}" : "");
}

RandomProblem test::drawProblem(uint64_t seed, For kind) {
  return Drawing(seed, kind).draw();
}

RandomProblem test::drawBackward(uint64_t seed, Scores scores, For kind) {
  return Drawing(seed, kind).drawBackward(scores);
}
