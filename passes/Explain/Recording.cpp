//===- Recording.cpp - what ranks do, hop by hop --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Recording.h"

#include "llvm/Support/FormatVariadic.h"

#include <set>

using namespace mlir;
using namespace burst;

std::string burst::bytesText(int64_t bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return llvm::formatv("{0} B", bytes).str();
  return llvm::formatv("{0:F1} {1}", value, units[unit]).str();
}

void burst::printAligned(ArrayRef<SmallVector<std::string>> rows,
                         raw_ostream &os) {
  SmallVector<size_t> widths(rows.front().size());
  for (const auto &row : rows)
    for (auto [width, cell] : llvm::zip_equal(widths, row))
      width = std::max(width, cell.size());
  for (const auto &row : rows) {
    std::string line;
    for (auto [width, cell] : llvm::zip_equal(widths, row)) {
      line += (line.empty() ? "" : " | ") + cell;
      line.append(width - cell.size(), ' ');
    }
    os << StringRef(line).rtrim() << "\n";
  }
}

StringRef burst::prefixOf(MessageKind kind) {
  switch (kind) {
  case MessageKind::Slice:
    return "";
  case MessageKind::State:
    return "s";
  case MessageKind::Gradient:
    return "d";
  case MessageKind::Exchange:
    return "x";
  }
  llvm_unreachable("unknown kind");
}

static MessageKind kindOf(const Transfer &transfer) {
  ring::TransferOpInterface start = transfer.start;
  if (start.isAllToAll())
    return MessageKind::Exchange;
  std::optional<Made> partial = transfer.partial();
  if (!partial)
    return MessageKind::Slice;
  return *partial == Made::Gradient ? MessageKind::Gradient
                                    : MessageKind::State;
}

/// Whether it follows a slice.
static bool isFollowing(MessageKind kind) {
  return kind == MessageKind::State || kind == MessageKind::Gradient;
}

bool burst::isBackward(Operation *op) {
  auto step = dyn_cast<ring::StepOpInterface>(op);
  return step && llvm::any_of(op->getResults(), [&](Value result) {
           return step.getContent(result) == ring::Content::Gradient;
         });
}

void Recorder::meets(const AttendInputs &inputs, size_t index,
                     int64_t keyOwner) {
  if (!isShown(inputs.rank))
    return;
  Computed block;
  // What is this rank's own stays, the other travels.
  block.owner =
      keyOwner == sequence.placeOf(inputs.rank) ? inputs.queryOwner : keyOwner;
  block.rows = inputs.queryLayout.getNumSegments();
  block.columns = inputs.keyLayout.getNumSegments();
  block.isBackward = isBackward(inputs.at);
  for (int64_t a = 0; a < block.rows; ++a)
    for (int64_t b = 0; b < block.columns; ++b)
      block.pairs.push_back(inputs.isComputed(index, a, b)
                                ? classifier.classify(inputs, keyOwner, a, b)
                                : PairClass::Empty);
  noted[inputs.rank][inputs.hop].blocks.push_back(std::move(block));
  last[inputs.rank] = inputs.hop;
}

void Recorder::starts(const Transfer &transfer) {
  if (isShown(transfer.rank) && isFollowing(kindOf(transfer)))
    hops[&transfer] = last[transfer.rank];
}

void Recorder::delivers(const Transfer &from, const Transfer &to,
                        size_t index) {
  if (!isShown(from.rank))
    return;
  MessageKind kind = kindOf(from);
  Cell &cell = noted[from.rank][isFollowing(kind) ? hops[&from] : from.hop];
  // One note per message, with the bytes of all its tensors.
  if (index == 0) {
    Message message;
    message.to = to.rank;
    message.owner = from.owner;
    message.kind = kind;
    int64_t segments = from.layout.numSegments();
    for (int64_t s = 0; s < segments; ++s)
      if (segments > 1 && kind != MessageKind::Exchange &&
          from.sendMask >> s & 1)
        message.segments += static_cast<char>('a' + s);
    cell.messages.push_back(std::move(message));
  }
  cell.messages.back().bytes = from.sentBytes;
}

std::vector<std::vector<Cell>> Recorder::cells() const {
  // Ranks compute at the same counts of transfers, for they run one program.
  std::set<int64_t> begins;
  for (const auto &ofRank : noted)
    for (const auto &[hop, cell] : ofRank)
      if (!cell.blocks.empty())
        begins.insert(hop);
  std::vector<std::vector<Cell>> result;
  for (const auto &ofRank : noted) {
    auto &cells = result.emplace_back(std::max<size_t>(begins.size(), 1));
    for (const auto &[hop, cell] : ofRank) {
      auto row = std::distance(begins.begin(), begins.upper_bound(hop));
      Cell &target = cells[std::max<int64_t>(row - 1, 0)];
      llvm::append_range(target.blocks, cell.blocks);
      llvm::append_range(target.messages, cell.messages);
    }
  }
  return result;
}
