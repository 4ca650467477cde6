//===- Captures.cpp -------------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/property/Captures.h"

#include <fmt/format.h>

using namespace burst;
using namespace burst::test;

data::DType test::dtypeOfElement(const std::string &element) {
  using data::DType;
  const std::pair<const char *, DType> known[] = {
      {"f64", DType::F64},   {"f32", DType::F32}, {"f16", DType::F16},
      {"bf16", DType::BF16}, {"i1", DType::BOOL}, {"i8", DType::I8},
      {"i16", DType::I16},   {"i32", DType::I32}};
  for (auto [name, dtype] : known)
    if (element == name)
      return dtype;
  return DType::I64; // of i64 and of index
}

unsigned test::widthOfElement(const std::string &element) {
  return element == "index" ? 64 : std::stoi(element.substr(1));
}

std::string test::tensorText(const std::vector<int64_t> &shape,
                             const std::string &element) {
  if (shape.empty())
    return element;
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += size < 0 ? "?x" : fmt::format("{}x", size);
  return text + element + ">";
}

/// "[[1, 2], [3, 4]]"
static std::string nested(const std::vector<int64_t> &shape, size_t dim,
                          const std::vector<std::string> &texts, size_t &next) {
  if (dim == shape.size())
    return texts[next++];
  std::string text = "[";
  for (int64_t i = 0; i < shape[dim]; ++i)
    text += (i == 0 ? "" : ", ") + nested(shape, dim + 1, texts, next);
  return text + "]";
}

Capture Captures::add(data::Tensor tensor, const std::string &element,
                      const std::vector<std::string> &texts, bool mayBeOpen) {
  std::vector<int64_t> shape = tensor.shape;
  std::string name = fmt::format("t{}", count++);
  Capture capture{"%" + name, tensorText(shape, element), element, shape};
  if (dice.chance(20)) {
    size_t next = 0;
    std::string text = texts.empty() ? "" : nested(shape, 0, texts, next);
    if (!shape.empty())
      text = "dense<" + text + ">";
    bool isTruth = shape.empty() && element == "i1"; // has no type behind it
    constantTexts += fmt::format("  {} = arith.constant {}{}\n", capture.name,
                                 text, isTruth ? "" : " : " + capture.type);
    return capture;
  }
  std::vector<int64_t> open = shape;
  for (int64_t &size : open)
    size = mayBeOpen && dice.chance(30) ? -1 : size;
  capture.type = tensorText(open, element);
  argumentTexts.push_back(fmt::format("{0}: {1} {{burst.name = \"{2}\"}}",
                                      capture.name, capture.type, name));
  values.emplace(name, std::move(tensor));
  return capture;
}

Capture Captures::addInts(const std::string &element,
                          std::vector<int64_t> shape,
                          const std::vector<int64_t> &values) {
  data::Tensor tensor =
      data::Tensor::zeros(dtypeOfElement(element), std::move(shape));
  std::vector<std::string> texts;
  for (size_t i = 0; i < values.size(); ++i) {
    data::fromInt(tensor.dtype, values[i], tensor.element(i));
    texts.push_back(element == "i1" ? (values[i] != 0 ? "true" : "false")
                                    : std::to_string(values[i]));
  }
  return add(std::move(tensor), element, texts, /*mayBeOpen=*/true);
}

Capture Captures::addFloats(const std::string &element,
                            std::vector<int64_t> shape,
                            const std::vector<double> &values, bool mayBeOpen) {
  std::vector<std::string> texts;
  for (double value : values)
    texts.push_back(fmt::format("{:.9e}", value));
  return add(
      data::Tensor::of(dtypeOfElement(element), std::move(shape), values),
      element, texts, mayBeOpen);
}
