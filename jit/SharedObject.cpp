//===- SharedObject.cpp - objects on disk ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "jit/SharedObject.h"
#include "support/Files.h"

#include "burst/internal/seal.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/InterfaceStub/ELFObjHandler.h"
#include "llvm/InterfaceStub/IFSHandler.h"
#include "llvm/InterfaceStub/IFSStub.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>
#include <utility>

#include <tuple>

using namespace llvm;
using namespace burst;

static Error fail(StringRef path, const Twine &message) {
  return createStringError(path + ": " + message);
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

/// The file that a function of this process comes from: what the program needs
/// is there without any package for development.
static std::string libraryOf(void *function) {
  Dl_info info;
  return dladdr(function, &info) && info.dli_fname ? info.dli_fname : "";
}

static Expected<std::string> findLinker(ArrayRef<StringRef> names) {
  for (StringRef name : names)
    if (auto path = sys::findProgramByName(name))
      return *path;
  return createStringError("found no linker, wanted one on the PATH: " +
                           join(names, ", "));
}

using Objects = ArrayRef<std::unique_ptr<MemoryBuffer>>;

/// Libraries of C to link with.
namespace {
struct Libraries {
  std::vector<std::string> paths;
  std::vector<TemporaryFile> stubs; ///< some of them, while this lives
};
} // namespace

static void addLibrariesOfProcess(Libraries &libraries) {
  for (std::string library :
       {libraryOf(reinterpret_cast<void *>(
            static_cast<double (*)(double)>(&std::log2))),
        libraryOf(reinterpret_cast<void *>(&std::malloc))})
    if (StringRef(library).contains(".so"))
      libraries.paths.push_back(std::move(library));
}

/// A library of glibc's name that defines what an object asks of it, and holds
/// nothing.
static Error addStub(ifs::IFSArch machine, StringRef name,
                     ArrayRef<std::string> symbols, Libraries &libraries) {
  ifs::IFSStub stub;
  stub.IfsVersion = ifs::IFSVersionCurrent;
  stub.SoName = name.str();
  stub.Target.Arch = machine;
  stub.Target.Endianness = ifs::IFSEndiannessType::Little;
  stub.Target.BitWidth = ifs::IFSBitWidthType::IFS64;
  for (const std::string &symbol : symbols) {
    ifs::IFSSymbol &defined = stub.Symbols.emplace_back(symbol);
    defined.Type = ifs::IFSSymbolType::Func;
  }
  auto file = TemporaryFile::create("burst-link", "so");
  if (!file)
    return file.takeError();
  libraries.paths.push_back(file->getName());
  libraries.stubs.push_back(std::move(*file));
  return ifs::writeBinaryStub(libraries.paths.back(), stub);
}

/// Objects call functions of memory, of the C library, of mathematics, and,
/// where a processor lacks conversions, of the compiler. What they call of each
/// other is found there before it is looked for in a stub.
static Error addStubs(Objects objects, Libraries &libraries) {
  std::vector<std::string> memory, compiler, math;
  uint16_t machine = ELF::EM_NONE;
  for (const std::unique_ptr<MemoryBuffer> &buffer : objects) {
    auto file =
        object::ObjectFile::createELFObjectFile(buffer->getMemBufferRef());
    if (!file)
      return file.takeError();
    machine = cast<object::ELFObjectFileBase>(**file).getEMachine();
    for (const object::SymbolRef &symbol : (*file)->symbols()) {
      Expected<uint32_t> flags = symbol.getFlags();
      if (!flags)
        return flags.takeError();
      Expected<StringRef> name = symbol.getName();
      if (!name)
        return name.takeError();
      if (!(*flags & object::SymbolRef::SF_Undefined) || name->empty())
        continue;
      auto &names = name->starts_with("mem")  ? memory
                    : name->starts_with("__") ? compiler
                                              : math;
      names.push_back(name->str());
    }
  }
  if (Error error = addStub(machine, "libm.so.6", math, libraries))
    return error;
  if (Error error = addStub(machine, "libgcc_s.so.1", compiler, libraries))
    return error;
  return addStub(machine, "libc.so.6", memory, libraries);
}

/// Runs the linker; what it says is part of the error.
static Error runLinker(StringRef linker, ArrayRef<TemporaryFile> objects,
                       const Libraries &libraries, StringRef output) {
  SmallVector<StringRef> arguments = {linker, "-shared", "-o", output};
  arguments.reserve(arguments.size() + objects.size() + 4);
  for (const TemporaryFile &object : objects)
    arguments.push_back(object.getName());
  // A driver of a compiler is told what a linker does by itself.
  StringRef name = sys::path::filename(linker);
  if (!name.contains("ld"))
    arguments.append({"-nostdlib", "-Wl,--as-needed"});
  else
    arguments.push_back("--as-needed");
  for (StringRef library : libraries.paths)
    arguments.push_back(library);

  auto file = TemporaryFile::create("burst-link", "txt");
  if (!file)
    return file.takeError();
  StringRef log = file->getName();
  std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  std::string problem;
  int status = sys::ExecuteAndWait(linker, arguments, std::nullopt, redirects,
                                   0, 0, &problem);
  if (status == 0)
    return Error::success();
  auto said = MemoryBuffer::getFile(log);
  return fail(linker, "failed with status " + Twine(status) +
                          (problem.empty() ? "" : ": " + problem) +
                          (said ? ": " + (*said)->getBuffer().trim().str()
                                : std::string()));
}

/// Behind what the linker wrote.
static Error seal(StringRef path) {
  auto bytes = MemoryBuffer::getFile(path, /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
  if (!bytes)
    return fail(path, "cannot read: " + bytes.getError().message());
  StringRef linked = (*bytes)->getBuffer();
  burst_seal made =
      burst_seal_of(linked.size(),
                    burst_hash(BURST_HASH_BEGIN, linked.data(), linked.size()));
  std::error_code code;
  raw_fd_ostream stream(path, code, sys::fs::OF_Append);
  if (code)
    return fail(path, "cannot write: " + code.message());
  stream.write(reinterpret_cast<const char *>(&made), sizeof(made));
  stream.close();
  code = stream.error();
  stream.clear_error();
  return code ? fail(path, "cannot write: " + code.message())
              : Error::success();
}

static Error linkTo(Objects objects, StringRef linker,
                    const Libraries &libraries, StringRef path) {
  std::vector<TemporaryFile> inputs;
  inputs.reserve(objects.size());
  for (const std::unique_ptr<MemoryBuffer> &object : objects) {
    auto input = TemporaryFile::beside(path, 0600);
    if (!input)
      return input.takeError();
    if (Error error = input->write(object->getBuffer()))
      return error;
    inputs.push_back(std::move(*input));
  }
  auto output = TemporaryFile::beside(path, 0777);
  if (!output)
    return output.takeError();
  if (Error error = runLinker(linker, inputs, libraries, output->getName()))
    return error;
  if (Error error = seal(output->getName()))
    return error;
  return output->keep();
}

/// A linker writes where it can move, which a device or a pipe cannot: to a
/// file, which is written there when it is whole.
static Error linkSpecial(Objects objects, StringRef linker,
                         const Libraries &libraries, StringRef path) {
  auto whole = TemporaryFile::create("burst-link", "so");
  if (!whole)
    return whole.takeError();
  if (Error error = linkTo(objects, linker, libraries, whole->getName()))
    return error;
  auto bytes = MemoryBuffer::getFile(whole->getName());
  if (!bytes)
    return fail(whole->getName(), "cannot read: " + bytes.getError().message());
  return writeFile((*bytes)->getBuffer(), path);
}

static Error link(Objects objects, ArrayRef<StringRef> linkers,
                  const Libraries &libraries, StringRef path) {
  auto linker = findLinker(linkers);
  if (!linker)
    return linker.takeError();
  return isSpecial(path) ? linkSpecial(objects, *linker, libraries, path)
                         : linkTo(objects, *linker, libraries, path);
}

Error jit::linkFile(Objects objects, StringRef linker, StringRef path) {
  Libraries libraries;
  addLibrariesOfProcess(libraries);
  if (!linker.empty())
    return link(objects, linker, libraries, path);
  return link(objects, {"ld.lld-22", "ld.lld", "ld", "cc"}, libraries, path);
}

Error jit::crossLinkFile(Objects objects, StringRef linker, StringRef path) {
  Libraries libraries;
  if (Error error = addStubs(objects, libraries))
    return error;
  if (!linker.empty())
    return link(objects, linker, libraries, path);
  return link(objects, {"ld.lld-22", "ld.lld"}, libraries, path);
}
