//===- Bundle.cpp - runs programs that were compiled before ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/burst-run/Bundle.h"

#include "tools/data/Random.h"
#include "tools/data/Safetensors.h"
#include "tools/harness/Compiled.h"
#include "tools/harness/Ranks.h"
#include "tools/harness/Tensors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <fstream>
#include <numeric>
#include <unistd.h>

using namespace burst;

bool burst::isBundle(const std::string &path) {
  if (!llvm::sys::fs::is_regular_file(path))
    return false; // what is read from a pipe is gone
  char magic[4] = {};
  std::ifstream(path, std::ios::binary).read(magic, sizeof(magic));
  return std::string_view(magic, sizeof(magic)) == "\177ELF";
}

namespace {

class BundleRunner {
public:
  explicit BundleRunner(const RunOptions &options) : options(options) {}

  bool run();

private:
  bool fail(const llvm::Twine &message) {
    llvm::errs() << ("burst-run: " + message + "\n").str(); // not in pieces
    return false;
  }
  bool fail(burst_error *error) {
    fail(llvm::Twine(burst_error_message(error)));
    burst_error_destroy(error);
    return false;
  }
  bool phase(const char *name, llvm::function_ref<bool()> body);

  bool load();
  bool checkDevice();
  bool readSizes();
  bool checkMemory();
  bool bind();
  bool execute();
  bool write();
  void print();
  void printJson();

  const burst_parameter &parameter(int64_t index) const {
    return *burst_program_parameter(program.get(), index);
  }
  std::vector<int64_t> globalShape(int64_t index) const;
  bool makeUp(int64_t index, data::Tensor &tensor);
  bool take(int64_t index, const data::Tensor &found, data::Tensor &tensor);
  bool takeAll(const data::Tensors &archive, std::vector<bool> &taken);
  bool bindResults();
  std::vector<int64_t> traffic() const;
  std::vector<int64_t> peaks() const;

  const RunOptions &options;
  ProgramRef program;
  int64_t numParameters = 0, numArguments = 0, batch = -1;
  std::vector<int64_t> extents; ///< by the parameter that carries it, else -1
  std::vector<data::Tensor> tensors;
  std::vector<burst_counters> counters;
  std::vector<std::pair<std::string, double>> seconds;
};

} // namespace

bool BundleRunner::phase(const char *name, llvm::function_ref<bool()> body) {
  auto begin = std::chrono::steady_clock::now();
  bool ok = body();
  std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  seconds.push_back({name, passed.count()});
  return ok;
}

/// A program runs where it was compiled for.
bool BundleRunner::checkDevice() {
  bool isGpu = burst_program_is_gpu(program.get()) != 0;
  if (options.gpu && !isGpu)
    return fail((options.ranks ? "--transport: " : "--device: ") +
                options.file +
                " was compiled for processors: compile it with --target=cuda");
  if (isGpu && options.threads)
    return fail("--threads is for kernels of processors, and " + options.file +
                " was compiled for GPUs");
  return true;
}

bool BundleRunner::load() {
  burst_program *loaded = nullptr;
  if (burst_error *error = burst_program_load(options.file.c_str(), &loaded))
    return fail(error);
  program.reset(loaded);
  numParameters = burst_program_num_parameters(loaded);
  numArguments = burst_program_num_arguments(loaded);
  extents.assign(numParameters, -1);
  return checkDevice();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static std::optional<data::DType> dtypeOf(int32_t type) {
  using data::DType;
  switch (type) {
  case BURST_F64:
    return DType::F64;
  case BURST_F32:
    return DType::F32;
  case BURST_BF16:
    return DType::BF16;
  case BURST_F16:
    return DType::F16;
  case BURST_I64:
    return DType::I64;
  case BURST_I32:
    return DType::I32;
  case BURST_I16:
    return DType::I16;
  case BURST_I8:
    return DType::I8;
  case BURST_I1:
    return DType::BOOL;
  default:
    return std::nullopt;
  }
}

/// The sizes of made-up tensors, in the order of the extents.
bool BundleRunner::readSizes() {
  size_t next = 0;
  bool isOpen = false;
  int64_t batchParts = 1;
  for (int64_t index = 0; index < numArguments; ++index) {
    const burst_parameter &p = parameter(index);
    for (int32_t d = 0; d < p.rank; ++d)
      if (p.shard_dim >= 0 && d != p.shard_dim && p.sizes[d] < 0) {
        isOpen = true;
        batchParts = burst_parameter_parts(&p, d);
      }
    if (p.kind == BURST_EXTENT && next++ < options.extents.size())
      extents[index] = options.extents[next - 1];
  }
  const char *name = burst_program_name(program.get());
  if (options.in.empty() && next != options.extents.size())
    return fail(llvm::formatv(
        "@{0} has {1} dynamic sequence lengths, got extents: {2}; {3}", name,
        next, options.extents.size(),
        next == 0 ? "leave --extents out"
                  : llvm::formatv("give {0} with --extents", next).str()));
  constexpr int64_t limit = int64_t{1} << 40;
  for (int64_t value : options.extents)
    if (value < 0 || value >= limit)
      return fail(llvm::formatv(
          "@{0} needs sequence lengths in [0, 2^40), got: {1}", name, value));
  if (options.batch && !isOpen)
    return fail(llvm::formatv("@{0} has no dynamic batch size, got batch: "
                              "{1}; leave --batch out",
                              name, *options.batch));
  batch = options.batch.value_or(batchParts);
  if (batch < 0 || batch >= limit)
    return fail(llvm::formatv("@{0} needs a batch size in [0, 2^40), got: {1}",
                              name, batch));
  return true;
}

/// -1 for what is not known.
std::vector<int64_t> BundleRunner::globalShape(int64_t index) const {
  const burst_parameter &p = parameter(index);
  std::vector<int64_t> shape;
  for (int32_t d = 0; d < p.rank; ++d)
    shape.push_back(burst_parameter_global_size(&p, d));
  if (p.shard_dim < 0)
    return shape;
  for (int64_t &size : shape)
    size = size < 0 ? batch : size;
  shape[p.shard_dim] = p.extent >= 0             ? p.extent
                       : p.extent_parameter >= 0 ? extents[p.extent_parameter]
                                                 : -1;
  return shape;
}

/// Made-up tensors and the results, their shards, and numbers in fp64 that the
/// former are made of. Allocation failure would end the program.
bool BundleRunner::checkMemory() {
  double needed = 0, numbers = 0;
  for (int64_t index = 0; index < numParameters; ++index) {
    const burst_parameter &p = parameter(index);
    std::vector<int64_t> shape = globalShape(index);
    if (llvm::is_contained(shape, -1))
      continue;
    double count = 1;
    for (int64_t size : shape)
      count *= static_cast<double>(size);
    needed += 2 * count * static_cast<double>(burst_type_bytes(p.type));
    if (!p.is_result)
      numbers = std::max(numbers, sizeof(double) * count);
  }
  double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed + numbers <= memory)
    return true;
  constexpr double gib = 1 << 30;
  return fail(llvm::formatv("@{0} needs about {1:F1} GiB for its tensors, this "
                            "machine has {2:F1}",
                            burst_program_name(program.get()),
                            (needed + numbers) / gib, memory / gib));
}

/// The same values as for the module that the program was compiled from.
bool BundleRunner::makeUp(int64_t index, data::Tensor &tensor) {
  const burst_parameter &p = parameter(index);
  auto cannot = [&](const char *what) {
    return fail(llvm::formatv("argument {0}, '{1}': {2} cannot be made up from "
                              "a seed: give it in --in",
                              index, p.name, what));
  };
  bool isReal = data::isFloat(tensor.dtype);
  if (p.kind == BURST_SCALAR && !isReal)
    return cannot("a scalar that is no float");
  std::vector<int64_t> shape = globalShape(index);
  if (llvm::is_contained(shape, -1))
    return cannot("a tensor of unknown size");
  if (!data::byteSize(tensor.dtype, shape))
    return fail(llvm::formatv("argument {0}, '{1}': {2} is too large", index,
                              p.name, data::shapeText(shape)));
  tensor = data::Tensor::zeros(tensor.dtype, shape);
  if (isReal) {
    std::vector<double> values =
        data::normal(options.seed, p.name, tensor.numel());
    for (size_t i = 0; i < values.size(); ++i)
      tensor.set(i, values[i]);
    return true;
  }
  int64_t row = shape.empty() ? 1 : shape.back();
  for (size_t i = 0; i < tensor.numel(); ++i) {
    int64_t id = static_cast<int64_t>(i) % row * 4 / row;
    data::fromInt(tensor.dtype, tensor.dtype == data::DType::BOOL ? id & 1 : id,
                  tensor.element(i));
  }
  return true;
}

/// A tensor of the archive; the first one says a size that is open.
bool BundleRunner::take(int64_t index, const data::Tensor &found,
                        data::Tensor &tensor) {
  const burst_parameter &p = parameter(index);
  const std::vector<int64_t> &shape = found.shape;
  bool fits = found.dtype == tensor.dtype &&
              static_cast<int32_t>(shape.size()) == p.rank;
  for (int32_t d = 0; fits && p.shard_dim >= 0 && d < p.rank; ++d) {
    if (d == p.shard_dim && p.extent < 0 && p.extent_parameter >= 0 &&
        extents[p.extent_parameter] < 0)
      extents[p.extent_parameter] = shape[d];
    else if (d != p.shard_dim && p.sizes[d] < 0 && batch < 0)
      batch = shape[d];
  }
  std::vector<int64_t> wanted = globalShape(index);
  for (int32_t d = 0; fits && d < p.rank; ++d)
    fits = wanted[d] < 0 || wanted[d] == shape[d];
  if (!fits)
    return fail(llvm::formatv(
        "argument {0}, '{1}': found {2} {3}, wanted {4} {5}", index, p.name,
        std::string(data::nameOf(found.dtype)), data::shapeText(shape),
        std::string(data::nameOf(tensor.dtype)), data::shapeText(wanted)));
  tensor = found;
  return true;
}

/// Takes the arguments that the archive has.
bool BundleRunner::takeAll(const data::Tensors &archive,
                           std::vector<bool> &taken) {
  std::vector<std::string> names;
  names.reserve(numArguments);
  for (int64_t index = 0; index < numArguments; ++index)
    names.emplace_back(parameter(index).name);
  const std::string *stranger = findStranger(archive, names);
  for (int64_t index = 0; index < numArguments; ++index) {
    if (taken[index])
      continue;
    auto found = archive.find(names[index]);
    if (found == archive.end() && stranger)
      return fail(llvm::formatv("argument {0} takes a tensor named '{1}', "
                                "which the input does not have; it has '{2}', "
                                "which no argument takes",
                                index, names[index], *stranger));
    if (found == archive.end())
      continue;
    if (!take(index, found->second, tensors[index]))
      return false;
    taken[index] = true;
  }
  return true;
}

bool BundleRunner::bind() {
  std::optional<data::Archive> archive;
  if (!options.in.empty()) {
    std::string error;
    archive = data::read(options.in, error);
    if (!archive)
      return fail(error);
    batch = -1;
  }
  tensors.resize(numParameters);
  std::vector<bool> taken(numArguments);
  for (int64_t index = 0; index < numArguments; ++index) {
    tensors[index].dtype = *dtypeOf(parameter(index).type);
    // A length follows from a tensor.
    taken[index] = parameter(index).kind == BURST_EXTENT;
  }
  if (archive && !takeAll(archive->tensors, taken))
    return false;
  if (!llvm::is_contained(taken, false))
    return bindResults();
  batch = batch < 0 ? 1 : batch;
  if (!checkMemory())
    return false;
  for (int64_t index = 0; index < numArguments; ++index)
    if (!taken[index] && !makeUp(index, tensors[index]))
      return false;
  return bindResults();
}

bool BundleRunner::bindResults() {
  for (int64_t index = 0; index < numParameters; ++index) {
    const burst_parameter &p = parameter(index);
    if (p.kind == BURST_EXTENT) {
      tensors[index] = data::Tensor::zeros(data::DType::I64, {});
      std::memcpy(tensors[index].element(0), &extents[index], sizeof(int64_t));
    }
    if (!p.is_result)
      continue;
    std::vector<int64_t> shape = globalShape(index);
    data::DType dtype = *dtypeOf(p.type);
    if (llvm::is_contained(shape, -1) || !data::byteSize(dtype, shape))
      return fail(llvm::formatv("result '{0}': no known size, found {1}",
                                p.name, data::shapeText(shape)));
    tensors[index] = data::Tensor::zeros(dtype, shape);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

bool BundleRunner::execute() {
  std::vector<burst_tensor> views;
  views.reserve(numParameters);
  for (int64_t index = 0; index < numParameters; ++index)
    views.push_back(viewOf(tensors[index], parameter(index).type));
  auto error = runAll(program.get(), views,
                      {options.threads, options.deadline, /*checked=*/false,
                       options.trace, options.latency, options.bandwidth,
                       options.gpu.value_or(0),
                       options.ranks ? options.ranks->device() : nullptr,
                       options.ranks ? options.ranks->transport() : nullptr},
                      counters);
  return !error || fail(llvm::Twine(*error));
}

bool BundleRunner::write() {
  data::Tensors results;
  for (int64_t index = numArguments; index < numParameters; ++index)
    results.emplace(parameter(index).name, tensors[index]);
  std::string error;
  return data::write(options.out, results, {}, error) || fail(error);
}

std::vector<int64_t> BundleRunner::traffic() const {
  std::vector<int64_t> sent;
  sent.reserve(counters.size());
  for (const burst_counters &rank : counters)
    sent.push_back(rank.bytes_sent);
  return sent;
}

std::vector<int64_t> BundleRunner::peaks() const {
  std::vector<int64_t> peaks;
  peaks.reserve(counters.size());
  for (const burst_counters &rank : counters)
    peaks.push_back(rank.tensor_bytes + rank.peak_bytes[BURST_MEMORY_STATE] +
                    rank.peak_bytes[BURST_MEMORY_SLICE]);
  return peaks;
}

void BundleRunner::print() {
  std::vector<int64_t> sent = traffic(), held = peaks();
  llvm::outs() << llvm::formatv(
      "@{0} on {1} ranks: {2} bytes sent, at most {3} bytes held by a rank\n"
      "compiled for {4}\n",
      burst_program_name(program.get()), sent.size(),
      std::accumulate(sent.begin(), sent.end(), int64_t{0}),
      *llvm::max_element(held), burst_program_target(program.get()));
}

void BundleRunner::printJson() {
  llvm::json::Object results, times;
  for (int64_t index = numArguments; index < numParameters; ++index)
    results[parameter(index).name] =
        llvm::json::Object{{"shape", llvm::json::Array(tensors[index].shape)}};
  for (const auto &[name, value] : seconds)
    times[name] = value;
  llvm::json::Object object{
      {"program", burst_program_name(program.get())},
      {"target", burst_program_target(program.get())},
      {"ranks", burst_program_num_ranks(program.get())},
      {"results", std::move(results)},
      {"bytes_sent", llvm::json::Array(traffic())},
      {"peak_bytes", llvm::json::Array(peaks())},
      {"seconds", std::move(times)},
  };
  llvm::outs() << llvm::formatv("{0:2}\n",
                                llvm::json::Value(std::move(object)));
}

bool BundleRunner::run() {
  if (!phase("load", [&] { return load(); }) ||
      !phase("bind", [&] { return readSizes() && bind(); }) ||
      !phase("run", [&] { return execute(); }))
    return false;
  // Rank 0 has the results of all.
  if (options.ranks && options.ranks->rank() != 0)
    return true;
  if (!options.out.empty() && !phase("write", [&] { return write(); }))
    return false;
  options.json ? printJson() : print();
  return true;
}

/// What a program without its module cannot do.
static std::string refusedOption(const RunOptions &options) {
  if (options.checkRows)
    return "--check compares with the attention over global tensors";
  if (options.interpret)
    return "--interpret evaluates the schedule";
  if (options.explainRanks)
    return "--explain shows the schedule";
  if (!options.architectures.empty())
    return "--arch says for which GPUs to compile";
  if (!options.processor.empty() || !options.features.empty())
    return "--target-cpu and --features say for which processor to compile";
  if (!options.without.empty())
    return "--without leaves optimisations out";
  if (!options.dumpDirectory.empty())
    return "--dump-dir writes what the compiler makes";
  if (!options.entry.empty())
    return "--entry chooses a function to compile";
  return "";
}

int burst::runBundle(const RunOptions &options) {
  std::string refused = refusedOption(options);
  if (!refused.empty()) {
    llvm::errs() << "burst-run: " << refused << ", and " << options.file
                 << " is compiled already: give the .mlir file\n";
    return 1;
  }
  return BundleRunner(options).run() ? 0 : 1;
}
