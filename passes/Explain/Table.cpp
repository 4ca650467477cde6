//===- Table.cpp - schedules as tables ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Table.h"

#include "dialect/Ring/Slices.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace burst;

/// Owner, then per query segment the classes of the key segments.
static std::string blockText(const Computed &block) {
  std::string result = std::to_string(block.owner) + " ";
  for (auto [index, pair] : llvm::enumerate(block.pairs)) {
    if (index != 0 && index % block.columns == 0)
      result += "/";
    result += pair == PairClass::Empty  ? '.'
              : pair == PairClass::Full ? '#'
                                        : '+';
  }
  return result;
}

/// Receiver, then owner and segments.
static std::string messageText(const Message &message) {
  if (message.kind == MessageKind::Exchange)
    return llvm::formatv(">{0} {1}", message.to, prefixOf(message.kind));
  return llvm::formatv(">{0} {1}{2}{3}", message.to, prefixOf(message.kind),
                       message.owner, message.segments);
}

Table::Table(func::FuncOp program, int64_t maxRanks, raw_ostream &os)
    : ranks(ring::numRanks(program)), shown(std::min(maxRanks, ranks)),
      axes(axesOfSeveral(program)), maxSlices(ring::getMaxSlices(program)),
      recorder(shown, ring::shardingOf(program).sequence), os(os) {
  drawing.title =
      llvm::formatv("program @{0}, {1} ranks", program.getName(), ranks);
  drawing.shown = shown;
  program.walk(
      [&](ring::AttendLikeOpInterface op) { hasBackward |= isBackward(op); });
  program.walk([&](ring::TransferOpInterface start) {
    hasExchanges |= start.isAllToAll();
    if (start.isAllToAll())
      return;
    for (Value tensor : start.getTensors())
      if (auto step = tensor.getDefiningOp<ring::StepOpInterface>()) {
        hasStates |= step.getContent(tensor) == ring::Content::State;
        hasGradients |= step.getContent(tensor) == ring::Content::Gradient;
      }
  });
}

int64_t Table::defaultRanks(func::FuncOp program) {
  constexpr int64_t maxTableRanks = 64, fewRanks = 16;
  return ring::numRanks(program) > maxTableRanks ? 0 : fewRanks;
}

void Table::printRow(StringRef head, ArrayRef<std::string> cells) {
  std::string line = llvm::formatv("{0,-11}", head).str();
  for (const std::string &cell : cells) {
    line += " | " + cell;
    line.append(width - std::min(width, cell.size()), ' ');
  }
  os << StringRef(line).rtrim() << "\n";
}

void Table::printLegend() {
  os << drawing.title << "\n\n"
     << "computes: owner of the slice, then per query segment its key "
        "segments,\n"
     << "          # full, + partly masked, . empty or dropped\n";
  if (hasBackward)
    os << "          by a forward or a backward pass\n";
  os << "sends:    >receiver owner of the slice, and which of its segments, a "
        "or b\n";
  if (hasStates)
    os << "          s the state of its queries, and not the slice\n";
  if (hasGradients)
    os << "          d gradients by it, and not the slice\n";
  if (hasExchanges)
    os << "          x in an all-to-all: the receiver's heads of the own "
          "shard, or its\n            positions of the own heads\n";
  os << "\n";
}

void Table::printHops() {
  using Texts = std::vector<std::vector<std::string>>; // by hop, by rank
  Texts computed, backward, sent;
  auto add = [&](Texts &texts, size_t hop, int64_t rank,
                 const std::string &text) {
    texts.resize(std::max(texts.size(), hop + 1));
    texts[hop].resize(shown);
    std::string &cell = texts[hop][rank];
    cell += (cell.empty() ? "" : " ") + text;
    width = std::max(width, cell.size());
  };
  for (int64_t rank = 0; rank < shown; ++rank)
    for (auto [hop, cell] : llvm::enumerate(drawing.cells[rank])) {
      for (const Computed &block : cell.blocks)
        add(block.isBackward ? backward : computed, hop, rank,
            blockText(block));
      for (const Message &message : cell.messages)
        add(sent, hop, rank, messageText(message));
    }
  std::vector<std::string> heads;
  heads.reserve(shown);
  for (int64_t rank = 0; rank < shown; ++rank)
    heads.push_back("rank " + std::to_string(rank));
  printRow("hop", heads);
  auto print = [&](const Texts &texts, size_t hop, const std::string &head) {
    if (hop < texts.size() && !texts[hop].empty())
      printRow(head, texts[hop]);
  };
  size_t hops = std::max({computed.size(), backward.size(), sent.size()});
  for (size_t hop = 0; hop < hops; ++hop) {
    std::string number = std::to_string(hop);
    print(computed, hop, number + (hasBackward ? " forward" : " computes"));
    print(backward, hop, number + " backward");
    print(sent, hop, "  sends");
  }
}

/// Below what is sent.
static std::string onAxis(int64_t axis) {
  return "  on [" + std::to_string(axis) + "]";
}

void Table::printRanks(const std::vector<Traffic> &traffic) {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  auto add = [&](const std::string &head, auto &&amount) {
    std::vector<std::string> &cells = rows.emplace_back().second;
    rows.back().first = head;
    for (const Traffic &found : ArrayRef(traffic).take_front(shown)) {
      cells.push_back(bytesText(amount(found)));
      width = std::max(width, cells.back().size());
    }
  };
  add("sent", [](const Traffic &t) { return t.totalBytes(); });
  for (int64_t axis : axes)
    add(onAxis(axis), [axis](const Traffic &t) { return t.sentByAxis[axis]; });
  add("peak memory", [](const Traffic &t) { return t.peakBytes; });
  os << "\n";
  for (const auto &[head, cells] : rows)
    printRow(head, cells);
}

/// The ranks with the least and the most.
void Table::printExtremes(const std::vector<Traffic> &traffic,
                          StringRef option) {
  auto print = [&](StringRef head, auto &&amount) {
    auto [least, most] = std::minmax_element(
        traffic.begin(), traffic.end(),
        [&](const auto &a, const auto &b) { return amount(a) < amount(b); });
    os << llvm::formatv("{0,-11} | {1} (rank {2}) to {3} (rank {4})\n", head,
                        bytesText(amount(*least)), least - traffic.begin(),
                        bytesText(amount(*most)), most - traffic.begin());
  };
  os << drawing.title << "; " << option << "=N shows what N of them do\n\n";
  print("sent", [](const Traffic &t) { return t.totalBytes(); });
  for (int64_t axis : axes)
    print(onAxis(axis),
          [axis](const Traffic &t) { return t.sentByAxis[axis]; });
  print("peak memory", [](const Traffic &t) { return t.peakBytes; });
}

void Table::printProof(const ScheduleProof &proof) {
  int64_t all = 0;
  for (const Traffic &found : proof.traffic)
    all += found.totalBytes();
  os << "\nsent by all ranks: " << bytesText(all);
  for (int64_t axis : axes) {
    int64_t along = 0;
    for (const Traffic &found : proof.traffic)
      along += found.sentByAxis[axis];
    os << (axis == axes.front() ? "; " : ", ") << bytesText(along) << " on ["
       << axis << "]";
  }
  os << "\nproved " << proofText(proof.proved) << ":\n        each of "
     << proof.computed - proof.wasted
     << " pairs of segments that the mask needs is computed once, "
     << proof.dropped << " are dropped;\n";
  if (proof.wasted != 0)
    os << "        " << proof.wasted
       << " that it rules out are computed too;\n";
  os << "        sends match receives, no deadlock, at most ";
  if (maxSlices && llvm::all_equal(maxSlices.asArrayRef())) {
    os << maxSlices[0]
       << " received slices at a time on each channel;\n        as many states "
          "or gradients by slices, and of the rank's own\n";
    return;
  }
  if (maxSlices) {
    os << maxSlices[0] << " received slices at a time on channel 0";
    for (int64_t channel = 1; channel < maxSlices.size(); ++channel)
      os << ", " << maxSlices[channel] << " on " << channel;
    os << ";\n        as many states or gradients by slices, and of the rank's "
          "own\n";
    return;
  }
  os << ring::defaultMaxSlices << " received slices at a time\n";
  if (hasStates)
    os << "        and 2 states of slices, and 2 of the rank's own\n";
  if (hasGradients)
    os << "        and 2 gradients by slices, and 2 by the rank's own\n";
}

void Table::print(const ScheduleProof &proof, StringRef option) {
  if (shown == 0) {
    printExtremes(proof.traffic, option);
    printProof(proof);
    return;
  }
  drawing.cells = recorder.cells();
  if (shown < ranks)
    drawing.title += llvm::formatv(" (the first {0} shown)", shown).str();
  printLegend();
  printHops();
  printRanks(proof.traffic);
  printProof(proof);
}
