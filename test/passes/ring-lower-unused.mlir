// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: burst-opt %s --burst-to-ring --remarks-filter=ring-verify 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=PROVED <%t.err
// RUN: %python %S/../tools/burst-run/Inputs/tensors.py make %t q=f32:1x16x2x4 k=f32:1x16x2x4 v=f32:1x16x2x4 o=f32:1x16x2x4 l=f32:1x2x16 do=f32:1x16x2x4
// RUN: burst-run %s --entry queries --in %t --check
// RUN: burst-run %s --entry values --in %t --check
// RUN: burst-run %s --entry gathered --in %t --check
// RUN: burst-run %s --entry none --in %t --check

// Partial results that nobody uses are neither joined nor sent. The proof would
// refuse them: they would arrive for nobody.

// PROVED-COUNT-4: schedule-proved {{.*}}proved="for every number of ranks"

shard.grid @cp(shape = 4)

!q = tensor<1x16x2x4xf32>
!l = tensor<1x2x16xf32>

// Keys and values go round, and no gradients by them.
//
// CHECK-LABEL: func @queries(
// CHECK-NOT: ring.add
// CHECK: ring.start {{.*}} channel <@cp, 0> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) ->
// CHECK-NOT: ring.start
// CHECK-NOT: ring.add
// CHECK: return
func.func @queries(%q: !q {burst.name = "q"}, %k: !q {burst.name = "k"}, %v: !q {burst.name = "v"},
                   %o: !q {burst.name = "o"}, %l: !l {burst.name = "l"}, %do: !q {burst.name = "do"})
    -> (!q {burst.name = "dq"}) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do mask [causal]
      sequence <@cp, zigzag> strategy <ring_kv> : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq : !q
}

// Gradients by values go along alone.
//
// CHECK-LABEL: func @values(
// CHECK-DAG: ring.start {{.*}} channel <@cp, 0> : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) ->
// CHECK-DAG: ring.start {{.*}} channel <@cp, 1> : (tensor<1x4x2x4xf32>) ->
// CHECK: return
func.func @values(%q: !q {burst.name = "q"}, %k: !q {burst.name = "k"}, %v: !q {burst.name = "v"},
                  %o: !q {burst.name = "o"}, %l: !l {burst.name = "l"}, %do: !q {burst.name = "do"})
    -> (!q {burst.name = "dv"}) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do mask [causal]
      sequence <@cp, zigzag> strategy <ring_kv> : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dv : !q
}

// The same of what was gathered.
//
// CHECK-LABEL: func @gathered(
// CHECK: ring.start {{.*}} all_gather
// CHECK: ring.start {{.*}} channel <@cp, 1> : (tensor<1x16x2x4xf32>) ->
// CHECK: return
func.func @gathered(%q: !q {burst.name = "q"}, %k: !q {burst.name = "k"}, %v: !q {burst.name = "v"},
                    %o: !q {burst.name = "o"}, %l: !l {burst.name = "l"}, %do: !q {burst.name = "do"})
    -> (!q {burst.name = "dq"}, !q {burst.name = "dk"}) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do mask [causal]
      sequence <@cp, zigzag> strategy <all_gather> : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk : !q, !q
}

// CHECK-LABEL: func @none(
// CHECK: ring.start {{.*}} all_gather
// CHECK-NOT: ring.start
// CHECK-NOT: ring.add
// CHECK: return
func.func @none(%q: !q {burst.name = "q"}, %k: !q {burst.name = "k"}, %v: !q {burst.name = "v"},
                %o: !q {burst.name = "o"}, %l: !l {burst.name = "l"}, %do: !q {burst.name = "do"})
    -> (!q {burst.name = "dk"}, !q {burst.name = "dv"}) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %l, %do mask [causal]
      sequence <@cp, zigzag> strategy <gather_q> : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dk, %dv : !q, !q
}
