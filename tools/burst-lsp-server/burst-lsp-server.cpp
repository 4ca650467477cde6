//===- burst-lsp-server.cpp - burst's IR in editors -----------------------===//
#include "tools/burst-opt/Registry.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  burst::registerDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
