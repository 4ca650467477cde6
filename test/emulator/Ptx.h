//===- Ptx.h - The text of PTX as statements ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what NVRTC writes: a module of variables and kernels, a kernel as a
// list of statements whose operands are still names. Knows no opcode.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_TEST_EMULATOR_PTX_H
#define BURST_TEST_EMULATOR_PTX_H

#include "test/emulator/Emulator.h"

namespace burst::emulator::ptx {

struct Operand {
  enum class Kind : uint8_t {
    Name,    // a register, special register, variable or label
    Integer, // value
    Real,    // bits of an f64 in value
    Single,  // bits of an f32 in value (0f3F800000)
    Address, // [list...]; one element is name or integer, and the offset is
             // value
    List,    // {list...} or (list...)
    Sink,    // _
  };
  Kind kind = Kind::Name;
  std::string name;
  bool negated = false; // !p
  int64_t value = 0;
  std::vector<Operand> list;
  std::string second; // q of p|q
};

struct Statement {
  unsigned line = 0, sourceLine = 0;
  std::string text;
  std::string guard; // the predicate, or empty
  bool guardNegated = false;
  std::string opcode;
  std::vector<std::string> modifiers;
  std::vector<Operand> operands;
  unsigned scope = 0;
};

struct Variable {
  std::string name, space; // "shared", "param", "local", "global", "const"
  uint64_t alignment = 1, bytes = 0;
  bool isDynamic = false; // extern shared memory without a size
  unsigned line = 0;
};

/// Names of a pair of braces.
struct Scope {
  unsigned parent = 0;
  std::map<std::string, std::string> registers; // name to type
  std::map<std::string, std::pair<std::string, unsigned>>
      ranges;                             // %r<9>: prefix to type, count
  std::map<std::string, unsigned> labels; // name to the statement that follows
};

struct Kernel {
  std::string name;
  unsigned line = 0;
  std::vector<Variable> parameters, variables;
  std::vector<Statement> statements;
  std::vector<Scope> scopes; // the first is the body
};

struct Text {
  std::vector<Variable> variables;
  std::vector<Kernel> kernels;
};

/// Parses into text; returns what is wrong.
std::optional<Failure> parse(std::string_view input, Text &text);

/// Bytes of a type without its dot, or 0.
unsigned sizeOf(std::string_view type);

} // namespace burst::emulator::ptx

#endif // BURST_TEST_EMULATOR_PTX_H
