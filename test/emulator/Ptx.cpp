//===- Ptx.cpp ------------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Ptx.h"

#include <cctype>
#include <cstdlib>

namespace burst::emulator::ptx {

unsigned sizeOf(std::string_view type) {
  static const std::map<std::string_view, unsigned> sizes = {
      {"b8", 1},   {"u8", 1},    {"s8", 1},    {"b16", 2}, {"u16", 2},
      {"s16", 2},  {"f16", 2},   {"b32", 4},   {"u32", 4}, {"s32", 4},
      {"f32", 4},  {"b64", 8},   {"u64", 8},   {"s64", 8}, {"f64", 8},
      {"bf16", 2}, {"f16x2", 4}, {"bf16x2", 4}};
  auto found = sizes.find(type);
  return found == sizes.end() ? 0 : found->second;
}

namespace {

bool isNameStart(char c) {
  return isalpha(c) || c == '_' || c == '$' || c == '%';
}
bool isNamePart(char c) { return isalnum(c) || c == '_' || c == '$'; }

/// A cursor over the text that knows its line and skips comments.
class Reader {
public:
  Reader(std::string_view input, Text &text) : input(input), text(text) {}

  std::optional<Failure> module() {
    while (!failure && !atEnd())
      directive(nullptr, 0);
    return failure;
  }

private:
  std::string_view input;
  Text &text;
  size_t at = 0;
  unsigned line = 1, sourceLine = 0;
  std::optional<Failure> failure;

  void fail(std::string message) {
    if (!failure) {
      failure.emplace();
      failure->message = std::move(message);
      failure->place.line = line;
      size_t from = input.rfind('\n', at ? at - 1 : 0);
      from = from == std::string_view::npos ? 0 : from + 1;
      failure->text =
          std::string(input.substr(from, input.find('\n', from) - from));
    }
    at = input.size();
  }

  void skip() {
    while (at < input.size()) {
      if (input[at] == '\n') {
        ++line;
        ++at;
      } else if (isspace(input[at])) {
        ++at;
      } else if (input.substr(at, 2) == "//") {
        at = std::min(input.find('\n', at), input.size());
      } else if (input.substr(at, 2) == "/*") {
        size_t end = input.find("*/", at);
        for (; at < std::min(end, input.size()); ++at)
          line += input[at] == '\n';
        at = std::min(at + 2, input.size());
      } else {
        return;
      }
    }
  }

  bool atEnd() {
    skip();
    return at >= input.size();
  }
  char peek() {
    skip();
    return at < input.size() ? input[at] : '\0';
  }
  bool take(char c) {
    if (peek() != c)
      return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      fail(std::string("expected '") + c + "', got '" +
           (at < input.size() ? input[at] : ' ') + "'");
  }
  std::string name() {
    skip();
    size_t from = at;
    if (at < input.size() && isNameStart(input[at]))
      do
        ++at;
      while (at < input.size() && isNamePart(input[at]));
    if (at == from)
      fail("expected a name");
    return std::string(input.substr(from, at - from));
  }
  /// What follows a dot: letters, digits and "::".
  std::string modifier() {
    size_t from = at;
    while (at < input.size() &&
           (isNamePart(input[at]) || input.substr(at, 2) == "::"))
      at += input[at] == ':' ? 2 : 1;
    if (at == from)
      fail("expected a word after '.'");
    return std::string(input.substr(from, at - from));
  }
  void skipTo(char c) {
    while (!atEnd() && input[at] != c)
      ++at;
    expect(c);
  }
  void skipLine() { at = std::min(input.find('\n', at), input.size()); }

  Operand number(bool negative) {
    Operand result;
    skip();
    std::string digits;
    size_t from = at;
    auto hex = [&](size_t count) {
      digits = std::string(input.substr(at + 2, count));
      at += 2 + count;
      return strtoull(digits.c_str(), nullptr, 16);
    };
    std::string_view prefix = input.substr(at, 2);
    if (prefix == "0f" || prefix == "0F") {
      result.kind = Operand::Kind::Single;
      result.value = int64_t(hex(8)) ^ (negative ? 0x80000000LL : 0);
      return result;
    }
    if (prefix == "0d" || prefix == "0D") {
      result.kind = Operand::Kind::Real;
      result.value = int64_t(hex(16) ^ (negative ? 1ULL << 63 : 0));
      return result;
    }
    bool real = false;
    while (at < input.size() && (isalnum(input[at]) || input[at] == '.'))
      real |= input[at++] == '.';
    digits = std::string(input.substr(from, at - from));
    if (digits.empty())
      fail("expected an operand");
    if (real) {
      double value = strtod(digits.c_str(), nullptr) * (negative ? -1 : 1);
      result.kind = Operand::Kind::Real;
      memcpy(&result.value, &value, sizeof(value));
      return result;
    }
    result.kind = Operand::Kind::Integer;
    bool binary = digits.size() > 2 && (digits[1] == 'b' || digits[1] == 'B');
    uint64_t value = binary ? strtoull(digits.c_str() + 2, nullptr, 2)
                            : strtoull(digits.c_str(), nullptr, 0);
    result.value = int64_t(negative ? 0 - value : value);
    return result;
  }

  void list(std::vector<Operand> &operands, char close) {
    while (!failure && !take(close)) {
      operands.push_back(operand());
      if (!take(',') && peek() != close)
        fail("expected ',' in a list");
    }
  }

  Operand operand() {
    Operand result;
    if (take('{')) {
      result.kind = Operand::Kind::List;
      list(result.list, '}');
      return result;
    }
    if (take('(')) {
      result.kind = Operand::Kind::List;
      list(result.list, ')');
      return result;
    }
    if (take('[')) {
      result.kind = Operand::Kind::Address;
      list(result.list, ']');
      return offset(std::move(result));
    }
    if (take('!')) {
      result = operand();
      result.negated = true;
      return result;
    }
    if (take('-'))
      return number(true);
    if (isdigit(peek()))
      return number(false);
    result.name = name();
    // A special register of three parts, as %tid.x; not a modifier.
    if (at < input.size() && input[at] == '.') {
      ++at;
      result.name += "." + modifier();
    }
    if (result.name == "_")
      result.kind = Operand::Kind::Sink;
    if (take('|'))
      result.second = name();
    if (peek() == '+' || peek() == '-') { // inside an address
      bool negative = input[at++] == '-';
      bool twice = take('-');
      result.value = number(negative != twice).value;
    }
    return result;
  }

  /// Lifts the offset of [name+4] to the address itself.
  static Operand offset(Operand address) {
    if (!address.list.empty() && address.list[0].kind == Operand::Kind::Name)
      std::swap(address.value, address.list[0].value);
    return address;
  }

  /// .shared .align 16 .b8 name[64]; the space is read.
  Variable variable(std::string space) {
    Variable result;
    result.space = std::move(space);
    result.line = line;
    unsigned size = 0;
    while (take('.')) {
      std::string word = modifier();
      if (word == "align")
        result.alignment = uint64_t(number(false).value);
      else if (word == "ptr" || word == "visible" || word == "extern")
        continue;
      else if (sizeOf(word))
        size = sizeOf(word);
      else if (word != "global" && word != "shared" && word != "const")
        fail("unknown word ." + word + " in a declaration");
    }
    result.name = name();
    result.alignment = std::max<uint64_t>(result.alignment, size);
    result.bytes = size;
    while (take('[')) {
      if (take(']')) {
        result.isDynamic = true;
        result.bytes = 0;
        continue;
      }
      result.bytes *= uint64_t(number(false).value);
      expect(']');
    }
    return result;
  }

  /// Anything that begins with a dot.
  void directive(Kernel *kernel, unsigned scope) {
    expect('.');
    std::string word = modifier();
    if (word == "version" || word == "target" || word == "address_size") {
      skipLine();
    } else if (word == "file" || word == "pragma") {
      skipLine();
    } else if (word == "section") {
      skipTo('{');
      skipTo('}');
    } else if (word == "loc") {
      number(false);
      sourceLine = unsigned(number(false).value);
      skipLine();
    } else if (word == "visible" || word == "extern" || word == "weak") {
      return; // the directive that follows says of what
    } else if (word == "entry") {
      entry();
    } else if (word == "shared" || word == "global" || word == "const" ||
               word == "local" || word == "param") {
      Variable result = variable(word);
      skipTo(';'); // behind what initialises it
      (kernel ? kernel->variables : text.variables)
          .push_back(std::move(result));
    } else if (word == "reg" && kernel) {
      registers(kernel->scopes[scope]);
    } else {
      fail("unknown directive ." + word);
    }
  }

  void registers(Scope &scope) {
    expect('.');
    std::string type = modifier();
    if (type != "pred" && !sizeOf(type))
      fail("unknown type of registers ." + type);
    do {
      std::string reg = name();
      if (take('<')) {
        scope.ranges[reg] = {type, unsigned(number(false).value)};
        expect('>');
      } else {
        scope.registers[reg] = type;
      }
    } while (take(','));
    expect(';');
  }

  void entry() {
    Kernel kernel;
    kernel.name = name();
    kernel.line = line;
    kernel.scopes.emplace_back();
    if (take('(')) {
      while (!failure && !take(')')) {
        expect('.');
        modifier(); // param
        kernel.parameters.push_back(variable("param"));
        if (!take(',') && peek() != ')')
          fail("expected ',' between parameters");
      }
    }
    while (!failure &&
           peek() == '.') // .maxntid and its like bind no execution here
      skipLine();
    expect('{');
    body(kernel, 0);
    if (!failure)
      text.kernels.push_back(std::move(kernel));
  }

  void body(Kernel &kernel, unsigned scope) {
    while (!failure && !take('}')) {
      if (atEnd())
        return fail("the braces of kernel " + kernel.name + " do not close");
      if (take('{')) {
        kernel.scopes.emplace_back();
        kernel.scopes.back().parent = scope;
        body(kernel, unsigned(kernel.scopes.size() - 1));
      } else if (peek() == '.') {
        directive(&kernel, scope);
      } else if (!take(';')) {
        statement(kernel, scope);
      }
    }
  }

  void statement(Kernel &kernel, unsigned scope) {
    Statement result;
    skip();
    size_t from = at;
    result.line = line;
    result.sourceLine = sourceLine;
    result.scope = scope;
    if (take('@')) {
      result.guardNegated = take('!');
      result.guard = name();
    }
    result.opcode = name();
    if (result.guard.empty() && take(':')) {
      kernel.scopes[scope].labels[result.opcode] =
          unsigned(kernel.statements.size());
      return;
    }
    while (at < input.size() && input[at] == '.') {
      ++at;
      result.modifiers.push_back(modifier());
    }
    while (!failure && peek() != ';') {
      result.operands.push_back(operand());
      if (!take(',') && peek() != ';')
        fail("expected ',' or ';'");
    }
    expect(';');
    result.text = std::string(input.substr(from, at - from));
    if (!failure)
      kernel.statements.push_back(std::move(result));
  }
};

} // namespace

std::optional<Failure> parse(std::string_view input, Text &text) {
  return Reader(input, text).module();
}

} // namespace burst::emulator::ptx
