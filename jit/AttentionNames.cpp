//===- AttentionNames.cpp - names in descriptions -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/AttentionNames.h"

using namespace burst;
using namespace burst::jit;

namespace {

constexpr std::string_view inParameters =
    " =,.+-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view inWords = inParameters.substr(6);
constexpr std::string_view digits = inWords.substr(1, 10);

/// What is left of a text.
class Reader {
public:
  explicit Reader(std::string_view text) : rest(text) {}

  bool isAtEnd() {
    take(" ");
    return rest.empty();
  }
  bool eat(char wanted) {
    take(" ");
    bool isThere = rest.starts_with(wanted);
    rest.remove_prefix(isThere);
    return isThere;
  }
  bool readWord(Name &word) {
    take(" ");
    word.name = word.text = take(inWords);
    return !word.name.empty() &&
           digits.find(word.name.front()) == std::string_view::npos;
  }
  /// Has no brackets among the parameters.
  bool readName(Name &name) {
    std::string_view begin = rest;
    if (!readWord(name))
      return false;
    if (!eat('<'))
      return true;
    std::string_view parameters = take(inParameters);
    // MLIR reads -> as one token, which closes nothing.
    if (parameters.ends_with('-') || !eat('>'))
      return false;
    name.text = readSince(begin);
    return true;
  }
  bool readOrder(Name &order) {
    std::string_view begin = rest;
    if (!readWord(order))
      return false;
    take(" ");
    if (!take(digits).empty())
      order.text = readSince(begin);
    return true;
  }
  /// Words, each with the axes on which it works, and its chunks.
  bool readStrategy(Name &strategy) {
    std::string_view begin = rest;
    do {
      Name name;
      if (!readWord(name) || (eatWord("on") && !readAxes()) ||
          (eatWord("in") && !readChunks()))
        return false;
    } while (eat(','));
    strategy.name = strategy.text = readSince(begin);
    return true;
  }

private:
  bool eatWord(std::string_view wanted) {
    std::string_view before = rest;
    Name word;
    if (readWord(word) && word.name == wanted)
      return true;
    rest = before;
    return false;
  }
  bool readChunks() {
    take(" ");
    return !take(digits).empty() && eatWord("chunks");
  }
  bool readAxes() {
    if (!eat('['))
      return false;
    do {
      take(" ");
      if (take(digits).empty())
        return false;
    } while (eat(','));
    return eat(']');
  }
  std::string_view take(std::string_view characters) {
    size_t end = std::min(rest.find_first_not_of(characters), rest.size());
    std::string_view taken = rest.substr(0, end);
    rest.remove_prefix(end);
    return taken;
  }
  std::string_view readSince(std::string_view begin) const {
    std::string_view text = begin.substr(0, begin.size() - rest.size());
    text.remove_prefix(text.find_first_not_of(' '));
    return text;
  }

  std::string_view rest;
};

} // namespace

bool jit::readList(std::string_view text, Names &names) {
  Reader reader(text);
  bool isList = reader.eat('[');
  do {
    if (!reader.readName(names.emplace_back()))
      return false;
  } while (isList && reader.eat(','));
  return (!isList || reader.eat(']')) && reader.isAtEnd();
}

bool jit::readOrder(std::string_view text, Name &order) {
  Reader reader(text);
  return reader.readOrder(order) && reader.isAtEnd();
}

bool jit::readStrategy(std::string_view text, Name &strategy) {
  Reader reader(text);
  return reader.readStrategy(strategy) && reader.isAtEnd();
}
