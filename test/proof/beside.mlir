// RUN: burst-opt %s --burst-to-ring=fuse=false --remarks-filter=ring-verify -o /dev/null 2>&1 | FileCheck %s

// A forward pass and two backward passes of one attention, each with a table of
// its own of what is needed: what returns to the owners of queries is proved of the
// attend that made it, and not of another one beside it.

// CHECK: schedule-proved{{.*}}proved="for every number of ranks"
shard.grid @g(shape = 4x2)
!q = tensor<2x6x1x4xf32>
!k = tensor<2x?x1x4xf32>
!l = tensor<2x1x6xf32>
!t = tensor<?x8xi64>
func.func @step(%q: !q, %k: !k, %v: !k, %do: !q, %t: !t) -> (!q, !q, !k, !k) {
  %o, %l = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : !t) {
        %0 = tensor.extract %c[%b, %i] : !t
        %1 = tensor.extract %c[%b, %j] : !t
        %2 = arith.cmpi ule, %0, %1 : i64
        burst.yield %2 : i1
      }
      sequence <@g[0], contiguous> batch <@g[1]> strategy <gather_q> : (!q, !k, !k) -> (!q, !l)
  %dq0, %dk0, %dv0 = burst.attention_backward %q, %k, %v, %o, %l, %do
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : !t) {
        %0 = tensor.extract %c[%b, %i] : !t
        %1 = tensor.extract %c[%b, %j] : !t
        %2 = arith.cmpi ule, %0, %1 : i64
        burst.yield %2 : i1
      }
      sequence <@g[0], contiguous> batch <@g[1]> strategy <gather_q>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  %dq1, %dk1, %dv1 = burst.attention_backward %q, %k, %v, %o, %l, %do
      mask(%b, %h, %i, %j, %sq, %sk, %c = %t : !t) {
        %0 = tensor.extract %c[%b, %i] : !t
        %1 = tensor.extract %c[%b, %j] : !t
        %2 = arith.cmpi ule, %0, %1 : i64
        burst.yield %2 : i1
      }
      sequence <@g[0], contiguous> batch <@g[1]> strategy <all_gather>
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %o, %dq0, %dk0, %dk1 : !q, !q, !k, !k
}
