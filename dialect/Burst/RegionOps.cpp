//===- RegionOps.cpp - the ops that regions are made of -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/Burst/RegionOps.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace burst;
using llvm::StringRef;

static const llvm::StringSet<> &admittedOps() {
  static const llvm::StringSet<> ops = {
      // Integers.
      "arith.addi", "arith.andi", "arith.ceildivsi", "arith.ceildivui",
      "arith.cmpi", "arith.constant", "arith.divsi", "arith.divui",
      "arith.extsi", "arith.extui", "arith.floordivsi", "arith.index_cast",
      "arith.index_castui", "arith.maxsi", "arith.maxui", "arith.minsi",
      "arith.minui", "arith.muli", "arith.ori", "arith.remsi", "arith.remui",
      "arith.select", "arith.shli", "arith.shrsi", "arith.shrui", "arith.subi",
      "arith.trunci", "arith.xori", "math.absi",
      // Floats, and conversions.
      "arith.addf", "arith.bitcast", "arith.cmpf", "arith.divf", "arith.extf",
      "arith.fptosi", "arith.fptoui", "arith.maximumf", "arith.maxnumf",
      "arith.minimumf", "arith.minnumf", "arith.mulf", "arith.negf",
      "arith.remf", "arith.sitofp", "arith.subf", "arith.truncf",
      "arith.uitofp",
      // Functions.
      "math.absf", "math.acos", "math.acosh", "math.asin", "math.asinh",
      "math.atan", "math.atan2", "math.atanh", "math.cbrt", "math.ceil",
      "math.copysign", "math.cos", "math.cosh", "math.erf", "math.erfc",
      "math.exp", "math.exp2", "math.expm1", "math.floor", "math.fma",
      "math.fpowi", "math.log", "math.log10", "math.log1p", "math.log2",
      "math.powf", "math.round", "math.roundeven", "math.rsqrt", "math.sin",
      "math.sinh", "math.sqrt", "math.tan", "math.tanh", "math.trunc"};
  return ops;
}

bool burst::isAdmitted(StringRef opName) {
  return admittedOps().contains(opName);
}

StringRef burst::replacementOf(StringRef opName) {
  return llvm::StringSwitch<StringRef>(opName)
      .Cases({"arith.addui_extended", "arith.mulsi_extended",
              "arith.mului_extended"},
             "extend the operands and use arith.addi or arith.muli")
      .Cases({"arith.scaling_extf", "arith.scaling_truncf"},
             "use arith.extf or arith.truncf, and arith.mulf")
      .Case("math.clampf", "use arith.maximumf and arith.minimumf")
      .Case("math.ipowi", "multiply with arith.muli")
      .Case("math.isfinite", "use math.absf, and arith.cmpf olt with infinity")
      .Case("math.isinf", "use math.absf, and arith.cmpf oeq with infinity")
      .Case("math.isnan", "use arith.cmpf uno of the value and itself")
      .Case("math.isnormal",
            "use math.absf, and arith.cmpf oge with the least normal number "
            "and olt with infinity")
      .Case("math.sincos", "use math.sin and math.cos")
      .Cases({"math.ctlz", "math.cttz", "math.ctpop"},
             "use arith.shrui and arith.andi, or read a captured table")
      .Default("write it with other ops of arith and math");
}
