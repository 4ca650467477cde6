// RUN: burst-opt %s --burst-to-ring=verify=false | FileCheck %s
// RUN: burst-opt %s --burst-to-ring=drop=false | FileCheck %s --check-prefix=WHOLE
// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize | FileCheck %s --check-prefix=BUFFERS
// RUN: burst-opt %s --burst-explain 2>/dev/null | FileCheck %s --check-prefix=EXPLAIN

shard.grid @cp(shape = 4)

!q = tensor<1x64x4x16xbf16>
!k = tensor<1x64x2x16xbf16>
!l = tensor<1x4x64xf32>

// What is needed, of all segments of all owners; and which segments travel, by
// owner, distance and segment: at distance 0 all.
//
// CHECK-LABEL: func private @forward_needs
// CHECK-SAME: -> (tensor<4x1x2x8xi1>, tensor<4x4x2xi1>)
// CHECK: ring.segment %{{.*}} of <zigzag over 4>[
// CHECK: ring.segment %{{.*}} of <zigzag over 4, all>[
// CHECK: ^bb0(%[[O:.*]]: index, %[[D:.*]]: index, %[[S:.*]]: index):
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[O]], %[[D]] : index
// CHECK-NEXT: %[[RANK:.*]] = arith.remui %[[SUM]],
// CHECK-NEXT: %[[OWN:.*]] = arith.cmpi eq, %[[D]],
// CHECK: tensor.extract %{{.*}}[%[[RANK]],
// CHECK: arith.ori %[[OWN]],

// One attend of all, without a state.
//
// CHECK-LABEL: func @forward
// CHECK: %[[NEEDS:.*]]:2 = call @forward_needs
// CHECK: ring.start {{.*}} all_gather segments(%[[NEEDS]]#1 : tensor<4x4x2xi1>) channel <@cp, 0>
// CHECK: %[[ALL:.*]]:2 = ring.wait
// CHECK: ring.attend
// CHECK-NEXT: slice (%[[ALL]]#0, %[[ALL]]#1 at %{{.*}}) of <zigzag over 4, all>
// CHECK-NEXT: first last pairs(%[[NEEDS]]#0 : tensor<4x1x2x8xi1>)
// CHECK-NOT: ring.
// CHECK: return
//
// WHOLE-LABEL: func @forward
// WHOLE: all_gather channel <@cp, 0>
//
// BUFFERS-LABEL: func @forward
// BUFFERS: %[[SLOT:.*]] = tile.allocate {{.*}} : memref<1x1x64x2x16xbf16>
// BUFFERS: ring.start {{.*}} all_gather {{.*}} into %{{.*}}, %{{.*}} :
// BUFFERS: ring.attend
func.func @forward(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag> strategy <all_gather> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// EXPLAIN: program @forward, 4 ranks
// EXPLAIN: 0 computes {{.*}} 0 +./#+ 1 ../## 2 ../## 3 ../##
// EXPLAIN-NEXT: sends {{.*}} >1 0a >2 0a >3 0a
// EXPLAIN: program @backward, 4 ranks
// EXPLAIN: >1 0a >2 0a >3 0a >3 d3ab >2 d2ab >1 d1ab

// Gradients by what was gathered return; the gather starts in front of what needs
// nothing of it.
//
// CHECK-LABEL: func @backward
// CHECK: all_gather
// CHECK: ring.delta
// CHECK: ring.wait
// CHECK: ring.attend_grad
// CHECK: <zigzag over 4, all>
// CHECK: ring.start {{.*}} of <zigzag over 4, all>
// CHECK: scf.for
// CHECK: ring.start {{.*}} of <zigzag over 4, all>
// CHECK: ring.add
// CHECK: ring.wait
// CHECK: ring.round
func.func @backward(%q: !q, %k: !k, %v: !k, %o: !q, %l: !l, %do: !q) -> (!q, !k, !k) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do mask causal
      sequence <@cp, zigzag> strategy <all_gather>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
