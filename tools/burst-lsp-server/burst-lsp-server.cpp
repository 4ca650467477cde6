//===- burst-lsp-server.cpp - burst's IR in editors -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Tool.h"
#include "tools/Tools.h"
#include "tools/burst-opt/Registry.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int burst::lspServerMain(int argc, char **argv) {
  burst::setVersion();
  mlir::DialectRegistry registry;
  burst::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
