// f64 is rounded to 16 bits once, not to f32 and then again, and without a function
// of the compiler that a system may lack: key j is 1 + 2^-BITS + (j - 8) * 2^-40, of
// which all from j = 9 on lie above the tie and are rounded up.
// RUN: sed 's/TYPE/bf16/; s/TIE/1.00390625/; s/SIGN/1.0/' %s > %t.bf16.mlir
// RUN: sed 's/TYPE/f16/; s/TIE/1.00048828125/; s/SIGN/1.0/' %s > %t.f16.mlir
// RUN: sed 's/TYPE/bf16/; s/TIE/1.00390625/; s/SIGN/-1.0/' %s > %t.negative.mlir
// RUN: burst-run %t.bf16.mlir --check | FileCheck %s
// RUN: burst-run %t.bf16.mlir --check --target-cpu=x86-64-v2 | FileCheck %s
// RUN: burst-run %t.f16.mlir --check | FileCheck %s
// RUN: burst-run %t.f16.mlir --check --target-cpu=x86-64-v2 | FileCheck %s
// RUN: burst-run %t.negative.mlir --check | FileCheck %s
// CHECK: 256 elements: ok
//
// RUN: burst-compile %t.bf16.mlir --target-cpu=x86-64-v2 -o %t.bf16.so
// RUN: llvm-nm -D --undefined-only %t.bf16.so | FileCheck %s --check-prefix=NEEDS --implicit-check-not=bf2
// NEEDS: U log2f
shard.grid @cp(shape = 2)
!x = tensor<1x32x1x8xf32>
func.func @ties(%q: !x, %k: !x, %v: !x) -> !x {
  %o, %lse = burst.attention %q, %k, %v mask(%b, %h, %i, %j, %sq, %sk) {
      %eight = arith.constant 8 : index
      %last = arith.constant 0x3D70000000000000 : f64
      %tie = arith.constant TIE : f64
      %one = arith.constant 1.0 : f32
      %sign = arith.constant SIGN : f64
      %distance = arith.subi %j, %eight : index
      %steps = arith.index_cast %distance : index to i64
      %count = arith.sitofp %steps : i64 to f64
      %above = arith.mulf %count, %last : f64
      %x = arith.addf %tie, %above : f64
      %signed = arith.mulf %x, %sign : f64
      %short = arith.truncf %signed : f64 to TYPE
      %wide = arith.extf %short : TYPE to f32
      %size = math.absf %wide : f32
      %keep = arith.cmpf ogt, %size, %one : f32
      burst.yield %keep : i1
    } sequence <@cp, zigzag>
    : (!x, !x, !x) -> (!x, tensor<1x1x32xf32>)
  return %o : !x
}
