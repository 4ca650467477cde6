//===- Target.cpp - processors and the shapes that suit them --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cpu/Target.h"
#include "dialect/Ring/Ring.h"
#include "dialect/Tile/Tile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace mlir;
using namespace burst;
using namespace burst::cpu;

//===----------------------------------------------------------------------===//
// What was measured
//===----------------------------------------------------------------------===//

namespace {
/// Queries and keys of a tile.
struct Tiles {
  int64_t rows, columns;
};

/// Lines of Tuned.inc.
struct TunedRegisters {
  StringLiteral processor;
  int64_t vectorBits, microRows, vectors, steps, exponentials, weights;
};
struct TunedTiles {
  StringLiteral processor;
  int64_t vectorBits;
  StringLiteral pass, type;
  int64_t largestDim;
  Tiles tiles;
};
} // namespace

// The first line of each table is of no processor: tables must not be empty.
static constexpr TunedRegisters tunedRegisters[] = {
    {"", 0, 0, 0, 0, 0, 0},
#define REGISTERS(processor, bits, rows, vectors, steps, exponentials,         \
                  weights)                                                     \
  {processor, bits, rows, vectors, steps, exponentials, weights},
#define TILES(...)
#include "codegen/cpu/Tuned.inc"
#undef REGISTERS
#undef TILES
};
static constexpr TunedTiles tunedTiles[] = {
    {"", 0, "", "", 0, {0, 0}},
#define REGISTERS(...)
#define TILES(processor, bits, pass, type, dim, rows, columns)                 \
  {processor, bits, pass, type, dim, {rows, columns}},
#include "codegen/cpu/Tuned.inc"
#undef REGISTERS
#undef TILES
};

//===----------------------------------------------------------------------===//
// What LLVM knows
//===----------------------------------------------------------------------===//

/// Those that have a vector unit this compiler has shapes for. The others that
/// LLVM has cost size.
static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

/// A triple in full, this machine's where it is empty.
static FailureOr<llvm::Triple> findTriple(StringRef name, std::string &error) {
  llvm::Triple triple(name.empty() ? llvm::sys::getProcessTriple()
                                   : llvm::Triple::normalize(name));
  bool hasCode = triple.getArch() == llvm::Triple::x86_64 ||
                 triple.getArch() == llvm::Triple::aarch64;
  if (hasCode && triple.isOSLinux() && triple.isOSBinFormatELF() &&
      !triple.isX32() && triple.getEnvironment() != llvm::Triple::GNUILP32)
    return triple;
  error = ("triple '" + name +
           "', wanted x86_64 or aarch64 on linux, with addresses of 64 bits, "
           "such as aarch64-linux-gnu")
              .str();
  return failure();
}

static FailureOr<std::unique_ptr<llvm::MCSubtargetInfo>>
describe(const llvm::Triple &triple, StringRef processor, StringRef features,
         std::string &error) {
  initializeTargets();
  const llvm::Target *found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found)
    return failure();
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      found->createMCSubtargetInfo(triple, processor, features));
}

/// The names that are closest to one that is not there, for an error.
static std::string similarTo(StringRef name, ArrayRef<StringRef> names) {
  auto away = static_cast<unsigned>(std::max<size_t>(name.size() / 3, 1));
  SmallVector<StringRef> closest;
  for (StringRef other : names) {
    unsigned distance = name.edit_distance(other, true, away);
    if (distance < away)
      closest.clear();
    if (distance <= away)
      closest.push_back(other);
    away = std::min(away, distance);
  }
  if (closest.empty())
    return "";
  return ", similar: " + llvm::join(closest, ", ");
}

static SmallVector<StringRef>
processorsOf(const llvm::MCSubtargetInfo &subtarget) {
  SmallVector<StringRef> names;
  for (const llvm::SubtargetSubTypeKV &entry :
       subtarget.getAllProcessorDescriptions())
    names.push_back(entry.Key);
  return names;
}

FailureOr<std::vector<std::string>> Target::names(StringRef triple,
                                                  std::string &error) {
  FailureOr<llvm::Triple> full = findTriple(triple, error);
  if (failed(full))
    return failure();
  auto subtarget = describe(*full, "", "", error);
  if (failed(subtarget))
    return failure();
  std::vector<std::string> names;
  for (const llvm::SubtargetSubTypeKV &entry :
       (*subtarget)->getAllProcessorDescriptions()) {
    auto known = describe(*full, entry.Key, "", error);
    bool isNarrow = full->getArch() == llvm::Triple::x86_64 &&
                    !(*known)->checkFeatures("+64bit");
    if (!isNarrow)
      names.emplace_back(entry.Key);
  }
  return names;
}

/// LLVM drops what it does not know, with a warning on the standard error.
static LogicalResult checkFeatures(const llvm::MCSubtargetInfo &known,
                                   StringRef features, std::string &error) {
  for (StringRef feature : llvm::split(features, ',')) {
    StringRef name = feature;
    if (!name.consume_front("+") && !name.consume_front("-")) {
      error = ("feature '" + feature + "', wanted +name or -name").str();
      return failure();
    }
    SmallVector<StringRef> names;
    for (const llvm::SubtargetFeatureKV &entry :
         known.getAllProcessorFeatures())
      names.push_back(entry.Key);
    if (llvm::is_contained(names, name))
      continue;
    error = ("unknown feature '" + name + "' for " +
             known.getTargetTriple().str() + similarTo(name, names))
                .str();
    return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Bytes of the second level cache of a core, which LLVM does not know.
static int64_t cacheOf(StringRef processor) {
  return llvm::StringSwitch<int64_t>(processor)
      .Cases({"skylake-avx512", "cascadelake", "cooperlake"}, 1 << 20)
      .Cases({"icelake-server", "rocketlake"}, 1280 << 10)
      .Cases({"sapphirerapids", "emeraldrapids", "graniterapids"}, 2 << 20)
      .Cases({"znver1", "znver2", "znver3"}, 512 << 10)
      .Cases({"znver4", "znver5"}, 1 << 20)
      .Cases({"neoverse-n1", "neoverse-n2", "neoverse-v1"}, 1 << 20)
      .Cases({"neoverse-v2", "grace"}, 1 << 20)
      .Default(256 << 10);
}

/// A register tile is two vectors wide, and as high as registers allow with two
/// left for the right operand and one for the left: 6 rows of 16 registers, 14
/// of 32. Where a product is an instruction of its own, it overwrites an
/// operand and takes copies and more registers: a wide tile of 2 rows is faster
/// than one of 6, by 7 % on x86-64.
static void chooseRegisters(Target &target) {
  int64_t vectors = target.fma ? 2 : 4;
  target.microRows =
      target.fma ? (target.registers - vectors - 1) / vectors : 2;
  // Two steps at a time leave less to count. Long ones are worth no counting,
  // and LLVM would begin the second so early that registers run out.
  target.steps = target.microRows * vectors < 16 ? 2 : 1;
  // Each vector of exponentials on its way, and its sum, takes three registers
  // beside the ten constants of the polynomial. Weights have no sums, and
  // maxima no constants: four hide the latency.
  target.maxima = 4;
  target.exponentials = llvm::bit_floor<uint64_t>((target.registers - 10) / 3);
  target.weights = 4;
  for (const TunedRegisters &tuned : tunedRegisters) {
    if (tuned.processor != target.processor ||
        tuned.vectorBits != target.vectorBits)
      continue;
    target.microRows = tuned.microRows;
    vectors = tuned.vectors;
    target.steps = tuned.steps;
    target.exponentials = tuned.exponentials;
    target.weights = tuned.weights;
  }
  target.microVectors = vectors;
}

static std::string nameOf(FloatType type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

namespace {
/// The attention that tiles are chosen for.
struct Kind {
  bool isBackward = false;
  FloatType operand, state;
  int64_t queryDim = 0, valueDim = 0;

  explicit Kind(func::FuncOp program);

  /// What operands are packed as, see ring-lower-to-tile.
  FloatType packed(bool pairs) const {
    return pairs && operand.isBF16() ? operand : state;
  }

private:
  void add(FloatType ofState, Value query, Value value);
};
} // namespace

/// The backward pass of a program, where it has one, and the largest head dims.
Kind::Kind(func::FuncOp program) {
  operand = state = Float32Type::get(program.getContext());
  program.walk([&](ring::AttendOp op) {
    add(op.getStateType(), op.getQuery(), op.getValue());
  });
  // Values come later, and fit as keys do.
  program.walk([&](ring::ScoreOp op) {
    add(op.getStateType(), op.getQuery(), op.getKey());
  });
  program.walk([&](ring::AttendGradOp op) {
    isBackward = true;
    add(op.getStateType(), op.getQuery(), op.getValue());
  });
}

void Kind::add(FloatType ofState, Value query, Value value) {
  auto type = cast<ShapedType>(query.getType());
  state = ofState;
  operand = cast<FloatType>(type.getElementType());
  queryDim = std::max(queryDim, type.getDimSize(3));
  valueDim =
      std::max(valueDim, cast<ShapedType>(value.getType()).getDimSize(3));
}

Target Target::suiting(func::FuncOp program) const {
  Target suited = *this;
  if (auto shape = program->getAttrOfType<DenseI64ArrayAttr>(tile::shapeAttr)) {
    suited.rows = shape[0];
    suited.columns = shape[1];
    return suited;
  }
  Kind kind(program);
  // About a hundred rows, in an even number of register tiles: more would not
  // make what is read again and again, keys and values, any less.
  Tiles tiles = {static_cast<int64_t>(llvm::alignTo(96, 2 * microRows)), 128};
  // A tile of keys and one of values, which all strips of rows pass, stay in
  // the second level.
  int64_t bytes = static_cast<int64_t>(kind.packed(pairs).getWidth() / 8) *
                  (kind.queryDim + kind.valueDim);
  while (tiles.columns > 32 && tiles.columns * bytes > cacheBytes)
    tiles.columns /= 2;
  for (const TunedTiles &tuned : llvm::reverse(tunedTiles))
    if (tuned.processor == processor && tuned.vectorBits == vectorBits &&
        tuned.pass == (kind.isBackward ? "backward" : "forward") &&
        tuned.type == nameOf(kind.packed(pairs)) &&
        std::max(kind.queryDim, kind.valueDim) <= tuned.largestDim)
      tiles = tuned.tiles;
  if (rows == 0)
    suited.rows = tiles.rows;
  if (columns == 0)
    suited.columns = tiles.columns;
  return suited;
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

static bool isOfThisMachine(const llvm::Triple &triple) {
  llvm::Triple mine(llvm::sys::getProcessTriple());
  return mine.getArch() == triple.getArch() && mine.getOS() == triple.getOS() &&
         mine.getEnvironment() == triple.getEnvironment();
}

static FailureOr<Target> make(const llvm::Triple &triple, StringRef processor,
                              StringRef features, std::string &error) {
  // LLVM would warn of what it does not know: nothing is asked yet.
  auto known = describe(triple, "", "", error);
  if (failed(known))
    return failure();
  if (!(*known)->isCPUStringValid(processor)) {
    error = ("unknown processor '" + processor + "' for " + triple.str() +
             similarTo(processor, processorsOf(**known)))
                .str();
    return failure();
  }
  if (!features.empty() && failed(checkFeatures(**known, features, error)))
    return failure();
  auto subtarget = describe(triple, processor, features, error);
  if (failed(subtarget))
    return failure();
  auto has = [&](StringRef feature) {
    return (*subtarget)->checkFeatures(("+" + feature).str());
  };
  Target target;
  target.triple = triple.str();
  target.processor = processor.str();
  target.features = features.str();
  target.cacheBytes = cacheOf(processor);
  if (triple.isAArch64()) {
    if (!has("neon")) {
      error = ("processor '" + processor +
               "' without feature 'neon', wanted vectors")
                  .str();
      return failure();
    }
    target.registers = 32;
    target.fma = true;
  } else {
    if (!has("64bit")) {
      error = ("processor '" + processor +
               "' without feature '64bit', wanted one for " + target.triple)
                  .str();
      return failure();
    }
    bool wide =
        has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
    target.vectorBits = wide ? 512 : has("avx2") ? 256 : 128;
    target.registers = wide ? 32 : 16;
    target.fma = wide || has("fma");
    target.dot = wide && has("avx512bf16");
    target.f16 = has("f16c");
    target.pairs = target.dot;
  }
  chooseRegisters(target);
  return target;
}

FailureOr<Target> Target::named(StringRef triple, StringRef processor,
                                StringRef features, std::string &error) {
  FailureOr<llvm::Triple> full = findTriple(triple, error);
  if (failed(full))
    return failure();
  if (!processor.empty())
    return make(*full, processor, features, error);
  if (!isOfThisMachine(*full))
    return make(*full, full->isAArch64() ? "generic" : "x86-64", features,
                error);
  // Asking takes longer than a program in a cache.
  static const Target host = Target::host();
  if (features.empty())
    return host;
  return make(*full, host.processor, host.features + "," + features.str(),
              error);
}

Target Target::host() {
  std::string features;
  for (const auto &[name, isThere] : llvm::sys::getHostCPUFeatures())
    features += (features.empty() ? "" : ",") +
                std::string(isThere ? "+" : "-") + name.str();
  std::string error;
  llvm::Triple triple(llvm::sys::getProcessTriple());
  FailureOr<Target> target =
      make(triple, llvm::sys::getHostCPUName(), features, error);
  if (succeeded(target))
    return *target;
  // A processor younger than LLVM.
  return *make(triple, "generic", features, error);
}

bool Target::isNative() const { return isOfThisMachine(llvm::Triple(triple)); }

/// What LLVM makes instructions of without being told to, beyond what all
/// processors of the architecture have. runtime/src/base/Processor.c asks for
/// each.
static constexpr StringLiteral x86Features[] = {"sse3",
                                                "ssse3",
                                                "sse4.1",
                                                "sse4.2",
                                                "sse4a",
                                                "popcnt",
                                                "movbe",
                                                "lzcnt",
                                                "bmi",
                                                "bmi2",
                                                "tbm",
                                                "avx",
                                                "avx2",
                                                "fma",
                                                "fma4",
                                                "xop",
                                                "f16c",
                                                "gfni",
                                                "avx512f",
                                                "avx512cd",
                                                "avx512dq",
                                                "avx512bw",
                                                "avx512vl",
                                                "avx512ifma",
                                                "avx512vbmi",
                                                "avx512vbmi2",
                                                "avx512vnni",
                                                "avx512bitalg",
                                                "avx512bf16",
                                                "avx512fp16",
                                                "avx512vpopcntdq",
                                                "avxvnni",
                                                "avxifma",
                                                "avxneconvert",
                                                "avx10.1",
                                                "avx10.2",
                                                "egpr"};
static constexpr StringLiteral aarch64Features[] = {
    "crc",     "lse",  "fullfp16", "rdm",   "jsconv", "complxnum", "rcpc",
    "dotprod", "sve",  "fp16fml",  "flagm", "sve2",   "altnzcv",   "fptoint",
    "i8mm",    "bf16", "sme",      "cssc",  "mops",   "sve2p1"};

std::vector<std::string> Target::required() const {
  llvm::Triple full(triple);
  std::string error;
  auto subtarget = describe(full, processor, features, error);
  std::vector<std::string> names;
  for (StringRef name :
       full.isAArch64() ? ArrayRef(aarch64Features) : ArrayRef(x86Features))
    if ((*subtarget)->checkFeatures(("+" + name).str()))
      names.push_back(name.str());
  return names;
}

std::string Target::str() const {
  llvm::Triple full(triple);
  std::string text =
      llvm::formatv("{0}{1}, vectors of {2} bits{3}{4}, register tile {5} rows",
                    isNative() ? "" : full.getArchName().str() + " ", processor,
                    vectorBits, fma ? " with fma" : "",
                    dot     ? ", dot products of bf16"
                    : pairs ? ", pairs of bf16"
                            : "",
                    microRows);
  if (rows != 0 && columns != 0)
    text += llvm::formatv(", tiles {0} x {1}", rows, columns);
  return text;
}
