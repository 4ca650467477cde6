// Powers whose exponents are integers, of numbers of both types of state, and the
// gradients by what is raised.
// RUN: sed 's/TYPE/f32/g; s/STATE/f32/g' %s > %t.f32.mlir && burst-run %t.f32.mlir --check
// RUN: sed 's/TYPE/bf16/g; s/STATE/f32/g' %s > %t.bf16.mlir && burst-run %t.bf16.mlir --check
// RUN: sed 's/TYPE/f64/g; s/STATE/f64/g' %s > %t.f64.mlir && burst-run %t.f64.mlir --check
shard.grid @g(shape = 2)
!x = tensor<1x24x2x4xTYPE>
!l = tensor<1x2x24xSTATE>
!t = tensor<2xSTATE>
func.func @powers(%q: !x, %k: !x, %v: !x, %o: !x, %l: !l, %do: !x, %t: !t) -> (!x, !x, !x, !t) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %v, %o, %l, %do
      score(%s : STATE, %b, %h, %i, %j, %sq, %sk, %x = %t : !t) {
        %three = arith.constant 3 : i32
        %cube = math.fpowi %s, %three : STATE, i32
        %four = arith.constant 4 : index
        %two = arith.constant 2 : i64
        %rest = arith.remui %j, %four : index
        %wide = arith.index_cast %rest : index to i64
        %exponent = arith.subi %wide, %two : i64
        %one = arith.constant 1.0 : STATE
        %y = tensor.extract %x[%h] : !t
        %square = arith.mulf %y, %y : STATE
        %positive = arith.addf %square, %one : STATE
        %power = math.fpowi %positive, %exponent : STATE, i64
        %tenth = arith.constant 0.125 : STATE
        %less = arith.mulf %cube, %tenth : STATE
        %sum = arith.addf %less, %power : STATE
        burst.yield %sum : STATE
      } sequence <@g, contiguous> gradients [0]
      : (!x, !x, !x, !x, !l, !x) -> (!x, !x, !x, !t)
  return %dq, %dk, %dv, %dt : !x, !x, !x, !t
}
