//===- Plot.cpp - curves as SVG -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Plot.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace burst::bench;

namespace {

// Of the picture, and of the field between the axes.
constexpr double width = 760, height = 420;
constexpr double left = 70, right = 540, top = 48, bottom = 360;
/// Series beyond these take the first ones again.
constexpr int numColors = 6;

/// Numbers to places on the picture.
struct Range {
  Range(const Axis &axis, std::vector<double> values, double begin, double end);

  double place(double value) const {
    return begin + (end - begin) * (on(value) - low) / (high - low);
  }
  double on(double value) const {
    return scale == Scale::Linear     ? value
           : scale == Scale::Doubling ? std::log2(value)
                                      : std::log10(value);
  }

  Scale scale;
  double begin, end, low, high;
  std::vector<double> ticks;
};

} // namespace

Range::Range(const Axis &axis, std::vector<double> values, double begin,
             double end)
    : scale(axis.scale), begin(begin), end(end) {
  if (values.empty())
    values = {1};
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (scale == Scale::Linear) {
    // From zero on, in round steps, of which there are 4 to 10.
    double step = std::pow(10, std::floor(std::log10(*most)));
    if (*most / step < 2)
      step /= 5;
    else if (*most / step < 4)
      step /= 2;
    low = 0;
    high = step * std::ceil(*most / step * 1.02);
    for (int i = 0; i <= std::lround(high / step); ++i)
      ticks.push_back(step * i);
    return;
  }
  double base = scale == Scale::Doubling ? 2 : 10;
  low = std::floor(on(*least) + 1e-9);
  high = std::max(std::ceil(on(*most) - 1e-9), low + 1);
  for (int i = 0; i <= std::lround(high - low); ++i)
    ticks.push_back(std::pow(base, low + i));
}

/// "512", "4k", "0.05", "10M".
static std::string numberOf(double value, Scale scale) {
  double thousand = scale == Scale::Doubling ? 1024 : 1000;
  const char *unit = "";
  for (const char *next : {"k", "M", "G"})
    if (value >= thousand) {
      value /= thousand;
      unit = next;
    }
  std::string text = llvm::formatv("{0:f3}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text + unit;
}

static std::string escaped(llvm::StringRef text) {
  std::string result;
  for (char c : text)
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  return result;
}

bool Plot::has(const std::string &name) const {
  return llvm::any_of(series,
                      [&](const auto &entry) { return entry.first == name; });
}

void Plot::add(const std::string &name, double atX, double atY) {
  auto found =
      llvm::find_if(series, [&](auto &entry) { return entry.first == name; });
  if (found == series.end())
    found = series.insert(found, {name, {}});
  found->second.emplace_back(atX, atY);
}

static constexpr const char *style = R"(<style>
  text { font: 13px sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: bold }
  .back { fill: #ffffff }
  .grid { stroke: #d8dee4; fill: none }
  .bar { stroke: #57606a; stroke-dasharray: 2 4; fill: none }
  .line { fill: none; stroke-width: 2 }
  .other { stroke-dasharray: 7 4 }
  .c0 { stroke: #0969da } .c1 { stroke: #cf222e } .c2 { stroke: #1a7f37 }
  .c3 { stroke: #9a6700 } .c4 { stroke: #8250df } .c5 { stroke: #57606a }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .back { fill: #0d1117 }
    .grid { stroke: #30363d }
    .bar { stroke: #9198a1 }
    .c0 { stroke: #58a6ff } .c1 { stroke: #ff7b72 } .c2 { stroke: #56d364 }
    .c3 { stroke: #e3b341 } .c4 { stroke: #bc8cff } .c5 { stroke: #9198a1 }
  }
</style>
)";

std::string Plot::svg() const {
  std::vector<double> xs, ys;
  for (const auto &[name, points] : series)
    for (auto [atX, atY] : points) {
      xs.push_back(atX);
      ys.push_back(atY);
    }
  if (bar > 0)
    ys.push_back(bar);
  Range across(x, std::move(xs), left, right),
      up(y, std::move(ys), bottom, top);

  std::string svg = llvm::formatv(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "role=\"img\">\n<title>{2}</title>\n{3}"
      "<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n",
      width, height, escaped(title), style);
  auto text = [&](double atX, double atY, llvm::StringRef anchor,
                  llvm::StringRef words, llvm::StringRef more = "") {
    svg += llvm::formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\""
                         "{3}>{4}</text>\n",
                         atX, atY, anchor, more, escaped(words));
  };
  auto line = [&](llvm::StringRef kind, double x0, double y0, double x1,
                  double y1) {
    svg += llvm::formatv(
        "<path class=\"{0}\" d=\"M{1:f1} {2:f1} L{3:f1} {4:f1}\"/>\n", kind, x0,
        y0, x1, y1);
  };
  text(left, 26, "start", title, " class=\"title\"");
  for (double tick : across.ticks) {
    line("grid", across.place(tick), top, across.place(tick), bottom);
    text(across.place(tick), bottom + 20, "middle", numberOf(tick, x.scale));
  }
  for (double tick : up.ticks) {
    line("grid", left, up.place(tick), right, up.place(tick));
    text(left - 8, up.place(tick) + 4, "end", numberOf(tick, y.scale));
  }
  text((left + right) / 2, bottom + 44, "middle", x.label);
  double middle = (top + bottom) / 2;
  text(20, middle, "middle", y.label,
       llvm::formatv(" transform=\"rotate(-90 20 {0:f1})\"", middle).str());

  double legend = top + 10;
  auto entry = [&](llvm::StringRef kind, llvm::StringRef name) {
    line(kind, right + 16, legend - 4, right + 48, legend - 4);
    text(right + 56, legend, "start", name);
    legend += 22;
  };
  for (const auto &[number, entries] : llvm::enumerate(series)) {
    auto [name, points] = entries;
    llvm::sort(points);
    // Every second one is dashed: colours are not all that tells them apart.
    std::string kind = llvm::formatv("line{0} c{1}", number % 2 ? " other" : "",
                                     number % numColors);
    std::string path, marks;
    for (auto [atX, atY] : points) {
      path += llvm::formatv("{0}{1:f1} {2:f1}", path.empty() ? "M" : " L",
                            across.place(atX), up.place(atY));
      marks +=
          llvm::formatv("<circle class=\"line c{0}\" cx=\"{1:f1}\" "
                        "cy=\"{2:f1}\" r=\"3\"/>\n",
                        number % numColors, across.place(atX), up.place(atY));
    }
    svg += llvm::formatv("<path class=\"{0}\" d=\"{1}\"/>\n{2}", kind, path,
                         marks);
    entry(kind, name);
  }
  if (bar > 0) {
    line("bar", left, up.place(bar), right, up.place(bar));
    entry("bar", barName);
  }
  return svg + "</svg>\n";
}
