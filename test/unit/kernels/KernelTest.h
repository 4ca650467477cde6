//===- KernelTest.h - kernels of GPUs, executed without one -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of kernels share: from MLIR to the text of kernels, through NVRTC,
// whose log must be clean, to PTX, which the emulator executes, without races
// and bank conflicts, with memory and tables that are made here.
//
//===----------------------------------------------------------------------===//
#ifndef BURST_TEST_UNIT_KERNELS_KERNELTEST_H
#define BURST_TEST_UNIT_KERNELS_KERNELTEST_H

#include "codegen/cuda/Compiler.h"
#include "codegen/cuda/Emit.h"
#include "test/emulator/Emulator.h"
#include "test/unit/Sanitizers.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <gtest/gtest.h>
#include <map>

namespace burst::kerneltest {

/// An attention of one batch, and how its kernels are made.
struct Problem {
  std::string name;
  int64_t queries, keys, heads, keyHeads, dim, valueDim;
  std::string element, clauses;
  int64_t rows, columns, warps;
  std::function<bool(int64_t, int64_t)> keeps; ///< the mask, of i and j
  std::function<double(double, int64_t, int64_t)> score; ///< of s, i and j
  std::function<double(double)> derivative;              ///< of the score, by s
  std::string table; ///< type of a captured table that holds `capture`
  std::vector<int32_t> capture;
  int64_t begin = 0;  ///< the first position of queries and keys
  int64_t extent = 0; ///< of the whole sequences; 0: what is here

  double scale() const;
  int64_t keyHead(int64_t head) const { return head / (heads / keyHeads); }
  std::string typeOf(int64_t positions, int64_t heads, int64_t dim) const;
};

void PrintTo(const Problem &problem, std::ostream *os);

/// Two heads of queries and one of keys, all pairs of 100 queries and 150 keys.
Problem problem(std::string name, int64_t dim, std::string clauses,
                std::function<bool(int64_t, int64_t)> keeps);
inline bool everything(int64_t, int64_t) { return true; }

/// The unit of rounding to a type of 16 bits, numbers of it, and their bits.
double unitOf(const std::string &element);
double rounded(double x, const std::string &element);
std::vector<uint16_t> bitsOf(const std::vector<double> &numbers,
                             const std::string &element);

/// Draws the same numbers each time.
class Numbers {
public:
  std::vector<double> draw(int64_t count, const std::string &element);

private:
  uint32_t seed = 7;
};

/// What the pairs of a row are: products, weights, and the lse of the row.
struct Row {
  std::vector<double> products, weights; ///< 0 where the mask rules out
  double lse;
};
Row rowOf(const Problem &p, const std::vector<double> &q,
          const std::vector<double> &k, int64_t head, int64_t i);

/// A shard that holds so many positions from the first on, in tiles.
struct Tiles {
  int64_t positions, size, begin = 0;

  int64_t count() const { return (positions + size - 1) / size; }
  /// Their table, as the compiler's schedules make it.
  std::vector<int64_t> table() const;
};

/// Which tiles each listing tile has: full ones first, partial ones from
/// behind.
struct Lists {
  std::vector<int32_t> list;
  std::vector<int64_t> counts;
};
/// Those of the tiles of queries, or of keys. A tile of keys is listed where
/// `isListed` says so.
Lists listsOf(const Problem &p, Tiles queries, Tiles keys, bool ofKeys,
              llvm::function_ref<bool(int64_t key)> isListed);

/// What NVRTC compiles, and what a launch must know.
struct Kernel {
  cuda::KernelText text;
  std::vector<std::pair<std::string, mlir::Type>> parameters;
};

/// The emulated memory of launches, and their parameters by name.
class Launch {
public:
  template <class T>
  uint64_t buffer(const std::string &name, const std::vector<T> &values,
                  std::vector<int64_t> shape, bool isWritten = false) {
    using emulator::Memory;
    uint64_t address = memory.add(values, name,
                                  isWritten ? Memory::Access::ReadWrite
                                            : Memory::Access::ReadOnly);
    describe(name, address, shape);
    return address;
  }
  void scalar(const std::string &name, int32_t value);
  /// A buffer that is another one.
  void same(const std::string &name, const std::string &as) {
    parameters[name] = parameters[as];
  }
  /// Of a mask: its sizes, and the table that it captures.
  void mask(const Problem &p);
  /// The tables of tiles and lists of a kernel.
  void schedule(Tiles queries, Tiles keys, const Lists &lists);
  /// Executes all tasks, the last one first.
  void run(const emulator::Module &program, const Kernel &kernel, int64_t tasks,
           uint64_t seed = 0);
  std::vector<float> get(uint64_t address, int64_t count) {
    return memory.get<float>(address, count);
  }

  emulator::Memory memory;

private:
  void describe(const std::string &name, uint64_t address,
                const std::vector<int64_t> &shape);

  std::map<std::string, std::vector<uint8_t>> parameters;
};

/// Lowers and compiles; what goes wrong is a failure of the test.
class Workbench {
public:
  /// False where there is no NVRTC.
  bool open();

  /// Lowers a module to kernels of a GPU.
  void lower(const std::string &text, const std::string &passes,
             const std::string &options);
  Kernel kernel(const std::string &name);
  /// Compiles a kernel for sm_80; its log must give no rejection reason.
  void compile(const Kernel &kernel, emulator::Module &program);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<cuda::Compiler> compiler;
};

using test::sampleOf;

template <class Param>
class KernelTest : public testing::TestWithParam<Param> {
protected:
  void SetUp() override {
    if (!bench.open())
      GTEST_SKIP() << "no NVRTC";
  }

  Workbench bench;
};

} // namespace burst::kerneltest

#endif // BURST_TEST_UNIT_KERNELS_KERNELTEST_H
