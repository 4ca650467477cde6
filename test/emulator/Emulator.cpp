//===- Emulator.cpp - Modules, memory, reports ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Emulator.h"

#include "test/emulator/Decode.h"

#include <cassert>
#include <fmt/format.h>
#include <mutex>
#include <utility>

namespace burst::emulator {

std::string_view name(FailureKind kind) {
  switch (kind) {
  case FailureKind::Syntax:
    return "syntax";
  case FailureKind::UnknownOpcode:
    return "unknown opcode";
  case FailureKind::BadLaunch:
    return "bad launch";
  case FailureKind::OutOfBounds:
    return "out of bounds";
  case FailureKind::Misaligned:
    return "misaligned";
  case FailureKind::Uninitialised:
    return "uninitialised";
  case FailureKind::ReadOnly:
    return "read-only";
  case FailureKind::Race:
    return "race";
  case FailureKind::Divergence:
    return "divergence";
  case FailureKind::Barrier:
    return "barrier";
  case FailureKind::Deadlock:
    return "deadlock";
  case FailureKind::Budget:
    return "budget";
  case FailureKind::Arithmetic:
    return "arithmetic";
  case FailureKind::Protocol:
    return "protocol";
  case FailureKind::Trap:
    return "trap";
  }
  return "";
}

static std::string describe(const Place &place) {
  std::string result = fmt::format("line {}", place.line);
  if (place.sourceLine)
    result += fmt::format(" (source line {})", place.sourceLine);
  return result + fmt::format(", block ({},{},{}), thread ({},{},{})",
                              place.block.x, place.block.y, place.block.z,
                              place.thread.x, place.thread.y, place.thread.z);
}

std::string Failure::str() const {
  std::string result = fmt::format("{}: {}", name(kind), message);
  if (!buffer.empty())
    result += fmt::format(" [{}+{:#x}]", buffer, address);
  result += fmt::format("\n  at {}: {}", describe(place), text);
  if (other)
    result += fmt::format("\n  {} at {}", other->what, describe(*other));
  return result;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

uint64_t Memory::allocate(size_t bytes, std::string name, Access access) {
  std::scoped_lock lock(mutex);
  uint64_t base = nextBase;
  // A gap, so that an access past the end meets no other buffer.
  nextBase += (bytes + 0xffff) / 0x10000 * 0x10000 + 0x10000;
  Buffer &buffer = buffers[base];
  buffer.base = base;
  buffer.name = std::move(name);
  buffer.access = access;
  buffer.size = bytes;
  buffer.data.assign(bytes, 0xff);
  buffer.written.assign((bytes + 3) / 4, 0);
  return base;
}

void Memory::free(uint64_t address) {
  std::scoped_lock lock(mutex);
  buffers.erase(address);
}

const Memory::Buffer *Memory::find(uint64_t address) const {
  std::shared_lock lock(mutex);
  auto after = buffers.upper_bound(address);
  if (after == buffers.begin())
    return nullptr;
  const Buffer &buffer = std::prev(after)->second;
  // Up to the gap the address is one of the buffer, beyond its end.
  return address - buffer.base < buffer.size + 0x10000 ? &buffer : nullptr;
}

Memory::Buffer *Memory::find(uint64_t address) {
  return const_cast<Buffer *>(std::as_const(*this).find(address));
}

void Memory::write(uint64_t address, const void *data, size_t bytes) {
  Buffer *buffer = find(address);
  assert(buffer && address - buffer->base + bytes <= buffer->size &&
         "outside of every buffer");
  uint64_t at = address - buffer->base;
  if (bytes)
    memcpy(buffer->data.data() + at, data, bytes);
  for (uint64_t i = at; i < at + bytes; ++i)
    buffer->written[i / 4] |= uint8_t(1U << i % 4);
}

void Memory::read(uint64_t address, void *data, size_t bytes) const {
  const Buffer *buffer = find(address);
  assert(buffer && address - buffer->base + bytes <= buffer->size &&
         "outside of every buffer");
  if (bytes)
    memcpy(data, buffer->data.data() + (address - buffer->base), bytes);
}

bool Memory::initialised(uint64_t address, size_t bytes) const {
  const Buffer *buffer = find(address);
  if (!buffer || address - buffer->base + bytes > buffer->size)
    return false;
  for (uint64_t i = address - buffer->base, end = i + bytes; i < end; ++i)
    if (!(buffer->written[i / 4] >> i % 4 & 1))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

Module::Module() = default;
Module::~Module() = default;
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&) noexcept = default;

static uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

static std::optional<Failure> decode(const ptx::Kernel &kernel,
                                     const ptx::Text &text, Program &program) {
  program.name = kernel.name;
  std::map<std::string, std::pair<Space, uint64_t>> symbols;
  uint64_t offset = 0;
  for (const ptx::Variable &parameter : kernel.parameters) {
    offset = alignTo(offset, parameter.alignment);
    symbols[parameter.name] = {Space::Param, offset};
    program.parameters.emplace_back(offset, parameter.bytes);
    offset += parameter.bytes;
  }
  uint64_t shared = sharedBase, local = 0, dynamicAlignment = 16;
  std::vector<const ptx::Variable *> variables;
  for (const std::vector<ptx::Variable> *list :
       {&text.variables, &kernel.variables})
    for (const ptx::Variable &variable : *list)
      variables.push_back(&variable);
  std::vector<std::string> dynamic;
  for (const ptx::Variable *variable : variables) {
    if (variable->space == "shared" && variable->isDynamic) {
      dynamic.push_back(variable->name);
      dynamicAlignment = std::max(dynamicAlignment, variable->alignment);
    } else if (variable->space == "shared") {
      shared = alignTo(shared, variable->alignment);
      symbols[variable->name] = {Space::Shared, shared};
      shared += variable->bytes;
    } else if (variable->space == "local") {
      local = alignTo(local, variable->alignment);
      symbols[variable->name] = {Space::Local, local};
      local += variable->bytes;
    }
    // The machine lacks variables of modules. NVRTC writes one for each
    // constant of a class, which no code refers to: that would be an unknown
    // name.
  }
  program.staticShared =
      uint32_t(dynamic.empty() ? shared : alignTo(shared, dynamicAlignment));
  program.localBytes = uint32_t(alignTo(local, 16));
  for (const std::string &name : dynamic)
    symbols[name] = {Space::Shared, program.staticShared};

  std::map<std::string, uint32_t> registers;
  Decoder decoder(program, kernel, registers, symbols);
  for (const ptx::Statement &statement : kernel.statements)
    if (auto failure = decoder.decode(statement))
      return failure;
  for (const SourceLine &source : program.source)
    program.hasBulk |= source.opcode.starts_with("cp.async.bulk") ||
                       source.opcode == "mbarrier" || source.opcode == "wgmma";
  ptx::Statement end; // where the text ends without a return
  end.line =
      kernel.statements.empty() ? kernel.line : kernel.statements.back().line;
  end.text = "(the end of the kernel)";
  end.opcode = "ret";
  return decoder.decode(end);
}

std::optional<Failure> Module::parse(std::string_view ptx) {
  programs.clear();
  ptx::Text text;
  if (auto failure = ptx::parse(ptx, text))
    return failure;
  for (const ptx::Kernel &kernel : text.kernels) {
    auto program = std::make_unique<Program>();
    if (auto failure = decode(kernel, text, *program))
      return failure;
    programs[kernel.name] = std::move(program);
  }
  return std::nullopt;
}

std::optional<KernelShape> Module::shape(const std::string &kernel) const {
  auto found = programs.find(kernel);
  if (found == programs.end())
    return std::nullopt;
  const Program &program = *found->second;
  return KernelShape{program.parameters, program.staticShared - sharedBase,
                     program.localBytes};
}

Outcome Module::launch(const std::string &kernel, Dim3 grid, Dim3 block,
                       size_t sharedBytes, const Arguments &arguments,
                       Memory &memory, const Options &options) const {
  Outcome outcome;
  auto fail = [&](std::string message) {
    outcome.failure.emplace();
    outcome.failure->kind = FailureKind::BadLaunch;
    outcome.failure->message = std::move(message);
    return std::move(outcome);
  };
  auto found = programs.find(kernel);
  if (found == programs.end())
    return fail(fmt::format("the module has no kernel {}", kernel));
  const Program &program = *found->second;
  size_t wanted =
      program.parameters.empty()
          ? 0
          : program.parameters.back().first + program.parameters.back().second;
  if (arguments.data.size() != wanted)
    return fail(fmt::format("{} takes {} bytes of arguments, got: {}", kernel,
                            wanted, arguments.data.size()));
  if (block.volume() == 0 || block.volume() > 1024 || grid.volume() == 0)
    return fail(
        fmt::format("{} blocks of {} threads", grid.volume(), block.volume()));
  if (program.staticShared + sharedBytes > 228 * 1024)
    return fail(fmt::format("{} bytes of shared memory",
                            program.staticShared + sharedBytes));
  return Machine(program, grid, block, sharedBytes, arguments, memory, options)
      .run();
}

} // namespace burst::emulator
