//===- Attention.cpp - descriptions as modules ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/Attention.h"

#include "jit/AttentionNames.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

using namespace burst;
using namespace burst::jit;

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

/// In quotes; what a message cannot hold as a number: 'causal\0A'.
std::string quote(std::string_view text) {
  std::string quoted = "'";
  for (unsigned char c : text) {
    char escaped[4];
    snprintf(escaped, sizeof(escaped), c < ' ' || c > '~' ? "\\%02X" : "%c", c);
    quoted += escaped;
  }
  return quoted += "'";
}

//===----------------------------------------------------------------------===//
// Checking
//===----------------------------------------------------------------------===//

/// What the fields with names say.
struct Read {
  Names mask, score;
  Name order{"contiguous", "contiguous"}, strategy;
  std::vector<const Table *> gradients; ///< of the backward pass
  /// Which axes, of those that shard it: [begin, end).
  struct Axes {
    int64_t begin = 0, end = 0;
  } sequence, heads, batch;
};

constexpr int64_t maxLength = int64_t{1} << 40;

/// Of the text in a field.
constexpr size_t longestText = 1024;

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
  void finite(const char *field, double value) {
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    if (!std::isfinite(value))
      refuse(field, text, "a finite number");
  }
  /// Each once where it takes tables, which are arguments once.
  void list(const Field &field, const burst_attention &a, Names &names) {
    if (!read(field, a, names, readList))
      return;
    for (const Name &name : names)
      known(field, a, name);
    for (auto name = names.begin(); name != names.end(); ++name)
      if (takesTables(*name) &&
          std::any_of(names.begin(), name, [&](const Name &other) {
            return other.name == name->name;
          }))
        refuse(field.name,
               join(quote(field.valueOf(a)), " with two ", name->name),
               "one, as its tables are arguments once");
  }
  void one(const Field &field, const burst_attention &a, Name &name,
           bool (*readName)(std::string_view, Name &)) {
    if (read(field, a, name, readName))
      known(field, a, name);
  }

private:
  /// Whether there is a text that can be read.
  template <typename Value>
  bool read(const Field &field, const burst_attention &a, Value &result,
            bool (*readValue)(std::string_view, Value &)) {
    const char *value = field.valueOf(a);
    if (!value)
      return false;
    size_t length = strnlen(value, longestText + 1);
    if (length > longestText)
      refuse(field.name, join("of more than ", longestText, " characters"),
             "fewer");
    else if (!readValue({value, length}, result))
      refuse(field.name, quote(value), wanted(field));
    else
      return true;
    return false;
  }
  void known(const Field &field, const burst_attention &a, const Name &name) {
    if (field.known.empty() || std::find(field.known.begin(), field.known.end(),
                                         name.name) != field.known.end())
      return;
    std::string_view value = field.valueOf(a);
    refuse(field.name,
           value == name.name
               ? quote(value)
               : join(quote(value), " with the name ", quote(name.name)),
           wanted(field));
  }
  static std::string wanted(const Field &field) {
    Text out;
    Separator comma;
    out << (field.known.empty() ? "a name" : "one of ");
    for (std::string_view name : field.known)
      out << comma << name;
    out << ", as in " << field.example;
    return std::move(out.text);
  }

  std::string &error;
};

/// What an axis shards.
std::string_view shardedBy(const burst_axis &axis) {
  return axis.shards ? std::string_view(axis.shards, strnlen(axis.shards, 16))
                     : "sequence";
}

void checkAxis(const burst_attention &a, int64_t index, Checker &c,
               Read &read) {
  const burst_axis &axis = a.axes[index];
  std::string name = join("axes[", index, "]");
  c.range((name + ".num_ranks").c_str(), axis.num_ranks, 1,
          std::numeric_limits<int32_t>::max());
  std::string_view what = shardedBy(axis);
  if (what != "sequence" && what != "heads" && what != "batch")
    return c.refuse((name + ".shards").c_str(), quote(what),
                    "one of sequence, heads, batch");
  Read::Axes &axes = what == "sequence" ? read.sequence
                     : what == "heads"  ? read.heads
                                        : read.batch;
  bool isFirst = axes.begin == axes.end;
  if (!isFirst && axes.end != index)
    return c.refuse((name + ".shards").c_str(), quote(what),
                    join("what axes[", index - 1,
                         "] shards, or what none does:"
                         " those of one follow each other"));
  if (isFirst)
    axes.begin = index;
  axes.end = index + 1;
  std::string order = name + ".order";
  if (what == "sequence" && isFirst) {
    Field field = orderField;
    field.name = order.c_str();
    c.one(field, a, read.order, readOrder);
  } else if (axis.order) {
    c.refuse(order.c_str(), quote(axis.order),
             what == "sequence" ? "null: that of the first axis holds"
                                : "null: only a sequence has an order");
  }
}

void checkAxes(const burst_attention &a, Checker &c, Read &read) {
  constexpr int64_t most = 8;
  if (a.num_axes < 1 || a.num_axes > most)
    return c.range("num_axes", a.num_axes, 1, most);
  if (!a.axes)
    return c.refuse("axes", "null", "num_axes of them");
  for (int64_t index = 0; index < a.num_axes; ++index)
    checkAxis(a, index, c, read);
  // The sequence is whole on each rank: an axis of one rank.
  if (read.sequence.begin == read.sequence.end)
    read.sequence = {a.num_axes, a.num_axes + 1};
}

/// Tables that scores take, each once, in any order.
void checkGradients(const burst_attention &a, Checker &c, Read &read) {
  std::string_view left(a.gradients, strnlen(a.gradients, longestText));
  std::string found = quote(left);
  if (a.pass == BURST_FORWARD)
    return c.refuse("gradients", found,
                    "NULL: only the backward pass gives some");
  bool isMore = true;
  while (isMore) {
    size_t end = std::min(left.find(','), left.size());
    std::string_view name = left.substr(0, end);
    isMore = end != left.size();
    left.remove_prefix(isMore ? end + 1 : end);
    const auto *table = std::find_if(
        std::begin(tables), std::end(tables), [&](const Table &other) {
          return other.argument == name && !other.isIds &&
                 std::any_of(read.score.begin(), read.score.end(),
                             [&](const Name &score) {
                               return score.name == other.taker;
                             });
        });
    if (table == std::end(tables) ||
        std::find(read.gradients.begin(), read.gradients.end(), table) !=
            read.gradients.end())
      return c.refuse("gradients", found,
                      "slopes (of alibi) and bias (of bias), each once and "
                      "where the score takes it, as in \"slopes,bias\"");
    read.gradients.push_back(table);
  }
}

Read check(const burst_attention &a, std::string &error) {
  Checker c(error);
  Read read;
  checkAxes(a, c, read);
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
  c.list(maskField, a, read.mask);
  c.list(scoreField, a, read.score);
  c.one(strategyField, a, read.strategy, readStrategy);
  c.finite("scale", a.scale);
  c.range("pass", a.pass, BURST_FORWARD, BURST_BACKWARD);
  // Only the last name of a list takes more tables than it must: the ids of
  // keys. Masks give the same in any order.
  auto taker = std::find_if(read.mask.begin(), read.mask.end(), takesTables);
  if (taker != read.mask.end())
    std::rotate(taker, taker + 1, read.mask.end());
  if (a.pass == BURST_BACKWARD && a.max_scores != 0)
    c.refuse("max_scores", std::to_string(a.max_scores),
             "0: the backward pass gives gradients only");
  if (a.pass == BURST_FORWARD && a.lse_gradient != 0)
    c.refuse("lse_gradient", std::to_string(a.lse_gradient),
             "0: only the backward pass takes one");
  if (a.gradients)
    checkGradients(a, c, read);
  return read;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Writes the module; the description was checked.
class Writer {
public:
  Writer(const burst_attention &a, const Read &read)
      : a(a), read(read), element(elementName()),
        state(a.type == BURST_F64 ? "f64" : "f32") {}

  std::string write();

private:
  /// Names with types.
  using Values = std::vector<std::pair<std::string, std::string>>;

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
  /// Not sharded.
  void add(const Table &table, Values &values) const {
    std::string sizes = size(a.*table.rows) + "x";
    if (table.columns)
      sizes += size(a.*table.columns) + "x";
    values.emplace_back(table.argument, join("tensor<", sizes,
                                             table.isIds ? "i32" : state, ">"));
  }
  template <typename Write>
  void list(const Values &values, Write write, const char *text = ", ") {
    Separator separator(text);
    for (const auto &value : values) {
      out << separator;
      write(value);
    }
  }
  void listNames(const Values &values) {
    list(values, [&](const auto &value) { out << "%" << value.first; });
  }
  void listTypes(const Values &values) {
    list(values, [&](const auto &value) { out << value.second; });
  }
  void addTables(const Names &names, Values &arguments) const;
  void writeSignature(const Values &operands, const Values &results);
  void writeNames(const Field &field, const Names &names);
  void writeAxes(const Read::Axes &axes);
  void writeClauses();
  void writeGradients();

  const burst_attention &a;
  const Read &read;
  const char *element, *state;
  Text out;
};

void Writer::addTables(const Names &names, Values &arguments) const {
  for (const Table &table : tables)
    for (const Name &name : names)
      if (table.taker == name.name)
        add(table, arguments);
}

void Writer::writeSignature(const Values &operands, const Values &results) {
  Values arguments = operands;
  addTables(read.mask, arguments);
  addTables(read.score, arguments);
  auto named = [&](const auto &value) {
    out << value.second << " {burst.name = \"" << value.first << "\"}";
  };
  out << "func.func @attention(";
  list(
      arguments,
      [&](const auto &value) {
        out << "%" << value.first << ": ";
        named(value);
      },
      ",\n    ");
  out << ")\n    -> (";
  list(results, named, ",\n        ");
  out << ") {\n";
}

/// In brackets also where it is one: where a name lacks its parameters, the
/// error is that of the token behind it, which must be in this line.
void Writer::writeNames(const Field &field, const Names &names) {
  if (names.empty())
    return;
  Separator comma;
  out << field.line << "[";
  for (const Name &name : names)
    out << comma << name.text;
  out << "]";
  Values taken;
  for (const Name &name : names)
    addTables({name}, taken);
  if (!taken.empty()) {
    out << "(";
    listNames(taken);
    out << " : ";
    listTypes(taken);
    out << ")";
  }
  out << "\n";
}

/// `[0, 1]`, where these are not all.
void Writer::writeAxes(const Read::Axes &axes) {
  int64_t all = std::max(a.num_axes, read.sequence.end);
  if (axes.begin == 0 && axes.end == all)
    return;
  Separator comma;
  out << "[";
  for (int64_t axis = axes.begin; axis < axes.end; ++axis)
    out << comma << axis;
  out << "]";
}

void Writer::writeClauses() {
  writeNames(maskField, read.mask);
  writeNames(scoreField, read.score);
  if (a.scale != 0)
    out << "      scale " << number(a.scale) << "\n";
  out << orderField.line << "<@ranks";
  writeAxes(read.sequence);
  out << ", " << read.order.text << ">\n";
  for (auto [clause, axes] :
       {std::pair("heads", read.heads), std::pair("batch", read.batch)}) {
    if (axes.begin == axes.end)
      continue;
    out << "      " << clause << " <@ranks";
    writeAxes(axes);
    out << ">\n";
  }
  if (!read.strategy.text.empty())
    out << strategyField.line << "<" << read.strategy.text << ">\n";
}

/// `gradients [1, 0]`: tables, counted in the order in which the score's names
/// take them.
void Writer::writeGradients() {
  if (read.gradients.empty())
    return;
  Values captures;
  for (const Name &name : read.score)
    addTables({name}, captures);
  Separator comma;
  out << "      gradients [";
  for (const Table *table : read.gradients)
    out << comma
        << std::distance(captures.begin(),
                         std::find_if(captures.begin(), captures.end(),
                                      [&](const auto &value) {
                                        return value.first == table->argument;
                                      }));
  out << "]\n";
}

std::string Writer::write() {
  int64_t valueDim = a.value_dim ? a.value_dim : a.head_dim;
  std::string q = tensor(a.query_length, a.query_heads, a.head_dim),
              k = tensor(a.key_length, a.key_heads, a.head_dim),
              v = tensor(a.key_length, a.key_heads, valueDim),
              o = tensor(a.query_length, a.query_heads, valueDim);
  std::string lse = join("tensor<", size(a.batch), "x", a.query_heads, "x",
                         size(a.query_length), "x", state, ">");
  bool isBackward = a.pass == BURST_BACKWARD;
  Values operands{{"q", q}, {"k", k}, {"v", v}};
  Values results{{"o", o}, {"lse", lse}};
  if (a.max_scores)
    results.emplace_back("max_scores", lse);
  if (isBackward) {
    operands.insert(operands.end(), {{"o", o}, {"lse", lse}, {"do", o}});
    if (a.lse_gradient)
      operands.emplace_back("dlse", lse);
    results = {{"dq", q}, {"dk", k}, {"dv", v}};
    for (const Table *table : read.gradients) {
      add(*table, results);
      results.back().first.insert(0, "d");
    }
  }
  Separator by("x");
  out << "shard.grid @ranks(shape = ";
  for (int64_t axis = 0; axis < a.num_axes; ++axis)
    out << by << a.axes[axis].num_ranks;
  out << (read.sequence.begin == a.num_axes ? "x1)\n\n" : ")\n\n");
  writeSignature(operands, results);
  out << "  ";
  listNames(results);
  out << " = burst.attention" << (isBackward ? "_backward " : " ");
  listNames(operands);
  out << "\n";
  writeClauses();
  writeGradients();
  out << "      : (";
  listTypes(operands);
  out << ")\n      -> (";
  listTypes(results);
  out << ")\n  return ";
  listNames(results);
  out << " : ";
  listTypes(results);
  out << "\n}\n";
  return std::move(out.text);
}

} // namespace

std::string jit::attentionText(const burst_attention &attention,
                               std::string &error) {
  Read read = check(attention, error);
  return error.empty() ? Writer(attention, read).write() : "";
}

std::string jit::fieldAt(const burst_attention &attention,
                         std::string_view module, std::string_view location) {
  // The name of the file, which comes first, may have colons too.
  location = location.substr(0, location.rfind(':'));
  location.remove_prefix(location.rfind(':') + 1);
  int64_t line = 0;
  std::from_chars(location.data(), location.data() + location.size(), line);
  for (; line > 1 && !module.empty(); --line)
    module.remove_prefix(std::min(module.find('\n'), module.size() - 1) + 1);
  for (const Field *field :
       {&maskField, &scoreField, &orderField, &strategyField})
    if (module.starts_with(field->line))
      if (const char *value = field->valueOf(attention))
        return join(field == &orderField
                        ? join("axes[", firstSequenceAxis(attention), "].order")
                        : std::string(field->name),
                    " ", quote(value));
  return "";
}
