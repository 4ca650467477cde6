//===- Text.h - PTX for the tests -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_EMULATOR_TEXT_H
#define BURST_TEST_EMULATOR_TEXT_H

#include "test/emulator/Emulator.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace burst::emulator {

/// A kernel "k" of two pointers, which %rd1 and %rd2 hold; %r1 is the thread,
/// and buffer the dynamic shared memory.
inline std::string kernelOf(const std::string &body) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 buffer[];\n"
         ".visible .entry k(.param .u64 k_0, .param .u64 k_1)\n{\n"
         ".reg .pred %p<32>;\n.reg .b16 %rs<32>;\n.reg .b32 %r<128>;\n.reg "
         ".b64 %rd<64>;\n"
         ".reg .f32 %f<256>;\n"
         "ld.param.u64 %rd1, [k_0];\nld.param.u64 %rd2, [k_1];\nmov.u32 %r1, "
         "%tid.x;\n" +
         body + "\nret;\n}\n";
}

/// The line, from 1, with the needle in it.
inline unsigned lineOf(const std::string &text, const std::string &needle,
                       int occurrence = 0) {
  size_t at = text.find(needle);
  while (occurrence-- && at != std::string::npos)
    at = text.find(needle, at + 1);
  EXPECT_NE(at, std::string::npos) << needle;
  return at == std::string::npos
             ? 0
             : unsigned(std::count(text.begin(), text.begin() + ptrdiff_t(at),
                                   '\n') +
                        1);
}

/// Replaces one occurrence.
inline std::string edited(std::string text, const std::string &from,
                          const std::string &to, int occurrence = 0) {
  size_t at = text.find(from);
  while (occurrence-- && at != std::string::npos)
    at = text.find(from, at + 1);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline std::string readInput(const std::string &name) {
  std::ifstream file(std::string(BURST_EMULATOR_INPUTS) + "/" + name);
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Module parsed(const std::string &text) {
  Module module;
  auto failure = module.parse(text);
  EXPECT_FALSE(failure) << failure->str();
  return module;
}

inline std::string str(const Outcome &outcome) {
  return outcome.failure ? outcome.failure->str() : "no failure";
}

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_TEXT_H
