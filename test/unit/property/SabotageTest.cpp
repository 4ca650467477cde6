//===- SabotageTest.cpp - wrong schedules are noticed ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The comparison with the oracle is worth what it notices: here the interpreter
// does single things wrong, and every one must show in the results, in every
// type.
//
//===----------------------------------------------------------------------===//
#include "test/unit/property/Captures.h"
#include "test/unit/property/Trial.h"
#include "tools/data/Random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

enum class Deed : uint8_t {
  Nothing,
  SkipPair,    ///< one pair of segments is not computed
  RepeatPair,  ///< one attend is done twice
  WrongOwner,  ///< one slice is taken for that of another rank
  SwapValues,  ///< the values of one slice come in another order
  LoseSegment, ///< one delivered segment does not arrive
  StaleState,  ///< one attend forgets the state before it
};

/// Does one deed on rank 1, in its second hop.
class Saboteur : public Interpreter {
public:
  explicit Saboteur(Deed deed) : deed(deed) {}

  bool attend(Attend &attend, State &result, std::string &message) override {
    if (attend.rank != 1 || attend.hop != 1)
      return Interpreter::attend(attend, result, message);
    switch (deed) {
    case Deed::SkipPair:
      *llvm::find(attend.pairs, true) = false;
      break;
    case Deed::RepeatPair: {
      Attend again = attend;
      if (!Interpreter::attend(attend, again.state, message))
        return false;
      return Interpreter::attend(again, result, message);
    }
    case Deed::WrongOwner:
      attend.slices[0].owner = (attend.slices[0].owner + 1) % 3;
      break;
    case Deed::SwapValues: {
      std::vector<double> &values = attend.slices[0].value->floats;
      std::rotate(values.begin(), values.begin() + values.size() / 2,
                  values.end());
      break;
    }
    case Deed::StaleState:
      attend.state.l = std::make_shared<Tensor>(attend.state.l->shape,
                                                attend.state.l->element);
      attend.state.l->floats.assign(attend.state.l->size(), 0.0);
      break;
    default:
      break;
    }
    return Interpreter::attend(attend, result, message);
  }

  TensorRef deliver(const Transfer &from, const Transfer &to,
                    size_t index) override {
    TensorRef arrived = Interpreter::deliver(from, to, index);
    if (deed == Deed::LoseSegment && to.rank == 1 && to.hop == 0)
      arrived->floats.assign(arrived->size(), std::nan(""));
    return arrived;
  }

private:
  Deed deed;
};

RandomProblem makeProblem(const std::string &element) {
  RandomProblem problem;
  problem.sizes = {1, 12, 12, 2, 1, 4, 4};
  problem.element = element;
  problem.ranks = 3;
  problem.drop = problem.overlap = true;
  std::string query = tensorText({1, 12, 2, 4}, element);
  std::string key = tensorText({1, 12, 1, 4}, element);
  std::string lse = tensorText({1, 2, 12}, element == "f64" ? "f64" : "f32");
  // Rank 1 needs a part of every slice.
  problem.body = fmt::format(
      "func.func @f(%q: {0} {{burst.name = \"q\"}}, %k: {1} {{burst.name = "
      "\"k\"}}, %v: {1} {{burst.name = \"v\"}}) -> ({0}, {2}) {{\n"
      "  %o, %l = burst.attention %q, %k, %v mask window<left = 2, right = 5>\n"
      "      sequence <@g, contiguous> strategy <ring_kv> : ({0}, {1}, {1}) -> "
      "({0}, {2})\n"
      "  return %o, %l : {0}, {2}\n}}\n",
      query, key, lse);
  auto input = [&](const char *name, std::vector<int64_t> shape) {
    problem.tensors.emplace(
        name, data::Tensor::of(dtypeOfElement(element), shape,
                               data::normal(1, name, shape[2] * 48)));
  };
  input("q", {1, 12, 2, 4});
  input("k", {1, 12, 1, 4});
  input("v", {1, 12, 1, 4});
  return problem;
}

class SabotageTest : public ::testing::TestWithParam<const char *> {
protected:
  oracle::Verdict verdict(Deed deed) {
    RandomProblem problem = makeProblem(GetParam());
    Trial run(*context, problem, 3);
    Saboteur saboteur(deed);
    EXPECT_TRUE(run.all(saboteur) && run.findAttentions()) << run.error;
    const Trial::Attention &attention = run.attentions.front();
    oracle::Result expected = oracle::evaluate(
        attention.problem, oracle::allRows(problem.sizes), {.threads = 1});
    return oracle::compare(expected, attention.out->floats,
                           attention.lse->floats,
                           toleranceOf(run.globals[0].table->element));
  }

  std::unique_ptr<MLIRContext> context = makeContext();
};

TEST_P(SabotageTest, IsNoticed) {
  oracle::Verdict honest = verdict(Deed::Nothing);
  EXPECT_TRUE(honest.pass()) << honest.text();
  for (Deed deed : {Deed::SkipPair, Deed::RepeatPair, Deed::WrongOwner,
                    Deed::SwapValues, Deed::LoseSegment, Deed::StaleState})
    EXPECT_FALSE(verdict(deed).pass()) << "deed " << static_cast<int>(deed);
}

INSTANTIATE_TEST_SUITE_P(Types, SabotageTest,
                         ::testing::Values("f64", "f32", "bf16", "f16"),
                         [](const auto &info) { return info.param; });

} // namespace
