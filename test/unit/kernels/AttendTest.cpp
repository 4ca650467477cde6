//===- AttendTest.cpp - kernels of GPUs, executed without one -------------===//
//
// From burst.attention to the text of its kernel, through NVRTC to PTX, which
// the emulator executes: with its tables made here, in two launches that hand
// the state on, against attention in f64.
//
//===----------------------------------------------------------------------===//
#include "codegen/cuda/CompileLog.h"
#include "codegen/cuda/Compiler.h"
#include "codegen/cuda/Emit.h"
#include "codegen/cuda/Passes.h"
#include "dialect/Cuda/Cuda.h"
#include "jit/Frontend.h"
#include "passes/Passes.h"
#include "passes/Tile/Builder.h"
#include "test/emulator/Emulator.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace burst;
using emulator::Arguments;
using emulator::Memory;
using tiling::Field;

namespace {

/// An attention of one batch, and how its kernel is made.
struct Problem {
  std::string name;
  int64_t queries, keys, heads, keyHeads, dim, valueDim;
  std::string element, clauses;
  int64_t rows, columns, warps;
  std::function<bool(int64_t, int64_t)> keeps; ///< the mask, of i and j
  std::function<double(double, int64_t, int64_t)> score; ///< of s, i and j
  std::string table; ///< type of a captured table that holds `capture`
  std::vector<int32_t> capture;
};

void PrintTo(const Problem &problem, std::ostream *os) { *os << problem.name; }

double rounded(double x, const std::string &element) {
  APFloat number(x);
  bool loses = false;
  number.convert(element == "bf16" ? APFloat::BFloat() : APFloat::IEEEhalf(),
                 APFloat::rmNearestTiesToEven, &loses);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

uint16_t bits(double x, const std::string &element) {
  APFloat number(x);
  bool loses = false;
  number.convert(element == "bf16" ? APFloat::BFloat() : APFloat::IEEEhalf(),
                 APFloat::rmNearestTiesToEven, &loses);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

/// What NVRTC compiles, and what a launch must know.
struct Kernel {
  cuda::KernelText text;
  std::vector<std::pair<std::string, Type>> parameters;
};

class Attend : public testing::TestWithParam<Problem> {
protected:
  void SetUp() override {
    DialectRegistry registry;
    jit::registerDialects(registry);
    context.appendDialectRegistry(registry);
    auto made = cuda::Compiler::create({});
    if (!made) {
      llvm::consumeError(made.takeError());
      GTEST_SKIP() << "no NVRTC";
    }
    compiler = std::move(*made);
  }

  Kernel lower(const Problem &p);
  cuda::Source source(const Kernel &kernel, llvm::StringRef architecture) {
    return {kernel.text.name + ".cu",
            cuda::getDeviceLibrary().str() + "using namespace burst;\n" +
                kernel.text.text,
            architecture.str(),
            false,
            {"--device-as-default-execution-space"}};
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<cuda::Compiler> compiler;
};

} // namespace

Kernel Attend::lower(const Problem &p) {
  auto tensor = [&](int64_t rows, int64_t heads, int64_t dim) {
    return llvm::formatv("tensor<1x{0}x{1}x{2}x{3}>", rows, heads, dim,
                         p.element)
        .str();
  };
  std::string q = tensor(p.queries, p.heads, p.dim),
              k = tensor(p.keys, p.keyHeads, p.dim),
              v = tensor(p.keys, p.keyHeads, p.valueDim),
              o = tensor(p.queries, p.heads, p.valueDim),
              lse = llvm::formatv("tensor<1x{0}x{1}xf32>", p.heads, p.queries);
  std::string text =
      "shard.grid @cp(shape = 1)\nfunc.func @f(%q: " + q + ", %k: " + k +
      ", %v: " + v + (p.table.empty() ? "" : ", %table: " + p.table) +
      ") -> (" + o + ", " + lse +
      ") {\n  %o, %lse = burst.attention %q, %k, %v " + p.clauses +
      " sequence <@cp, contiguous> : (" + q + ", " + k + ", " + v + ") -> (" +
      o + ", " + lse + ")\n  return %o, %lse : " + o + ", " + lse + "\n}\n";
  module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  std::string pipeline = llvm::formatv(
      "burst-to-ring,inline,symbol-dce,ring-bufferize,ring-lower-to-tile{{rows="
      "{0} columns={1} warps={2}},canonicalize,cse,func.func(cuda-stage-copies)"
      ",canonicalize,cse",
      p.rows, p.columns, p.warps);
  PassManager manager(&context);
  EXPECT_TRUE(succeeded(parsePassPipeline(pipeline, manager)));
  EXPECT_TRUE(succeeded(manager.run(*module)));
  auto function = module->lookupSymbol<func::FuncOp>("f_attend");
  EXPECT_TRUE(function);
  FailureOr<cuda::KernelText> emitted = cuda::emitKernel(function);
  EXPECT_TRUE(succeeded(emitted));
  Kernel kernel{*emitted, {}};
  for (BlockArgument argument : function.getArguments().drop_front())
    kernel.parameters.emplace_back(
        cast<NameLoc>(argument.getLoc()).getName().str(), argument.getType());
  return kernel;
}

namespace {

/// Rows of tiles as the compiler's schedules make them, of a shard that holds
/// positions 0 to count - 1.
std::vector<int64_t> tilesOf(int64_t count, int64_t size) {
  std::vector<int64_t> table;
  for (int64_t row = 0; row < count; row += size) {
    int64_t fields[Field::NumFields] = {};
    fields[Field::First] = fields[Field::Row] = row;
    fields[Field::Count] = std::min(size, count - row);
    fields[Field::Lowest] = row;
    fields[Field::Behind] = row + fields[Field::Count];
    table.insert(table.end(), std::begin(fields), std::end(fields));
  }
  return table;
}

/// The emulated memory of a launch, and its parameters by name.
class Launch {
public:
  template <class T>
  uint64_t buffer(const std::string &name, const std::vector<T> &values,
                  std::vector<int64_t> shape, bool isWritten = false) {
    uint64_t address = memory.add(values, name,
                                  isWritten ? Memory::Access::ReadWrite
                                            : Memory::Access::ReadOnly);
    std::vector<int64_t> steps(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;)
      steps[d - 1] = steps[d] * shape[d];
    Arguments packed;
    packed.add(address);
    for (int64_t step : steps)
      packed.add(step);
    for (int64_t size : shape)
      packed.add(static_cast<int32_t>(size));
    packed.data.resize((packed.data.size() + 7) / 8 * 8);
    parameters[name] = packed.data;
    return address;
  }
  void scalar(const std::string &name, int32_t value) {
    Arguments packed;
    packed.add(value);
    parameters[name] = packed.data;
  }
  Arguments arguments(const Kernel &kernel, uint64_t order) {
    Arguments all;
    all.add(order);
    for (const auto &[name, type] : kernel.parameters) {
      EXPECT_TRUE(parameters.count(name)) << name;
      const std::vector<uint8_t> &data = parameters[name];
      size_t alignment = isa<MemRefType>(type) ? 8 : 4;
      all.data.resize((all.data.size() + alignment - 1) / alignment *
                      alignment);
      all.data.insert(all.data.end(), data.begin(), data.end());
    }
    return all;
  }

  Memory memory;

private:
  std::map<std::string, std::vector<uint8_t>> parameters;
};

} // namespace

TEST_P(Attend, AgreesWithAttentionInF64) {
  const Problem &p = GetParam();
  Kernel kernel = lower(p);
  llvm::Expected<cuda::Binary> binary =
      compiler->compile(source(kernel, "sm_80"));
  ASSERT_TRUE(static_cast<bool>(binary)) << toString(binary.takeError());
  EXPECT_EQ(cuda::CompileLog::read(binary->log).complaint(), "");
  emulator::Module program;
  std::optional<emulator::Failure> failure = program.parse(binary->ptx);
  ASSERT_FALSE(failure) << failure->str();

  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  auto draw = [&](int64_t count) {
    std::vector<double> numbers(count);
    for (double &number : numbers)
      number = rounded(normal(random), p.element);
    return numbers;
  };
  std::vector<double> q = draw(p.queries * p.heads * p.dim),
                      k = draw(p.keys * p.keyHeads * p.dim),
                      v = draw(p.keys * p.keyHeads * p.valueDim);
  auto memoryOf = [&](const std::vector<double> &numbers) {
    std::vector<uint16_t> memory;
    for (double number : numbers)
      memory.push_back(bits(number, p.element));
    return memory;
  };

  Launch launch;
  launch.buffer("q", memoryOf(q), {1, p.queries, p.heads, p.dim});
  launch.buffer("k", memoryOf(k), {1, p.keys, p.keyHeads, p.dim});
  launch.buffer("v", memoryOf(v), {1, p.keys, p.keyHeads, p.valueDim});
  std::vector<int64_t> queryTiles = tilesOf(p.queries, p.rows),
                       keyTiles = tilesOf(p.keys, p.columns);
  auto numQueryTiles =
           static_cast<int64_t>(queryTiles.size()) / Field::NumFields,
       numKeyTiles = static_cast<int64_t>(keyTiles.size()) / Field::NumFields;
  launch.buffer("queryTiles", queryTiles, {numQueryTiles, Field::NumFields});
  launch.buffer("keyTiles", keyTiles, {numKeyTiles, Field::NumFields});
  if (!p.table.empty())
    launch.buffer("table", p.capture, {static_cast<int64_t>(p.capture.size())});
  int64_t rows = p.queries * p.heads;
  uint64_t o = launch.buffer("oState", std::vector<float>(rows * p.valueDim),
                             {1, p.queries, p.heads, p.valueDim}, true),
           m = launch.buffer("mState", std::vector<float>(rows, -INFINITY),
                             {1, p.heads, p.queries}, true),
           l = launch.buffer("lState", std::vector<float>(rows),
                             {1, p.heads, p.queries}, true);
  launch.scalar("sq", static_cast<int32_t>(p.queries));
  launch.scalar("sk", static_cast<int32_t>(p.keys));
  std::vector<int32_t> order(numQueryTiles * p.heads);
  for (size_t task = 0; task < order.size(); ++task)
    order[task] = static_cast<int32_t>(order.size() - 1 - task);
  uint64_t orderAt =
      launch.memory.add(order, "order", Memory::Access::ReadOnly);

  // The first launch takes the first half of the keys, the second the others.
  for (int64_t half = 0; half < 2; ++half) {
    std::vector<int32_t> list(numQueryTiles * numKeyTiles);
    std::vector<int64_t> counts(numQueryTiles * 2);
    for (int64_t i = 0; i < numQueryTiles; ++i)
      for (int64_t j = 0; j < numKeyTiles; ++j) {
        if ((j < numKeyTiles / 2) != (half == 0))
          continue;
        bool may = false, must = p.keys - j * p.columns >= p.columns;
        for (int64_t a = i * p.rows; a < std::min(p.queries, (i + 1) * p.rows);
             ++a)
          for (int64_t b = j * p.columns;
               b < std::min(p.keys, (j + 1) * p.columns); ++b)
            (p.keeps(a, b) ? may : must) = p.keeps(a, b);
        if (!may)
          continue;
        int64_t &count = counts[2 * i + (must ? 0 : 1)];
        list[i * numKeyTiles + (must ? count : numKeyTiles - 1 - count)] =
            static_cast<int32_t>(j);
        ++count;
      }
    launch.buffer("list", list, {1, 1, numQueryTiles, numKeyTiles});
    launch.buffer("counts", counts, {1, 1, numQueryTiles, 2});
    emulator::Options options;
    options.seed = half;
    emulator::Outcome outcome = program.launch(
        kernel.text.name, {static_cast<uint32_t>(order.size())},
        {static_cast<uint32_t>(32 * p.warps)}, kernel.text.sharedBytes,
        launch.arguments(kernel, orderAt), launch.memory, options);
    ASSERT_TRUE(outcome.ok()) << outcome.failure->str();
    EXPECT_EQ(outcome.counters.bankConflicts, 0U)
        << outcome.counters.conflicts.front().text;
  }

  auto outs = launch.memory.get<float>(o, rows * p.valueDim),
       references = launch.memory.get<float>(m, rows),
       sums = launch.memory.get<float>(l, rows);
  double unit = p.element == "bf16" ? std::ldexp(1, -8) : std::ldexp(1, -11);
  double scale = 1 / std::sqrt(static_cast<double>(p.dim));
  for (int64_t h = 0; h < p.heads; ++h)
    for (int64_t i = 0; i < p.queries; ++i) {
      int64_t keyHead = h / (p.heads / p.keyHeads);
      std::vector<double> scores(p.keys, -INFINITY);
      double most = -INFINITY;
      for (int64_t j = 0; j < p.keys; ++j) {
        if (!p.keeps(i, j))
          continue;
        double s = 0;
        for (int64_t d = 0; d < p.dim; ++d)
          s += q[(i * p.heads + h) * p.dim + d] *
               k[(j * p.keyHeads + keyHead) * p.dim + d];
        scores[j] = p.score(scale * s, i, j);
        most = std::max(most, scores[j]);
      }
      double sum = 0;
      for (double &s : scores) {
        s = most == -INFINITY ? 0 : std::exp(s - most);
        sum += s;
      }
      int64_t row = h * p.queries + i;
      if (sum == 0) {
        EXPECT_EQ(sums[row], 0) << "row " << i << " sees nothing";
        continue;
      }
      double lse = most + std::log(sum);
      double got = (references[row] + std::log2(sums[row])) * std::log(2.0);
      EXPECT_NEAR(got, lse, 1e-5 * std::max(1.0, std::abs(lse)))
          << "lse of head " << h << ", row " << i;
      for (int64_t d = 0; d < p.valueDim; ++d) {
        double want = 0, size = 0;
        for (int64_t j = 0; j < p.keys; ++j) {
          double x =
              scores[j] / sum * v[(j * p.keyHeads + keyHead) * p.valueDim + d];
          want += x;
          size += std::abs(x);
        }
        double out = outs[(i * p.heads + h) * p.valueDim + d] / sums[row];
        // Weights are rounded to 16 bits; all else is of f32.
        ASSERT_NEAR(out, want, unit * size + 1e-5)
            << "head " << h << ", row " << i << ", column " << d;
      }
    }
}

static bool all(int64_t, int64_t) { return true; }
static double same(double s, int64_t, int64_t) { return s; }

static Problem problem(std::string name, int64_t dim, std::string clauses,
                       std::function<bool(int64_t, int64_t)> keeps) {
  return {.name = std::move(name),
          .queries = 150,
          .keys = 200,
          .heads = 2,
          .keyHeads = 1,
          .dim = dim,
          .valueDim = dim,
          .element = "bf16",
          .clauses = std::move(clauses),
          .rows = 64,
          .columns = 64,
          .warps = 4,
          .keeps = std::move(keeps),
          .score = same,
          .table = "",
          .capture = {}};
}

static std::vector<Problem> problems() {
  std::vector<Problem> all_;
  auto causal = [](int64_t i, int64_t j) { return j <= i + 50; };
  for (int64_t dim : {64, 96, 128, 256}) {
    all_.push_back(problem("full" + std::to_string(dim), dim, "", all));
    all_.push_back(
        problem("causal" + std::to_string(dim), dim, "mask causal", causal));
    if (dim == 256)
      for (Problem &p : llvm::drop_begin(all_, all_.size() - 2))
        p.columns = 32;
  }
  all_.push_back(problem(
      "window", 64, "mask [causal, window<left = 40, right = 3>]",
      [=](int64_t i, int64_t j) { return causal(i, j) && j >= i + 50 - 40; }));
  all_.back().columns = 32; // 64 do not fit into registers
  // Sizes of all kinds: values of another dimension, f16, a multiple of 8 that
  // no fragment has, more rows for a warp, 8 warps.
  Problem sizes = problem("sizes", 40, "mask causal", causal);
  sizes.valueDim = 24;
  sizes.element = "f16";
  sizes.rows = 128;
  sizes.columns = 48;
  all_.push_back(sizes);
  Problem warps = problem("warps", 128, "mask causal", causal);
  warps.rows = 128;
  warps.warps = 8;
  all_.push_back(warps);
  // Rows that see nothing, and a table that the mask reads.
  Problem documents =
      problem("documents", 64,
              "mask [causal, documents](%table : tensor<200xi32>)", nullptr);
  documents.queries = 200;
  documents.table = "tensor<200xi32>";
  for (int32_t j = 0; j < 200; ++j)
    documents.capture.push_back(j * j / 5000);
  documents.keeps = [ids = documents.capture](int64_t i, int64_t j) {
    return j <= i && ids[i] == ids[j];
  };
  all_.push_back(documents);
  Problem nothing = problem("nothing", 64, "mask causal",
                            [](int64_t i, int64_t j) { return j <= i - 50; });
  nothing.keys = 100;
  all_.push_back(nothing);
  Problem softcap = problem("softcap", 64, "score softcap<5.0>", all);
  softcap.columns = 32; // 64 do not fit into registers
  softcap.score = [](double s, int64_t, int64_t) {
    return 5 * std::tanh(s / 5);
  };
  all_.push_back(softcap);
  return all_;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Attend, testing::ValuesIn(problems()),
                         [](const auto &info) { return info.param.name; });

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  registerPasses();
  registerPipelines();
  cuda::registerBurstCudaPasses();
  mlir::registerTransformsPasses();
  return RUN_ALL_TESTS();
}
