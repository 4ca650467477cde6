//===- Captures.h - values that regions capture -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_PROPERTY_CAPTURES_H
#define BURST_TEST_UNIT_PROPERTY_CAPTURES_H

#include "test/unit/property/Dice.h"
#include "tools/data/Safetensors.h"

#include <string>

namespace burst::test {

/// A value of the function that a region captures; a scalar has no shape.
struct Capture {
  std::string name; ///< as in the text, with its %
  std::string type; ///< sizes may be left open
  std::string element;
  std::vector<int64_t> shape;
};

/// What a function has besides query, key and value: arguments with values, and
/// constants.
class Captures {
public:
  explicit Captures(Dice &dice) : dice(dice) {}

  /// Integers, as they are; those of an i1 are 0 and 1.
  Capture addInts(const std::string &element, std::vector<int64_t> shape,
                  const std::vector<int64_t> &values);
  /// Floats that the type can hold. A size of 1 that stands for broadcasting
  /// must not be left open.
  Capture addFloats(const std::string &element, std::vector<int64_t> shape,
                    const std::vector<double> &values, bool mayBeOpen = true);

  /// "%t0: tensor<3xi32>, ..."; the name of a tensor is that of its argument.
  const std::vector<std::string> &arguments() const { return argumentTexts; }
  /// "  %t1 = arith.constant ...\n"
  const std::string &constants() const { return constantTexts; }
  const data::Tensors &tensors() const { return values; }

private:
  Capture add(data::Tensor tensor, const std::string &element,
              const std::vector<std::string> &texts, bool mayBeOpen);

  Dice &dice;
  int64_t count = 0;
  std::vector<std::string> argumentTexts;
  std::string constantTexts;
  data::Tensors values;
};

/// The type in a file of an element type in MLIR.
data::DType dtypeOfElement(const std::string &element);
inline bool isFloatElement(const std::string &element) {
  return element == "bf16" || element[0] == 'f';
}
/// The width of an integer type, 64 of `index`.
unsigned widthOfElement(const std::string &element);

/// "tensor<2x?xf32>", or the element where there is no dimension. Sizes of -1
/// are left open.
std::string tensorText(const std::vector<int64_t> &shape,
                       const std::string &element);

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_CAPTURES_H
