//===- Nvrtc.cpp - texts of CUDA C++ to machine code ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/cuda/Nvrtc.h"

#include "support/Files.h"

#include "burst/internal/nvrtc.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace llvm;
using namespace burst;
using namespace burst::cuda;

std::vector<std::string> Source::allOptions() const {
  std::vector<std::string> all = {"--gpu-architecture=" + architecture,
                                  "--std=c++20", "--ptxas-options=-v"};
  if (lineInfo)
    all.push_back("--generate-line-info");
  append_range(all, options);
  return all;
}

std::string cuda::architectureOf(int major, int minor) {
  return formatv("sm_{0}{1}{2}", major, minor, major >= 9 ? "a" : "");
}

static Expected<const burst_nvrtc *> getTable() {
  const burst_nvrtc *nvrtc = nullptr;
  burst_error *error = burst_nvrtc_table(&nvrtc);
  if (!error)
    return nvrtc;
  std::string message = burst_error_message(error);
  burst_error_destroy(error);
  return createStringError("kernels of GPUs need NVRTC: " + message);
}

static std::pair<int, int> versionOf(const burst_nvrtc *nvrtc) {
  int major = 0, minor = 0;
  nvrtc->nvrtcVersion(&major, &minor);
  return {major, minor};
}

static std::string nameOf(const burst_nvrtc *nvrtc) {
  auto [major, minor] = versionOf(nvrtc);
  return formatv("NVRTC {0}.{1}", major, minor);
}

static std::string architecturesOf(const burst_nvrtc *nvrtc) {
  int count = 0;
  if (nvrtc->nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0)
    return "none";
  std::vector<int> numbers(count);
  if (nvrtc->nvrtcGetSupportedArchs(numbers.data()) != NVRTC_SUCCESS)
    return "none";
  return join(
      map_range(numbers, [](int n) { return "sm_" + std::to_string(n); }),
      ", ");
}

/// A text that a pair of functions of NVRTC gives; without the zero at the end
/// that NVRTC counts. Empty where there is none.
static std::string getText(nvrtcProgram program,
                           nvrtcResult (*getSize)(nvrtcProgram, size_t *),
                           nvrtcResult (*get)(nvrtcProgram, char *)) {
  size_t bytes = 0;
  if (getSize(program, &bytes) != NVRTC_SUCCESS || bytes == 0)
    return "";
  std::string text(bytes, '\0');
  if (get(program, text.data()) != NVRTC_SUCCESS)
    return "";
  return text;
}

static void dropFinalZeros(std::string &text) {
  text.resize(text.find_last_not_of('\0') + 1);
}

/// Writes a text that did not compile to a file of its own; tells its path, or
/// why there is none.
static std::string writeDown(const Source &source) {
  auto file = TemporaryFile::create(sys::path::stem(source.name), "cu");
  if (!file)
    return "its text could not be written: " + toString(file.takeError());
  std::string path = file->getName();
  Error error = file->write(source.text);
  if (!error)
    error = file->keep();
  if (error)
    return "its text could not be written: " + toString(std::move(error));
  return "its text is in " + path;
}

static Error failedToCompile(const burst_nvrtc *nvrtc, const Source &source,
                             nvrtcResult result, std::string log) {
  dropFinalZeros(log);
  std::string message =
      formatv("{0}: {1} did not compile it for {2}: {3}; {4}", source.name,
              nameOf(nvrtc), source.architecture,
              StringRef(nvrtc->nvrtcGetErrorString(result)), writeDown(source));
  if (result == NVRTC_ERROR_INVALID_OPTION)
    message += "\noptions: " + join(source.allOptions(), " ") +
               "\narchitectures: " + architecturesOf(nvrtc);
  if (!StringRef(log).trim().empty())
    message += "\n" + StringRef(log).rtrim().str();
  return createStringError(message);
}

Expected<Binary> cuda::compile(const Source &source) {
  Expected<const burst_nvrtc *> table = getTable();
  if (!table)
    return table.takeError();
  const burst_nvrtc *nvrtc = *table;
  nvrtcProgram program = nullptr;
  nvrtcResult result = nvrtc->nvrtcCreateProgram(
      &program, source.text.c_str(), source.name.c_str(), 0, nullptr, nullptr);
  if (result != NVRTC_SUCCESS)
    return failedToCompile(nvrtc, source, result, "");
  scope_exit destroy([&] { nvrtc->nvrtcDestroyProgram(&program); });
  std::vector<std::string> options = source.allOptions();
  std::vector<const char *> pointers;
  pointers.reserve(options.size());
  for (const std::string &option : options)
    pointers.push_back(option.c_str());
  result = nvrtc->nvrtcCompileProgram(
      program, static_cast<int>(pointers.size()), pointers.data());
  Binary binary;
  binary.log = getText(program, nvrtc->nvrtcGetProgramLogSize,
                       nvrtc->nvrtcGetProgramLog);
  if (result != NVRTC_SUCCESS)
    return failedToCompile(nvrtc, source, result, std::move(binary.log));
  dropFinalZeros(binary.log);
  binary.cubin =
      getText(program, nvrtc->nvrtcGetCUBINSize, nvrtc->nvrtcGetCUBIN);
  binary.ptx = getText(program, nvrtc->nvrtcGetPTXSize, nvrtc->nvrtcGetPTX);
  dropFinalZeros(binary.ptx);
  binary.minimumDriver = 1000 * versionOf(nvrtc).first;
  return binary;
}

static Expected<std::string> hashOf(const char *path, FileHashes hashes) {
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status))
    return createFileError(path, error);
  std::string file =
      formatv("{0}, {1} bytes, {2}", StringRef(path), status.getSize(),
              status.getLastModificationTime().time_since_epoch().count());
  if (std::optional<std::string> hash = hashes.find(file))
    return *hash;
  ErrorOr<std::unique_ptr<MemoryBuffer>> content = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!content)
    return createFileError(path, content.getError());
  std::string hash =
      toHex(BLAKE3::hash(arrayRefFromStringRef((*content)->getBuffer())),
            /*LowerCase=*/true);
  hashes.put(file, hash);
  return hash;
}

Expected<std::string> cuda::identifyNvrtc(FileHashes hashes) {
  Expected<const burst_nvrtc *> table = getTable();
  if (!table)
    return table.takeError();
  const char *path = (*table)->path;
  return path ? hashOf(path, hashes) : "stand-in for " + nameOf(*table);
}

Expected<std::string> cuda::identifyNvrtcUnopened(FileHashes hashes) {
  std::unique_ptr<char, decltype(&free)> path(burst_nvrtc_locate(), free);
  return path ? hashOf(path.get(), hashes) : identifyNvrtc(hashes);
}
