//===- Attention.cpp - descriptions as modules ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Attention.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

using namespace burst;

namespace {

/// Texts and numbers, one behind the other. Not a stream of LLVM's: where
/// memory is out this one throws, see Api.cpp.
struct Text {
  std::string text;

  Text &operator<<(std::string_view part) {
    text += part;
    return *this;
  }
  Text &operator<<(int64_t number) { return *this << std::to_string(number); }
};

template <typename... Parts>
std::string join(const Parts &...parts) {
  Text joined;
  (joined << ... << parts);
  return std::move(joined.text);
}

/// Puts something between what is written, but not in front of the first.
class Separator {
public:
  explicit Separator(const char *text = ", ") : text(text) {}
  operator std::string_view() {
    return std::exchange(isFirst, false) ? "" : text;
  }

private:
  const char *text;
  bool isFirst = true;
};

constexpr int64_t maxLength = int64_t{1} << 40;

/// Checks fields; the first that is wrong makes the error.
class Checker {
public:
  explicit Checker(std::string &error) : error(error) {}

  void refuse(const char *field, const std::string &found,
              const std::string &wanted) {
    if (error.empty())
      error = join(field, " ", found, ", wanted ", wanted);
  }
  void range(const char *field, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high)
      refuse(field, std::to_string(value),
             join("a number from ", low, " to ", high));
  }
  /// -1, or from 1.
  void size(const char *field, int64_t value) {
    if (value != -1 && (value < 1 || value >= maxLength))
      refuse(field, std::to_string(value),
             "-1 (known at run time), or a number from 1 below 2^40");
  }
  void refuse(const char *field, double found, const std::string &wanted) {
    char text[40];
    snprintf(text, sizeof(text), "%.15g", found);
    refuse(field, std::string(text), wanted);
  }
  /// A field of something that was not chosen.
  void unused(const char *field, double value, bool isUsed, const char *by) {
    if (!isUsed && value != 0)
      refuse(field, value, join("0 without ", by));
  }

private:
  std::string &error;
};

bool has(int64_t sum, int64_t part) { return (sum & part) != 0; }

void check(const burst_attention &a, std::string &error) {
  Checker c(error);
  c.range("num_ranks", a.num_ranks, 1, std::numeric_limits<int32_t>::max());
  if (a.type != BURST_F64 && a.type != BURST_F32 && a.type != BURST_BF16 &&
      a.type != BURST_F16)
    c.refuse("type", std::to_string(a.type),
             "BURST_F64, BURST_F32, BURST_BF16 or BURST_F16");
  c.size("batch", a.batch);
  c.size("query_length", a.query_length);
  c.size("key_length", a.key_length);
  c.range("key_heads", a.key_heads, 1, maxLength);
  c.range("query_heads", a.query_heads, 1, maxLength);
  if (a.key_heads > 0 && a.query_heads % a.key_heads != 0)
    c.refuse("query_heads", std::to_string(a.query_heads),
             join("a multiple of key_heads, which is ", a.key_heads));
  c.range("head_dim", a.head_dim, 1, 256);
  c.range("value_dim", a.value_dim, 0, 256);
  c.range("order", a.order, BURST_CONTIGUOUS, BURST_STRIPED);
  c.range("block", a.block, 0, maxLength);
  c.unused("block", static_cast<double>(a.block), a.order == BURST_STRIPED,
           "BURST_STRIPED");
  c.range("mask", a.mask, 0, 15);
  bool window = has(a.mask, BURST_MASK_WINDOW);
  c.range("window_left", a.window_left, -1, maxLength);
  c.range("window_right", a.window_right, -1, maxLength);
  c.unused("window_left", static_cast<double>(a.window_left), window,
           "BURST_MASK_WINDOW");
  c.unused("window_right", static_cast<double>(a.window_right), window,
           "BURST_MASK_WINDOW");
  c.range("prefix_length", a.prefix_length, 0, maxLength);
  c.unused("prefix_length", static_cast<double>(a.prefix_length),
           has(a.mask, BURST_MASK_PREFIX), "BURST_MASK_PREFIX");
  c.range("score", a.score, 0, 3);
  bool softcap = has(a.score, BURST_SCORE_SOFTCAP);
  c.unused("softcap", a.softcap, softcap, "BURST_SCORE_SOFTCAP");
  bool holds = a.softcap >= 0x1p-126 && a.softcap <= 0x1p127; // not of NaN
  if (softcap && !holds)
    c.refuse("softcap", a.softcap, "a number from 2^-126 to 2^127");
  if (!std::isfinite(a.scale))
    c.refuse("scale", a.scale, "a finite number");
  c.range("pass", a.pass, BURST_FORWARD, BURST_BACKWARD);
  c.range("travel", a.travel, BURST_TRAVEL_CHOSEN, BURST_TRAVEL_QUERIES);
}

/// Writes the module; the description was checked.
class Writer {
public:
  explicit Writer(const burst_attention &a)
      : a(a), element(elementName()),
        state(a.type == BURST_F64 ? "f64" : "f32") {}

  std::string write();

private:
  const char *elementName() const {
    switch (a.type) {
    case BURST_F64:
      return "f64";
    case BURST_F32:
      return "f32";
    case BURST_BF16:
      return "bf16";
    default:
      return "f16";
    }
  }
  static std::string size(int64_t value) {
    return value < 0 ? "?" : std::to_string(value);
  }
  /// Exactly the number, as MLIR reads it.
  static std::string number(double value) {
    char text[40];
    snprintf(text, sizeof(text), "%.17e", value);
    return text;
  }
  std::string tensor(int64_t length, int64_t heads, int64_t dim) const {
    return join("tensor<", size(a.batch), "x", size(length), "x", heads, "x",
                dim, "x", element, ">");
  }
  /// A table that is not sharded.
  static std::string table(const std::string &length, const char *type) {
    return join("tensor<", length, "x", type, ">");
  }
  std::string queryIds() const { return table(size(a.query_length), "i32"); }
  std::string keyIds() const { return table(size(a.key_length), "i32"); }
  std::string slopes() const {
    return table(std::to_string(a.query_heads), state);
  }
  void writeMask(Text &out) const;
  void writeScore(Text &out) const;
  void writeOrder(Text &out) const;

  const burst_attention &a;
  const char *element, *state;
};

void Writer::writeMask(Text &out) const {
  Separator comma;
  if (a.mask == 0)
    return;
  out << "      mask [";
  if (has(a.mask, BURST_MASK_CAUSAL))
    out << comma << "causal";
  // A window without bounds keeps everything.
  if (has(a.mask, BURST_MASK_WINDOW) && a.window_left < 0 && a.window_right < 0)
    out << comma << "full";
  else if (has(a.mask, BURST_MASK_WINDOW)) {
    Separator inner;
    out << comma << "window<";
    if (a.window_left >= 0)
      out << inner << "left = " << a.window_left;
    if (a.window_right >= 0)
      out << inner << "right = " << a.window_right;
    out << ">";
  }
  if (has(a.mask, BURST_MASK_PREFIX))
    out << comma << "prefix<" << a.prefix_length << ">";
  if (has(a.mask, BURST_MASK_DOCUMENTS))
    out << comma << "documents";
  out << "]";
  if (has(a.mask, BURST_MASK_DOCUMENTS))
    out << "(%query_ids, %key_ids : " << queryIds() << ", " << keyIds() << ")";
  out << "\n";
}

void Writer::writeScore(Text &out) const {
  Separator comma;
  if (a.score == 0)
    return;
  out << "      score [";
  if (has(a.score, BURST_SCORE_SOFTCAP))
    out << comma << "softcap<" << number(a.softcap) << ">";
  if (has(a.score, BURST_SCORE_ALIBI))
    out << comma << "alibi";
  out << "]";
  if (has(a.score, BURST_SCORE_ALIBI))
    out << "(%slopes : " << slopes() << ")";
  out << "\n";
}

void Writer::writeOrder(Text &out) const {
  const char *names[] = {"contiguous", "zigzag", "striped"};
  out << "      sequence <@ranks, " << names[a.order];
  if (a.block > 0)
    out << " " << a.block;
  out << ">\n";
}

std::string Writer::write() {
  int64_t valueDim = a.value_dim ? a.value_dim : a.head_dim;
  std::string q = tensor(a.query_length, a.query_heads, a.head_dim),
              k = tensor(a.key_length, a.key_heads, a.head_dim),
              v = tensor(a.key_length, a.key_heads, valueDim),
              o = tensor(a.query_length, a.query_heads, valueDim);
  std::string lse = join("tensor<", size(a.batch), "x", a.query_heads, "x",
                         size(a.query_length), "x", state, ">");
  using Values = std::vector<std::pair<std::string, std::string>>;
  bool isBackward = a.pass == BURST_BACKWARD;
  Values operands{{"q", q}, {"k", k}, {"v", v}};
  Values results{{"o", o}, {"lse", lse}};
  if (isBackward) {
    operands.insert(operands.end(), {{"o", o}, {"lse", lse}, {"do", o}});
    results = {{"dq", q}, {"dk", k}, {"dv", v}};
  }
  Values arguments = operands;
  if (has(a.mask, BURST_MASK_DOCUMENTS)) {
    arguments.push_back({"query_ids", queryIds()});
    arguments.push_back({"key_ids", keyIds()});
  }
  if (has(a.score, BURST_SCORE_ALIBI))
    arguments.push_back({"slopes", slopes()});

  Text out;
  auto list = [&](const Values &values, auto write, const char *text) {
    Separator separator(text);
    for (const auto &value : values) {
      out << separator;
      write(value);
    }
  };
  auto named = [&](const auto &value) {
    out << value.second << " {burst.name = \"" << value.first << "\"}";
  };
  auto name = [&](const auto &value) { out << "%" << value.first; };
  auto type = [&](const auto &value) { out << value.second; };
  out << "shard.grid @ranks(shape = " << a.num_ranks << ")\n\n"
      << "func.func @attention(";
  list(
      arguments,
      [&](const auto &value) {
        out << "%" << value.first << ": ";
        named(value);
      },
      ",\n    ");
  out << ")\n    -> (";
  list(results, named, ",\n        ");
  out << ") {\n  ";
  list(results, name, ", ");
  out << " = burst.attention" << (isBackward ? "_backward " : " ");
  list(operands, name, ", ");
  out << "\n";
  writeMask(out);
  writeScore(out);
  if (a.scale != 0)
    out << "      scale " << number(a.scale) << "\n";
  writeOrder(out);
  if (a.travel != BURST_TRAVEL_CHOSEN)
    out << "      strategy "
        << (a.travel == BURST_TRAVEL_KEYS ? "<ring_kv>" : "<ring_q>") << "\n";
  out << "      : (";
  list(operands, type, ", ");
  out << ")\n      -> (";
  list(results, type, ", ");
  out << ")\n  return ";
  list(results, name, ", ");
  out << " : ";
  list(results, type, ", ");
  out << "\n}\n";
  return std::move(out.text);
}

} // namespace

std::string jit::attentionText(const burst_attention &attention,
                               std::string &error) {
  check(attention, error);
  return error.empty() ? Writer(attention).write() : "";
}
