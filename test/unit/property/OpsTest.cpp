//===- OpsTest.cpp - every op of arith and math, in every type ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goes through all ops that arith and math register: each is one that the
// verifier of regions refuses, or occurs here in every type that it takes, in
// scores that are compiled and run for CPUs, and compared with the oracle; and
// for GPUs by NVRTC, and executed where the emulator knows all of the code.
//
//===----------------------------------------------------------------------===//
#include "codegen/cuda/Compiler.h"
#include "codegen/cuda/Emit.h"
#include "codegen/cuda/Scalars.h"
#include "dialect/Burst/RegionOps.h"
#include "test/emulator/Emulator.h"
#include "test/unit/property/Captures.h"
#include "test/unit/property/CompiledTrial.h"
#include "tools/data/Random.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace burst;
using namespace burst::test;

static unsigned widthOf(StringRef type) {
  return type == "index" ? 64 : std::stoi(type.ltrim("bfi").str());
}

namespace {

/// A score that adds up what ops make. Operands are numbers that every type
/// holds and that vary with the pair; what an op has no value for stays out of
/// its way.
class OpsScore {
public:
  explicit OpsScore(std::string state) : state(std::move(state)) {
    sum = "%s";
    line("%n0 = arith.muli %i, %sk : index");
    line("%n = arith.addi %n0, %j : index");
  }

  /// All ops on floats of a type.
  void addFloats(const std::string &type);
  /// All ops on integers of a type.
  void addIntegers(const std::string &type);
  void addConversions();
  /// Which zero the minimum and the maximum of two zeros of a float type are.
  void addZeros(const std::string &type);

  std::string text() const {
    return body + fmt::format("        burst.yield {} : {}\n", sum, state);
  }

private:
  std::string fresh() { return "%x" + std::to_string(next++); }
  void line(const std::string &text) { body += "        " + text + "\n"; }
  std::string op(const std::string &text) {
    std::string name = fresh();
    line(name + " = " + text);
    return name;
  }
  std::string constant(const std::string &value, const std::string &type) {
    return op("arith.constant " +
              (type == "i1" ? value : value + " : " + type));
  }
  /// A number of a type that varies with the pair.
  std::string integer(const std::string &type);
  std::string floating(const std::string &type);
  /// Counts a result in.
  void use(const std::string &value, const std::string &type);
  std::string toState(const std::string &value, const std::string &type);

  std::string state, body, sum;
  int next = 0;
};

const char *const floats[] = {"f16", "bf16", "f32", "f64"};
const char *const integers[] = {"i1",  "i2",  "i8",  "i13",  "i16",
                                "i32", "i33", "i64", "index"};

} // namespace

std::string OpsScore::integer(const std::string &type) {
  if (type == "index")
    return "%n";
  std::string wide = op("arith.index_cast %n : index to i64");
  return type == "i64" ? wide
                       : op("arith.trunci " + wide + " : i64 to " + type);
}

/// One of -7/8, ..., 7/8.
std::string OpsScore::floating(const std::string &type) {
  std::string number =
      op("arith.remui %n, " + constant("15", "index") + " : index");
  number = op("arith.index_cast " + number + " : index to i8");
  number = op("arith.subi " + number + ", " + constant("7", "i8") + " : i8");
  number = op("arith.sitofp " + number + " : i8 to " + type);
  return op("arith.mulf " + number + ", " + constant("0.125", type) + " : " +
            type);
}

std::string OpsScore::toState(const std::string &value,
                              const std::string &type) {
  unsigned from = widthOf(type), to = widthOf(state);
  if (from == to && type[0] == state[0])
    return value;
  return op(fmt::format("arith.{} {} : {} to {}", from < to ? "extf" : "truncf",
                        value, type, state));
}

void OpsScore::use(const std::string &value, const std::string &type) {
  std::string number = value;
  if (isFloatElement(type)) {
    number = toState(value, type);
  } else {
    // The low bits: all that a sum of floats has room for.
    std::string from = type, wide = value;
    if (type == "index")
      wide = op("arith.index_cast " + wide + " : index to i64"), from = "i64";
    else if (type != "i64")
      wide = op("arith.extsi " + wide + " : " + type + " to i64");
    wide = op("arith.andi " + wide + ", " + constant("15", "i64") + " : i64");
    number = op("arith.sitofp " + wide + " : i64 to " + state);
    number = op("arith.mulf " + number + ", " + constant("0.0625", state) +
                " : " + state);
  }
  sum = op(fmt::format("arith.addf {}, {} : {}", sum, number, state));
}

void OpsScore::addFloats(const std::string &type) {
  std::string x = floating(type), one = constant("1.0", type),
              half = constant("0.5", type);
  std::string more = op("arith.addf " + x + ", " + one + " : " + type);
  auto unary = [&](const std::string &name, const std::string &of) {
    use(op(name + " " + of + " : " + type), type);
  };
  auto binary = [&](const std::string &name, const std::string &a,
                    const std::string &b) {
    use(op(name + " " + a + ", " + b + " : " + type), type);
  };
  for (const char *name :
       {"absf",      "acos", "asin",  "asinh", "atan",  "atanh",
        "cbrt",      "ceil", "cos",   "cosh",  "erf",   "erfc",
        "exp",       "exp2", "expm1", "floor", "log1p", "round",
        "roundeven", "sin",  "sinh",  "tan",   "tanh",  "trunc"})
    unary(std::string("math.") + name, x);
  for (const char *name : {"log", "log10", "log2", "rsqrt", "sqrt"})
    unary(std::string("math.") + name, more);
  unary("math.acosh", op("arith.addf " + more + ", " + one + " : " + type));
  unary("arith.negf", x);
  for (const char *name : {"arith.addf", "arith.subf", "arith.mulf",
                           "arith.maximumf", "arith.maxnumf", "arith.minimumf",
                           "arith.minnumf", "math.copysign", "math.atan2"})
    binary(name, x, half);
  for (const char *name : {"arith.divf", "arith.remf", "math.powf"})
    binary(name, half, more);
  use(op(fmt::format("math.fma {}, {}, {} : {}", x, half, one, type)), type);
  use(op(fmt::format("math.fpowi {}, {} : {}, i32", more, constant("3", "i32"),
                     type)),
      type);
  for (const char *predicate :
       {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt",
        "uge", "ult", "ule", "une", "uno", "true"}) {
    std::string holds =
        op(fmt::format("arith.cmpf {}, {}, {} : {}", predicate, x, half, type));
    use(op(fmt::format("arith.select {}, {}, {} : {}", holds, x, one, type)),
        type);
  }
}

void OpsScore::addIntegers(const std::string &type) {
  std::string x = integer(type);
  bool isBit = type == "i1", isIndex = type == "index";
  std::string three = constant(isBit ? "true" : type == "i2" ? "1" : "3", type);
  auto binary = [&](const std::string &name, const std::string &a,
                    const std::string &b) {
    use(op(fmt::format("{} {}, {} : {}", name, a, b, type)), type);
  };
  for (const char *name :
       {"addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi",
        "minui", "maxui", "divui", "ceildivui", "remui"})
    binary(std::string("arith.") + name, x, three);
  // The one divisor of i1 is -1.
  std::string dividend = x;
  if (isBit) {
    std::string never = op("arith.cmpi ugt, %j, %sk : index");
    dividend = op("arith.andi " + x + ", " + never + " : i1");
  }
  for (const char *name : {"divsi", "ceildivsi", "floordivsi", "remsi"})
    binary(std::string("arith.") + name, dividend, three);
  std::string amount =
      op(fmt::format("arith.remui {}, {} : {}", x, three, type));
  for (const char *name : {"shli", "shrsi", "shrui"})
    binary(std::string("arith.") + name, x, amount);
  use(op(fmt::format("math.absi {} : {}", x, type)), type);
  for (const char *predicate :
       {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"}) {
    std::string holds = op(
        fmt::format("arith.cmpi {}, {}, {} : {}", predicate, x, three, type));
    use(op(fmt::format("arith.select {}, {}, {} : {}", holds, x, three, type)),
        type);
  }
  if (isIndex)
    return;
  for (const char *other : integers) {
    unsigned from = widthOf(type), to = widthOf(other);
    if (std::string_view(other) == "index") {
      use(op("arith.index_cast " + x + " : " + type + " to index"), other);
      use(op("arith.index_castui " + x + " : " + type + " to index"), other);
      use(op("arith.index_castui %n : index to " + type), type);
    } else if (from > to) {
      use(op(fmt::format("arith.trunci {} : {} to {}", x, type, other)), other);
    } else if (from < to) {
      use(op(fmt::format("arith.extsi {} : {} to {}", x, type, other)), other);
      use(op(fmt::format("arith.extui {} : {} to {}", x, type, other)), other);
    }
  }
}

void OpsScore::addConversions() {
  for (const char *type : floats) {
    std::string x = floating(type);
    std::string four = constant("4.0", type);
    std::string large =
        op(fmt::format("arith.mulf {}, {} : {}", x, four, type));
    std::string size = op(fmt::format("math.absf {} : {}", large, type));
    unsigned width = widthOf(type);
    for (const char *other : integers) {
      std::string to = other;
      if (to == "index")
        continue;
      bool isNarrow = widthOf(to) < 8;
      // Those of few bits get a 0: what is out of range is tested elsewhere.
      std::string least = constant("0.25", type);
      auto take = [&](const std::string &from) {
        return isNarrow ? op(fmt::format("arith.minimumf {}, {} : {}", from,
                                         least, type))
                        : from;
      };
      std::string small = isNarrow ? least : large;
      use(op(fmt::format("arith.fptosi {} : {} to {}", small, type, to)), to);
      use(op(fmt::format("arith.fptoui {} : {} to {}", take(size), type, to)),
          to);
      std::string few =
          op(fmt::format("arith.andi {0}, {1} : {2}", integer(to),
                         constant(to == "i1" ? "true" : "1", to), to));
      use(op(fmt::format("arith.sitofp {} : {} to {}", few, to, type)), type);
      use(op(fmt::format("arith.uitofp {} : {} to {}", few, to, type)), type);
      if (widthOf(to) != width)
        continue;
      std::string bits =
          op(fmt::format("arith.bitcast {} : {} to {}", x, type, to));
      use(bits, to);
      use(op(fmt::format("arith.bitcast {} : {} to {}", bits, to, type)), type);
    }
    for (const char *other : floats) {
      if (widthOf(other) <= width)
        continue;
      std::string wide =
          op(fmt::format("arith.extf {} : {} to {}", x, type, other));
      use(wide, other);
      use(op(fmt::format("arith.truncf {} : {} to {}", wide, other, type)),
          type);
    }
  }
}

void OpsScore::addZeros(const std::string &type) {
  std::string one = constant("1.0", type);
  std::string zero = op(fmt::format("arith.mulf {}, {} : {}", floating(type),
                                    constant("0.0", type), type));
  std::string other = op("arith.negf " + zero + " : " + type);
  for (const char *name : {"maximumf", "minimumf"}) {
    std::string result =
        op(fmt::format("arith.{} {}, {} : {}", name, zero, other, type));
    use(op(fmt::format("math.copysign {}, {} : {}", one, result, type)), type);
  }
}

namespace {

struct Program {
  std::string name, state;
  OpsScore score;
};

std::vector<Program> allPrograms() {
  std::vector<Program> programs;
  for (const char *type : floats) {
    for (const char *state : {"f32", "f64"}) {
      if (std::string_view(state) == "f64" && std::string_view(type) != "f64")
        continue;
      Program program{fmt::format("{} in {}", type, state), state,
                      OpsScore(state)};
      program.score.addFloats(type);
      programs.push_back(std::move(program));
      Program zeros{fmt::format("zeros of {} in {}", type, state), state,
                    OpsScore(state)};
      zeros.score.addZeros(type);
      programs.push_back(std::move(zeros));
    }
  }
  for (const char *type : integers) {
    Program program{type, "f32", OpsScore("f32")};
    program.score.addIntegers(type);
    programs.push_back(std::move(program));
  }
  Program conversions{"conversions", "f32", OpsScore("f32")};
  conversions.score.addConversions();
  programs.push_back(std::move(conversions));
  return programs;
}

RandomProblem problemOf(const Program &program) {
  RandomProblem problem;
  bool isDouble = program.state == "f64";
  problem.element = isDouble ? "f64" : "f16";
  problem.sizes = {1, 9, 9, 1, 1, 8, 8};
  problem.order = "contiguous";
  problem.ranks = 1;
  problem.drop = problem.overlap = true;
  std::string tensor = tensorText({1, 9, 1, 8}, problem.element);
  std::string lse = tensorText({1, 1, 9}, program.state);
  problem.body = fmt::format(
      "func.func @f(%q: {0} {{burst.name = \"q\"}}, %k: {0} {{burst.name = "
      "\"k\"}}, %v: {0} {{burst.name = \"v\"}}) -> ({0}, {1}) {{\n"
      "  %o, %l = burst.attention %q, %k, %v\n"
      "      score(%s : {2}, %b, %h, %i, %j, %sq, %sk) {{\n{3}      }}\n"
      "      sequence <@g, contiguous> : ({0}, {0}, {0}) -> ({0}, {1})\n"
      "  return %o, %l : {0}, {1}\n}}\n",
      tensor, lse, program.state, program.score.text());
  for (const char *name : {"q", "k", "v"})
    problem.tensors.emplace(
        name, data::Tensor::of(dtypeOfElement(problem.element), {1, 9, 1, 8},
                               data::normal(1, name, 72)));
  return problem;
}

class OpsTest : public ::testing::Test {
protected:
  void check(const Program &program) {
    RandomProblem problem = problemOf(program);
    CompiledTrial trial(*context, problem);
    ASSERT_TRUE(trial.compile(cpu::Target::host()) && trial.run({}))
        << trial.trial.error << problem.text(1);
    trial.check();
    if (HasFailure())
      FAIL() << problem.text(1);
  }

  std::unique_ptr<MLIRContext> context = makeContext();
};

TEST_F(OpsTest, AllOfTheDialectsAreKnownOrRefused) {
  std::set<std::string> occurring, registered;
  for (const Program &program : allPrograms()) {
    RandomProblem problem = problemOf(program);
    Trial trial(*context, problem, 1);
    ASSERT_TRUE(trial.parse()) << program.name << ": " << trial.error;
    trial.source->walk([&](Operation *op) {
      occurring.insert(op->getName().getStringRef().str());
    });
  }
  for (StringRef dialect : {arith::ArithDialect::getDialectNamespace(),
                            math::MathDialect::getDialectNamespace()})
    for (RegisteredOperationName op :
         context->getRegisteredOperationsByDialect(dialect)) {
      std::string name = op.getStringRef().str();
      registered.insert(name);
      EXPECT_EQ(isAdmitted(name), occurring.count(name) == 1) << name;
      EXPECT_FALSE(replacementOf(name).empty());
    }
  EXPECT_GT(registered.size(), 90U);
}

TEST_F(OpsTest, CompileForCpus) {
  for (const Program &program : allPrograms()) {
    SCOPED_TRACE(program.name);
    check(program);
    if (HasFailure())
      return;
  }
}

/// A kernel whose threads evaluate a score, each of one pair.
std::string kernelOf(Region &region, std::string &error) {
  cuda::Names names;
  cuda::Scalars scalars(names);
  cuda::Scalars::Wide wide(scalars);
  std::string text = "extern \"C\" __global__ void score(float *out) {\n";
  const char *const arguments[] = {"s", "i64(0)", "i64(0)", "i",
                                   "j", "i64(9)", "i64(9)"};
  text += "float s = 0.125f * threadIdx.x;\n"
          "i64 i = threadIdx.x / 9, j = threadIdx.x % 9;\n";
  for (auto [argument, name] :
       llvm::zip_equal(region.getArguments(), arguments))
    names.alias(argument, name);
  for (Operation &op : region.front().without_terminator()) {
    std::string expression;
    if (failed(scalars.print(&op, expression))) {
      error = op.getName().getStringRef().str();
      return "";
    }
    if (!expression.empty())
      text += fmt::format("const {} {} = {};\n",
                          scalars.typeName(op.getResult(0).getType()),
                          names.define(op.getResult(0), "x").str(), expression);
  }
  Value result = region.front().getTerminator()->getOperand(0);
  return text + fmt::format("out[threadIdx.x] = float({});\n}}\n",
                            names.of(result).str());
}

/// Executes a kernel of `kernelOf`, where the emulator knows all that it does.
std::optional<std::vector<float>> execute(const cuda::Binary &binary) {
  emulator::Module module;
  if (module.parse(binary.ptx))
    return std::nullopt;
  emulator::Memory memory;
  uint64_t out = memory.add(std::vector<float>(81), "out");
  emulator::Arguments arguments;
  arguments.add(out);
  emulator::Outcome outcome =
      module.launch("score", {1}, {81}, 0, arguments, memory);
  EXPECT_TRUE(outcome.ok()) << outcome.failure->str();
  return memory.get<float>(out, 81);
}

/// Expects what the machine says of each pair.
void expectValues(Region &region, const std::vector<float> &found) {
  auto evaluator = RegionEvaluator::create(region, {});
  ASSERT_TRUE(evaluator);
  for (int64_t x = 0; x < 81; ++x) {
    std::array<Scalar, 7> arguments;
    arguments[0].f = 0.125 * double(x);
    const int64_t indices[] = {0, 0, x / 9, x % 9, 9, 9};
    for (auto [argument, index] :
         llvm::zip_equal(llvm::drop_begin(arguments), indices))
      argument.i = index;
    ASSERT_TRUE(evaluator->evaluate(arguments));
    ASSERT_NEAR(found[x], evaluator->result(0).f, 1e-4) << "pair " << x;
  }
}

TEST_F(OpsTest, CompileForGpus) {
  auto compiler = cuda::Compiler::create({});
  if (!compiler)
    GTEST_SKIP() << toString(compiler.takeError());
  int executed = 0;
  for (const Program &program : allPrograms()) {
    SCOPED_TRACE(program.name);
    RandomProblem problem = problemOf(program);
    Trial trial(*context, problem, 1);
    ASSERT_TRUE(trial.parse()) << trial.error;
    auto attention = *trial.function.getOps<AttentionOp>().begin();
    std::string error, text = kernelOf(attention.getScore(), error);
    ASSERT_EQ(error, "") << "has no text";
    auto binary = (*compiler)->compile(
        {"score.cu",
         cuda::getDeviceLibrary().str() + "using namespace burst;\n" + text,
         "sm_80",
         false,
         {"--device-as-default-execution-space"}});
    ASSERT_TRUE(static_cast<bool>(binary)) << toString(binary.takeError());
    if (auto found = execute(*binary)) {
      ++executed;
      expectValues(attention.getScore(), *found);
    }
    if (HasFailure())
      FAIL() << text;
  }
  EXPECT_GE(executed, 14); // all of integers and zeros
}

} // namespace
