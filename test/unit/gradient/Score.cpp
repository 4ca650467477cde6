//===- Score.cpp - score regions and their gradients ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/gradient/Score.h"

#include "dialect/Burst/Burst.h"
#include "passes/Gradient/Gradient.h"
#include "passes/Passes.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;

namespace burst::test {

std::unique_ptr<MLIRContext> makeContext() {
  auto context =
      std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<BurstDialect, func::FuncDialect>();
  return context;
}

static std::string attention(StringRef clause, ArrayRef<Captured> captures,
                             StringRef state) {
  std::string arguments;
  for (auto [index, capture] : llvm::enumerate(captures))
    arguments += llvm::formatv(", %t{0}: {1}", index, capture.type);
  return llvm::formatv(R"(
func.func @f(%q: tensor<2x8x2x4x{0}>{1}) {{
  %o, %lse = burst.attention %q, %q, %q {2}
      : (tensor<2x8x2x4x{0}>, tensor<2x8x2x4x{0}>, tensor<2x8x2x4x{0}>)
      -> (tensor<2x8x2x4x{0}>, tensor<2x2x8x{0}>)
  return
})",
                       state, arguments, clause);
}

Score Score::ofOps(MLIRContext &context, StringRef ops,
                   std::vector<Captured> captures, StringRef state) {
  std::string arguments;
  for (auto [index, capture] : llvm::enumerate(captures))
    arguments += llvm::formatv(", %c{0} = %t{0} : {1}", index, capture.type);
  std::string clause =
      llvm::formatv("score(%s : {0}, %b, %h, %i, %j, %sq, %sk{1}) {{\n"
                    "{2}\nburst.yield %r : {0}\n}",
                    state, arguments, ops);
  return {context, clause, std::move(captures), state};
}

Score::Score(MLIRContext &context, StringRef clause,
             std::vector<Captured> given, StringRef state)
    : captured(std::move(given)) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  module =
      parseSourceString<ModuleOp>(attention(clause, captured, state), &context);
  PassManager pm(&context);
  pm.addNestedPass<func::FuncOp>(createExpandNamesPass());
  if (!module || failed(pm.run(*module))) {
    ADD_FAILURE() << message << "\nin " << clause.str();
    return;
  }
  AttentionOp op;
  module->walk([&](AttentionOp found) { op = found; });
  score = &op.getScore();

  SmallVector<bool> wanted;
  for (const Captured &capture : captured) {
    Type type = parseType(capture.type, &context);
    auto tensor = dyn_cast<RankedTensorType>(type);
    ArrayRef<int64_t> shape = tensor ? tensor.getShape() : ArrayRef<int64_t>();
    Type element = getElementTypeOrSelf(type);
    auto sum = std::make_shared<Tensor>(shape, element);
    sum->floats.resize(capture.values.size());
    sums.push_back(sum);
    tables.push_back(tensor ? std::make_shared<Tensor>(shape, element)
                            : nullptr);
    scalars.push_back(tensor ? nullptr : std::make_shared<Scalar>());
    for (double number : capture.values)
      if (tensor && isa<FloatType>(element))
        tables.back()->floats.push_back(number);
      else if (tensor)
        tables.back()->ints.push_back(static_cast<int64_t>(number));
      else if (isa<FloatType>(element))
        scalars.back()->f = number;
      else
        scalars.back()->i = static_cast<int64_t>(number);
    wanted.push_back(capture.isWanted);
  }
  region = std::make_unique<Region>(op);
  if (failed(differentiate(*score, *region, wanted))) {
    EXPECT_TRUE(region->empty());
    return;
  }
  EXPECT_TRUE(succeeded(verifyRegion(op, RegionRole::Gradient, *region,
                                     op.getStateType(),
                                     op.getScoreCaptures().getTypes())));
  for (Operation &inner : region->front())
    EXPECT_TRUE(succeeded(verify(&inner))) << message;
  value = RegionEvaluator::create(*score, captures());
  gradient = RegionEvaluator::create(*region, captures());
  EXPECT_TRUE(value && gradient) << message;
}

std::vector<RegionEvaluator::Capture> Score::captures() const {
  std::vector<RegionEvaluator::Capture> result;
  for (auto [scalar, table] : llvm::zip_equal(scalars, tables))
    result.push_back({scalar ? *scalar : Scalar{0}, table});
  return result;
}

std::string Score::text() const {
  // In a function, which gives names to the arguments.
  Block &block = region->front();
  OpBuilder builder(region->getContext());
  auto type = builder.getFunctionType(block.getArgumentTypes(), {});
  OwningOpRef<func::FuncOp> function =
      func::FuncOp::create(region->getLoc(), "gradient", type);
  IRMapping mapping;
  region->cloneInto(&function->getBody(), mapping);
  std::string result;
  llvm::raw_string_ostream stream(result);
  function->print(stream);
  // Its first line and its last one are the function's.
  size_t begin = result.find('\n') + 1;
  return result.substr(begin, result.rfind('}') - begin);
}

std::vector<bool> Score::contributes() const {
  SmallVector<bool> flags = gradientCaptures(*region);
  return std::vector<bool>(flags.begin(), flags.end());
}

std::string Score::shared(size_t capture) const {
  Sharing sharing = sharingOf(*region, capture);
  return std::string(sharing.batches ? "b" : "") + (sharing.heads ? "h" : "");
}

static Scalar real(double number) {
  Scalar scalar;
  scalar.f = number;
  return scalar;
}

static SmallVector<Scalar> arguments(double s, Point at) {
  return {real(s),      Scalar{at.b}, Scalar{at.h}, Scalar{at.i},
          Scalar{at.j}, Scalar{8},    Scalar{8}};
}

double Score::operator()(double s, Point at) const {
  // Captured scalars may have changed since.
  if (llvm::any_of(scalars,
                   [](const auto &scalar) { return scalar != nullptr; }))
    value = RegionEvaluator::create(*score, captures());
  EXPECT_TRUE(value->evaluate(arguments(s, at)));
  return value->result(0).f;
}

double Score::derivative(double s, double g, Point at) {
  gradient = RegionEvaluator::create(*region, captures());
  for (auto [index, sum] : llvm::enumerate(sums))
    gradient->setGradient(index, sum);
  SmallVector<Scalar> values = arguments(s, at);
  values.push_back(real(g));
  EXPECT_TRUE(gradient->evaluate(values));
  return gradient->result(0).f;
}

/// By the formula of fourth order; nothing where two step sizes disagree.
static std::optional<double>
difference(llvm::function_ref<double(double)> function, double at) {
  auto slope = [&](double step) {
    auto change = [&](double distance) {
      return function(at + distance) - function(at - distance);
    };
    return (8 * change(step) - change(2 * step)) / (12 * step);
  };
  double step = 1e-3 * std::max(0.1, std::abs(at));
  double coarse = slope(step), fine = slope(step / 4);
  // Not <=: a kink may also give NaN.
  if (!(std::abs(coarse - fine) < 1e-6 * std::max(1.0, std::abs(fine))))
    return std::nullopt;
  return fine;
}

bool Score::check(double s, Point at) {
  std::optional<double> byScore =
      difference([&](double x) { return (*this)(x, at); }, s);
  if (!byScore)
    return false;
  std::vector<std::vector<double>> expected(numCaptures());
  for (unsigned capture = 0; capture < numCaptures(); ++capture) {
    bool isWanted = captured[capture].isWanted;
    expected[capture].resize(sums[capture]->floats.size());
    for (size_t index = 0; isWanted && index < expected[capture].size();
         ++index) {
      double &variable = element(capture, index), center = variable;
      std::optional<double> found = difference(
          [&](double x) {
            variable = x;
            return (*this)(s, at);
          },
          center);
      variable = center;
      if (!found)
        return false;
      expected[capture][index] = *found;
    }
    llvm::fill(sums[capture]->floats, 0);
  }
  double g = 0.75;
  auto compare = [&](double found, double derivative, const llvm::Twine &by) {
    EXPECT_NEAR(found, derivative * g,
                1e-6 * std::max(1.0, std::abs(derivative)))
        << "by " << by.str() << " where s = " << s << "\n"
        << text();
  };
  compare(derivative(s, g, at), *byScore, "s");
  for (unsigned capture = 0; capture < numCaptures(); ++capture)
    for (auto [index, derivative] : llvm::enumerate(expected[capture]))
      compare(sum(capture, index), derivative,
              "element " + llvm::Twine(index) + " of capture " +
                  llvm::Twine(capture));
  return true;
}

} // namespace burst::test
