//===- Hardware.cpp - what a module says of its machine -------------------===//
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
  bool mayBeZero, isOfLink;
};
} // namespace

static constexpr Key keys[] = {
    {"burst.bandwidth", &Hardware::bandwidth, false, true},
    {"burst.latency", &Hardware::latency, true, true},
    {"burst.flops", &Hardware::flops, false, false},
    {"burst.memory", &Hardware::memory, false, false},
};

/// Reads an entry of `burst`; those of other prefixes are somebody else's.
static LogicalResult readEntry(ModuleOp module, StringRef device,
                               DataLayoutEntryInterface entry,
                               Hardware &hardware, bool isOfAxis) {
  auto name = dyn_cast<StringAttr>(entry.getKey());
  if (!name || !name.getValue().starts_with("burst."))
    return success();
  const Key *key = llvm::find_if(
      keys, [&](const Key &key) { return key.name == name.getValue(); });
  if (key == std::end(keys))
    return module.emitOpError("describes ")
           << name << " of the device \"" << device
           << "\", which is not known; known are: burst.bandwidth, "
              "burst.latency, burst.flops, burst.memory";
  if (isOfAxis && !key->isOfLink)
    return module.emitOpError("describes ")
           << name << " of the device \"" << device
           << "\", an axis, which has burst.bandwidth and burst.latency; say "
              "it "
              "of the grid";
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

/// Devices of axes are those of axes that the grid has.
static LogicalResult checkAxes(ModuleOp module,
                               TargetSystemSpecInterface system, StringRef grid,
                               int64_t numAxes) {
  for (DataLayoutEntryInterface entry : system.getEntries()) {
    auto device = dyn_cast<StringAttr>(entry.getKey());
    StringRef axis = device ? device.getValue() : "";
    int64_t number = 0;
    if (!axis.consume_front(grid) || !axis.consume_front("."))
      continue;
    if (!axis.getAsInteger(10, number) && number >= 0 && number < numAxes &&
        axis == std::to_string(number))
      continue;
    return module.emitOpError("describes the device ")
           << device << ", but the axes of @" << grid << " are \"" << grid
           << ".0\" to \"" << grid << "." << numAxes - 1 << "\"";
  }
  return success();
}

FailureOr<Machine> burst::readMachine(ModuleOp module, StringRef grid,
                                      int64_t numAxes) {
  Machine machine;
  machine.axes.resize(numAxes);
  auto system = module->getAttrOfType<TargetSystemSpecInterface>(
      DLTIDialect::kTargetSystemDescAttrName);
  if (!system)
    return machine;
  auto specOf = [&](const Twine &device) {
    return system.getDeviceSpecForDeviceID(
        StringAttr::get(module.getContext(), device));
  };
  auto read = [&](StringRef device, Hardware &hardware, bool isOfAxis) {
    auto spec = specOf(device);
    for (DataLayoutEntryInterface entry : spec->getEntries())
      if (failed(readEntry(module, device, entry, hardware, isOfAxis)))
        return failure();
    return success();
  };
  if (failed(checkAxes(module, system, grid, numAxes)))
    return failure();
  for (StringRef device : {StringRef("burst"), grid})
    if (specOf(device) &&
        failed(read(device, machine.whole, /*isOfAxis=*/false)))
      return failure();
  for (auto [number, link] : llvm::enumerate(machine.axes)) {
    std::string device = (grid + "." + Twine(number)).str();
    if (!specOf(device))
      continue;
    Hardware own = machine.whole;
    if (failed(read(device, own, /*isOfAxis=*/true)))
      return failure();
    link = Link{own.bandwidth, own.latency};
  }
  return machine;
}

Hardware Machine::along(ArrayRef<int64_t> wanted) const {
  Hardware hardware = whole;
  auto linkOf = [&](int64_t axis) {
    return axes[axis].value_or(Link{whole.bandwidth, whole.latency});
  };
  for (auto [index, axis] : llvm::enumerate(wanted)) {
    Link link = linkOf(axis);
    bool isFirst = index == 0;
    hardware.bandwidth =
        isFirst ? link.bandwidth : std::min(hardware.bandwidth, link.bandwidth);
    hardware.latency =
        isFirst ? link.latency : std::max(hardware.latency, link.latency);
  }
  if (wanted.size() == 2 && (axes[wanted[0]] || axes[wanted[1]]))
    hardware.rings = {linkOf(wanted[0]), linkOf(wanted[1])};
  return hardware;
}
