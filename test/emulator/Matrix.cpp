//===- Matrix.cpp - ldmatrix, stmatrix, mma -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/emulator/Decode.h"
#include "test/emulator/Float.h"

namespace burst::emulator {

namespace {

//===----------------------------------------------------------------------===//
// Matrices of 8x8 between shared memory and registers
//===----------------------------------------------------------------------===//

// Lane 8 m + r holds the address of row r of matrix m. Lane l has in register m
// the elements (l / 4, 2 (l % 4)) and its right neighbour of matrix m, or of
// its transpose.

enum : uint8_t { transposes = 2, stores = 4 };

void moveMatrices(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!warp.gatherAll(lanes))
    return;
  Machine &machine = warp.machine;
  if (lanes != ~0U) {
    machine.fail(FailureKind::Divergence, warp,
                 unsigned(std::countr_zero(lanes)),
                 "the warp has fewer than 32 lanes");
    return;
  }
  size_t count = i.list.size();
  std::array<uint32_t, 32> addresses{};
  std::array<uint8_t *, 32> rows{};
  for (unsigned lane = 0; lane < 8 * count; ++lane) {
    uint64_t address = addressIn(warp, i, lane);
    addresses[lane] = uint32_t(address);
    rows[lane] = machine.access(
        warp, lane,
        {Space::Shared, address, 16,
         i.flags & stores ? AccessKind::Write : AccessKind::Read});
    if (!rows[lane])
      return;
  }
  for (size_t m = 0; m < count; ++m) {
    auto *values = warp.at<uint32_t>(i.list[m]);
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned r = lane / 4, c = lane % 4 * 2;
      for (unsigned half = 0; half < 2; ++half) {
        uint8_t *element = i.flags & transposes
                               ? rows[8 * m + c + half] + size_t(2) * r
                               : rows[8 * m + r] + size_t(2) * (c + half);
        auto *part =
            reinterpret_cast<uint8_t *>(values + lane) + size_t(2) * half;
        if (i.flags & stores)
          memcpy(element, part, 2);
        else
          memcpy(part, element, 2);
      }
    }
  }
  machine.countBanks(warp, count == 4 ? ~0U : (1U << 8 * count) - 1, addresses,
                     16);
}

template <bool Stores>
bool matrixMove(Decoder &d) {
  Instruction &i = d.instruction;
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8") ||
      !d.take("b16") || !(d.take("shared") || d.take("shared::cta")) ||
      d.operandCount() != 2)
    return false;
  size_t count = d.take("x1") ? 1 : d.take("x2") ? 2 : d.take("x4") ? 4 : 0;
  if (!count)
    return false;
  i.flags = uint8_t((d.take("trans") ? transposes : 0) | (Stores ? stores : 0));
  d.address(Stores ? 0 : 1);
  if (Stores)
    d.sources(1, Type::B32, count);
  else
    d.destinations(0, Type::B32, count);
  i.run = &moveMatrices;
  return true;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

// D (16x8) = A (16xK) B (Kx8) + C, K 8 or 16. With g = lane / 4 and t = lane %
// 4 a lane has rows g and g + 8 of A and D, and column g of B:
//   A register 2 j + h: (g + 8 h, 8 j + 2 t) and its right neighbour
//   B register j:       (8 j + 2 t, g) and the one below
//   D register 2 h + e: (g + 8 h, 2 t + e)

template <class H>
void product(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!warp.gatherAll(lanes))
    return;
  if (lanes != ~0U) {
    warp.machine.fail(FailureKind::Divergence, warp,
                      unsigned(std::countr_zero(lanes)),
                      "the warp has fewer than 32 lanes");
    return;
  }
  const unsigned steps = i.bytes; // of 8 columns of A
  float a[16][16], b[16][8], d[16][8];
  const uint32_t *list = i.list.data();
  const uint32_t *registersA = list + 4,
                 *registersB = registersA + size_t(2) * steps,
                 *registersC = registersB + steps;
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned j = 0; j < steps; ++j) {
      for (unsigned h = 0; h < 2; ++h) {
        uint32_t pair = warp.at<uint32_t>(registersA[2 * j + h])[lane];
        a[g + 8 * h][8 * j + 2 * t] = float(H{uint16_t(pair)});
        a[g + 8 * h][8 * j + 2 * t + 1] = float(H{uint16_t(pair >> 16)});
      }
      uint32_t pair = warp.at<uint32_t>(registersB[j])[lane];
      b[8 * j + 2 * t][g] = float(H{uint16_t(pair)});
      b[8 * j + 2 * t + 1][g] = float(H{uint16_t(pair >> 16)});
    }
    for (unsigned h = 0; h < 2; ++h)
      for (unsigned e = 0; e < 2; ++e)
        d[g + 8 * h][2 * t + e] = warp.at<float>(registersC[2 * h + e])[lane];
  }
  for (unsigned row = 0; row < 16; ++row) {
    float sum[8];
    memcpy(sum, d[row], sizeof(sum));
    for (unsigned k = 0; k < 8 * steps; ++k)
      for (unsigned column = 0; column < 8; ++column)
        sum[column] += a[row][k] * b[k][column];
    memcpy(d[row], sum, sizeof(sum));
  }
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned h = 0; h < 2; ++h)
      for (unsigned e = 0; e < 2; ++e)
        warp.at<float>(list[2 * h + e])[lane] =
            d[lane / 4 + 8 * h][2 * (lane % 4) + e];
}

bool mma(Decoder &d) {
  Instruction &i = d.instruction;
  if (!d.take("sync") || !d.take("aligned") || !d.take("row") ||
      !d.take("col") || d.operandCount() != 4)
    return false;
  unsigned steps = d.take("m16n8k16") ? 2 : d.take("m16n8k8") ? 1 : 0;
  auto result = d.takeType(), a = d.takeType(), b = d.takeType(),
       c = d.takeType();
  if (!steps || result != Type::F32 || c != Type::F32 || a != b ||
      (a != Type::F16 && a != Type::BF16))
    return false;
  i.bytes = uint8_t(steps);
  d.destinations(0, Type::F32, 4);
  d.sources(1, Type::B32, size_t(2) * steps);
  d.sources(2, Type::B32, steps);
  d.sources(3, Type::F32, 4);
  i.run = a == Type::F16 ? &product<F16> : &product<BF16>;
  return true;
}

} // namespace

void addMatrix(Table &table) {
  table["ldmatrix"] = &matrixMove<false>;
  table["stmatrix"] = &matrixMove<true>;
  table["mma"] = &mma;
}

} // namespace burst::emulator
