//===- Warpgroup.cpp - wgmma ----------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each warp of a warpgroup computes its own 16 rows: it reads its rows of A and
// all of B, as an agent of its own, and its wait covers that part alone. A
// product is computed at the wait (or at its issue), from what shared memory
// and the registers of A then hold.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Decode.h"
#include "test/emulator/Float.h"

namespace burst::emulator {

namespace {

enum : uint8_t { inRegisters = 1, transposesA = 2, transposesB = 4, isF16 = 8 };

/// A matrix descriptor.
struct Descriptor {
  uint64_t address, leading, stride;
  unsigned swizzle; // 0 none, 1 of 32 bytes, 2 of 64, 3 of 128

  explicit Descriptor(uint64_t bits)
      : address((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4),
        swizzle((4 - unsigned(bits >> 62)) & 3) {}

  uint64_t swizzled(uint64_t at) const {
    return swizzle ? at ^ (at >> 3 & ((0x10U << swizzle) - 0x10U)) : at;
  }
  /// The 16 bytes of a row that hold 8 steps of the contraction.
  uint64_t alongK(unsigned row, unsigned unit) const {
    uint64_t group = address + row / 8 * stride;
    return swizzle ? swizzled(group + (row % 8) * (16U << swizzle) +
                              uint64_t(16) * unit)
                   : group + (row % 8) * 16 + unit * leading;
  }
  /// The 16 bytes of a step of the contraction that hold 8 rows.
  uint64_t acrossK(unsigned unit, unsigned k) const {
    if (!swizzle)
      return address + (k % 8) * 16 + k / 8 * leading + unit * stride;
    unsigned width = 1U << swizzle;
    return swizzled(address + unit % width * 16 + unit / width * leading +
                    (k % 8) * (16U << swizzle) + k / 8 * stride);
  }
};

/// Calls visit(address, row, k, rows run along the 16 bytes) for each 16 bytes
/// of the rows.
template <class Visit>
void forEachUnit(const Descriptor &matrix, bool transposed, unsigned firstRow,
                 unsigned rows, Visit visit) {
  if (transposed) {
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned unit = firstRow / 8; unit < (firstRow + rows) / 8; ++unit)
        visit(matrix.acrossK(unit, k), unit * 8 - firstRow, k);
  } else {
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned unit = 0; unit < 2; ++unit)
        visit(matrix.alongK(firstRow + row, unit), row, unit * 8);
  }
}

float halfOf(uint16_t bits, bool f16) {
  return f16 ? fromF16(bits) : fromBF16(bits);
}

void compute(Warp &warp, const WarpgroupProduct &product) {
  const Instruction &i = *product.instruction;
  unsigned columns = unsigned(i.value);
  bool f16 = i.flags & isF16;
  const uint32_t *d = i.list.data(), *a = d + columns / 2;
  static thread_local float left[16][16], right[16][256], sum[16][256];
  auto fill = [&](uint64_t bits, bool transposed, unsigned first, unsigned rows,
                  auto element) {
    forEachUnit(
        Descriptor(bits), transposed, first, rows,
        [&](uint64_t address, unsigned row, unsigned k) {
          uint16_t values[8];
          memcpy(values, warp.block.shared.data() + (address - sharedBase), 16);
          for (unsigned e = 0; e < 8; ++e)
            element(transposed ? row + e : row, transposed ? k : k + e) =
                halfOf(values[e], f16);
        });
  };
  if (i.flags & inRegisters) {
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned r = 0; r < 4; ++r) {
        uint32_t pair = warp.at<uint32_t>(a[r])[lane];
        unsigned row = lane / 4 + r % 2 * 8, k = r / 2 * 8 + lane % 4 * 2;
        left[row][k] = halfOf(uint16_t(pair), f16);
        left[row][k + 1] = halfOf(uint16_t(pair >> 16), f16);
      }
  } else {
    fill(product.a, i.flags & transposesA, warp.index % 4 * 16, 16,
         [&](unsigned row, unsigned k) -> float & { return left[row][k]; });
  }
  fill(product.b, i.flags & transposesB, 0, columns,
       [&](unsigned row, unsigned k) -> float & { return right[k][row]; });
  auto eachResult = [&](auto visit) {
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned r = 0; r < columns / 2; ++r)
        visit(warp.at<float>(d[r])[lane],
              sum[lane / 4 + r / 2 % 2 * 8][r / 4 * 8 + lane % 4 * 2 + r % 2]);
  };
  eachResult(
      [&](float &value, float &at) { at = product.accumulates ? value : 0; });
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < columns; ++column)
        sum[row][column] += left[row][k] * right[k][column];
  eachResult([&](float &value, float &at) { value = at; });
}

bool isWhole(Warp &warp, Lanes lanes) {
  if (lanes == ~0U)
    return true;
  warp.machine.fail(FailureKind::Divergence, warp,
                    unsigned(std::countr_zero(lanes)),
                    "the warp has fewer than 32 lanes");
  return false;
}

void multiply(Warp &warp, const Instruction &i, Lanes lanes) {
  Machine &machine = warp.machine;
  Block &block = warp.block;
  if (!warp.gatherAll(lanes) || !isWhole(warp, lanes))
    return;
  if (!warp.productsFenced) {
    machine.fail(
        FailureKind::Protocol, warp, 0,
        "wgmma without wgmma.fence since its registers were last waited for");
    return;
  }
  WarpgroupProduct product{
      &i, i.flags & inRegisters ? 0 : warp.at<uint64_t>(i.a)[0],
      warp.at<uint64_t>(i.b)[0], (warp.predicate(i.c) & 1) != 0};
  Clock clock;
  for (unsigned lane = 0; lane < 32; ++lane) {
    bool differs =
        warp.at<uint64_t>(i.b)[lane] != product.b ||
        (!(i.flags & inRegisters) &&
         warp.at<uint64_t>(i.a)[lane] != product.a) ||
        ((warp.predicate(i.c) >> lane & 1) != 0) != product.accumulates;
    if (differs) {
      machine.fail(FailureKind::Divergence, warp, lane,
                   "lanes of the warp differ in an operand");
      return;
    }
    clock.join(block.threads[warp.thread(lane)].clock, block.index,
               block.index);
  }
  Epoch epoch{block.index,
              uint16_t(machine.warpAgent(warp.index)),
              0,
              AccessKind::Read,
              warp.productsDone + uint32_t(warp.products.size()),
              warp.currentPc()};
  auto check = [&](uint64_t bits, bool transposed, unsigned first,
                   unsigned rows) {
    forEachUnit(
        Descriptor(bits), transposed, first, rows,
        [&](uint64_t address, unsigned, unsigned) {
          Access access{Space::Shared, address, 16, AccessKind::Read, 16, true};
          Memory::Buffer *buffer;
          if (!machine.failed && machine.resolve(warp, 0, access, buffer))
            machine.check(warp, 0, access, buffer, epoch, clock);
        });
  };
  if (!(i.flags & inRegisters))
    check(product.a, i.flags & transposesA, warp.index % 4 * 16, 16);
  check(product.b, i.flags & transposesB, 0, unsigned(i.value));
  if (machine.failed)
    return;
  if (machine.options.lateness == Lateness::Early)
    compute(warp, product);
  else
    warp.products.back().push_back(product);
}

void fence(Warp &warp, const Instruction &, Lanes lanes) {
  if (warp.gatherAll(lanes))
    warp.productsFenced = true;
}

void commit(Warp &warp, const Instruction &, Lanes lanes) {
  if (warp.gatherAll(lanes))
    warp.products.emplace_back();
}

void wait(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!warp.gatherAll(lanes))
    return;
  while (warp.products.size() > size_t(i.value) + 1) {
    for (const WarpgroupProduct &product : warp.products.front())
      compute(warp, product);
    warp.products.pop_front();
    ++warp.productsDone;
  }
  warp.productsFenced = false;
  uint32_t agent = warp.machine.warpAgent(warp.index);
  forEachLane(lanes, [&](unsigned lane) {
    warp.block.threads[warp.thread(lane)].clock.own[agent] = warp.productsDone;
  });
}

bool wgmma(Decoder &d) {
  Instruction &i = d.instruction;
  if (!d.take("sync") || !d.take("aligned"))
    return false;
  bool isCommit = d.take("commit_group");
  if (isCommit || d.take("fence")) {
    d.setOpcode(isCommit ? "wgmma.commit_group" : "wgmma.fence");
    i.run = isCommit ? &commit : &fence;
    return d.operandCount() == 0;
  }
  if (d.take("wait_group")) {
    d.setOpcode("wgmma.wait_group");
    auto pending = d.constant(0);
    i.value = pending.value_or(0);
    i.run = &wait;
    return pending && d.operandCount() == 1;
  }
  auto result = d.takeType(), a = d.takeType(), b = d.takeType();
  if (!d.take("mma_async") || result != Type::F32 || a != b ||
      (a != Type::BF16 && a != Type::F16))
    return false;
  for (unsigned columns = 8; columns <= 256 && !i.value; columns += 8)
    if (d.take("m64n" + std::to_string(columns) + "k16"))
      i.value = columns;
  bool registers = d.operand(1).kind == ptx::Operand::Kind::List;
  // scale-d, then the signs of A and B, then what is transposed.
  auto one = [&](size_t at) { return d.constant(at) == 1; };
  auto bit = [&](size_t at) {
    return d.constant(at) == 0 || d.constant(at) == 1;
  };
  if (!i.value || !one(4) || !one(5) ||
      d.operandCount() != (registers ? 7 : 8) || !bit(6) ||
      (!registers && !bit(7)))
    return false;
  i.flags =
      uint8_t((registers ? inRegisters : 0) | (a == Type::F16 ? isF16 : 0) |
              (!registers && one(6) ? transposesA : 0) |
              (one(registers ? 6 : 7) ? transposesB : 0));
  d.destinations(0, Type::F32, size_t(i.value) / 2);
  if (registers)
    d.sources(1, Type::B32, 4);
  else
    i.a = d.source(1, Type::B64);
  i.b = d.source(2, Type::B64);
  i.c = d.source(3, Type::Pred);
  i.run = &multiply;
  return true;
}

} // namespace

void addWarpgroup(Table &table) { table["wgmma"] = &wgmma; }

} // namespace burst::emulator
