//===- Files.cpp - files that are whole or not there ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Files.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>
#include <tuple>
#include <unistd.h>

using namespace llvm;
using namespace burst;

static std::atomic<bool> removesOnSignals = false;

void burst::removeTemporaryFilesOnSignals() { removesOnSignals = true; }

static Error cannotWrite(StringRef path, std::error_code code) {
  return createStringError(path + ": cannot write: " + code.message());
}

static Error writeTo(int descriptor, StringRef bytes, StringRef path) {
  raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  stream << bytes;
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error(); // or its destructor ends the process
  return code ? cannotWrite(path, code) : Error::success();
}

//===----------------------------------------------------------------------===//
// Temporary files
//===----------------------------------------------------------------------===//

TemporaryFile::TemporaryFile(StringRef path, StringRef name, int descriptor)
    : path(path), name(name), descriptor(descriptor) {
  if (removesOnSignals)
    sys::RemoveFileOnSignal(name);
}

void TemporaryFile::forget() {
  close(descriptor);
  if (removesOnSignals)
    sys::DontRemoveFileOnSignal(name);
  name.clear();
}

TemporaryFile::~TemporaryFile() {
  if (name.empty())
    return;
  std::ignore = sys::fs::remove(name);
  forget();
}

Expected<TemporaryFile> TemporaryFile::beside(StringRef path, unsigned mode) {
  if (sys::fs::is_directory(path))
    return createStringError(path +
                             ": found a directory, wanted a file to write");
  SmallString<128> target, name;
  if (sys::fs::real_path(path, target))
    target = path; // nothing is there
  int descriptor;
  if (std::error_code code = sys::fs::createUniqueFile(
          target + ".%%%%%%.tmp", descriptor, name, sys::fs::OF_None, mode))
    return cannotWrite(path, code);
  return TemporaryFile(target, name, descriptor);
}

Expected<TemporaryFile> TemporaryFile::create(StringRef stem,
                                              StringRef suffix) {
  int descriptor;
  SmallString<128> name, folder;
  sys::path::system_temp_directory(/*ErasedOnReboot=*/true, folder);
  if (std::error_code code =
          sys::fs::createTemporaryFile(stem, suffix, descriptor, name))
    return createStringError(
        folder + ": cannot make a temporary file: " + code.message() +
        "; TMPDIR may name another folder");
  return TemporaryFile(name, name, descriptor);
}

Error TemporaryFile::write(StringRef bytes) {
  return writeTo(descriptor, bytes, path);
}

Error TemporaryFile::keep() {
  if (name != path)
    if (std::error_code code = sys::fs::rename(name, path))
      return cannotWrite(path, code);
  forget();
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static constexpr uint64_t longestInput = uint64_t{1} << 30;

static Error cannotRead(StringRef path, const Twine &reason) {
  return createStringError("cannot open input file '" + path + "': " + reason);
}

static Error tooLong(StringRef path) {
  return cannotRead(path, "found more than " + Twine(longestInput) +
                              " bytes, the limit");
}

/// Of what has no size before it ends.
static Expected<std::unique_ptr<MemoryBuffer>>
readToEnd(sys::fs::file_t file, StringRef path, StringRef name) {
  constexpr size_t step = 1 << 16;
  SmallString<0> text;
  for (;;) {
    size_t size = text.size();
    text.resize_for_overwrite(size + step);
    Expected<size_t> count =
        sys::fs::readNativeFile(file, {text.data() + size, step});
    if (!count)
      return cannotRead(path, toString(count.takeError()));
    text.truncate(size + *count);
    if (*count == 0)
      return std::make_unique<SmallVectorMemoryBuffer>(std::move(text), name);
    if (text.size() > longestInput)
      return tooLong(path);
  }
}

Expected<std::unique_ptr<MemoryBuffer>> burst::readInput(StringRef path) {
  if (path == "-")
    return readToEnd(sys::fs::getStdinHandle(), path, "<stdin>");
  using sys::fs::file_type;
  sys::fs::file_status status;
  if (std::error_code code = sys::fs::status(path, status))
    return cannotRead(path, code.message());
  bool isDevice = status.type() == file_type::character_file ||
                  status.type() == file_type::block_file;
  if (isDevice && path != "/dev/stdin")
    return cannotRead(path, "found a device, wanted a file, a pipe, or '-' for "
                            "the standard input");
  bool isRegular = status.type() == file_type::regular_file;
  if (isRegular && status.getSize() > longestInput)
    return tooLong(path);
  Expected<sys::fs::file_t> file = sys::fs::openNativeFileForRead(path);
  if (!file)
    return cannotRead(path, toString(file.takeError()));
  scope_exit close([&] { std::ignore = sys::fs::closeFile(*file); });
  if (!isRegular)
    return readToEnd(*file, path, path);
  auto text = MemoryBuffer::getOpenFile(*file, path, status.getSize());
  if (!text)
    return cannotRead(path, text.getError().message());
  return std::move(*text);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

bool burst::isSpecial(StringRef path) {
  sys::fs::file_status status;
  return !sys::fs::status(path, status) && sys::fs::is_other(status);
}

static Error writeSpecial(StringRef bytes, StringRef path) {
  int descriptor;
  if (std::error_code code =
          sys::fs::openFileForWrite(path, descriptor, sys::fs::CD_OpenExisting))
    return cannotWrite(path, code);
  Error error = writeTo(descriptor, bytes, path);
  close(descriptor);
  return error;
}

Error burst::writeFile(StringRef bytes, StringRef path) {
  if (isSpecial(path))
    return writeSpecial(bytes, path);
  auto file = TemporaryFile::beside(path, 0666);
  if (!file)
    return file.takeError();
  if (Error error = file->write(bytes))
    return error;
  return file->keep();
}
