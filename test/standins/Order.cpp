//===- Order.cpp - Which operations are ordered ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/standins/Order.h"

#include <algorithm>

namespace burst::standins {

void Clock::join(const Clock &clock) {
  if (ticks.size() < clock.ticks.size())
    ticks.resize(clock.ticks.size());
  for (size_t i = 0; i < clock.ticks.size(); ++i)
    ticks[i] = std::max(ticks[i], clock.ticks[i]);
}

uint32_t Clock::tick(uint32_t agent) {
  if (ticks.size() <= agent)
    ticks.resize(agent + 1);
  return ++ticks[agent];
}

Accesses::Segments::iterator Accesses::split(uint64_t at) {
  auto after = segments.lower_bound(at);
  if (after == segments.begin() ||
      (after != segments.end() && after->first == at))
    return after;
  auto before = std::prev(after);
  if (before->second.end <= at)
    return after;
  Segment rest = before->second;
  before->second.end = at;
  return segments.emplace_hint(after, at, std::move(rest));
}

std::optional<Conflict> Accesses::read(Range range, const StepRef &step,
                                       const Clock &clock) {
  std::optional<Conflict> found;
  auto next = split(range.begin);
  split(range.end);
  for (uint64_t at = range.begin; at < range.end;) {
    if (next == segments.end() || next->first > at) {
      uint64_t end =
          next == segments.end() ? range.end : std::min(range.end, next->first);
      next = segments.emplace_hint(next, at, Segment{end, nullptr, {}});
    }
    Segment &segment = next->second;
    if (!found && segment.writer && !clock.covers(*segment.writer))
      found = Conflict{{at, segment.end}, segment.writer, true};
    // Whoever is ordered after this read is ordered after those before it.
    std::erase_if(segment.readers,
                  [&](const StepRef &reader) { return clock.covers(*reader); });
    segment.readers.push_back(step);
    at = segment.end;
    ++next;
  }
  return found;
}

std::optional<Conflict> Accesses::write(Range range, const StepRef &step,
                                        const Clock &clock) {
  std::optional<Conflict> found;
  auto next = split(range.begin);
  split(range.end);
  while (next != segments.end() && next->first < range.end) {
    const Segment &segment = next->second;
    for (const StepRef &reader : segment.readers)
      if (!found && !clock.covers(*reader))
        found = Conflict{{next->first, segment.end}, reader, false};
    if (!found && segment.writer && !clock.covers(*segment.writer))
      found = Conflict{{next->first, segment.end}, segment.writer, true};
    next = segments.erase(next);
  }
  segments.emplace_hint(next, range.begin, Segment{range.end, step, {}});
  return found;
}

std::optional<Conflict> Accesses::add(Range range, bool writes,
                                      const StepRef &step, const Clock &clock) {
  if (range.begin >= range.end)
    return std::nullopt;
  return writes ? write(range, step, clock) : read(range, step, clock);
}

} // namespace burst::standins
