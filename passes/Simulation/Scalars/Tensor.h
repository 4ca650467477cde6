//===- Tensor.h - tensors of evaluated programs -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_PASSES_SIMULATION_SCALARS_TENSOR_H
#define BURST_PASSES_SIMULATION_SCALARS_TENSOR_H

#include "dialect/Burst/Sequence.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace burst {

/// What a rank holds, now and at most.
struct Gauge {
  int64_t held = 0;
  int64_t peak = 0;

  void add(int64_t amount) {
    held += amount;
    peak = std::max(peak, held);
  }
};

using GaugeRef = std::shared_ptr<Gauge>;

/// How a dimension of a global tensor is sharded over the ranks.
struct Sharding {
  Layout layout;
  int64_t dim = 0;
  int64_t extent = 0;

  bool operator==(const Sharding &) const = default;
};

/// A chunk of the heads of an argument, see ring.take_heads; all of them where
/// there is one.
struct HeadChunk {
  int argument;
  int chunk = 0, count = 1;

  bool operator==(const HeadChunk &) const = default;
};

/// Programs with more arguments take no chunks.
inline constexpr int maxChunkedArguments = 4096;

/// A number for it that serves as that of an argument: of all heads it is that.
inline int numberOf(const HeadChunk &of) {
  return of.argument +
         maxChunkedArguments * (of.count * (of.count - 1) / 2 + of.chunk);
}

/// What a tensor is that the program of a rank makes for the queries or keys
/// of argument a, as a number that is no argument's.
enum class Made : uint8_t { Gradient, Delta, Out, Lse, MaxScores, O, M, L };
inline constexpr int numMade = 8;

/// Whether an attention gives it.
inline bool isResult(Made what) {
  return what == Made::Out || what == Made::Lse || what == Made::MaxScores;
}

inline int madeFor(int argument, Made what) {
  return argument < 0 ? -1 : -2 - argument * numMade - static_cast<int>(what);
}
/// The argument and what was made, of a number below -1.
inline std::pair<int, Made> whatIsMade(int number) {
  return {(-2 - number) / numMade, static_cast<Made>((-2 - number) % numMade)};
}

/// The chunk that a number is of, also of what was made for one.
inline HeadChunk chunkOf(int number) {
  if (number < -1)
    number = whatIsMade(number).first;
  int rest = number / maxChunkedArguments, count = 1;
  for (; count <= rest; ++count)
    rest -= count;
  return {number % maxChunkedArguments, rest, count};
}

/// Of a chunk of heads, or of what was made for one, the number of all heads.
inline int ofAllHeads(int number) {
  int argument = chunkOf(number).argument;
  return number < -1 ? madeFor(argument, whatIsMade(number).second) : argument;
}

/// Whether two are of one chunk, or both of all heads.
inline bool areOfOneChunk(int x, int y) {
  return chunkOf(x).chunk == chunkOf(y).chunk &&
         chunkOf(x).count == chunkOf(y).count;
}

/// Whether queries of a chunk may meet keys: of the chunk, where each has one
/// query head, or all keys, where the chunk has as many queries of each. Heads
/// are those of all chunks.
inline bool mayMeetKeys(int query, int64_t queryHeads, int key,
                        int64_t keyHeads) {
  int count = chunkOf(query).count;
  if (count == 1 || chunkOf(key).count != 1)
    return areOfOneChunk(query, key) && (count == 1 || queryHeads == keyHeads);
  return keyHeads != 0 && queryHeads % (keyHeads * count) == 0;
}

/// The heads of a tensor that ranks exchange: how many there are, how many a
/// rank has room for, and in how many groups.
struct ExchangedHeads {
  int64_t all, ofRank, groups;
};

/// Whether query heads of each of `members` ranks meet the key heads that are
/// theirs: as many in a row, as in all, meet the next one that a rank has.
bool doHeadsMeet(ExchangedHeads queries, ExchangedHeads keys, int64_t members);

/// Where a proof knows rows to come from, see Auditor.h.
struct Origin;

/// What a proof makes of a tensor, see Auditor.h.
enum class TensorKind : uint8_t { Plain, Part, Account, Stored, Gradient };

/// A tensor of the machine: integers, or floats held as f64, or neither where
/// only sizes matter (a schedule is simulated without data).
struct Tensor {
  llvm::SmallVector<int64_t, 4> shape;
  mlir::Type element;
  std::vector<int64_t> ints;  ///< sign-extended; a true i1 is -1
  std::vector<bool> bits;     ///< of an i1 table that a program makes, no ints
  std::vector<double> floats; ///< of any float type

  /// The function argument of which this is a shard, or what was made for one
  /// (see Made), -1 for others; the rank that owns it, and how it was sharded.
  int argument = -1;
  int64_t owner = 0;
  Sharding sharding;
  /// Which segments of the owner's layout hold data: all, but for slices of
  /// which some segments were not sent.
  uint64_t segments = ~uint64_t{0};
  /// Of a received tensor: lives as long as any tensor of the same transfer.
  std::shared_ptr<void> slice;
  std::shared_ptr<const Origin> origin; ///< null where there is none
  /// Of a gathered tensor, the shards of all owners: they hold what it holds.
  std::vector<std::shared_ptr<Tensor>> shards;
  /// Of what an all-to-all made a shard of the sequence again, what this rank
  /// gave for it.
  std::shared_ptr<Tensor> inside;
  /// Of what was joined of chunks of heads, these.
  std::vector<std::shared_ptr<Tensor>> chunks;
  /// How many transfers are sending it, where a proof counts them.
  mutable int32_t numSending = 0;
  const TensorKind kind = TensorKind::Plain;

  Tensor(llvm::ArrayRef<int64_t> shape, mlir::Type element)
      : Tensor(shape, element, TensorKind::Plain) {}
  virtual ~Tensor() = default;
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;

  /// Becomes of the same shard of the same argument as `other`.
  void labelLike(const Tensor &other) {
    argument = other.argument;
    owner = other.owner;
    sharding = other.sharding;
  }

  int64_t size() const;
  /// Which dimension heads are, of (batch, sequence, heads, dim) or (batch,
  /// heads, sequence).
  int64_t headsDim() const { return shape.size() == 4 ? 2 : 1; }
  /// Bytes in memory of the tensor's element type.
  int64_t bytes() const;
  bool hasData() const {
    return !ints.empty() || !floats.empty() || !bits.empty();
  }
  /// The element at an offset, of a tensor that holds integers.
  int64_t integer(int64_t offset) const {
    return bits.empty() ? ints[offset] : -static_cast<int64_t>(bits[offset]);
  }

  /// Row-major offset of `indices`, or -1 where one is out of bounds.
  int64_t offset(llvm::ArrayRef<int64_t> indices) const;

  /// Smallest and largest integer in a box of inclusive, clamped ranges;
  /// see burst.table_range. Remembered per box.
  std::pair<int64_t, int64_t> range(llvm::ArrayRef<int64_t> from,
                                    llvm::ArrayRef<int64_t> to);

protected:
  Tensor(llvm::ArrayRef<int64_t> shape, mlir::Type element, TensorKind kind)
      : shape(shape), element(element), kind(kind) {}

private:
  std::pair<int64_t, int64_t> stretchRange(int64_t begin, int64_t end);

  struct Ranges;
  /// What is known of ranges, null where none was asked for.
  std::shared_ptr<Ranges> ranges;
};

using TensorRef = std::shared_ptr<Tensor>;

/// Whether a tensor can be made: its size must not overflow. Else an error that
/// names the shape.
bool checkSize(llvm::ArrayRef<int64_t> shape, mlir::Type element,
               std::string &error);

/// Bytes of an element in memory; an i1 and an index take 1 and 8.
int64_t elementBytes(mlir::Type element);

/// Bytes of a tensor of such a shape in memory.
int64_t bytesOf(llvm::ArrayRef<int64_t> shape, mlir::Type element);

} // namespace burst

#endif // BURST_PASSES_SIMULATION_SCALARS_TENSOR_H
