//===- Decode.cpp ---------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Decode.h"

#include <fmt/format.h>

namespace burst::emulator {

unsigned sizeOf(Type type) {
  switch (type) {
  case Type::Pred:
    return 0;
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return 8;
  default:
    return 4;
  }
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

bool isFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 ||
         type == Type::F16x2 || type == Type::BF16x2 || type == Type::F64;
}

static std::optional<Type> typeNamed(std::string_view name) {
  static const std::map<std::string_view, Type> types = {
      {"pred", Type::Pred}, {"b8", Type::B8},       {"u8", Type::U8},
      {"s8", Type::S8},     {"b16", Type::B16},     {"u16", Type::U16},
      {"s16", Type::S16},   {"f16", Type::F16},     {"bf16", Type::BF16},
      {"b32", Type::B32},   {"u32", Type::U32},     {"s32", Type::S32},
      {"f32", Type::F32},   {"f16x2", Type::F16x2}, {"bf16x2", Type::BF16x2},
      {"b64", Type::B64},   {"u64", Type::U64},     {"s64", Type::S64},
      {"f64", Type::F64}};
  auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

Decoder::Decoder(
    Program &program, const ptx::Kernel &kernel,
    std::map<std::string, uint32_t> &registers,
    const std::map<std::string, std::pair<Space, uint64_t>> &symbols)
    : program(program), kernel(kernel), registers(registers), symbols(symbols) {
}

static const Table &table() {
  static const Table table = [] {
    Table entries;
    addArithmetic(entries);
    addConversions(entries);
    addControl(entries);
    addLoadsAndStores(entries);
    addCopies(entries);
    addMatrix(entries);
    addMbarriers(entries);
    addWarpgroup(entries);
    return entries;
  }();
  return table;
}

std::optional<Failure> Decoder::decode(const ptx::Statement &statement) {
  current = &statement;
  instruction = Instruction();
  taken.assign(statement.modifiers.size(), false);
  error.clear();
  opcodeName = statement.opcode;
  FailureKind kind = FailureKind::UnknownOpcode;
  auto found = table().find(statement.opcode);
  if (found == table().end()) {
    error = fmt::format("the machine has no opcode {}", statement.opcode);
  } else if (!found->second(*this)) {
    if (error.empty())
      error =
          fmt::format("the machine has no such form of {}", statement.opcode);
  } else if (error.empty()) {
    for (size_t i = 0; i < taken.size(); ++i)
      if (!taken[i])
        error = fmt::format("the machine has no {} with .{}", statement.opcode,
                            statement.modifiers[i]);
    if (!statement.guard.empty()) {
      instruction.guard = registerNamed(statement.guard, Type::Pred, false);
      instruction.guardFlip = statement.guardNegated ? ~0U : 0;
    }
  }
  if (!error.empty()) {
    Failure failure;
    failure.kind = kind;
    failure.message = error;
    failure.place.line = statement.line;
    failure.place.sourceLine = statement.sourceLine;
    failure.text = statement.text;
    return failure;
  }
  program.code.push_back(std::move(instruction));
  program.source.push_back(
      {statement.line, statement.sourceLine, statement.text, opcodeName});
  return std::nullopt;
}

void Decoder::fail(std::string message) {
  if (error.empty())
    error = std::move(message);
}

bool Decoder::take(std::string_view modifier) {
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i] && current->modifiers[i] == modifier) {
      taken[i] = true;
      return true;
    }
  }
  return false;
}

int Decoder::takeOneOf(std::initializer_list<std::string_view> words) {
  int index = 0;
  for (std::string_view word : words) {
    if (take(word))
      return index;
    ++index;
  }
  return -1;
}

std::optional<Type> Decoder::takeType() {
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i])
      continue;
    if (auto type = typeNamed(current->modifiers[i])) {
      taken[i] = true;
      return type;
    }
  }
  return std::nullopt;
}

bool Decoder::hasModifier(std::string_view modifier) const {
  return std::find(current->modifiers.begin(), current->modifiers.end(),
                   modifier) != current->modifiers.end();
}

const ptx::Operand &Decoder::operand(size_t index) const {
  static const ptx::Operand missing = [] {
    ptx::Operand operand;
    operand.name = "a missing operand";
    return operand;
  }();
  return index < current->operands.size() ? current->operands[index] : missing;
}

uint32_t Decoder::preset(Preset::Kind kind, uint64_t value, bool isWide) {
  uint32_t offset = program.registerBytes;
  program.registerBytes += isWide ? 256 : 128;
  program.presets.push_back({kind, offset, isWide, value});
  return offset;
}

std::pair<std::string, std::string>
Decoder::declared(const std::string &name) const {
  for (unsigned scope = current->scope;; scope = kernel.scopes[scope].parent) {
    const ptx::Scope &names = kernel.scopes[scope];
    std::string key = fmt::format("{} {}", scope, name);
    if (auto found = names.registers.find(name); found != names.registers.end())
      return {found->second, key};
    size_t digits = name.find_last_not_of("0123456789") + 1;
    auto range = names.ranges.find(name.substr(0, digits));
    if (digits < name.size() && range != names.ranges.end() &&
        std::stoul(name.substr(digits)) < range->second.second)
      return {range->second.first, key};
    if (scope == 0)
      return {};
  }
}

bool Decoder::isWide(const ptx::Operand &operand) const {
  auto [type, key] = declared(operand.name);
  return ptx::sizeOf(type) == 8;
}

uint32_t Decoder::registerNamed(const std::string &name, Type type,
                                bool wider) {
  auto [declaredType, key] = declared(name);
  if (key.empty()) {
    fail(fmt::format("{} is no register", name));
    return 0;
  }
  unsigned has = declaredType == "pred" ? 0 : ptx::sizeOf(declaredType),
           wanted = sizeOf(type);
  if ((has == 0) != (wanted == 0) || (wider ? has < wanted : has != wanted)) {
    fail(fmt::format("register {} has type .{}, which does not fit", name,
                     declaredType));
    return 0;
  }
  auto [found, isNew] = registers.try_emplace(key, program.registerBytes);
  if (isNew)
    program.registerBytes += has == 8 ? 256 : has == 0 ? 8 : 128;
  return found->second;
}

uint32_t Decoder::source(const ptx::Operand &operand, Type type, bool wider) {
  bool wide = sizeOf(type) == 8;
  auto constantSlot = [&](uint64_t value) {
    auto [found, isNew] = constants.try_emplace({value, wide}, 0);
    if (isNew)
      found->second = preset(Preset::Kind::Value, value, wide);
    return found->second;
  };
  using Kind = ptx::Operand::Kind;
  switch (operand.kind) {
  case Kind::Integer: {
    if (type == Type::Pred) // a bit for each lane
      return constantSlot(operand.value != 0 ? ~uint32_t(0) : 0);
    if (isFloat(type)) {
      fail("an integer constant where a type of floats is wanted");
      return 0;
    }
    auto value = uint64_t(operand.value);
    unsigned bits = 8 * sizeOf(type);
    return constantSlot(bits == 64 ? value : value & ((1ULL << bits) - 1));
  }
  case Kind::Single:
    if (sizeOf(type) != 4)
      fail("a single precision constant where another size is wanted");
    return constantSlot(uint64_t(operand.value));
  case Kind::Real: {
    if (sizeOf(type) == 8)
      return constantSlot(uint64_t(operand.value));
    if (type != Type::F32)
      fail("a double precision constant where another size is wanted");
    auto single = float(std::bit_cast<double>(operand.value));
    return constantSlot(std::bit_cast<uint32_t>(single));
  }
  case Kind::Name:
    break;
  default:
    fail("a list or an address where a value is wanted");
    return 0;
  }
  if (!declared(operand.name).second.empty())
    return registerNamed(operand.name, type, wider);
  if (auto symbol = symbols.find(operand.name); symbol != symbols.end()) {
    if (sizeOf(type) < 4)
      fail(fmt::format("the address of {} where a smaller type is wanted",
                       operand.name));
    return constantSlot(symbol->second.second + uint64_t(operand.value));
  }
  using P = Preset::Kind;
  static const std::map<std::string_view, P> names = {
      {"%tid.x", P::TidX},
      {"%tid.y", P::TidY},
      {"%tid.z", P::TidZ},
      {"%ntid.x", P::NtidX},
      {"%ntid.y", P::NtidY},
      {"%ntid.z", P::NtidZ},
      {"%ctaid.x", P::CtaidX},
      {"%ctaid.y", P::CtaidY},
      {"%ctaid.z", P::CtaidZ},
      {"%nctaid.x", P::NctaidX},
      {"%nctaid.y", P::NctaidY},
      {"%nctaid.z", P::NctaidZ},
      {"%laneid", P::Laneid},
      {"%warpid", P::Warpid},
      {"%nwarpid", P::Nwarpid},
      {"%lanemask_eq", P::LanemaskEq},
      {"%lanemask_lt", P::LanemaskLt},
      {"%lanemask_le", P::LanemaskLe},
      {"%lanemask_gt", P::LanemaskGt},
      {"%lanemask_ge", P::LanemaskGe},
      {"%dynamic_smem_size", P::DynamicSharedSize},
      {"%total_smem_size", P::TotalSharedSize}};
  auto special = names.find(operand.name);
  if (special == names.end() || sizeOf(type) != 4) {
    fail(fmt::format(
        "{} is no register, variable or special register that the machine has",
        operand.name));
    return 0;
  }
  auto [found, isNew] = specials.try_emplace(operand.name, 0);
  if (isNew)
    found->second = preset(special->second, 0, false);
  return found->second;
}

uint32_t Decoder::destination(const ptx::Operand &operand, Type type,
                              bool wider) {
  if (operand.kind == ptx::Operand::Kind::Sink) {
    auto [found, isNew] = registers.try_emplace("_", program.registerBytes);
    if (isNew)
      program.registerBytes += 256;
    return found->second;
  }
  if (operand.kind != ptx::Operand::Kind::Name) {
    fail("a destination that is no register");
    return 0;
  }
  return registerNamed(operand.name, type, wider);
}

void Decoder::sources(size_t index, Type type, size_t count) {
  const ptx::Operand &list = operand(index);
  bool single = list.kind != ptx::Operand::Kind::List && count == 1;
  if (!single && list.list.size() != count)
    return fail(fmt::format("a list of {} registers where {} are wanted",
                            list.list.size(), count));
  for (size_t i = 0; i < count; ++i)
    instruction.list.push_back(source(single ? list : list.list[i], type));
}

void Decoder::destinations(size_t index, Type type, size_t count) {
  const ptx::Operand &list = operand(index);
  bool single = list.kind != ptx::Operand::Kind::List && count == 1;
  if (!single && list.list.size() != count)
    return fail(fmt::format("a list of {} registers where {} are wanted",
                            list.list.size(), count));
  for (size_t i = 0; i < count; ++i)
    instruction.list.push_back(destination(single ? list : list.list[i], type));
}

Decoder::Address Decoder::address(const ptx::Operand &operand) {
  if (operand.kind != ptx::Operand::Kind::Address || operand.list.size() != 1) {
    fail("an address in brackets is wanted");
    return {};
  }
  const ptx::Operand &base = operand.list[0];
  bool isWide = declared(base.name).second.empty() || this->isWide(base);
  return {source(base, isWide ? Type::B64 : Type::B32), operand.value, isWide};
}

void Decoder::address(size_t index) {
  Address address = this->address(operand(index));
  instruction.a = address.base;
  instruction.value = address.offset;
  if (address.isWide)
    instruction.flags |= wideAddress;
}

bool Decoder::isPredicate(const ptx::Operand &operand) const {
  return declared(operand.name).first == "pred";
}

std::optional<int64_t> Decoder::constant(size_t index) const {
  const ptx::Operand &at = operand(index);
  if (at.kind != ptx::Operand::Kind::Integer)
    return std::nullopt;
  return at.value;
}

uint32_t Decoder::label(size_t index) {
  const std::string &name = operand(index).name;
  for (unsigned scope = current->scope;; scope = kernel.scopes[scope].parent) {
    auto found = kernel.scopes[scope].labels.find(name);
    if (found != kernel.scopes[scope].labels.end())
      return found->second;
    if (scope == 0)
      break;
  }
  fail(fmt::format("there is no label {}", name));
  return 0;
}

} // namespace burst::emulator
