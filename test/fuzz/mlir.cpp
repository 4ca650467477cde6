//===- mlir.cpp - Fuzzes the way from text to a proved schedule -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What parses and verifies is printed and parsed again, and goes through
// burst-to-ring, which may refuse it, with a message, and must not crash. What
// comes out is proved, where that takes no run-time values.
//
// Left out, because it says nothing of burst:
//
// - Deep nesting: upstream's parser is recursive and overflows its stack.
// - Large grids, tables and loops, which take the time and memory they ask for.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Simulation/Prove/Audit.h"
#include "tools/burst-opt/Registry.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <random>

using namespace mlir;
using namespace burst;

static constexpr size_t maxText = 16384;
static constexpr int maxDepth = 40;
static constexpr int64_t maxParts = 9, maxElements = 4096, maxTrips = 16;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// LLVM's allocators poison what they have not given out, where they are
/// inlined into instrumented code; its libraries are not, and trip over it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

static void check(bool promise, const char *what) {
  if (promise)
    return;
  llvm::errs() << "broken promise: " << what << "\n";
  std::abort();
}

//===----------------------------------------------------------------------===//
// What is left out
//===----------------------------------------------------------------------===//

/// Counts brackets of all kinds, wherever they stand; no arrows.
static bool isFlat(llvm::StringRef text) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    bool isArrow = at > 0 && text[at - 1] == '-';
    if (llvm::StringRef("([{<").contains(text[at]))
      ++depth;
    else if (llvm::StringRef(")]}>").contains(text[at]) && !isArrow)
      depth = std::max(depth - 1, 0);
    if (depth > maxDepth)
      return false;
  }
  return true;
}

/// A shard may have any size, for no data is there. Tables have data, or are
/// enumerated.
static bool isSmall(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      isa<FloatType>(tensor.getElementType()))
    return true;
  int64_t size = 1;
  for (int64_t n : tensor.getShape())
    if (n > maxElements || (size *= n) > maxElements)
      return false;
  return true;
}

static bool isShort(scf::ForOp loop) {
  auto constant = [](Value value) {
    return getConstantIntValue(value).value_or(maxTrips + 1);
  };
  return constant(loop.getLowerBound()) >= 0 &&
         constant(loop.getUpperBound()) <= maxTrips &&
         constant(loop.getStep()) >= 1;
}

static bool isSmall(Operation *module) {
  WalkResult result = module->walk([](Operation *op) {
    bool fits = llvm::all_of(op->getResultTypes(),
                             [](Type type) { return isSmall(type); });
    if (auto grid = dyn_cast<shard::GridOp>(op))
      fits &= llvm::all_of(grid.getShape(),
                           [](int64_t n) { return n <= maxParts; });
    if (auto loop = dyn_cast<scf::ForOp>(op))
      fits &= isShort(loop);
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto elements = dyn_cast<ElementsAttr>(constant.getValue()))
        fits &= elements.getNumElements() <= maxElements;
    return fits ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

//===----------------------------------------------------------------------===//
// The way
//===----------------------------------------------------------------------===//

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

/// What is printed can be parsed, and is then printed in the same way.
static void checkRoundTrip(ModuleOp module, MLIRContext &context) {
  std::string text = print(module);
  auto again = parseSourceString<ModuleOp>(text, &context);
  if (!again)
    llvm::errs() << text << "\n";
  check(static_cast<bool>(again), "what is printed can be parsed");
  check(print(*again) == text, "what is parsed is printed in the same way");
}

static void proveAll(ModuleOp module) {
  for (auto program : module.getOps<func::FuncOp>()) {
    if (!program->hasAttr(ring::gridAttr) || program.isExternal() ||
        !isStatic(program))
      continue;
    auto simulation = Simulation::create(program);
    check(simulation != nullptr, "what was proved can be simulated");
    auto globals = describeGlobals(program, {});
    check(succeeded(globals), "static sizes need no values");
    Proof proof;
    check(!prove(*simulation, *globals, {}, proof),
          "what was proved is proved again");
  }
}

namespace {
/// A context for some thousand runs: it keeps what it has seen.
struct Session {
  Session() {
    DialectRegistry registry;
    registerDialects(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    context->printOpOnDiagnostic(false);
    context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    });
  }

  void run(llvm::StringRef text);

  std::unique_ptr<MLIRContext> context;
  int64_t errors = 0, runs = 0;
};
} // namespace

void Session::run(llvm::StringRef text) {
  errors = 0;
  auto module = parseSourceString<ModuleOp>(text, context.get());
  check(module || errors != 0, "a refusal to parse has a message");
  if (!module || !isSmall(*module))
    return;
  checkRoundTrip(*module, *context);
  errors = 0;
  PassManager pm(context.get());
  buildRingPipeline(pm, {});
  bool ok = succeeded(pm.run(*module));
  check(ok == (errors == 0), "a refusal to lower has a message");
  if (ok) {
    checkRoundTrip(*module, *context);
    proveAll(*module);
  }
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static std::unique_ptr<Session> session;
  // The parser wants a zero behind the text.
  std::string text(reinterpret_cast<const char *>(bytes), size);
  if (size > maxText || !isFlat(text))
    return 0;
  if (!session || ++session->runs > 2000)
    session = std::make_unique<Session>();
  session->run(text);
  return 0;
}

//===----------------------------------------------------------------------===//
// Mutations that keep words whole
//===----------------------------------------------------------------------===//

static bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         c == '.' || c == '%' || c == '@' || c == '#' || c == '!';
}

/// Words, and what stands between them.
static std::vector<std::string> split(llvm::StringRef text) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (isWord(text[at]) && end < text.size() && isWord(text[end]))
      ++end;
    tokens.push_back(text.slice(at, end).str());
    at = end;
  }
  return tokens;
}

static const char *const words[] = {"0",
                                    "1",
                                    "2",
                                    "3",
                                    "8",
                                    "64",
                                    "-1",
                                    "1099511627776",
                                    "?",
                                    "9223372036854775807",
                                    "tensor<8xi32>",
                                    "index",
                                    "i1",
                                    "i8",
                                    "i64",
                                    "f32",
                                    "f64",
                                    "bf16",
                                    "f16",
                                    "causal",
                                    "full",
                                    "window<left = 1, right = 2>",
                                    "prefix<3>",
                                    "documents",
                                    "alibi",
                                    "softcap<2.0>",
                                    "bias",
                                    "contiguous",
                                    "zigzag",
                                    "striped 2",
                                    "mask",
                                    "score",
                                    "bounds",
                                    "scale",
                                    "sequence",
                                    "strategy <ring_kv>",
                                    "arith.addi",
                                    "arith.subi",
                                    "arith.muli",
                                    "arith.divsi",
                                    "arith.divui",
                                    "arith.remsi",
                                    "arith.remui",
                                    "arith.andi",
                                    "arith.ori",
                                    "arith.xori",
                                    "arith.shli",
                                    "arith.shrsi",
                                    "arith.shrui",
                                    "arith.floordivsi",
                                    "arith.ceildivsi",
                                    "arith.ceildivui",
                                    "arith.minsi",
                                    "arith.maxui",
                                    "arith.select",
                                    "arith.index_cast",
                                    "arith.extui",
                                    "arith.trunci",
                                    "arith.cmpi ult,",
                                    "arith.cmpi sge,",
                                    "math.absi",
                                    "burst.attention",
                                    "burst.yield",
                                    "burst.table_range",
                                    "burst.shard",
                                    "burst.unshard",
                                    "ring.init",
                                    "ring.attend",
                                    "ring.start",
                                    "ring.wait",
                                    "ring.merge",
                                    "ring.finalize",
                                    "ring.segment",
                                    "scf.for",
                                    "scf.if",
                                    "tensor.extract",
                                    "tensor.generate",
                                    "tensor.dim"};

namespace {
/// Changes a text word by word.
class Mutator {
public:
  Mutator(llvm::StringRef text, unsigned seed)
      : tokens(split(text)), random(seed) {}

  std::string run();

private:
  size_t below(size_t limit) { return random() % std::max<size_t>(limit, 1); }
  size_t anywhere() { return below(tokens.size()); }
  void replaceByAlike(size_t at);
  void repeatSome(size_t at);
  void change();

  std::vector<std::string> tokens;
  std::minstd_rand random;
};
} // namespace

/// What may stand for what: numbers, values, ops of a dialect; 0: anything.
static char kindOf(llvm::StringRef token) {
  if (token.empty() || token[0] == '%' || !isWord(token[0]))
    return token.empty() ? ' ' : token[0];
  if (std::isdigit(static_cast<unsigned char>(token[0])) != 0)
    return '0';
  return token.contains('.') ? token[0] : 'w';
}

/// By a word of its kind: most texts stay valid.
void Mutator::replaceByAlike(size_t at) {
  for (int tries = 0; tries < 20; ++tries) {
    std::string other =
        below(2) == 0 ? words[below(std::size(words))] : tokens[anywhere()];
    if (kindOf(other) != kindOf(tokens[at]) || other == tokens[at])
      continue;
    tokens[at] = other;
    return;
  }
}

void Mutator::repeatSome(size_t at) {
  size_t end = std::min(tokens.size(), at + 1 + below(30));
  std::vector<std::string> some(tokens.begin() + at, tokens.begin() + end);
  tokens.insert(tokens.begin() + anywhere(), some.begin(), some.end());
}

void Mutator::change() {
  size_t at = anywhere();
  switch (below(12)) {
  case 0:
    tokens.erase(tokens.begin() + at);
    break;
  case 1:
    tokens[at] = words[below(std::size(words))];
    break;
  case 2:
    std::swap(tokens[at], tokens[anywhere()]);
    break;
  case 3:
    repeatSome(at);
    break;
  default:
    replaceByAlike(at);
    break;
  }
}

std::string Mutator::run() {
  for (size_t count = 1 + below(4); count > 0 && !tokens.empty(); --count)
    change();
  std::string text;
  for (const std::string &token : tokens)
    text += token;
  return text;
}

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if (seed % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text =
      Mutator({reinterpret_cast<const char *>(data), size}, seed).run();
  size = std::min(text.size(), maxSize);
  std::copy_n(text.begin(), size, data);
  return size;
}
