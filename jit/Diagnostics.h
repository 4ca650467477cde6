//===- Diagnostics.h - errors of a compilation as text ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_DIAGNOSTICS_H
#define BURST_JIT_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace burst::jit {

/// Collects the errors that are emitted in a context while this lives.
class Diagnostics : public mlir::ScopedDiagnosticHandler {
public:
  explicit Diagnostics(mlir::MLIRContext *context);

  bool empty() const { return text.empty(); }
  /// Where the first error is, "file:line:column"; empty if that is unknown.
  const std::string &getLocation() const { return location; }
  /// The first error, and behind it its notes and further errors, a line each.
  const std::string &getText() const { return text; }

private:
  void add(const mlir::Diagnostic &diagnostic);

  std::string location, text;
};

} // namespace burst::jit

#endif // BURST_JIT_DIAGNOSTICS_H
