// RUN: split-file %s %t
// RUN: burst-opt %t/ends.mlir --ring-fuse-ends | FileCheck %t/ends.mlir
// RUN: burst-opt %t/ends.mlir --ring-fuse-ends=separately | FileCheck %t/ends.mlir --check-prefix=SEPARATELY
// RUN: burst-opt %t/one.mlir --burst-to-ring | FileCheck %t/one.mlir
// RUN: burst-opt %t/one.mlir --burst-to-ring=fuse=false | FileCheck %t/one.mlir --check-prefix=APART
// RUN: burst-opt %t/one.mlir --burst-to-ring --ring-plan 2>&1 | FileCheck %t/one.mlir --check-prefix=PLAN
// RUN: burst-opt %t/one.mlir --burst-to-ring=fuse=false --ring-plan 2>&1 | FileCheck %t/one.mlir --check-prefix=PLAN-APART

//--- ends.mlir
shard.grid @cp(shape = 2)

!q = tensor<1x8x2x4xf32>
!l = tensor<1x2x8xf32>

// CHECK-LABEL: func @whole
// CHECK-NOT: ring.init
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = ring.attend
// CHECK: first last scale
// CHECK-NOT: ring.finalize
// CHECK: return %[[OUT]], %[[LSE]]
func.func @whole(%q: !q, %k: !q, %r: index, %n: index) -> (!q, !l) {
  %0:3 = ring.init %q : !q -> !q, !l
  %1:3 = ring.attend %q at <contiguous over 1>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 1> extent %n state %0#0, %0#1, %0#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  %out, %lse = ring.finalize %1#0, %1#1, %1#2 : !q, !l -> !q
  return %out, %lse : !q, !l
}

// An attend that is last gives no largest scores.
// CHECK-LABEL: func @largest
// CHECK: ring.init
// CHECK: ring.finalize
// SEPARATELY-LABEL: func @largest
// SEPARATELY: first scale
// SEPARATELY: ring.finalize
func.func @largest(%q: !q, %k: !q, %r: index, %n: index) -> (!q, !l, !l) {
  %0:3 = ring.init %q : !q -> !q, !l
  %1:3 = ring.attend %q at <contiguous over 1>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 1> extent %n state %0#0, %0#1, %0#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  %out, %lse, %max = ring.finalize %1#0, %1#1, %1#2 : !q, !l -> !q, !l, !l
  return %out, %lse, %max : !q, !l, !l
}

// A state that two attends make.
// CHECK-LABEL: func @two
// CHECK: ring.init
// CHECK: state
// CHECK: state
// CHECK: ring.finalize
// SEPARATELY-LABEL: func @two
// SEPARATELY-NOT: ring.init
// SEPARATELY: %[[STATE:[a-z0-9]+]], %{{.*}}, %{{.*}} = ring.attend
// SEPARATELY: first scale
// SEPARATELY: state %[[STATE]], %{{.*}}, %{{.*}} last scale
// SEPARATELY-NOT: ring.finalize
func.func @two(%q: !q, %k: !q, %r: index, %n: index) -> (!q, !l) {
  %0:3 = ring.init %q : !q -> !q, !l
  %1:3 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 2> extent %n state %0#0, %0#1, %0#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  %2:3 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 2> extent %n state %1#0, %1#1, %1#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  %out, %lse = ring.finalize %2#0, %2#1, %2#2 : !q, !l -> !q
  return %out, %lse : !q, !l
}

// A state that others read, too, of other queries, and with m and l exchanged.
// CHECK-LABEL: func @others
// CHECK: ring.init
// CHECK: state
// CHECK: ring.finalize
// CHECK: ring.init
// CHECK: state
// CHECK: ring.finalize
// CHECK: state
// CHECK: return
// SEPARATELY-LABEL: func @others
// SEPARATELY: first scale
// SEPARATELY: ring.finalize
// SEPARATELY: state {{.*}} last scale
// SEPARATELY: first scale
// SEPARATELY-NOT: ring.finalize
func.func @others(%q: !q, %p: !q, %k: !q, %r: index, %n: index) -> (!q, !l, !l, !q, !l, !l) {
  %0:3 = ring.init %q : !q -> !q, !l
  %1:3 = ring.attend %q at <contiguous over 1>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 1> extent %n state %0#0, %0#1, %0#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  %out, %lse = ring.finalize %1#0, %1#2, %1#1 : !q, !l -> !q
  %2:3 = ring.init %p : !q -> !q, !l
  %3:3 = ring.attend %q at <contiguous over 1>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 1> extent %n state %2#0, %2#1, %2#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  %out2, %lse2 = ring.finalize %3#0, %3#1, %3#2 : !q, !l -> !q
  %4:3 = ring.attend %q at <contiguous over 1>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 1> extent %n state %0#0, %0#1, %0#2 scale 1.0
      : (!q, !q, !q) -> (!q, !l)
  return %out, %lse, %4#1, %out2, %lse2, %4#2 : !q, !l, !l, !q, !l, !l
}

// On buffers there is nothing to see.
// Of queries that come from another rank, segments may be missing.
//
// CHECK-LABEL: func @received
// CHECK: ring.init
// CHECK: state {{.*}} scale
// CHECK: ring.finalize
// SEPARATELY-LABEL: func @received
// SEPARATELY: ring.init
// SEPARATELY: state {{.*}} last
func.func @received(%q: !q, %k: !q, %r: index, %n: index) -> (!q, !l) {
  %t = ring.start %q dims [1] of <contiguous over 2>[%r] extent %n to %r
      receive [%r] from %r channel <@cp, 0> : (!q) -> !ring.token<!q>
  %p = ring.wait %t : !ring.token<!q>
  %o, %m, %l = ring.init %p : !q -> !q, !l
  %o1, %m1, %l1 = ring.attend %p at <contiguous over 2>[%r] extent %n
      slice (%k, %k at %r) of <contiguous over 2> extent %n state %o, %m, %l
      scale 1.0 : (!q, !q, !q) -> (!q, !l)
  %out, %lse = ring.finalize %o1, %m1, %l1 : !q, !l -> !q
  return %out, %lse : !q, !l
}

// CHECK-LABEL: func @buffers
// CHECK: state
func.func @buffers(%q: memref<1x2x1x4xf32>, %m: memref<1x1x2xf32>, %n: index) {
  ring.attend %q at <contiguous over 2>[%n] extent %n
      slice (%q, %q at %n) of <contiguous over 2> extent %n state %q, %m, %m scale 1.0
      : (memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>, memref<1x2x1x4xf32>,
         memref<1x1x2xf32>, memref<1x1x2xf32>) -> ()
  return
}

//--- one.mlir
shard.grid @cp(shape = 1)
!q = tensor<1x8x2x4xbf16>
!l = tensor<1x2x8xf32>

// CHECK: first last scale
// APART: ring.init
// APART: ring.finalize

// The rank's own q, k, v, o of 128 bytes each and lse of 64; apart, a state in f32.
// PLAN: "peak_bytes": 576
// PLAN-APART: "peak_bytes": 896
func.func @f(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
