//===- StandIn.cpp - a compiler that makes nothing ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StandIn.h"

#include "burst/internal/nvrtc.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

using namespace burst::test;

struct _nvrtcProgram {
  std::string text, log, ptx, cubin;
};

namespace {
std::atomic<int> numCompiled, numRunning, mostRunning, numAlive, minorVersion;

nvrtcResult version(int *major, int *minor) {
  *major = 99;
  *minor = minorVersion;
  return NVRTC_SUCCESS;
}

const char *errorString(nvrtcResult result) {
  return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION"
                                           : "another error";
}

nvrtcResult create(nvrtcProgram *program, const char *text, const char *, int,
                   const char *const *, const char *const *) {
  *program = new _nvrtcProgram{text, {}, {}, {}};
  ++numAlive;
  return NVRTC_SUCCESS;
}

nvrtcResult destroy(nvrtcProgram *program) {
  delete *program;
  *program = nullptr;
  --numAlive;
  return NVRTC_SUCCESS;
}

bool has(const std::string &text, const char *word) {
  return text.find(word) != std::string::npos;
}

nvrtcResult compile(nvrtcProgram program, int count,
                    const char *const *options) {
  ++numCompiled;
  int running = ++numRunning;
  for (int most = mostRunning;
       most < running && !mostRunning.compare_exchange_weak(most, running);)
    ;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  --numRunning;
  const std::string &text = program->text;
  if (has(text, "fails")) {
    program->log = "error: it fails\n";
    return NVRTC_ERROR_COMPILATION;
  }
  if (has(text, "serialised"))
    program->log += "ptxas info    : (C7510) Potential Performance Loss\n";
  program->log += "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
                  "ptxas info    : Function properties for k\n";
  program->log +=
      has(text, "spills")
          ? "ptxas         .     8 bytes stack frame, 4 bytes spill "
            "stores, 4 bytes spill loads\n"
          : "ptxas         .     0 bytes stack frame, 0 bytes spill "
            "stores, 0 bytes spill loads\n";
  program->ptx = "ptx of " + text + ",";
  for (int i = 0; i < count; ++i)
    program->ptx += std::string(" ") + options[i];
  program->cubin = std::string("\177ELF\0\n", 6) + text;
  return NVRTC_SUCCESS;
}

// Of texts, NVRTC counts the zero at the end.
template <std::string _nvrtcProgram::*text>
nvrtcResult textSize(nvrtcProgram program, size_t *bytes) {
  *bytes = (program->*text).size() + 1;
  return NVRTC_SUCCESS;
}
template <std::string _nvrtcProgram::*text>
nvrtcResult getText(nvrtcProgram program, char *to) {
  memcpy(to, (program->*text).c_str(), (program->*text).size() + 1);
  return NVRTC_SUCCESS;
}

nvrtcResult cubinSize(nvrtcProgram program, size_t *bytes) {
  *bytes = program->cubin.size();
  return NVRTC_SUCCESS;
}
nvrtcResult getCubin(nvrtcProgram program, char *to) {
  memcpy(to, program->cubin.data(), program->cubin.size());
  return NVRTC_SUCCESS;
}

burst_nvrtc table = [] {
  burst_nvrtc nvrtc = {};
  nvrtc.nvrtcVersion = version;
  nvrtc.nvrtcGetErrorString = errorString;
  nvrtc.nvrtcCreateProgram = create;
  nvrtc.nvrtcDestroyProgram = destroy;
  nvrtc.nvrtcCompileProgram = compile;
  nvrtc.nvrtcGetProgramLogSize = textSize<&_nvrtcProgram::log>;
  nvrtc.nvrtcGetProgramLog = getText<&_nvrtcProgram::log>;
  nvrtc.nvrtcGetPTXSize = textSize<&_nvrtcProgram::ptx>;
  nvrtc.nvrtcGetPTX = getText<&_nvrtcProgram::ptx>;
  nvrtc.nvrtcGetCUBINSize = cubinSize;
  nvrtc.nvrtcGetCUBIN = getCubin;
  return nvrtc;
}();
} // namespace

StandIn::StandIn() {
  numCompiled = mostRunning = minorVersion = 0;
  table.path = nullptr;
  burst_nvrtc_stand_in(&table);
}

StandIn::~StandIn() { burst_nvrtc_stand_in(nullptr); }

int StandIn::compiled() { return numCompiled; }
int StandIn::atOnce() { return mostRunning; }
int StandIn::alive() { return numAlive; }
void StandIn::setMinorVersion(int minor) { minorVersion = minor; }
void StandIn::setLibrary(const char *path) { table.path = path; }
