shard.grid @cp(shape = 4096)
!t = tensor<1x262144x1x8xf32>
!lse = tensor<1x1x262144xf32>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv>
      : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}
