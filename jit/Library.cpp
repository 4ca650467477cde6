//===- Library.cpp - programs compiled into this process ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Library.h"

#include "jit/Diagnostics.h"
#include "jit/Loader.h"
#include "jit/RuntimeErrors.h"
#include "passes/Proof/Prove.h"

#include "burst/internal/tensor.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

using namespace mlir;
using namespace burst;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

/// The program of a rank whose schedule is still to be proved.
struct Unproved {
  explicit Unproved(const DialectRegistry &dialects)
      : context(dialects, MLIRContext::Threading::DISABLED) {}

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp program;
  /// What the proof for every number of ranks says, made on demand.
  std::optional<proof::Verdict> verdict;
  std::set<std::string> proved; ///< sizes and values
};

/// What stands behind a program that was compiled here.
struct Installed {
  std::unique_ptr<jit::Code> code;
  burst_program *program = nullptr;
  std::string text; ///< of what is to be proved; empty if nothing is
  std::optional<ProvedFor> proved; ///< when it was compiled
  std::mutex mutex;
  std::unique_ptr<Unproved> unproved; ///< made on demand, under the mutex
};

/// Programs that may be proved later, by their handles.
struct Registry {
  std::mutex mutex;
  std::map<const burst_program *, Installed *> programs;
};

Registry &registry() {
  // Never destroyed: a host may release programs when it exits.
  static auto *instance = new Registry;
  return *instance;
}

void uninstall(void *context) {
  auto *installed = static_cast<Installed *>(context);
  {
    std::lock_guard lock(registry().mutex);
    registry().programs.erase(installed->program);
  }
  delete installed;
}

} // namespace

burst_error *jit::install(Compiled compiled, burst_program **program) {
  auto code = load(std::move(compiled.objects));
  if (!code)
    return makeError(BURST_INVALID_PROGRAM,
                     "cannot load the code: " + toString(code.takeError()));
  auto installed = std::make_unique<Installed>();
  installed->code = std::move(*code);
  installed->text = std::move(compiled.unproved);
  installed->proved = compiled.proved;
  if (burst_error *error =
          burst_program_from_image(installed->code->image(), uninstall,
                                   installed.get(), &installed->program))
    return error;
  *program = installed->program;
  std::lock_guard lock(registry().mutex);
  registry().programs[*program] = installed.get();
  std::ignore = installed.release(); // uninstall deletes it.
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

static burst_error *invalid(int64_t argument, const char *format, ...) {
  char message[256];
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof(message), format, values);
  va_end(values);
  return burst_error_create(BURST_INVALID_ARGUMENT, "",
                            "argument %" PRId64 ": %s", argument, message);
}

/// Whether a tensor has the type, the rank and what is known of the sizes of a
/// global argument.
static burst_error *checkGlobal(const burst_parameter &parameter,
                                int64_t argument, const burst_tensor &found) {
  if (found.rank != parameter.rank)
    return invalid(argument, "rank %d, wanted %d", found.rank, parameter.rank);
  if (found.type != parameter.type)
    return invalid(argument, "type %d, wanted %d", found.type, parameter.type);
  for (int32_t d = 0; d < found.rank; ++d) {
    int64_t wanted = burst_parameter_global_size(&parameter, d);
    if (found.sizes[d] < 0 || (wanted >= 0 && found.sizes[d] != wanted))
      return invalid(argument,
                     wanted < 0
                         ? "size %" PRId64 " in dimension %d, wanted 0 or more"
                         : "size %" PRId64 " in dimension %d, wanted %" PRId64,
                     found.sizes[d], d, wanted);
  }
  return nullptr;
}

static burst_error *checkTensors(const burst_program *program,
                                 ArrayRef<burst_tensor> globals) {
  burst_error *error = nullptr;
  for (auto [index, global] : llvm::enumerate(globals)) {
    const burst_parameter *parameter = burst_program_parameter(program, index);
    if (!error && parameter->kind != BURST_EXTENT)
      error = checkGlobal(*parameter, index, global);
  }
  return error;
}

/// Element at `bytes` as the machine holds it.
static Scalar readScalar(const char *bytes, Type type) {
  Scalar scalar;
  int64_t size = elementBytes(type);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, size); // Little endian, as what is compiled for.
  if (auto real = dyn_cast<FloatType>(type))
    scalar.f = llvm::APFloat(real.getFloatSemantics(),
                             llvm::APInt(real.getWidth(), bits))
                   .convertToDouble();
  else if (type.isInteger(1))
    scalar.i = bits ? -1 : 0;
  else
    scalar.i = llvm::SignExtend64(bits, 8 * size);
  return scalar;
}

/// The data of a table, row-major.
static void readTable(const burst_tensor &from, Tensor &table) {
  int64_t bytes = elementBytes(table.element);
  bool isReal = isa<FloatType>(table.element);
  SmallVector<int64_t> index(table.shape.size(), 0);
  for (int64_t i = 0, count = table.size(); i < count; ++i) {
    int64_t rest = i, offset = 0;
    for (size_t d = table.shape.size(); d-- > 0; rest /= table.shape[d])
      offset += rest % table.shape[d] * from.strides[d];
    Scalar scalar = readScalar(
        static_cast<const char *>(from.data) + offset * bytes, table.element);
    if (isReal)
      table.floats.push_back(scalar.f);
    else
      table.ints.push_back(scalar.i);
  }
}

/// The global arguments of a program, with the data that its schedule depends
/// on; what decides the schedule is appended to `key`.
static burst_error *bindGlobals(const burst_program *loaded,
                                func::FuncOp program,
                                ArrayRef<burst_tensor> given,
                                std::vector<Argument> &globals,
                                std::string &key) {
  llvm::raw_string_ostream out(key);
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes())) {
    const burst_tensor &tensor = given[index];
    Argument &argument = globals.emplace_back();
    if (program.getArgAttr(index, ring::extentAttr))
      continue; // Follows from the tensors whose size it is.
    auto ranked = dyn_cast<RankedTensorType>(type);
    Type element = ranked ? ranked.getElementType() : type;
    ArrayRef<int64_t> shape(tensor.sizes, tensor.rank);
    std::string problem;
    if (ranked && !checkSize(shape, element, problem))
      return invalid(index, "%s", problem.c_str());
    if (ranked)
      argument.table = std::make_shared<Tensor>(shape, element);
    for (int64_t size : shape)
      out << size << ",";
    if (!steersSchedule(program, index))
      continue;
    if (!tensor.data && (!ranked || argument.table->size() != 0))
      return invalid(index, "no data, which the schedule depends on");
    if (burst_error *error = burst_tensor_check(
            "", &tensor, burst_program_parameter(loaded, index),
            /*written=*/false))
      return error;
    if (!ranked) {
      argument.scalar =
          readScalar(static_cast<const char *>(tensor.data), element);
      out << argument.scalar.i << ";";
      continue;
    }
    readTable(tensor, *argument.table);
    ArrayRef<uint8_t> bytes(
        reinterpret_cast<const uint8_t *>(argument.table->ints.data()),
        argument.table->ints.size() * sizeof(int64_t));
    if (!argument.table->floats.empty())
      bytes = ArrayRef(
          reinterpret_cast<const uint8_t *>(argument.table->floats.data()),
          argument.table->floats.size() * sizeof(double));
    llvm::XXH128_hash_t hash = llvm::xxh3_128bits(bytes);
    out << hash.high64 << ":" << hash.low64 << ";";
  }
  return nullptr;
}

/// Null where the text cannot be read, which is an error of this library.
static Unproved *read(Installed &installed) {
  if (installed.unproved)
    return installed.unproved.get();
  DialectRegistry dialects;
  jit::registerDialects(dialects);
  auto unproved = std::make_unique<Unproved>(dialects);
  unproved->module =
      parseSourceString<ModuleOp>(installed.text, &unproved->context);
  if (!unproved->module)
    return nullptr;
  unproved->program = unproved->module->lookupSymbol<func::FuncOp>(
      burst_program_name(installed.program));
  installed.unproved = std::move(unproved);
  return installed.unproved.get();
}

static burst_error *proveFor(Installed &installed,
                             ArrayRef<burst_tensor> given) {
  std::lock_guard lock(installed.mutex);
  Unproved *unproved = read(installed);
  if (!unproved)
    return jit::makeError(BURST_PROGRAM_FAULT, "cannot be read again");
  jit::Diagnostics diagnostics(&unproved->context);
  auto fail = [&](burst_code code) {
    return jit::makeError(code, diagnostics.getText(),
                          diagnostics.getLocation());
  };
  std::vector<Argument> globals;
  std::string key;
  if (burst_error *error = bindGlobals(installed.program, unproved->program,
                                       given, globals, key))
    return error;
  if (unproved->proved.count(key))
    return nullptr;
  if (failed(checkGlobals(unproved->program, globals)))
    return fail(BURST_INVALID_ARGUMENT);
  // What the mask rules out may be computed and sent: it was the author's
  // choice where the program came lowered.
  if (!unproved->verdict)
    unproved->verdict = proof::proveForAll(unproved->program, allowWaste);
  ScheduleProof proof;
  if (failed(proveSchedule(unproved->program, *unproved->verdict, globals,
                           {allowWaste}, proof)))
    return fail(BURST_INVALID_PROGRAM);
  unproved->proved.insert(key);
  return nullptr;
}

burst_proof jit::proofOf(const burst_program *program) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().programs.find(program);
  if (found == registry().programs.end() || !found->second->proved)
    return BURST_PROOF_NONE;
  switch (*found->second->proved) {
  case ProvedFor::AllRanks:
    return BURST_PROOF_ALL_RANKS;
  case ProvedFor::AllOddRanks:
    return BURST_PROOF_ALL_ODD_RANKS;
  case ProvedFor::AllEvenRanks:
    return BURST_PROOF_ALL_EVEN_RANKS;
  case ProvedFor::TheseRanks:
    return BURST_PROOF_THESE_RANKS;
  }
  llvm_unreachable("unknown proof");
}

burst_error *jit::prove(burst_program *program,
                        ArrayRef<burst_tensor> globals) {
  Installed *installed = nullptr;
  {
    std::lock_guard lock(registry().mutex);
    auto found = registry().programs.find(program);
    if (found != registry().programs.end())
      installed = found->second;
  }
  if (!installed)
    return burst_error_create(BURST_INVALID_ARGUMENT, "",
                              "%s: not compiled in this process, so that its "
                              "schedule is not known here",
                              burst_program_name(program));
  if (burst_error *error = checkTensors(program, globals))
    return error;
  // Static: proved when it was compiled.
  return installed->text.empty() ? nullptr : proveFor(*installed, globals);
}
