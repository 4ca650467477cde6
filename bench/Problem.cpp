//===- Problem.cpp - attention that is measured ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/Problem.h"

#include "llvm/Support/FormatVariadic.h"

using namespace burst::bench;

static std::string maskOf(const Problem &problem) {
  switch (problem.mask) {
  case Mask::Full:
    return "";
  case Mask::Causal:
    return "mask causal";
  case Mask::Window:
    return llvm::formatv("mask window<left = {0}, right = 0>",
                         problem.parts - 1);
  case Mask::Documents:
    return llvm::formatv("mask [causal, documents](%ids : tensor<{0}xi32>)",
                         problem.sequence);
  case Mask::Prefix:
    return llvm::formatv("mask prefix<{0}>", problem.parts);
  }
  return "";
}

static std::string clausesOf(const Problem &problem) {
  return llvm::formatv(
      "{0} sequence <@cp, {1}> strategy <{2}>", maskOf(problem),
      problem.queries == 0 ? "zigzag" : "contiguous", problem.strategy);
}

/// The grid and the types of tensors, of keys and of rows.
static std::string headOf(const Problem &problem, const std::string &length) {
  return llvm::formatv(
      "shard.grid @cp(shape = {0})\n!t = tensor<{6}x{1}x{2}x{3}x{4}>\n"
      "!k = tensor<{6}x{7}x{8}x{3}x{4}>\n!l = tensor<{6}x{2}x{1}x{5}>\n",
      problem.grid(),
      problem.queries == 0 ? length : std::to_string(problem.queries),
      problem.heads, problem.dim, problem.type,
      problem.type == "f64" ? "f64" : "f32", problem.batch, length,
      problem.keyHeads == 0 ? problem.heads : problem.keyHeads);
}

std::string Problem::text(bool isDynamic) const {
  std::string types = headOf(*this, isDynamic ? "?" : std::to_string(sequence));
  std::string clauses = clausesOf(*this);
  std::string ids =
      mask == Mask::Documents
          ? llvm::formatv(", %ids: tensor<{0}xi32>", sequence).str()
          : "";
  if (isBackward)
    return types +
           llvm::formatv(
               "func.func @attention(%q: !t, %k: !k, %v: !k, %o: !t, %lse: !l, "
               "%do: !t{0}) -> (!t, !k, !k) {{\n"
               "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, "
               "%lse, %do\n      {1}\n"
               "      : (!t, !k, !k, !t, !l, !t) -> (!t, !k, !k)\n"
               "  return %dq, %dk, %dv : !t, !k, !k\n"
               "}\n",
               ids, clauses)
               .str();
  return types +
         llvm::formatv(
             "func.func @attention(%q: !t, %k: !k, %v: !k{0}) -> (!t, !l) {{\n"
             "  %o, %lse = burst.attention %q, %k, %v\n      {1}\n"
             "      : (!t, !k, !k) -> (!t, !l)\n"
             "  return %o, %lse : !t, !l\n"
             "}\n",
             ids, clauses)
             .str();
}

std::string Problem::step() const {
  return headOf(*this, std::to_string(sequence)) +
         llvm::formatv(
             "func.func @step(%q: !t, %k: !k, %v: !k, %do: !t) "
             "-> (!t, !t, !k, !k) {{\n"
             "  %o, %lse = burst.attention %q, %k, %v\n      {0}\n"
             "      : (!t, !k, !k) -> (!t, !l)\n"
             "  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, "
             "%lse, %do\n      {0}\n"
             "      : (!t, !k, !k, !t, !l, !t) -> (!t, !k, !k)\n"
             "  return %o, %dq, %dk, %dv : !t, !t, !k, !k\n"
             "}\n",
             clausesOf(*this))
             .str();
}

std::string Problem::name() const {
  std::string kept = mask == Mask::Full     ? "full"
                     : mask == Mask::Causal ? "causal"
                     : mask == Mask::Window ? "window "
                     : mask == Mask::Prefix ? "prefix "
                                            : "documents ";
  if (parts > 0)
    kept += std::to_string(parts);
  std::string length = std::to_string(sequence), of = std::to_string(heads);
  if (queries != 0)
    length = std::to_string(queries) + "x" + length;
  if (keyHeads != 0)
    of += "/" + std::to_string(keyHeads);
  return llvm::formatv("{0} {1} {2} {3}S={4} D={5} H={6}",
                       isBackward ? "backward" : "forward", type, kept,
                       batch == 1 ? "" : llvm::formatv("B={0} ", batch).str(),
                       length, dim, of);
}

std::string Problem::grid() const {
  return nodes == 1 ? std::to_string(ranks)
                    : llvm::formatv("{0}x{1}", nodes, ranks / nodes).str();
}

double Problem::pairs() const {
  auto triangle = [](int64_t size) {
    return static_cast<double>(size) * static_cast<double>(size + 1) / 2;
  };
  switch (mask) {
  case Mask::Full:
    return static_cast<double>(queries == 0 ? sequence : queries) *
           static_cast<double>(sequence);
  case Mask::Causal:
    return triangle(sequence);
  case Mask::Window:
    return triangle(sequence) -
           (parts < sequence ? triangle(sequence - parts) : 0);
  case Mask::Prefix: // what it adds is above the diagonal
    return triangle(sequence) + (parts > 0 ? triangle(parts - 1) : 0);
  case Mask::Documents: {
    double sum = 0;
    for (int64_t length : lengths())
      sum += triangle(length);
    return sum;
  }
  }
  return 0;
}

double Problem::flops() const {
  return (isBackward ? 10.0 : 4.0) * pairs() *
         static_cast<double>(batch * heads * dim);
}

double Problem::keyBytes() const {
  int64_t bytes = type == "f64" ? 8 : type == "f32" ? 4 : 2;
  return 2.0 *
         static_cast<double>(batch * sequence *
                             (keyHeads == 0 ? heads : keyHeads) * dim * bytes);
}

std::vector<int64_t> Problem::lengths() const {
  // The longest are seven times as long as the shortest.
  std::vector<int64_t> weights(parts), lengths(parts);
  int64_t sum = 0;
  for (int64_t i = 0; i < parts; ++i)
    sum += weights[i] = 1 + i * 5 % 7;
  int64_t before = 0, passed = 0;
  for (int64_t i = 0; i < parts; ++i) {
    passed += weights[i];
    int64_t end = sequence * passed / sum;
    lengths[i] = end - before;
    before = end;
  }
  return lengths;
}

std::vector<int32_t> Problem::ids() const {
  std::vector<int32_t> ids;
  ids.reserve(sequence);
  for (int64_t length : lengths())
    ids.insert(ids.end(), length, ids.empty() ? 0 : ids.back() + 1);
  return ids;
}
