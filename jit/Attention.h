//===- Attention.h - descriptions as modules --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_JIT_ATTENTION_H
#define BURST_JIT_ATTENTION_H

#include "burst/burst.h"

#include <string>
#include <string_view>

namespace burst::jit {

/// The module that a description stands for, whose function is @attention; an
/// error names the field that is wrong. The size of the struct was checked.
std::string attentionText(const burst_attention &attention, std::string &error);

/// The field, with its value, that the module has in the line of `location`,
/// "file:line:column"; empty if there is none.
std::string fieldAt(const burst_attention &attention, std::string_view module,
                    std::string_view location);

} // namespace burst::jit

#endif // BURST_JIT_ATTENTION_H
