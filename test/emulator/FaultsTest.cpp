//===- FaultsTest.cpp - Planted faults, each found at its line ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The test of the test: what a kernel can do wrong is planted, in kernels that
// NVRTC compiled and in small texts, and must be found as what it is.
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Kernels.h"

#include <functional>

using namespace burst::emulator;

namespace {

void expectFailure(const Outcome &outcome, FailureKind kind, unsigned line,
                   unsigned other = 0) {
  ASSERT_FALSE(outcome.ok()) << "expected " << name(kind);
  EXPECT_EQ(name(outcome.failure->kind), name(kind)) << str(outcome);
  EXPECT_EQ(outcome.failure->place.line, line) << str(outcome);
  if (other) {
    ASSERT_TRUE(outcome.failure->other) << str(outcome);
    EXPECT_EQ(outcome.failure->other->line, other) << str(outcome);
  }
}

Place otherOf(const Outcome &outcome) {
  return outcome.failure && outcome.failure->other ? *outcome.failure->other
                                                   : Place();
}

//===----------------------------------------------------------------------===//
// In compiled kernels
//===----------------------------------------------------------------------===//

std::string kernels() { return readInput("kernels.ptx"); }

TEST(Faults, TransposeWithoutBarrier) {
  std::string text = edited(kernels(), "bar.sync \t0;", ";");
  Transposition problem;
  // A warp that runs alone reads what nobody has written.
  expectFailure(problem.launch(parsed(text)), FailureKind::Uninitialised,
                lineOf(text, "ld.shared.f32"));
  Options options;
  options.quantum = 1;
  Outcome outcome = problem.launch(parsed(text), options);
  expectFailure(outcome, FailureKind::Race, lineOf(text, "ld.shared.f32"));
  EXPECT_EQ(otherOf(outcome).what, "write");
  EXPECT_EQ(outcome.failure->buffer, "shared memory");
  EXPECT_EQ(outcome.failure->place.sourceLine, 20U); // of kernels.cu
}

TEST(Faults, TransposeLeavesARowOut) {
  std::string text =
      edited(kernels(), "st.shared.f32 \t[%rd10+1056], %f2;", ";");
  Transposition problem;
  expectFailure(problem.launch(parsed(text)), FailureKind::Uninitialised,
                lineOf(text, "ld.shared.f32"));
}

TEST(Faults, TransposeStoresMisaligned) {
  std::string text = edited(kernels(), "[%rd10+1056]", "[%rd10+1054]");
  Transposition problem;
  expectFailure(problem.launch(parsed(text)), FailureKind::Misaligned,
                lineOf(text, "[%rd10+1054]"));
}

TEST(Faults, TransposePastTheEndOfItsTile) {
  std::string text = edited(kernels(), "[%rd10+3168]", "[%rd10+4168]");
  Transposition problem;
  expectFailure(problem.launch(parsed(text)), FailureKind::OutOfBounds,
                lineOf(text, "[%rd10+4168]"));
}

TEST(Faults, TransposeOfASmallerMatrix) {
  std::string text = kernels();
  Transposition problem;
  problem.out =
      problem.memory.allocate(4 * (problem.input.size() - 1), "small");
  Outcome outcome = problem.launch(parsed(text));
  expectFailure(outcome, FailureKind::OutOfBounds,
                lineOf(text, "st.global.f32", 3));
  EXPECT_EQ(outcome.failure->buffer, "small");
}

TEST(Faults, TransposeIntoItsInput) {
  std::string text = kernels();
  Transposition problem;
  problem.out = problem.in;
  expectFailure(problem.launch(parsed(text)), FailureKind::ReadOnly,
                lineOf(text, "st.global.f32"));
}

TEST(Faults, TransposeOfMissingValues) {
  std::string text = kernels();
  Transposition problem;
  problem.in =
      problem.memory.allocate(4 * problem.input.size(), "never written");
  Outcome outcome = problem.launch(parsed(text));
  expectFailure(outcome, FailureKind::Uninitialised,
                lineOf(text, "ld.global.f32"));
  EXPECT_EQ(outcome.failure->buffer, "never written");
}

TEST(Faults, ProductWithoutWait) {
  std::string text = edited(kernels(), "cp.async.wait_group 1;", ";");
  for (Lateness lateness :
       {Lateness::Late, Lateness::Early, Lateness::Random}) {
    Product problem;
    Options options;
    options.lateness = lateness;
    Outcome outcome = problem.launch(parsed(text), options);
    expectFailure(outcome, FailureKind::Race, lineOf(text, "ldmatrix.sync"));
    EXPECT_EQ(otherOf(outcome).what, "asynchronous write");
  }
}

TEST(Faults, ProductWaitsForOneGroupTooFew) {
  std::string text =
      edited(kernels(), "cp.async.wait_group 1;", "cp.async.wait_group 2;");
  Product problem;
  expectFailure(problem.launch(parsed(text)), FailureKind::Race,
                lineOf(text, "ldmatrix.sync"));
}

TEST(Faults, ProductWithoutBarrierAfterTheWait) {
  std::string text = edited(kernels(), "bar.sync \t0;", ";", 1);
  Product problem;
  expectFailure(problem.launch(parsed(text)), FailureKind::Race,
                lineOf(text, "ldmatrix.sync"));
}

TEST(Faults, ProductOverwritesWhatOthersRead) {
  std::string text = edited(kernels(), "bar.sync \t0;", ";", 2);
  Product problem;
  Outcome outcome = problem.launch(parsed(text));
  expectFailure(outcome, FailureKind::Race, lineOf(text, "cp.async.cg", 4));
  EXPECT_EQ(otherOf(outcome).what, "read");
}

TEST(Faults, ProductWithTooLittleSharedMemory) {
  std::string text = kernels();
  Product problem;
  problem.sharedBytes -= 16;
  Outcome outcome = problem.launch(parsed(text));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.failure->kind, FailureKind::OutOfBounds) << str(outcome);
  EXPECT_NE(outcome.failure->text.find("cp.async"), std::string::npos)
      << str(outcome);
}

TEST(Faults, ProductThatForgetsToTranspose) {
  // Nothing is out of place but the values.
  std::string text = kernels();
  Product problem;
  Outcome outcome = problem.launch(parsed(edited(text, ".x4.trans.", ".x4.")));
  ASSERT_TRUE(outcome.ok()) << str(outcome);
  auto got = problem.memory.get<float>(problem.c, 128 * 128);
  Product good;
  ASSERT_TRUE(good.launch(parsed(text)).ok());
  EXPECT_NE(got, good.memory.get<float>(good.c, 128 * 128));
}

TEST(Faults, ReductionWithoutFences) {
  for (int fence : {0, 1}) { // before the last block is known, and after
    std::string text = edited(kernels(), "membar.gl;", ";", fence);
    Reduction problem;
    Outcome outcome = problem.launch(parsed(text));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.failure->kind, FailureKind::Race) << str(outcome);
    EXPECT_EQ(outcome.failure->buffer, "parts");
    EXPECT_NE(otherOf(outcome).block.x, outcome.failure->place.block.x);
  }
}

TEST(Faults, ReductionCountsWithoutAtomics) {
  std::string text =
      edited(kernels(), "atom.global.add.u32 \t%r39, [%rd19], 1;",
             "ld.global.u32 %r39, [%rd19]; st.global.u32 [%rd19], 3;");
  Reduction problem;
  Outcome outcome = problem.launch(parsed(text));
  expectFailure(outcome, FailureKind::Race,
                lineOf(text, "st.global.u32 [%rd19], 3"));
  EXPECT_EQ(outcome.failure->buffer, "arrived");
}

//===----------------------------------------------------------------------===//
// In small texts; the comment HERE marks the line, THERE the other one
//===----------------------------------------------------------------------===//

struct Launch {
  Dim3 grid = {1}, block = {64};
  size_t shared = 4096;
  Options options = {};
};

void expectAtMark(const std::string &body, FailureKind kind,
                  const Launch &launch = {}) {
  std::string text = kernelOf(body);
  Memory memory;
  uint64_t out = memory.add(std::vector<uint32_t>(1024), "out"),
           in = memory.add(std::vector<uint32_t>(1024, 1), "in");
  Arguments arguments;
  arguments.add(out).add(in);
  Module module = parsed(text);
  bool hasOther = text.find("THERE") != std::string::npos;
  expectFailure(module.launch("k", launch.grid, launch.block, launch.shared,
                              arguments, memory, launch.options),
                kind, lineOf(text, "// HERE"),
                hasOther ? lineOf(text, "// THERE") : 0);
}

/// Each thread's word of the buffer in %r3.
const std::string ownWord =
    "mov.u32 %r2, buffer;\nmad.lo.u32 %r3, %r1, 4, %r2;\n";

TEST(Faults, MissingSyncwarp) {
  std::string exchange =
      ownWord + "xor.b32 %r4, %r3, 4;\nst.shared.u32 [%r3], %r1; // THERE\n";
  std::string load = "ld.shared.u32 %r5, [%r4]; // HERE\n";
  expectAtMark(exchange + load, FailureKind::Race, {{1}, {32}});
  // A shuffle makes the lanes meet; it orders nothing.
  expectAtMark(exchange + "shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;\n" + load,
               FailureKind::Race, {{1}, {32}});
}

TEST(Faults, SyncwarpOfOtherLanes) {
  expectAtMark(ownWord +
                   "xor.b32 %r4, %r3, 64;\nst.shared.u32 [%r3], %r1;\n"
                   "setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.warp.sync 0xffff;\n"
                   "@!%p1 bar.warp.sync 0xffff0000;\nld.shared.u32 %r5, [%r4]; "
                   "// HERE\n",
               FailureKind::Race, {{1}, {32}});
}

TEST(Faults, BytesOfOneWordAreApart) {
  // Two threads write the halves of a word, which is no race; a third thread of
  // the same half makes one.
  std::string body = "mov.u32 %r2, buffer;\nand.b32 %r3, %r1, 1;\nmad.lo.u32 "
                     "%r4, %r3, 2, %r2;\n"
                     "st.shared.u16 [%r4], %rs1; // HERE\n";
  Memory memory;
  Arguments arguments;
  arguments.add(uint64_t(0)).add(uint64_t(0));
  Outcome outcome =
      parsed(kernelOf(body)).launch("k", {}, {2}, 64, arguments, memory);
  EXPECT_TRUE(outcome.ok()) << str(outcome);
  expectAtMark(body, FailureKind::Race, {{1}, {3}});
}

TEST(Faults, WriteAfterRead) {
  expectAtMark(
      ownWord +
          "st.shared.u32 [%r3], %r1;\nbar.sync 0;\nld.shared.u32 %r4, [%r2]; "
          "// THERE\n"
          "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r2], 5; // HERE\n",
      FailureKind::Race);
}

TEST(Faults, TwoBlocksWriteOneWord) {
  expectAtMark("st.global.u32 [%rd1], %r1; // HERE\n", FailureKind::Race,
               {{2}, {1}});
}

TEST(Faults, PlainReadOfAnAtomicCounter) {
  // The second block adds after the first has read.
  expectAtMark("atom.global.add.u32 %r2, [%rd1], 1; // HERE\nld.global.u32 "
               "%r3, [%rd1]; // THERE\n",
               FailureKind::Race, {{2}, {1}});
}

TEST(Faults, FlagWithoutRelease) {
  auto text = [](const std::string &store, const std::string &mark) {
    return "mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra write;\n"
           "spin: ld.acquire.gpu.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p2, "
           "%r3, 0;\n@%p2 bra spin;\n"
           "ld.global.u32 %r4, [%rd2];" +
           mark +
           "\nbra done;\n"
           "write: st.global.u32 [%rd2], 7;\n" +
           store + "\ndone:";
  };
  expectAtMark(text("st.relaxed.gpu.global.u32 [%rd1], 1;", " // HERE"),
               FailureKind::Race, {{2}, {1}});
  Memory memory;
  uint64_t flag = memory.add(std::vector<uint32_t>(1), "flag"),
           value = memory.add(std::vector<uint32_t>(1), "value");
  Arguments arguments;
  arguments.add(flag).add(value);
  Outcome outcome =
      parsed(kernelOf(text("st.release.gpu.global.u32 [%rd1], 1;", "")))
          .launch("k", {2}, {1}, 0, arguments, memory);
  EXPECT_TRUE(outcome.ok()) << str(outcome);
}

TEST(Faults, OwnCopyBeforeItsWait) {
  std::string copy = "mov.u32 %r2, buffer;\nmad.lo.u32 %r3, %r1, 16, %r2;\n"
                     "mad.wide.u32 %rd3, %r1, 16, %rd2;\n"
                     "cp.async.cg.shared.global [%r3], [%rd3], 16; // THERE\n"
                     "cp.async.commit_group;\n";
  expectAtMark(copy + "ld.shared.u32 %r4, [%r3]; // HERE\ncp.async.wait_all;",
               FailureKind::Race);
  // A wait orders the copies of its own thread, a barrier those of the others.
  expectAtMark(copy + "cp.async.wait_group 0;\nxor.b32 %r4, %r3, 16;\n"
                      "ld.shared.u32 %r5, [%r4]; // HERE\n",
               FailureKind::Race);
}

TEST(Faults, CopyOutOfBounds) {
  // Only the bytes that are taken are read.
  auto copy = [](const std::string &size) {
    return "mov.u32 %r2, buffer;\nadd.u64 %rd3, %rd2, 4096;\n"
           "cp.async.cg.shared.global [%r2], [%rd3], 16, " +
           size + ";";
  };
  expectAtMark(copy("4") + " // HERE", FailureKind::OutOfBounds, {{1}, {1}});
  expectAtMark(copy("0") + "\nld.shared.u32 %r4, [%r2+16]; // HERE\n",
               FailureKind::Uninitialised, {{1}, {1}});
}

TEST(Faults, MisalignedVector) {
  expectAtMark("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd2+8]; // HERE\n",
               FailureKind::Misaligned);
}

TEST(Faults, NullAndReservedAddresses) {
  expectAtMark("mov.u64 %rd3, 0;\nld.global.u32 %r2, [%rd3]; // HERE\n",
               FailureKind::OutOfBounds);
  expectAtMark("mov.u32 %r2, 0;\nst.shared.u32 [%r2], 1; // HERE\n",
               FailureKind::OutOfBounds);
}

TEST(Faults, DivergentShuffle) {
  expectAtMark("setp.lt.u32 %p1, %r1, 16;\n@%p1 shfl.sync.bfly.b32 %r2, %r1, "
               "1, 31, -1; // HERE\n",
               FailureKind::Divergence);
  // Two shuffles in two branches are not one.
  expectAtMark("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra low;\n"
               "shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; // THERE\nbra done;\n"
               "low: shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; // HERE\ndone:",
               FailureKind::Divergence);
}

TEST(Faults, ShuffleFromALaneThatTakesNoPart) {
  expectAtMark("setp.lt.u32 %p1, %r1, 16;\n"
               "@%p1 shfl.sync.bfly.b32 %r2, %r1, 16, 31, 0xffff; // HERE\n",
               FailureKind::Divergence, {{1}, {32}});
}

TEST(Faults, LanesThatNameDifferentMasks) {
  expectAtMark("shl.b32 %r2, 1, %r1;\nshfl.sync.bfly.b32 %r3, %r1, 0, 31, %r2; "
               "// HERE\n",
               FailureKind::Divergence, {{1}, {32}});
}

TEST(Faults, DivergentMatrixLoad) {
  expectAtMark(ownWord + "st.shared.u32 [%r3], 0;\nbar.warp.sync "
                         "-1;\nsetp.lt.u32 %p1, %r1, 31;\n"
                         "@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, "
                         "[%r2]; // HERE\n",
               FailureKind::Divergence, {{1}, {32}});
}

TEST(Faults, DivergentBarrier) {
  expectAtMark("setp.lt.u32 %p1, %r1, 16;\n@%p1 bar.sync 0; // HERE\n",
               FailureKind::Divergence);
}

TEST(Faults, BarrierThatAWarpDoesNotReach) {
  expectAtMark("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0; // HERE\n",
               FailureKind::Deadlock);
}

TEST(Faults, BarrierForMoreThreadsThanCome) {
  expectAtMark("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra done;\nbar.sync 1, 64; // "
               "HERE\ndone:",
               FailureKind::Deadlock);
}

TEST(Faults, BarrierOfTwoCounts) {
  expectAtMark("setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64; // THERE\n"
               "@!%p1 bar.sync 1, 32; // HERE\n",
               FailureKind::Barrier);
  expectAtMark("bar.sync 1, 33; // HERE\n", FailureKind::Barrier);
}

TEST(Faults, ArrivalOrdersNothingForItsThread) {
  // Warp 0 arrives and goes on to write what warp 1 writes before it waits.
  expectAtMark(
      ownWord +
          "setp.lt.u32 %p1, %r1, 32;\n@%p1 bra low;\n"
          "st.shared.u32 [%r3], 1; // HERE\nbar.sync 1, 64;\nbra done;\n"
          "low: bar.arrive 1, 64;\nst.shared.u32 [%r3+128], 2; // THERE\ndone:",
      FailureKind::Race);
}

TEST(Faults, EndlessLoop) {
  Launch launch;
  launch.options.budget = 10000;
  launch.block = {1};
  expectAtMark("again: bra again; // HERE\n", FailureKind::Budget, launch);
}

TEST(Faults, DivisionByZero) {
  expectAtMark("div.u32 %r2, 7, %r1; // HERE\n", FailureKind::Arithmetic);
}

TEST(Faults, Trap) {
  expectAtMark("setp.eq.u32 %p1, %r1, 40;\n@%p1 trap; // HERE\n",
               FailureKind::Trap);
}

//===----------------------------------------------------------------------===//
// In the text itself
//===----------------------------------------------------------------------===//

void expectUnreadable(const std::string &statement, FailureKind kind,
                      const std::string &message) {
  std::string text = kernelOf("mov.u32 %r2, 0;\n" + statement);
  Module module;
  auto failure = module.parse(text);
  ASSERT_TRUE(failure) << statement;
  EXPECT_EQ(name(failure->kind), name(kind)) << failure->str();
  EXPECT_EQ(failure->place.line, lineOf(text, statement)) << failure->str();
  EXPECT_NE(failure->str().find(message), std::string::npos) << failure->str();
}

TEST(Faults, UnknownText) {
  auto unknown = FailureKind::UnknownOpcode;
  expectUnreadable("frobnicate.u32 %r2, %r1;", unknown, "no opcode frobnicate");
  expectUnreadable("add.rz.f32 %f1, %f2, %f3;", unknown, "no add with .rz");
  expectUnreadable("ld.global.b128 %r2, [%rd1];", unknown, "ld");
  expectUnreadable("mov.u32 %r2, %clock;", unknown, "%clock");
  expectUnreadable("add.u32 %r2, %r200, 1;", unknown, "%r200");
  expectUnreadable("add.u64 %rd3, %r1, 1;", unknown, "%r1");
  expectUnreadable("bra nowhere;", unknown, "nowhere");
  expectUnreadable("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                   "{%f1,%f2}, {%r1,%r2,%r3,%r4}, "
                   "{%r5,%r6}, {%f1,%f2,%f3,%f4};",
                   unknown, "a list of 2 registers where 4 are wanted");
  expectUnreadable("add.u32 %r2 %r1;", FailureKind::Syntax, "expected");
}

TEST(Faults, Launches) {
  Module module = parsed(kernelOf(""));
  Memory memory;
  Arguments none, two;
  two.add(uint64_t(0)).add(uint64_t(0));
  auto kind = [&](const std::string &name, Dim3 block, size_t shared,
                  const Arguments &arguments) {
    Outcome outcome =
        module.launch(name, {1}, block, shared, arguments, memory);
    return outcome.failure && outcome.failure->kind == FailureKind::BadLaunch;
  };
  EXPECT_TRUE(kind("other", {32}, 0, two));
  EXPECT_TRUE(kind("k", {32}, 0, none));
  EXPECT_TRUE(kind("k", {2048}, 0, two));
  EXPECT_TRUE(kind("k", {32}, 1 << 20, two));
  EXPECT_FALSE(kind("k", {32}, 1024, two));
}

} // namespace
