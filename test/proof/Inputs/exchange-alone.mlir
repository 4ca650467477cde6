shard.grid @cp(shape = 2)
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
!q = tensor<1x4x2x4xf32>
func.func @alone(%q: !q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %first = arith.cmpi eq, %r, %c0 : index
  scf.if %first {
    %t = ring.start %q dims [1] of <contiguous over 2>[%r] extent %n all_to_all heads over 2 channel <@cp, 2>
        : (!q) -> !ring.token<tensor<1x8x1x4xf32>>
    %y = ring.wait %t : !ring.token<tensor<1x8x1x4xf32>>
  }
  return
}

// -----

shard.grid @cp(shape = 2)
#s = #ring.shard<#ring.layout<contiguous over 2>, dim 1 extent 8>
!q = tensor<1x4x2x4xf32>
func.func @apart(%q: !q {ring.shard = #s}) attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %n = arith.constant 8 : index
  %r = shard.process_multi_index on @cp axes = [0] : index
  %first = arith.cmpi eq, %r, %c0 : index
  scf.if %first {
    %t = ring.start %q dims [1] of <contiguous over 2>[%r] extent %n all_to_all heads over 2 channel <@cp, 2>
        : (!q) -> !ring.token<tensor<1x8x1x4xf32>>
    %y = ring.wait %t : !ring.token<tensor<1x8x1x4xf32>>
  } else {
    %t = ring.start %q dims [1] of <contiguous over 2>[%r] extent %n all_to_all heads over 2 channel <@cp, 2>
        : (!q) -> !ring.token<tensor<1x8x1x4xf32>>
    %y = ring.wait %t : !ring.token<tensor<1x8x1x4xf32>>
  }
  return
}
