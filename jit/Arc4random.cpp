//===- Arc4random.cpp - a function of glibc 2.36 for older ones -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

/// The archives of LLVM and of libstdc++ ask for it because those of Debian 12
/// were built where glibc has it, for names of temporary files: with one here
/// libburst asks for nothing that glibc 2.34 lacks. It is not exported.
extern "C" uint32_t arc4random() noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number))
    if (errno != EINTR)
      abort(); // as glibc does where there are no random numbers
  return number;
}
