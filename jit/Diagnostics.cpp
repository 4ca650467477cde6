//===- Diagnostics.cpp - errors of a compilation as text ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Diagnostics.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;

/// The first place in a file that a location knows.
static std::string placeOf(Location location) {
  std::string place;
  location->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    place = llvm::formatv("{0}:{1}:{2}", file.getFilename().strref(),
                          file.getLine(), file.getColumn());
    return WalkResult::interrupt();
  });
  return place;
}

jit::Diagnostics::Diagnostics(MLIRContext *context)
    : ScopedDiagnosticHandler(context) {
  setHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success(); // Nobody reads warnings and remarks of a success.
    add(diagnostic);
    for (const Diagnostic &note : diagnostic.getNotes())
      add(note);
    return success();
  });
}

void jit::Diagnostics::add(const Diagnostic &diagnostic) {
  std::string place = placeOf(diagnostic.getLocation());
  if (text.empty()) {
    location = place;
    text = diagnostic.str();
    return;
  }
  text += "\n" + place + (place.empty() ? "" : ": ") +
          (diagnostic.getSeverity() == DiagnosticSeverity::Note ? "note: "
                                                                : "error: ") +
          diagnostic.str();
}
