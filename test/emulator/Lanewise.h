//===- Lanewise.h - A function on each lane as an instruction -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef BURST_TEST_EMULATOR_LANEWISE_H
#define BURST_TEST_EMULATOR_LANEWISE_H

#include "test/emulator/Decode.h"
#include "test/emulator/Float.h"

#include <type_traits>

namespace burst::emulator {

/// Writes value(lane) to the register, for all lanes at once where all run: the
/// results go through an array so that the loop vectorises also in place.
template <class R, class Value>
void write(Warp &warp, uint32_t offset, Lanes lanes, Value value) {
  Slot<R> *to = warp.at<Slot<R>>(offset);
  if (lanes == ~0U) {
    Slot<R> result[32];
    for (unsigned lane = 0; lane < 32; ++lane)
      result[lane] = pack<R>(value(lane));
    memcpy(to, result, sizeof(result));
    return;
  }
  forEachLane(lanes, [&](unsigned lane) { to[lane] = pack<R>(value(lane)); });
}

template <class T>
T get(Warp &warp, uint32_t offset, unsigned lane) {
  return unpack<T>(warp.at<Slot<T>>(offset)[lane]);
}

/// d = F(a), F(a, b), F(a, b, c).
template <auto F, class A>
void unary(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<Slot<A>>(i.a);
  write<decltype(F(A{}))>(warp, i.d, lanes,
                          [&](unsigned l) { return F(unpack<A>(a[l])); });
}
template <auto F, class A, class B = A>
void binary(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<Slot<A>>(i.a);
  const auto *b = warp.at<Slot<B>>(i.b);
  write<decltype(F(A{}, B{}))>(warp, i.d, lanes, [&](unsigned l) {
    return F(unpack<A>(a[l]), unpack<B>(b[l]));
  });
}
template <auto F, class A, class B = A, class C = A>
void ternary(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto *a = warp.at<Slot<A>>(i.a);
  const auto *b = warp.at<Slot<B>>(i.b);
  const auto *c = warp.at<Slot<C>>(i.c);
  write<decltype(F(A{}, B{}, C{}))>(warp, i.d, lanes, [&](unsigned l) {
    return F(unpack<A>(a[l]), unpack<B>(b[l]), unpack<C>(c[l]));
  });
}

/// Whether a register of the type is read as T.
template <class T>
bool holds(Type type) {
  if constexpr (std::is_same_v<T, float>)
    return type == Type::F32;
  else if constexpr (std::is_same_v<T, double>)
    return type == Type::F64;
  else if constexpr (std::is_same_v<T, F16>)
    return type == Type::F16;
  else if constexpr (std::is_same_v<T, BF16>)
    return type == Type::BF16;
  else if constexpr (std::is_same_v<T, Two<F16>>)
    return type == Type::F16x2;
  else if constexpr (std::is_same_v<T, Two<BF16>>)
    return type == Type::BF16x2;
  else
    return !isFloat(type) && type != Type::Pred && sizeOf(type) == sizeof(T) &&
           isSigned(type) == std::is_signed_v<T>;
}

/// The instruction for the T of Ts that the type holds, or null.
template <class... Ts>
Run forType(Type type, auto instruction) {
  Run run = nullptr;
  ((run = holds<Ts>(type) ? instruction.template operator()<Ts>() : run), ...);
  return run;
}

/// The type without its sign.
inline Type unsignedOf(Type type) {
  switch (type) {
  case Type::S8:
    return Type::U8;
  case Type::S16:
    return Type::U16;
  case Type::S32:
    return Type::U32;
  case Type::S64:
    return Type::U64;
  default:
    return type;
  }
}

} // namespace burst::emulator

#endif // BURST_TEST_EMULATOR_LANEWISE_H
