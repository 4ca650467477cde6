//===- NumberOption.h - options that take a number --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_SUPPORT_NUMBER_OPTION_H
#define BURST_SUPPORT_NUMBER_OPTION_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

namespace burst {

/// LLVM's takes an empty value for 0. Errors name what the option's value_desc
/// calls its value.
struct NumberParser : llvm::cl::parser<double> {
  using llvm::cl::parser<double>::parser;

  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             double &value) {
    if (!text.empty() && llvm::to_float(text, value))
      return false;
    return option.error("found '" + text + "', wanted " + option.ValueStr);
  }
};

using NumberOption =
    llvm::cl::opt<double, /*ExternalStorage=*/false, NumberParser>;

} // namespace burst

#endif // BURST_SUPPORT_NUMBER_OPTION_H
