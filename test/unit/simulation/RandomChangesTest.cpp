//===- RandomChangesTest.cpp - programs that are changed at random --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A proof for every number of ranks that is false would go unnoticed: it says
// so of a program that nobody runs on 5 ranks. Here programs are changed at
// random, in all functions, and what is proved must be accepted by the
// simulation for 3, 4 and 5 ranks, other sizes and other windows. BURST_SEED
// and BURST_COUNT set the first seed and how many changes there are: some
// hundreds, or 20,000 where BURST_TEST_FULL is set.
//
//===----------------------------------------------------------------------===//
#include "test/unit/simulation/Programs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace burst;
using namespace burst::test;

namespace {

using Random = std::mt19937;

size_t below(Random &random, size_t count) { return random() % count; }

/// Ops of the programs and of their functions, in order; those of masks and
/// scores are left as they are.
std::vector<Operation *> opsOf(ModuleOp module) {
  std::vector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<ModuleOp, func::FuncOp>(op) && op->getParentOp() != module)
      ops.push_back(op);
    return isa<ring::AttendLikeOpInterface>(op) ? WalkResult::skip()
                                                : WalkResult::advance();
  });
  return ops;
}

/// Values of the type of an operand that are there in front of its op.
std::vector<Value> valuesFor(ModuleOp module, OpOperand &operand) {
  DominanceInfo dominance(module);
  std::vector<Value> values;
  auto add = [&](Value value) {
    if (value != operand.get() && value.getType() == operand.get().getType() &&
        dominance.properlyDominates(value, operand.getOwner()))
      values.push_back(value);
  };
  operand.getOwner()->getParentOfType<func::FuncOp>().walk([&](Block *block) {
    llvm::for_each(block->getArguments(), add);
    for (Operation &op : *block)
      llvm::for_each(op.getResults(), add);
  });
  return values;
}

bool replaceOperand(ModuleOp module, Operation *op, Random &random) {
  if (op->getNumOperands() == 0)
    return false;
  OpOperand &operand = op->getOpOperand(below(random, op->getNumOperands()));
  std::vector<Value> values = valuesFor(module, operand);
  if (values.empty())
    return false;
  operand.set(values[below(random, values.size())]);
  return true;
}

bool swapOperands(ModuleOp, Operation *op, Random &random) {
  if (op->getNumOperands() < 2)
    return false;
  OpOperand &a = op->getOpOperand(below(random, op->getNumOperands()));
  OpOperand &b = op->getOpOperand(below(random, op->getNumOperands()));
  if (a.get() == b.get() || a.get().getType() != b.get().getType())
    return false;
  Value value = a.get();
  a.set(b.get());
  b.set(value);
  return true;
}

bool moveOp(ModuleOp, Operation *op, Random &random) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  bool up = below(random, 2) == 0;
  Operation *other = op;
  for (size_t i = 0, count = 1 + below(random, 4); i < count; ++i)
    if (Operation *next = up ? other->getPrevNode() : other->getNextNode())
      other = next;
  if (other == op || other->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (up)
    op->moveBefore(other);
  else
    op->moveAfter(other);
  return true;
}

/// What it gave is what it was given.
bool dropOp(ModuleOp, Operation *op, Random &) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  SmallVector<Value> instead;
  for (Value result : op->getResults()) {
    auto found = llvm::find_if(op->getOperands(), [&](Value operand) {
      return operand.getType() == result.getType() &&
             !llvm::is_contained(instead, operand);
    });
    if (found == op->operand_end() && !result.use_empty())
      return false;
    instead.push_back(found == op->operand_end() ? Value() : *found);
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), instead))
    if (value)
      result.replaceAllUsesWith(value);
  op->erase();
  return true;
}

bool doubleOp(ModuleOp, Operation *op, Random &random) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  Operation *copy = op->clone();
  op->getBlock()->getOperations().insertAfter(op->getIterator(), copy);
  for (auto [result, other] :
       llvm::zip_equal(op->getResults(), copy->getResults()))
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses()))
      if (below(random, 2) == 0 && use.getOwner() != copy)
        use.set(other);
  return true;
}

bool changePredicate(ModuleOp, Operation *op, Random &random) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return false;
  auto predicate = static_cast<arith::CmpIPredicate>(below(random, 10));
  if (predicate == compare.getPredicate())
    return false;
  compare.setPredicate(predicate);
  return true;
}

bool changeConstant(ModuleOp, Operation *op, Random &random) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!constant)
    return false;
  bool up = below(random, 2) == 0;
  if (auto number = dyn_cast<IntegerAttr>(constant.getValue())) {
    bool isFlag = number.getType().isInteger(1);
    int64_t value = number.getInt();
    constant.setValueAttr(IntegerAttr::get(
        number.getType(), isFlag ? (value ? 0 : 1) : value + (up ? 1 : -1)));
    return true;
  }
  auto flags = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!flags || !flags.getElementType().isInteger(1) || !flags.isSplat())
    return false;
  constant.setValueAttr(
      DenseElementsAttr::get(flags.getType(), !flags.getSplatValue<bool>()));
  return true;
}

bool changeOp(ModuleOp, Operation *op, Random &) {
  OpBuilder builder(op);
  auto become = [&]<typename OpT>(OpT *) {
    Value made = OpT::create(builder, op->getLoc(), op->getOperand(0),
                             op->getOperand(1));
    op->getResult(0).replaceAllUsesWith(made);
    op->erase();
    return true;
  };
  if (isa<arith::AddIOp>(op))
    return become(static_cast<arith::SubIOp *>(nullptr));
  if (isa<arith::SubIOp>(op))
    return become(static_cast<arith::AddIOp *>(nullptr));
  if (isa<arith::AndIOp>(op))
    return become(static_cast<arith::OrIOp *>(nullptr));
  if (isa<arith::OrIOp>(op))
    return become(static_cast<arith::AndIOp *>(nullptr));
  return false;
}

/// Changes a program in one place; false where that cannot be done, or makes no
/// program.
bool change(ModuleOp module, unsigned seed) {
  Random random(seed);
  using Change = bool (*)(ModuleOp, Operation *, Random &);
  // Operands are what there is most to say about.
  static const Change changes[] = {
      replaceOperand, replaceOperand, replaceOperand, swapOperands,
      moveOp,         dropOp,         doubleOp,       changePredicate,
      changeConstant, changeOp};
  for (int attempt = 0; attempt < 50; ++attempt) {
    std::vector<Operation *> ops = opsOf(module);
    Operation *op = ops[below(random, ops.size())];
    // Most of what is there computes what the mask needs, whatever it is.
    auto function = op->getParentOfType<func::FuncOp>();
    if (function.getName().ends_with("_needs") && below(random, 8) != 0)
      continue;
    if (changes[below(random, std::size(changes))](module, op, random))
      return true;
  }
  return false;
}

struct Family {
  std::string forward, backward, order, mask;
  bool overlap;
  int64_t members = 1;
  /// Rings of so many ranks, or one more, as many as there are parts.
  int64_t innerRanks = 0;
  /// Twice as many parts, and one more where it is odd.
  bool isBothWays = false;
};

/// The program of a family for so many ranks, of some sizes.
Problem problemOf(const Family &family, int64_t parts, Random &random) {
  Problem problem;
  problem.forward = family.forward;
  problem.backward = family.backward;
  problem.order = family.order;
  problem.mask = family.mask;
  if (problem.mask == "window")
    problem.mask = "window<left = " + std::to_string(1 + below(random, 30)) +
                   ", right = 0>";
  problem.parts = parts;
  if (family.innerRanks != 0) {
    problem.innerRanks = family.innerRanks + parts % 2;
    problem.parts = parts * problem.innerRanks;
  }
  if (family.isBothWays)
    problem.parts = 2 * parts + (family.overlap ? 1 : 0);
  // Numbers that are none of the others in the text.
  problem.queries = 20 + static_cast<int64_t>(below(random, 20));
  problem.keys = problem.queries + 1 + static_cast<int64_t>(below(random, 20));
  problem.overlap = family.overlap;
  problem.members = family.members;
  problem.heads = 2 * family.members;
  problem.keyHeads = family.members;
  return problem;
}

struct Outcome {
  bool isMade = false, isProved = false, isRight = true;
  std::string wrong;
};

/// What becomes of a change: whether it is proved, and whether every member of
/// the family that is tried is right.
Outcome tryChange(MLIRContext &context, const Family &family, unsigned seed) {
  Outcome outcome;
  Random random(seed + 1);
  size_t numOps = 0;
  for (int64_t parts : {5, 3, 4, 3, 5, 4}) {
    Problem problem = problemOf(family, parts, random);
    OwningOpRef<ModuleOp> module = lower(context, problem);
    // Texts of one family differ in numbers only, where no two are the same.
    size_t found = opsOf(*module).size();
    if (numOps == 0)
      numOps = found;
    if (numOps != found)
      continue;
    if (!change(*module, seed) || failed(verify(*module)))
      return outcome;
    outcome.isMade = true;
    bool isProved = isProvedForAll(*module);
    outcome.isProved |= isProved;
    if (!outcome.isProved && parts != 5) // Is it right all the same?
      return outcome;
    func::FuncOp program = getProgram(*module);
    std::unique_ptr<Simulation> simulation = Simulation::create(program);
    FailureOr<std::vector<Argument>> globals = describeGlobals(program, {});
    Proof proof;
    if (!simulation || failed(globals)) {
      outcome.isRight = false;
      return outcome;
    }
    if (auto refused = prove(*simulation, *globals, {}, proof)) {
      outcome.isRight = false;
      if (isProved)
        outcome.wrong = problem.describe() + ": " + refused->message;
      return outcome;
    }
  }
  return outcome;
}

std::vector<Family> allFamilies() {
  std::vector<Family> families;
  for (const char *mask : {"causal", "window", ""})
    for (const char *order : {"zigzag", "contiguous", "striped"})
      for (const char *strategy :
           {"ring_kv", "ring_q", "direct_kv", "direct_q", "all_gather"})
        for (bool isBackward : {false, true})
          families.push_back({strategy, isBackward ? strategy : "", order, mask,
                              /*overlap=*/order != StringRef("striped")});
  for (const char *strategy : {"ring_kv", "ring_q", "all_gather"})
    for (bool isBackward : {false, true})
      families.push_back({strategy, isBackward ? strategy : "", "zigzag",
                          "causal", /*overlap=*/true, /*members=*/2});
  for (const char *mask : {"causal", "window", ""})
    for (const char *strategy : {"double_ring_kv", "double_ring_q"})
      for (bool isBackward : {false, true})
        for (bool overlap : {false, true})
          families.push_back({strategy, isBackward ? strategy : "",
                              isBackward ? "contiguous" : "zigzag", mask,
                              overlap, /*members=*/1, /*innerRanks=*/3});
  for (const char *mask : {"causal", "window", ""})
    for (const char *strategy : {"bi_ring_kv", "bi_ring_q"})
      for (bool isBackward : {false, true})
        for (bool isOdd : {false, true})
          families.push_back({strategy, isBackward ? strategy : "",
                              isOdd ? "contiguous" : "zigzag", mask,
                              /*overlap=*/isOdd, /*members=*/1,
                              /*innerRanks=*/0, /*isBothWays=*/true});
  return families;
}

int64_t numberOf(const char *name, int64_t otherwise) {
  const char *text = getenv(name);
  return text ? atoll(text) : otherwise;
}

TEST(RandomChangesTest, WhatIsProvedIsRight) {
  auto context = makeContext();
  // What is no program says so.
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) {});
  std::vector<Family> families = allFamilies();
  int64_t made = 0, proved = 0, wrong = 0, missed = 0;
  int64_t first = numberOf("BURST_SEED", std::random_device()() >> 1);
  int64_t count =
      numberOf("BURST_COUNT", getenv("BURST_TEST_FULL") ? 20000 : 300);
  std::printf("BURST_SEED=%lld BURST_COUNT=%lld\n",
              static_cast<long long>(first), static_cast<long long>(count));
  for (int64_t seed = first; seed < first + count; ++seed) {
    const Family &family = families[seed % families.size()];
    Outcome outcome = tryChange(*context, family, seed);
    made += outcome.isMade;
    proved += outcome.isProved;
    wrong += outcome.isMade && !outcome.isRight;
    missed += outcome.isMade && outcome.isRight && !outcome.isProved;
    EXPECT_EQ(outcome.wrong, "") << "seed " << seed;
  }
  std::printf("%lld changes: %lld wrong, %lld proved, %lld right for 5 ranks "
              "and not proved\n",
              static_cast<long long>(made), static_cast<long long>(wrong),
              static_cast<long long>(proved), static_cast<long long>(missed));
  if (count < 100)
    return;
  // Else the test says nothing.
  EXPECT_GT(made, count / 2);
  EXPECT_GT(wrong, made / 3);
  EXPECT_GT(proved, made / 10);
}

} // namespace
