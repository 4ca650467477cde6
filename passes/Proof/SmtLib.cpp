//===- SmtLib.cpp - conditions for solvers of others ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Proof/SmtLib.h"

#include "mlir/Dialect/SMT/IR/SMTDialect.h"
#include "mlir/Dialect/SMT/IR/SMTOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Target/SMTLIB/ExportSMTLIB.h"

using namespace mlir;
using namespace burst::proof;

namespace {
class Writer {
public:
  Writer() : builder(&context), loc(builder.getUnknownLoc()) {
    context.loadDialect<smt::SMTDialect>();
  }

  void write(const Formula &formula, llvm::raw_ostream &os);

private:
  Value number(int64_t value) {
    return smt::IntConstantOp::create(
        builder, loc,
        builder.getIntegerAttr(IntegerType::get(&context, 64), value));
  }
  Value write(const Linear &linear);
  Value write(const Formula &formula);

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OpBuilder builder;
  Location loc;
  llvm::SmallVector<Value> unknowns;
};
} // namespace

Value Writer::write(const Linear &linear) {
  SmallVector<Value> terms = {number(linear.getConstant())};
  for (auto [unknown, coefficient] : linear.getTerms())
    terms.push_back(smt::IntMulOp::create(
        builder, loc, ValueRange{number(coefficient), unknowns[unknown]}));
  return smt::IntAddOp::create(builder, loc, terms);
}

Value Writer::write(const Formula &formula) {
  if (formula.getKind() == Formula::Kind::AtLeast)
    return smt::IntCmpOp::create(builder, loc, smt::IntPredicate::ge,
                                 write(formula.getLinear()), number(0));
  SmallVector<Value> members;
  for (const Formula &member : formula.getMembers())
    members.push_back(write(member));
  bool isAll = formula.getKind() == Formula::Kind::All;
  if (members.empty())
    return smt::BoolConstantOp::create(builder, loc, isAll);
  if (isAll)
    return smt::AndOp::create(builder, loc, members);
  return smt::OrOp::create(builder, loc, members);
}

void Writer::write(const Formula &formula, llvm::raw_ostream &os) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToStart(module->getBody());
  auto solver = smt::SolverOp::create(builder, loc, TypeRange(), ValueRange());
  Block &body = solver.getBodyRegion().emplaceBlock();
  builder.setInsertionPointToStart(&body);
  smt::SetLogicOp::create(builder, loc, "QF_LIA");
  auto type = smt::IntType::get(&context);
  for (unsigned i = 0, count = formula.getNumUnknowns(); i < count; ++i)
    unknowns.push_back(smt::DeclareFunOp::create(
        builder, loc, type, builder.getStringAttr("x" + std::to_string(i))));
  smt::AssertOp::create(builder, loc, write(formula));
  auto check = smt::CheckOp::create(builder, loc, TypeRange());
  for (Region *region : {&check.getSatRegion(), &check.getUnknownRegion(),
                         &check.getUnsatRegion()}) {
    builder.createBlock(region);
    smt::YieldOp::create(builder, loc);
  }
  builder.setInsertionPointToEnd(&body);
  smt::YieldOp::create(builder, loc);
  if (failed(smt::exportSMTLIB(*module, os)))
    os << "(echo \"cannot be written\")\n";
}

void burst::proof::writeSmtLib(const Formula &formula, llvm::StringRef title,
                               llvm::raw_ostream &os) {
  os << "(echo \"" << title << "\")\n";
  Writer().write(formula, os);
}
