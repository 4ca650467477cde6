// Forward and backward, whatever travels.
shard.grid @cp(shape = 4)
!t = tensor<1x64x2x8xf32>
!lse = tensor<1x2x64xf32>

func.func @keys(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag>
      strategy <ring_kv> : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

func.func @queries(%q: !t, %k: !t, %v: !t) -> (!t, !lse) {
  %o, %lse = burst.attention %q, %k, %v mask window<left = 9, right = 0>
      sequence <@cp, contiguous> strategy <ring_q> : (!t, !t, !t) -> (!t, !lse)
  return %o, %lse : !t, !lse
}

func.func @gradients(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !lse, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      sequence <@cp, striped> strategy <ring_q>
      : (!t, !t, !t, !t, !lse, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}

func.func @gathered(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !lse, %do: !t) -> (!t, !t, !t) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do mask causal
      sequence <@cp, zigzag> strategy <all_gather>
      : (!t, !t, !t, !t, !lse, !t) -> (!t, !t, !t)
  return %dq, %dk, %dv : !t, !t, !t
}
