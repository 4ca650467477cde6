//===- AttentionNames.h - names in descriptions -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fields of burst_attention that hold names, the names that they know, and
// the tables that names take. The names are those of the dialect
// (BurstAttrs.td), whose parser reads their parameters.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_JIT_ATTENTION_NAMES_H
#define BURST_JIT_ATTENTION_NAMES_H

#include "burst/burst.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace burst::jit {

/// A field that holds names.
struct Field {
  const char *name;
  std::span<const std::string_view> known; ///< empty: passes know them
  const char *example;
  /// In the module its value has a line of its own, which begins so.
  std::string_view line;
  const char *(*valueOf)(const burst_attention &);
};

inline constexpr std::string_view masks[] = {"full", "causal", "window",
                                             "prefix", "documents"};
inline constexpr std::string_view scores[] = {"alibi", "softcap", "bias"};
inline constexpr std::string_view orders[] = {"contiguous", "zigzag",
                                              "striped"};

inline constexpr Field maskField{
    "mask", masks, "[causal, window<left = 4>]", "      mask ",
    [](const burst_attention &a) { return a.mask; }};
inline constexpr Field scoreField{
    "score", scores, "[softcap<30.0>, alibi]", "      score ",
    [](const burst_attention &a) { return a.score; }};
/// The first axis that shards the sequence; num_axes where none does.
inline int64_t firstSequenceAxis(const burst_attention &a) {
  int64_t axis = 0;
  while (axis < a.num_axes && a.axes[axis].shards &&
         std::string_view(a.axes[axis].shards) != "sequence")
    ++axis;
  return axis;
}
inline constexpr Field orderField{
    "order", orders, "striped 64", "      sequence ",
    [](const burst_attention &a) -> const char * {
      int64_t axis = firstSequenceAxis(a);
      return axis < a.num_axes ? a.axes[axis].order : nullptr;
    }};
inline constexpr Field strategyField{
    "strategy", {}, "ring_kv", "      strategy ", [](const burst_attention &a) {
      return a.strategy;
    }};

/// A table that a mask or a score takes: an argument of the program.
struct Table {
  std::string_view taker;
  const char *argument;
  int64_t burst_attention::*rows, burst_attention::*columns;
  bool isIds; ///< i32, otherwise of the type of lse
};

/// In the order of arguments, and of what one taker takes.
inline constexpr Table tables[] = {
    {"documents", "query_ids", &burst_attention::query_length, nullptr, true},
    {"documents", "key_ids", &burst_attention::key_length, nullptr, true},
    {"alibi", "slopes", &burst_attention::query_heads, nullptr, false},
    {"bias", "bias", &burst_attention::query_length,
     &burst_attention::key_length, false}};

/// A name as it was written.
struct Name {
  std::string_view name;
  std::string_view text; ///< with its parameters
};
using Names = std::vector<Name>;

inline bool takesTables(const Name &name) {
  return std::any_of(std::begin(tables), std::end(tables),
                     [&](const Table &t) { return t.taker == name.name; });
}

// Read what a field may hold, and nothing else: it becomes part of a module,
// the rest of which is none of the caller's. False: it is something else.

/// NAME or [NAME, ...], where NAME is a word that may have parameters in < >.
bool readList(std::string_view text, Names &names);
/// A word, behind which there may be a number.
bool readOrder(std::string_view text, Name &order);
/// NAME, ..., where NAME is a word that may have axes: `on [0, 1]`.
bool readStrategy(std::string_view text, Name &strategy);

} // namespace burst::jit

#endif // BURST_JIT_ATTENTION_NAMES_H
