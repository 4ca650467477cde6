//===- Decode.h - From statements to instructions -------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_EMULATOR_DECODE_H
#define BURST_TEST_EMULATOR_DECODE_H

#include "test/emulator/Machine.h"
#include "test/emulator/Ptx.h"

namespace burst::emulator {

enum class Type : uint8_t {
  Pred,
  B8,
  U8,
  S8,
  B16,
  U16,
  S16,
  F16,
  BF16,
  B32,
  U32,
  S32,
  F32,
  F16x2,
  BF16x2,
  B64,
  U64,
  S64,
  F64,
};

unsigned sizeOf(Type type);
bool isSigned(Type type);
bool isFloat(Type type);

/// One statement on its way to an instruction. A decoder takes each modifier
/// that it knows; what is left over makes the instruction unknown.
class Decoder {
public:
  Decoder(Program &program, const ptx::Kernel &kernel,
          std::map<std::string, uint32_t> &registers,
          const std::map<std::string, std::pair<Space, uint64_t>> &symbols);

  /// Decodes a statement and appends it.
  std::optional<Failure> decode(const ptx::Statement &statement);

  Instruction instruction;
  const ptx::Statement &statement() const { return *current; }

  /// Takes the modifier if it is there.
  bool take(std::string_view modifier);
  /// Takes the first of these that is there; -1 for none.
  int takeOneOf(std::initializer_list<std::string_view> words);
  /// Takes the first modifier that is a type.
  std::optional<Type> takeType();
  bool hasModifier(std::string_view modifier) const;

  size_t operandCount() const { return current->operands.size(); }
  const ptx::Operand &operand(size_t index) const;
  /// The register of an operand, which must have the type's size, or at least
  /// that size where `wider` is set (then isWide tells which it is).
  uint32_t source(size_t index, Type type) {
    return source(operand(index), type);
  }
  uint32_t source(const ptx::Operand &operand, Type type, bool wider = false);
  uint32_t destination(size_t index, Type type) {
    return destination(operand(index), type);
  }
  uint32_t destination(const ptx::Operand &operand, Type type,
                       bool wider = false);
  bool isWide(const ptx::Operand &operand) const;
  /// Registers of {a, b, ...} into instruction.list.
  void sources(size_t index, Type type, size_t count);
  void destinations(size_t index, Type type, size_t count);
  /// [register+offset], and whether the register has 64 bits.
  struct Address {
    uint32_t base = 0;
    int64_t offset = 0;
    bool isWide = false;
  };
  Address address(const ptx::Operand &operand);
  /// The address into a and value; flags get wideAddress for 64 bits.
  void address(size_t index);
  bool isPredicate(const ptx::Operand &operand) const;
  /// A constant of the statement, or nothing.
  std::optional<int64_t> constant(size_t index) const;
  /// Where a label leads.
  uint32_t label(size_t index);
  void fail(std::string message);
  /// The name that counters use for the instruction.
  void setOpcode(std::string opcode) { opcodeName = std::move(opcode); }

private:
  Program &program;
  const ptx::Kernel &kernel;
  std::map<std::string, uint32_t> &registers; // by scope and name
  const std::map<std::string, std::pair<Space, uint64_t>> &symbols;
  const ptx::Statement *current = nullptr;
  std::vector<bool> taken;
  std::string error, opcodeName;
  std::map<std::pair<uint64_t, bool>, uint32_t> constants;
  std::map<std::string, uint32_t> specials;

  uint32_t preset(Preset::Kind kind, uint64_t value, bool isWide);
  /// The type a register was declared with, and its key in registers; empty for
  /// other names.
  std::pair<std::string, std::string> declared(const std::string &name) const;
  uint32_t registerNamed(const std::string &name, Type type, bool wider);
};

inline constexpr uint8_t wideAddress = 1;

/// The address that an instruction of Decoder::address has in a lane.
inline uint64_t addressIn(Warp &warp, const Instruction &i, unsigned lane) {
  uint64_t base = i.flags & wideAddress ? warp.at<uint64_t>(i.a)[lane]
                                        : warp.at<uint32_t>(i.a)[lane];
  return base + uint64_t(i.value);
}

using Decode = bool (*)(Decoder &);
using Table = std::map<std::string_view, Decode>;

// One for each file of opcodes.
void addArithmetic(Table &table);
void addConversions(Table &table);
void addControl(Table &table);
void addLoadsAndStores(Table &table);
void addCopies(Table &table);
void addMatrix(Table &table);
void addMbarriers(Table &table);
void addWarpgroup(Table &table);
/// cp.async.bulk, and what follows.
bool decodeBulkCopy(Decoder &d);
bool decodeProxyFence(Decoder &d);

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_DECODE_H
