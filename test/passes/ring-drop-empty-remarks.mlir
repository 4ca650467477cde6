// RUN: burst-opt %s --ring-drop-empty --remarks-filter=ring-drop-empty -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --implicit-check-not='remark: ['

// Where nothing can be dropped a remark says why.

shard.grid @cp(shape = 2)

!q = tensor<1x4x1x4xf32>
!m = tensor<1x1x4xf32>

// CHECK: [[@LINE+4]]:{{.*}}: remark: [Missed] not-dropped | Category:ring-drop-empty | Function=no_bounds | Reason="its mask has no bounds: burst-derive-bounds, run before, makes them"
func.func @no_bounds(%q: !q, %k: !q, %m: !m, %n: index) -> !q attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %o, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
      slice (%k, %k at %c0) of <contiguous over 2> extent %n
      state %q, %m, %m scale 0.5
      mask(%b, %h, %i, %j, %nq, %nk) {
        %keep = arith.cmpi sle, %j, %i : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !m)
  return %o : !q
}

// CHECK: remark: [Missed] not-dropped | {{.*}}Function=below | Reason="its queries, extents or captures are not known in front of all loops, where is asked what is needed"
func.func @below(%q: !q, %k: !q, %m: !m, %n: index) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %sk = arith.addi %n, %c1 : index
    %o, %m1, %l1 = ring.attend %q at <contiguous over 2>[%c0] extent %n
        slice (%k, %k at %c0) of <contiguous over 2> extent %sk
        state %q, %m, %m scale 0.5
        mask(%b, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
  }
  return
}

// Transfers that are written out: pairs are dropped, transfers are not.
//
// CHECK: remark: [Missed] not-dropped | {{.*}}Function=written_out | Reason="its transfers are written out, and no ring.rotate or ring.gather: all that they send is sent"
func.func @written_out(%q: !q, %k: !q, %o: !q, %m: !m) -> !q attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %on = arith.addi %r, %c2 : index
  %to = arith.remui %on, %c2 : index
  %0:3 = scf.for %t = %c0 to %c2 step %c1 iter_args(%kt = %k, %owner = %r, %ot = %o)
      -> (!q, index, !q) {
    %o1, %m1, %l1 = ring.attend %q at <contiguous over 2>[%r] extent %n
        slice (%kt, %kt at %owner) of <contiguous over 2> extent %n
        state %ot, %m, %m scale 0.5
        mask(%b, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
    %token = ring.start %kt dims [1] of <contiguous over 2>[%owner] extent %n to %to
        receive [%owner] from %to channel <@cp, 0> : (!q) -> !ring.token<!q>
    %k1 = ring.wait %token : !ring.token<!q>
    scf.yield %k1, %owner, %o1 : !q, index, !q
  }
  return %0#2 : !q
}

// Two attends of what goes round: each would have it go less far than the other
// may need.
//
// CHECK-COUNT-2: remark: [Missed] not-dropped | {{.*}}Function=two | Reason="it shares what is brought with other ops: all of every shard is sent"
func.func @two(%q: !q, %k: !q, %o: !q, %m: !m) -> (!q, !q) attributes {ring.grid = @cp} {
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %0:2 = ring.rotate (%k dims [1]) of <contiguous over 2>[%r] extent %n
      channel <@cp, 0> carry(%o, %o : !q, !q) : (!q) -> (!q, !q) {
  ^bb0(%owner: index, %kt: !q, %a: !q, %b: !q):
    %a1, %ma, %la = ring.attend %q at <contiguous over 2>[%r] extent %n
        slice (%kt, %kt at %owner) of <contiguous over 2> extent %n
        state %a, %m, %m scale 0.5
        mask(%b0, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
    %b2, %mb, %lb = ring.attend %q at <contiguous over 2>[%r] extent %n
        slice (%kt, %kt at %owner) of <contiguous over 2> extent %n
        state %b, %m, %m scale 0.5
        mask(%b0, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %i, %j : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %i0, %j1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
    ring.yield %a1, %b2 : !q, !q
  }
  return %0#0, %0#1 : !q, !q
}

// An attend with shards of this rank alone, which need not go round.
//
// CHECK: remark: [Missed] not-dropped | {{.*}}Function=own | Reason="it does not bring shards that are brought and those of this rank together: all of every shard is sent"
func.func @own(%q: !q, %k: !q, %o: !q, %m: !m) -> !q attributes {ring.grid = @cp} {
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %0 = ring.rotate (%k dims [1]) of <contiguous over 2>[%r] extent %n
      channel <@cp, 0> carry(%o : !q) : (!q) -> !q {
  ^bb0(%owner: index, %kt: !q, %a: !q):
    %a1, %ma, %la = ring.attend %q at <contiguous over 2>[%r] extent %n
        slice (%k, %k at %r) of <contiguous over 2> extent %n
        state %a, %m, %m scale 0.5
        mask(%b0, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
    ring.yield %a1 : !q
  }
  return %0 : !q
}

// What goes round is carried on, besides: a rank may read all of it.
//
// CHECK: remark: [Missed] not-dropped | {{.*}}Function=kept | Reason="it shares what is brought with other ops: all of every shard is sent"
func.func @kept(%q: !q, %k: !q, %o: !q, %m: !m) -> (!q, !q) attributes {ring.grid = @cp} {
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %0:2 = ring.rotate (%k dims [1]) of <contiguous over 2>[%r] extent %n
      channel <@cp, 0> carry(%o, %k : !q, !q) : (!q) -> (!q, !q) {
  ^bb0(%owner: index, %kt: !q, %a: !q, %last: !q):
    %a1, %ma, %la = ring.attend %q at <contiguous over 2>[%r] extent %n
        slice (%kt, %kt at %owner) of <contiguous over 2> extent %n
        state %a, %m, %m scale 0.5
        mask(%b0, %h, %i, %j, %nq, %nk) {
          %keep = arith.cmpi sle, %j, %i : index
          burst.yield %keep : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %nq, %nk) {
          %may = arith.cmpi slt, %j0, %i1 : index
          burst.yield %may, %may : i1, i1
        } : (!q, !q, !q) -> (!q, !m)
    ring.yield %a1, %kt : !q, !q
  }
  return %0#0, %0#1 : !q, !q
}
