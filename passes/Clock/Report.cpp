//===- Report.cpp - what a clock showed -----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/Report.h"

#include "passes/Explain/Recording.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace burst;

/// Waiting for less than this is not what limits.
static constexpr double littleWaiting = 0.05;

static std::string timeText(double seconds) {
  constexpr std::pair<double, const char *> units[] = {
      {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
  for (auto [unit, name] : units)
    if (seconds >= 0.99999 * unit || unit == 1e-6)
      return llvm::formatv("{0:f2} {1}", seconds / unit, name);
  llvm_unreachable("the last unit takes all");
}

static std::string percent(double share) {
  return llvm::formatv("{0:f1} %", 100 * share);
}

static std::string roundedBytes(double count) {
  return bytesText(static_cast<int64_t>(std::llround(count)));
}

/// "axis 1 of the grid", where there are several.
static std::string axisText(const Timed &timed, size_t axis) {
  return timed.axes.empty() ? std::string("")
                            : llvm::formatv(" along axis {0}", axis).str();
}

/// The axis along which it is most.
template <typename Range, typename Part>
static size_t largestAxis(const Range &axes, Part part) {
  return std::distance(
      axes.begin(), llvm::max_element(axes, [&](const auto &a, const auto &b) {
        return part(a) < part(b);
      }));
}

/// "bandwidth of transfers along axis 1: 20 % of the time ..."
static std::string shareText(const Timed &timed, StringRef what, size_t axis,
                             double seconds, StringRef ofWhat) {
  return llvm::formatv("{0} of transfers{1}: {2} of the time {3}", what,
                       axisText(timed, axis),
                       percent(seconds / timed.clocked.seconds()), ofWhat);
}

/// Others come late to transfers: since they compute longer, or since they wait
/// themselves, which the path to the end tells.
static std::string describeLatePeers(const Timed &timed,
                                     const Clocked::Rank &rank) {
  const Path &path = rank.path;
  double more = path.compute - timed.computeMean;
  double bandwidth = path.ofBandwidth(), latency = path.ofLatency();
  if (more >= std::max(bandwidth, latency))
    return llvm::formatv("imbalance: {0} of computation lead to the end, and "
                         "ranks compute {1} on average",
                         timeText(path.compute), timeText(timed.computeMean));
  const auto &axes = bandwidth > latency ? path.bandwidth : path.latency;
  size_t axis = largestAxis(axes, [](double seconds) { return seconds; });
  return shareText(timed, bandwidth > latency ? "bandwidth" : "latency", axis,
                   axes[axis], "leads to the end by it, rank behind rank");
}

/// How long the rank that ends last waits for the bandwidth of links.
static double waitsForBandwidth(const Clocked &clocked) {
  const Clocked::Rank &rank = clocked.ranks[clocked.last()];
  return rank.end == 0 ? 0 : rank.waiting().bandwidth / rank.end;
}

/// The entry of a machine that says how fast transfers along an axis are, of
/// which the narrowest has this bandwidth.
static double &bandwidthAlong(Machine &machine, size_t axis, double narrowest) {
  if (axis < machine.areAxesStated.size() && machine.areAxesStated[axis])
    return machine.axes[axis]->bandwidth;
  bool isInside = machine.nodes.areDescribed() &&
                  narrowest == machine.nodes.inside.bandwidth;
  return isInside ? machine.nodes.inside.bandwidth : machine.whole.bandwidth;
}

/// With which bandwidth along an axis the last rank would hardly wait for any,
/// by the clock; empty where runs take long.
static std::string describeNeed(func::FuncOp program, const Recorded &recorded,
                                const Machine &machine, size_t axis,
                                double narrowest) {
  constexpr size_t mostEvents = 1 << 17;
  size_t events = 0;
  for (const std::vector<RankEvent> &ofRank : recorded.ranks)
    events += ofRank.size();
  if (events > mostEvents)
    return "";
  Machine wide = machine;
  double &bandwidth = bandwidthAlong(wide, axis, narrowest);
  double has = bandwidth, least = 0, enough = bandwidth;
  auto hides = [&](double tried) {
    bandwidth = tried;
    return waitsForBandwidth(runClock(recorded, wide, program)) < littleWaiting;
  };
  constexpr double most = 16, close = 1.01;
  do {
    if (enough >= most * has)
      return llvm::formatv("; {0:f0} times as much would not be enough", most);
    least = enough;
    enough *= 2;
  } while (!hides(enough));
  while (enough > close * least) {
    double middle = std::sqrt(least * enough);
    (hides(middle) ? enough : least) = middle;
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("; with %.4g GB/s it would wait for less than %g %%",
                      enough / 1e9, 100 * littleWaiting);
  return text;
}

/// What the rank that ends last spends its time on.
static std::string describeLimit(const Timed &timed, func::FuncOp program,
                                 const Recorded &recorded,
                                 const Machine &machine) {
  const Clocked::Rank &rank = timed.clocked.ranks[timed.clocked.last()];
  double end = rank.end;
  if (end == 0)
    return "nothing: no rank computes or waits";
  Waiting all = rank.waiting();
  if (all.seconds() < littleWaiting * end) {
    std::string text = "computation: the last rank computes for " +
                       percent(rank.compute / end);
    if (machine.kernels.peak != 0)
      text +=
          llvm::formatv(", all at {0} of the peak", percent(timed.sharePeak));
    return text;
  }
  if (all.peer >= std::max(all.bandwidth, all.latency))
    return describeLatePeers(timed, rank);
  constexpr StringLiteral waits = "the last rank waits for it";
  if (all.latency > all.bandwidth) {
    size_t axis = largestAxis(
        rank.waits, [](const Waiting &waiting) { return waiting.latency; });
    return shareText(timed, "latency", axis, rank.waits[axis].latency, waits);
  }
  size_t axis = largestAxis(
      rank.waits, [](const Waiting &waiting) { return waiting.bandwidth; });
  return shareText(timed, "bandwidth", axis, rank.waits[axis].bandwidth,
                   waits) +
         describeNeed(program, recorded, machine, axis, rank.narrowest[axis]);
}

FailureOr<Timed> burst::timeProgram(func::FuncOp program,
                                    ArrayRef<Argument> globals,
                                    const Machine &machine, int64_t shown) {
  std::unique_ptr<Simulation> simulation =
      Simulation::create(program, maxPlannedRanks);
  if (!simulation)
    return failure();
  FailureOr<Recorded> recorded = record(*simulation, globals, machine);
  if (failed(recorded))
    return failure();
  Timed timed;
  timed.name = program.getName();
  timed.ranks = simulation->numRanks();
  timed.clocked = runClock(*recorded, machine, program, shown);
  timed.axes = axesOfSeveral(program);
  auto ranks = static_cast<double>(timed.ranks);
  for (const Clocked::Rank &rank : timed.clocked.ranks)
    timed.computeMean += rank.compute / ranks;
  for (const Traffic &traffic : recorded->traffic) {
    timed.bytesSent += static_cast<double>(traffic.totalBytes()) / ranks;
    timed.peakBytes =
        std::max(timed.peakBytes, static_cast<double>(traffic.peakBytes));
  }
  for (double operations : recorded->operations)
    timed.flops += operations;
  double seconds = timed.clocked.seconds();
  if (!std::isfinite(seconds) || !std::isfinite(timed.flops))
    return emitError(program.getLoc(),
                     "has no finite time on this machine; is an entry of it "
                     "too small or too large?");
  if (machine.kernels.peak != 0 && seconds > 0)
    timed.sharePeak = timed.flops / ranks / seconds / machine.kernels.peak;
  timed.memory = machine.whole.memory;
  timed.limit = describeLimit(timed, program, *recorded, machine);
  timed.steps = std::move(recorded->steps);
  timed.channels = std::move(recorded->channels);
  return timed;
}

//===----------------------------------------------------------------------===//
// Text and JSON
//===----------------------------------------------------------------------===//

void burst::print(const Timed &timed, raw_ostream &os) {
  const Clocked::Rank &rank = timed.clocked.ranks[timed.clocked.last()];
  os << "program @" << timed.name << ", " << timed.ranks
     << " ranks: " << timeText(timed.clocked.seconds());
  if (timed.sharePeak != 0)
    os << ", " << percent(timed.sharePeak) << " of the peak";
  os << "\n  the last rank computes for " << timeText(rank.compute)
     << ", all of them for " << timeText(timed.computeMean) << " on average\n"
     << "  and waits for " << timeText(rank.waiting().seconds());
  if (!timed.axes.empty())
    for (int64_t axis : timed.axes)
      os << ", on [" << axis << "] for "
         << timeText(rank.waits[axis].seconds());
  os << "\n  a rank sends " << roundedBytes(timed.bytesSent)
     << " on average, and holds at most " << roundedBytes(timed.peakBytes);
  if (timed.peakBytes > timed.memory)
    os << ", more than the " << roundedBytes(timed.memory) << " that it has";
  os << "\n  limited by " << timed.limit << "\n";
}

static llvm::json::Object toJson(const Waiting &waiting) {
  return llvm::json::Object{{"peer", waiting.peer},
                            {"bandwidth", waiting.bandwidth},
                            {"latency", waiting.latency}};
}

llvm::json::Object burst::toJson(const Timed &timed) {
  const Clocked::Rank &rank = timed.clocked.ranks[timed.clocked.last()];
  llvm::json::Array waits;
  for (const Waiting &waiting : rank.waits)
    waits.push_back(::toJson(waiting));
  llvm::json::Array bandwidth, latency;
  for (size_t axis = 0; axis < std::min(rank.waits.size(), Path::maxAxes);
       ++axis) {
    bandwidth.push_back(rank.path.bandwidth[axis]);
    latency.push_back(rank.path.latency[axis]);
  }
  llvm::json::Object found{
      {"program", llvm::json::fixUTF8(timed.name)},
      {"ranks", timed.ranks},
      {"seconds", timed.clocked.seconds()},
      {"compute_seconds", rank.compute},
      {"compute_seconds_mean", timed.computeMean},
      {"exposed_seconds", rank.waiting().seconds()},
      {"exposed_seconds_by_axis", std::move(waits)},
      {"path", llvm::json::Object{{"compute", rank.path.compute},
                                  {"bandwidth", std::move(bandwidth)},
                                  {"latency", std::move(latency)}}},
      {"bytes_sent", timed.bytesSent},
      {"peak_bytes", timed.peakBytes},
      {"fits", timed.peakBytes <= timed.memory},
      {"flops", timed.flops},
      {"limit", timed.limit},
  };
  if (timed.sharePeak != 0)
    found["share_of_peak"] = timed.sharePeak;
  return found;
}

void burst::printTable(ArrayRef<std::pair<std::string, Timed>> rows,
                       raw_ostream &os) {
  SmallVector<SmallVector<std::string>> lines{
      {"", "time", "computes", "waits", "sent", "holds", "of the fastest"}};
  double fastest = std::numeric_limits<double>::infinity();
  for (const auto &[name, timed] : rows)
    if (timed.peakBytes <= timed.memory)
      fastest = std::min(fastest, timed.clocked.seconds());
  for (const auto &[name, timed] : rows) {
    const Clocked::Rank &rank = timed.clocked.ranks[timed.clocked.last()];
    bool fits = timed.peakBytes <= timed.memory;
    lines.push_back(
        {(fits ? "" : "- ") + name, timeText(timed.clocked.seconds()),
         timeText(rank.compute), timeText(rank.waiting().seconds()),
         roundedBytes(timed.bytesSent), roundedBytes(timed.peakBytes),
         llvm::formatv("{0:f2}", timed.clocked.seconds() / fastest)});
  }
  printAligned(lines, os);
  if (llvm::any_of(rows, [](const auto &row) {
        return row.second.peakBytes > row.second.memory;
      }))
    os << "- holds more than a rank has\n";
}

//===----------------------------------------------------------------------===//
// Timelines
//===----------------------------------------------------------------------===//

static std::string nameOf(const Timed &timed, const Span &span) {
  if (span.step >= 0)
    return timed.steps[span.step].str();
  return llvm::formatv("to rank {0}, {1}", span.to, roundedBytes(span.bytes));
}

/// Computation is the first lane of a rank, and each channel another.
llvm::json::Object burst::toTrace(ArrayRef<Timed> all) {
  llvm::json::Array events;
  int64_t firstRank = 0; // of a program
  for (const Timed &timed : all) {
    for (const Span &span : timed.clocked.spans) {
      int64_t lane = span.step >= 0 ? 0 : 1 + span.channel;
      events.push_back(
          llvm::json::Object{{"name", nameOf(timed, span)},
                             {"cat", span.step >= 0 ? "compute" : "transfer"},
                             {"ph", "X"},
                             {"ts", span.begin * 1e6},
                             {"dur", (span.end - span.begin) * 1e6},
                             {"pid", firstRank + span.rank},
                             {"tid", lane}});
    }
    std::map<int64_t, int64_t> ranks;
    for (const Span &span : timed.clocked.spans)
      ranks[span.rank] = 0;
    for (auto [rank, unused] : ranks) {
      events.push_back(llvm::json::Object{
          {"name", "process_name"},
          {"ph", "M"},
          {"pid", firstRank + rank},
          {"args",
           llvm::json::Object{
               {"name", llvm::formatv("@{0} rank {1}",
                                      llvm::json::fixUTF8(timed.name), rank)
                            .str()}}}});
      for (size_t lane = 0; lane <= timed.channels.size(); ++lane)
        events.push_back(llvm::json::Object{
            {"name", "thread_name"},
            {"ph", "M"},
            {"pid", firstRank + rank},
            {"tid", static_cast<int64_t>(lane)},
            {"args",
             llvm::json::Object{
                 {"name", lane == 0 ? std::string("computes")
                                    : llvm::formatv("sends on channel {0}",
                                                    timed.channels[lane - 1])
                                          .str()}}}});
    }
    firstRank += timed.ranks;
  }
  return llvm::json::Object{{"displayTimeUnit", "ns"},
                            {"traceEvents", std::move(events)}};
}

static std::string escaped(StringRef text) {
  std::string valid = llvm::json::fixUTF8(text), result;
  llvm::raw_string_ostream stream(result);
  llvm::printHTMLEscaped(valid, stream);
  return result;
}

/// A line for each rank: what it computes above, what it sends below.
void burst::drawTimeline(ArrayRef<Timed> all, raw_ostream &os) {
  constexpr int left = 70, width = 900, rowHeight = 26, titleHeight = 34;
  int height = 10;
  for (const Timed &timed : all) {
    int64_t rows = 0;
    for (const Span &span : timed.clocked.spans)
      rows = std::max(rows, span.rank + 1);
    height += titleHeight + static_cast<int>(rows) * rowHeight;
  }
  os << llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" "
                      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
                      "font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" "
                      "fill=\"white\"/>\n",
                      left + width + 10, height);
  int top = 0;
  for (const Timed &timed : all) {
    double seconds = std::max(timed.clocked.seconds(), 1e-12);
    os << llvm::formatv("<text x=\"6\" y=\"{0}\">@{1}, {2} ranks: {3}; dark: "
                        "computes, light: sends</text>\n",
                        top + 20, escaped(timed.name), timed.ranks,
                        timeText(seconds));
    top += titleHeight;
    int64_t rows = 0;
    for (const Span &span : timed.clocked.spans)
      rows = std::max(rows, span.rank + 1);
    for (int64_t rank = 0; rank < rows; ++rank)
      os << llvm::formatv("<text x=\"6\" y=\"{0}\">rank {1}</text>\n",
                          top + static_cast<int>(rank) * rowHeight + 14, rank);
    for (const Span &span : timed.clocked.spans) {
      bool computes = span.step >= 0;
      double y = top + static_cast<double>(span.rank) * rowHeight +
                 (computes ? 3.0 : 14.0 + 4.0 * span.channel);
      os << llvm::formatv(
          "<rect x=\"{0:f2}\" y=\"{1:f1}\" width=\"{2:f2}\" height=\"{3}\" "
          "fill=\"{4}\"><title>{5}, {6}</title></rect>\n",
          left + span.begin / seconds * width, y,
          (span.end - span.begin) / seconds * width, computes ? 10 : 3,
          computes ? "#35618f" : "#e0a030", nameOf(timed, span),
          timeText(span.end - span.begin));
    }
    top += static_cast<int>(rows) * rowHeight;
  }
  os << "</svg>\n";
}
