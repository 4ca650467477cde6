// Six heads of four ranks, forward.
shard.grid @cp(shape = 4)
!q = tensor<1x16x6x8xf32>
func.func @alone(%q: !q, %k: !q, %v: !q) -> !q {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ulysses>
      : (!q, !q, !q) -> (!q, tensor<1x6x16xf32>)
  return %o : !q
}
