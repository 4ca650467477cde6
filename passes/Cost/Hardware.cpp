//===- Hardware.cpp - what a module says of its machine -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Cost/Cost.h"

#include "support/Files.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;

namespace {
struct Key {
  StringLiteral name;
  double &(*value)(Machine &);
  bool mayBeZero = false;
  bool isOfLink = false;
};
} // namespace

static constexpr Key keys[] = {
    {"burst.bandwidth",
     [](Machine &m) -> double & { return m.whole.bandwidth; },
     /*mayBeZero=*/false, /*isOfLink=*/true},
    {"burst.latency", [](Machine &m) -> double & { return m.whole.latency; },
     /*mayBeZero=*/true, /*isOfLink=*/true},
    {"burst.flops", [](Machine &m) -> double & { return m.whole.flops; }},
    {"burst.memory", [](Machine &m) -> double & { return m.whole.memory; }},
    {"burst.peak", [](Machine &m) -> double & { return m.kernels.peak; }},
    {"burst.launch", [](Machine &m) -> double & { return m.kernels.launch; },
     /*mayBeZero=*/true},
    {"burst.processors",
     [](Machine &m) -> double & { return m.kernels.processors; }},
    {"burst.tile", [](Machine &m) -> double & { return m.kernels.tile; }},
    {"burst.memory_bandwidth",
     [](Machine &m) -> double & { return m.kernels.memoryBandwidth; }},
    {"burst.staged", [](Machine &m) -> double & { return m.kernels.staged; },
     /*mayBeZero=*/true},
    {"burst.copy_bandwidth",
     [](Machine &m) -> double & { return m.kernels.copyBandwidth; }},
    {"burst.busy", [](Machine &m) -> double & { return m.kernels.busy; },
     /*mayBeZero=*/true},
    {"burst.devices", [](Machine &m) -> double & { return m.kernels.devices; }},
    {"burst.node", [](Machine &m) -> double & { return m.nodes.size; }},
    {"burst.node_bandwidth",
     [](Machine &m) -> double & { return m.nodes.inside.bandwidth; }},
    {"burst.node_latency",
     [](Machine &m) -> double & { return m.nodes.inside.latency; },
     /*mayBeZero=*/true},
    {"burst.links", [](Machine &m) -> double & { return m.nodes.cards; }},
};

/// By what is computed, see Products.
static constexpr std::array<StringLiteral, numProducts> rateNames = {
    "flops", "flops_backward", "flops_stored"};

/// One of these, of a type, and of a head dimension of it.
static bool isRate(StringRef name) {
  auto [pass, rest] = name.split('.');
  auto [type, dim] = rest.split('.');
  int64_t number = 0;
  return llvm::is_contained(rateNames, pass) &&
         (rest.empty() ||
          llvm::is_contained({"f64", "f32", "bf16", "f16"}, type)) &&
         (dim.empty() || (!dim.getAsInteger(10, number) && number > 0)) &&
         !name.ends_with(".");
}

static constexpr StringRef placementKey = "burst.placement";

/// Reads an entry of `burst`; those of other prefixes are somebody else's.
static LogicalResult readEntry(ModuleOp module, StringRef device,
                               DataLayoutEntryInterface entry, Machine &machine,
                               bool isOfAxis) {
  auto name = dyn_cast<StringAttr>(entry.getKey());
  StringRef own = name ? name.getValue() : "";
  if (!own.consume_front("burst."))
    return success();
  auto refuse = [&] {
    return module.emitOpError("describes ")
           << name << " of the device \"" << device << "\"";
  };
  const Key *key = llvm::find_if(
      keys, [&](const Key &key) { return key.name == name.getValue(); });
  bool isKnown = key != std::end(keys);
  bool isPlacement = name.getValue() == placementKey;
  if (!isKnown && !isPlacement && !isRate(own)) {
    InFlightDiagnostic error = refuse() << ", which is not known; known are: ";
    llvm::interleaveComma(keys, error,
                          [&](const Key &key) { error << key.name; });
    return error
           << ", " << placementKey
           << ", and burst.flops, burst.flops_backward and "
              "burst.flops_stored of a type, as burst.flops.bf16, or of a "
              "head dimension of it, as burst.flops.bf16.64";
  }
  if (isOfAxis && !(isKnown && key->isOfLink))
    return refuse() << ", an axis, which has burst.bandwidth and "
                       "burst.latency; say it of the grid";
  if (isPlacement) {
    auto placement = dyn_cast<DenseI64ArrayAttr>(entry.getValue());
    if (!placement)
      return refuse() << " as " << entry.getValue()
                      << ", but it must be axes, as in array<i64: 1, 0>";
    machine.nodes.placement.assign(placement.asArrayRef().begin(),
                                   placement.asArrayRef().end());
    return success();
  }
  bool mayBeZero = isKnown && key->mayBeZero;
  auto value = dyn_cast<FloatAttr>(entry.getValue());
  bool isGood = value && value.getType().isF64() &&
                value.getValue().isFinite() && !value.getValue().isNegative() &&
                (mayBeZero || !value.getValue().isZero());
  if (!isGood)
    return refuse() << " as " << entry.getValue()
                    << ", but it must be a finite f64 "
                    << (mayBeZero ? "that is not negative" : "above 0");
  if (isKnown)
    key->value(machine) = value.getValueAsDouble();
  if (isRate(own))
    machine.kernels.rates[own] = value.getValueAsDouble();
  return success();
}

/// What fits together.
static LogicalResult check(ModuleOp module, const Machine &machine,
                           shard::GridOp grid) {
  auto refuse = [&](StringRef name, double value, StringRef wanted) {
    return module.emitOpError(llvm::formatv(
        "describes {0} as {1:f2}, wanted {2}", name, value, wanted));
  };
  constexpr double mostCounted = std::numeric_limits<int32_t>::max();
  auto isCount = [](double value) {
    // Infinite is what nothing was said of.
    return std::isinf(value) ||
           (value == std::floor(value) && value <= mostCounted);
  };
  if (machine.kernels.busy >= 1)
    return refuse("burst.busy", machine.kernels.busy,
                  "a share of the processors below 1");
  for (auto [name, value] : {std::pair("burst.node", machine.nodes.size),
                             {"burst.links", machine.nodes.cards},
                             {"burst.processors", machine.kernels.processors},
                             {"burst.devices", machine.kernels.devices},
                             {"burst.tile", machine.kernels.tile}})
    if (!isCount(value))
      return refuse(name, value, "a whole number up to 2147483647");
  for (const auto &rate : machine.kernels.rates)
    if (double peak = machine.kernels.peak; peak != 0 && rate.second > peak)
      return refuse("burst.peak", peak,
                    llvm::formatv("at least burst.{0}, which is {1:f2}",
                                  rate.first(), rate.second)
                        .str());
  if (machine.nodes.cards != 0 && !machine.nodes.areDescribed())
    return module.emitOpError("describes burst.links, those of a node, without "
                              "burst.node, the ranks of one");
  ArrayRef<int64_t> placement = machine.nodes.placement;
  if (placement.empty())
    return success();
  if (!machine.nodes.areDescribed())
    return module.emitOpError("describes burst.placement, how ranks are shared "
                              "out to nodes, without burst.node, the ranks of "
                              "one");
  auto sorted = llvm::to_vector(placement);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq(grid.getRank())))
    return module.emitOpError("describes burst.placement as [")
           << llvm::make_range(placement.begin(), placement.end())
           << "], wanted each axis of @" << grid.getSymName() << ", which has "
           << grid.getRank();
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

/// Whether ranks of each group, of so many neighbors, are in one node.
static bool areInNodes(int64_t node, int64_t group, int64_t ranks) {
  for (int64_t first = 0; first < ranks; first += group)
    if (first / node != (first + group - 1) / node)
      return false;
  return true;
}

/// What ranks have that send along an axis: links of a node where all are in
/// one, else what a rank has of the cards that it shares with as many others as
/// send at once.
static Link linkOf(const Machine &machine, const RankGroup &axis,
                   int64_t ranks) {
  const Nodes &nodes = machine.nodes;
  auto size = static_cast<int64_t>(nodes.size);
  if (areInNodes(size, axis.stride * axis.size, ranks))
    return nodes.inside;
  double cards = nodes.cards == 0 ? nodes.size : nodes.cards;
  double senders = static_cast<double>(std::min(axis.stride, size));
  return {machine.whole.bandwidth * std::min(1.0, cards / senders),
          machine.whole.latency};
}

RankGroup burst::placedGroup(const Nodes &nodes, shard::GridOp grid,
                             int64_t axis) {
  RankGroup group = groupOf(grid, axis);
  if (nodes.placement.empty())
    return group;
  group.stride = 1;
  for (int64_t behind : llvm::reverse(nodes.placement)) {
    if (behind == axis)
      break;
    group.stride *= grid.getShape()[behind];
  }
  return group;
}

void burst::describePlacement(ModuleOp module, shard::GridOp grid,
                              ArrayRef<int64_t> placement) {
  StringRef key = DLTIDialect::kTargetSystemDescAttrName;
  MLIRContext *context = module.getContext();
  // The same list of entries, with one of a name replaced or added.
  auto with = [&](const auto &entries, StringRef name, Attribute value) {
    SmallVector<DataLayoutEntryInterface> all;
    auto id = StringAttr::get(context, name);
    for (DataLayoutEntryInterface entry : entries)
      if (entry.getKey() != PointerUnion<Type, StringAttr>(id))
        all.push_back(entry);
    all.push_back(DataLayoutEntryAttr::get(context, id, value));
    return all;
  };
  auto system = module->getAttrOfType<TargetSystemSpecInterface>(key);
  SmallVector<DataLayoutEntryInterface> ofDevice, ofSystem;
  if (system) {
    llvm::append_range(ofSystem, system.getEntries());
    if (auto device = system.getDeviceSpecForDeviceID(grid.getSymNameAttr()))
      llvm::append_range(ofDevice, device->getEntries());
  }
  ofDevice =
      with(ofDevice, placementKey, DenseI64ArrayAttr::get(context, placement));
  ofSystem = with(ofSystem, grid.getSymName(),
                  TargetDeviceSpecAttr::get(context, ofDevice));
  module->setAttr(key, TargetSystemSpecAttr::get(context, ofSystem));
}

FailureOr<Machine> burst::readMachine(ModuleOp module, shard::GridOp grid) {
  Machine machine;
  StringRef gridName = grid.getSymName();
  machine.axes.resize(grid.getRank());
  machine.areAxesStated.resize(grid.getRank());
  auto system = module->getAttrOfType<TargetSystemSpecInterface>(
      DLTIDialect::kTargetSystemDescAttrName);
  if (!system)
    return machine;
  auto specOf = [&](const Twine &device) {
    return system.getDeviceSpecForDeviceID(
        StringAttr::get(module.getContext(), device));
  };
  auto read = [&](StringRef device, Machine &target, bool isOfAxis) {
    auto spec = specOf(device);
    for (DataLayoutEntryInterface entry : spec->getEntries())
      if (failed(readEntry(module, device, entry, target, isOfAxis)))
        return failure();
    return success();
  };
  if (failed(checkAxes(module, system, gridName, grid.getRank())))
    return failure();
  for (StringRef device : {StringRef("burst"), gridName})
    if (specOf(device) && failed(read(device, machine, /*isOfAxis=*/false)))
      return failure();
  if (failed(check(module, machine, grid)))
    return failure();
  for (auto [number, link] : llvm::enumerate(machine.axes)) {
    std::string device = (gridName + "." + Twine(number)).str();
    RankGroup group =
        placedGroup(machine.nodes, grid, static_cast<int64_t>(number));
    if (machine.nodes.areDescribed())
      link =
          linkOf(machine, group, ShapedType::getNumElements(grid.getShape()));
    if (!specOf(device))
      continue;
    Machine own = machine;
    if (link)
      std::tie(own.whole.bandwidth, own.whole.latency) =
          std::pair(link->bandwidth, link->latency);
    if (failed(read(device, own, /*isOfAxis=*/true)))
      return failure();
    link = Link{own.whole.bandwidth, own.whole.latency};
    machine.areAxesStated.set(number);
  }
  return machine;
}

LogicalResult burst::describeMachine(ModuleOp module, StringRef text,
                                     StringRef name) {
  StringRef key = DLTIDialect::kTargetSystemDescAttrName;
  auto parse = [&](StringRef all) {
    return parseSourceString<ModuleOp>(all, module.getContext(), name);
  };
  OwningOpRef<ModuleOp> described = parse(text);
  if (described && !(*described)->hasAttr(key) && text.contains("#machine ="))
    described =
        parse(llvm::formatv("{0}\nmodule attributes {{{1} = #machine} {{}\n",
                            text, key)
                  .str());
  if (!described)
    return failure();
  Attribute spec = (*described)->getAttr(key);
  if (!spec)
    return emitError(described->getLoc(), "describes no machine: it has no '")
           << key << "'";
  module->setAttr(key, spec);
  return success();
}

LogicalResult burst::describeMachineOf(ModuleOp module, StringRef path) {
  if (path.empty())
    return success();
  auto buffer = readInput(path);
  if (!buffer)
    return emitError(UnknownLoc::get(module.getContext()),
                     "cannot read a machine: ")
           << llvm::toString(buffer.takeError());
  return describeMachine(module, (*buffer)->getBuffer(), path);
}

double Kernels::rate(Type element, int64_t headDim, Products products) const {
  std::string type = llvm::formatv("{0}", element);
  for (StringRef pass :
       {rateNames[static_cast<size_t>(products)], rateNames.front()}) {
    std::string ofType = (pass + "." + type).str();
    for (const std::string &name :
         {ofType + "." + std::to_string(headDim), ofType, pass.str()})
      if (auto found = rates.find(name); found != rates.end())
        return found->second;
  }
  return Hardware().flops;
}

double Machine::deviceShare(int64_t ranks) const {
  double sharing = nodes.areDescribed()
                       ? std::min(nodes.size, static_cast<double>(ranks))
                       : static_cast<double>(ranks);
  return std::min(1.0, kernels.devices / sharing);
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
