// Programs that are wrong in ways that a proof for every number of ranks has to see:
// each is refused, by the simulation of all ranks.

// RUN: not burst-opt %s --split-input-file --ring-verify -o /dev/null 2>&1 | FileCheck %s

// A loop inside of a loop, whose attends take what the outer one carries.
// CHECK: 'ring.attend' op schedule refused: rank 1, hop 4: takes the keys for those of rank 0, they are those of 1
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>

    %L:4 = scf.for %t = %c0 to %c4 step %c1 iter_args(%kk = %arg1, %vv = %arg2, %oo = %out, %ll = %lse) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>) {
      %tt = arith.subi %c5, %t : index
      %a0 = arith.addi %proc_linear_idx, %tt : index
      %own = arith.remui %a0, %c5 : index
      %a1 = arith.addi %own, %c4 : index
      %nxt = arith.remui %a1, %c5 : index
      %tok = ring.start %kk, %vv dims [1, 1] of <contiguous over 5>[%own] extent %c60 to %1 receive[%nxt] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %io, %im, %il = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %I:3 = scf.for %u = %c0 to %c5 step %c1 iter_args(%so = %io, %sm = %im, %sl = %il) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
        %uu = arith.subi %c5, %u : index
        %b0 = arith.addi %proc_linear_idx, %uu : index
        %iown = arith.remui %b0, %c5 : index
        %no, %nm, %nl = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%kk, %vv at %iown) of <contiguous over 5> extent %c60
          state %so, %sm, %sl scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
        scf.yield %no, %nm, %nl : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
      }
      %fo, %fl = ring.finalize %I#0, %I#1, %I#2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
      %k2:2 = ring.wait %tok : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %k2#0, %k2#1, %fo, %fl : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    }
    return %L#2, %L#3 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// o, m and l that a loop carries are of different states.
// CHECK: 'ring.attend' op schedule refused: rank 4, hop 1: takes o, m and l of different states
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %eo, %em, %el = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %xo, %xm, %xl = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg1, %arg2 at %proc_linear_idx) of <contiguous over 5> extent %c60
          state %eo, %em, %el scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %zo, %zm, %zl = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:11 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l, %so = %zo, %sm = %zm, %sl = %zl, %ym = %xm, %yl = %xl) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %po, %pm, %pl = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %so, %sm, %sl scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %o_3, %m_4, %l_5 = ring.merge (%arg7, %arg8, %arg9) with (%po, %pm, %pl) of <contiguous over 5>[%proc_linear_idx] extent %c60 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5, %so, %ym, %yl, %sm, %sl : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// The table of an attend without a mask comes with a direction that is none.
// CHECK: 'ring.attend' op schedule refused: rank 0, hop 1: computes query segment 0 with segment 0 of rank 0 a second time
module {
  shard.grid @cp(shape = 5)
  func.func private @needs() -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %g = tensor.generate {
    ^bb0(%a: index, %b: index, %c: index, %d: index):
      tensor.yield %true : i1
    } : tensor<5x5x1x1xi1>
    %r = tensor.generate {
    ^bb0(%a: index, %b: index):
      tensor.yield %c0 : index
    } : tensor<5x1xindex>
    %s = arith.constant 0 : index
    return %g, %r, %s : tensor<5x5x1x1xi1>, tensor<5x1xindex>, index
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %N:3 = call @needs() : () -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index)
    %c5s = arith.subi %c5, %N#2 : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %N#2 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c5s : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c5s : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 pairs(%N#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 pairs(%N#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A table of hops that nothing checks, with hops that are too many.
// CHECK: 'ring.attend' op schedule refused: rank 0, hop 1: reads segment 0 of rank 4, which was not received
module {
  shard.grid @cp(shape = 5)
  func.func private @far() -> tensor<5x1xindex> {
    %c100 = arith.constant 100 : index
    %r = tensor.generate {
    ^bb0(%a: index, %b: index):
      %x = arith.maxui %a, %c100 : index
      tensor.yield %x : index
    } : tensor<5x1xindex>
    return %r : tensor<5x1xindex>
  }
  func.func private @slices(%far: tensor<5x1xindex>) -> tensor<5x5x1xi1> {
    %c5 = arith.constant 5 : index
    %c0 = arith.constant 0 : index
    %moves = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x = tensor.extract %far[%oa, %c0] : tensor<5x1xindex>
      %f = arith.cmpi ult, %x, %c5 : index
      tensor.yield %f : i1
    } : tensor<5x5x1xi1>
    return %moves : tensor<5x5x1xi1>
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %far = call @far() : () -> tensor<5x1xindex>
    %moves = call @slices(%far) : (tensor<5x1xindex>) -> tensor<5x5x1xi1>
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%moves[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A remainder of a difference that wraps around, by a product of the number of ranks.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 0: deadlock: it sends to rank 2 and receives from rank 4
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %pp = arith.muli %c5, %c5 : index
    %w = arith.subi %proc_linear_idx, %pp : index
    %z = arith.remui %w, %c5 : index
    %0 = arith.addi %z, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A remainder that wraps around, used in the region of a table only.
// CHECK: 'ring.merge' op schedule refused: rank 1, hop 9: merges segments 0x1 of a state, of which it has 0x0
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %cst = arith.constant dense<false> : tensor<1x1x1xi1>
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %generated = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi ne, %arg4, %c0 : index
      %10 = arith.cmpi ult, %arg4, %c5 : index
      %11 = arith.andi %9, %10 : i1
      tensor.yield %11 : i1
    } : tensor<1x6x1xi1>
    %generated_0 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi ugt, %arg4, %c1 : index
      %10 = arith.cmpi ult, %arg4, %c5 : index
      %11 = arith.andi %9, %10 : i1
      tensor.yield %11 : i1
    } : tensor<1x6x1xi1>
    %generated_1 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi ugt, %arg4, %c1 : index
      %10 = arith.cmpi eq, %arg4, %c5 : index
      %11 = arith.andi %9, %10 : i1
      tensor.yield %11 : i1
    } : tensor<1x6x1xi1>
    %generated_2 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi eq, %arg4, %c0 : index
      tensor.yield %9 : i1
    } : tensor<1x5x1xi1>
    %4 = ring.start %o, %m, %l dims [1, 2, 2] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %1 receive[%3] from %3 segments(%cst[%c0] : tensor<1x1x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %5 = ring.start %o, %m, %l dims [1, 2, 2] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %proc_linear_idx receive[%proc_linear_idx] from %proc_linear_idx segments(%cst[%c0] : tensor<1x1x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %6:7 = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%arg4 = %arg0, %arg5 = %proc_linear_idx, %arg6 = %o, %arg7 = %m, %arg8 = %l, %arg9 = %4, %arg10 = %5) -> (tensor<1x12x4x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>) {
      %9 = arith.addi %arg5, %c4 : index
      %10 = arith.remui %9, %c5 : index
      %11 = arith.addi %arg3, %c1 : index
      %wm = arith.subi %arg5, %c1 : index
      %w = arith.remui %wm, %c5 : index
      %gen2 = tensor.generate {
      ^bb0(%x3: index, %x4: index, %x5: index):
        %y9 = arith.cmpi ugt, %x4, %c1 : index
        %y10 = arith.cmpi ult, %x4, %c5 : index
        %ok = arith.cmpi eq, %w, %10 : index
        %y11 = arith.andi %y9, %y10 : i1
        %y12 = arith.andi %y11, %ok : i1
        tensor.yield %y12 : i1
      } : tensor<1x6x1xi1>
      %12 = ring.start %arg4 dims [1] of <contiguous over 5>[%arg5] extent %c60 to %1 receive[%10] from %3 segments(%generated[%11] : tensor<1x6x1xi1>) channel <@cp, 0> : (tensor<1x12x4x16xf32>) -> !ring.token<tensor<1x12x4x16xf32>>
      %o_6, %m_7, %l_8 = ring.init %arg4 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %o_9, %m_10, %l_11 = ring.attend %arg4 at <contiguous over 5>[%arg5] extent %c60
          slice (%arg1, %arg2 at %proc_linear_idx) of <contiguous over 5> extent %c60
          state %o_6, %m_7, %l_8 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %13 = ring.wait %12 : !ring.token<tensor<1x12x4x16xf32>>
      %14:3 = ring.wait %arg10 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      %o_12, %m_13, %l_14 = ring.merge(%arg6, %arg7, %arg8) with(%14#0, %14#1, %14#2) of <contiguous over 5>[%proc_linear_idx] extent %c60 segments(%generated_1[%arg3] : tensor<1x6x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %o_15, %m_16, %l_17 = ring.merge(%o_12, %m_13, %l_14) with(%o_9, %m_10, %l_11) of <contiguous over 5>[%proc_linear_idx] extent %c60 segments(%generated_2[%arg3] : tensor<1x5x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %15:3 = ring.wait %arg9 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      %o_18, %m_19, %l_20 = ring.merge(%o_9, %m_10, %l_11) with(%15#0, %15#1, %15#2) of <contiguous over 5>[%arg5] extent %c60 segments(%generated_0[%arg3] : tensor<1x6x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %16 = ring.start %o_18, %m_19, %l_20 dims [1, 2, 2] of <contiguous over 5>[%arg5] extent %c60 to %1 receive[%10] from %3 segments(%gen2[%11] : tensor<1x6x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      %17 = arith.addi %proc_linear_idx, %c5 : index
      %18 = arith.subi %17, %arg5 : index
      %19 = arith.addi %proc_linear_idx, %18 : index
      %20 = arith.remui %19, %c5 : index
      %21 = ring.start %o_18, %m_19, %l_20 dims [1, 2, 2] of <contiguous over 5>[%arg5] extent %c60 to %arg5 receive[%proc_linear_idx] from %20 segments(%generated_1[%11] : tensor<1x6x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      scf.yield %13, %10, %o_15, %m_16, %l_17, %16, %21 : tensor<1x12x4x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    }
    %7:3 = ring.wait %6#5 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %8:3 = ring.wait %6#6 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %o_3, %m_4, %l_5 = ring.merge(%6#2, %6#3, %6#4) with(%8#0, %8#1, %8#2) of <contiguous over 5>[%proc_linear_idx] extent %c60 segments(%generated_1[%c5] : tensor<1x6x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %out, %lse = ring.finalize %o_3, %m_4, %l_5 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A remainder that wraps around, in the table that a function is given.
// CHECK: 'ring.attend' op schedule refused: rank 1, hop 1: reads segment 0 of rank 0, which was not received
module {
  shard.grid @cp(shape = 5)
  func.func private @far() -> tensor<5x1xindex> {
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %r = tensor.generate {
    ^bb0(%a: index, %b: index):
      %x = arith.subi %a, %c1 : index
      %y = arith.remui %x, %c5 : index
      tensor.yield %y : index
    } : tensor<5x1xindex>
    return %r : tensor<5x1xindex>
  }
  func.func private @slices(%far: tensor<5x1xindex>) -> tensor<5x5x1xi1> {
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c4 = arith.subi %c5, %c1 : index
    %moves = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x = tensor.extract %far[%oa, %c0] : tensor<5x1xindex>
      %o4 = arith.addi %oa, %c4 : index
      %y = arith.remui %o4, %c5 : index
      %f = arith.cmpi eq, %x, %y : index
      tensor.yield %f : i1
    } : tensor<5x5x1xi1>
    return %moves : tensor<5x5x1xi1>
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %far = call @far() : () -> tensor<5x1xindex>
    %moves = call @slices(%far) : (tensor<5x1xindex>) -> tensor<5x5x1xi1>
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%moves[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A comparison of what overflows.
// CHECK: 'ring.attend' op schedule refused: rank 3, hop 1: reads segment 0 of rank 2, which was not received
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %big = arith.constant 4611686018427387904 : index
    %moves = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %pp = arith.muli %oa, %big : index
      %f = arith.cmpi sge, %pp, %c0 : index
      tensor.yield %f : i1
    } : tensor<5x5x1xi1>
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%moves[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Flags that are added.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 0: deadlock: it sends to rank 2 and receives from rank 4
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %true = arith.constant true
    %false = arith.constant false
    %neg = arith.addi %true, %false : i1
    %zz = arith.select %neg, %c1, %c0 : index
    %z = arith.addi %proc_linear_idx, %zz : index
    %0 = arith.addi %z, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Pairs that are flagged by a sum of flags: none counts as needed.
// CHECK: 'ring.finalize' op schedule refused: rank 1, hop 0: lacks query segment 0 with segment 0 of rank 0, which no attend has computed
module {
  shard.grid @cp(shape = 5)
  func.func private @full_needs(%arg0: index, %arg1: index, %arg2: index) -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index) {
    %c5 = arith.constant 5 : index
    %true = arith.constant true
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %false = arith.constant false
    %generated = tensor.generate {
    ^bb0(%p: index, %k: index, %x: index, %y: index):
      %g = arith.cmpi sge, %p, %k : index
      %g2 = arith.addi %g, %false : i1
      tensor.yield %g2 : i1
    } : tensor<5x5x1x1xi1>
    %generated_0 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %4 = scf.for %arg5 = %c1 to %c5 step %c1 iter_args(%arg6 = %c0) -> (index) {
        %5 = arith.addi %arg3, %arg5 : index
        %6 = arith.remui %5, %c5 : index
        %extracted = tensor.extract %generated[%6, %arg3, %c0, %arg4] : tensor<5x5x1x1xi1>
        %7 = arith.select %extracted, %arg5, %arg6 : index
        scf.yield %7 : index
      }
      tensor.yield %4 : index
    } : tensor<5x1xindex>
    %generated_1 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %4 = scf.for %arg5 = %c1 to %c5 step %c1 iter_args(%arg6 = %c0) -> (index) {
        %5 = arith.muli %arg5, %c4 : index
        %6 = arith.addi %arg3, %5 : index
        %7 = arith.remui %6, %c5 : index
        %extracted = tensor.extract %generated[%7, %arg3, %c0, %arg4] : tensor<5x5x1x1xi1>
        %8 = arith.select %extracted, %arg5, %arg6 : index
        scf.yield %8 : index
      }
      tensor.yield %4 : index
    } : tensor<5x1xindex>
    %0 = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%arg4 = %c0) -> (index) {
      %begin, %end, %count, %step, %block = ring.segment %c0 of <contiguous over 5>[%arg3] extent %arg1
      %extracted = tensor.extract %generated_1[%arg3, %c0] : tensor<5x1xindex>
      %4 = arith.muli %count, %extracted : index
      %5 = arith.addi %arg4, %4 : index
      scf.yield %5 : index
    }
    %1 = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%arg4 = %c0) -> (index) {
      %begin, %end, %count, %step, %block = ring.segment %c0 of <contiguous over 5>[%arg3] extent %arg1
      %extracted = tensor.extract %generated_0[%arg3, %c0] : tensor<5x1xindex>
      %4 = arith.muli %count, %extracted : index
      %5 = arith.addi %arg4, %4 : index
      scf.yield %5 : index
    }
    %2 = arith.cmpi ult, %0, %1 : index
    %generated_2 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %extracted = tensor.extract %generated_1[%arg3, %arg4] : tensor<5x1xindex>
      %extracted_3 = tensor.extract %generated_0[%arg3, %arg4] : tensor<5x1xindex>
      %4 = arith.select %2, %extracted, %extracted_3 : index
      tensor.yield %4 : index
    } : tensor<5x1xindex>
    %3 = arith.select %2, %c4, %c1 : index
    return %generated, %generated_2, %3 : tensor<5x5x1x1xi1>, tensor<5x1xindex>, index
  }
  func.func private @full_slices(%arg0: tensor<5x1xindex>) -> tensor<5x6x1xi1> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %generated = tensor.generate  {
    ^bb0(%arg1: index, %arg2: index, %arg3: index):
      %extracted = tensor.extract %arg0[%arg1, %arg3] : tensor<5x1xindex>
      %0 = arith.addi %extracted, %c1 : index
      %1 = arith.cmpi ne, %arg2, %c0 : index
      %2 = arith.cmpi ult, %arg2, %0 : index
      %3 = arith.andi %1, %2 : i1
      tensor.yield %3 : i1
    } : tensor<5x6x1xi1>
    return %generated : tensor<5x6x1xi1>
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c60 = arith.constant 60 : index
    %c0 = arith.constant 0 : index
    %0:3 = call @full_needs(%c60, %c60, %c1) : (index, index, index) -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index)
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %1 = arith.addi %proc_linear_idx, %0#2 : index
    %2 = arith.remui %1, %c5 : index
    %3 = arith.subi %c5, %0#2 : index
    %4 = arith.addi %proc_linear_idx, %3 : index
    %5 = arith.remui %4, %c5 : index
    %6 = call @full_slices(%0#1) : (tensor<5x1xindex>) -> tensor<5x6x1xi1>
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%arg1, %arg2 at %proc_linear_idx) of <contiguous over 5> extent %c60
        state %o, %m, %l pairs(%0#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
        mask(%b, %h, %i, %j, %sq, %sk) {
          %8 = arith.subi %sk, %sq : index
          %9 = arith.addi %i, %8 : index
          %10 = arith.cmpi sle, %j, %9 : index
          burst.yield %10 : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
          %c1_3 = arith.constant 1 : index
          %8 = arith.subi %i1, %c1_3 : index
          %9 = arith.subi %j1, %c1_3 : index
          %10 = arith.cmpi sle, %j0, %8 : index
          %11 = arith.cmpi sle, %9, %i0 : index
          burst.yield %10, %11 : i1, i1
        }
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A loop that carries a gathered tensor in the first turn only.
// CHECK: 'ring.attend' op schedule refused: rank 1, hop 2: reads segment 0 of rank 2, which was not received
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %0 = ring.start %arg1, %arg2 dims [1, 1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %1:2 = ring.wait %0 : !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %fl = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %f0 = arith.cmpi eq, %oa, %c0 : index
      %f1 = arith.cmpi eq, %ta, %c0 : index
      %f2 = arith.ori %f0, %f1 : i1
      tensor.yield %f2 : i1
    } : tensor<5x5x1xi1>
    %tk = ring.start %arg1, %arg2 dims [1, 1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather segments(%fl : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %gg:2 = ring.wait %tk : !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %L:2 = scf.for %t = %c0 to %c5 step %c1 iter_args(%ga = %1#0, %gb = %1#1) -> (tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>) {
      scf.yield %gg#0, %gg#1 : tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>
    }
    %out, %lse = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%L#0, %L#1 at %c0) of <contiguous over 5, all> extent %c60
        first last scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A table of pairs of gathered keys that comes with hops.
// CHECK: 'ring.attend' op schedule refused: rank 4, hop 1: reads segment 0 of rank 1, which was not received
module {
  shard.grid @cp(shape = 5)
  func.func private @full_needs(%arg0: index, %arg1: index, %arg2: index) -> (tensor<5x1x1x5xi1>, tensor<5x5x1xi1>, tensor<5x1xindex>, index) {
    %c5 = arith.constant 5 : index
    %true = arith.constant true
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %generated = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      %begin, %end, %count, %step, %block = ring.segment %arg5 of <contiguous over 5>[%arg3] extent %arg0
      %0 = arith.cmpi eq, %count, %c0 : index
      %1 = arith.select %0, %c1, %end : index
      %begin_1, %end_2, %count_3, %step_4, %block_5 = ring.segment %arg6 of <contiguous over 5, all>[%arg4] extent %arg1
      %2 = arith.cmpi eq, %count_3, %c0 : index
      %3 = arith.select %2, %c0, %begin_1 : index
      %4 = arith.subi %1, %c1 : index
      %5 = arith.cmpi sle, %3, %4 : index
      %6 = arith.ori %0, %2 : i1
      %7 = arith.xori %6, %true : i1
      %8 = arith.andi %7, %5 : i1
      tensor.yield %8 : i1
    } : tensor<5x1x1x5xi1>
    %generated_0 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %0 = arith.addi %arg3, %arg4 : index
      %1 = arith.remui %0, %c5 : index
      %2 = arith.cmpi eq, %arg4, %c0 : index
      %3 = arith.addi %arg3, %arg5 : index
      %extracted = tensor.extract %generated[%1, %c0, %c0, %3] : tensor<5x1x1x5xi1>
      %4 = arith.ori %2, %extracted : i1
      tensor.yield %4 : i1
    } : tensor<5x5x1xi1>
    %rc = tensor.generate {
    ^bb0(%x: index, %y: index):
      %last = arith.subi %c5, %c1 : index
      %in = arith.cmpi ult, %y, %c1 : index
      %e = arith.select %in, %last, %c0 : index
      tensor.yield %e : index
    } : tensor<5x1xindex>
    return %generated, %generated_0, %rc, %c1 : tensor<5x1x1x5xi1>, tensor<5x5x1xi1>, tensor<5x1xindex>, index
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c60 = arith.constant 60 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0:4 = call @full_needs(%c60, %c60, %c1) : (index, index, index) -> (tensor<5x1x1x5xi1>, tensor<5x5x1xi1>, tensor<5x1xindex>, index)
    %c5 = arith.constant 5 : index
    %fl = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %f0 = arith.cmpi eq, %oa, %c0 : index
      %f1 = arith.cmpi eq, %ta, %c0 : index
      %f2 = arith.ori %f0, %f1 : i1
      %f3 = arith.addi %oa, %ta : index
      %f4 = arith.remui %f3, %c5 : index
      %f5 = arith.cmpi eq, %f4, %c0 : index
      %f6 = arith.ori %f2, %f5 : i1
      tensor.yield %f6 : i1
    } : tensor<5x5x1xi1>
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %1 = ring.start %arg1, %arg2 dims [1, 1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather segments(%fl : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %2:2 = ring.wait %1 : !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %out, %lse = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%2#0, %2#1 at %c0) of <contiguous over 5, all> extent %c60
        first last pairs(%0#0 : tensor<5x1x1x5xi1>) scale 2.500000e-01
        mask(%b, %h, %i, %j, %sq, %sk) {
          %3 = arith.subi %sk, %sq : index
          %4 = arith.addi %i, %3 : index
          %5 = arith.cmpi sle, %j, %4 : index
          burst.yield %5 : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
          %c1_0 = arith.constant 1 : index
          %3 = arith.subi %i1, %c1_0 : index
          %4 = arith.subi %j1, %c1_0 : index
          %5 = arith.cmpi sle, %j0, %3 : index
          %6 = arith.cmpi sle, %4, %i0 : index
          burst.yield %5, %6 : i1, i1
        }
        : (tensor<1x12x4x16xf32>, tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A score that reads a table of which ranks have shards.
// CHECK: 'func.return' op schedule refused: rank 1, hop 0: returns as result 0 an attention that captures other values than that of rank 0
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %tab: tensor<4xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 0 extent 20>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          score(%s : f32, %b, %h, %i, %j, %sq, %sk, %tb = %tab : tensor<4xf32>) {
            %e = tensor.extract %tb[%h] : tensor<4xf32>
            %e2 = arith.addf %s, %e : f32
            burst.yield %e2 : f32
          }
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
          score(%s : f32, %b, %h, %i, %j, %sq, %sk, %tb = %tab : tensor<4xf32>) {
            %e = tensor.extract %tb[%h] : tensor<4xf32>
            %e2 = arith.addf %s, %e : f32
            burst.yield %e2 : f32
          }
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A mask that reads a table of which ranks have shards.
// CHECK: 'func.return' op schedule refused: rank 1, hop 0: returns as result 0 an attention that captures other values than that of rank 0
module {
  shard.grid @cp(shape = 5)
  func.func private @full_needs(%arg0: index, %arg1: index, %arg2: index) -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index) {
    %c5 = arith.constant 5 : index
    %true = arith.constant true
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %generated = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      %begin, %end, %count, %step, %block = ring.segment %arg5 of <contiguous over 5>[%arg3] extent %arg0
      %4 = arith.cmpi eq, %count, %c0 : index
      %5 = arith.select %4, %c1, %end : index
      %begin_3, %end_4, %count_5, %step_6, %block_7 = ring.segment %arg6 of <contiguous over 5>[%arg4] extent %arg1
      %6 = arith.cmpi eq, %count_5, %c0 : index
      %7 = arith.select %6, %c0, %begin_3 : index
      %8 = arith.subi %5, %c1 : index
      %9 = arith.cmpi sle, %7, %8 : index
      %10 = arith.ori %4, %6 : i1
      %11 = arith.xori %10, %true : i1
      %12 = arith.andi %11, %9 : i1
      tensor.yield %12 : i1
    } : tensor<5x5x1x1xi1>
    %generated_0 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %4 = scf.for %arg5 = %c1 to %c5 step %c1 iter_args(%arg6 = %c0) -> (index) {
        %5 = arith.addi %arg3, %arg5 : index
        %6 = arith.remui %5, %c5 : index
        %extracted = tensor.extract %generated[%6, %arg3, %c0, %arg4] : tensor<5x5x1x1xi1>
        %7 = arith.select %extracted, %arg5, %arg6 : index
        scf.yield %7 : index
      }
      tensor.yield %4 : index
    } : tensor<5x1xindex>
    %generated_1 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %4 = scf.for %arg5 = %c1 to %c5 step %c1 iter_args(%arg6 = %c0) -> (index) {
        %5 = arith.muli %arg5, %c4 : index
        %6 = arith.addi %arg3, %5 : index
        %7 = arith.remui %6, %c5 : index
        %extracted = tensor.extract %generated[%7, %arg3, %c0, %arg4] : tensor<5x5x1x1xi1>
        %8 = arith.select %extracted, %arg5, %arg6 : index
        scf.yield %8 : index
      }
      tensor.yield %4 : index
    } : tensor<5x1xindex>
    %0 = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%arg4 = %c0) -> (index) {
      %begin, %end, %count, %step, %block = ring.segment %c0 of <contiguous over 5>[%arg3] extent %arg1
      %extracted = tensor.extract %generated_1[%arg3, %c0] : tensor<5x1xindex>
      %4 = arith.muli %count, %extracted : index
      %5 = arith.addi %arg4, %4 : index
      scf.yield %5 : index
    }
    %1 = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%arg4 = %c0) -> (index) {
      %begin, %end, %count, %step, %block = ring.segment %c0 of <contiguous over 5>[%arg3] extent %arg1
      %extracted = tensor.extract %generated_0[%arg3, %c0] : tensor<5x1xindex>
      %4 = arith.muli %count, %extracted : index
      %5 = arith.addi %arg4, %4 : index
      scf.yield %5 : index
    }
    %2 = arith.cmpi ult, %0, %1 : index
    %generated_2 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %extracted = tensor.extract %generated_1[%arg3, %arg4] : tensor<5x1xindex>
      %extracted_3 = tensor.extract %generated_0[%arg3, %arg4] : tensor<5x1xindex>
      %4 = arith.select %2, %extracted, %extracted_3 : index
      tensor.yield %4 : index
    } : tensor<5x1xindex>
    %3 = arith.select %2, %c4, %c1 : index
    return %generated, %generated_2, %3 : tensor<5x5x1x1xi1>, tensor<5x1xindex>, index
  }
  func.func private @full_slices(%arg0: tensor<5x1xindex>) -> tensor<5x6x1xi1> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %generated = tensor.generate  {
    ^bb0(%arg1: index, %arg2: index, %arg3: index):
      %extracted = tensor.extract %arg0[%arg1, %arg3] : tensor<5x1xindex>
      %0 = arith.addi %extracted, %c1 : index
      %1 = arith.cmpi ne, %arg2, %c0 : index
      %2 = arith.cmpi ult, %arg2, %0 : index
      %3 = arith.andi %1, %2 : i1
      tensor.yield %3 : i1
    } : tensor<5x6x1xi1>
    return %generated : tensor<5x6x1xi1>
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %tab: tensor<4xindex> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 0 extent 20>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c60 = arith.constant 60 : index
    %c0 = arith.constant 0 : index
    %0:3 = call @full_needs(%c60, %c60, %c1) : (index, index, index) -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index)
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %1 = arith.addi %proc_linear_idx, %0#2 : index
    %2 = arith.remui %1, %c5 : index
    %3 = arith.subi %c5, %0#2 : index
    %4 = arith.addi %proc_linear_idx, %3 : index
    %5 = arith.remui %4, %c5 : index
    %6 = call @full_slices(%0#1) : (tensor<5x1xindex>) -> tensor<5x6x1xi1>
    %7:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %8 = arith.addi %arg6, %3 : index
      %9 = arith.remui %8, %c5 : index
      %10 = arith.addi %arg3, %c1 : index
      %11 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %2 receive[%9] from %5 segments(%6[%10] : tensor<5x6x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 pairs(%0#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
          mask(%b, %h, %i, %j, %sq, %sk, %tb = %tab : tensor<4xindex>) {
 %zz = arith.constant 0 : index
%e = tensor.extract %tb[%zz] : tensor<4xindex>
            %13 = arith.subi %sk, %sq : index
            %14 = arith.addi %i, %13 : index
            %je = arith.addi %j, %e : index
            %15 = arith.cmpi sle, %je, %14 : index
            burst.yield %15 : i1
          }
          bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %tb : tensor<4xindex>) {
            %c1_6 = arith.constant 1 : index
            %13 = arith.subi %i1, %c1_6 : index
            %14 = arith.subi %j1, %c1_6 : index
            %15 = arith.cmpi sle, %j0, %13 : index
            %16 = arith.cmpi sle, %14, %i0 : index
            burst.yield %15, %16 : i1, i1
          }
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %12:2 = ring.wait %11 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %12#0, %12#1, %9, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%7#0, %7#1 at %7#2) of <contiguous over 5> extent %c60
        state %7#3, %7#4, %7#5 pairs(%0#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
        mask(%b, %h, %i, %j, %sq, %sk, %tb = %tab : tensor<4xindex>) {
 %zz = arith.constant 0 : index
%e = tensor.extract %tb[%zz] : tensor<4xindex>
          %8 = arith.subi %sk, %sq : index
          %9 = arith.addi %i, %8 : index
          %je = arith.addi %j, %e : index
          %10 = arith.cmpi sle, %je, %9 : index
          burst.yield %10 : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %tb : tensor<4xindex>) {
          %c1_3 = arith.constant 1 : index
          %8 = arith.subi %i1, %c1_3 : index
          %9 = arith.subi %j1, %c1_3 : index
          %10 = arith.cmpi sle, %j0, %8 : index
          %11 = arith.cmpi sle, %9, %i0 : index
          burst.yield %10, %11 : i1, i1
        }
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A transfer of segments that are flagged in a table of which ranks have shards.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 0: reads flags of segments that nobody knows yet
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %tab: tensor<5x5x1xi1> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 25>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %x = ring.start %arg1 dims [1] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %1 receive[%3] from %3 segments(%tab[%c0] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>>
    %xx = ring.wait %x : !ring.token<tensor<1x12x2x16xf32>>
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A transfer of segments that are flagged in a table that changes from turn to turn.
// CHECK: 'ring.start' op schedule refused: rank 1, hop 4: receives 2 tensors from rank 0, which sends 1
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %tb0 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %f = arith.cmpi eq, %proc_linear_idx, %c0 : index
      tensor.yield %f : i1
    } : tensor<5x5x1xi1>
    %lp = scf.for %t = %c0 to %c4 step %c1 iter_args(%tb = %tb0) -> (tensor<5x5x1xi1>) {
      %x = ring.start %arg1 dims [1] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %1 receive[%3] from %3 segments(%tb[%t] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>>
      %xx = ring.wait %x : !ring.token<tensor<1x12x2x16xf32>>
      scf.yield %tb : tensor<5x5x1xi1>
    }
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A transfer in the region of a table.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 0: deadlock: it sends to rank 1 and receives from rank 1
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %true = arith.constant true
    %fl = tensor.generate {
    ^bb0(%oa: index):
      %x = ring.start %arg1 dims [1] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %1 receive[%1] from %1 channel <@cp, 0> : (tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>>
      %xx = ring.wait %x : !ring.token<tensor<1x12x2x16xf32>>
      tensor.yield %true : i1
    } : tensor<1xi1>
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A gather of which sender and receiver read different flags.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 1: deadlock: it sends to rank 1 and receives from rank 4
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %0 = ring.start %arg1, %arg2 dims [1, 1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %1:2 = ring.wait %0 : !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %L = scf.for %t = %c0 to %c4 step %c1 iter_args(%me = %proc_linear_idx) -> (index) {
      %fl = tensor.generate {
      ^bb0(%oa: index, %ta: index, %sa: index):
        %f0 = arith.cmpi eq, %me, %c0 : index
        %f1 = arith.cmpi eq, %ta, %c0 : index
        %f2 = arith.ori %f0, %f1 : i1
        tensor.yield %f2 : i1
      } : tensor<5x5x1xi1>
      %tk = ring.start %arg1 dims [1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather segments(%fl : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>>
      %gg = ring.wait %tk : !ring.token<tensor<1x60x2x16xf32>>
      scf.yield %me : index
    }
    %out, %lse = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%1#0, %1#1 at %c0) of <contiguous over 5, all> extent %c60
        first last scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Received slices that wait in more values than there are buffers.
// CHECK: 'ring.start' op schedule refused: rank 2, hop 2: receives a slice while 2 are still needed, and there are buffers for 2
module {
  shard.grid @cp(shape = 9)
  func.func @full(%arg0: tensor<1x7x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 9>, dim 1 extent 63>}, %arg1: tensor<1x7x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 9>, dim 1 extent 63>}, %arg2: tensor<1x7x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 9>, dim 1 extent 63>}) -> (tensor<1x7x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 9>, dim 1 extent 63>}, tensor<1x4x7xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 9>, dim 2 extent 63>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c9 = arith.constant 9 : index
    %c1 = arith.constant 1 : index
    %c63 = arith.constant 63 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x7x4x16xf32> -> tensor<1x7x4x16xf32>, tensor<1x4x7xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c9 : index
    %2 = arith.addi %proc_linear_idx, %c8 : index
    %3 = arith.remui %2, %c9 : index
    %none = arith.constant dense<true> : tensor<1x1x1xi1>
    %222 = arith.addi %3, %c8 : index
    %33 = arith.remui %222, %c9 : index
    %x = ring.start %arg1 dims [1] of <contiguous over 9>[%proc_linear_idx] extent %c63 to %1 receive[%3] from %3 channel <@cp, 1> : (tensor<1x7x2x16xf32>) -> !ring.token<tensor<1x7x2x16xf32>>
    %xx = ring.wait %x : !ring.token<tensor<1x7x2x16xf32>>
    %dl:5 = scf.for %t = %c0 to %c8 step %c1 iter_args(%d0 = %xx, %d1 = %xx, %d2 = %xx, %d3 = %xx, %d4 = %xx) -> (tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>) {
      %y = ring.start %arg1 dims [1] of <contiguous over 9>[%proc_linear_idx] extent %c63 to %1 receive[%3] from %3 channel <@cp, 1> : (tensor<1x7x2x16xf32>) -> !ring.token<tensor<1x7x2x16xf32>>
      %yy = ring.wait %y : !ring.token<tensor<1x7x2x16xf32>>
      %n = ring.start %d4 dims [1] of <contiguous over 9>[%3] extent %c63 to %1 receive[%33] from %3 segments(%none[%c0] : tensor<1x1x1xi1>) channel <@cp, 2> : (tensor<1x7x2x16xf32>) -> !ring.token<tensor<1x7x2x16xf32>>
      %nn = ring.wait %n : !ring.token<tensor<1x7x2x16xf32>>
      scf.yield %yy, %d0, %d1, %d2, %d3 : tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>
    }
    %4:6 = scf.for %arg3 = %c0 to %c8 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, index, tensor<1x7x4x16xf32>, tensor<1x4x7xf32>, tensor<1x4x7xf32>) {
      %5 = arith.addi %arg6, %c8 : index
      %6 = arith.remui %5, %c9 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 9>[%arg6] extent %c63 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>) -> !ring.token<tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 9>[%proc_linear_idx] extent %c63
          slice (%arg4, %arg5 at %arg6) of <contiguous over 9> extent %c63
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x7x4x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>) -> (tensor<1x7x4x16xf32>, tensor<1x4x7xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>, index, tensor<1x7x4x16xf32>, tensor<1x4x7xf32>, tensor<1x4x7xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 9>[%proc_linear_idx] extent %c63
        slice (%4#0, %4#1 at %4#2) of <contiguous over 9> extent %c63
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x7x4x16xf32>, tensor<1x7x2x16xf32>, tensor<1x7x2x16xf32>) -> (tensor<1x7x4x16xf32>, tensor<1x4x7xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x7x4x16xf32>, tensor<1x4x7xf32> -> tensor<1x7x4x16xf32>
    return %out, %lse : tensor<1x7x4x16xf32>, tensor<1x4x7xf32>
  }
}

// -----

// A hop is missing, the pairs of which wrap around in the table: nothing reads them.
// CHECK: 'ring.finalize' op schedule refused: rank 1, hop 4: lacks query segment 0 with segment 0 of rank 2, which no attend has computed
module {
  shard.grid @cp(shape = 5)
  func.func private @needs() -> tensor<5x5x1x1xi1> {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c5 = arith.constant 5 : index
    %g = tensor.generate {
    ^bb0(%p: index, %k: index, %a: index, %b: index):
      %x = arith.addi %p, %c5 : index
      %y = arith.subi %x, %k : index
      %way = arith.remui %y, %c5 : index
      %e = arith.subi %c5, %c2 : index
      %z = arith.subi %e, %way : index
      %n = arith.cmpi uge, %z, %c0 : index
      tensor.yield %n : i1
    } : tensor<5x5x1x1xi1>
    return %g : tensor<5x5x1x1xi1>
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %N = call @needs() : () -> tensor<5x5x1x1xi1>
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 pairs(%N : tensor<5x5x1x1xi1>) scale 2.500000e-01
          mask(%b, %h, %i, %j, %sq, %sk) {
            %yes = arith.constant true
            burst.yield %yes : i1
          }
          bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
            %yes = arith.constant true
            burst.yield %yes, %yes : i1, i1
          }
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %out, %lse = ring.finalize %4#3, %4#4, %4#5 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A gather of which the receiver reads flags that wrap around.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 1: deadlock: it sends to rank 3
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %0 = ring.start %arg1, %arg2 dims [1, 1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %1:2 = ring.wait %0 : !ring.token<tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>>
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %L = scf.for %t = %c0 to %c4 step %c1 iter_args(%me = %proc_linear_idx) -> (index) {
      %fl = tensor.generate {
      ^bb0(%oa: index, %ta: index, %sa: index):
        %x = arith.subi %me, %oa : index
        %f2 = arith.cmpi ult, %x, %c5 : index
        tensor.yield %f2 : i1
      } : tensor<5x5x1xi1>
      %tk = ring.start %arg1 dims [1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather segments(%fl : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x60x2x16xf32>>
      %gg = ring.wait %tk : !ring.token<tensor<1x60x2x16xf32>>
      scf.yield %me : index
    }
    %out, %lse = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%1#0, %1#1 at %c0) of <contiguous over 5, all> extent %c60
        first last scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x60x2x16xf32>, tensor<1x60x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A gather into memory of another size.
// CHECK: 'ring.start' op schedule refused: rank 0, hop 0: receives tensor 0 of 60 positions along dimension 1, its type says 30
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %0 = ring.start %arg1, %arg2 dims [1, 1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x30x2x16xf32>, tensor<1x30x2x16xf32>>
    %1:2 = ring.wait %0 : !ring.token<tensor<1x30x2x16xf32>, tensor<1x30x2x16xf32>>
    %out, %lse = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%1#0, %1#1 at %c0) of <contiguous over 5, all> extent %c60
        first last scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x30x2x16xf32>, tensor<1x30x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// An entry that a table does not have, for a check alone.
// CHECK: 'func.func' op schedule refused: rank 0, hop 0: reads a table outside of its bounds, at [{{100}}]
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %tb = arith.constant dense<1> : tensor<5xindex>
    %c100 = arith.constant 100 : index
    %far = tensor.extract %tb[%c100] : tensor<5xindex>
    ring.require %far at least %c0, "far"
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// The same, on the last rank only.
// CHECK: 'func.func' op schedule refused: rank 4, hop 0: reads a table outside of its bounds, at [{{5}}]
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %tb = arith.constant dense<1> : tensor<5xindex>
    %c3x = arith.addi %proc_linear_idx, %c1 : index
    %far = tensor.extract %tb[%c3x] : tensor<5xindex>
    ring.require %far at least %c0, "far"
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A remainder by 0, of which nothing is made.
// CHECK: 'func.func' op schedule refused: rank 0, hop 0: divides 1 by 0
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %z = arith.remui %1, %c0 : index
    ring.require %z at least %c0, "z"
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// An entry that a table of a function does not have, for a result that nobody reads.
// CHECK: 'func.func' op schedule refused: rank 0, hop 0: reads a table outside of its bounds, at [{{100}}]
module {
  shard.grid @cp(shape = 5)
  func.func private @needs() -> (tensor<5x5x1xi1>, tensor<5xindex>) {
    %c100 = arith.constant 100 : index
    %true = arith.constant true
    %tb = arith.constant dense<1> : tensor<5xindex>
    %g = tensor.generate {
    ^bb0(%a: index, %b: index, %c: index):
      tensor.yield %true : i1
    } : tensor<5x5x1xi1>
    %h = tensor.generate {
    ^bb0(%a: index):
      %x = tensor.extract %tb[%c100] : tensor<5xindex>
      tensor.yield %x : index
    } : tensor<5xindex>
    return %g, %h : tensor<5x5x1xi1>, tensor<5xindex>
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %N:2 = call @needs() : () -> (tensor<5x5x1xi1>, tensor<5xindex>)
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%N#0[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}
