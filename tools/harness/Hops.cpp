//===- Hops.cpp - how long messages between ranks take --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/harness/Hops.h"

#include "burst/program.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>

using namespace burst;

namespace {
/// A tensor of one dimension as a program gets it, see burst_image.
template <typename T>
struct Vector {
  T *base, *data;
  int64_t offset, size, stride;
};
} // namespace

/// The program of all ranks: hops along an axis, as those of a ring are, each
/// with how long it took.
static void hop(burst_rank *rank, const burst_table *table,
                void *const *values) {
  auto &message = *static_cast<const Vector<char> *>(values[0]);
  const int64_t *axis = static_cast<const Vector<int64_t> *>(values[1])->data;
  auto &seconds = *static_cast<const Vector<double> *>(values[2]);
  auto *received = static_cast<char *>(
      table->allocate(rank, message.size, BURST_MEMORY_SLICE));
  int64_t size = axis[0], stride = axis[1];
  int64_t own = table->index(rank), place = own / stride % size;
  int64_t next = own + ((place + 1) % size - place) * stride;
  int64_t behind = own + ((place + size - 1) % size - place) * stride;
  auto pieceOf = [&](char *data) {
    return burst_piece{data, 1, {1, 1, 1, message.size}, {0, 0, 0, 1}};
  };
  burst_piece out = pieceOf(message.data), in = pieceOf(received);
  for (int64_t i = 0; i < seconds.size; ++i) {
    auto begin = std::chrono::steady_clock::now();
    const burst_message messages[] = {{next, /*receives=*/0, 1, &out},
                                      {behind, /*receives=*/1, 1, &in}};
    const burst_messages list = {2, BURST_POINT_TO_POINT, messages, {}};
    table->wait(rank, table->start(rank, 0, &list));
    seconds.data[i] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
  }
  table->release(rank, received);
}

/// Nothing is sharded.
static void segments(int32_t, int64_t, int64_t, burst_segment *) {}

std::optional<std::string> burst::timeHops(const AxisLinks &axis, int64_t bytes,
                                           int64_t count,
                                           const CompiledRun &run,
                                           double &seconds) {
  static constexpr int64_t open[] = {-1};
  static constexpr burst_parameter parameters[] = {
      {"message", BURST_TENSOR, BURST_I8, 1, 0, open, -1, 0, -1, -1, 0, 0, 0,
       nullptr},
      {"axis", BURST_TENSOR, BURST_I64, 1, 0, open, -1, 0, -1, -1, 0, 0, 0,
       nullptr},
      {"seconds", BURST_TENSOR, BURST_F64, 1, 1, open, -1, 0, -1, -1, 0, 0, 0,
       nullptr}};
  const burst_image image = {sizeof(burst_image),
                             BURST_ABI_VERSION,
                             "hop",
                             "any",
                             axis.numRanks,
                             /*num_parameters=*/3,
                             /*num_arguments=*/2,
                             parameters,
                             segments,
                             hop,
                             /*hash=*/1,
                             0,
                             0,
                             nullptr,
                             /*features=*/nullptr,
                             BURST_VERSION_MAJOR,
                             BURST_VERSION_MINOR,
                             0,
                             nullptr};
  burst_program *loaded = nullptr;
  if (burst_error *error =
          burst_program_from_image(&image, nullptr, nullptr, &loaded)) {
    std::string message = burst_error_message(error);
    burst_error_destroy(error);
    return message;
  }
  ProgramRef program(loaded);
  data::Tensor message = data::Tensor::zeros(data::DType::I8, {bytes});
  // The first hops touch memory for the first time.
  constexpr int64_t warm = 2;
  data::Tensor times = data::Tensor::zeros(data::DType::F64, {warm + count});
  data::Tensor numbers = data::Tensor::zeros(data::DType::I64, {2});
  numbers.set(0, static_cast<double>(axis.size));
  numbers.set(1, static_cast<double>(axis.stride));
  burst_tensor views[] = {viewOf(message, BURST_I8), viewOf(numbers, BURST_I64),
                          viewOf(times, BURST_F64)};
  std::vector<burst_counters> counters;
  if (auto error = runAll(program.get(), views, run, counters))
    return error;
  std::vector<double> hops;
  hops.reserve(count);
  for (int64_t i = warm; i < warm + count; ++i)
    hops.push_back(times.get(i));
  llvm::sort(hops);
  seconds = hops[hops.size() / 2];
  return std::nullopt;
}
