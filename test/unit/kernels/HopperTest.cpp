//===- HopperTest.cpp - kernels of sm_90a, executed without one -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warp-specialized kernels: compiled by NVRTC, whose log must be clean,
// and executed by the emulator, whatever the order of warps and the time at
// which copies land. Keys lie in two segments that end inside a tile, with
// numbers that are none behind them, in one slice or two; the state is handed
// on between two launches.
//
//===----------------------------------------------------------------------===//
#include "codegen/cuda/CompileLog.h"
#include "dialect/Ring/Ring.h"
#include "passes/Tile/Builder.h"
#include "test/unit/kernels/KernelTest.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace burst;
using namespace burst::kerneltest;
using emulator::Lateness;
using emulator::Memory;
using tiling::Field;

namespace {

/// A problem, and how its kernel is made.
struct Case : Problem {
  bool isWarpSpecialized = true; ///< else the shape of sm_80
  bool pipelined = false, isPingPong = false;
  bool isFused = false;  ///< first and last: from nothing to results
  bool delegates = true; ///< masks that read tables
  int64_t stages = 2, maskBitStages = 4;
  std::vector<int64_t> wild = {}; ///< keys that are no numbers, or infinite
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

/// A tile of rows: its first position, how many, and where they lie.
struct Tile {
  int64_t position, count, row, segment;
};

/// Positions 0 to n - 1 in two segments that lie apart in memory, each in
/// tiles.
struct Shard {
  int64_t positions, size;
  std::vector<Tile> tiles;
  int64_t rows = 0; ///< of memory, with those behind segments

  Shard(int64_t positions, int64_t size, int64_t firstSegment)
      : positions(positions), size(size) {
    constexpr int64_t behind = 7;
    for (auto [begin, end] :
         {std::pair(int64_t(0), firstSegment), {firstSegment, positions}}) {
      for (int64_t at = begin; at < end; at += size)
        tiles.push_back(
            {at, std::min(size, end - at), rows + at - begin, begin});
      rows += end - begin + behind;
    }
  }
  int64_t count() const { return static_cast<int64_t>(tiles.size()); }
  std::vector<int64_t> table() const {
    std::vector<int64_t> table;
    for (const Tile &tile : tiles) {
      int64_t fields[Field::NumFields] = {};
      fields[Field::Begin] = tile.segment;
      fields[Field::First] = tile.position - tile.segment;
      fields[Field::Count] = tile.count;
      fields[Field::Row] = tile.row;
      fields[Field::Lowest] = tile.position;
      fields[Field::Behind] = tile.position + tile.count;
      table.insert(table.end(), std::begin(fields), std::end(fields));
    }
    return table;
  }
};

/// In which order warps run, and when copies land.
struct Timing {
  uint64_t seed;
  Lateness lateness;
};
constexpr Timing timings[] = {
    {0, Lateness::Late}, {1, Lateness::Early}, {2, Lateness::Random}};

/// The memory of launches. Parameters are made of the bytes of a launch's
/// arguments, as the runtime makes them.
class Device {
public:
  template <class T>
  void buffer(const std::string &name, const std::vector<T> &values,
              ArrayRef<int64_t> shape, bool isWritten = false) {
    Bytes bytes;
    at[name] = memory.add(values, name,
                          isWritten ? Memory::Access::ReadWrite
                                    : Memory::Access::ReadOnly);
    bytes.add(at[name]);
    for (size_t d = 0; d < shape.size(); ++d)
      bytes.add<int64_t>(product(shape.drop_front(d + 1)));
    for (int64_t size : shape)
      bytes.add(static_cast<int32_t>(size));
    bytes.data.resize(llvm::alignTo(bytes.data.size(), 8));
    arguments[name] = bytes.data;
  }
  void scalar(const std::string &name, int32_t value) {
    Bytes bytes;
    bytes.add(value);
    arguments[name] = bytes.data;
  }
  /// What is wrong with a launch, or "".
  std::string run(const emulator::Module &program,
                  const cuda::KernelText &kernel, int64_t tasks, Timing timing);
  template <class T = float>
  std::vector<T> get(const std::string &name, int64_t count) {
    return memory.get<T>(at[name], count);
  }

private:
  using Bytes = emulator::Arguments;
  static int64_t product(ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                           std::multiplies<>());
  }

  Memory memory;
  std::map<std::string, uint64_t> at;
  std::map<std::string, std::vector<uint8_t>> arguments;
};

/// What burst_gpu_map stands for.
emulator::TensorMap encode(const cuda::MapText &map, const uint8_t *buffer) {
  emulator::TensorMap tensor;
  auto rank = map.box.size();
  tensor.rank = static_cast<uint8_t>(rank);
  tensor.swizzle = map.swizzle == 128 ? 3 : map.swizzle == 64 ? 2 : 1;
  memcpy(&tensor.address, buffer, 8);
  for (size_t d = 0; d < rank; ++d) { // the innermost first
    int64_t step = 0;
    int32_t size = 0;
    memcpy(&step, buffer + 8 * (rank - d), 8);
    memcpy(&size, buffer + 8 * (rank + 1) + 4 * (rank - 1 - d), 4);
    tensor.sizes[d] = static_cast<uint32_t>(size);
    tensor.box[d] = static_cast<uint16_t>(map.box[rank - 1 - d]);
    if (d > 0)
      tensor.strides[d - 1] = static_cast<uint64_t>(step) * 2;
    else
      EXPECT_EQ(step, 1);
  }
  return tensor;
}

} // namespace

std::string Device::run(const emulator::Module &program,
                        const cuda::KernelText &kernel, int64_t tasks,
                        Timing timing) {
  std::vector<int32_t> order(tasks);
  for (int64_t task = 0; task < tasks; ++task)
    order[task] = static_cast<int32_t>(tasks - 1 - task);
  arguments["order"].resize(8);
  uint64_t orderAt = memory.add(order, "order", Memory::Access::ReadOnly);
  memcpy(arguments["order"].data(), &orderAt, 8);
  // The arguments of the launch, and of them what the kernel takes.
  std::vector<uint8_t> all(kernel.argumentBytes);
  emulator::Arguments taken;
  for (const cuda::ParameterText &parameter : kernel.parameters) {
    const std::vector<uint8_t> &bytes = arguments[parameter.name];
    EXPECT_EQ(static_cast<int64_t>(bytes.size()), parameter.bytes)
        << parameter.name;
    EXPECT_LE(parameter.offset + parameter.bytes, kernel.argumentBytes);
    std::copy(bytes.begin(), bytes.end(), all.begin() + parameter.offset);
  }
  for (const cuda::ParameterText &parameter : kernel.parameters) {
    const uint8_t *bytes = all.data() + parameter.offset;
    if (parameter.map) {
      taken.add(encode(*parameter.map, bytes), 64);
      continue;
    }
    taken.data.resize(llvm::alignTo(taken.data.size(),
                                    std::min<int64_t>(parameter.bytes, 8)));
    taken.data.insert(taken.data.end(), bytes, bytes + parameter.bytes);
  }
  emulator::Options options;
  options.seed = timing.seed;
  options.lateness = timing.lateness;
  options.budget = 20'000'000;
  emulator::Outcome outcome =
      program.launch(kernel.name, {static_cast<uint32_t>(tasks)},
                     {static_cast<uint32_t>(32 * kernel.warps)},
                     kernel.sharedBytes, taken, memory, options);
  if (!outcome.ok())
    return outcome.failure->str();
  if (outcome.counters.bankConflicts != 0)
    return "bank conflicts: " + outcome.counters.conflicts.front().text;
  return "";
}

namespace {

class Hopper : public testing::Test {
protected:
  void SetUp() override {
    if (!bench.open())
      GTEST_SKIP() << "no NVRTC";
  }
  cuda::KernelText lower(const Case &c);
  cuda::Source source(const Case &c, const cuda::KernelText &kernel) {
    return {c.name + ".cu",
            cuda::getDeviceLibrary().str() + "using namespace burst;\n" +
                kernel.text,
            c.isWarpSpecialized ? "sm_90a" : "sm_80",
            false,
            {"--device-as-default-execution-space"}};
  }
  /// Runs a program, and says what is wrong with what it computes, or "".
  std::string failureOf(const Case &c, const cuda::KernelText &kernel,
                        const std::string &ptx, Timing timing);

  Workbench bench;
};

class HopperKernels : public Hopper,
                      public testing::WithParamInterface<Case> {};

} // namespace

cuda::KernelText Hopper::lower(const Case &c) {
  std::string q = c.typeOf(c.queries, c.heads, c.dim),
              k = c.typeOf(c.keys, c.keyHeads, c.dim),
              v = c.typeOf(c.keys, c.keyHeads, c.valueDim),
              o = c.typeOf(c.queries, c.heads, c.valueDim),
              lse = llvm::formatv("tensor<1x{0}x{1}xf32>", c.heads, c.queries);
  std::string text =
      "shard.grid @cp(shape = 1)\nfunc.func @f(%q: " + q + ", %k: " + k +
      ", %v: " + v + (c.table.empty() ? "" : ", %table: " + c.table) +
      ") -> (" + o + ", " + lse +
      ") {\n  %o, %lse = burst.attention %q, %k, %v " + c.clauses +
      " sequence <@cp, contiguous> : (" + q + ", " + k + ", " + v + ") -> (" +
      o + ", " + lse + ")\n  return %o, %lse : " + o + ", " + lse + "\n}\n";
  OwningOpRef<ModuleOp> &module = bench.module;
  module = parseSourceString<ModuleOp>(text, &bench.context);
  EXPECT_TRUE(module) << text;
  if (!module)
    return {};
  auto run = [&](const std::string &pipeline) {
    PassManager manager(&bench.context);
    EXPECT_TRUE(succeeded(parsePassPipeline(pipeline, manager))) << pipeline;
    EXPECT_TRUE(succeeded(manager.run(*module))) << pipeline;
  };
  run(llvm::formatv("burst-to-ring{{fuse={0}},inline,symbol-dce,ring-bufferize",
                    c.isFused));
  std::string passes;
  if (c.isWarpSpecialized)
    passes = llvm::formatv(
        "cuda-specialize-warps{{stages={0}},{1}{2}{3}canonicalize,cse,",
        c.stages,
        c.delegates ? llvm::formatv("cuda-delegate-masks{{stages={0}},",
                                    c.maskBitStages)
                          .str()
                    : "",
        c.pipelined ? "cuda-software-pipeline," : "",
        c.isPingPong ? "cuda-ping-pong," : "");
  run(llvm::formatv("ring-lower-to-tile{{rows={0} columns={1} warps={2}},"
                    "canonicalize,cse,func.func({3}cuda-stage-copies,"
                    "cuda-narrow-positions),"
                    "canonicalize,cse",
                    c.rows, c.columns, c.warps, passes));
  auto function = module->lookupSymbol<func::FuncOp>("f_attend");
  if (!function) {
    ADD_FAILURE() << "no kernel";
    return {};
  }
  FailureOr<cuda::KernelText> kernel = cuda::emitKernel(function);
  EXPECT_TRUE(succeeded(kernel));
  if (failed(kernel))
    return {};
  EXPECT_EQ(kernel->isWarpSpecialized, c.isWarpSpecialized);
  return *kernel;
}

static double numberOf(uint16_t bits, const std::string &element) {
  const llvm::fltSemantics &semantics =
      element == "bf16" ? APFloat::BFloat() : APFloat::IEEEhalf();
  return APFloat(semantics, APInt(16, bits)).convertToDouble();
}

/// Numbers of positions in memory, by rows of a shard; rows that no position
/// has are no numbers.
static std::vector<uint16_t> memoryOf(const std::vector<double> &numbers,
                                      const Shard &shard, ArrayRef<Tile> tiles,
                                      int64_t width,
                                      const std::string &element) {
  std::vector<uint16_t> memory(shard.rows * width, 0x7fff);
  std::vector<uint16_t> bits = bitsOf(numbers, element);
  for (const Tile &tile : tiles)
    std::copy_n(bits.begin() + tile.position * width, tile.count * width,
                memory.begin() + tile.row * width);
  return memory;
}

std::string Hopper::failureOf(const Case &c, const cuda::KernelText &kernel,
                              const std::string &ptx, Timing timing) {
  emulator::Module program;
  if (auto failure = program.parse(ptx))
    return failure->str();
  Numbers numbers;
  std::vector<double> q = numbers.draw(c.queries * c.heads * c.dim, c.element),
                      k = numbers.draw(c.keys * c.keyHeads * c.dim, c.element),
                      v = numbers.draw(c.keys * c.keyHeads * c.valueDim,
                                       c.element);
  for (auto [n, j] : llvm::enumerate(c.wild))
    std::fill_n(k.begin() + j * c.keyHeads * c.dim, c.keyHeads * c.dim,
                n % 2 ? INFINITY : NAN);
  Shard queries(c.queries, c.rows, c.queries),
      keys(c.keys, c.columns, c.keys * 2 / 3);
  Device device;
  device.buffer("q",
                memoryOf(q, queries, queries.tiles, c.heads * c.dim, c.element),
                {1, queries.rows, c.heads, c.dim});
  device.buffer("k",
                memoryOf(k, keys, keys.tiles, c.keyHeads * c.dim, c.element),
                {1, keys.rows, c.keyHeads, c.dim});
  device.buffer(
      "v", memoryOf(v, keys, keys.tiles, c.keyHeads * c.valueDim, c.element),
      {1, keys.rows, c.keyHeads, c.valueDim});
  device.buffer("queryTiles", queries.table(),
                {queries.count(), Field::NumFields});
  device.buffer("keyTiles", keys.table(), {keys.count(), Field::NumFields});
  device.scalar("sq", static_cast<int32_t>(c.queries));
  device.scalar("sk", static_cast<int32_t>(c.keys));
  if (!c.table.empty())
    device.buffer("table", c.capture, {static_cast<int64_t>(c.capture.size())});
  int64_t rows = queries.rows * c.heads;
  const int64_t shard[] = {1, queries.rows, c.heads, c.valueDim},
                perRow[] = {1, c.heads, queries.rows};
  if (c.isFused) {
    device.buffer("out", std::vector<uint16_t>(rows * c.valueDim), shard, true);
    device.buffer("lse", std::vector<float>(rows, -INFINITY), perRow, true);
  } else {
    device.buffer("oState", std::vector<float>(rows * c.valueDim), shard, true);
    device.buffer("mState", std::vector<float>(rows, -INFINITY), perRow, true);
    device.buffer("lState", std::vector<float>(rows), perRow, true);
  }

  // Launches take tiles of keys in turn.
  int64_t launches = c.isFused ? 1 : 2;
  for (int64_t launch = 0; launch < launches; ++launch) {
    std::vector<int32_t> list(queries.count() * keys.count());
    std::vector<int64_t> counts(queries.count() * 2);
    for (int64_t i = 0; i < queries.count(); ++i)
      for (int64_t j = launch; j < keys.count(); j += launches) {
        const Tile &row = queries.tiles[i], &column = keys.tiles[j];
        bool may = false, must = column.count == c.columns;
        for (int64_t a = 0; a < row.count; ++a)
          for (int64_t b = 0; b < column.count; ++b)
            (c.keeps(row.position + a, column.position + b) ? may : must) =
                c.keeps(row.position + a, column.position + b);
        if (!may)
          continue;
        int64_t &count = counts[2 * i + (must ? 0 : 1)];
        list[i * keys.count() + (must ? count : keys.count() - 1 - count)] =
            static_cast<int32_t>(j);
        ++count;
      }
    device.buffer("list", list, {1, 1, queries.count(), keys.count()});
    device.buffer("counts", counts, {1, 1, queries.count(), 2});
    std::string failure =
        device.run(program, kernel, queries.count() * c.heads, timing);
    if (!failure.empty())
      return failure;
  }

  // By row: lse, and o divided by the sum of weights.
  std::vector<double> outs, lses;
  if (c.isFused) {
    for (uint16_t bits : device.get<uint16_t>("out", rows * c.valueDim))
      outs.push_back(numberOf(bits, c.element));
    for (float lse : device.get("lse", rows))
      lses.push_back(lse);
  } else {
    std::vector<float> o = device.get("oState", rows * c.valueDim),
                       m = device.get("mState", rows),
                       l = device.get("lState", rows);
    outs.resize(o.size());
    for (int64_t h = 0; h < c.heads; ++h)
      for (int64_t i = 0; i < queries.rows; ++i) {
        int64_t row = h * queries.rows + i;
        lses.push_back(l[row] == 0
                           ? double(m[row])
                           : (m[row] + std::log2(l[row])) * std::log(2.0));
        for (int64_t d = 0; d < c.valueDim; ++d) {
          int64_t at = (i * c.heads + h) * c.valueDim + d;
          outs[at] = l[row] == 0 ? double(o[at]) : double(o[at]) / l[row];
        }
      }
  }
  for (int64_t h = 0; h < c.heads; ++h)
    for (int64_t i = c.queries; i < queries.rows; ++i)
      if (lses[h * queries.rows + i] != -INFINITY ||
          outs[(i * c.heads + h) * c.valueDim] != 0)
        return "writes behind the last row";
  for (int64_t h = 0; h < c.heads; ++h)
    for (int64_t i = 0; i < c.queries; ++i) {
      if (llvm::any_of(c.wild, [&](int64_t j) { return c.keeps(i, j); }))
        continue;
      Row want = rowOf(c, q, k, h, i);
      int64_t row = h * queries.rows + i;
      auto wrong = [&](StringRef what, double got,
                       double wanted) -> std::string {
        return llvm::formatv("wrong {0} of head {1}, row {2}: {3}, wanted {4}",
                             what, h, i, got, wanted);
      };
      double lse = lses[row];
      if (want.lse == -INFINITY) {
        if (lse != -INFINITY || outs[(i * c.heads + h) * c.valueDim] != 0)
          return wrong("lse", lse, -INFINITY);
        continue;
      }
      if (!(std::abs(lse - want.lse) <=
            1e-5 * std::max(1.0, std::abs(want.lse))))
        return wrong("lse", lse, want.lse);
      for (int64_t d = 0; d < c.valueDim; ++d) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          double x = want.weights[j] *
                     v[(j * c.keyHeads + c.keyHead(h)) * c.valueDim + d];
          sum += x;
          size += std::abs(x);
        }
        double out = outs[(i * c.heads + h) * c.valueDim + d];
        // Weights are rounded to 16 bits, and so are results; all else is of
        // f32.
        double rounding = c.isFused ? unitOf(c.element) * std::abs(sum) : 0;
        if (!(std::abs(out - sum) <=
              unitOf(c.element) * size + rounding + 1e-5))
          return wrong("output", out, sum);
      }
    }
  return "";
}

TEST_P(HopperKernels, AgreesWithAttentionInF64) {
  const Case &c = GetParam();
  cuda::KernelText kernel = lower(c);
  if (HasFailure())
    return;
  llvm::Expected<cuda::Binary> binary =
      bench.compiler->compile(source(c, kernel));
  ASSERT_TRUE(static_cast<bool>(binary)) << toString(binary.takeError());
  EXPECT_EQ(cuda::CompileLog::read(binary->log).rejectionReason(), "");
  for (Timing timing : timings)
    ASSERT_EQ(failureOf(c, kernel, binary->ptx, timing), "")
        << "seed " << timing.seed;
}

static bool causal(int64_t i, int64_t j) { return j <= i + 50; }

static Case caseOf(std::string name, int64_t dim, std::string clauses,
                   std::function<bool(int64_t, int64_t)> keeps,
                   int64_t columns = 128) {
  Case c{problem(std::move(name), dim, std::move(clauses), std::move(keeps))};
  c.queries = 150;
  c.keys = 200;
  c.rows = 128;
  c.columns = columns;
  c.warps = 8;
  return c;
}

/// Weights are computed while products are done.
static Case pipelined(Case c) {
  c.pipelined = true;
  c.isPingPong = c.dim <= 128;
  return c;
}

/// Documents whose table mask warps read, or consumers.
static Case documents(Case c) {
  c.queries = c.keys;
  c.table = llvm::formatv("tensor<{0}xi32>", c.keys);
  c.clauses = "mask [causal, documents](%table : " + c.table + ") " + c.clauses;
  for (int32_t j = 0; j < c.keys; ++j)
    c.capture.push_back(j * j / 5000);
  c.keeps = [ids = c.capture](int64_t i, int64_t j) {
    return j <= i && ids[i] == ids[j];
  };
  return c;
}

static std::vector<Case> cases() {
  std::vector<Case> all;
  for (int64_t dim : {64, 96, 128, 256}) {
    int64_t columns = dim == 256 ? 64 : 128;
    bool isCausal = dim % 128 != 0;
    all.push_back(caseOf("plain" + std::to_string(dim), dim,
                         isCausal ? "mask causal" : "",
                         isCausal ? causal : everything, columns));
    all.push_back(
        pipelined(caseOf("causal" + std::to_string(dim), dim, "mask causal",
                         causal, dim == 256 ? 80 : columns)));
  }
  // Three warpgroups, wide tiles, and stages for one tile at a time.
  Case full64 = pipelined(caseOf("full64", 64, "", everything));
  full64.keys = 600;
  full64.rows = 192;
  full64.warps = 12;
  all.push_back(full64);
  Case full128 = pipelined(caseOf("full128", 128, "", everything, 176));
  full128.queries = 100;
  full128.keys = 560;
  all.push_back(full128);
  Case full256 = pipelined(caseOf("full256", 256, "", everything, 80));
  full256.stages = 1;
  all.push_back(full256);
  all.push_back(pipelined(caseOf(
      "window", 64, "mask [causal, window<left = 40, right = 3>]",
      [](int64_t i, int64_t j) { return causal(i, j) && j >= i + 50 - 40; })));
  Case softcap =
      pipelined(caseOf("softcap", 128, "score softcap<5.0>", everything, 112));
  softcap.score = [](double s, int64_t, int64_t) {
    return 5 * std::tanh(s / 5);
  };
  all.push_back(softcap);
  // Mask bits for each number of warpgroups, for tiles that end in half a word,
  // and with one stage, as there is no room for more.
  all.push_back(documents(pipelined(caseOf("documents", 128, "", nullptr))));
  all.push_back(documents(caseOf("documentsOneByOne", 128, "", nullptr)));
  Case documents64 = pipelined(caseOf("documents64", 64, "", nullptr));
  documents64.rows = 192;
  documents64.warps = 12;
  all.push_back(documents(documents64));
  all.push_back(
      documents(pipelined(caseOf("documents192", 192, "", nullptr, 112))));
  all.push_back(
      documents(pipelined(caseOf("documents256", 256, "", nullptr, 80))));
  Case alone =
      pipelined(caseOf("documentsOfOneWarpgroup", 64, "", nullptr, 48));
  alone.rows = 64;
  alone.warps = 4;
  all.push_back(documents(alone));
  softcap.name = "documentsAndSoftcap";
  all.push_back(documents(softcap));
  Case own = pipelined(caseOf("documentsByConsumers", 128, "", nullptr));
  own.delegates = false;
  all.push_back(documents(own));
  // What a key is counts for those who see it only.
  Case wild = pipelined(caseOf("wildKeys", 64, "mask causal", causal));
  wild.wild = {90, 130, 199};
  all.push_back(wild);
  wild = documents(pipelined(caseOf("wildKeysAndMaskBits", 64, "", nullptr)));
  wild.wild = {90, 130, 199};
  all.push_back(wild);
  wild = caseOf("wildKeysNotSpecialized", 64, "mask causal", causal, 64);
  wild.isWarpSpecialized = false;
  wild.rows = 64;
  wild.warps = 4;
  wild.wild = {90, 130, 199};
  all.push_back(wild);
  // From nothing to results, also of rows that see nothing, one tile or more.
  auto fused = [&](Case c) {
    c.name += "Fused";
    c.isFused = true;
    all.push_back(std::move(c));
  };
  fused(caseOf("plain64", 64, "", everything));
  fused(pipelined(caseOf("causal64", 64, "mask causal", causal)));
  fused(pipelined(caseOf("causal128", 128, "mask causal", causal)));
  fused(full64);
  fused(documents(pipelined(caseOf("documents", 128, "", nullptr))));
  Case nothing = caseOf("nothing", 64, "mask causal",
                        [](int64_t i, int64_t j) { return j <= i - 150; });
  nothing.queries = 200;
  nothing.keys = 50;
  fused(nothing);
  nothing.name = "nothingPipelined";
  fused(pipelined(nothing));
  nothing.name = "nothingPortable";
  nothing.isWarpSpecialized = false;
  nothing.rows = 64;
  nothing.warps = 4;
  nothing.columns = 64;
  fused(nothing);
  // Values of another dimension, f16, one warpgroup and panels of 16 columns.
  Case sizes = pipelined(caseOf("sizes", 48, "mask causal", causal, 48));
  sizes.valueDim = 32;
  sizes.element = "f16";
  sizes.rows = 64;
  sizes.warps = 4;
  all.push_back(sizes);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, HopperKernels,
                         testing::ValuesIn(sampleOf(cases())),
                         [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Planted faults
//===----------------------------------------------------------------------===//

namespace {

struct Edit {
  std::string from, to;
  int occurrence = -1; ///< -1: all
};

/// A fault in the text of a kernel, or in the library that it calls, and what
/// the run says of it: one of these.
struct Fault {
  std::string name;
  bool isWarpSpecialized, pipelined;
  std::vector<Edit> edits;
  std::vector<std::string> found;
  bool masked = false; ///< the mask reads a table
};

void PrintTo(const Fault &fault, std::ostream *os) { *os << fault.name; }

class PlantedFaults : public Hopper,
                      public testing::WithParamInterface<Fault> {};

} // namespace

static std::string edited(std::string text, const Edit &edit) {
  size_t at = text.find(edit.from);
  EXPECT_NE(at, std::string::npos) << edit.from;
  for (int n = 0; at != std::string::npos; ++n) {
    if (edit.occurrence < 0 || edit.occurrence == n) {
      text.replace(at, edit.from.size(), edit.to);
      if (edit.occurrence == n)
        return text;
      at += edit.to.size();
    } else {
      at += edit.from.size();
    }
    at = text.find(edit.from, at);
  }
  EXPECT_LT(edit.occurrence, 0) << "not so often: " << edit.from;
  return text;
}

TEST_P(PlantedFaults, AreFound) {
  const Fault &fault = GetParam();
  // Three panels, tiles enough that stages are used again, ends inside tiles.
  Case c = caseOf(fault.name, 96, "mask causal", causal, 32);
  c.isWarpSpecialized = fault.isWarpSpecialized;
  if (fault.masked) { // several words, and a stage that is used again
    c = documents(caseOf(fault.name, 96, "", nullptr, 48));
    c.maskBitStages = 1;
  }
  if (fault.pipelined)
    c = pipelined(c);
  if (!c.isWarpSpecialized) {
    c.rows = 64;
    c.warps = 4;
  }
  cuda::KernelText kernel = lower(c);
  if (HasFailure())
    return;
  cuda::Source faulty = source(c, kernel);
  faulty.architecture =
      c.isWarpSpecialized ? "compute_90a" : "compute_80"; // PTX suffices
  for (const Edit &edit : fault.edits)
    faulty.text = edited(faulty.text, edit);
  llvm::Expected<cuda::Binary> binary = bench.compiler->compile(faulty);
  ASSERT_TRUE(static_cast<bool>(binary)) << toString(binary.takeError());
  std::string said;
  for (Timing timing : timings)
    if (said.empty())
      said = failureOf(c, kernel, binary->ptx, timing);
  EXPECT_TRUE(llvm::any_of(fault.found,
                           [&](StringRef expected) {
                             return StringRef(said).starts_with(expected);
                           }))
      << "said: " << said;
}

static std::vector<Fault> faults() {
  const std::string wrong = "wrong ", race = "race", protocol = "protocol",
                    deadlock = "deadlock", bounds = "out of bounds",
                    unwritten = "uninitialised", trap = "trap";
  std::vector<Fault> all;
  // Warp-specialized.
  auto plant = [&](std::string name, std::vector<Edit> edits,
                   std::vector<std::string> found) {
    all.push_back(
        {std::move(name), true, false, std::move(edits), std::move(found)});
  };
  plant("none_is_found", {}, {""});
  plant("consumers_do_not_wait", {{"waitFor(full(), parity);", ""}},
        {race, unwritten});
  plant("consumers_wait_for_the_other_parity",
        {{"waitFor(full(), parity);", "waitFor(full(), parity ^ 1);"}},
        {race, unwritten});
  plant("producer_does_not_wait", {{"waitFor(empty(), parity ^ 1);", ""}},
        {race, protocol});
  plant("producer_waits_for_the_other_parity",
        {{"waitFor(empty(), parity ^ 1);", "waitFor(empty(), parity);"}},
        {deadlock});
  plant("more_bytes_announced",
        {{"arriveExpecting(full(), Tile::Bytes)",
          "arriveExpecting(full(), Tile::Bytes + 16)"}},
        {deadlock});
  plant("fewer_bytes_announced",
        {{"arriveExpecting(full(), Tile::Bytes)",
          "arriveExpecting(full(), Tile::Bytes / 2)"}},
        {race, deadlock, protocol});
  plant("keys_released_early",
        {{"await<0>(scores);\n        keyTilePipeline.consumerRelease();",
          "keyTilePipeline.consumerRelease();\n        await<0>(scores);"}},
        {race});
  plant("values_released_early",
        {{"await<0>(o);\n        valueTilePipeline.consumerRelease();",
          "valueTilePipeline.consumerRelease();\n        await<0>(o);"}},
        {race});
  plant("never_released", {{"arrive(empty());", ";"}}, {deadlock});
  // Debug builds: waiting ends, and says by its error where it was in vain.
  const Edit bounded = {"#ifdef BURST_SPINS",
                        "#define BURST_SPINS 20\n#ifdef BURST_SPINS"};
  plant("never_released_bounded", {bounded, {"arrive(empty());", ";"}}, {trap});
  plant("never_released_even_barrier",
        {bounded,
         {"#ifdef BURST_SPIN_BIT",
          "#define BURST_SPIN_BIT 5\n#ifdef BURST_SPIN_BIT"},
         {"arrive(empty());", ";"}},
        {trap});
  plant("never_released_odd_barrier",
        {bounded,
         {"#ifdef BURST_SPIN_BIT",
          "#define BURST_SPIN_BIT 5\n#ifdef BURST_SPIN_BIT"},
         {"barrier / 8 >> BURST_SPIN_BIT & 1", "barrier != 0"},
         {"arrive(empty());", ";"}},
        {bounds});
  plant("released_by_one_warp_of_four",
        {{"if (threadIdx.x % 32 == 0)\n      arrive(empty());",
          "if (threadIdx.x % 128 == 0)\n      arrive(empty());"},
         {"(Stages + stage), readers)", "(Stages + stage), readers / 4)"}},
        {race});
  plant("one_release_too_few",
        {{"(Stages + stage), readers)", "(Stages + stage), readers - 1)"}},
        {race, protocol});
  plant("producer_stays_at_its_stage",
        {{"void producerCommit() { advance(); }", "void producerCommit() {}"}},
        {race, protocol, deadlock});
  plant("barriers_not_seen", {{"    synchronize();\n", "", 0}},
        {race, protocol, unwritten});
  plant("values_behind_the_end", {{"clear<Group>(", "// ("}}, {wrong});
  plant("cleared_without_proxy_fence", {{"  fenceProxy();\n", ""}}, {protocol});
  plant("cleared_without_barrier",
        {{"asm volatile(\"bar.sync 1, %0;\"", "asm volatile(\"// %0\""}},
        {race, protocol});
  plant("one_row_not_cleared", {{"n = count * row", "n = (count + 1) * row"}},
        {wrong});
  plant("other_permutation", {{"width == 32 ? 2 : 3", "width == 32 ? 3 : 2"}},
        {wrong, race, unwritten});
  plant("values_transposed_once_more", {{"p, 1, 1, 1;", "p, 1, 1, 0;"}},
        {wrong, race, bounds, unwritten});
  plant("keys_not_by_rows", {{"p, 1, 1, 0, 0;", "p, 1, 1, 0, 1;"}},
        {wrong, race, bounds, unwritten});
  plant("coordinates_swapped",
        {{"\"r\"(box.at[2]), \"r\"(box.at[1])",
          "\"r\"(box.at[1]), \"r\"(box.at[2])"}},
        {wrong, unwritten});
  plant("same_panel_again", {{"\"r\"(box.at[3] + column)", "\"r\"(box.at[3])"}},
        {wrong});
  plant("panels_overlap",
        {{"column * (Tile::Rows * 2)", "column * Tile::Rows"}},
        {unwritten, wrong, race});
  plant("depth_steps_too_short",
        {{"right + k * (16 * width * 2) / 16",
          "right + k * (8 * width * 2) / 16"}},
        {wrong});
  plant("eight_rows_apart",
        {{"eight = 8 * width * 2", "eight = 4 * width * 2"}}, {wrong});
  plant("queries_of_the_first_warpgroup",
        {{"a.base + warpgroup * (64 * width * 2)", "a.base"}}, {wrong});
  plant("products_not_fenced", {{"  fenceProducts();\n", "", 0}}, {protocol});
  plant("products_not_committed", {{"  commitProducts();\n", "", 1}},
        {race, wrong});
  plant("scores_read_too_early", {{"await<0>(scores)", "await<1>(scores)"}},
        {race, wrong});
  plant("outputs_read_too_early", {{"await<0>(o)", "await<1>(o)"}},
        {race, wrong});
  plant("scores_accumulate",
        {{"beginMultiplyTransposed<bf16, false>",
          "beginMultiplyTransposed<bf16, true>"}},
        {wrong, unwritten});
  plant("outputs_do_not_accumulate",
        {{"beginMultiply<bf16, true>", "beginMultiply<bf16, false>"}}, {wrong});
  plant("weights_in_another_order",
        {{"x[k][1] = pack<T>(left[2], left[3]);\n    weights.x[k][2] = "
          "pack<T>(right[0], right[1]);",
          "x[k][2] = pack<T>(left[2], left[3]);\n    weights.x[k][1] = "
          "pack<T>(right[0], right[1]);"}},
        {wrong});
  plant("no_mask", {{" ? s : -infinity();", " ? s : s;"}}, {wrong});
  plant("mask_without_ends", {{"return column < ", "return true || column < "}},
        {wrong});

  // With software pipelining and ping-pong scheduling.
  auto plantPipelined = [&](std::string name, std::vector<Edit> edits,
                            std::vector<std::string> found) {
    all.push_back({"pipelined_" + std::move(name), true, true, std::move(edits),
                   std::move(found)});
  };
  plantPipelined("none_is_found", {}, {""});
  plantPipelined("scores_read_too_early",
                 {{"await<1>(scores)", "await<2>(scores)"}}, {race, wrong});
  plantPipelined("outputs_read_too_early", {{"await<0>(o)", "await<1>(o)"}},
                 {race, wrong});
  plantPipelined(
      "last_outputs_read_too_early",
      {{"await<0>(o);\n        valueTilePipeline.consumerRelease();\n      }",
        "await<1>(o);\n        valueTilePipeline.consumerRelease();\n      }"}},
      {race, wrong, protocol});
  // Those of later tiles are behind the producer's wait for values.
  plantPipelined(
      "first_keys_released_early",
      {{"await<0>(scores);\n        keyTilePipeline.consumerRelease();",
        "keyTilePipeline.consumerRelease();\n        await<0>(scores);"}},
      {race});
  plantPipelined(
      "values_released_early",
      {{"await<0>(o);\n        valueTilePipeline.consumerRelease();",
        "valueTilePipeline.consumerRelease();\n        await<0>(o);"}},
      {race});
  plantPipelined("values_released_with_keys",
                 {{"await<0>(o);\n        valueTilePipeline.consumerRelease();",
                   "await<0>(o);"},
                  {"await<1>(scores);\n",
                   "await<1>(scores); valueTilePipeline.consumerRelease();\n"}},
                 {race, protocol, deadlock});
  plantPipelined("values_never_released",
                 {{"await<0>(o);\n        valueTilePipeline.consumerRelease();",
                   "await<0>(o);"}},
                 {deadlock, wrong, race});
  plantPipelined(
      "rescaled_while_added_to",
      {{"await<0>(o);\n        valueTilePipeline.consumerRelease();\n        "
        "rescale(o, factor);",
        "rescale(o, factor);\n        await<0>(o);\n        "
        "valueTilePipeline.consumerRelease();"}},
      {race, wrong});
  plantPipelined(
      "outputs_not_rescaled",
      {{"valueTilePipeline.consumerRelease();\n        rescale(o, factor);",
        "valueTilePipeline.consumerRelease();"}},
      {wrong});
  plantPipelined("first_weights_not_rounded",
                 {{"round(scores, weights);\n", "\n", 0}}, {unwritten, wrong});
  plantPipelined("cleared_before_they_come",
                 {{"valueTilePipeline.consumerWait();\n          clear",
                   "valueTilePipeline.tile();\n          clear"}},
                 {race, wrong});
  plantPipelined("no_first_signal", {{"PingPong<Group>::begin();", ""}},
                 {deadlock});
  plantPipelined("no_signals", {{"PingPong<Group>::signal();", ""}},
                 {deadlock});
  plantPipelined("one_signal_missing", {{"PingPong<Group>::signal();", "", 0}},
                 {deadlock});
  plantPipelined(
      "signals_oneself",
      {{"int next = warpgroup() + 1 == Warpgroups ? 0 : warpgroup() + 1;",
        "int next = warpgroup();"}},
      {deadlock});
  plantPipelined("waits_twice",
                 {{"PingPong<Group>::wait();",
                   "PingPong<Group>::wait(); PingPong<Group>::wait();"}},
                 {deadlock});
  plantPipelined("ping_pong_of_one_warpgroup",
                 {{"bar.arrive %0, 256", "bar.arrive %0, 128"}}, {deadlock});

  // With mask bits, which mask warps compute.
  auto plantMaskBits = [&](std::string name, std::vector<Edit> edits,
                           std::vector<std::string> found) {
    all.push_back({"mask_bits_" + std::move(name), true, true, std::move(edits),
                   std::move(found), true});
  };
  plantMaskBits("none_is_found", {}, {""});
  plantMaskBits("consumers_do_not_wait",
                {{"bitsPipeline.consumerWait()", "bitsPipeline.tile()"}},
                {race, unwritten});
  plantMaskBits("mask_warps_do_not_wait",
                {{"bitsPipeline.producerAcquire()", "bitsPipeline.tile()"}},
                {race, protocol, deadlock});
  plantMaskBits("released_early",
                {{"applyMaskBits(scores, bits1);\n          "
                  "bitsPipeline.consumerRelease();",
                  "bitsPipeline.consumerRelease();\n          "
                  "applyMaskBits(scores, bits1);"},
                 {"applyMaskBits(scores, bits2);\n          "
                  "bitsPipeline.consumerRelease();",
                  "bitsPipeline.consumerRelease();\n          "
                  "applyMaskBits(scores, bits2);"}},
                {race});
  plantMaskBits("never_released", {{"bitsPipeline.consumerRelease();", ""}},
                {deadlock, wrong, race});
  plantMaskBits("committed_early",
                {{"const auto bits = bitsPipeline.producerAcquire();",
                  "const auto bits = bitsPipeline.producerAcquire();\n"
                  "if (threadIdx.x % 32 == 0) arrive(bitsPipeline.full());"},
                 {"bitsPipeline.producerCommit();", "bitsPipeline.advance();"}},
                {race, unwritten});
  plantMaskBits("committed_by_two_of_three",
                {{"writers = Tile::Writers", "writers = Tile::Writers - 1"}},
                {race, unwritten, protocol});
  plantMaskBits("committed_by_lanes_apart",
                {{"__syncwarp();\n    if (threadIdx.x % 32 == 0)\n      "
                  "arrive(full());",
                  "if (threadIdx.x % 32 == 0)\n      arrive(full());"}},
                {race});
  plantMaskBits("not_committed", {{"bitsPipeline.producerCommit();", ""}},
                {deadlock});
  plantMaskBits("by_the_producer_too",
                {{"32, 0) > Warps::Count", "32, 0) >= Warps::Count"}},
                {deadlock, race});
  plantMaskBits(
      "one_mask_warp_idle",
      {{"n < all; n += SharedMaskBits", "n < all - 1; n += SharedMaskBits"}},
      {unwritten, wrong});
  plantMaskBits("of_other_rows",
                {{"base + 4 * (n * Rows + row)", "base + 4 * (n + row)"}},
                {wrong, race, unwritten});
  plantMaskBits("of_other_columns", {{"  word >>= Warps::column();\n", ""}},
                {wrong});
  plantMaskBits("without_ends",
                {{"return column < ", "return true || column < "}}, {wrong});
  plantMaskBits("not_applied", {{"applyMaskBits(scores, ", "// ("}}, {wrong});

  // Not warp-specialized.
  auto plantPortable = [&](std::string name, std::vector<Edit> edits,
                           std::vector<std::string> found) {
    all.push_back({"portable_" + std::move(name), false, false,
                   std::move(edits), std::move(found)});
  };
  plantPortable("none_is_found", {}, {""});
  plantPortable("keys_not_waited_for", {{" wait<0>();\n", "\n", 0}}, {race});
  plantPortable("values_not_waited_for", {{" wait<0>();\n", "\n", 1}}, {race});
  plantPortable("one_copy_pending", {{" wait<0>();\n", " wait<1>();\n"}},
                {race});
  plantPortable("keys_not_shared", {{" synchronize();\n", "\n", 1}}, {race});
  plantPortable("values_not_shared", {{" synchronize();\n", "\n", 2}}, {race});
  plantPortable(
      "not_permuted",
      {{"(c % Chunks) ^ (row / (8 / Chunks) % Chunks)", "(c % Chunks)"}},
      {"bank conflicts", wrong});
  plantPortable("permuted_by_sums",
                {{"(first ^ (k % pairs * 32))", "(first + (k % pairs * 32))"}},
                {wrong, bounds, unwritten, race});
  plantPortable("values_not_transposed",
                {{"if constexpr (Transposed)", "if constexpr (false)"}},
                {wrong});
  plantPortable("no_end_of_rows",
                {{"bool exists = row < from.count && ", "bool exists = "}},
                {wrong, bounds, unwritten});
  plantPortable("maximum_of_a_thread", {{"maxOfRow(most)", "most"}}, {wrong});
  plantPortable("sum_of_a_thread",
                {{"sumOfRow(a.part.x[i][half])", "a.part.x[i][half]"}},
                {wrong});
  plantPortable("no_mask", {{" ? s : -infinity();", " ? s : s;"}}, {wrong});
  plantPortable("not_rescaled", {{"rescale(o, factor);", ""}}, {wrong});
  plantPortable("sums_counted_by_all",
                {{"if (Warps::lane() % 4 != 0)\n    fill(a.part, 0.f);", ""}},
                {wrong});
  plantPortable("rows_stored_behind_the_end",
                {{"if (row < to.count)", "if (row <= to.count)"}},
                {"writes behind"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kernels, PlantedFaults,
                         testing::ValuesIn(sampleOf(faults())),
                         [](const auto &info) { return info.param.name; });
