//===- Drawing.cpp - schedules as pictures --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Explain/Drawing.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace burst;

namespace {

constexpr int64_t margin = 16, header = 64, labels = 64, box = 12, line = 14,
                  column = 196, text = 164;
/// What of a schedule is drawn: hops of all, and blocks and messages of a cell.
constexpr int64_t mostHops = 64, mostBlocks = 8, mostMessages = 12;

/// One schedule: a row per rank, a column per hop. Under what a rank computes
/// stands what it sends, and an arrow leads from there to the receiver.
class Picture {
public:
  Picture(const Drawing &drawing, int64_t top, llvm::raw_ostream &os);

  void draw();
  int64_t width() const { return labels + (hops + (hops < all)) * column; }
  int64_t height() const { return header + drawing.shown * row; }

private:
  int64_t left(int64_t hop) const { return margin + labels + hop * column; }
  int64_t above(int64_t rank) const { return top + header + rank * row; }
  static int64_t blocksOf(const Cell &cell);

  void drawHeader();
  void drawCell(int64_t rank, int64_t hop);
  void drawBlock(const Computed &block, int64_t x, int64_t y);
  void drawMessage(const Message &message, int64_t rank, int64_t hop,
                   int64_t y);

  const Drawing &drawing;
  int64_t top, all = 0, hops = 0, row = 0; // hops: of `all`, those drawn
  llvm::raw_ostream &os;
};

} // namespace

/// Names of functions are the users'.
static std::string escaped(StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

/// The first elements of a list, of which no more are drawn.
template <typename T>
static ArrayRef<T> drawn(const std::vector<T> &list, int64_t most) {
  return ArrayRef(list).take_front(static_cast<size_t>(most));
}

/// How many elements are not drawn.
template <typename T>
static int64_t undrawn(const std::vector<T> &list, int64_t most) {
  return std::max<int64_t>(static_cast<int64_t>(list.size()) - most, 0);
}

/// How high the blocks of a cell are.
int64_t Picture::blocksOf(const Cell &cell) {
  int64_t height = 0;
  for (const Computed &block : drawn(cell.blocks, mostBlocks))
    height = std::max(height, block.rows * box);
  return height;
}

Picture::Picture(const Drawing &drawing, int64_t top, llvm::raw_ostream &os)
    : drawing(drawing), top(top), os(os) {
  // All rows are as high as the highest cell.
  for (const auto &ofRank : drawn(drawing.cells, drawing.shown)) {
    hops = std::max(hops, static_cast<int64_t>(ofRank.size()));
    for (const Cell &cell : drawn(ofRank, mostHops))
      row = std::max(row, blocksOf(cell) + line * std::min<int64_t>(
                                                      static_cast<int64_t>(
                                                          cell.messages.size()),
                                                      mostMessages + 1));
  }
  all = hops;
  hops = std::min(hops, mostHops);
  row += 2 * line;
}

void Picture::drawHeader() {
  int64_t y = top + line;
  os << llvm::formatv("<text x=\"{0}\" y=\"{1}\" class=\"title\">{2}</text>\n",
                      margin, y, escaped(drawing.title));
  int64_t x = margin;
  struct Sign {
    const char *kind, *meaning;
    int64_t width;
  };
  for (auto [kind, meaning, width] : {Sign{"full", "full", 52},
                                      {"partial", "partly masked", 104},
                                      {"empty", "empty or dropped", 128}}) {
    os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" "
                        "height=\"{2}\" class=\"{3}\"/>\n",
                        x, y + line, box, kind);
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">{2}</text>\n", x + box + 4,
                        y + line + box - 2, meaning);
    x += width;
  }
  for (auto [kind, meaning, width] : {Sign{"slice", "a slice", 72},
                                      {"state", "its state", 88},
                                      {"gradient", "gradients", 0}}) {
    os << llvm::formatv("<path d=\"M{0} {1}h24\" class=\"{2}\"/>\n", x,
                        y + line + box / 2, kind);
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">{2}</text>\n", x + 32,
                        y + line + box - 2, meaning);
    x += width + 24;
  }
  for (int64_t hop = 0; hop < hops; ++hop)
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">hop {2}</text>\n", left(hop),
                        y + 3 * line, hop);
  if (hops < all)
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">and {2} more hops</text>\n",
                        left(hops), y + 3 * line, all - hops);
}

void Picture::drawBlock(const Computed &block, int64_t x, int64_t y) {
  for (auto [index, pair] : llvm::enumerate(block.pairs)) {
    auto at = static_cast<int64_t>(index);
    const char *kind = pair == PairClass::Full      ? "full"
                       : pair == PairClass::Partial ? "partial"
                                                    : "empty";
    os << llvm::formatv("<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" "
                        "height=\"{2}\" class=\"{3}\"/>\n",
                        x + at % block.columns * box,
                        y + at / block.columns * box, box, kind);
  }
}

/// The arrow starts behind the words.
void Picture::drawMessage(const Message &message, int64_t rank, int64_t hop,
                          int64_t y) {
  std::string words = llvm::formatv(
      "{0}{1}{2} to {3}, {4}", prefixOf(message.kind), message.owner,
      message.segments, message.to, bytesText(message.bytes));
  const char *kind = message.kind == MessageKind::Slice      ? "slice"
                     : message.kind == MessageKind::State    ? "state"
                     : message.kind == MessageKind::Gradient ? "gradient"
                                                             : "all-to-all";
  os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">{2}</text>\n", left(hop), y,
                      words);
  if (message.to >= drawing.shown)
    return;
  int64_t fromX = left(hop) + std::min<int64_t>(text, 7 * words.size()),
          toX = left(hop) + column - 4;
  int64_t fromY = y - 4, toY = above(message.to) + box;
  int64_t bend = (fromX + toX) / 2;
  os << llvm::formatv("<path d=\"M{0} {1}C{2} {1} {2} {3} {4} {3}\" "
                      "class=\"{5}\"><title>rank {6} to {7}: {8}</title>"
                      "</path>\n",
                      fromX, fromY, bend, toY, toX, kind, rank, message.to,
                      words);
}

void Picture::drawCell(int64_t rank, int64_t hop) {
  if (hop >= static_cast<int64_t>(drawing.cells[rank].size()))
    return;
  const Cell &cell = drawing.cells[rank][hop];
  int64_t x = left(hop), y = above(rank);
  for (const Computed &block : drawn(cell.blocks, mostBlocks)) {
    drawBlock(block, x, y);
    x += block.columns * box + 4;
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">of {2}</text>\n", x,
                        y + box - 2, block.owner);
    x += 40;
  }
  if (int64_t more = undrawn(cell.blocks, mostBlocks))
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">and {2} more</text>\n", x,
                        y + box - 2, more);
  y += blocksOf(cell);
  for (const Message &message : drawn(cell.messages, mostMessages)) {
    y += line;
    drawMessage(message, rank, hop, y);
  }
  if (int64_t more = undrawn(cell.messages, mostMessages))
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">and {2} more</text>\n",
                        left(hop), y + line, more);
}

void Picture::draw() {
  drawHeader();
  for (int64_t rank = 0; rank < drawing.shown; ++rank) {
    os << llvm::formatv("<text x=\"{0}\" y=\"{1}\">rank {2}</text>\n", margin,
                        above(rank) + box - 2, rank);
    for (int64_t hop = 0; hop < hops; ++hop)
      drawCell(rank, hop);
  }
}

void burst::draw(ArrayRef<Drawing> drawings, llvm::raw_ostream &os) {
  std::string body;
  llvm::raw_string_ostream stream(body);
  int64_t width = 592, height = margin;
  for (const Drawing &drawing : drawings) {
    Picture picture(drawing, height, stream);
    picture.draw();
    width = std::max(width, picture.width());
    height += picture.height() + margin;
  }
  os << llvm::formatv(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}">
<style>
text {{ font: 11px monospace; fill: #222 }
.title {{ font-weight: bold }
rect {{ stroke: #555; stroke-width: 0.5 }
.full {{ fill: #2b6ca3 }
.partial {{ fill: #9ec9e8 }
.empty {{ fill: #fff }
path {{ fill: none; marker-end: url(#head) }
.slice {{ stroke: #2b6ca3 }
.state {{ stroke: #3c8c46 }
.gradient {{ stroke: #c8611a }
</style>
<marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">
<polygon points="0,0 6,3 0,6" fill="context-stroke"/>
</marker>
<rect width="100%" height="100%" style="fill: #fff; stroke: none"/>
{2}</svg>
)",
      width + 2 * margin, height, body);
}
