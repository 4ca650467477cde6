// A backward pass of as many heads of keys as of queries, so that queries travel.
// docs/how-to.md asks what that saves.
shard.grid @cp(shape = 4)

!tensor = tensor<1x512x8x64xbf16>

func.func @backward(%q: !tensor {burst.name = "q"}, %k: !tensor {burst.name = "k"},
                    %v: !tensor {burst.name = "v"}, %o: !tensor {burst.name = "o"},
                    %lse: tensor<1x8x512xf32> {burst.name = "lse"},
                    %do: !tensor {burst.name = "do"})
    -> (!tensor {burst.name = "dq"}, !tensor {burst.name = "dk"},
        !tensor {burst.name = "dv"}) {
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do
      mask causal sequence <@cp, zigzag>
      : (!tensor, !tensor, !tensor, !tensor, tensor<1x8x512xf32>, !tensor)
      -> (!tensor, !tensor, !tensor)
  return %dq, %dk, %dv : !tensor, !tensor, !tensor
}
