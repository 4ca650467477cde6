// Two attentions of one query share the init of their states, and each still is one
// kernel, which gives its results: what is packed is what was planned, also where there
// is no query.
// RUN: burst-run %s --check --entry=two --extents=0,32 --batch=2 | FileCheck %s
// RUN: burst-run %s --check --entry=two --extents=48,32 | FileCheck %s
// CHECK-COUNT-4: elements: ok
// Also where the mask keeps no pair.
// RUN: burst-run %s --check --entry=none --extents=16,8 --batch=2 | FileCheck %s --check-prefix=NONE
// NONE-COUNT-2: elements: ok
// And where a result in another type than the state is not returned.
// RUN: burst-run %s --check --entry=lse --extents=16,8 --batch=2 | FileCheck %s --check-prefix=LSE
// LSE: elements: ok
// RUN: burst-opt %s --burst-to-ring --burst-to-tile | FileCheck %s --check-prefix=KERNELS
// KERNELS-NOT: finalize
shard.grid @g(shape = 1)
!x = tensor<?x?x2x4xf32>
!l = tensor<?x2x?xf32>
func.func @two(%q: !x, %k: !x, %v: !x) -> (!x, !l, !x, !l) {
  %o, %l = burst.attention %q, %k, %v mask causal sequence <@g, striped>
      : (!x, !x, !x) -> (!x, !l)
  %p, %m = burst.attention %q, %k, %v score softcap<5.0> sequence <@g, striped>
      : (!x, !x, !x) -> (!x, !l)
  return %o, %l, %p, %m : !x, !l, !x, !l
}
func.func @none(%q: !x, %k: !x, %v: !x) -> (!x, !l) {
  %o, %l = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %none = arith.constant false
        burst.yield %none : i1
      } sequence <@g, striped> : (!x, !x, !x) -> (!x, !l)
  return %o, %l : !x, !l
}
!h = tensor<?x?x2x4xf16>
func.func @lse(%q: !h, %k: !h, %v: !h) -> !l {
  %o, %l = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk) {
        %none = arith.constant false
        burst.yield %none : i1
      } sequence <@g, striped> : (!h, !h, !h) -> (!h, !l)
  return %l : !l
}
