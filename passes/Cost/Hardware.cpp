//===- Hardware.cpp - what a module says of its hardware
//--------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Cost/Cost.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace burst;

namespace {
struct Key {
  llvm::StringLiteral name;
  double Hardware::*value;
  bool mayBeZero;
};
} // namespace

static constexpr Key keys[] = {
    {"burst.bandwidth", &Hardware::bandwidth, false},
    {"burst.latency", &Hardware::latency, true},
    {"burst.flops", &Hardware::flops, false},
};

/// Reads an entry of `burst`; those of other prefixes are somebody else's.
static LogicalResult readEntry(ModuleOp module, StringRef device,
                               DataLayoutEntryInterface entry,
                               Hardware &hardware) {
  auto name = dyn_cast<StringAttr>(entry.getKey());
  if (!name || !name.getValue().starts_with("burst."))
    return success();
  const Key *key = llvm::find_if(
      keys, [&](const Key &key) { return key.name == name.getValue(); });
  if (key == std::end(keys))
    return module.emitOpError("describes ")
           << name << " of the device \"" << device
           << "\", which is not known; known are: burst.bandwidth, "
              "burst.latency, burst.flops";
  auto value = dyn_cast<FloatAttr>(entry.getValue());
  bool isGood = value && value.getType().isF64() &&
                value.getValue().isFinite() && !value.getValue().isNegative() &&
                (key->mayBeZero || !value.getValue().isZero());
  if (!isGood)
    return module.emitOpError("describes ")
           << name << " of the device \"" << device << "\" as "
           << entry.getValue() << ", but it must be a finite f64 "
           << (key->mayBeZero ? "that is not negative" : "above 0");
  hardware.*key->value = value.getValueAsDouble();
  return success();
}

FailureOr<Hardware> burst::readHardware(ModuleOp module, StringRef grid) {
  Hardware hardware;
  auto system = module->getAttrOfType<TargetSystemSpecInterface>(
      DLTIDialect::kTargetSystemDescAttrName);
  if (!system)
    return hardware;
  for (StringRef device : {StringRef("burst"), grid}) {
    auto spec = system.getDeviceSpecForDeviceID(
        StringAttr::get(module.getContext(), device));
    if (!spec)
      continue;
    for (DataLayoutEntryInterface entry : spec->getEntries())
      if (failed(readEntry(module, device, entry, hardware)))
        return failure();
  }
  return hardware;
}
