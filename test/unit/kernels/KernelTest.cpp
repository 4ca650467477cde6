//===- KernelTest.cpp - kernels of GPUs, executed without one -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/kernels/KernelTest.h"
#include "codegen/cuda/CompileLog.h"
#include "codegen/cuda/Passes.h"
#include "jit/Frontend.h"
#include "passes/Passes.h"
#include "passes/Tile/Builder.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace burst;
using namespace burst::kerneltest;
using emulator::Arguments;
using emulator::Memory;
using tiling::Field;
using tiling::minusInfinity;

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

double Problem::scale() const {
  return 1 / std::sqrt(static_cast<double>(dim));
}

std::string Problem::typeOf(int64_t positions, int64_t heads,
                            int64_t dim) const {
  return llvm::formatv("tensor<1x{0}x{1}x{2}x{3}>", positions, heads, dim,
                       element);
}

void kerneltest::PrintTo(const Problem &problem, std::ostream *os) {
  *os << problem.name;
}

Problem kerneltest::problem(std::string name, int64_t dim, std::string clauses,
                            std::function<bool(int64_t, int64_t)> keeps) {
  return {.name = std::move(name),
          .queries = 100,
          .keys = 150,
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
          .score = [](double s, int64_t, int64_t) { return s; },
          .derivative = [](double) { return 1.0; },
          .table = "",
          .capture = {}};
}

double kerneltest::unitOf(const std::string &element) {
  return std::ldexp(1, element == "bf16" ? -8 : -11);
}

static APFloat convert(double x, const std::string &element) {
  APFloat number(x);
  bool loses = false;
  number.convert(element == "bf16" ? APFloat::BFloat() : APFloat::IEEEhalf(),
                 APFloat::rmNearestTiesToEven, &loses);
  return number;
}

double kerneltest::rounded(double x, const std::string &element) {
  APFloat number = convert(x, element);
  bool loses = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

std::vector<uint16_t> kerneltest::bitsOf(const std::vector<double> &numbers,
                                         const std::string &element) {
  std::vector<uint16_t> bits;
  bits.reserve(numbers.size());
  for (double number : numbers)
    bits.push_back(static_cast<uint16_t>(
        convert(number, element).bitcastToAPInt().getZExtValue()));
  return bits;
}

std::vector<double> Numbers::draw(int64_t count, const std::string &element) {
  std::mt19937 random(seed++);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(count);
  for (double &number : numbers)
    number = rounded(normal(random), element);
  return numbers;
}

Row kerneltest::rowOf(const Problem &p, const std::vector<double> &q,
                      const std::vector<double> &k, int64_t head, int64_t i) {
  Row row{std::vector<double>(p.keys), std::vector<double>(p.keys),
          minusInfinity};
  std::vector<double> scores(p.keys, minusInfinity);
  double most = minusInfinity;
  for (int64_t j = 0; j < p.keys; ++j) {
    if (!p.keeps(i, j))
      continue;
    for (int64_t d = 0; d < p.dim; ++d)
      row.products[j] += p.scale() * q[(i * p.heads + head) * p.dim + d] *
                         k[(j * p.keyHeads + p.keyHead(head)) * p.dim + d];
    scores[j] = p.score(row.products[j], i, j);
    most = std::max(most, scores[j]);
  }
  if (most == minusInfinity)
    return row;
  double sum = 0;
  for (double s : scores)
    sum += std::exp(s - most);
  row.lse = most + std::log(sum);
  for (int64_t j = 0; j < p.keys; ++j)
    row.weights[j] = std::exp(scores[j] - row.lse);
  return row;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

std::vector<int64_t> Tiles::table() const {
  std::vector<int64_t> table;
  for (int64_t row = 0; row < positions; row += size) {
    int64_t fields[Field::NumFields] = {begin};
    fields[Field::First] = fields[Field::Row] = row;
    fields[Field::Count] = std::min(size, positions - row);
    fields[Field::Lowest] = begin + row;
    fields[Field::Behind] = begin + row + fields[Field::Count];
    table.insert(table.end(), std::begin(fields), std::end(fields));
  }
  return table;
}

Lists kerneltest::listsOf(const Problem &p, Tiles queries, Tiles keys,
                          bool ofKeys,
                          llvm::function_ref<bool(int64_t key)> isListed) {
  int64_t listed = (ofKeys ? queries : keys).count();
  int64_t listing = (ofKeys ? keys : queries).count();
  Lists lists{std::vector<int32_t>(listing * listed),
              std::vector<int64_t>(listing * 2)};
  for (int64_t x = 0; x < listing; ++x)
    for (int64_t y = 0; y < listed; ++y) {
      int64_t i = ofKeys ? y : x, j = ofKeys ? x : y;
      if (!isListed(j))
        continue;
      bool may = false, must = p.keys - j * keys.size >= keys.size;
      for (int64_t a = i * queries.size;
           a < std::min(p.queries, (i + 1) * queries.size); ++a)
        for (int64_t b = j * keys.size;
             b < std::min(p.keys, (j + 1) * keys.size); ++b)
          (p.keeps(a, b) ? may : must) = p.keeps(a, b);
      if (!may)
        continue;
      int64_t &count = lists.counts[2 * x + (must ? 0 : 1)];
      lists.list[x * listed + (must ? count : listed - 1 - count)] =
          static_cast<int32_t>(y);
      ++count;
    }
  return lists;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void Launch::describe(const std::string &name, uint64_t address,
                      const std::vector<int64_t> &shape) {
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
}

void Launch::scalar(const std::string &name, int32_t value) {
  Arguments packed;
  packed.add(value);
  parameters[name] = packed.data;
}

void Launch::mask(const Problem &p) {
  scalar("sq", static_cast<int32_t>(p.extent ? p.extent : p.queries));
  scalar("sk", static_cast<int32_t>(p.extent ? p.extent : p.keys));
  if (!p.table.empty())
    buffer("table", p.capture, {static_cast<int64_t>(p.capture.size())});
}

void Launch::schedule(Tiles queries, Tiles keys, const Lists &lists) {
  buffer("queryTiles", queries.table(), {queries.count(), Field::NumFields});
  buffer("keyTiles", keys.table(), {keys.count(), Field::NumFields});
  auto listing = static_cast<int64_t>(lists.counts.size()) / 2;
  auto listed = static_cast<int64_t>(lists.list.size()) / listing;
  buffer("list", lists.list, {1, 1, listing, listed});
  buffer("counts", lists.counts, {1, 1, listing, 2});
}

void Launch::run(const emulator::Module &program, const Kernel &kernel,
                 int64_t tasks, uint64_t seed) {
  std::vector<int32_t> order(tasks);
  for (int64_t task = 0; task < tasks; ++task)
    order[task] = static_cast<int32_t>(tasks - 1 - task);
  Arguments all;
  all.add(memory.add(order, "order", Memory::Access::ReadOnly));
  for (const auto &[name, type] : kernel.parameters) {
    ASSERT_TRUE(parameters.count(name)) << name;
    const std::vector<uint8_t> &data = parameters[name];
    size_t alignment = isa<MemRefType>(type) ? 8 : 4;
    all.data.resize((all.data.size() + alignment - 1) / alignment * alignment);
    all.data.insert(all.data.end(), data.begin(), data.end());
  }
  emulator::Options options;
  options.seed = seed;
  emulator::Outcome outcome =
      program.launch(kernel.text.name, {static_cast<uint32_t>(tasks)},
                     {static_cast<uint32_t>(32 * kernel.text.warps)},
                     kernel.text.sharedBytes, all, memory, options);
  ASSERT_TRUE(outcome.ok()) << outcome.failure->str();
  EXPECT_EQ(outcome.counters.bankConflicts, 0U)
      << outcome.counters.conflicts.front().text;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool Workbench::open() {
  DialectRegistry registry;
  jit::registerDialects(registry);
  context.appendDialectRegistry(registry);
  auto made = cuda::Compiler::create({});
  if (!made) {
    llvm::consumeError(made.takeError());
    return false;
  }
  compiler = std::move(*made);
  return true;
}

void Workbench::lower(const std::string &text, const std::string &passes,
                      const std::string &options) {
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  std::string pipeline = passes + "ring-lower-to-tile{" + options +
                         "},canonicalize,cse,func.func(cuda-stage-copies,"
                         "cuda-narrow-positions),canonicalize,cse";
  PassManager manager(&context);
  ASSERT_TRUE(succeeded(parsePassPipeline(pipeline, manager))) << pipeline;
  ASSERT_TRUE(succeeded(manager.run(*module))) << text;
}

Kernel Workbench::kernel(const std::string &name) {
  auto function = module->lookupSymbol<func::FuncOp>(name);
  if (!function) {
    ADD_FAILURE() << "no kernel " << name;
    return {};
  }
  FailureOr<cuda::KernelText> emitted = cuda::emitKernel(function);
  if (failed(emitted)) {
    ADD_FAILURE() << "no text of " << name;
    return {};
  }
  Kernel kernel{*emitted, {}};
  unsigned unnamed = 0;
  for (BlockArgument argument : function.getArguments().drop_front()) {
    auto loc = dyn_cast<NameLoc>(argument.getLoc());
    kernel.parameters.emplace_back(loc ? loc.getName().str()
                                       : std::to_string(unnamed++),
                                   argument.getType());
  }
  return kernel;
}

void Workbench::compile(const Kernel &kernel, emulator::Module &program) {
  llvm::Expected<cuda::Binary> binary =
      compiler->compile({kernel.text.name + ".cu",
                         cuda::getDeviceLibrary().str() +
                             "using namespace burst;\n" + kernel.text.text,
                         "sm_80",
                         false,
                         {"--device-as-default-execution-space"}});
  ASSERT_TRUE(static_cast<bool>(binary)) << toString(binary.takeError());
  EXPECT_EQ(cuda::CompileLog::read(binary->log).rejectionReason(), "")
      << kernel.text.name;
  std::optional<emulator::Failure> failure = program.parse(binary->ptx);
  ASSERT_FALSE(failure) << failure->str();
}

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  registerPasses();
  registerPipelines();
  cuda::registerBurstCudaPasses();
  mlir::registerTransformsPasses();
  return RUN_ALL_TESTS();
}
