//===- Attention.h - descriptions as modules --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_ATTENTION_H
#define BURST_JIT_ATTENTION_H

#include "burst/burst.h"

#include <string>

namespace burst::jit {

/// The module that a description stands for, whose function is @attention; an
/// error names the field that is wrong. The size of the struct was checked.
std::string attentionText(const burst_attention &attention, std::string &error);

} // namespace burst::jit

#endif // BURST_JIT_ATTENTION_H
