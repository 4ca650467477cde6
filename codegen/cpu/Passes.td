//===- Passes.td - from tiles to LLVM on a CPU --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_CODEGEN_CPU_PASSES_TD
#define BURST_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerScalarsPass : Pass<"burst-lower-scalars", "::mlir::ModuleOp"> {
  let summary = "lowers positions, table ranges, waits and copies to arithmetic and loops";
  let description = [{
    `ring.segment` becomes the arithmetic of its layout, `burst.table_range` on a
    buffer and `memref.copy` a loop nest. Ranges are of vectors where elements of the
    last dimension lie side by side, and of 8 bits or more. A `tile.await` looks at its
    element, and as long as it has to wait gives the processor to others that want it
    (POSIX's `sched_yield`), then sleeps between looks (`usleep`).
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "128", "Bits of a vector register.">,
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ChooseTilesPass : Pass<"burst-choose-tiles", "::mlir::func::FuncOp"> {
  let summary = "chooses how many queries and keys tiles have, for a processor";
  let description = [{
    Sets `tile.shape` of a ring program that has none: what was found by measuring
    on the processor, by `burst-tune`, for the pass, the type and the head dims of
    its attention, and where nothing was measured, what a rule makes of the
    processor's registers and caches.

    Leaves functions that are no ring programs alone. Refuses programs of f16 where
    the processor has no instructions for it.
  }];
  let options = [
    Option<"triple", "target-triple", "std::string", "\"\"",
           "Architecture and system, such as aarch64-linux-gnu; empty: this machine's.">,
    Option<"processor", "target-cpu", "std::string", "\"\"",
           "Processor, by LLVM's name; empty: this machine's.">,
    Option<"features", "features", "std::string", "\"\"",
           "Features on top of the processor's: +a,-b.">,
    Option<"rows", "rows", "int64_t", "0", "Queries of a tile; 0: those chosen.">,
    Option<"columns", "columns", "int64_t", "0", "Keys of a tile; 0: those chosen.">];
  let dependentDialects = ["::burst::tile::TileDialect"];
}

def OutlinePass : Pass<"tile-outline", "::mlir::ModuleOp"> {
  let summary = "makes functions of steps that kernels have in common";
  let description = [{
    The loops over full and over partial tiles repeat the steps of the recurrence.
    A `tile.multiply`, `row_max`, `exponentials`, `rescale`, `weights` or
    `differentials` on blocks of the same types that occurs more than once becomes a
    function, and is compiled once. A call costs nothing beside a tile.

    Needs `ring-lower-to-tile`.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def TileToVectorPass : Pass<"tile-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lowers tile ops to loops over vectors";
  let description = [{
    Blocks are memory on the stack. A product is a register tile of `micro-rows`
    rows and `micro-vectors` vectors, of as many panels as that takes, whose sums
    stay in registers over the whole depth; scores, masks and exponentials go over the columns of a row in vectors,
    and the regions of a map are vectorised op by op. Exponentials are polynomials.

    Products of bf16 are `x86vector.avx512.dot` with `dot`, which takes vectors of
    256 or 512 bits; without it the numbers of a pair are shifted to f32, and
    multiplied and added one after the other.

    How many steps of a product's depth, and how many vectors of maxima and of
    exponentials, are computed together is up to the processor's registers and latencies, and so an
    option. Where a row has no multiple of that number of vectors, it is as many as
    divide both; where their number is not static, the rest goes one by one.

    Needs `ring-lower-to-tile`. Leaves scf, vector, arith, math and memref. Lowers
    functions with `tile.kernel`, and those that `tile-outline` made.
  }];
  let options = [
    Option<"vectorBits", "vector-bits", "int64_t", "256", "Bits of a vector register.">,
    Option<"microRows", "micro-rows", "int64_t", "6", "Rows of a register tile.">,
    Option<"microVectors", "micro-vectors", "int64_t", "2",
           "Vectors in a row of a register tile, which is one panel wide at least.">,
    Option<"panelBytes", "panel-bytes", "int64_t", "64",
           "Bytes of a row of a panel of scores: columns whose number is not static are so many "
           "or a multiple.">,
    Option<"steps", "steps", "int64_t", "2",
           "Steps of a product's depth at a time.">,
    Option<"maxima", "maxima", "int64_t", "4",
           "Vectors of which the maximum is taken at a time.">,
    Option<"exponentials", "exponentials", "int64_t", "2",
           "Vectors of exponentials at a time, forward.">,
    Option<"weights", "weights", "int64_t", "4",
           "Vectors of exponentials at a time, backward.">,
    Option<"fma", "fma", "bool", "true",
           "Multiply and add in one instruction; else in two.">,
    Option<"dot", "dot", "bool", "false",
           "Multiply pairs of bf16, and round to bf16, by instructions of AVX512-BF16.">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect",
                           "::mlir::x86vector::X86VectorDialect"];
}

def CheckBlocksPass : Pass<"burst-check-blocks", "::mlir::func::FuncOp"> {
  let summary = "refuses kernels whose blocks do not fit on a stack";
  let description = [{
    The blocks of a tile (`memref.alloca` of a function with `tile.kernel`) lie on the
    stack of the thread that runs a task. Tiles that are given by `tile.shape` may be
    of any size; those whose blocks take more than 3 MiB in all are an error here.
    Blocks of dynamic size, or of anything but numbers and vectors, are not counted.

    Needs `ring-lower-to-tile`. Leaves everything as it is.
  }];
}

def PoisonBlocksPass : Pass<"burst-poison-blocks", "::mlir::func::FuncOp"> {
  let summary = "fills the blocks of kernels with NaN";
  let description = [{
    Every `memref.alloca` of a function with `tile.kernel` begins with all bits set:
    NaN, and -1 in integers. What reads an element before something was written to it
    then shows in the results, which else depends on what the stack held before. For
    tests: what checked runs do to memory that programs allocate, on the stack.

    Blocks of types that have no constants stay as they are. Needs `ring-lower-to-tile`,
    and `tile-to-vector` before it for the blocks that this makes. Leaves loops of stores.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def ExpandFloatsPass : Pass<"burst-expand-floats", "::mlir::ModuleOp"> {
  let summary = "expands functions and conversions that processors lack";
  let description = [{
    exp, tanh and erf of f32 become polynomials (upstream's), conversions from and
    to bf16 integer arithmetic, divisions that round up or down divisions that
    truncate. f64 is converted to 16 bits by way of f32, rounded once. Other
    functions are left to libm.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // BURST_CODEGEN_CPU_PASSES_TD
