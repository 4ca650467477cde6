//===- RunClock.cpp - all ranks at once, event by event -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/Clock/Symmetry.h"

#include <deque>
#include <queue>

using namespace mlir;
using namespace burst;

Waiting Clocked::Rank::waiting() const {
  Waiting sum;
  for (const Waiting &each : waits) {
    sum.peer += each.peer;
    sum.bandwidth += each.bandwidth;
    sum.latency += each.latency;
  }
  return sum;
}

int64_t Clocked::last() const {
  return std::max_element(
             ranks.begin(), ranks.end(),
             [](const Rank &a, const Rank &b) { return a.end < b.end; }) -
         ranks.begin();
}

namespace {

/// Links on which flows share the bandwidth, and how far apart ranks are.
class Topology {
public:
  /// Of the ranks that stand for all others, if `recorded` is there.
  Topology(const Machine &machine, func::FuncOp program,
           const Recorded *recorded);

  /// What a flow takes from one rank to another: the link out, the link in.
  struct Path {
    size_t out, in;
    double latency;
  };
  Path between(int64_t from, int64_t to) const;
  size_t axisBetween(int64_t from, int64_t to) const {
    return burst::axisBetween(axes, from, to);
  }
  /// Of grids with more axes than a path tells apart the last ones are one.
  size_t axisOfPath(int64_t from, int64_t to) const {
    return std::min(axisBetween(from, to), burst::Path::maxAxes - 1);
  }
  /// The first rank of the orbit of the node of this one: ranks of a node share
  /// its devices.
  size_t nodeOf(int64_t rank) const { return nodes[rank].first; }
  /// Of a rank that computes, as many do on its node.
  int64_t sharersOf(int64_t rank) const { return nodes[rank].times; }
  size_t numAxes() const { return axes.size(); }
  /// By link, bytes per second; and for each transfer on it, as many are there.
  std::vector<double> bandwidths;
  std::vector<int64_t> times;
  Symmetry symmetry;

private:
  /// A node or a card: the first of those that translations map onto it, and
  /// how many translations leave it where it is.
  struct Part {
    size_t first = 0;
    int64_t times = 1;
  };
  std::vector<Part> orbitsOf(ArrayRef<size_t> parts) const;
  size_t cardOf(int64_t rank) const;

  const Machine &machine;
  std::vector<Part> nodes, cards; ///< by rank
  SmallVector<Axis> axes;         ///< of the grid
  std::vector<int64_t> places;    ///< of ranks, in a row over all nodes
  int64_t ranks, node, cardsOfNode;
  /// The first link: to others of the node, to others on an axis that the
  /// module describes, of cards; those in follow those out.
  size_t ofNodes, ofAxes, ofCards, numCards;
};

/// A transfer of a rank, from its start on.
struct Post {
  int64_t to = -1, from = -1;
  double bytes = 0;
  bool isSent = true, hasArrived = true;
  double posted = 0;
  /// Of what is received: when both ranks had come to it, when it began to come
  /// and when all is there. In between other transfers of the channel are
  /// first.
  double met = 0, began = 0, ready = 0, latency = 0;
  bool isOut = false, isIn = false; ///< under way
  bool isWaitedFor = false;
  /// To where the rank came to it, and to where what is received is there.
  Path posting, arriving;

  bool isDone() const { return isSent && hasArrived; }
};

/// What is under way from one rank to another.
struct Flow {
  int64_t from = 0, to = 0;
  Post *sent = nullptr, *received = nullptr;
  Topology::Path path{};
  double left = 0, rate = 0, since = 0;
  uint32_t version = 0;
  bool isActive = false;
  int channel = 0;
};

enum class Happens : uint8_t { ComputeEnds, FlowEnds, WaitEnds };

struct Event {
  double time;
  int64_t which; ///< a rank, or a flow
  uint32_t version;
  Happens kind;
  bool operator>(const Event &other) const {
    return std::tie(time, which) > std::tie(other.time, other.which);
  }
};

/// A rank at a time.
struct Walker {
  size_t next = 0; ///< event
  double now = 0;
  /// Of what it computes: seconds with all processors that are left.
  double left = 0, since = 0, began = 0, speed = 1;
  bool isComputing = false, isWaiting = false;
  uint32_t version = 0;
  int numFlows = 0;
  Path path;              ///< to now
  std::deque<Post> posts; ///< but for the first, which are gone
  int32_t numGone = 0;
  std::vector<std::deque<Post *>> queues; ///< by channel
};

class Clock {
public:
  Clock(const Recorded &recorded, const Machine &machine, func::FuncOp program,
        int64_t shown, bool findsSymmetry)
      : recorded(recorded),
        topology(machine, program, findsSymmetry ? &recorded : nullptr),
        slowed(1 - machine.kernels.busy), devices(machine.kernels.devices),
        shown(shown), flowsOf(topology.bandwidths.size()),
        walkers(recorded.ranks.size()), computing(walkers.size()) {
    clocked.ranks.resize(walkers.size());
    for (auto [walker, rank] : llvm::zip_equal(walkers, clocked.ranks)) {
      walker.queues.resize(recorded.channels.size());
      rank.waits.resize(topology.numAxes());
      rank.narrowest.assign(topology.numAxes(),
                            std::numeric_limits<double>::infinity());
    }
  }

  Clocked run();

private:
  double speedOf(int64_t rank) const {
    auto sharing = static_cast<double>(
        topology.sharersOf(rank) *
        static_cast<int64_t>(computing[topology.nodeOf(rank)].size()));
    return (walkers[rank].numFlows > 0 ? slowed : 1) *
           std::min(1.0, devices / sharing);
  }
  void setComputing(int64_t rank, bool isComputing);
  void setSpeed(int64_t rank);
  void advance(int64_t rank);
  void compute(int64_t rank, const RankEvent &event);
  void endCompute(int64_t rank);
  void reschedule(int64_t rank);
  void changeFlows(int64_t rank, int change);
  void start(int64_t rank, const RankEvent &event);
  void matchFrom(int64_t rank, int channel);
  void begin(int64_t from, int64_t to, int channel);
  void setRates(size_t link);
  void endFlow(int64_t number);
  bool wait(int64_t rank, const RankEvent &event);
  void record(int64_t rank, const RankEvent &event, double began, double ended);

  const Recorded &recorded;
  Topology topology;
  double slowed;  ///< by transfers
  double devices; ///< that the ranks of a node share
  int64_t shown;
  double now = 0;
  std::vector<Flow> flows;
  std::vector<int64_t> freeFlows;
  std::vector<SmallVector<int64_t, 4>> flowsOf; ///< by link
  std::vector<Walker> walkers;
  /// By node, the ranks that compute.
  std::vector<SmallVector<int64_t, 8>> computing;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  std::vector<std::pair<int64_t, int>> toMatch;
  Clocked clocked;
};

} // namespace

//===----------------------------------------------------------------------===//
// Links
//===----------------------------------------------------------------------===//

Topology::Topology(const Machine &machine, func::FuncOp program,
                   const Recorded *recorded)
    : symmetry(ring::gridOf(program)), machine(machine),
      ranks(ring::numRanks(program)) {
  shard::GridOp grid = ring::gridOf(program);
  places.resize(ranks);
  for (int64_t axis : llvm::seq(grid.getRank())) {
    RankGroup group = groupOf(grid, axis);
    int64_t stride = placedGroup(machine.nodes, grid, axis).stride;
    axes.push_back({axis, group.size});
    for (auto [rank, place] : llvm::enumerate(places))
      place += group.placeOf(static_cast<int64_t>(rank)) * stride;
  }
  const Nodes &described = machine.nodes;
  node = described.areDescribed() ? static_cast<int64_t>(described.size) : 1;
  cardsOfNode =
      described.cards == 0 ? node : static_cast<int64_t>(described.cards);
  numCards = llvm::divideCeil(ranks, node) * std::min(cardsOfNode, node);
  std::vector<size_t> nodeOfRank(ranks), cardOfRank(ranks);
  for (int64_t rank : llvm::seq(ranks)) {
    nodeOfRank[rank] = described.areDescribed() ? places[rank] / node : 0;
    cardOfRank[rank] = cardOf(rank);
  }
  if (recorded)
    symmetry = Symmetry(grid, *recorded, {nodeOfRank, cardOfRank});
  nodes = orbitsOf(nodeOfRank);
  cards = orbitsOf(cardOfRank);
  ofNodes = 0;
  bandwidths.assign(2 * ranks, described.inside.bandwidth);
  ofAxes = bandwidths.size();
  for (auto [axis, link] : llvm::enumerate(machine.axes))
    bandwidths.insert(bandwidths.end(), 2 * ranks, link ? link->bandwidth : 0);
  ofCards = bandwidths.size();
  // More cards than ranks are several for each.
  double ofCard =
      machine.whole.bandwidth * std::max(1.0, static_cast<double>(cardsOfNode) /
                                                  static_cast<double>(node));
  bandwidths.insert(bandwidths.end(), 2 * numCards, ofCard);
  times.assign(bandwidths.size(), 1);
  for (int64_t rank : llvm::seq(ranks))
    for (size_t link : {ofCards, ofCards + numCards})
      times[link + cards[rank].first] = cards[rank].times;
}

/// By rank, of the parts that ranks share.
std::vector<Topology::Part> Topology::orbitsOf(ArrayRef<size_t> parts) const {
  std::vector<Part> orbits(parts.size());
  for (auto [rank, orbit] : llvm::enumerate(orbits)) {
    auto own = static_cast<int64_t>(rank);
    if (int64_t first = symmetry.first(own); first != own) {
      orbit = orbits[first]; // of a rank in front
      continue;
    }
    SmallVector<int64_t> others = symmetry.orbit(own);
    auto all =
        llvm::map_range(others, [&](int64_t other) { return parts[other]; });
    orbit.first = *std::min_element(all.begin(), all.end());
    orbit.times = llvm::count(all, orbit.first);
  }
  return orbits;
}

size_t Topology::cardOf(int64_t rank) const {
  int64_t each = std::min(cardsOfNode, node);
  int64_t place = places[rank];
  return place / node * each + place % node * each / node;
}

/// From a rank that stands for others; the link in is that of the one which
/// stands for `to`.
Topology::Path Topology::between(int64_t from, int64_t to) const {
  size_t axis = axisBetween(from, to);
  int64_t target = symmetry.first(to);
  if (machine.areAxesStated.size() > axis && machine.areAxesStated[axis]) {
    size_t first = ofAxes + 2 * ranks * axis;
    return {first + from, first + ranks + target, machine.axes[axis]->latency};
  }
  if (places[from] / node == places[to] / node)
    return {ofNodes + from, ofNodes + ranks + target,
            machine.nodes.inside.latency};
  return {ofCards + cards[from].first, ofCards + numCards + cards[to].first,
          machine.whole.latency};
}

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

void Clock::record(int64_t rank, const RankEvent &event, double began,
                   double ended) {
  if (shown > 0 && ended > began)
    clocked.spans.push_back(
        {.rank = rank, .begin = began, .end = ended, .step = event.step});
}

void Clock::compute(int64_t rank, const RankEvent &event) {
  Walker &walker = walkers[rank];
  walker.left = event.amount;
  walker.since = walker.began = walker.now;
  setComputing(rank, true);
  walker.speed = speedOf(rank);
  reschedule(rank);
}

void Clock::reschedule(int64_t rank) {
  Walker &walker = walkers[rank];
  events.push({walker.since + walker.left / walker.speed, rank,
               ++walker.version, Happens::ComputeEnds});
}

/// Goes on at the speed that a rank has from now on.
void Clock::setSpeed(int64_t rank) {
  Walker &walker = walkers[rank];
  double speed = speedOf(rank);
  if (!walker.isComputing || speed == walker.speed)
    return;
  walker.left =
      std::max(0.0, walker.left - (now - walker.since) * walker.speed);
  walker.since = now;
  walker.speed = speed;
  reschedule(rank);
}

/// Ranks of a node share its devices.
void Clock::setComputing(int64_t rank, bool isComputing) {
  walkers[rank].isComputing = isComputing;
  if (std::isinf(devices))
    return;
  auto &ranks = computing[topology.nodeOf(rank)];
  if (isComputing)
    ranks.push_back(rank);
  else
    llvm::erase(ranks, rank);
  for (int64_t other : ranks)
    if (other != rank)
      setSpeed(other);
}

/// Transfers take some of the processors while any is under way.
void Clock::changeFlows(int64_t rank, int change) {
  walkers[rank].numFlows += change;
  setSpeed(rank);
}

void Clock::endCompute(int64_t rank) {
  Walker &walker = walkers[rank];
  const RankEvent &event = recorded.ranks[rank][walker.next];
  record(rank, event, walker.began, now);
  clocked.ranks[rank].compute += now - walker.began;
  walker.path.compute += now - walker.began;
  setComputing(rank, false);
  walker.now = now;
  ++walker.next;
  advance(rank);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void Clock::start(int64_t rank, const RankEvent &event) {
  Walker &walker = walkers[rank];
  Post &post = walker.posts.emplace_back();
  post.to = event.to;
  post.from = event.from;
  post.bytes = event.amount;
  post.isSent = event.to < 0;
  post.hasArrived = event.from < 0;
  post.posted = post.ready = walker.now;
  post.posting = walker.path;
  if (post.isDone())
    return;
  walker.queues[event.channel].push_back(&post);
  matchFrom(rank, event.channel);
}

/// Begins what can begin now that `rank` has another transfer in front.
void Clock::matchFrom(int64_t rank, int channel) {
  toMatch.push_back({rank, channel});
  while (!toMatch.empty()) {
    auto [r, c] = toMatch.back();
    toMatch.pop_back();
    auto &queue = walkers[r].queues[c];
    if (queue.empty())
      continue;
    Post &head = *queue.front();
    const Symmetry &symmetry = topology.symmetry;
    if (!head.isSent && !head.isOut) {
      auto &other = walkers[symmetry.first(head.to)].queues[c];
      if (!other.empty() && !other.front()->hasArrived &&
          !other.front()->isIn &&
          other.front()->from == symmetry.translateBack(r, head.to))
        begin(r, head.to, c);
    }
    if (!head.hasArrived && !head.isIn) {
      int64_t from = symmetry.first(head.from);
      auto &other = walkers[from].queues[c];
      if (!other.empty() && !other.front()->isSent && !other.front()->isOut &&
          other.front()->to == symmetry.translateBack(r, head.from))
        begin(from, other.front()->to, c);
    }
  }
}

void Clock::begin(int64_t from, int64_t to, int channel) {
  int64_t number = 0;
  if (freeFlows.empty()) {
    number = static_cast<int64_t>(flows.size());
    flows.emplace_back();
  } else {
    number = freeFlows.back();
    freeFlows.pop_back();
  }
  Flow &flow = flows[number];
  flow.from = from;
  flow.to = to;
  flow.channel = channel;
  flow.sent = walkers[from].queues[channel].front();
  int64_t receiver = topology.symmetry.first(to);
  flow.received = walkers[receiver].queues[channel].front();
  flow.path = topology.between(from, to);
  flow.left = flow.sent->bytes;
  flow.rate = 0;
  flow.since = now;
  flow.isActive = true;
  flow.sent->isOut = flow.received->isIn = true;
  flow.received->met = std::max(flow.sent->posted, flow.received->posted);
  flow.received->began = now;
  flow.received->arriving = flow.sent->posted > flow.received->posted
                                ? flow.sent->posting
                                : flow.received->posting;
  flow.received->latency = flow.path.latency;
  for (size_t link : {flow.path.out, flow.path.in})
    flowsOf[link].push_back(number);
  setRates(flow.path.out);
  setRates(flow.path.in);
  changeFlows(from, 1);
  changeFlows(receiver, 1);
}

/// What is under way on a link has the same part of it.
void Clock::setRates(size_t link) {
  for (int64_t number : flowsOf[link]) {
    Flow &flow = flows[number];
    auto partOf = [&](size_t each) {
      return topology.bandwidths[each] /
             static_cast<double>(topology.times[each] *
                                 static_cast<int64_t>(flowsOf[each].size()));
    };
    double rate = std::min(partOf(flow.path.out), partOf(flow.path.in));
    if (rate == flow.rate)
      continue;
    flow.left = std::max(0.0, flow.left - (now - flow.since) * flow.rate);
    flow.since = now;
    flow.rate = rate;
    events.push(
        {now + flow.left / rate, number, ++flow.version, Happens::FlowEnds});
  }
}

void Clock::endFlow(int64_t number) {
  Flow flow = flows[number];
  flows[number].isActive = false;
  freeFlows.push_back(number);
  if (shown > 0)
    clocked.spans.push_back({.rank = flow.from,
                             .begin = flow.received->began,
                             .end = now,
                             .channel = flow.channel,
                             .to = flow.to,
                             .bytes = flow.sent->bytes});
  flow.sent->isSent = flow.received->hasArrived = true;
  flow.received->ready = now + flow.path.latency;
  int64_t receiver = topology.symmetry.first(flow.to);
  double &narrowest = clocked.ranks[receiver]
                          .narrowest[topology.axisBetween(flow.from, flow.to)];
  for (size_t link : {flow.path.out, flow.path.in})
    narrowest = std::min(narrowest, topology.bandwidths[link]);
  size_t axis = topology.axisOfPath(flow.from, flow.to);
  flow.received->arriving.bandwidth[axis] += now - flow.received->met;
  flow.received->arriving.latency[axis] += flow.path.latency;
  for (size_t link : {flow.path.out, flow.path.in}) {
    llvm::erase(flowsOf[link], number);
    setRates(link);
  }
  const int64_t ends[] = {flow.from, receiver};
  for (int64_t rank : ends) {
    auto &queue = walkers[rank].queues[flow.channel];
    if (!queue.empty() && queue.front()->isDone())
      queue.pop_front();
  }
  for (int64_t rank : ends)
    changeFlows(rank, -1);
  for (int64_t rank : ends)
    matchFrom(rank, flow.channel);
  for (int64_t rank : ends)
    if (walkers[rank].isWaiting)
      advance(rank);
}

/// Whether what the rank waits for is there; then it goes on, at once or when
/// it has come.
bool Clock::wait(int64_t rank, const RankEvent &event) {
  Walker &walker = walkers[rank];
  const Post *slowest = nullptr;
  for (int32_t i = event.to; i < event.to + event.from; ++i) {
    const Post &post = walker.posts[i - walker.numGone];
    if (!post.isDone())
      return false;
    if (!slowest || post.ready > slowest->ready)
      slowest = &post;
  }
  double end = std::max(now, slowest->ready), begin = walker.now;
  if (slowest->from >= 0 && end > begin) {
    Waiting &waiting =
        clocked.ranks[rank].waits[topology.axisBetween(slowest->from, rank)];
    double comes = std::clamp(slowest->met, begin, end);
    double arrives = std::clamp(end - slowest->latency, comes, end);
    waiting.peer += comes - begin;
    waiting.bandwidth += arrives - comes;
    waiting.latency += end - arrives;
    walker.path = slowest->arriving;
    walker.path.bandwidth[topology.axisOfPath(slowest->from, rank)] +=
        end - slowest->ready; // until the rank's own is sent
  } else if (end > begin) {   // until all is sent
    walker.path.bandwidth[topology.axisOfPath(slowest->to, rank)] +=
        end - begin;
    clocked.ranks[rank]
        .waits[topology.axisBetween(slowest->to, rank)]
        .bandwidth += end - begin;
  }
  walker.now = end;
  for (int32_t i = event.to; i < event.to + event.from; ++i)
    walker.posts[i - walker.numGone].isWaitedFor = true;
  for (; !walker.posts.empty() && walker.posts.front().isWaitedFor;
       ++walker.numGone)
    walker.posts.pop_front();
  return true;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// Lets a rank go on until it computes or waits.
void Clock::advance(int64_t rank) {
  Walker &walker = walkers[rank];
  const std::vector<RankEvent> &program = recorded.ranks[rank];
  for (; walker.next < program.size(); ++walker.next) {
    const RankEvent &event = program[walker.next];
    switch (event.kind) {
    case RankEvent::Kind::Compute:
      compute(rank, event);
      return;
    case RankEvent::Kind::Start:
      start(rank, event);
      break;
    case RankEvent::Kind::Wait:
      walker.isWaiting = !wait(rank, event);
      if (walker.isWaiting)
        return;
      if (walker.now > now) { // it is still on its way
        ++walker.next;
        events.push({walker.now, rank, ++walker.version, Happens::WaitEnds});
        return;
      }
      break;
    }
  }
  clocked.ranks[rank].end = walker.now;
  clocked.ranks[rank].path = walker.path;
}

Clocked Clock::run() {
  const Symmetry &symmetry = topology.symmetry;
  auto ranks = llvm::seq(static_cast<int64_t>(walkers.size()));
  for (int64_t rank : ranks)
    if (symmetry.first(rank) == rank)
      advance(rank);
  while (!events.empty()) {
    Event event = events.top();
    events.pop();
    now = event.time;
    switch (event.kind) {
    case Happens::FlowEnds:
      if (flows[event.which].isActive &&
          flows[event.which].version == event.version)
        endFlow(event.which);
      break;
    case Happens::ComputeEnds:
      if (walkers[event.which].version == event.version)
        endCompute(event.which);
      break;
    case Happens::WaitEnds:
      if (walkers[event.which].version == event.version)
        advance(event.which);
      break;
    }
  }
  for (int64_t rank : ranks)
    clocked.ranks[rank] = clocked.ranks[symmetry.first(rank)];
  std::vector<Span> spans = std::move(clocked.spans);
  clocked.spans.clear();
  for (const Span &span : spans)
    for (int64_t rank : symmetry.orbit(span.rank)) {
      if (rank >= shown)
        continue;
      clocked.spans.push_back(span);
      clocked.spans.back().rank = rank;
      if (span.to >= 0)
        clocked.spans.back().to = symmetry.translate(span.to, rank);
    }
  return std::move(clocked);
}

Clocked burst::runClock(const Recorded &recorded, const Machine &machine,
                        func::FuncOp program, int64_t shown,
                        bool findsSymmetry) {
  return Clock(recorded, machine, program, shown, findsSymmetry).run();
}
